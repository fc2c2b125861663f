/// /dev/mem on boards with VideoCore IV, as far as programs for its QPUs need it: memory that the firmware
/// gave to this process, and the registers of the V3D (board-environment.md 6.2).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace v3d::shim {

/// What a mapping of /dev/mem shows.
struct PhysicalMemory {
  int fd = -1;         ///< of memory that the firmware gave, to be closed; -1: peripherals
  off_t place = 0;     ///< where it begins in that memory
  uint64_t bytes = 0;  ///< whole pages
  bool has_v3d = false;
  uint64_t v3d = 0;  ///< of peripherals: where the V3D's registers lie in the mapping
};

bool is_physical_memory(int fd);
/// 0 or a negative errno.
int find_physical_memory(size_t length, off_t offset, PhysicalMemory* out);

/// mmap of /dev/mem. True when `fd` is a descriptor of it; *result is then the address, or a negative errno.
bool map_physical_memory(int fd, void* address, size_t length, int prot, int flags, off_t offset,
                         long* result);

}  // namespace v3d::shim
