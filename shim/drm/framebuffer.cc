#include "shim/drm/framebuffer.h"

#include "shim/drm/drm_ioctl.h"
#include "shim/link/connection.h"
#include "shim/process/raw.h"
#include "shim/tree/paths.h"

namespace v3d::shim {
namespace {

/// Of these ioctls the kernel's words have neither size nor direction.
struct Request {
  uint32_t word;
  uint32_t size, direction;  ///< of the argument
};
constexpr uint32_t kIn = 1u << 30, kOut = 2u << 30;
constexpr uint32_t kScreen = 160, kFixed = 80, kColors = 40;
constexpr Request kRequests[] = {{0x4600, kScreen, kOut}, {0x4601, kScreen, kIn | kOut},
                                 {0x4602, kFixed, kOut},  {0x4604, kColors, kIn},
                                 {0x4605, kColors, kIn},  {0x4606, kScreen, kIn | kOut},
                                 {0x40044620, 0, 0}};  // FBIO_WAITFORVSYNC, which reads nothing
constexpr uint32_t kBlank = 0x4611;

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
  if (request == kBlank) {
    constexpr uint32_t kLast = wire::kBlankLevels - 1;
    const uint32_t level = argument < kLast ? static_cast<uint32_t>(argument) : kLast;
    return forward_fd_ioctl(fd, Driver::kFramebuffer, wire::kFramebufferBlank + level, 0);
  }
  for (const Request& known : kRequests)
    if (known.word == request)
      return forward_fd_ioctl(fd, Driver::kFramebuffer,
                              known.direction | known.size << 16 | (request & 0xffff), argument);
  return forward_fd_ioctl(fd, Driver::kFramebuffer, request & 0xffff, 0);
}

}  // namespace v3d::shim
