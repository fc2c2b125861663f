/// These functions make dma-bufs without a GPU: those of /dev/dma_heap and of /dev/udmabuf. As those of the
/// daemon they are memory files of which nobody can change the size: PRIME_FD_TO_HANDLE takes them by that.
#pragma once

#include <cstdint>

namespace v3d::shim {

/// 0 or a negative errno. @param argument  address in the caller's memory
int heap_ioctl(uint32_t request, uint64_t argument);

/// A descriptor or a negative errno.
int udmabuf_ioctl(uint32_t request, uint64_t argument);

}  // namespace v3d::shim
