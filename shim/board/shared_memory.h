/// /dev/vcsm-cma of Raspberry Pi's kernel: memory that Linux, the firmware and QPUs share, as dma-bufs with a
/// bus address (board-environment.md 6.2).
#pragma once

#include <cstdint>

namespace v3d::shim {

/// 0 or a negative errno. @param argument  address in the caller's memory
int shared_memory_ioctl(uint32_t request, uint64_t argument);

}  // namespace v3d::shim
