/// UserMemory is the memory of the caller of an ioctl, which is in another process.
#pragma once

#include <cstdint>

namespace v3d::ioctl {

/// Every access may fail, which is EFAULT.
class UserMemory {
 public:
  virtual ~UserMemory() = default;
  virtual bool read(uint64_t address, void* to, uint64_t bytes) = 0;
  virtual bool write(uint64_t address, const void* from, uint64_t bytes) = 0;

  template <typename T>
  bool get(uint64_t address, T* value) {
    return read(address, value, sizeof(T));
  }
  /// Element i of an array.
  template <typename T>
  bool get(uint64_t array, uint64_t i, T* value) {
    return read(array + i * sizeof(T), value, sizeof(T));
  }
  template <typename T>
  bool put(uint64_t address, const T& value) {
    return write(address, &value, sizeof(T));
  }
};

}  // namespace v3d::ioctl
