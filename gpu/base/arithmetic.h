/// The NaNs of these functions depend neither on the compiler nor on the host: the sum, difference or product
/// of two NaNs is the first one, quiet, and where no operand is a NaN it is that of x86-64. The compiler may
/// exchange the operands of + and *, and other hosts prefer other NaNs: those of operators are used only
/// where they cannot be seen.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "gpu/base/lanes.h"

namespace v3d {

typedef HostPart<LanesF>::type NativeF;

#if defined(__x86_64__)
#if defined(__AVX512F__)
#define V3D_REGISTER "v"
#else
#define V3D_REGISTER "x"
#endif
#if defined(__AVX__)
#define V3D_ORDERED_OPERATION(function, type, instruction)                                                \
  inline type function(type a, type b) {                                                                  \
    type result;                                                                                          \
    __asm__("v" instruction " %2, %1, %0" : "=" V3D_REGISTER(result) : V3D_REGISTER(a), V3D_REGISTER(b)); \
    return result;                                                                                        \
  }
#else
#define V3D_ORDERED_OPERATION(function, type, instruction)                  \
  inline type function(type a, type b) {                                    \
    __asm__(instruction " %1, %0" : "+" V3D_REGISTER(a) : V3D_REGISTER(b)); \
    return a;                                                               \
  }
#endif
V3D_ORDERED_OPERATION(sum, float, "addss")
V3D_ORDERED_OPERATION(sum, double, "addsd")
V3D_ORDERED_OPERATION(sum, NativeF, "addps")
V3D_ORDERED_OPERATION(product, float, "mulss")
V3D_ORDERED_OPERATION(product, double, "mulsd")
V3D_ORDERED_OPERATION(product, NativeF, "mulps")
#undef V3D_ORDERED_OPERATION
#undef V3D_REGISTER

inline float difference(float a, float b) { return a - b; }
inline NativeF difference(NativeF a, NativeF b) { return a - b; }
#else
/// What an operation on a and b gives where the host's result is a NaN.
inline float nan_of(float a, float b) {
  constexpr uint32_t kQuiet = 0x400000, kNone = 0xffc00000;
  if (a != a) return std::bit_cast<float>(std::bit_cast<uint32_t>(a) | kQuiet);
  if (b != b) return std::bit_cast<float>(std::bit_cast<uint32_t>(b) | kQuiet);
  return std::bit_cast<float>(kNone);
}
inline double nan_of(double a, double b) {
  constexpr uint64_t kQuiet = uint64_t{1} << 51, kNone = uint64_t{0xfff8} << 48;
  if (a != a) return std::bit_cast<double>(std::bit_cast<uint64_t>(a) | kQuiet);
  if (b != b) return std::bit_cast<double>(std::bit_cast<uint64_t>(b) | kQuiet);
  return std::bit_cast<double>(kNone);
}
inline NativeF nan_of(NativeF a, NativeF b) {
  NativeF result;
  for (size_t i = 0; i < kHostWords; ++i) result[i] = nan_of(float{a[i]}, float{b[i]});
  return result;
}
inline float number_or_nan(float result, float a, float b) {
  return result == result ? result : nan_of(a, b);
}
inline double number_or_nan(double result, double a, double b) {
  return result == result ? result : nan_of(a, b);
}
inline NativeF number_or_nan(NativeF result, NativeF a, NativeF b) {
  const auto is_number = result == result;
  const auto halves = std::bit_cast<std::array<uint64_t, 2> >(is_number);
  if ((halves[0] & halves[1]) == ~uint64_t{0}) [[likely]]
    return result;
  return is_number ? result : nan_of(a, b);
}
#define V3D_ORDERED_OPERATION(function, type, operation) \
  inline type function(type a, type b) { return number_or_nan(a operation b, a, b); }
V3D_ORDERED_OPERATION(sum, float, +)
V3D_ORDERED_OPERATION(sum, double, +)
V3D_ORDERED_OPERATION(sum, NativeF, +)
V3D_ORDERED_OPERATION(difference, float, -)
V3D_ORDERED_OPERATION(difference, NativeF, -)
V3D_ORDERED_OPERATION(product, float, *)
V3D_ORDERED_OPERATION(product, double, *)
V3D_ORDERED_OPERATION(product, NativeF, *)
#undef V3D_ORDERED_OPERATION
#endif

#ifndef __AVX512F__  // where NativeF is LanesF
inline LanesF sum(LanesF a, LanesF b) {
  return by_parts<LanesF>([](NativeF x, NativeF y) { return sum(x, y); }, a, b);
}
inline LanesF product(LanesF a, LanesF b) {
  return by_parts<LanesF>([](NativeF x, NativeF y) { return product(x, y); }, a, b);
}
inline LanesF difference(LanesF a, LanesF b) {
  return by_parts<LanesF>([](NativeF x, NativeF y) { return difference(x, y); }, a, b);
}
#endif

enum class Rounding { kNearestEven = 0, kDown = 1, kUp = 2, kZero = 3 };
/// To whole numbers; NaN becomes quiet.
template <Rounding rounding>
inline LanesF round_lanes(LanesF v) {
#if defined(__aarch64__)
  return by_parts<LanesF>(
      [](NativeF x) {
        const auto native = reinterpret_cast<float32x4_t>(x);
        if constexpr (rounding == Rounding::kNearestEven)
          return reinterpret_cast<NativeF>(vrndnq_f32(native));
        if constexpr (rounding == Rounding::kDown) return reinterpret_cast<NativeF>(vrndmq_f32(native));
        if constexpr (rounding == Rounding::kUp) return reinterpret_cast<NativeF>(vrndpq_f32(native));
        return reinterpret_cast<NativeF>(vrndq_f32(native));
      },
      v);
#else
  constexpr int kMode = static_cast<int>(rounding) | 8;  // 8: without the inexact exception
#if defined(__AVX512F__)
  return __builtin_ia32_rndscaleps_mask(v, kMode, v, kAllLanes, 4);
#elif defined(__AVX__)
  return by_parts<LanesF>([](NativeF x) { return __builtin_ia32_roundps256(x, kMode); }, v);
#else
  return by_parts<LanesF>([](NativeF x) { return __builtin_ia32_roundps(x, kMode); }, v);
#endif
#endif
}

}  // namespace v3d
