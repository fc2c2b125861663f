/// v3demu desktop: weston on the emulated display, a program in it, and the screen where it can be seen.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <string>

#include "tools/cli/commands.h"
#include "tools/cli/run/program.h"
#include "tools/cli/run_options.h"
#include "tools/cli/screen/run_on_screen.h"

namespace v3d::tools {
namespace {

int run_desktop(RunOptions options, ScreenOptions screen, const std::string& mode) {
  options.name = "desktop";
  if (find_program("weston").empty()) {
    fprintf(stderr, "v3demu desktop: weston is not installed\n");
    return 127;
  }
  if (!options.arch.empty()) {
    // It would have to be passed on to what runs inside.
    fprintf(stderr, "v3demu desktop: not implemented: desktops for programs of another architecture\n");
    return 127;
  }
  screen.window = screen.png.empty() && screen.video.empty();
  std::vector<std::string> session = {std::filesystem::read_symlink("/proc/self/exe").string(),
                                      "desktop-session"};
  if (!mode.empty()) session.insert(session.end(), {"--mode", mode});
  session.push_back("--");
  options.command.insert(options.command.begin(), session.begin(), session.end());
  return run_on_screen(options, screen, true);
}

}  // namespace

void add_desktop(CLI::App* app, int* exit_code) {
  static RunOptions options;
  static ScreenOptions screen;
  static std::string mode;
  CLI::App* command =
      app->add_subcommand("desktop", "Run a program in a desktop of its own: weston, with Xwayland");
  add_run_options(command, &options);
  command->add_option("--mode", mode, "Size of the screen (default: 1920x1080)")->option_text("WIDTHxHEIGHT");
  command->add_option("--png", screen.png, "Save what the screen shows shortly before the program ends")
      ->option_text("FILE");
  command->add_option("--video", screen.video, "Save a video of the screen, by ffmpeg")->option_text("FILE");
  command->add_option("--rate", screen.rate, "Pictures per second of the video (default: 30)")
      ->option_text("N")
      ->check(CLI::Range(1, 240));
  command->callback([exit_code] {
    options.command = required_program();
    *exit_code = run_desktop(options, screen, mode);
  });
}

}  // namespace v3d::tools
