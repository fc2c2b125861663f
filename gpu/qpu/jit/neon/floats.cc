/// @file Code of operations of V3D 4.2 and 7.1 on floats and halves.

#include <cstdint>

#include "gpu/base/arithmetic.h"
#include "gpu/qpu/jit/neon/emitter.h"
#include "gpu/qpu/jit/neon/frame.h"

namespace v3d::qpu::jit::neon {

/// max_floats and min_floats give the second operand where they are equal, or one is a NaN. The instruction
/// gives it where the first is a quiet NaN, and tells zeros apart.
void Emitter::limit(const Node& node) {
  constexpr uint32_t kSign = 0x80000000, kInfinity = 0x7f800000;
  const bool is_max = node.op == Op::kMaxFloats;
  const Id a = node.operands[0], b = node.operands[1];
  const uint32_t bound = graph_[b].immediate;
  const bool is_one_instruction =
      graph_.is_constant(b) && (bound & ~kSign) <= kInfinity && is_quiet_[a] && bound != (is_max ? kSign : 0);
  const Operand x = operand(a, 0), y = operand(b, 1);
  if (is_one_instruction) {
    const int to = result(node);
    for (int p = 0; p < kParts; ++p)
      is_max ? masm_.Fmaxnm(part(to, p), at(x, p), at(y, p)) : masm_.Fminnm(part(to, p), at(x, p), at(y, p));
    return;
  }
  const auto [to, instead] = result_of_two(node, a, x, b, y, graph::kNoNode);
  for (int p = 0; p < kParts; ++p) {
    const Vector d = part(to, p), from_a = at(x, p), from_b = at(y, p),
                 takes_a = instead == Instead::kNone ? d : scratch(2);
    is_max ? masm_.Fcmgt(takes_a, from_a, from_b) : masm_.Fcmgt(takes_a, from_b, from_a);
    if (instead == Instead::kB)
      masm_.Bit(d.V16B(), from_a.V16B(), takes_a.V16B());
    else if (instead == Instead::kA)
      masm_.Bif(d.V16B(), from_b.V16B(), takes_a.V16B());
    else
      masm_.Bsl(d.V16B(), from_a.V16B(), from_b.V16B());
  }
}

void Emitter::round(const Node& node) {
  const int a = in_register(node.operands[0]), to = result(node);
  for (int p = 0; p < kParts; ++p) {
    const Vector d = part(to, p), from = part(a, p);
    switch (static_cast<Rounding>(node.immediate)) {
      case Rounding::kNearestEven:
        masm_.Frintn(d, from);
        break;
      case Rounding::kDown:
        masm_.Frintm(d, from);
        break;
      case Rounding::kUp:
        masm_.Frintp(d, from);
        break;
      default:
        masm_.Frintz(d, from);
    }
  }
}

void Emitter::convert_half(const Node& node) {
  const int a = in_register(node.operands[0]), to = result(node);
  for (int p = 0; p < kParts; ++p) {
    const Vector d = part(to, p), from = part(a, p), halves = d.V4H();
    node.op == Op::kFloatOfHalf ? masm_.Xtn(halves, from) : masm_.Fcvtn(halves, from);
    node.op == Op::kHalfOf ? masm_.Ushll(d, halves, 0) : masm_.Fcvtl(d, halves);
  }
}

}  // namespace v3d::qpu::jit::neon
