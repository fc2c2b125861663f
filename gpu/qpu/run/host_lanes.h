/// These are what the expressions of alu_lanes.h are made of, on the host's vectors: with them the
/// interpreter computes. The compiler's, of the same names, are in gpu/qpu/graph/value.h.
#pragma once

#include <bit>
#include <cstdint>

#include "gpu/base/arithmetic.h"
#include "gpu/base/float16.h"
#include "gpu/base/lanes.h"
#include "gpu/base/vector.h"

namespace v3d::qpu {

// ---- Comparisons give all ones where they hold, and 0 elsewhere

inline Lanes equal_words(const Lanes& a, const Lanes& b) { return as_uint(equal(a, b)); }
/// a > b, signed.
inline Lanes above(const Lanes& a, const Lanes& b) { return as_uint(less(as_int(b), as_int(a))); }
/// a > b, unsigned.
inline Lanes above_unsigned(const Lanes& a, const Lanes& b) { return as_uint(less(b, a)); }
/// Of floats; none holds where an operand is a NaN.
inline Lanes equal_floats(const Lanes& a, const Lanes& b) { return as_uint(equal(as_float(a), as_float(b))); }
inline Lanes below_floats(const Lanes& a, const Lanes& b) { return as_uint(less(as_float(a), as_float(b))); }
inline Lanes at_most_floats(const Lanes& a, const Lanes& b) {
  return as_uint(at_most(as_float(a), as_float(b)));
}
inline Lanes choose(const Lanes& mask, const Lanes& a, const Lanes& b) { return select(as_int(mask), a, b); }

// ---- Integers

inline Lanes least(const Lanes& a, const Lanes& b) { return as_uint(min(as_int(a), as_int(b))); }
inline Lanes greatest(const Lanes& a, const Lanes& b) { return as_uint(max(as_int(a), as_int(b))); }
/// @param n  0..31
inline Lanes shifted_right_signed(const Lanes& v, const Lanes& n) { return as_uint(as_int(v) >> as_int(n)); }
inline Lanes leading_zeros(const Lanes& v) {
#ifdef __AVX512CD__
  typedef int Native __attribute__((vector_size(64)));
  return reinterpret_cast<Lanes>(
      __builtin_ia32_vplzcntd_512_mask(reinterpret_cast<Native>(v), Native{}, kAllLanes));
#else
  Lanes result;
  for (int i = 0; i < kLanes; ++i) result[i] = static_cast<uint32_t>(std::countl_zero(uint32_t{v[i]}));
  return result;
#endif
}

// ---- Floats

inline Lanes float_sum(const Lanes& a, const Lanes& b) { return as_uint(sum(as_float(a), as_float(b))); }
inline Lanes float_difference(const Lanes& a, const Lanes& b) {
  return as_uint(difference(as_float(a), as_float(b)));
}
inline Lanes float_product(const Lanes& a, const Lanes& b) {
  return as_uint(product(as_float(a), as_float(b)));
}
inline Lanes float_quotient(const Lanes& a, const Lanes& b) { return as_uint(as_float(a) / as_float(b)); }
/// a where it is greater, or smaller, and else b.
inline Lanes max_floats(const Lanes& a, const Lanes& b) { return as_uint(max(as_float(a), as_float(b))); }
inline Lanes min_floats(const Lanes& a, const Lanes& b) { return as_uint(min(as_float(a), as_float(b))); }
/// To whole numbers; NaN becomes quiet.
template <Rounding rounding>
inline Lanes rounded(const Lanes& v) {
  return as_uint(round_lanes<rounding>(as_float(v)));
}
/// A signed integer toward zero, of floats that fit.
inline Lanes truncated(const Lanes& v) {
  return by_parts<Lanes>([](auto part) { return __builtin_convertvector(part, HostPart<LanesI>::type); },
                         as_float(v));
}
/// Of signed integers.
inline Lanes nearest_float(const Lanes& v) { return as_uint(__builtin_convertvector(as_int(v), LanesF)); }
/// In the low half, with 0 above.
inline Lanes half_of(const Lanes& v) { return float_to_half(as_float(v)); }
/// Of the low half.
inline Lanes float_of_half(const Lanes& v) { return as_uint(half_to_float(v)); }

/// Each quad's lanes from those of the same quad.
template <int a, int b, int c, int d>
inline Lanes of_quad_lanes(const Lanes& v) {
  return shuffle<a, b, c, d, 4 + a, 4 + b, 4 + c, 4 + d, 8 + a, 8 + b, 8 + c, 8 + d, 12 + a, 12 + b, 12 + c,
                 12 + d>(v);
}

}  // namespace v3d::qpu
