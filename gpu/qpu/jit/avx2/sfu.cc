/// @file The special functions of gpu/qpu/run/sfu.h, step by step: polynomials on two times four doubles.

#include "gpu/qpu/jit/avx2/sfu.h"

#include "gpu/qpu/jit/code/predicates.h"
#include "gpu/qpu/jit/code/sfu_steps.h"

namespace v3d::qpu::jit::avx2 {

using sfu_steps::kHalf, sfu_steps::kInfinity, sfu_steps::kLeastNormal, sfu_steps::kMinusHalf,
    sfu_steps::kMinusInfinity, sfu_steps::kMinusOne, sfu_steps::kMinusTwoHundred, sfu_steps::kNan,
    sfu_steps::kOne, sfu_steps::kTies, sfu_steps::kTwoHundred, sfu_steps::Tie;
using Xbyak::Xmm;
using Xbyak::Ymm;

namespace {

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
  e.vmovaps(x, e.constant(kTwoHundred));
  e.vminps(x, x, a.operand());  // the second one if that is NaN
  e.vmovaps(even, e.constant(kMinusTwoHundred));
  e.vmaxps(x, even, x);
  on_quarters(e, to, x, [&](const Ymm& d) { sfu_steps::exp2(e, d, shifted, f2, even, odd); });
  // Nothing denormal, and the two inputs that sfu.h names.
  e.vcmpps(even, to, e.constant(kLeastNormal), kNotLess);
  e.vandps(to, to, even);
  for (const Tie& tie : kTies) replace(e, to, x, kEqual, tie.x, tie.result);
}

void log2(Emitter& e, const Ymm& to, const Source& a, const Source&) {
  const Ymm x = e.in_register(a), n = e.scratch(), t = e.scratch(), t2 = e.scratch(), even = e.scratch(),
            odd = e.scratch();
  on_quarters(e, to, x, [&](const Ymm& s) {
    sfu_steps::log2(e, s, n, t, t2, even, odd, [&] {
      e.vpsrad(n, n, 20);
      e.vpshufd(n, n, 0xf5);
      e.vpsrad(t2, n, 31);
      e.vpblendd(n, n, t2, 0xaa);
    });
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
  on_quarters(e, to, x, [&](const Ymm& d) { sfu_steps::sine(e, d, t, t2, even, odd); });
  replace(e, to, x, kGreater, kHalf, kOne);
  replace(e, to, x, kLess, kMinusHalf, kMinusOne);
}

}  // namespace v3d::qpu::jit::avx2
