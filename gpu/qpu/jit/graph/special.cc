/// @file The special functions of gpu/qpu/run/sfu.h: on doubles, a few lanes at a time.

#include <bit>
#include <cstddef>

#include "gpu/base/lanes.h"
#include "gpu/qpu/jit/code/sfu_steps.h"
#include "gpu/qpu/jit/graph/emitter.h"
#include "gpu/qpu/jit/graph/frame.h"

namespace v3d::qpu::jit {

using graph::Node;
using graph::Op;
using Xbyak::Xmm;
using Xbyak::Ymm;

Xbyak::Address GraphEmitter::doubles(double value) {
  Xbyak::Label& label = doubles_[std::bit_cast<uint64_t>(value)];
  return wide_ ? ptr_b[rip + label] : ptr[rip + label];
}

void GraphEmitter::fill(const Xmm& to, double value) {
  Xbyak::Label& label = doubles_[std::bit_cast<uint64_t>(value)];
  if (wide_)
    vbroadcastsd(Xbyak::Zmm(to.getIdx()), ptr[rip + label]);
  else
    vmovupd(to, ptr[rip + label]);
}

void GraphEmitter::reciprocal(const Node& node) {
  set_mode(wide_ ? Mode::kOwn : Mode::kHost);
  const int a = in_register(node.operands[0]), to = result(node);
  if (wide_) {
    vbroadcastss(scratch(0), ptr[rip + constants_[sfu_steps::kOne]]);
  } else {
    vmovaps(scratch(0), constant(sfu_steps::kOne));
  }
  for (int p = 0; p < parts_; ++p) vdivps(vector(to, p), scratch(0), vector(a, p));
}

/// The node's result by fn(), which computes with the doubles of few lanes in the first of its registers and
/// changes the others. @param argument  the unit of the operand
template <typename Fn>
void GraphEmitter::on_doubles(const Node& node, int argument, Fn fn) {
  // Room for the doubles, in units that are free then.
  std::array<Vector, 6> temporary;
  for (auto next = temporary.begin(); next != temporary.end();) {
    const int unit = new_unit();
    locked_ |= 1u << unit;
    for (int p = 0; p < parts_; ++p) *next++ = vector(unit, p);
  }
  for (int p = 0; p < parts_; ++p) vmovaps(ptr[rsp + kOperands + bytes_of_part_ * p], vector(argument, p));
  const int to = result(node, true);
  const int lanes = wide_ ? 8 : 4, of_part = 2 * lanes;
  for (int lane = 0; lane < parts_ * of_part; lane += lanes) {
    const Vector& d = temporary[0];
    vcvtps2pd(d, ptr[rsp + kOperands + 4 * lane]);
    fn(temporary);
    const int part = lane / of_part;
    const bool upper = lane % of_part != 0;
    const int into = upper ? scratch(0).getIdx() : vector(to, part).getIdx();
    if (wide_) {
      vcvtpd2ps(Ymm(into), d);
      if (upper)
        vinsertf64x4(Xbyak::Zmm(vector(to, part).getIdx()), Xbyak::Zmm(vector(to, part).getIdx()), Ymm(into),
                     1);
    } else {
      vcvtpd2ps(Xmm(into), d);
      if (upper) vinsertf128(Ymm(2 * to + part), Ymm(2 * to + part), Xmm(into), 1);
    }
  }
}

/// d, a positive number, becomes 1 / sqrt(d): an estimate and two steps of Newton's. For all floats the float
/// next to it is the one next to the exact number.
void GraphEmitter::reciprocal_root(const Vector& d, const std::array<Vector, 6>& temporary) {
  const Vector &y = temporary[1], &error = temporary[2], &half = temporary[3];
  vrsqrt14pd(y, d);
  for (int step = 0; step < 2; ++step) {
    vmulpd(error, d, y);
    vfnmadd213pd(error, y, doubles(1.0));  // 1 - d y^2
    vmulpd(half, y, doubles(0.5));
    vfmadd231pd(y, half, error);
  }
  vmovapd(d, y);
}

void GraphEmitter::special(const Node& node) {
  set_mode(wide_ ? Mode::kOwn : Mode::kHost);
  const int argument = in_register(node.operands[0]);
  using Temporary = std::array<Vector, 6>;
  switch (node.op) {
    case Op::kReciprocalRoot:
      return on_doubles(node, argument, [&](const Temporary& t) {
        const Vector& d = t[0];
        if (wide_) {
          reciprocal_root(d, t);
        } else {
          vsqrtpd(d, d);
          vmovupd(t[1], doubles(1.0));
          vdivpd(d, t[1], d);
        }
      });
    case Op::kExp2:
      return on_doubles(node, argument,
                        [&](const Temporary& t) { sfu_steps::exp2(*this, t[0], t[1], t[2], t[3], t[4]); });
    default:
      return on_doubles(node, argument, [&](const Temporary& t) {
        sfu_steps::log2(*this, t[0], t[1], t[2], t[3], t[4], t[5], [&] {
          if (wide_) {
            vpsraq(t[1], t[1], 52);
          } else {  // AVX2 shifts no signed quadwords
            vpsrad(t[3], t[1], 20);
            vpshufd(t[1], t[3], 0xf5);
            vpsrad(t[3], t[3], 31);
            vpblendd(t[1], t[1], t[3], 0xaa);
          }
        });
      });
  }
}

}  // namespace v3d::qpu::jit
