/// Sixteen lanes as doubles, in two halves.
#pragma once

#include <cstddef>

#include "gpu/base/lanes.h"

namespace v3d {

/// Lanes 0..7, or 8..15.
typedef double HalfD __attribute__((vector_size(64)));

/// @tparam kPart  0 or 1
/// @param v  LanesI or LanesF
template <size_t kPart, typename V>
HalfD widen(V v) {
  constexpr int kAt = kPart * kLanes / 2;
  const auto part =
      __builtin_shufflevector(v, v, kAt, kAt + 1, kAt + 2, kAt + 3, kAt + 4, kAt + 5, kAt + 6, kAt + 7);
  return __builtin_convertvector(part, HalfD);
}

}  // namespace v3d
