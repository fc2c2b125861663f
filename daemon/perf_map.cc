#include "daemon/perf_map.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_format.h"
#include "gpu/base/log.h"

namespace v3d::daemon {

std::unique_ptr<PerfMap> PerfMap::create() {
  const std::string path = absl::StrFormat("/tmp/perf-%d.map", getpid());
  unlink(path.c_str());  // of an earlier process with this number
  // Whoever made it meanwhile in a folder for everybody does not lead us elsewhere.
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  FILE* const file = fd < 0 ? nullptr : fdopen(fd, "w");
  if (!file) {
    log_error("%s: %s", path, std::strerror(errno));
    if (fd >= 0) close(fd);
    return nullptr;
  }
  return std::unique_ptr<PerfMap>(new PerfMap(file));
}

PerfMap::~PerfMap() { std::fclose(file_); }

void PerfMap::add(const void* code, size_t bytes, const std::string& name) {
  const std::lock_guard lock(mutex_);
  std::fprintf(file_, "%" PRIxPTR " %zx %s\n", reinterpret_cast<uintptr_t>(code), bytes, name.c_str());
  std::fflush(file_);
}

}  // namespace v3d::daemon
