/// asm and disasm share these options.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "gpu/chip/generation.h"
#include "gpu/qpu/check/hazard.h"
#include "gpu/qpu/isa/isa.h"

namespace v3d::tools {

/// @param generation  the default is what it holds
inline void add_chip_option(CLI::App* command, chip::Generation* generation) {
  std::map<std::string, chip::Generation> known;
  for (const chip::Generation g : chip::kGenerations)
    if (qpu::isa(g).has_words) known.emplace(chip::version_text(g), g);
  command
      ->add_option_function<std::string>(
          "--chip", [known, generation](const std::string& name) { *generation = known.at(name); },
          "7.1 (Raspberry Pi 5; default) or 4.2 (Raspberry Pi 4)")
      ->check(CLI::IsMember(known))
      ->option_text("CHIP");
}

/// What --check asks for.
struct CheckOptions {
  std::string kinds;  ///< empty: nothing is checked
  bool four_threads = false;

  std::vector<qpu::HazardReport> check(chip::Generation generation, std::span<const uint64_t> words) const {
    std::string parsed_before;
    return qpu::check_program(generation, four_threads, words, *qpu::hazards_of_kinds(kinds, &parsed_before));
  }
  /// Of kinds that were named every report counts.
  bool fails(std::span<const qpu::HazardReport> reports) const {
    return kinds == "all" ? qpu::breaks_rules(reports) : !reports.empty();
  }
};

inline void add_check_options(CLI::App* command, CheckOptions* options) {
  const auto understood = [](const std::string& kinds) {
    std::string error;
    qpu::hazards_of_kinds(kinds, &error);
    return error;
  };
  command
      ->add_flag(
          "--check{all}", options->kinds,
          "Report broken rules of scheduling (latencies, delay slots, thread ends), addresses that the chip "
          "does not have, and TMU words that are missing or left, by kinds: undefined, "
          "hardly-meant (defined, but hardly what a program wants), never-emitted (Mesa never emits it, "
          "boards run it) and assumed (unknown of the hardware; what is assumed). Fails for the first two; "
          "with =KIND,... reports those only, and fails for each")
      ->option_text("[=KIND,...]")
      ->check(CLI::Validator(understood, ""));
  command->add_flag("--four-threads", options->four_threads,
                    "Check the limits of four threads per QPU, not of two");
}

}  // namespace v3d::tools
