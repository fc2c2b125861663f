/// v3demu capture: a program with a daemon of its own that writes every job to a file.

#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "ioctl/wire.h"
#include "shim/config.h"
#include "tools/commands.h"
#include "tools/control.h"
#include "tools/run.h"

namespace v3d::tools {
namespace {

int capture(const RunOptions& options, const std::string& file) {
  if (shim::make_runtime_dir() != 0) {
    fprintf(stderr, "v3demu capture: cannot use the folder %s\n", shim::config().runtime_dir.c_str());
    return 1;
  }
  // The daemon that answers here is started by the program's first access to the GPU.
  const std::string socket =
      std::string(shim::config().runtime_dir.c_str()) + "/capture-" + std::to_string(getpid());
  setenv(wire::kSocketVariable, socket.c_str(), 1);
  setenv("V3DEMU_CAPTURE", std::filesystem::absolute(file).c_str(), 1);
  const pid_t child = fork();
  if (child == 0) _exit(run_program(options));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  // It writes as it goes; nothing is lost should it have left already.
  if (access(socket.c_str(), F_OK) == 0) ask_daemon_at(socket, "shutdown");
  std::error_code missing;
  const auto bytes = std::filesystem::file_size(file, missing);
  if (missing) {
    fprintf(stderr, "v3demu capture: the program did not use the GPU; there is no %s\n", file.c_str());
  } else {
    fprintf(stderr, "v3demu capture: %s, %.1f MB\n", file.c_str(), static_cast<double>(bytes) / 1e6);
  }
  std::filesystem::remove(socket + ".lock", missing);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

void add_capture(CLI::App* app, int* exit_code) {
  static RunOptions options;
  static std::string file = "v3demu.v3dcap";
  CLI::App* command = app->add_subcommand("capture", "Run a program and write every job to a file");
  command->add_option("-o,--output", file, "The capture")->capture_default_str();
  add_run_options(command, &options);
  command->callback([command, exit_code] {
    options.command = command->remaining();
    if (options.command.empty()) throw CLI::RequiredError("a program to run");
    *exit_code = capture(options, file);
  });
}

}  // namespace v3d::tools
