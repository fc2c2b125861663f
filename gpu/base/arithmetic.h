/// The NaNs of these functions depend neither on the compiler nor on the host's vectors: the sum or product
/// of two NaNs is the first one, quiet. The compiler may exchange the operands of + and *, whose NaNs are
/// thus used only where they cannot be seen, or where there is but one.
#pragma once

#include "gpu/base/lanes.h"

namespace v3d {

typedef HostPart<LanesF>::type NativeF;

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

#ifndef __AVX512F__  // where NativeF is LanesF
inline LanesF sum(LanesF a, LanesF b) {
  return by_parts<LanesF>([](NativeF x, NativeF y) { return sum(x, y); }, a, b);
}
inline LanesF product(LanesF a, LanesF b) {
  return by_parts<LanesF>([](NativeF x, NativeF y) { return product(x, y); }, a, b);
}
#endif

enum class Rounding { kNearestEven = 0, kDown = 1, kUp = 2, kZero = 3 };
/// To whole numbers; NaN becomes quiet.
template <Rounding rounding>
inline LanesF round_lanes(LanesF v) {
  constexpr int kMode = static_cast<int>(rounding) | 8;  // 8: without the inexact exception
#if defined(__AVX512F__)
  return __builtin_ia32_rndscaleps_mask(v, kMode, v, kAllLanes, 4);
#elif defined(__AVX__)
  return by_parts<LanesF>([](NativeF x) { return __builtin_ia32_roundps256(x, kMode); }, v);
#else
  return by_parts<LanesF>([](NativeF x) { return __builtin_ia32_roundps(x, kMode); }, v);
#endif
}

}  // namespace v3d
