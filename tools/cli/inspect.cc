/// v3demu inspect: a frame debugger for captures, in the browser.

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "tools/cli/capture.h"
#include "tools/cli/commands.h"
#include "tools/cli/files/files.h"
#include "tools/cli/run/passed_signals.h"
#include "tools/cli/run_options.h"

namespace v3d::tools {
namespace {

struct Options {
  RunOptions run;
  std::string file;     ///< the capture; empty: of the program
  std::string against;  ///< another capture beside it
  std::string output;   ///< where that of the program is kept; empty: nowhere
  int port = 0;
  bool no_browser = false;
};

int fail(const std::string& message) {
  std::fprintf(stderr, "v3demu inspect: %s\n", message.c_str());
  return 1;
}

/// Becomes what serves the capture.
/// @return  only when it cannot be started: 1, with a message
int become_inspector(const Options& options, const std::string& path) {
  const std::string program = find_inspector(), port = absl::StrCat(options.port);
  fflush(stdout);  // what it says comes after what was said
  execl(program.c_str(), program.c_str(), path.c_str(), options.against.c_str(), port.c_str(),
        options.no_browser ? "0" : "1", nullptr);
  return fail(absl::StrCat(program, ": ", strerror(errno)));
}

/// The same in a process of its own, which ends no later than this one.
int run_inspector(const Options& options, const std::string& path) {
  const pid_t self = getpid(), child = fork();
  if (child < 0) return fail(absl::StrCat("no process: ", strerror(errno)));
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    _exit(getppid() == self ? become_inspector(options, path) : 1);
  }
  const PassedSignals passed(child);
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return fail(absl::StrCat("the inspector: ", strerror(errno)));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// What the program leaves is shown whether it ended well or not: it may be why somebody looks.
int inspect_program(const Options& options) {
  std::optional<TemporaryFolder> folder;
  std::string file = options.output;
  if (file.empty()) {
    folder.emplace("v3demu-inspect");
    if (folder->path.empty()) return fail(absl::StrCat("no temporary folder: ", strerror(errno)));
    file = folder->path / std::filesystem::path(options.run.command[0] + ".v3dcap").filename();
  }
  const CaptureEnd captured = capture_program(options.run, file);
  if (!captured.complete()) return captured.status;
  fprintf(stderr, "v3demu inspect: %s\n", captured.summary.c_str());
  const int inspected = run_inspector(options, file);
  return captured.status ? captured.status : inspected;
}

int inspect(const Options& options) {
  if (options.run.command.empty() == options.file.empty())
    throw CLI::RequiredError("either a capture or, after --, a program to run");
  if (!options.run.command.empty()) return inspect_program(options);
  if (!options.run.board.device.empty())
    throw CLI::ValidationError("--device", "the board of a capture is that on which it was taken");
  if (!options.output.empty())
    throw CLI::ValidationError("--output", "a capture that is there is not written");
  return become_inspector(options, options.file);
}

}  // namespace

void add_inspect(CLI::App* app, int* exit_code) {
  static Options options;
  CLI::App* command = app->add_subcommand("inspect",
                                          "Look into a capture, or a program's jobs, with the browser: "
                                          "pictures after draws, the history of pixels, shaders");
  options.run.name = "inspect";
  command->add_option("file", options.file, "A capture, in place of a program");
  command
      ->add_option("-o,--output", options.output,
                   "Keep the capture of the program (default: it goes with the command)")
      ->option_text("FILE");
  command
      ->add_option("--against", options.against,
                   "Another capture, to be compared with it, as of the same scene before a change")
      ->option_text("FILE");
  command->add_option("--port", options.port, "The port of the loopback device; 0: one that is free")
      ->option_text("PORT")
      ->check(CLI::Range(0, 65535));
  command->add_flag("--no-browser", options.no_browser, "Print the address alone");
  add_run_options(command, &options.run);
  command->callback([exit_code] {
    options.run.command = program_behind_options();
    *exit_code = inspect(options);
  });
}

}  // namespace v3d::tools
