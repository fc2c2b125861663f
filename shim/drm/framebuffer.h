/// Descriptors of /dev/fb0 are memory of the daemon's, known by its name.
#pragma once

#include <sys/stat.h>

#include <cstdint>

namespace v3d::shim {

/// A new descriptor of /dev/fb0, or a negative errno. `flags` of open(2).
int open_framebuffer(int flags);

/// Whether a descriptor is one. @param st  what a raw fstat told of it
bool is_framebuffer(int fd, const struct stat& st);

/// An ioctl of type 'F' on any descriptor. 0 or a negative errno; ENOTTY when it is no framebuffer of the
/// daemon's.
int framebuffer_ioctl(int fd, uint32_t request, uint64_t argument);

}  // namespace v3d::shim
