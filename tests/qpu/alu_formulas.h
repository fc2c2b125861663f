/// These formulas say what every operation of the ALUs computes: scalar, and written without looking at
/// alu.h's vectors.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "gpu/base/float16.h"
#include "gpu/qpu/isa/isa.h"

namespace v3d::qpu::formulas {

inline float f(uint32_t v) { return std::bit_cast<float>(v); }
inline uint32_t u(float v) { return std::bit_cast<uint32_t>(v); }
inline int32_t s(uint32_t v) { return static_cast<int32_t>(v); }
inline float h(uint32_t v) { return half_to_float(static_cast<uint16_t>(v)); }
inline uint32_t fh(float v) { return float_to_half(v); }

/// How far a result must agree: in all bits, or but for the bits of NaNs.
enum class Compare { kBits, kFloat, kHalves };
using enum Compare;

inline bool is_nan(uint32_t v) { return (v & 0x7fffffff) > 0x7f800000; }
inline bool is_half_nan(uint32_t v) { return (v & 0x7fff) > 0x7c00; }
inline bool agrees(Compare compare, uint32_t expected, uint32_t actual) {
  const auto half_agrees = [](uint32_t x, uint32_t y) {
    return (is_half_nan(x) && is_half_nan(y)) || (x & 0xffff) == (y & 0xffff);
  };
  switch (compare) {
    case Compare::kFloat:
      return (is_nan(expected) && is_nan(actual)) || expected == actual;
    case Compare::kHalves:
      return half_agrees(expected, actual) && half_agrees(expected >> 16, actual >> 16);
    case Compare::kBits:
      break;
  }
  return expected == actual;
}

using Formula = uint32_t (*)(uint32_t a, uint32_t b);

struct Row {
  Op op;
  Compare compare;
  Formula formula;
  bool mul = false;  ///< an operation of the mul ALU only
};

inline float scalar_min(float a, float b) { return std::isnan(a) ? b : std::isnan(b) ? a : b < a ? b : a; }
inline float scalar_max(float a, float b) { return std::isnan(a) ? b : std::isnan(b) ? a : b > a ? b : a; }

inline uint32_t to_signed(double whole) {
  if (std::isnan(whole)) return 0;
  if (whole > 2147483647.0) return 0x7fffffff;
  if (whole < -2147483648.0) return 0x80000000;
  return static_cast<uint32_t>(static_cast<int64_t>(whole));
}
inline uint32_t to_unsigned(double whole) {
  if (std::isnan(whole) || whole <= 0) return 0;
  return whole > 4294967295.0 ? 0xffffffff : static_cast<uint32_t>(whole);
}
inline double clamped(double v, double low) { return std::isnan(v) ? 0 : std::min(1.0, std::max(low, v)); }
inline uint32_t norm(double v, double low, double scale) {
  return static_cast<uint32_t>(static_cast<int32_t>(std::nearbyint(clamped(v, low) * scale)));
}
template <float (*op)(float, float)>
uint32_t per_half(uint32_t a, uint32_t b) {
  return fh(op(h(a), h(b))) | fh(op(h(a >> 16), h(b >> 16))) << 16;
}
inline float scalar_mul(float a, float b) { return a * b; }
inline float scalar_add(float a, float b) { return static_cast<float>(double{a} + double{b}); }
inline float scalar_sub(float a, float b) { return static_cast<float>(double{a} - double{b}); }
/// @param lows, highs  of the halves: 0 keeps the sign, 1 clears, 2 inverts, 3 sets it
template <int lows, int highs>
uint32_t signs(uint32_t a, uint32_t) {
  const auto half = [](uint32_t v, int what) -> uint32_t {
    const bool sign = what == 0 ? v & 0x8000 : what == 2 ? !(v & 0x8000) : what == 3;
    return (v & 0x7fff) + (sign ? 0x8000 : 0);
  };
  return half(a, lows) | half(a >> 16, highs) << 16;
}
template <int low, int scale, int high_scale>
uint32_t norm_halves(uint32_t a, uint32_t) {
  return (norm(h(a), low, scale) & 0xffff) | norm(h(a >> 16), low, high_scale) << 16;
}
// EXT_packed_float from f16: search the nearest representable value.
inline uint32_t small_float(uint32_t half, int mantissa_bits) {
  const uint32_t infinity = 31u << mantissa_bits;
  const float value = h(half);
  if (std::isnan(value)) return infinity | 1;
  if (std::signbit(value)) return 0;
  if (std::isinf(value)) return infinity;
  const auto decode = [&](uint32_t code) { return h(code << (10 - mantissa_bits)); };
  uint32_t best = 0;
  for (uint32_t code = 1; code < infinity; ++code) {
    const float d = std::fabs(decode(code) - value), best_d = std::fabs(decode(best) - value);
    if (d < best_d || (d == best_d && !(code & 1))) best = code;
  }
  return best;
}
inline float sin_pi(float x) {
  if (x > 0.5f) return 1;
  if (x < -0.5f) return -1;
  return static_cast<float>(std::sin(3.14159265358979323846264338327950288L * static_cast<long double>(x)));
}

inline const Row kRows[] = {
    {Op::kFadd, kFloat, [](uint32_t a, uint32_t b) { return u(f(a) + f(b)); }},
    {Op::kFaddnf, kFloat, [](uint32_t a, uint32_t b) { return u(f(a) + f(b)); }},
    {Op::kFsub, kFloat, [](uint32_t a, uint32_t b) { return u(f(a) - f(b)); }},
    {Op::kFcmp, kFloat, [](uint32_t a, uint32_t b) { return u(f(a) - f(b)); }},
    {Op::kFmul, kFloat, [](uint32_t a, uint32_t b) { return u(f(a) * f(b)); }, true},
    {Op::kFmin, kFloat, [](uint32_t a, uint32_t b) { return u(scalar_min(f(a), f(b))); }},
    {Op::kFmax, kFloat, [](uint32_t a, uint32_t b) { return u(scalar_max(f(a), f(b))); }},
    {Op::kVfpack, kHalves, [](uint32_t a, uint32_t b) { return fh(f(a)) | fh(f(b)) << 16; }},
    {Op::kVfadd, kHalves, per_half<scalar_add>},
    {Op::kVfsub, kHalves, per_half<scalar_sub>},
    {Op::kVfcmp, kHalves, per_half<scalar_sub>},
    {Op::kVfmov, kBits, signs<0, 0>},
    {Op::kVfabsmov, kBits, signs<1, 0>},
    {Op::kVfnegmov, kBits, signs<2, 0>},
    {Op::kVfnabmov, kBits, signs<3, 0>},
    {Op::kVfmovabs, kBits, signs<0, 1>},
    {Op::kVfabs, kBits, signs<1, 1>},
    {Op::kVfnegabs, kBits, signs<2, 1>},
    {Op::kVfnababs, kBits, signs<3, 1>},
    {Op::kVfmovneg, kBits, signs<0, 2>},
    {Op::kVfabsneg, kBits, signs<1, 2>},
    {Op::kVfneg, kBits, signs<2, 2>},
    {Op::kVfnabneg, kBits, signs<3, 2>},
    {Op::kVfmovnab, kBits, signs<0, 3>},
    {Op::kVfabsnab, kBits, signs<1, 3>},
    {Op::kVfnegnab, kBits, signs<2, 3>},
    {Op::kVfnab, kBits, signs<3, 3>},
    {Op::kVfmin, kHalves, per_half<scalar_min>},
    {Op::kVfmax, kHalves, per_half<scalar_max>},
    {Op::kVfmul, kHalves, per_half<scalar_mul>, true},
    {Op::kAdd, kBits, [](uint32_t a, uint32_t b) { return a + b; }},
    {Op::kSub, kBits, [](uint32_t a, uint32_t b) { return a - b; }},
    {Op::kMin, kBits, [](uint32_t a, uint32_t b) { return s(a) < s(b) ? a : b; }},
    {Op::kMax, kBits, [](uint32_t a, uint32_t b) { return s(a) > s(b) ? a : b; }},
    {Op::kUmin, kBits, [](uint32_t a, uint32_t b) { return std::min(a, b); }},
    {Op::kUmax, kBits, [](uint32_t a, uint32_t b) { return std::max(a, b); }},
    {Op::kShl, kBits, [](uint32_t a, uint32_t b) { return a << (b % 32); }},
    {Op::kShr, kBits, [](uint32_t a, uint32_t b) { return a >> (b % 32); }},
    {Op::kAsr, kBits, [](uint32_t a, uint32_t b) { return static_cast<uint32_t>(s(a) >> (b % 32)); }},
    {Op::kRor, kBits, [](uint32_t a, uint32_t b) { return std::rotr(a, static_cast<int>(b % 32)); }},
    {Op::kAnd, kBits, [](uint32_t a, uint32_t b) { return ~(~a | ~b); }},
    {Op::kOr, kBits, [](uint32_t a, uint32_t b) { return ~(~a & ~b); }},
    {Op::kXor, kBits, [](uint32_t a, uint32_t b) { return (a | b) - (a & b); }},
    {Op::kNot, kBits, [](uint32_t a, uint32_t) { return 0xffffffffu - a; }},
    {Op::kNeg, kBits, [](uint32_t a, uint32_t) { return 0u - a; }},
    {Op::kVadd, kBits,
     [](uint32_t a, uint32_t b) { return ((a + b) & 0xffff) | ((a & 0xffff0000) + (b & 0xffff0000)); }},
    {Op::kVsub, kBits,
     [](uint32_t a, uint32_t b) { return ((a - b) & 0xffff) | ((a & 0xffff0000) - (b & 0xffff0000)); }},
    {Op::kClz, kBits, [](uint32_t a, uint32_t) { return static_cast<uint32_t>(std::countl_zero(a)); }},
    {Op::kMov, kBits, [](uint32_t a, uint32_t) { return a; }},
    {Op::kFmov, kBits, [](uint32_t a, uint32_t) { return a; }},
    {Op::kUmul24, kBits, [](uint32_t a, uint32_t b) { return (a & 0xffffff) * (b & 0xffffff); }, true},
    {Op::kSmul24, kBits,
     [](uint32_t a, uint32_t b) {
       return static_cast<uint32_t>(int64_t{s(a << 8) / 256} * (s(b << 8) / 256));
     },
     true},
    {Op::kFround, kFloat, [](uint32_t a, uint32_t) { return u(std::nearbyint(f(a))); }},
    {Op::kFtrunc, kFloat, [](uint32_t a, uint32_t) { return u(std::trunc(f(a))); }},
    {Op::kFfloor, kFloat, [](uint32_t a, uint32_t) { return u(std::floor(f(a))); }},
    {Op::kFceil, kFloat, [](uint32_t a, uint32_t) { return u(std::ceil(f(a))); }},
    {Op::kFtoin, kBits, [](uint32_t a, uint32_t) { return to_signed(std::nearbyint(f(a))); }},
    {Op::kFtoiz, kBits, [](uint32_t a, uint32_t) { return to_signed(std::trunc(f(a))); }},
    {Op::kFtouz, kBits, [](uint32_t a, uint32_t) { return to_unsigned(std::trunc(f(a))); }},
    {Op::kFtoc, kBits,
     [](uint32_t a, uint32_t) { return (1u << static_cast<int>(std::nearbyint(clamped(f(a), 0) * 4))) - 1; }},
    {Op::kItof, kBits, [](uint32_t a, uint32_t) { return u(static_cast<float>(s(a))); }},
    {Op::kUtof, kBits, [](uint32_t a, uint32_t) { return u(static_cast<float>(a)); }},
    {Op::kVpack, kBits, [](uint32_t a, uint32_t b) { return a % 65536 + b * 65536; }},
    {Op::kV8pack, kBits,
     [](uint32_t a, uint32_t b) {
       return a % 256 + ((a >> 16) % 256) * 256 + (b % 256) * 65536 + ((b >> 16) % 256) * 16777216;
     }},
    {Op::kV10pack, kBits,
     [](uint32_t a, uint32_t b) {
       return a % 1024 + ((a >> 16) % 1024) * 1024 + (b % 1024) * 1048576 + ((b >> 16) % 4) * 1073741824;
     }},
    {Op::kV11fpack, kBits,
     [](uint32_t a, uint32_t b) {
       return small_float(a & 0xffff, 6) | small_float(a >> 16, 6) << 11 | small_float(b & 0xffff, 5) << 22;
     }},
    {Op::kFtounorm16, kBits, [](uint32_t a, uint32_t) { return norm(f(a), 0, 65535); }, true},
    {Op::kFtosnorm16, kBits, [](uint32_t a, uint32_t) { return norm(f(a), -1, 32767); }, true},
    {Op::kVftounorm8, kBits, norm_halves<0, 255, 255>, true},
    {Op::kVftosnorm8, kBits, norm_halves<-1, 127, 127>, true},
    {Op::kVftounorm10lo, kBits, norm_halves<0, 1023, 1023>, true},
    {Op::kVftounorm10hi, kBits, norm_halves<0, 1023, 3>, true},
    {Op::kFunpackunormlo, kFloat,
     [](uint32_t a, uint32_t) { return u(static_cast<float>((a & 0xffff) / 65535.0L)); }, true},
    {Op::kFunpackunormhi, kFloat,
     [](uint32_t a, uint32_t) { return u(static_cast<float>((a >> 16) / 65535.0L)); }, true},
    {Op::kFunpacksnormlo, kFloat,
     [](uint32_t a, uint32_t) {
       return u(static_cast<float>(std::max(-1.0L, static_cast<int16_t>(a) / 32767.0L)));
     },
     true},
    {Op::kFunpacksnormhi, kFloat,
     [](uint32_t a, uint32_t) {
       return u(static_cast<float>(std::max(-1.0L, static_cast<int16_t>(a >> 16) / 32767.0L)));
     },
     true},
    {Op::kRecip, kFloat, [](uint32_t a, uint32_t) { return u(1.0f / f(a)); }},
    {Op::kRsqrt, kFloat,
     [](uint32_t a, uint32_t) { return u(static_cast<float>(1 / std::sqrt((long double)f(a)))); }},
    {Op::kRsqrt2, kFloat,
     [](uint32_t a, uint32_t) { return u(static_cast<float>(1 / std::sqrt((long double)f(a)))); }},
    {Op::kExp, kFloat,
     [](uint32_t a, uint32_t) {
       const auto power = static_cast<float>(std::exp2((long double)f(a)));
       return u(power < std::numeric_limits<float>::min() ? 0.0f : power);
     }},
    {Op::kLog, kFloat,
     [](uint32_t a, uint32_t) { return u(static_cast<float>(std::log2((long double)f(a)))); }},
    {Op::kSin, kFloat, [](uint32_t a, uint32_t) { return u(sin_pi(f(a))); }},
    {Op::kFlpop, kBits, [](uint32_t a, uint32_t) { return a / 4; }},
};

}  // namespace v3d::qpu::formulas
