/// A RawVector does not set its elements to 0 when it grows: it is for large ones of which every element is
/// written next, by several threads at once. Its first element begins a cache line, so that of Lanes each
/// does (AlignedLanes in gpu/base/lanes.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace v3d {

template <typename T>
struct RawAllocator : std::allocator<T> {
  static_assert(std::is_trivially_copyable_v<T>);
  static constexpr auto kAlignment = std::align_val_t{std::max<size_t>(alignof(T), 64)};

  T* allocate(size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kAlignment)); }
  void deallocate(T* at, size_t) { ::operator delete(at, kAlignment); }
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
