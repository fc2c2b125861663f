/// These functions answer ioctls on the daemon's files, here or by the daemon.
#pragma once

#include <cstdint>

#include "shim/drm/driver.h"
#include "shim/link/known_descriptors.h"

namespace v3d::shim {

/// An ioctl of type 'd' on a DRM file. 0 or a negative errno.
int drm_ioctl(const File& file, uint32_t request, uint64_t argument);

/// The same always asked of the daemon, whatever is known: for whoever makes calls for another process.
int forward_ioctl(const File& file, uint32_t request, uint64_t argument);

/// An ioctl of type '>' (sync_file) or 'b' (dma-buf) on any descriptor. 0 or a negative errno; ENOTTY when
/// the daemon does not know the object.
int fence_ioctl(int fd, uint32_t request, uint64_t argument);

/// An ioctl on what the daemon knows by the descriptor itself. 0 or a negative errno.
int forward_fd_ioctl(int fd, Driver driver, uint32_t request, uint64_t argument);

}  // namespace v3d::shim
