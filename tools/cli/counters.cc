/// v3demu counters: the performance counters of a board, and who counts each.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "daemon/board.h"
#include "gpu/chip/profile.h"
#include "gpu/perf/counter_table.h"
#include "tools/cli/commands.h"
#include "tools/cli/run_options.h"

namespace v3d::tools {
namespace {

void print_counters(const chip::Profile& profile) {
  int number = 0;
  for (const perf::CounterInfo& c : perf::counter_table(profile.generation))
    std::printf("%3d  %-52s %-4s  %s\n", number++, c.name, c.category, perf::class_name(c.counts));
  std::printf("\n");
  for (const perf::ClassInfo& c : perf::counter_classes()) std::printf("%-12s %s\n", c.name, c.meaning);
}

}  // namespace

void add_counters(CLI::App* app, int*) {
  static std::string device;
  CLI::App* command =
      app->add_subcommand("counters", "List a board's performance counters, and which are counted");
  add_device_option(command, &device);
  command->callback([] { print_counters(*daemon::find_board({.device = device})->profile); });
}

}  // namespace v3d::tools
