/// @file Code of what reaches outside of the graph: the thread, streams, ports.

#include <cstddef>

#include "gpu/qpu/isa/vc4.h"
#include "gpu/qpu/jit/graph/calls.h"
#include "gpu/qpu/jit/graph/emitter.h"
#include "gpu/qpu/jit/graph/frame.h"
#include "gpu/qpu/run/vc4_thread.h"

namespace v3d::qpu::jit {
namespace {

using vc4::Thread;

constexpr size_t lookup_of(uint32_t unit) {
  using Unit = Thread::Pending::Unit;
  return offsetof(Thread, pending.tmu) + unit * sizeof(Unit) + offsetof(Unit, lookup);
}

}  // namespace

void GraphEmitter::load_mask(const Node& node) {
  const int to = result(node);
  const Xbyak::Address from = word[kThread + static_cast<int>(node.immediate)];
  if (wide_) {
    kmovw(k1, from);
    vpmovm2d(vector(to, 0), k1);
    return;
  }
  movzx(eax, from);
  vmovd(Xbyak::Xmm(scratch(0).getIdx()), eax);
  vpbroadcastd(scratch(0), Xbyak::Xmm(scratch(0).getIdx()));
  uses_lane_bits_ = true;
  for (int p = 0; p < parts_; ++p) {
    vmovdqa(scratch(1), ptr[rip + lane_bits_ + 32 * p]);
    vpand(vector(to, p), scratch(0), scratch(1));
    vpcmpeqd(vector(to, p), vector(to, p), scratch(1));
  }
}

/// For who finds that there is no memory, or that the thread hangs.
void GraphEmitter::note_place(const Node& node) {
  mov(dword[kThread + offset_of(offsetof(Thread, pc))], code_ + node.step * 8u);
}

void GraphEmitter::uniform(const Node& node) {
  const int to = result(node);
  note_place(node);
  vpbroadcastd(vector(to, 0), ptr[kUniforms + 4 * static_cast<int>(node.immediate)]);
  if (!wide_) vmovdqa(vector(to, 1), vector(to, 0));
}

void GraphEmitter::fetch(const Node& node) {
  const int to = result(node);
  for (int p = 0; p < parts_; ++p)
    vmovups(vector(to, p), ptr[kThread + static_cast<int>(node.immediate) + 32 * p]);
}

void GraphEmitter::load_row(const Node& node) {
  const int to = result(node);
  mov(rax, ptr[kThread + offset_of(offsetof(Thread, vpm_in.rows))]);
  for (int p = 0; p < parts_; ++p)
    vmovups(vector(to, p), ptr[rax + static_cast<int>(node.immediate) * kLaneBytes + 32 * p]);
}

/// Who does all once more because a result is unsure stores the same rows again.
void GraphEmitter::store_row(const Node& node) {
  mov(rax, ptr[kThread + offset_of(offsetof(Thread, vpm_out.rows))]);
  const int from = in_register(node.operands[0]);
  for (int p = 0; p < parts_; ++p)
    vmovups(ptr[rax + static_cast<int>(node.immediate) * kLaneBytes + 32 * p], vector(from, p));
  consume(node);
}

void GraphEmitter::mask_to(const Xbyak::Reg32& to, Id mask) {
  if (graph_.is_constant(mask)) {
    mov(to, graph_[mask].immediate & kAllLanes);
    return;
  }
  const int from = in_register(mask);
  if (wide_) {
    vpmovd2m(k1, vector(from, 0));
    kmovw(to, k1);
    return;
  }
  vmovmskps(to, vector(from, 0));
  vmovmskps(eax, vector(from, 1));
  shl(eax, 8);
  or_(to, eax);
}

// ---- Lookups

void GraphEmitter::copy_uniform(uint32_t index, uint32_t unit, uint32_t parameter) {
  mov(ecx, dword[kUniforms + 4 * static_cast<int>(index)]);
  mov(dword[kThread + offset_of(lookup_of(unit) + offsetof(vc4::Lookup, p) + 4 * parameter)], ecx);
}

/// T, R or B, with the uniform that comes with each.
void GraphEmitter::parameter(const Node& node) {
  constexpr size_t kValues[] = {0, offsetof(vc4::Lookup, t), offsetof(vc4::Lookup, r),
                                offsetof(vc4::Lookup, b)};
  const uint32_t unit = node.immediate & 1, which = node.immediate >> 1 & 3;
  note_place(node);
  copy_uniform(node.immediate >> 16, unit, node.immediate >> 4 & 15);
  const int from = in_register(node.operands[0]);
  for (int p = 0; p < parts_; ++p)
    vmovups(ptr[kThread + offset_of(lookup_of(unit) + kValues[which]) + 32 * p], vector(from, p));
  consume(node);
}

void GraphEmitter::look_up(const Node& node) {
  note_place(node);
  if ((node.immediate >> 1 & 7) != 0)
    copy_uniform(node.immediate >> 16, node.immediate & 1, node.immediate >> 4 & 15);
  check_sure();  // others would find no memory elsewhere
  call_interpreter(node);
  if (!notes_unsure_) return;
  const Xbyak::Xmm sum(kUnsureUnit);
  vpxord(sum, sum, sum);
}

/// A function of the interpreter does it: nothing is in registers behind it.
void GraphEmitter::call_interpreter(const Node& node) {
  const int operands = graph::info(node.op).operands;
  const bool is_write = node.op == Op::kWritePort;
  // Lookups do not depend on how denormals are taken: they have the host's mode where that matters.
  if (!wide_ || node.op != Op::kLookup) set_mode(Mode::kHost);
  if (is_write) mask_to(edx, node.operands[1]);
  if (operands != 0) {
    const Id id = node.operands[0];
    const Op op = graph_[id].op;
    if (places_[id].slot >= 0 || (places_[id].home && (op == Op::kLoad || op == Op::kVarying))) {
      lea(rsi, memory_of(id, 0, false));
    } else {
      const int from = in_register(id);
      for (int p = 0; p < parts_; ++p) vmovaps(ptr[rsp + kOperands + 32 * p], vector(from, p));
      lea(rsi, ptr[rsp + kOperands]);
    }
  }
  consume(node);
  vacate_all();
  if (!is_write) {
    Place& place = places_[static_cast<size_t>(&node - graph_.nodes().data())];
    place.slot = static_cast<int16_t>(num_slots_++);
    lea(r8, slot(place.slot, 0));
  }
  note_place(node);
  mov(ecx, node.immediate);
  mov(rdi, kThread);
  mov(rax, reinterpret_cast<size_t>(find_call(node.op)));
  vzeroupper();
  call(rax);
  test(rax, rax);
  jnz(leave_, T_NEAR);
}

}  // namespace v3d::qpu::jit
