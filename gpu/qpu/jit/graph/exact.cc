/// @file Sums, products and integers that the host does not give: a function of the interpreter computes
/// them.

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "gpu/qpu/jit/graph/calls.h"
#include "gpu/qpu/jit/graph/emitter.h"
#include "gpu/qpu/jit/graph/frame.h"

namespace v3d::qpu::jit {
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
  L(label);
  sub(rsp, kReturn);
  save_vectors(2 * kReturn);
  stmxcsr(ptr[rsp + 2 * kReturn + kModeBefore]);
  ldmxcsr(ptr[rip + host_mode_]);
  lea(rdi, ptr[rsp + 2 * kReturn + kOperands]);
  lea(rsi, ptr[rsp + 2 * kReturn + kOperands + kLaneBytes]);
  mov(rax, reinterpret_cast<size_t>(find_exact(op)));
  vzeroupper();
  call(rax);
  ldmxcsr(ptr[rsp + 2 * kReturn + kModeBefore]);
  restore_vectors(2 * kReturn);
  add(rsp, kReturn);
  ret();
}

}  // namespace v3d::qpu::jit
