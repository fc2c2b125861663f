#include "tools/cli/assembly_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "daemon/board.h"
#include "gpu/chip/profile.h"

namespace v3d::tools {

std::string why_no_board(const std::string& name) {
  return chip::find_profile(name) ? std::string() : absl::StrCat("no board \"", name, "\"");
}

void add_chip_options(CLI::App* command, chip::Generation* generation) {
  std::map<std::string, chip::Generation> known;
  for (const chip::Generation g : chip::kGenerations) known.emplace(chip::version_text(g), g);
  CLI::Option* const by_version =
      command
          ->add_option_function<std::string>(
              "--chip", [known, generation](const std::string& name) { *generation = known.at(name); },
              "7.1 (Raspberry Pi 5; default), 4.2 (Raspberry Pi 4) or 2.1 (Raspberry Pi 0 to 3)")
          ->check(CLI::IsMember(known))
          ->option_text("CHIP");
  command
      ->add_option_function<std::string>(
          "--device",
          [generation](const std::string& name) { *generation = chip::find_profile(name)->generation; },
          "The chip of a board: " + daemon::device_names())
      ->check(CLI::Validator(why_no_board, ""))
      ->option_text("NAME")
      ->excludes(by_version);
}

std::vector<qpu::BrokenRule> CheckOptions::check(chip::Generation generation,
                                                 std::span<const uint64_t> words) const {
  std::string parsed_before;
  return qpu::broken_rules(generation, four_threads, words, *qpu::parse_hazard_kinds(kinds, &parsed_before));
}

bool CheckOptions::fails(std::span<const qpu::BrokenRule> broken) const {
  return std::any_of(broken.begin(), broken.end(),
                     [this](const qpu::BrokenRule& b) { return kinds != "all" || qpu::is_wrong(b.kind); });
}

void add_check_options(CLI::App* command, CheckOptions* options) {
  const auto understood = [](const std::string& kinds) {
    std::string error;
    qpu::parse_hazard_kinds(kinds, &error);
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
  command->add_flag(
      "--four-threads", options->four_threads,
      "Check the limits of four threads per QPU, not of two (not of 2.1, which has no such programs)");
}

}  // namespace v3d::tools
