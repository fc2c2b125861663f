/// v3demu capture: a program with a daemon of its own that writes every job to a file.

#include "daemon/capture.h"

#include <fcntl.h>
#include <sys/file.h>
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
#include "tools/files.h"
#include "tools/run.h"

namespace v3d::tools {
namespace {

constexpr int kPatienceSeconds = 60;

int fail(const std::string& what) {
  fprintf(stderr, "v3demu capture: %s\n", what.c_str());
  return 1;
}

/// Makes the file empty, so that what lies there in the end is of this run, and sees that it can be written,
/// before the program takes its time. False with errno.
bool clear(const std::string& file) {
  static constexpr char kTrial[4096] = {};
  const int fd = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return false;
  errno = ENOSPC;  // a short write sets none
  const bool written = write(fd, kTrial, sizeof kTrial) == sizeof kTrial;
  const int error = errno;
  const bool emptied = ftruncate(fd, 0) == 0 || errno == EINVAL;  // EINVAL: a device
  close(fd);
  if (!written) errno = error;
  return written && emptied;
}

/// The daemon holds the lock beside its socket as long as it lives. False when it does not end.
bool wait_for_end(const std::string& lock) {
  const int fd = open(lock.c_str(), O_RDWR | O_CLOEXEC);
  bool ended = fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0;
  for (int i = 0; !ended && i < kPatienceSeconds * 100; ++i) {
    usleep(10'000);
    ended = flock(fd, LOCK_EX | LOCK_NB) == 0;
  }
  if (fd >= 0) close(fd);
  return ended;
}

/// Says how the capture ended. The exit status: 0 if it is complete.
int report(const std::string& file) {
  std::error_code error;
  const bool regular = std::filesystem::is_regular_file(file, error);
  const auto bytes = regular ? std::filesystem::file_size(file, error) : 0;
  if (regular && bytes == 0) {
    std::filesystem::remove(file, error);
    return fail("the program did not use the GPU; there is no " + file);
  }
  const auto jobs = daemon::count_captured_jobs(file);
  if (!jobs.ok()) {
    const std::string log = variable("V3DEMU_LOG");
    return fail(file + ": " + std::string(jobs.status().message()) + "; the daemon's messages: " +
                (log == "-"    ? "above"
                 : log.empty() ? shim::config().runtime_dir.c_str() + std::string("/v3demud.log")
                               : log));
  }
  fprintf(stderr, "v3demu capture: %s, %u jobs, %.1f MB\n", file.c_str(), *jobs,
          static_cast<double>(bytes) / 1e6);
  return 0;
}

/// The exit status: of the program, or 1 if that is 0 and the capture is not complete.
int capture(const RunOptions& options, const std::string& file) {
  if (shim::make_runtime_dir() != 0)
    return fail(std::string("cannot use the folder ") + shim::config().runtime_dir.c_str());
  if (!clear(file)) return fail("cannot write " + file + ": " + strerror(errno));
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
  // It may have left already.
  if (access(socket.c_str(), F_OK) == 0) ask_daemon_at(socket, "shutdown");
  const int complete =
      wait_for_end(socket + ".lock") ? report(file) : fail("the daemon does not end; " + file + " is cut");
  std::error_code missing;
  for (const char* kind : {".lock", ".start"}) std::filesystem::remove(socket + kind, missing);
  const int program = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return program ? program : complete;
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
