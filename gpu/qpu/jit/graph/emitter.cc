#include "gpu/qpu/jit/graph/emitter.h"

#include <algorithm>
#include <cstddef>

#include "gpu/qpu/jit/graph/frame.h"
#include "gpu/qpu/run/vc4_compiled.h"
#include "gpu/qpu/run/vc4_thread.h"

namespace v3d::qpu::jit {
namespace {

using graph::kNoNode;
using vc4::Thread;
using Xbyak::Reg64;

/// MXCSR of threads of the host, which nobody here changes for longer than a function takes. It is not stored
/// to be found again: that waits for all sums and products before.
///
/// Denormals are zeros, as operands and as results; no exceptions. AVX2 rounds toward zero in this mode, and
/// to nearest in the host's; AVX-512 says in each instruction that does not round to nearest how it does.
constexpr uint32_t kHostMode = 0x1f80, kFlushing = kHostMode | 1 << 15 | 1 << 6,
                   kFlushingTowardZero = kFlushing | 3 << 13;

}  // namespace

GraphEmitter::GraphEmitter(const graph::Graph& graph, Width width, GpuAddr code, bool is_sure, void* buffer,
                           size_t bytes)
    : Xbyak::CodeGenerator(bytes, buffer),
      graph_(graph),
      wide_(width == Width::kAvx512),
      parts_(wide_ ? 1 : 2),
      code_(code),
      uses_(graph),
      places_(graph.nodes().size()),
      num_units_(wide_ ? 30 : 7),
      notes_unsure_(wide_ && !is_sure) {
  held_.fill(kNoNode);
  if (notes_unsure_) num_units_ = kUnsureUnit;
  for (size_t n = 0; n < places_.size(); ++n) {
    const Op op = graph[static_cast<Id>(n)].op;
    places_[n].home = op == Op::kConst || op == Op::kLoad || op == Op::kVarying || op == Op::kLaneIndex;
  }
  find_loose_zeros();
}

// ---- Begin and end

/// What the code is not made for, it declines: varyings that are not there, results of lookups from before.
void GraphEmitter::prologue() {
  uint32_t varyings = 0, units = 0, rows_in = 0, rows_out = 0;
  for (const Node& node : graph_.nodes()) {
    if (node.op == Op::kVarying) varyings = std::max(varyings, node.immediate / 2 + 1);
    if (graph::leaves(node.op)) varyings = std::max(varyings, node.immediate & 0xffff);
    if (node.op == Op::kLookup) units |= 1u << (node.immediate & 1);
    if (node.op == Op::kLoadRow) rows_in = std::max(rows_in, node.immediate + 1);
    if (node.op == Op::kStoreRow) rows_out = std::max(rows_out, node.immediate + 1);
  }
  if (varyings != 0) {
    mov(eax, dword[rdi + offset_of(offsetof(Thread, pending.next_varying))]);
    lea(ecx, ptr[rax + static_cast<int>(varyings)]);
    cmp(ecx, dword[rdi + offset_of(offsetof(Thread, num_varyings))]);
    ja(declined_, T_NEAR);
  }
  for (size_t unit = 0; unit < 2; ++unit) {
    if (!(units >> unit & 1)) continue;
    using Unit = Thread::Pending::Unit;
    const size_t at = offsetof(Thread, pending.tmu) + unit * sizeof(Unit);
    mov(ecx, dword[rdi + offset_of(at + offsetof(Unit, head))]);
    cmp(ecx, dword[rdi + offset_of(at + offsetof(Unit, tail))]);
    jne(declined_, T_NEAR);
    static_assert(offsetof(vc4::Lookup, has_t) == 1 && offsetof(vc4::Lookup, parameters) == 4);
    cmp(dword[rdi + offset_of(at + offsetof(Unit, lookup) + offsetof(vc4::Lookup, has_t))], 0);
    jne(declined_, T_NEAR);
  }
  if (rows_in != 0 || rows_out != 0) decline_rows(rows_in, rows_out);
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
  if (varyings != 0) {
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
void GraphEmitter::decline_rows(uint32_t in, uint32_t out) {
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

void GraphEmitter::epilogue() {
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
}

void GraphEmitter::emit() {
  prologue();
  for (const Node& node : graph_.nodes()) {
    locked_ = 0;
    emit(node);
  }
  epilogue();
  unsure_results();
  guards();
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
  L(host_mode_);
  dd(kHostMode);
  if (uses_lane_index_) table(lane_index_, [](uint32_t lane) { return lane; });
  if (uses_lane_bits_) table(lane_bits_, [](uint32_t lane) { return 1u << lane; });
}

void GraphEmitter::set_mode(Mode mode) {
  if (current_mode_ == mode) return;
  current_mode_ = mode;
  ldmxcsr(ptr[rip + (mode == Mode::kOwn ? mode_ : host_mode_)]);
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

}  // namespace v3d::qpu::jit
