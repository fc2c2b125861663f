#include "daemon/run_report.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "ioctl/base/unique_fd.h"

namespace v3d::daemon {

std::string run_report_name(int32_t pid, int fd) { return absl::StrFormat("/proc/%d/fd/%d", pid, fd); }

namespace {

/// "/proc/PID/fd/FD" and nothing else.
bool is_descriptor(const std::string& name) {
  absl::string_view rest = name;
  if (!absl::ConsumePrefix(&rest, "/proc/")) return false;
  const size_t slash = rest.find('/');
  int32_t pid, fd;
  if (slash == absl::string_view::npos || !absl::SimpleAtoi(rest.substr(0, slash), &pid)) return false;
  rest.remove_prefix(slash);
  return absl::ConsumePrefix(&rest, "/fd/") && absl::SimpleAtoi(rest, &fd) &&
         name == run_report_name(pid, fd);
}

/// Whether that is memory of memfd_create() with the name that `v3demu run` gives it. Nothing is asked of a
/// file system that may not answer: of a file of FUSE, fstat() waits for its server. So the link is read,
/// then the device, of what the kernel knows; by the text alone any file system could pass, by the device no
/// other.
bool is_report_memory(const std::string& name, int path) {
  constexpr std::string_view kBegins = "/memfd:v3demu-run";
  std::array<char, kBegins.size()> link{};
  const auto is_named = [&](const std::string& of) {
    return readlink(of.c_str(), link.data(), link.size()) == static_cast<ssize_t>(link.size()) &&
           std::string_view(link.data(), link.size()) == kBegins;
  };
  if (path < 0) return is_named(name);
  static const ioctl::UniqueFd memory(memfd_create("v3demu", MFD_CLOEXEC));
  struct statx own, file;
  return is_named(run_report_name(getpid(), path)) &&
         statx(memory.get(), "", AT_EMPTY_PATH, STATX_TYPE, &own) == 0 &&
         statx(path, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &file) == 0 &&
         own.stx_dev_major == file.stx_dev_major && own.stx_dev_minor == file.stx_dev_minor;
}

/// Its size; negative: it is no such file.
int64_t size_of_report(int fd) {
  struct stat file;
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &file) != 0) return -1;
  std::array<char, kRunReportHead.size()> head{};
  if (pread(fd, head.data(), head.size(), 0) != static_cast<ssize_t>(head.size())) return -1;
  return std::string_view(head.data(), head.size()) == kRunReportHead ? file.st_size : -1;
}

void add_to_run_report(const std::string& name, std::string_view word, std::string_view text) {
  if (!is_descriptor(name) || !is_report_memory(name, -1)) return;
  // O_PATH first: opening a device or a pipe for real may do something.
  const ioctl::UniqueFd path(open(name.c_str(), O_PATH | O_CLOEXEC));
  if (!path || !is_report_memory(name, path.get())) return;
  const std::string own = run_report_name(getpid(), path.get());
  const ioctl::UniqueFd fd(open(own.c_str(), O_RDWR | O_APPEND | O_NONBLOCK | O_CLOEXEC));
  if (!fd) return;
  const int64_t size = size_of_report(fd.get());
  if (size < 0 || size >= kMostRunBytes) return;
  std::string line(word);
  if (size < kMostRunDetails) line.append(" ").append(text);
  line += '\n';
  [[maybe_unused]] const ssize_t written = write(fd.get(), line.data(), line.size());
}

}  // namespace

void add_to_run_reports(std::string_view names, std::string_view word, std::string_view text) {
  while (!names.empty()) {
    const size_t comma = std::min(names.find(','), names.size());
    add_to_run_report(std::string(names.substr(0, comma)), word, text);
    names.remove_prefix(std::min(comma + 1, names.size()));
  }
}

}  // namespace v3d::daemon
