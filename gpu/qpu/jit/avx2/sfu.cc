/// @file The special functions of gpu/qpu/run/sfu.h, step by step: polynomials on two times four doubles.

#include "gpu/qpu/jit/avx2/sfu.h"

#include <bit>
#include <initializer_list>

namespace v3d::qpu::jit::avx2 {

using Xbyak::Xmm;
using Xbyak::Ymm;

namespace {

enum Predicate : uint8_t { kEqual = 0, kLess = 1, kNotLess = 5, kGreater = 14 };
constexpr uint32_t kOne = 0x3f800000, kMinusOne = 0xbf800000, kHalf = 0x3f000000, kMinusHalf = 0xbf000000,
                   kInfinity = 0x7f800000, kMinusInfinity = 0xff800000, kNan = 0x7fc00000;

/// ((a x + b) x + c) ... of the coefficients.
void polynomial(Emitter& e, const Ymm& to, const Ymm& x, std::initializer_list<double> coefficients) {
  const double* c = coefficients.begin();
  e.vmovapd(to, e.doubles(*c));
  while (++c != coefficients.end()) {
    e.vmulpd(to, to, x);
    e.vaddpd(to, to, e.doubles(*c));
  }
}

/// `four` changes doubles in a register: those of all lanes of x, to floats in `to`.
template <typename Four>
void on_quarters(Emitter& e, const Ymm& to, const Ymm& x, const Four& four) {
  const Ymm d = e.scratch();
  for (const bool upper : {false, true}) {
    e.vextractf128(Xmm(d.getIdx()), x, upper);
    e.vcvtps2pd(d, Xmm(d.getIdx()));
    four(d);
    e.vcvtpd2ps(Xmm(d.getIdx()), d);
    if (upper)
      e.vinsertf128(to, to, Xmm(d.getIdx()), 1);
    else
      e.vmovaps(to, d);
  }
}

/// Lanes of x that compare so with a float become another one in `to`.
void replace(Emitter& e, const Ymm& to, const Ymm& x, uint8_t predicate, uint32_t bound, uint32_t by) {
  const Ymm lanes = e.scratch();
  e.vcmpps(lanes, x, e.constant(bound), predicate);
  e.vblendvps(to, to, e.constant(by), lanes);
}

}  // namespace

void exp2(Emitter& e, const Ymm& to, const Source& a, const Source&) {
  const Ymm x = e.scratch(), shifted = e.scratch(), f2 = e.scratch(), even = e.scratch(), odd = e.scratch();
  e.vmovaps(x, e.constant(0x43480000));  // 200
  e.vminps(x, x, a.operand());           // the second one if that is NaN
  e.vmovaps(even, e.constant(0xc3480000));
  e.vmaxps(x, even, x);
  on_quarters(e, to, x, [&](const Ymm& d) {
    e.vaddpd(shifted, d, e.doubles(0x1.8p52));
    e.vsubpd(f2, shifted, e.doubles(0x1.8p52));
    e.vsubpd(d, d, f2);  // f from here on
    e.vmulpd(f2, d, d);
    polynomial(e, even, f2,
               {0x1.e9d3fe3952179p-32, 0x1.b524fae627834p-24, 0x1.ffcbfc670dcd4p-17, 0x1.5d87fe78a5276p-10,
                0x1.c6b08d704a0c2p-5});
    e.vmulpd(even, even, f2);
    polynomial(e, odd, f2,
               {0x1.e6063f7217bc6p-28, 0x1.62bfd47773353p-20, 0x1.430913096fd9fp-13, 0x1.3b2ab6fba1ddap-7,
                0x1.ebfbdff82c598p-3});
    e.vmulpd(odd, d, odd);
    e.vaddpd(odd, odd, even);
    e.vaddpd(odd, odd, e.doubles(0x1.62e42fefa39efp-1));
    e.vmulpd(d, d, odd);
    e.vaddpd(d, d, e.doubles(1.0));
    e.vpaddq(shifted, shifted, e.doubles(std::bit_cast<double>(uint64_t{1023})));
    e.vpsllq(shifted, shifted, 52);
    e.vmulpd(d, d, shifted);
  });
  // Nothing denormal, and the two inputs that sfu.h names.
  e.vcmpps(even, to, e.constant(0x00800000), kNotLess);
  e.vandps(to, to, even);
  constexpr struct {
    float x, result;
  } kTies[] = {{0x1.853a6ep-9f, 0x1.00870ap+0f}, {-0x1.e7526ep-6f, 0x1.f58d62p-1f}};
  for (const auto& tie : kTies)
    replace(e, to, x, kEqual, std::bit_cast<uint32_t>(tie.x), std::bit_cast<uint32_t>(tie.result));
}

void log2(Emitter& e, const Ymm& to, const Source& a, const Source&) {
  const Ymm x = e.in_register(a), n = e.scratch(), t = e.scratch(), t2 = e.scratch(), even = e.scratch(),
            odd = e.scratch();
  on_quarters(e, to, x, [&](const Ymm& s) {
    // n is the signed number of the upper 12 bits.
    e.vpsubq(t, s, e.doubles(std::bit_cast<double>(uint64_t{0x3fe6a09e667f3bcd})));
    e.vpsrad(n, t, 20);
    e.vpshufd(n, n, 0xf5);
    e.vpsrad(t2, n, 31);
    e.vpblendd(n, n, t2, 0xaa);
    e.vpsllq(t, n, 52);
    e.vpsubq(s, s, t);  // m
    e.vaddpd(t, s, e.doubles(1.0));
    e.vsubpd(s, s, e.doubles(1.0));
    e.vdivpd(s, s, t);
    e.vmulpd(t, s, s);
    e.vmulpd(t2, t, t);
    polynomial(e, even, t2, {0x1.c46e14404048fp-3, 0x1.484afb7a67652p-2, 0x1.2776c50ee39dcp-1});
    e.vmulpd(even, even, t2);
    polynomial(e, odd, t2,
               {0x1.b592d3c48c703p-3, 0x1.0ca160627dbfdp-2, 0x1.a61762d693934p-2, 0x1.ec709dc3a047dp-1});
    e.vmulpd(odd, t, odd);
    e.vaddpd(odd, odd, even);
    e.vmulpd(odd, s, odd);
    e.vmulpd(s, s, e.doubles(0x1.71547652b82fep+1));
    e.vaddpd(s, s, odd);
    e.vpaddq(n, n, e.doubles(std::bit_cast<double>(uint64_t{0x4338000000000000})));
    e.vsubpd(n, n, e.doubles(0x1.8p52));
    e.vaddpd(s, n, s);
  });
  // What is not a positive number.
  const Ymm special = t, lanes = n;
  e.vmovaps(special, x);
  replace(e, special, x, kEqual, 0, kMinusInfinity);
  replace(e, special, x, kLess, 0, kNan);
  e.vcmpps(lanes, x, e.constant(0), kGreater);
  e.vcmpps(even, x, e.constant(kInfinity), kLess);
  e.vandps(lanes, lanes, even);
  e.vblendvps(to, special, to, lanes);
}

void sine(Emitter& e, const Ymm& to, const Source& a, const Source&) {
  const Ymm x = e.in_register(a), t = e.scratch(), t2 = e.scratch(), even = e.scratch(), odd = e.scratch();
  on_quarters(e, to, x, [&](const Ymm& d) {
    e.vmulpd(t, d, d);
    e.vmulpd(t2, t, t);
    polynomial(e, even, t2,
               {0x1.9d462020fcc78p-21, 0x1.e8f3675ee37ddp-12, 0x1.5078348551854p-4, 0x1.466bc6775aa7dp+1});
    e.vmulpd(even, even, t2);
    polynomial(e, odd, t2,
               {-0x1.6f7acdb8f6580p-16, -0x1.e3074dfaf87afp-8, -0x1.32d2cce627c86p-1, -0x1.4abbce625be52p+2});
    e.vmulpd(odd, t, odd);
    e.vaddpd(odd, odd, even);
    e.vmulpd(odd, d, odd);
    e.vmulpd(d, d, e.doubles(0x1.921fb54442d18p+1));
    e.vaddpd(d, d, odd);
  });
  replace(e, to, x, kGreater, kHalf, kOne);
  replace(e, to, x, kLess, kMinusHalf, kMinusOne);
}

}  // namespace v3d::qpu::jit::avx2
