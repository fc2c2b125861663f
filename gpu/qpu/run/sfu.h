/// The functions of the special function unit are defined here, once for the interpreter and every code
/// generator.
///
/// All of them return the correctly rounded float (checked for every input: tests/qpu/sfu_test.cc tells how),
/// exp2 none that is denormal.
/// The steps are plain double operations, each rounded on its own, so that any host gives the same bits. The
/// bits of the hardware are not documented (qpu.md 2.4).
#pragma once

#include <cstdint>

#include "gpu/base/arithmetic.h"
#include "gpu/base/lanes.h"

namespace v3d::qpu::sfu {

typedef double LanesD __attribute__((vector_size(128)));
typedef int64_t LanesL __attribute__((vector_size(128)));
typedef uint64_t LanesQ __attribute__((vector_size(128)));

/// The two inputs of exp2 whose result is so close to the middle of two floats that its double is a tie, and
/// their results.
struct Tie {
  float x, result;
};
inline constexpr Tie kTiesOfExp2[] = {{0x1.853a6ep-9f, 0x1.00870ap+0f}, {-0x1.e7526ep-6f, 0x1.f58d62p-1f}};

inline LanesD to_double(LanesF v) { return __builtin_convertvector(v, LanesD); }
inline LanesF to_float(LanesD v) { return __builtin_convertvector(v, LanesF); }

inline LanesD square_root(LanesD v) {
  LanesD result;
#ifdef __AVX512F__
  typedef double Native __attribute__((vector_size(64)));
  Native half[2], root[2];
  __builtin_memcpy(half, &v, sizeof(v));
  for (int i = 0; i < 2; ++i)
    root[i] = __builtin_ia32_sqrtpd512_mask(half[i], Native{}, static_cast<uint8_t>(-1), 4);
  __builtin_memcpy(&result, root, sizeof(result));
#elif defined(__x86_64__)
  for (int i = 0; i < kLanes; ++i) result[i] = __builtin_sqrt(v[i]);
#else
  for (int i = 0; i < kLanes; ++i) result[i] = number_or_nan(__builtin_sqrt(v[i]), v[i], v[i]);
#endif
  return result;
}

/// 1 / x.
inline LanesF recip(LanesF x) { return 1.0f / x; }

/// 1 / sqrt(x); -inf for -0, NaN for x < 0.
inline LanesF rsqrt(LanesF x) { return to_float(1.0 / square_root(to_double(x))); }

/// 2^x; 0 below 2^-126. Boards pass piglit's fs-underflow-pow-compare-zero, whose 2^-149.999 would else be
/// 2^-149, though products keep denormals there (fs-underflow-mul-compare-zero).
inline LanesF exp2(LanesF x) {
  // 2^n * 2^f with n the nearest integer; (2^f - 1) / f is a polynomial in f.
  x = x > 200.0f ? splat(200.0f) : x;
  x = x < -200.0f ? splat(-200.0f) : x;
  const LanesD d = to_double(x);
  const LanesD shifted = d + 0x1.8p52;
  const LanesD f = d - (shifted - 0x1.8p52), f2 = f * f;
  const LanesD even =
      ((((0x1.e9d3fe3952179p-32 * f2 + 0x1.b524fae627834p-24) * f2 + 0x1.ffcbfc670dcd4p-17) * f2 +
        0x1.5d87fe78a5276p-10) *
           f2 +
       0x1.c6b08d704a0c2p-5) *
      f2;
  const LanesD odd =
      (((0x1.e6063f7217bc6p-28 * f2 + 0x1.62bfd47773353p-20) * f2 + 0x1.430913096fd9fp-13) * f2 +
       0x1.3b2ab6fba1ddap-7) *
          f2 +
      0x1.ebfbdff82c598p-3;
  const LanesD power = 1.0 + f * (0x1.62e42fefa39efp-1 + (f * odd + even));
  // The low bits of `shifted` hold n.
  const LanesQ scale = (reinterpret_cast<LanesQ>(shifted) + 1023u) << 52;
  LanesF result = to_float(power * reinterpret_cast<LanesD>(scale));
  result = result < 0x1p-126f ? LanesF{} : result;
  for (const Tie& tie : kTiesOfExp2) result = x == tie.x ? splat(tie.result) : result;
  return result;
}

/// log2(x); -inf for +-0, NaN for x < 0.
inline LanesF log2(LanesF x) {
  // x = 2^n * m with m in [sqrt(1/2), sqrt(2)); log2(m) = s * P(s^2) with s = (m - 1) / (m + 1).
  const LanesQ bits = reinterpret_cast<LanesQ>(to_double(x));
  const LanesL n = reinterpret_cast<LanesL>(bits - 0x3fe6a09e667f3bcdu) >> 52;
  const LanesD m = reinterpret_cast<LanesD>(bits - (reinterpret_cast<LanesQ>(n) << 52));
  const LanesD s = (m - 1.0) / (m + 1.0), t = s * s, t2 = t * t;
  const LanesD even = ((0x1.c46e14404048fp-3 * t2 + 0x1.484afb7a67652p-2) * t2 + 0x1.2776c50ee39dcp-1) * t2;
  const LanesD odd = ((0x1.b592d3c48c703p-3 * t2 + 0x1.0ca160627dbfdp-2) * t2 + 0x1.a61762d693934p-2) * t2 +
                     0x1.ec709dc3a047dp-1;
  const LanesD log_m = s * 0x1.71547652b82fep+1 + s * (t * odd + even);
  const LanesD n_double = reinterpret_cast<LanesD>(n + 0x4338000000000000) - 0x1.8p52;
  const LanesF result = to_float(n_double + log_m);
  const LanesF special = x == 0.0f ? splat(-__builtin_inff()) : x < 0.0f ? splat(__builtin_nanf("")) : x;
  return (x > 0.0f) & (x < __builtin_inff()) ? result : special;
}

/// sin(pi * x) for |x| <= 1/2; -1 below, +1 above.
inline LanesF sin(LanesF x) {
  const LanesD d = to_double(x), t = d * d, t2 = t * t;
  const LanesD even =
      (((0x1.9d462020fcc78p-21 * t2 + 0x1.e8f3675ee37ddp-12) * t2 + 0x1.5078348551854p-4) * t2 +
       0x1.466bc6775aa7dp+1) *
      t2;
  const LanesD odd = ((-0x1.6f7acdb8f6580p-16 * t2 - 0x1.e3074dfaf87afp-8) * t2 - 0x1.32d2cce627c86p-1) * t2 -
                     0x1.4abbce625be52p+2;
  const LanesF result = to_float(d * 0x1.921fb54442d18p+1 + d * (t * odd + even));
  const LanesF clamped = x > 0.5f ? splat(1.0f) : x < -0.5f ? splat(-1.0f) : result;
  return clamped;
}

}  // namespace v3d::qpu::sfu
