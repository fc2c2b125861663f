/// Options that asm and disasm share.
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

inline void add_check_options(CLI::App* command, bool* check, bool* four_threads) {
  command->add_flag("--check", *check,
                    "Report broken rules of scheduling (latencies, delay slots, thread ends), and fail if "
                    "there are any; report "
                    "what is assumed of the hardware where the program depends on it");
  command->add_flag("--four-threads", *four_threads, "Check the limits of four threads per QPU, not of two");
}

}  // namespace v3d::tools
