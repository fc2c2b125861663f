/// ioctl and mmap.

#include <cstdarg>

#include "ioctl/abi/request.h"
#include "shim/board/board_devices.h"
#include "shim/board/physical_memory.h"
#include "shim/drm/drm_ioctl.h"
#include "shim/drm/files.h"
#include "shim/drm/framebuffer.h"
#include "shim/drm/mapping.h"
#include "shim/drm/parked_mappings.h"
#include "shim/interpose/interpose.h"
#include "shim/interpose/syscall.h"
#include "shim/process/raw.h"

namespace v3d::shim {
namespace {

/// Fake offsets start here (drm-abi.md 4.5), and few other files are mapped so far from their start.
constexpr off_t kFirstFakeOffset = off_t{1} << 32;

/// True when the ioctl is ours; *result is then 0 or a negative errno.
bool handle_ioctl(int fd, unsigned long request, uint64_t argument, int* result) {
  // Callers that keep the request in an int sign-extend it.
  const auto word = static_cast<uint32_t>(request);
  switch (ioctl::drm::request_type(word)) {
    case 'd': {
      File file;
      *result = identify_file(fd, &file);
      if (*result == -ENOTTY) return board_ioctl(fd, word, argument, result);  // vcio's type
      if (*result == 0) *result = drm_ioctl(file, word, argument);
      return true;
    }
    case '>':
    case 'b':
      *result = fence_ioctl(fd, word, argument);
      return *result != -ENOTTY;
    case 'F':
      *result = framebuffer_ioctl(fd, word, argument);
      return *result != -ENOTTY;
    case 'H':
    case 'u':
    case 'J':
      return board_ioctl(fd, word, argument, result);
    default:
      return false;
  }
}

long map(void* address, size_t length, int prot, int flags, int fd, off_t offset) {
  if (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) forget_mappings(raw::address_of(address), length);
  const bool of_file = fd >= 0 && !(flags & MAP_ANONYMOUS);
  File file;
  if (of_file && offset >= kFirstFakeOffset) {
    const int error = identify_file(fd, &file);
    if (error == 0) return drm_mmap(file, address, length, prot, flags, offset);
    if (error != -ENOTTY) return error;
  }
  long result;
  if (of_file && map_physical_memory(fd, address, length, prot, flags, offset, &result)) return result;
  result = raw::map(address, length, prot, flags, fd, offset);
  // A socket cannot be mapped; a DRM file can, but not at an offset that names nothing.
  if (result == -ENODEV && of_file && find_file(fd, &file)) return -EINVAL;
  return result;
}

}  // namespace

#define V3D_IOCTL(name, symbol)                                                                    \
  V3D_INTERPOSE(int, name, symbol, (int fd, unsigned long request, ...)) {                         \
    va_list arguments;                                                                             \
    va_start(arguments, request);                                                                  \
    void* argument = va_arg(arguments, void*);                                                     \
    va_end(arguments);                                                                             \
    int result;                                                                                    \
    if (handle_ioctl(fd, request, raw::address_of(argument), &result)) return raw::result(result); \
    using Ioctl = int(int, unsigned long, ...);                                                    \
    return V3D_NEXT(Ioctl, symbol)(fd, request, argument);                                         \
  }                                                                                                \
  static_assert(sizeof(unsigned long) == sizeof(void*))

V3D_IOCTL(ioctl_done, "ioctl");

// Not through libc: malloc replacements map memory before anything can be looked up.
V3D_INTERPOSE(void*, mapped_64, "mmap64",
              (void* address, size_t length, int prot, int flags, int fd, off_t offset)) {
  return raw::pointer(static_cast<uint64_t>(raw::long_result(map(address, length, prot, flags, fd, offset))));
}

#if defined(__arm__)
V3D_IOCTL(ioctl_done_long_time, "__ioctl_time64");
V3D_INTERPOSE(void*, mapped, "mmap",
              (void* address, size_t length, int prot, int flags, int fd, uint32_t offset)) {
  return raw::pointer(static_cast<uint64_t>(raw::long_result(map(address, length, prot, flags, fd, offset))));
}
#else
V3D_ALIAS(void*, mapped, "mmap", "mmap64", (void*, size_t, int, int, int, off_t));
#endif

long ioctl_by_number(int fd, unsigned long request, void* argument) {
  int result;
  if (handle_ioctl(fd, request, raw::address_of(argument), &result)) return result;
  return raw::call(SYS_ioctl, fd, static_cast<long>(request), raw::word(argument));
}

long mmap_by_number(void* address, size_t length, int prot, int flags, int fd, off_t offset) {
  return map(address, length, prot, flags, fd, offset);
}

}  // namespace v3d::shim
