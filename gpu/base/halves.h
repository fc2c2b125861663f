/// Halves are the lower and the upper eight lanes, as vectors. Hosts with wider vectors would wait, put
/// together in memory, for what was stored there in two parts; others keep them as two anyway.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "gpu/base/lanes.h"

namespace v3d {

typedef uint32_t HalfLanes __attribute__((vector_size(32)));

inline Lanes join(const HalfLanes& low, const HalfLanes& high) {
#ifdef __AVX512F__
  return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#else
  Lanes v;
  std::memcpy(&v, &low, sizeof(low));
  std::memcpy(reinterpret_cast<char*>(&v) + sizeof(low), &high, sizeof(high));
  return v;
#endif
}

/// @tparam kUpper  0 or 1
template <size_t kUpper>
inline HalfLanes half(const Lanes& v) {
#ifdef __AVX512F__
  constexpr int kAt = 8 * kUpper;
  return __builtin_shufflevector(v, v, kAt, kAt + 1, kAt + 2, kAt + 3, kAt + 4, kAt + 5, kAt + 6, kAt + 7);
#else
  HalfLanes part;
  std::memcpy(&part, reinterpret_cast<const char*>(&v) + kUpper * sizeof(part), sizeof(part));
  return part;
#endif
}

inline Lanes load_halves(const void* low, const void* high) {
  HalfLanes a, b;
  std::memcpy(&a, low, sizeof(a));
  std::memcpy(&b, high, sizeof(b));
  return join(a, b);
}
inline void store_halves(const Lanes& v, void* low, void* high) {
  const HalfLanes a = half<0>(v), b = half<1>(v);
  std::memcpy(low, &a, sizeof(a));
  std::memcpy(high, &b, sizeof(b));
}

}  // namespace v3d
