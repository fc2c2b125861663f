/// Memory is what the blocks see of GPU memory: a GPU address plus a base is a host address.
///
/// Accesses are plain host accesses inside a reserved window with guard space on both sides. One to an
/// unmapped page behaves as on hardware (drm-abi.md 3.6): it goes to the scratch page (reads 0 unless
/// something was written there), is counted as an MMU fault of the space, and the job continues. Nothing here
/// checks addresses.
#pragma once

#include <cstdint>
#include <cstring>

namespace v3d {

/// 32-bit GPU virtual address.
using GpuAddr = uint32_t;

class Memory {
 public:
  Memory() = default;
  explicit Memory(uint8_t* base) : base_(base) {}

  uint8_t* host(GpuAddr address) const { return base_ + address; }

  /// Any alignment.
  template <typename T>
  T load(GpuAddr address) const {
    T value;
    std::memcpy(&value, base_ + address, sizeof(T));
    return value;
  }
  template <typename T>
  void store(GpuAddr address, T value) const {
    std::memcpy(base_ + address, &value, sizeof(T));
  }
  /// Of no bytes, `to` and `from` may be null.
  void read(GpuAddr address, void* to, size_t bytes) const {
    if (bytes != 0) std::memcpy(to, base_ + address, bytes);
  }
  void write(GpuAddr address, const void* from, size_t bytes) const {
    if (bytes != 0) std::memcpy(base_ + address, from, bytes);
  }

 private:
  uint8_t* base_ = nullptr;
};

}  // namespace v3d
