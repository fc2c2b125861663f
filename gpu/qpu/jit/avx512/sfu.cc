/// @file The special functions of gpu/qpu/run/sfu.h, step by step: polynomials on two halves of eight
/// doubles.

#include "gpu/qpu/jit/avx512/sfu.h"

#include <bit>
#include <initializer_list>

#include "gpu/qpu/jit/avx512/emitter.h"

namespace v3d::qpu::jit::avx512 {

using Xbyak::Ymm;
using Xbyak::Zmm;

namespace {

enum Predicate : uint8_t { kEqual = 0, kLess = 1, kNotLess = 5, kGreater = 14 };
constexpr uint32_t kOne = 0x3f800000, kMinusOne = 0xbf800000, kHalf = 0x3f000000, kMinusHalf = 0xbf000000,
                   kInfinity = 0x7f800000, kMinusInfinity = 0xff800000, kNan = 0x7fc00000;

Ymm half_of(const Zmm& reg) { return Ymm(reg.getIdx()); }

Xbyak::Address quadwords(Emitter& e, uint64_t bits) { return e.doubles(std::bit_cast<double>(bits)); }

/// ((a x + b) x + c) ... of the coefficients.
void polynomial(Emitter& e, const Zmm& to, const Zmm& x, std::initializer_list<double> coefficients) {
  const double* c = coefficients.begin();
  e.vbroadcastsd(to, e.doubles(*c, false));
  while (++c != coefficients.end()) {
    e.vmulpd(to, to, x);
    e.vaddpd(to, to, e.doubles(*c));
  }
}

/// The result of `eight` on the doubles of all lanes, in kUnpackedA. @param x  kept in Frame::a
template <typename Eight>
void on_halves(Emitter& e, const Zmm& x, const Eight& eight) {
  const auto argument = e.in_frame(offsetof(Frame, a));
  e.vmovaps(argument, x);
  for (const bool high : {false, true}) {
    e.vcvtps2pd(e.kTemp, e.yword[e.kFrame + offsetof(Frame, a) + (high ? 32 : 0)]);
    eight();
    e.vcvtpd2ps(half_of(high ? e.kTemp : e.kUnpackedA), e.kTemp);
  }
  e.vinsertf64x4(e.kUnpackedA, e.kUnpackedA, half_of(e.kTemp), 1);
}

}  // namespace

void exp2(Emitter& e, const Zmm& to, const Source& a, const Source&) {
  const Zmm &d = e.kTemp, &shifted = e.kTemp2, &f2 = e.kTemp3, &even = e.kUnpackedB, &odd = e.kResultMul;
  const Zmm x = e.in_register(a, e.kTemp);
  e.vbroadcastss(e.kTemp2, e.constant(0x43480000, false));  // 200
  e.vminps(e.kTemp2, e.kTemp2, x);                          // the second one if that is NaN
  e.vbroadcastss(e.kTemp3, e.constant(0xc3480000, false));
  e.vmaxps(e.kTemp2, e.kTemp3, e.kTemp2);
  on_halves(e, e.kTemp2, [&] {
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
    e.vpaddq(shifted, shifted, quadwords(e, 1023));
    e.vpsllq(shifted, shifted, 52);
    e.vmulpd(d, d, shifted);
  });
  // Nothing denormal, and the two inputs that sfu.h names.
  const Zmm& result = e.kUnpackedA;
  e.vcmpps(e.kScratchMask, result, e.constant(0x00800000), kNotLess);
  e.vmovaps(result | e.kScratchMask | e.T_z, result);
  e.vmovaps(e.kTemp, e.in_frame(offsetof(Frame, a)));
  constexpr struct {
    float x, result;
  } kTies[] = {{0x1.853a6ep-9f, 0x1.00870ap+0f}, {-0x1.e7526ep-6f, 0x1.f58d62p-1f}};
  for (const auto& tie : kTies) {
    e.vcmpps(e.kScratchMask, e.kTemp, e.constant(std::bit_cast<uint32_t>(tie.x)), kEqual);
    e.vbroadcastss(result | e.kScratchMask, e.constant(std::bit_cast<uint32_t>(tie.result), false));
  }
  e.vmovaps(to, result);
}

void log2(Emitter& e, const Zmm& to, const Source& a, const Source&) {
  const Zmm &s = e.kTemp, &n = e.kTemp2, &t = e.kTemp3, &t2 = e.kResultAdd, &even = e.kUnpackedB,
            &odd = e.kResultMul;
  on_halves(e, e.in_register(a, e.kTemp), [&] {
    e.vpsubq(n, s, quadwords(e, 0x3fe6a09e667f3bcd));
    e.vpsraq(n, n, 52);
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
    e.vpaddq(n, n, quadwords(e, 0x4338000000000000));
    e.vsubpd(n, n, e.doubles(0x1.8p52));
    e.vaddpd(s, n, s);
  });
  // What is not a positive number.
  const Zmm &x = e.kTemp, &special = e.kTemp2;
  e.vmovaps(x, e.in_frame(offsetof(Frame, a)));
  e.vmovaps(special, x);
  e.vcmpps(e.kScratchMask, x, e.constant(0), kEqual);
  e.vbroadcastss(special | e.kScratchMask, e.constant(kMinusInfinity, false));
  e.vcmpps(e.kScratchMask, x, e.constant(0), kLess);
  e.vbroadcastss(special | e.kScratchMask, e.constant(kNan, false));
  e.vcmpps(e.kScratchMask, x, e.constant(0), kGreater);
  e.vcmpps(e.kScratchMask | e.kScratchMask, x, e.constant(kInfinity), kLess);
  e.vmovaps(special | e.kScratchMask, e.kUnpackedA);
  e.vmovaps(to, special);
}

void sine(Emitter& e, const Zmm& to, const Source& a, const Source&) {
  const Zmm &d = e.kTemp, &t = e.kTemp2, &t2 = e.kTemp3, &even = e.kUnpackedB, &odd = e.kResultMul;
  on_halves(e, e.in_register(a, e.kTemp), [&] {
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
  e.vmovaps(e.kTemp, e.in_frame(offsetof(Frame, a)));
  e.vcmpps(e.kScratchMask, e.kTemp, e.constant(kHalf), kGreater);
  e.vbroadcastss(e.kUnpackedA | e.kScratchMask, e.constant(kOne, false));
  e.vcmpps(e.kScratchMask, e.kTemp, e.constant(kMinusHalf), kLess);
  e.vbroadcastss(e.kUnpackedA | e.kScratchMask, e.constant(kMinusOne, false));
  e.vmovaps(to, e.kUnpackedA);
}

}  // namespace v3d::qpu::jit::avx512
