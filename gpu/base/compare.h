/// A Compare is the comparison of depth, stencil and texture lookups. A value is the set of outcomes that
/// pass: bit 0 less, bit 1 equal, bit 2 greater (cle-and-tiles.md 1.6; samplers: texture.md 3.2). "Less"
/// means that the reference is.
#pragma once

#include <cstdint>

namespace v3d {

/// X(name, value, text)
#define V3D_COMPARE_FUNCTIONS(X) \
  X(kNever, 0, "never")          \
  X(kLess, 1, "less")            \
  X(kEqual, 2, "equal")          \
  X(kLequal, 3, "lequal")        \
  X(kGreater, 4, "greater")      \
  X(kNotEqual, 5, "notequal")    \
  X(kGequal, 6, "gequal")        \
  X(kAlways, 7, "always")

enum class Compare : uint8_t {
#define V3D_ROW(name, value, text) name = (value),
  V3D_COMPARE_FUNCTIONS(V3D_ROW)
#undef V3D_ROW
};

/// ~0 when the outcome passes, else 0. @param outcome  0 less, 1 equal, 2 greater
constexpr int32_t passes_when(Compare function, int outcome) {
  return -((static_cast<int32_t>(function) >> outcome) & 1);
}

/// What is not ordered (NaN) passes where unequal numbers would in either direction.
constexpr int32_t passes_unordered(Compare function) {
  return passes_when(function, 0) & passes_when(function, 2);
}

}  // namespace v3d
