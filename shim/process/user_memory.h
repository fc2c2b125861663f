/// These functions are the kernel's copy_from_user and copy_to_user for memory of our own process: a bad
/// pointer in an ioctl argument or a path must give EFAULT, not a crash of the application.
#pragma once

#include <cstddef>
#include <cstdint>

namespace v3d::shim {

/// false: not all of it is readable (writable). What could be copied may have been copied.
bool copy_from_user(void* destination, uint64_t source, size_t size);
bool copy_to_user(uint64_t destination, const void* source, size_t size);

/// Whether a path that a program passes can be looked at: text of less than PATH_MAX bytes that can be read
/// to its end.
bool is_readable_path(const char* path);

}  // namespace v3d::shim
