/// Arguments of ioctls that hold a long, a size or a pointer have another layout in 32-bit programs (Linux
/// compat_ioctl: drivers/gpu/drm/drm_ioc32.c, drivers/video/fbdev/core/fb_chrdev.c). The daemon knows the
/// 64-bit layout alone.
#pragma once

#include <cstdint>

#include "shim/link/known_descriptors.h"

namespace v3d::shim {

/// True when the request is such a program's; *result is then 0 or a negative errno.
bool compat_drm_ioctl(const File& file, uint32_t request, uint64_t argument, int* result);

/// @param known  one of ioctl::fb::request
bool compat_framebuffer_ioctl(int fd, uint32_t known, uint64_t argument, int* result);

}  // namespace v3d::shim
