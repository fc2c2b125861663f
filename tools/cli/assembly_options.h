/// asm, disasm and exec share these options.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gpu/chip/generation.h"
#include "gpu/qpu/check/broken_rules.h"

namespace CLI {
class App;
}

namespace v3d::tools {

/// Why a board is none; empty: it is one.
std::string why_no_board(const std::string& name);

/// --chip and --device. @param generation  the default is what it holds
void add_chip_options(CLI::App* command, chip::Generation* generation);

/// What --check asks for.
struct CheckOptions {
  std::string kinds;  ///< empty: nothing is checked
  bool four_threads = false;

  std::vector<qpu::BrokenRule> check(chip::Generation generation, std::span<const uint64_t> words) const;
  /// Of kinds that were named every report counts.
  bool fails(std::span<const qpu::BrokenRule> broken) const;
};

void add_check_options(CLI::App* command, CheckOptions* options);

}  // namespace v3d::tools
