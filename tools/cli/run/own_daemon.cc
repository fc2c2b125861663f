#include "tools/cli/run/own_daemon.h"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ioctl/base/unique_fd.h"
#include "ioctl/link/wire.h"
#include "shim/process/config.h"
#include "tools/cli/run/control.h"
#include "tools/cli/run/passed_signals.h"

namespace v3d::tools {
namespace {

/// As waitpid() has it. A signal ends poll() at once, where ThreadSanitizer keeps it until waitpid() returns.
int wait_for_end(pid_t child) {
  const ioctl::UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
  pollfd ended{process.get(), POLLIN, 0};
  while (process.get() >= 0 && poll(&ended, 1, -1) < 0 && errno == EINTR) {
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

std::string own_socket(const std::string& name, const std::string& kind) {
  const char* const folder = shim::config().runtime_dir.c_str();
  if (shim::make_runtime_dir() == 0) return absl::StrCat(folder, "/", kind, getpid());
  fprintf(stderr, "v3demu %s: cannot use the folder %s\n", name.c_str(), folder);
  return "";
}

OwnDaemonEnd run_with_own_daemon(const RunOptions& options, const std::string& socket,
                                 const std::function<void()>& in_program,
                                 const std::function<void()>& beside) {
  setenv(wire::kSocketVariable, socket.c_str(), 1);
  const pid_t child = fork();
  if (child == 0) {
    if (in_program) in_program();
    _exit(run_program(options));
  }
  const PassedSignals passed(child);  // Ctrl-C ends the program; what is written is finished then
  if (beside) beside();
  const int status = wait_for_end(child);
  OwnDaemonEnd end;
  end.program = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  const absl::Status left = end_daemon(socket);
  // One that left by itself still writes for a moment after its socket is gone.
  end.ended = left.ok() || (absl::IsNotFound(left) && wait_for_daemon_end(socket));
  if (!end.ended)
    fprintf(stderr, "v3demu %s: %s\n", options.name.c_str(),
            absl::IsNotFound(left) ? "the daemon does not end" : std::string(left.message()).c_str());
  std::error_code missing;
  for (const char* kind : {".lock", ".start"}) std::filesystem::remove(socket + kind, missing);
  return end;
}

}  // namespace v3d::tools
