/// v3demu run: a program with the emulated GPU and the drivers for it.

#include <CLI/CLI.hpp>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "daemon/timing_mode.h"
#include "tools/cli/commands.h"
#include "tools/cli/run/run_program.h"
#include "tools/cli/run/run_report.h"
#include "tools/cli/run_options.h"
#include "tools/cli/screen/run_on_screen.h"
#include "tools/cli/screen/watch.h"

namespace v3d::tools {
namespace {

int run(const RunOptions& options, const ScreenOptions& screen) {
  if (screen.any()) return run_on_screen(options, screen);
  if (options.fail_on_gpu_error) return run_for_status(options);
  sum_up_behind(options);
  return run_program(options);
}

}  // namespace

void add_run(CLI::App* app, int* exit_code) {
  static RunOptions options;
  CLI::App* command = app->add_subcommand(kRun, "Run a program with the emulated GPU");
  add_run_options(command, &options);
  const auto timing = [](daemon::TimingMode mode) {
    return [mode](int64_t) { options.timing = timing_mode_name(mode); };
  };
  CLI::Option* count =
      command->add_flag_function("--timing", timing(daemon::TimingMode::kCount),
                                 "Predict what jobs take on the board, for its performance counters; slower");
  command
      ->add_flag_function("--pace", timing(daemon::TimingMode::kPace),
                          "The same, and jobs end no earlier than on the board")
      ->excludes(count);
  static ScreenOptions screen;
  command->add_flag("--screen", screen.window, "Show in a window what is on the display meanwhile");
  command->add_option("--screen-png", screen.png, "Save the last picture that the program put on the display")
      ->option_text("FILE");
  command->add_option("--screen-video", screen.video, "Save a video of the display, by ffmpeg")
      ->option_text("FILE");
  command->add_flag("--fail-on-gpu-error", options.fail_on_gpu_error,
                    absl::StrCat("Exit with ", kGpuErrorStatus,
                                 " when the program ends well, but had GPU errors: hangs, MMU faults, "
                                 "refused jobs"));
  command->add_flag("--strict", options.strict,
                    "The same, also for rules that QPU programs break, in every thread; what the "
                    "chip leaves undefined is poison; slower");
  command->callback([exit_code] {
    options.command = required_program();
    options.fail_on_gpu_error = options.fail_on_gpu_error || options.strict;
    *exit_code = run(options, screen);
  });
}

}  // namespace v3d::tools
