/// ioctl and mmap on the daemon's files.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "shim/drm/marshal.h"
#include "shim/link/known_descriptors.h"

namespace v3d::shim {

/// An ioctl of type 'd' on a DRM file. 0 or a negative errno.
int drm_ioctl(const File& file, uint32_t request, uint64_t argument);

/// The same always asked of the daemon, whatever is known: for who makes calls for another process.
int forward_ioctl(const File& file, uint32_t request, uint64_t argument);

/// An ioctl of type '>' (sync_file) or 'b' (dma-buf) on any descriptor. 0 or a negative errno; ENOTTY when
/// the daemon does not know the object.
int fence_ioctl(int fd, uint32_t request, uint64_t argument);

/// An ioctl on what the daemon knows by the descriptor itself. 0 or a negative errno.
int forward_fd_ioctl(int fd, Driver driver, uint32_t request, uint64_t argument);

/// What mmap on a DRM file maps: the memory's descriptor, or a negative errno.
/// @param place  where in it
int find_mapping(const File& file, size_t length, int prot, int flags, off_t offset, off_t* place);

/// mmap on a DRM file. The address, or a negative errno.
long drm_mmap(const File& file, void* address, size_t length, int prot, int flags, off_t offset);

}  // namespace v3d::shim
