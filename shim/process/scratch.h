/// A Scratch is room for what is too large for the stacks of foreign threads, which may be of 16 KiB.
#pragma once

#include "shim/process/raw.h"

namespace v3d::shim {

/// A T in memory of its own, all zeros at first.
/// @tparam T  whose initial value that is
template <typename T>
class Scratch {
 public:
  Scratch() : memory_(static_cast<T*>(raw::map_memory(sizeof(T)))) {}
  ~Scratch() {
    if (memory_) raw::unmap_memory(memory_, sizeof(T));
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  /// nullptr when there is no memory.
  T* get() { return memory_; }

 private:
  T* const memory_;
};

}  // namespace v3d::shim
