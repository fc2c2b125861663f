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

constexpr int kUnitsOfAvx512 = 30, kUnitsOfAvx2 = 7;

}  // namespace

RunEmitter::RunEmitter(const graph::Graph& graph, Width width, GpuAddr code, void* buffer, size_t bytes)
    : GraphEmitter(graph, width, width == Width::kAvx512 ? kUnitsOfAvx512 : kUnitsOfAvx2, buffer, bytes),
      code_(code) {}

Xbyak::Address RunEmitter::home_of(const Node& node, int part, bool /*spreads*/) {
  if (node.op == Op::kVarying)
    return ptr[kVaryings + static_cast<int>(node.immediate) * kLaneBytes + 32 * part];
  return ptr[kThread + static_cast<int>(node.immediate) + 32 * part];
}

// ---- Begin and end

void RunEmitter::begin() {
  const uint32_t varyings = varyings_of(graph_);
  if (varyings != 0) {
    mov(eax, dword[rdi + offset_of(offsetof(Thread, pending.next_varying))]);
    lea(ecx, ptr[rax + static_cast<int>(varyings)]);
    cmp(ecx, dword[rdi + offset_of(offsetof(Thread, num_varyings))]);
    ja(declined_, T_NEAR);
  }
  push(rbp);
  mov(rbp, rsp);
  for (const Reg64& r : {rbx, r12, r13, r14}) push(r);
  sub(rsp, 0x7fffffff);
  frame_at_ = getSize() - 4;
  and_(rsp, -kLaneBytes);
  mov(kThread, rdi);
  mov(kMemory, ptr[kThread + offset_of(offsetof(Thread, memory))]);
  mov(kUniforms.cvt32(), dword[kThread + offset_of(offsetof(Thread, uniforms))]);
  if (varyings != 0) {
    static_assert(sizeof(vc4::Varying) == 2 * kLaneBytes);
    shl(rax, 7);
    add(rax, ptr[kThread + offset_of(offsetof(Thread, varyings))]);
    mov(kVaryings, rax);
  }
  if (rounds_) stmxcsr(ptr[rsp + kHostMode]);
}

void RunEmitter::end() {
  set_mode(Mode::kHost);
  if (uniform_bytes_ != 0)
    add(dword[kThread + offset_of(offsetof(Thread, uniforms))], static_cast<int>(uniform_bytes_));
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
  failures();
}

