/// /dev/mem on boards with VideoCore IV, as far as programs for its QPUs need it: memory that the firmware
/// gave to this process, and the registers of the V3D (board-environment.md 6.2).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace v3d::shim {

/// mmap of /dev/mem. True when `fd` is a descriptor of it; *result is then the address, or a negative errno.
bool map_physical_memory(int fd, void* address, size_t length, int prot, int flags, off_t offset,
                         long* result);

}  // namespace v3d::shim
