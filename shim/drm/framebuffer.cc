#include "shim/drm/framebuffer.h"

#include <cerrno>

#include "ioctl/abi/framebuffer.h"
#include "ioctl/link/wire.h"
#include "shim/drm/compat.h"
#include "shim/drm/driver.h"
#include "shim/drm/drm_ioctl.h"
#include "shim/link/connection.h"
#include "shim/process/raw.h"
#include "shim/tree/paths.h"

namespace v3d::shim {
namespace {

namespace fb = ioctl::fb;

}  // namespace

int open_framebuffer(int flags) {
  raw::KeepErrno keep;
  Call call(wire::kOpen, kStartDaemon | (flags & O_CLOEXEC ? unsigned{kCloseOnExec} : 0u));
  const wire::OpenRequest request{wire::kFramebufferMinor, flags};
  int error = call.open();
  if (!error && !call.append(&request, sizeof(request))) error = ENOMEM;
  if (!error) error = call.send();
  if (!error) error = call.error();
  if (error) return -error;
  const int fd = call.take(0);
  return fd < 0 ? -EMFILE : fd;
}

bool is_framebuffer(int fd, const struct stat& st) {
  if (!S_ISREG(st.st_mode) || st.st_nlink != 0) return false;
  Path path;
  descriptor_path(fd, &path);
  constexpr char kMemory[] = "/memfd:";
  const char* name = path.c_str() + sizeof(kMemory) - 1;
  return starts_with(path.c_str(), kMemory) && starts_with(name, wire::kFramebufferName) &&
         name[sizeof(wire::kFramebufferName) - 1] == ' ';
}

int framebuffer_ioctl(int fd, uint32_t request, uint64_t argument) {
  struct stat st;
  if (const int error = raw::fstat(fd, &st); error < 0) return error;
  if (!is_framebuffer(fd, st)) return -ENOTTY;
  if (request == FBIOBLANK) {
    constexpr uint32_t kLast = wire::kBlankLevels - 1;
    const uint32_t level = argument < kLast ? static_cast<uint32_t>(argument) : kLast;
    return forward_fd_ioctl(fd, Driver::kFramebuffer, wire::kFramebufferBlank + level, 0);
  }
  for (const uint32_t known : fb::request::kWithArgument) {
    if (fb::kernel_word(known) != request) continue;
    int result;
    if (compat_framebuffer_ioctl(fd, known, argument, &result)) return result;
    return forward_fd_ioctl(fd, Driver::kFramebuffer, known, argument);
  }
  return forward_fd_ioctl(fd, Driver::kFramebuffer, fb::kernel_word(request), 0);
}

}  // namespace v3d::shim
