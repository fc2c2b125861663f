/// A vector whose elements are not set to 0 when it grows: for large ones of which every element is written
/// next, by several threads at once.
#pragma once

#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace v3d {

template <typename T>
struct RawAllocator : std::allocator<T> {
  static_assert(std::is_trivially_copyable_v<T>);
  template <typename U>
  void construct(U* at) {
    ::new (static_cast<void*>(at)) U;
  }
  template <typename U, typename... Args>
  void construct(U* at, Args&&... args) {
    ::new (static_cast<void*>(at)) U(std::forward<Args>(args)...);
  }
};

/// resize(n) leaves new elements as they are; resize(n, value) sets them.
template <typename T>
using RawVector = std::vector<T, RawAllocator<T>>;

}  // namespace v3d
