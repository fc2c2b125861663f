/// @file Sums, products and integers that the host does not give: a function of the interpreter computes
/// them.

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "gpu/qpu/jit/graph/calls.h"
#include "gpu/qpu/jit/graph/emitter.h"
#include "gpu/qpu/jit/graph/frame.h"

namespace v3d::qpu::jit {
namespace {

constexpr uint32_t kSign = 0x80000000;

}  // namespace

/// Of a value that only those take that do not tell one zero from the other.
void GraphEmitter::find_loose_zeros() {
  const auto& nodes = graph_.nodes();
  zero_is_loose_.assign(nodes.size(), true);
  for (size_t n = nodes.size(); n-- > 0;) {
    const Node& node = nodes[n];
    const bool with_constant = graph::info(node.op).operands == 2 && graph_.is_constant(node.operands[1]);
    const uint32_t constant = with_constant ? graph_[node.operands[1]].immediate : 0;
    bool takes_any = node.op == Op::kSum || node.op == Op::kProduct || node.op == Op::kIntegerOf;
    if (with_constant) {
      takes_any |= node.op == Op::kAnd && (constant & kSign) == 0;
      takes_any |= node.op == Op::kMax && constant == 0;
    }
    for (int i = 0; i < graph::info(node.op).operands; ++i) {
      const bool changes_sign = with_constant && node.op == Op::kXor && constant == kSign;
      const bool is_limited =
          with_constant && node.op == Op::kMin && (constant & kSign) == 0 && constant != 0;
      const bool passes_on = changes_sign || is_limited || (node.op == Op::kChoose && i != 0);
      if (!takes_any && !(passes_on && zero_is_loose_[n])) zero_is_loose_[node.operands[i]] = false;
    }
  }
}

void GraphEmitter::unsure_results() {
  constexpr Op kOps[] = {Op::kSum, Op::kProduct, Op::kIntegerOf};
  Xbyak::Label routines[std::size(kOps)];
  bool has[std::size(kOps)] = {};
  for (Unsure& u : unsure_) {
    const auto which = static_cast<size_t>(std::find(kOps, std::end(kOps), u.op) - kOps);
    has[which] = true;
    L(u.entry);
    for (int n = 0; n < graph::info(u.op).operands; ++n) {
      for (int p = 0; p < parts_; ++p) {
        Vector from = u.operands[n].unit >= 0 ? vector(u.operands[n].unit, p) : vector(u.to, p);
        if (u.operands[n].unit < 0) {
          const Xbyak::Address& memory = u.memory[static_cast<size_t>(p)];
          if (memory.isBroadcast())
            vpbroadcastd(from, ptr[rip + constants_[graph_[u.operands[n].id].immediate]]);
          else
            vmovups(from, memory);
        }
        vmovaps(ptr[rsp + kOperands + kLaneBytes * n + 32 * p], from);
      }
    }
    call(routines[which]);
    for (int p = 0; p < parts_; ++p) vmovaps(vector(u.to, p), ptr[rsp + kOperands + 32 * p]);
    jmp(u.back, T_NEAR);
  }
  for (size_t which = 0; which < std::size(kOps); ++which)
    if (has[which]) unsure_routine(kOps[which], routines[which]);
}

/// Leaves all vector registers as they are.
void GraphEmitter::unsure_routine(Op op, Xbyak::Label& label) {
  constexpr int kReturn = 8;
  const auto for_each = [&](auto fn) {
    for (int n = 0; n < (wide_ ? 32 : 16); ++n)
      fn(Vector(wide_ ? Xbyak::Operand::ZMM : Xbyak::Operand::YMM, n),
         ptr[rsp + 2 * kReturn + kSaved + (wide_ ? 64 : 32) * n]);
  };
  L(label);
  sub(rsp, kReturn);
  for_each([&](const Vector& v, const Xbyak::Address& to) { vmovups(to, v); });
  stmxcsr(ptr[rsp + 2 * kReturn + kModeBefore]);
  ldmxcsr(ptr[rip + host_mode_]);
  lea(rdi, ptr[rsp + 2 * kReturn + kOperands]);
  lea(rsi, ptr[rsp + 2 * kReturn + kOperands + kLaneBytes]);
  mov(rax, reinterpret_cast<size_t>(find_exact(op)));
  vzeroupper();
  call(rax);
  ldmxcsr(ptr[rsp + 2 * kReturn + kModeBefore]);
  for_each([&](const Vector& v, const Xbyak::Address& from) { vmovups(v, from); });
  add(rsp, kReturn);
  ret();
}

}  // namespace v3d::qpu::jit
