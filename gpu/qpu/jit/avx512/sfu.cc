/// @file The special functions of gpu/qpu/run/sfu.h, step by step: polynomials on two halves of eight
/// doubles.

#include "gpu/qpu/jit/avx512/sfu.h"

#include "gpu/qpu/jit/avx512/emitter.h"
#include "gpu/qpu/jit/code/predicates.h"
#include "gpu/qpu/jit/code/sfu_steps.h"

namespace v3d::qpu::jit::avx512 {

using sfu_steps::kHalf, sfu_steps::kInfinity, sfu_steps::kLeastNormal, sfu_steps::kMinusHalf,
    sfu_steps::kMinusInfinity, sfu_steps::kMinusOne, sfu_steps::kMinusTwoHundred, sfu_steps::kNan,
    sfu_steps::kOne, sfu_steps::kTies, sfu_steps::kTwoHundred, sfu_steps::Tie;
using Xbyak::Ymm;
using Xbyak::Zmm;

namespace {

Ymm half_of(const Zmm& reg) { return Ymm(reg.getIdx()); }

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
  e.vbroadcastss(e.kTemp2, e.constant(kTwoHundred, false));
  e.vminps(e.kTemp2, e.kTemp2, x);  // the second one if that is NaN
  e.vbroadcastss(e.kTemp3, e.constant(kMinusTwoHundred, false));
  e.vmaxps(e.kTemp2, e.kTemp3, e.kTemp2);
  on_halves(e, e.kTemp2, [&] { sfu_steps::exp2(e, d, shifted, f2, even, odd); });
  // Nothing denormal, and the two inputs that sfu.h names.
  const Zmm& result = e.kUnpackedA;
  e.vcmpps(e.kScratchMask, result, e.constant(kLeastNormal), kNotLess);
  e.vmovaps(result | e.kScratchMask | e.T_z, result);
  e.vmovaps(e.kTemp, e.in_frame(offsetof(Frame, a)));
  for (const Tie& tie : kTies) {
    e.vcmpps(e.kScratchMask, e.kTemp, e.constant(tie.x), kEqual);
    e.vbroadcastss(result | e.kScratchMask, e.constant(tie.result, false));
  }
  e.vmovaps(to, result);
}

void log2(Emitter& e, const Zmm& to, const Source& a, const Source&) {
  const Zmm &s = e.kTemp, &n = e.kTemp2, &t = e.kTemp3, &t2 = e.kResultAdd, &even = e.kUnpackedB,
            &odd = e.kResultMul;
  on_halves(e, e.in_register(a, e.kTemp),
            [&] { sfu_steps::log2(e, s, n, t, t2, even, odd, [&] { e.vpsraq(n, n, 52); }); });
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
  on_halves(e, e.in_register(a, e.kTemp), [&] { sfu_steps::sine(e, d, t, t2, even, odd); });
  e.vmovaps(e.kTemp, e.in_frame(offsetof(Frame, a)));
  e.vcmpps(e.kScratchMask, e.kTemp, e.constant(kHalf), kGreater);
  e.vbroadcastss(e.kUnpackedA | e.kScratchMask, e.constant(kOne, false));
  e.vcmpps(e.kScratchMask, e.kTemp, e.constant(kMinusHalf), kLess);
  e.vbroadcastss(e.kUnpackedA | e.kScratchMask, e.constant(kMinusOne, false));
  e.vmovaps(to, e.kUnpackedA);
}

}  // namespace v3d::qpu::jit::avx512
