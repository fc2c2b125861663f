/// Mappings of /dev/mem in this process.
#include <sys/mman.h>

#include "shim/board/physical_memory.h"
#include "shim/board/register_window.h"
#include "shim/process/raw.h"

namespace v3d::shim {
namespace {

long map_peripherals(const PhysicalMemory& memory, void* address, int prot, int flags) {
  const long at = raw::map(
      address, static_cast<size_t>(memory.bytes), PROT_NONE,
      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)), -1, 0);
  if (raw::is_error(at) || !memory.has_v3d) return at;
  const int error = open_register_window(raw::pointer(static_cast<uint64_t>(at) + memory.v3d), prot);
  if (error == 0) return at;
  raw::call(SYS_munmap, at, static_cast<long>(memory.bytes));
  return error;
}

}  // namespace

bool map_physical_memory(int fd, void* address, size_t length, int prot, int flags, off_t offset,
                         long* result) {
  if (!is_physical_memory(fd)) return false;
  raw::KeepErrno keep;
  PhysicalMemory memory;
  if (const int error = find_physical_memory(length, offset, &memory)) {
    *result = error;
  } else if (memory.fd < 0) {
    *result = map_peripherals(memory, address, prot, flags);
  } else {
    *result = raw::map(address, length, prot, flags, memory.fd, memory.place);
    raw::close(memory.fd);
  }
  return true;
}

}  // namespace v3d::shim