void RunEmitter::emit_own(const Node& node) {
  switch (node.op) {
    case Op::kLoadMask:
      return mask_from(node, word[kThread + static_cast<int>(node.immediate)]);
    case Op::kUniform:
      return uniform(node);
    case Op::kFetch:
      return fetch(node);
    case Op::kStore:
      return store(node);
    case Op::kStoreMask:
      return store_mask(node);
    case Op::kEndVaryings:
      add(dword[kThread + offset_of(offsetof(Thread, pending.next_varying))],
          static_cast<int>(node.immediate));
      return;
    case Op::kLoadTmu:
      return load_tmu(node);
    case Op::kWritePort:
      return write_port(node);
    case Op::kReadPort:
    case Op::kLoadColor:
      return call_interpreter(node);
    default:  // sources, which are loaded where they are needed
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
  vpbroadcastd(vector(to, 0), ptr[kMemory + kUniforms + static_cast<int>(uniform_bytes_)]);
  if (!wide_) vmovdqa(vector(to, 1), vector(to, 0));
  uniform_bytes_ += 4;
}

void RunEmitter::fetch(const Node& node) {
  const int to = result(node);
  for (int p = 0; p < parts_; ++p)
    vmovups(vector(to, p), ptr[kThread + static_cast<int>(node.immediate) + 32 * p]);
}

void RunEmitter::store(const Node& node) {
  keep_what_stands_at(node.immediate);
  const int from = in_register(node.operands[0]);
  for (int p = 0; p < parts_; ++p)
    vmovaps(ptr[kThread + static_cast<int>(node.immediate) + 32 * p], vector(from, p));
  consume(node);
}

void RunEmitter::store_mask(const Node& node) {
  mask_to(edx, node.operands[0]);
  mov(word[kThread + static_cast<int>(node.immediate)], dx);
  consume(node);
}

/// T, R or B of a lookup, with the uniform that comes with each.
void RunEmitter::tmu_parameter(const Node& node) {
  const TmuParameter to = *tmu_parameter_of(node);
  const auto member = [&](size_t offset) { return kThread + offset_of(to.lookup + offset); };
  failures_.emplace_back();
  failures_.back().node = &node;
  movzx(eax, byte[member(offsetof(vc4::Lookup, parameters))]);
  cmp(eax, 4);
  je(failures_.back().entry, T_NEAR);
  note_place(node);
  mov(ecx, dword[kMemory + kUniforms + static_cast<int>(uniform_bytes_)]);
  uniform_bytes_ += 4;
  mov(dword[member(offsetof(vc4::Lookup, p)) + rax * 4], ecx);
  inc(eax);
  mov(byte[member(offsetof(vc4::Lookup, parameters))], al);
  mov(byte[member(to.flag)], 1);
  const int from = in_register(node.operands[0]);
  for (int p = 0; p < parts_; ++p) vmovups(ptr[member(to.value) + 32 * p], vector(from, p));
  consume(node);
}

void RunEmitter::write_port(const Node& node) {
  tmu_parameter_of(node) ? tmu_parameter(node) : call_interpreter(node);
}

void RunEmitter::load_tmu(const Node& node) {
  using Unit = Thread::Pending::Unit;
  const size_t unit = offsetof(Thread, pending.tmu) + node.immediate * sizeof(Unit);
  const auto member = [&](size_t offset) { return kThread + offset_of(unit + offset); };
  static_assert(vc4::kTmuResults == 16);
  failures_.emplace_back();
  failures_.back().node = &node;
  mov(eax, dword[member(offsetof(Unit, head))]);
  cmp(eax, dword[member(offsetof(Unit, tail))]);
  je(failures_.back().entry, T_NEAR);
  inc(dword[member(offsetof(Unit, head))]);
  and_(eax, vc4::kTmuResults - 1);
  shl(eax, 6);
  const int to = result(node);
  for (int p = 0; p < parts_; ++p)
    vmovups(vector(to, p), ptr[member(offsetof(Unit, results)) + rax + 32 * p]);
}

void RunEmitter::failures() {
  for (Failure& f : failures_) {
    L(f.entry);
    note_place(*f.node);
    if (rounds_) ldmxcsr(ptr[rsp + kHostMode]);
    lea(rsi, ptr[rsp + kOperands]);
    mov(edx, kAllLanes);
    lea(r8, ptr[rsp + kOperands]);
    mov(ecx, f.node->immediate);
    mov(rdi, kThread);
    mov(rax, reinterpret_cast<size_t>(find_call(f.node->op)));
    vzeroupper();
    call(rax);
    jmp(leave_, T_NEAR);
  }
}

/// A function of the interpreter does it: nothing is in registers behind it.
void RunEmitter::call_interpreter(const Node& node) {
  const int operands = graph::info(node.op).operands;
  const bool is_write = node.op == Op::kWritePort;
  const bool is_tmu = is_write && reads_uniform(node);
  set_mode(Mode::kHost);
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
  if (graph::has(node.op, graph::kStays)) note_place(node);
  if (is_tmu && uniform_bytes_ != 0)
    add(dword[kThread + offset_of(offsetof(Thread, uniforms))], static_cast<int>(uniform_bytes_));
  mov(ecx, node.immediate);
  mov(rdi, kThread);
  mov(rax, reinterpret_cast<size_t>(find_call(node.op)));
  vzeroupper();
  call(rax);
  if (graph::has(node.op, graph::kStays)) {
    test(rax, rax);
    jnz(leave_, T_NEAR);
  }
  if (is_tmu) {
    mov(kUniforms.cvt32(), dword[kThread + offset_of(offsetof(Thread, uniforms))]);
    uniform_bytes_ = 0;
  }
}

}  // namespace v3d::qpu::jit
