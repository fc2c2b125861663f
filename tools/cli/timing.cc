/// v3demu timing: the constants of the timing model for a board, and where each comes from.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "daemon/board.h"
#include "gpu/chip/profile.h"
#include "gpu/perf/timing/parameters.h"
#include "tools/cli/commands.h"
#include "tools/cli/run_options.h"

namespace v3d::tools {
namespace {

void print_constants(const chip::Profile& profile) {
  std::printf("%s: %d slices of %d QPUs at %d MHz\n", profile.name, profile.slices, profile.qpus_per_slice,
              profile.clock_mhz);
  const timing::Parameters parameters = timing::parameters_of(profile);
  for (const timing::ParameterRow& row : timing::parameter_rows(profile))
    std::printf("%-16s %7llu %-8s %-9s %s\n", row.name,
                static_cast<unsigned long long>(parameters.*row.member), row.unit,
                timing::origin_name(row.origin), row.source);
}

}  // namespace

void add_timing(CLI::App* app, int*) {
  static std::string device;
  CLI::App* command = app->add_subcommand(
      "timing", "List the constants by which times on a board are predicted, with their sources");
  add_device_option(command, &device);
  command->callback([] { print_constants(*daemon::find_board({.device = device})->profile); });
}

}  // namespace v3d::tools
