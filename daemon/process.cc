#include "daemon/process.h"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "ioctl/core/kernel.h"

namespace v3d::daemon {
namespace {

/// Field 22 of /proc/PID/stat: the clock tick in which the process started. 0 when it is gone.
uint64_t start_time(int32_t pid) {
  std::ifstream file(absl::StrFormat("/proc/%d/stat", pid));
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  // The second field, the program's name, may hold anything, also parentheses.
  const size_t end = text.rfind(") ");
  if (end == std::string::npos) return 0;
  const std::vector<std::string> fields = absl::StrSplit(text.substr(end + 2), ' ');
  constexpr size_t kStartTime = 22 - 3;
  uint64_t ticks = 0;
  return fields.size() > kStartTime && absl::SimpleAtoi(fields[kStartTime], &ticks) ? ticks : 0;
}

}  // namespace

std::optional<ucred> credentials(int socket) {
  ucred peer = {};
  socklen_t size = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || size != sizeof peer)
    return std::nullopt;
  return peer;
}

ioctl::UniqueFd open_process(int socket, int32_t pid) {
  constexpr int kPeerPidfd = 77;  // SO_PEERPIDFD, which Debian 12's headers lack
  int process = -1;
  socklen_t size = sizeof process;
  if (getsockopt(socket, SOL_SOCKET, kPeerPidfd, &process, &size) == 0) return ioctl::UniqueFd(process);
  return ioctl::UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

bool was_killed(const ioctl::UniqueFd& process) {
  struct Info {  // pidfd_info, which Debian 12's headers lack
    uint64_t mask, cgroup;
    uint32_t ids[11];
    int32_t exit_code;
  };
  constexpr unsigned long kGetInfo = _IOWR(0xff, 11, Info);
  constexpr uint64_t kExit = 1 << 3;
  Info info = {.mask = kExit, .cgroup = 0, .ids = {}, .exit_code = 0};
  return process && ::ioctl(process.get(), kGetInfo, &info) == 0 && (info.mask & kExit) &&
         WIFSIGNALED(info.exit_code) && WTERMSIG(info.exit_code) == SIGKILL;
}

ioctl::ProcessId identify(int socket, int32_t pid, const ioctl::UniqueFd& process) {
  constexpr long kPidfsMagic = 0x50494446;  // since Linux 6.9 each process has an inode of its own there
  struct statfs system;
  struct stat info;
  if (process && fstatfs(process.get(), &system) == 0 && system.f_type == kPidfsMagic &&
      fstat(process.get(), &info) == 0)
    return {pid, info.st_ino};
  constexpr int32_t kOfAConnection = -1;  // no process has that number
  return pid > 0 ? ioctl::ProcessId{pid, start_time(pid)}
                 : ioctl::ProcessId{kOfAConnection, ioctl::socket_cookie(socket)};
}

}  // namespace v3d::daemon
