/// munmap, mprotect and mremap: what a program does with mappings of BOs that stay for a while
/// (shim/drm/parked_mappings.h). Not through libc, as mmap is not.

#include <sys/mman.h>

#include <cstdarg>

#include "shim/drm/parked_mappings.h"
#include "shim/interpose/interpose.h"
#include "shim/interpose/syscall.h"
#include "shim/process/raw.h"

/// Of the library of ThreadSanitizer; null where a program is without.
extern "C" [[gnu::weak]] void tsan_init() __asm__("__tsan_init");

namespace v3d::shim {

long munmap_by_number(void* address, size_t length) {
  if (park_mapping(raw::address_of(address), length)) return 0;
  forget_mappings(raw::address_of(address), length);
  return raw::call(SYS_munmap, raw::word(address), static_cast<long>(length));
}

long mprotect_by_number(void* address, size_t length, int prot) {
  forget_mappings(raw::address_of(address), length);
  return raw::call(SYS_mprotect, raw::word(address), static_cast<long>(length), prot);
}

long mremap_by_number(void* address, size_t length, size_t new_length, int flags, void* new_address) {
  forget_mappings(raw::address_of(address), length);
  if (flags & MREMAP_FIXED) forget_mappings(raw::address_of(new_address), new_length);
  return raw::call(SYS_mremap, raw::word(address), static_cast<long>(length), static_cast<long>(new_length),
                   flags, raw::word(new_address));
}

V3D_INTERPOSE(int, unmapped, "munmap", (void* address, size_t length)) {
  // ThreadSanitizer has to see that memory changes its owner, so nothing stays.
  if (tsan_init) {
    forget_mappings(raw::address_of(address), length);
    return V3D_NEXT(int(void*, size_t), "munmap")(address, length);
  }
  return static_cast<int>(raw::long_result(munmap_by_number(address, length)));
}

V3D_INTERPOSE(int, protected_anew, "mprotect", (void* address, size_t length, int prot)) {
  return static_cast<int>(raw::long_result(mprotect_by_number(address, length, prot)));
}

V3D_INTERPOSE(void*, mapped_elsewhere, "mremap",
              (void* address, size_t length, size_t new_length, int flags, ...)) {
  va_list arguments;
  va_start(arguments, flags);
  void* new_address = va_arg(arguments, void*);
  va_end(arguments);
  return raw::pointer(static_cast<uint64_t>(
      raw::long_result(mremap_by_number(address, length, new_length, flags, new_address))));
}

}  // namespace v3d::shim
