/// These are the operations of lane expressions (vc4_lanes.h) on the host's vectors: what the interpreter
/// evaluates them with. The compiler's, of the same names, are in gpu/qpu/graph/value.h.
///
/// Nothing here depends on how the host rounds: what it rounds to nearest is exact, or its error is.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "gpu/base/lanes.h"

namespace v3d::qpu::vc4 {

inline constexpr uint32_t kSign = 0x80000000, kMagnitude = 0x7fffffff, kExponent = 0x7f800000,
                          kInfinity = kExponent;

// Parts of lanes as wide as the host's vectors.
typedef HostPart<Lanes>::type Words;
typedef HostPart<LanesI>::type Ints;
typedef HostPart<LanesF>::type Floats;
typedef uint16_t Halves __attribute__((vector_size(kHostBytes)));
typedef uint8_t Bytes __attribute__((vector_size(kHostBytes)));
// Half as many lanes, in twice the width.
typedef double Doubles __attribute__((vector_size(kHostBytes)));
typedef uint64_t Longs __attribute__((vector_size(kHostBytes)));
typedef float FewFloats __attribute__((vector_size(kHostBytes / 2)));
typedef int32_t FewInts __attribute__((vector_size(kHostBytes / 2)));

// ---- Comparisons give all ones where they hold, and 0 elsewhere

inline Words equal_words(Words a, Words b) { return reinterpret_cast<Words>(a == b); }
/// a > b, signed.
inline Words above(Words a, Words b) {
  return reinterpret_cast<Words>(reinterpret_cast<Ints>(a) > reinterpret_cast<Ints>(b));
}
/// a > b, unsigned.
inline Words above_unsigned(Words a, Words b) { return reinterpret_cast<Words>(a > b); }
inline Words choose(Words mask, Words a, Words b) { return reinterpret_cast<Ints>(mask) != 0 ? a : b; }

// ---- Integers

/// Signed.
inline Words least(Words a, Words b) {
  const Ints x = reinterpret_cast<Ints>(a), y = reinterpret_cast<Ints>(b);
  return reinterpret_cast<Words>(x > y ? y : x);
}
inline Words greatest(Words a, Words b) {
  const Ints x = reinterpret_cast<Ints>(a), y = reinterpret_cast<Ints>(b);
  return reinterpret_cast<Words>(x > y ? x : y);
}
/// @param n  0..31
inline Words shifted_right_signed(Words v, Words n) {
  return reinterpret_cast<Words>(reinterpret_cast<Ints>(v) >> reinterpret_cast<Ints>(n));
}
inline Words leading_zeros(Words v) {
  Words result;
  for (size_t lane = 0; lane < kHostWords; ++lane)
    result[lane] = static_cast<uint32_t>(std::countl_zero(uint32_t{v[lane]}));
  return result;
}

// Of each half, and of each byte.
inline Words halves_product(Words a, Words b) {
  return reinterpret_cast<Words>(reinterpret_cast<Halves>(a) * reinterpret_cast<Halves>(b));
}
inline Words halves_sum(Words a, Words b) {
  return reinterpret_cast<Words>(reinterpret_cast<Halves>(a) + reinterpret_cast<Halves>(b));
}
inline Words halves_upper_byte(Words v) { return reinterpret_cast<Words>(reinterpret_cast<Halves>(v) >> 8); }
inline Words bytes_least(Words a, Words b) {
  const Bytes x = reinterpret_cast<Bytes>(a), y = reinterpret_cast<Bytes>(b);
  return reinterpret_cast<Words>(x < y ? x : y);
}
inline Words bytes_greatest(Words a, Words b) {
  const Bytes x = reinterpret_cast<Bytes>(a), y = reinterpret_cast<Bytes>(b);
  return reinterpret_cast<Words>(x > y ? x : y);
}
/// Saturating.
inline Words bytes_sum(Words a, Words b) {
  const Bytes x = reinterpret_cast<Bytes>(a), sum = x + reinterpret_cast<Bytes>(b);
  return reinterpret_cast<Words>(sum | reinterpret_cast<Bytes>(sum < x));
}
inline Words bytes_difference(Words a, Words b) {
  const Bytes x = reinterpret_cast<Bytes>(a), y = reinterpret_cast<Bytes>(b);
  return reinterpret_cast<Words>((x - y) & reinterpret_cast<Bytes>(x > y));
}

// ---- Floats

/// To nearest; not for what becomes denormal.
inline Words product_to_nearest(Words a, Words b) {
  return reinterpret_cast<Words>(reinterpret_cast<Floats>(a) * reinterpret_cast<Floats>(b));
}
inline Words sum_to_nearest(Words a, Words b) {
  return reinterpret_cast<Words>(reinterpret_cast<Floats>(a) + reinterpret_cast<Floats>(b));
}
/// Of floats whose product is one, and no denormal.
inline Words exact_product(Words a, Words b) { return product_to_nearest(a, b); }
/// Toward zero, of floats that fit.
inline Words truncated(Words v) {
  return reinterpret_cast<Words>(__builtin_convertvector(reinterpret_cast<Floats>(v), Ints));
}

/// Toward minus infinity, of numbers.
inline Words rounded_down(Words v) {
  const Floats x = reinterpret_cast<Floats>(v);
#if defined(__aarch64__)
  return reinterpret_cast<Words>(vrndmq_f32(reinterpret_cast<float32x4_t>(x)));
#elif defined(__AVX512F__)
  return reinterpret_cast<Words>(__builtin_ia32_rndscaleps_mask(x, 1 | 8, x, kAllLanes, 4));
#elif defined(__AVX__)
  return reinterpret_cast<Words>(__builtin_ia32_roundps256(x, 1 | 8));
#else
  return reinterpret_cast<Words>(__builtin_ia32_roundps(x, 1 | 8));
#endif
}

inline constexpr size_t kFew = kHostWords / 2;

// What fn(doubles...) gives for few lanes at a time, which are converted from From and to To.
template <typename From, typename To, typename Fn, typename... V>
inline Words through_doubles(Fn fn, const V&... v) {
  Words result;
  for (size_t at = 0; at < sizeof(Words); at += kFew * sizeof(uint32_t)) {
    const auto few = [at](const Words& lanes) {
      From part;
      __builtin_memcpy(&part, reinterpret_cast<const char*>(&lanes) + at, sizeof(part));
      return __builtin_convertvector(part, Doubles);
    };
    const To part = __builtin_convertvector(fn(few(v)...), To);
    __builtin_memcpy(reinterpret_cast<char*>(&result) + at, &part, sizeof(part));
  }
  return result;
}

// Toward zero to a float that is not denormal; doubles that are too large become infinite when they are
// converted.
inline Doubles cut(Doubles d) {
  constexpr uint64_t kDropped = (uint64_t{1} << 29) - 1, kSmallest = uint64_t{1023 - 126} << 52,
                     kSign64 = uint64_t{1} << 63;
  const Longs bits = reinterpret_cast<Longs>(d);
  const auto counts = (bits & ~kSign64) >= kSmallest;
  return reinterpret_cast<Doubles>(bits & ~kDropped & reinterpret_cast<Longs>(counts));
}

inline Ints is_zero(Words v) { return (v & kExponent) == 0u; }
inline Ints is_special(Words v) { return (v & kExponent) == kExponent; }

// Hosts with AVX-512 round toward zero in one instruction, but for what is too large, of which they make the
// largest number. What is no number stays none in sums and products.
#if defined(__AVX512F__) && !defined(__clang__)
#define V3D_HOST_ROUNDS 1
inline constexpr int kTowardZero = 3 | 8;  // 8: without exceptions
// Lanes whose exponent is not 0.
inline LaneMask counts(Words v) {
  return __builtin_ia32_ptestmd512(reinterpret_cast<Ints>(v), Ints{} + static_cast<int>(kExponent),
                                   kAllLanes);
}
inline Floats kept(LaneMask lanes, Words v) {
  return reinterpret_cast<Floats>(__builtin_ia32_movdqa32_512_mask(reinterpret_cast<Ints>(v), Ints{}, lanes));
}
inline Words host_sum(Words a, Words b) {
  const Words sum = reinterpret_cast<Words>(
      __builtin_ia32_addps512_mask(kept(counts(a), a), kept(counts(b), b), Floats{}, kAllLanes, kTowardZero));
  return reinterpret_cast<Words>(kept(counts(sum), sum));
}
inline Words host_product(Words a, Words b) {
  const auto lanes = static_cast<LaneMask>(counts(a) & counts(b));
  const Words product = reinterpret_cast<Words>(__builtin_ia32_mulps512_mask(
      reinterpret_cast<Floats>(a), reinterpret_cast<Floats>(b), Floats{}, lanes, kTowardZero));
  return reinterpret_cast<Words>(kept(counts(product), product));
}
// A result that may be too large, or comes from an operand that is no number.
inline bool is_unsure(Words v) {
  constexpr int kLargest = 0x7f7fffff, kNotLess = 5;
  return __builtin_ia32_ucmpd512_mask(reinterpret_cast<Ints>(v & kMagnitude), Ints{} + kLargest, kNotLess,
                                      kAllLanes) != 0;
}
#else
#define V3D_HOST_ROUNDS 0
#endif

inline Words with_special_sum(Words a, Words b, Words sum) {
  sum = is_zero(sum) ? Words{} : sum;
  const Words special = ((is_special(b) ? b : a) & kSign) | kInfinity;
  return is_special(a) | is_special(b) ? special : sum;
}

inline Words sum_toward_zero(Words a, Words b) {
#if V3D_HOST_ROUNDS
  if (const Words sum = host_sum(a, b); !is_unsure(sum)) [[likely]]
    return sum;
#endif
  const Words flushed_a = is_zero(a) ? Words{} : a, flushed_b = is_zero(b) ? Words{} : b;
  Floats x = reinterpret_cast<Floats>(flushed_a), y = reinterpret_cast<Floats>(flushed_b);
  const Ints large = is_special(reinterpret_cast<Words>(x + y));
  x = large ? x * 0.5f : x;
  y = large ? y * 0.5f : y;
  // The sum to nearest, and its error, which is exact.
  const Floats nearest = x + y, of_y = nearest - x;
  const Floats error = (x - (nearest - of_y)) + (y - of_y);
  Words bits = reinterpret_cast<Words>(nearest);
  const Ints away = (error != 0.0f) & (reinterpret_cast<Ints>(reinterpret_cast<Words>(error) ^ bits) < 0);
  bits += reinterpret_cast<Words>(away);
  const Words infinity = (bits & kSign) | kInfinity;
  const Words doubled = (bits & kExponent) >= 254u << 23 ? infinity : bits + (1u << 23);
  return with_special_sum(a, b, large ? doubled : bits);
}

// Of a product that is right but for operands that are no numbers, and for the sign of 0.
inline Words with_special_product(Words a, Words b, Words product) {
  const Words special = ((a ^ b) & kSign) | kInfinity;
  product = is_special(a) | is_special(b) ? special : product;
  return is_zero(a) | is_zero(b) | is_zero(product) ? Words{} : product;
}

inline Words product_toward_zero(Words a, Words b) {
#if V3D_HOST_ROUNDS
  if (const Words product = host_product(a, b); !is_unsure(product)) [[likely]]
    return product;
#endif
  const Words product =
      through_doubles<FewFloats, FewFloats>([](Doubles x, Doubles y) { return cut(x * y); }, a, b);
  return with_special_product(a, b, product);
}

/// Of signed integers, toward zero.
inline Words float_of_integer(Words v) {
#if V3D_HOST_ROUNDS
  return reinterpret_cast<Words>(
      __builtin_ia32_cvtdq2ps512_mask(reinterpret_cast<Ints>(v), Floats{}, kAllLanes, kTowardZero));
#else
  return through_doubles<FewInts, FewFloats>(cut, v);
#endif
}

}  // namespace v3d::qpu::vc4
