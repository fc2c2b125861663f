/// These functions answer syscall() when a program makes, by number, a call that the shim serves.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace v3d::shim {

/// All return what the kernel would: a value or -errno.
long ioctl_by_number(int fd, unsigned long request, void* argument);
long mmap_by_number(void* address, size_t length, int prot, int flags, int fd, off_t offset);
long munmap_by_number(void* address, size_t length);
long mprotect_by_number(void* address, size_t length, int prot);
long mremap_by_number(void* address, size_t length, size_t new_length, int flags, void* new_address);

}  // namespace v3d::shim
