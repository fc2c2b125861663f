/// The option --chip.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>

namespace v3d::tools {

/// @param version  71 or 42; the default is what it holds
inline void add_chip_option(CLI::App* command, int* version) {
  command->add_option("--chip", *version, "7.1 (Raspberry Pi 5; default) or 4.2 (Raspberry Pi 4)")
      ->transform(CLI::CheckedTransformer(std::map<std::string, int>{{"7.1", 71}, {"4.2", 42}}))
      ->option_text("CHIP");
}

}  // namespace v3d::tools
