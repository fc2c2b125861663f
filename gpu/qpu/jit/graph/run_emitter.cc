#include "gpu/qpu/jit/graph/run_emitter.h"

#include <cstddef>

#include "gpu/qpu/isa/vc4.h"
#include "gpu/qpu/jit/graph/calls.h"
#include "gpu/qpu/jit/graph/facts.h"
#include "gpu/qpu/jit/graph/frame.h"
#include "gpu/qpu/run/vc4_compiled.h"
#include "gpu/qpu/run/vc4_thread.h"

namespace v3d::qpu::jit {
namespace {

using vc4::Thread;
using Xbyak::Reg64;

constexpr size_t lookup_of(uint32_t unit) {
  using Unit = Thread::Pending::Unit;
  return offsetof(Thread, pending.tmu) + unit * sizeof(Unit) + offsetof(Unit, lookup);
}

int units_of(Width width, bool is_sure) {
  constexpr int kUnitsOfAvx512 = 30, kUnitsOfAvx2 = 7;
  if (width == Width::kAvx2) return kUnitsOfAvx2;
  return is_sure ? kUnitsOfAvx512 : kUnsureUnit;
}

}  // namespace

RunEmitter::RunEmitter(const graph::Graph& graph, Width width, GpuAddr code, bool is_sure, void* buffer,
                       size_t bytes)
    : GraphEmitter(graph, width, units_of(width, is_sure), buffer, bytes), code_(code) {
  notes_unsure_ = wide_ && !is_sure;
}

Xbyak::Address RunEmitter::home_of(const Node& node, int part, bool /*spreads*/) {
  if (node.op == Op::kVarying)
    return ptr[kVaryings + static_cast<int>(node.immediate) * kLaneBytes + 32 * part];
  return ptr[kThread + static_cast<int>(node.immediate) + 32 * part];
}

// ---- Begin and end

/// What the code is not made for, it declines: varyings that are not there, results of lookups from before.
void RunEmitter::begin() {
  const Needs needs = needs_of(graph_);
  if (needs.varyings != 0) {
    mov(eax, dword[rdi + offset_of(offsetof(Thread, pending.next_varying))]);
    lea(ecx, ptr[rax + static_cast<int>(needs.varyings)]);
    cmp(ecx, dword[rdi + offset_of(offsetof(Thread, num_varyings))]);
    ja(declined_, T_NEAR);
  }
  for (size_t unit = 0; unit < 2; ++unit) {
    if (!needs.units[unit]) continue;
    using Unit = Thread::Pending::Unit;
    const size_t at = offsetof(Thread, pending.tmu) + unit * sizeof(Unit);
    mov(ecx, dword[rdi + offset_of(at + offsetof(Unit, head))]);
    cmp(ecx, dword[rdi + offset_of(at + offsetof(Unit, tail))]);
    jne(declined_, T_NEAR);
    static_assert(offsetof(vc4::Lookup, has_t) == 1 && offsetof(vc4::Lookup, parameters) == 4);
    cmp(dword[rdi + offset_of(at + offsetof(Unit, lookup) + offsetof(vc4::Lookup, has_t))], 0);
    jne(declined_, T_NEAR);
  }
  if (needs.rows_in != 0 || needs.rows_out != 0) decline_rows(needs.rows_in, needs.rows_out);
  push(rbp);
  mov(rbp, rsp);
  for (const Reg64& r : {rbx, r12, r13, r14}) push(r);
  sub(rsp, 0x7fffffff);
  frame_at_ = getSize() - 4;
  and_(rsp, -kLaneBytes);
  mov(kThread, rdi);
  mov(kMemory, ptr[kThread + offset_of(offsetof(Thread, memory))]);
  mov(kUniforms.cvt32(), dword[kThread + offset_of(offsetof(Thread, uniforms))]);
  add(kUniforms, kMemory);
  if (needs.varyings != 0) {
    static_assert(sizeof(vc4::Varying) == 2 * kLaneBytes);
    shl(rax, 7);
    add(rax, ptr[kThread + offset_of(offsetof(Thread, varyings))]);
    mov(kVaryings, rax);
  }
  if (notes_unsure_) {
    const Xbyak::Xmm sum(kUnsureUnit);
    vpxord(sum, sum, sum);
  }
}

/// Where fewer than these are there, reads were set up before, or what is written could be read.
void RunEmitter::decline_rows(uint32_t in, uint32_t out) {
  const auto member = [&](size_t offset) { return rdi + offset_of(offset); };
  cmp(byte[member(offsetof(Thread, pending.vpm_reads.count))], 0);
  jne(declined_, T_NEAR);
  cmp(dword[member(offsetof(Thread, vpm_in.count))], static_cast<int>(in));
  jb(declined_, T_NEAR);
  cmp(dword[member(offsetof(Thread, vpm_out.count))], static_cast<int>(out));
  jb(declined_, T_NEAR);
  mov(rax, ptr[member(offsetof(Thread, vpm_in.rows))]);
  cmp(rax, ptr[member(offsetof(Thread, vpm_out.rows))]);
  je(declined_, T_NEAR);
}

void RunEmitter::end() {
  xor_(eax, eax);
  L(leave_);
  lea(rsp, ptr[rbp - 4 * 8]);
  for (const Reg64& r : {r14, r13, r12, rbx}) pop(r);
  pop(rbp);
  vzeroupper();
  ret();
  L(declined_);
  mov(rax, reinterpret_cast<size_t>(vc4::kDeclined));
  ret();
  L(unsure_exit_);
  ldmxcsr(ptr[rip + host_mode_]);
  mov(rax, reinterpret_cast<size_t>(vc4::kUnsure));
  jmp(leave_, T_NEAR);
  guards();
}

void RunEmitter::emit_own(const Node& node) {
  switch (node.op) {
    case Op::kLoadMask:
      return mask_from(node, word[kThread + static_cast<int>(node.immediate)]);
    case Op::kUniform:
      return uniform(node);
    case Op::kFetch:
      return fetch(node);
    case Op::kLoadRow:
      return load_row(node);
    case Op::kStoreRow:
      return store_row(node);
    case Op::kParameter:
      return parameter(node);
    case Op::kLookup:
      return look_up(node);
    case Op::kWritePort:
    case Op::kReadPort:
    case Op::kLoadColor:
      be_sure();
      return call_interpreter(node);
    case Op::kGuard:
    case Op::kFinish:
      return leave(node);
    default:  // sources, which are loaded where they are needed, and what is stored where code is left
      return;
  }
}

// ---- What reaches outside of the graph: the thread, streams, ports

/// For who finds that there is no memory, or that the thread hangs.
void RunEmitter::note_place(const Node& node) {
  mov(dword[kThread + offset_of(offsetof(Thread, pc))], code_ + node.step * 8u);
}

void RunEmitter::uniform(const Node& node) {
  const int to = result(node);
  note_place(node);
  vpbroadcastd(vector(to, 0), ptr[kUniforms + 4 * static_cast<int>(node.immediate)]);
  if (!wide_) vmovdqa(vector(to, 1), vector(to, 0));
}

void RunEmitter::fetch(const Node& node) {
  const int to = result(node);
  for (int p = 0; p < parts_; ++p)
    vmovups(vector(to, p), ptr[kThread + static_cast<int>(node.immediate) + 32 * p]);
}

void RunEmitter::load_row(const Node& node) {
  const int to = result(node);
  mov(rax, ptr[kThread + offset_of(offsetof(Thread, vpm_in.rows))]);
  for (int p = 0; p < parts_; ++p)
    vmovups(vector(to, p), ptr[rax + static_cast<int>(node.immediate) * kLaneBytes + 32 * p]);
}

/// Who does all once more because a result is unsure stores the same rows again.
void RunEmitter::store_row(const Node& node) {
  mov(rax, ptr[kThread + offset_of(offsetof(Thread, vpm_out.rows))]);
  const int from = in_register(node.operands[0]);
  for (int p = 0; p < parts_; ++p)
    vmovups(ptr[rax + static_cast<int>(node.immediate) * kLaneBytes + 32 * p], vector(from, p));
  consume(node);
}

// ---- Lookups

void RunEmitter::copy_uniform(uint32_t index, uint32_t unit, uint32_t parameter) {
  mov(ecx, dword[kUniforms + 4 * static_cast<int>(index)]);
  mov(dword[kThread + offset_of(lookup_of(unit) + offsetof(vc4::Lookup, p) + 4 * parameter)], ecx);
}

/// T, R or B, with the uniform that comes with each.
void RunEmitter::parameter(const Node& node) {
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

void RunEmitter::look_up(const Node& node) {
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
void RunEmitter::call_interpreter(const Node& node) {
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
    Place& place = places_[id_of(node)];
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
