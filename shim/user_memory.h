/// The kernel's copy_from_user and copy_to_user for memory of our own process: a bad pointer in an ioctl
/// argument must give EFAULT, not a crash of the application.
#pragma once

#include <cstddef>
#include <cstdint>

namespace v3d::shim {

/// false: not all of it is readable (writable). What could be copied may have been copied.
bool copy_from_user(void* destination, uint64_t source, size_t size);
bool copy_to_user(uint64_t destination, const void* source, size_t size);

}  // namespace v3d::shim
