/// ioctl and mmap on the daemon's files.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "shim/files.h"

namespace v3d::shim {

/// An ioctl of type 'd' on a DRM file. 0 or a negative errno.
int drm_ioctl(const File& file, uint32_t request, uint64_t argument);

/// An ioctl of type '>' (sync_file) or 'b' (dma-buf) on any descriptor. 0 or a negative errno; ENOTTY when
/// the daemon does not know the object.
int fence_ioctl(int fd, uint32_t request, uint64_t argument);

/// mmap on a DRM file. The address, or a negative errno.
long drm_mmap(const File& file, void* address, size_t length, int prot, int flags, off_t offset);

}  // namespace v3d::shim
