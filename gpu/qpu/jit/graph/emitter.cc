#include "gpu/qpu/jit/graph/emitter.h"

#include <cstddef>

#include "gpu/qpu/jit/graph/facts.h"
#include "gpu/qpu/jit/graph/frame.h"
#include "gpu/qpu/run/vc4_compiled.h"
#include "gpu/qpu/run/vc4_thread.h"

namespace v3d::qpu::jit {
namespace {

using vc4::Thread;
using Xbyak::Reg64;

/// Denormals are zeros, as operands and as results; no exceptions. AVX2 rounds toward zero in this mode, and
/// to nearest in the host's; AVX-512 says in each instruction that does not round to nearest how it does.
constexpr uint32_t kFlushing = 0x1f80 | 1 << 15 | 1 << 6, kFlushingTowardZero = kFlushing | 3 << 13;

}  // namespace

GraphEmitter::GraphEmitter(const graph::Graph& graph, Width width, GpuAddr code, void* buffer, size_t bytes)
    : Xbyak::CodeGenerator(bytes, buffer),
      RegisterScan(graph, width == Width::kAvx512 ? 30 : 7),
      wide_(width == Width::kAvx512),
      parts_(wide_ ? 1 : 2),
      code_(code),
      rounds_(changes_rounding(graph)),
      zero_is_loose_(loose_zeros(graph)) {}

// ---- Begin and end

void GraphEmitter::prologue() {
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

void GraphEmitter::epilogue() {
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
}

void GraphEmitter::emit() {
  prologue();
  walk();
  epilogue();
  unsure_results();
  failures();
  pool();
  rewrite(frame_at_, kSlots + uint64_t{kLaneBytes} * static_cast<uint64_t>(num_slots_), 4);
}

void GraphEmitter::pool() {
  const auto table = [&](Xbyak::Label& label, auto word_of) {
    align(kLaneBytes);
    L(label);
    for (uint32_t lane = 0; lane < kLanes; ++lane) dd(word_of(lane));
  };
  align(kLaneBytes);
  for (auto& [bits, label] : constants_) {
    L(label);
    for (int n = 0; n < (wide_ ? 1 : 8); ++n) dd(bits);
  }
  for (auto& [bits, label] : doubles_) {
    L(label);
    for (int n = 0; n < (wide_ ? 1 : 4); ++n) dq(bits);
  }
  L(mode_);
  dd(wide_ ? kFlushing : kFlushingTowardZero);
  if (uses_lane_index_) table(lane_index_, [](uint32_t lane) { return lane; });
  if (uses_lane_bits_) table(lane_bits_, [](uint32_t lane) { return 1u << lane; });
}

void GraphEmitter::set_mode(Mode mode) {
  if (current_mode_ == mode) return;
  current_mode_ = mode;
  ldmxcsr(mode == Mode::kOwn ? ptr[rip + mode_] : ptr[rsp + kHostMode]);
}

void GraphEmitter::emit(const Node& node) {
  if (emit_words(node) || emit_parts(node) || emit_floats(node)) return;
  switch (node.op) {
    case Op::kLoadMask:
      return load_mask(node);
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

}  // namespace v3d::qpu::jit
