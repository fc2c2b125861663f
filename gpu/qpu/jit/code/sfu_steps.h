/// Emitters of all hosts emit these steps for the special functions of gpu/qpu/run/sfu.h, on registers of
/// doubles. An Emitter has doubles(), operands of the same double everywhere, and fill().
#pragma once

#include <bit>
#include <cstdint>
#include <initializer_list>

namespace v3d::qpu::jit::sfu_steps {

inline constexpr uint32_t kOne = 0x3f800000;

template <typename Emitter>
auto quadwords(Emitter& e, uint64_t bits) {
  return e.doubles(std::bit_cast<double>(bits));
}

/// ((a x + b) x + c) ... of the coefficients.
template <typename Emitter, typename Vector>
void polynomial(Emitter& e, const Vector& to, const Vector& x, std::initializer_list<double> coefficients) {
  const double* c = coefficients.begin();
  e.fill(to, *c);
  while (++c != coefficients.end()) {
    e.vmulpd(to, to, x);
    e.vaddpd(to, to, e.doubles(*c));
  }
}

/// d, between -200 and 200, becomes 2^d. All others are changed.
template <typename Emitter, typename Vector>
void exp2(Emitter& e, const Vector& d, const Vector& shifted, const Vector& f2, const Vector& even,
          const Vector& odd) {
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
}

/// s, a positive number, becomes log2(s). All others are changed.
/// @param take_exponent  n becomes the signed number of its upper 12 bits, with the help of t2
template <typename Emitter, typename Vector, typename TakeExponent>
void log2(Emitter& e, const Vector& s, const Vector& n, const Vector& t, const Vector& t2, const Vector& even,
          const Vector& odd, const TakeExponent& take_exponent) {
  e.vpsubq(n, s, quadwords(e, 0x3fe6a09e667f3bcd));
  take_exponent();
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
}

}  // namespace v3d::qpu::jit::sfu_steps
