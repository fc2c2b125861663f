/// @file Results that the host does not give: sums, products and integers of V3D 2.1, which a function of the
/// interpreter computes, and NaNs of V3D 4.2 and 7.1.

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "gpu/qpu/jit/graph/calls.h"
#include "gpu/qpu/jit/neon/emitter.h"
#include "gpu/qpu/jit/neon/frame.h"

namespace v3d::qpu::jit::neon {
namespace {

using namespace vixl::aarch64;  // NOLINT(google-build-using-namespace): registers have their names

}  // namespace

Emitter::Unsure& Emitter::unsure_of(const Node& node, int to, const Operand& a, const Operand& b) {
  unsure_.emplace_back();
  Unsure& unsure = unsure_.back();
  unsure.op = node.op;
  unsure.to = to;
  unsure.operands[0] = {a.unit, node.operands[0]};
  unsure.operands[1] = {b.unit, node.operands[1]};
  return unsure;
}

void Emitter::unsure_results() {
  constexpr Op kOps[] = {Op::kSum, Op::kProduct, Op::kIntegerOf};
  Label routines[std::size(kOps)];
  bool has[std::size(kOps)] = {};
  for (Unsure& u : unsure_) {
    const auto which = static_cast<size_t>(std::find(kOps, std::end(kOps), u.op) - kOps);
    masm_.Bind(&u.entry);
    if (which == std::size(kOps)) {
      first_nans(u);
      masm_.B(&u.back);
      continue;
    }
    has[which] = true;
    for (int n = 0; n < graph::info(u.op).operands; ++n) {
      const Memory to = {sp, kOperands + n * kLaneBytes};
      if (u.operands[n].unit >= 0) {
        move(Way::kStore, u.operands[n].unit, to);
        continue;
      }
      spread_word(scratch(0), u.operands[n].id);
      for (int p = 0; p < kParts; p += 2)
        move(Way::kStore, scratch(0), scratch(0), {sp, to.offset + p * kPartBytes});
    }
    masm_.Bl(&routines[which]);
    move(Way::kLoad, u.to, {sp, kOperands});
    masm_.B(&u.back);
  }
  for (size_t which = 0; which < std::size(kOps); ++which)
    if (has[which]) unsure_routine(kOps[which], routines[which]);
}

/// Leaves all vector registers, and the mode, as they are.
void Emitter::unsure_routine(Op op, Label& label) {
  masm_.Bind(&label);
  masm_.Str(x30, MemOperand(sp, kLink));
  move_all(Way::kStore);
  masm_.Mrs(x9, FPCR);
  masm_.Str(x9, MemOperand(sp, kLink + 8));
  masm_.Msr(FPCR, kHostMode);
  masm_.Add(x0, sp, kOperands);
  masm_.Add(x1, sp, kOperands + kLaneBytes);
  call(reinterpret_cast<const void*>(find_exact(op)));
  masm_.Ldr(x9, MemOperand(sp, kLink + 8));
  masm_.Msr(FPCR, x9);
  move_all(Way::kLoad);
  masm_.Ldr(x30, MemOperand(sp, kLink));
  masm_.Ret();
}

// ---- NaNs

/// Whether the host may give another NaN than V3D 4.2 and 7.1, and somebody sees it: of two NaNs it prefers
/// those that signal, and where no operand is one, its own is positive. A number that is known rules both
/// out.
bool Emitter::gives_other_nans(const Node& node) const {
  if (nan_is_loose_[id_of(node)]) return false;
  const auto is_number = [&](Id id, bool may_be_zero) {
    constexpr uint32_t kMagnitude = 0x7fffffff, kInfinity = 0x7f800000;
    const uint32_t magnitude = graph_[id].immediate & kMagnitude;
    return graph_.is_constant(id) && magnitude < kInfinity && (may_be_zero || magnitude != 0);
  };
  const auto [a, b, c] = node.operands;
  switch (node.op) {
    case Op::kFloatSum:
    case Op::kFloatDifference:
      return !is_number(a, true) && !is_number(b, true);
    case Op::kFloatProduct:
    case Op::kFloatQuotient:
      return !is_number(a, false) && !is_number(b, false);
    default:  // kPlane: where there are no NaNs but one before, there is no other behind
      return true;
  }
}

/// Leaves the straight way where a lane of the result is a NaN.
/// @param to  a unit of its own
void Emitter::check_nans(const Node& node, int to, const Operand& a, const Operand& b) {
  Unsure& unsure = unsure_of(node, to, a, b);
  const Vector largest = scratch(2), other = zero();
  masm_.Fmax(largest, part(to, 0), part(to, 1));
  masm_.Fmax(other, part(to, 2), part(to, 3));
  masm_.Fmax(largest, largest, other);
  masm_.Fmaxv(largest.S(), largest);
  masm_.Fcmp(largest.S(), largest.S());
  masm_.B(&unsure.entry, vs);
  masm_.Bind(&unsure.back);
}

/// Where lanes of the result are NaNs, the first operand that is one, quiet, or else the one of x86-64.
void Emitter::first_nans(const Unsure& u) {
  constexpr uint32_t kNone = 0xffc00000;
  constexpr int kQuietByte = 0x40, kQuietShift = 16;
  const Vector none = zero(), nan = scratch(0), is_number = scratch(1), word = scratch(2);
  spread(none, kNone);
  for (int p = 0; p < kParts; ++p) {
    masm_.Mov(nan.V16B(), none.V16B());
    for (int n = graph::info(u.op).operands - 1; n >= 0; --n) {
      const auto& operand = u.operands[n];
      const Vector from = operand.unit >= 0 ? part(operand.unit, p) : word;
      if (operand.unit < 0) spread_word(word, operand.id);
      masm_.Fcmeq(is_number, from, from);
      masm_.Bif(nan.V16B(), from.V16B(), is_number.V16B());
    }
    masm_.Orr(nan, kQuietByte, kQuietShift);
    masm_.Fcmeq(is_number, part(u.to, p), part(u.to, p));
    masm_.Bif(part(u.to, p).V16B(), nan.V16B(), is_number.V16B());
  }
}

}  // namespace v3d::qpu::jit::neon
