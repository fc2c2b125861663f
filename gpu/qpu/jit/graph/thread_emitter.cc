#include "gpu/qpu/jit/graph/thread_emitter.h"

#include <cstddef>
#include <iterator>

#include "gpu/qpu/graph/thread_front_end.h"
#include "gpu/qpu/jit/code/frame.h"
#include "gpu/qpu/jit/code/functions.h"
#include "gpu/qpu/jit/graph/frame.h"
#include "gpu/qpu/jit/graph/loop_addresses.h"
#include "gpu/qpu/run/thread.h"

namespace v3d::qpu::jit {
namespace {

using Xbyak::Reg64;

constexpr int kUnitsOfAvx512 = 30, kUnitsOfAvx2 = 7;
constexpr int kLaneShift = 6;
static_assert(kLaneBytes == 1 << kLaneShift);
/// The Frame of the thread in host code.
const Reg64 kFrame(Xbyak::Operand::R14);

}  // namespace

#define V3D_OF_THREAD(member) (kThread + offset_of(offsetof(Thread, member)))
#define V3D_OF_FRAME(member) (kFrame + offset_of(offsetof(Frame, member)))

ThreadEmitter::ThreadEmitter(const graph::Graph& graph, Width width, uint32_t first, bool ends, void* buffer,
                             size_t bytes)
    : GraphEmitter(graph, width, width == Width::kAvx512 ? kUnitsOfAvx512 : kUnitsOfAvx2, buffer, bytes),
      first_(first),
      ends_(ends) {}

Xbyak::Address ThreadEmitter::home_of(const Node& node, int part, bool /*spreads*/) {
  const int offset = static_cast<int>(node.immediate);  // of varyings of parts before it is below 0
  if (node.op == Op::kVarying) return ptr[kVaryings + offset * kLaneBytes + 32 * part];
  return ptr[kThread + offset + 32 * part];
}

void ThreadEmitter::begin() {
  push(rbp);
  mov(rbp, rsp);
  for (const Reg64& r : {rbx, r12, r13, r14}) push(r);
  sub(rsp, 0x7fffffff);
  frame_at_ = getSize() - 4;
  and_(rsp, -kLaneBytes);
  mov(kThread, rdi);
  mov(kFrame, rsi);
  mov(kUniforms.cvt32(), dword[V3D_OF_FRAME(uniforms)]);
  add(kUniforms, ptr[V3D_OF_FRAME(uniform_base)]);
  mov(kVaryings.cvt32(), dword[V3D_OF_THREAD(pending.next_varying)]);
  add(kVaryings, ptr[V3D_OF_THREAD(varyings)]);
}

void ThreadEmitter::end() {
  L(leave_);
  lea(rsp, ptr[rbp - 4 * 8]);
  for (const Reg64& r : {r14, r13, r12, rbx}) pop(r);
  pop(rbp);
  vzeroupper();
  ret();
  for (EmptyQueue& empty : empty_queues_) {
    L(empty.entry);
    note_place(*empty.node);
    mov(rax, reinterpret_cast<size_t>(kEmptyQueue));
    jmp(hangs_, T_NEAR);
  }
  L(hangs_);
  mov(ptr[V3D_OF_FRAME(error)], rax);
  mov(eax, kThreadHangs);
  jmp(leave_, T_NEAR);
}

void ThreadEmitter::emit_own(const Node& node) {
  switch (node.op) {
    case Op::kLoadMask:
      return mask_from(node, word[kThread + static_cast<int>(node.immediate)]);
    case Op::kUniform:
      return uniform(node);
    case Op::kFetch:
      return fetch(node);
    case Op::kPut:
      return put(node);
    case Op::kReadPort:
      return read(node);
    case Op::kWritePort:
      return write(node);
    case Op::kCall:
      return call_interpreter(node);
    case Op::kLead:
      return lead(node);
    default:  // sources, which are loaded where they are needed, and what is stored behind the end
      return;
  }
}

/// For who finds that there is no memory, or that the thread hangs.
void ThreadEmitter::note_place(const Node& node) {
  mov(eax, dword[V3D_OF_FRAME(entry)]);
  add(eax, first_ + node.step * uint32_t{sizeof(uint64_t)});
  mov(dword[V3D_OF_THREAD(pc)], eax);
}

/// For who takes one, or more.
void ThreadEmitter::note_uniforms(const Node& node) {
  mov(eax, dword[V3D_OF_FRAME(uniforms)]);
  add(eax, uniforms_before(node) * uint32_t{sizeof(uint32_t)});
  mov(dword[V3D_OF_THREAD(uniforms)], eax);
}

void ThreadEmitter::uniform(const Node& node) {
  const int to = result(node);
  note_place(node);
  vpbroadcastd(vector(to, 0), ptr[kUniforms + 4 * static_cast<int>(node.immediate)]);
  if (!wide_) vmovdqa(vector(to, 1), vector(to, 0));
}

void ThreadEmitter::fetch(const Node& node) {
  const int to = result(node);
  for (int p = 0; p < parts_; ++p) vmovups(vector(to, p), home_of(node, p, false));
}

void ThreadEmitter::put(const Node& node) {
  const int from = in_register(node.operands[0]);
  for (int p = 0; p < parts_; ++p) vmovups(home_of(node, p, false), vector(from, p));
  consume(node);
}

void ThreadEmitter::operand_address(const Reg64& to, Id id, int number) {
  const Op op = graph_[id].op;
  if (places_[id].slot >= 0 || (places_[id].home && (op == Op::kLoad || op == Op::kVarying)))
    return lea(to, memory_of(id, 0, false));
  const int from = in_register(id);
  const int at = kOperands + number * kLaneBytes;
  for (int p = 0; p < parts_; ++p) vmovaps(ptr[rsp + at + 32 * p], vector(from, p));
  lea(to, ptr[rsp + at]);
}

// ---- Ports that are places in the thread (gpu/qpu/run/ports.cc)

void ThreadEmitter::read(const Node& node) {
  switch (static_cast<graph::ThreadRead>(node.immediate & 0xff)) {
    case graph::ThreadRead::kTmu:
      return take_result(node);
    case graph::ThreadRead::kUnifa:
      return take_unifa(node);
    case graph::ThreadRead::kTextureConfig:
      return configure(node);
    default:
      return call_interpreter(node);
  }
}

/// Of the TMU's queue.
void ThreadEmitter::take_result(const Node& node) {
  const int to = result(node);
  EmptyQueue& empty = empty_queues_.emplace_back();
  empty.node = &node;
  mov(eax, dword[V3D_OF_THREAD(pending.fifo_head)]);
  cmp(eax, dword[V3D_OF_THREAD(pending.fifo_tail)]);
  je(empty.entry, T_NEAR);
  inc(dword[V3D_OF_THREAD(pending.fifo_head)]);
  and_(eax, kTmuFifo - 1);
  shl(eax, kLaneShift);
  for (int p = 0; p < parts_; ++p) vmovups(vector(to, p), ptr[V3D_OF_THREAD(pending.fifo) + rax + 32 * p]);
}

void ThreadEmitter::take_unifa(const Node& node) {
  const int to = result(node);
  note_place(node);
  mov(ecx, dword[V3D_OF_THREAD(unifa)]);
  add(dword[V3D_OF_THREAD(unifa)], static_cast<int>(sizeof(uint32_t)));
  mov(rdx, ptr[V3D_OF_THREAD(memory)]);
  vpbroadcastd(vector(to, 0), ptr[rdx + rcx]);
  if (!wide_) vmovdqa(vector(to, 1), vector(to, 0));
}

/// P0, P1 or P2 of the next lookup.
void ThreadEmitter::configure(const Node& node) {
  constexpr uint32_t kMost = 3;
  Xbyak::Label full;
  note_place(node);
  mov(ecx, dword[kUniforms + 4 * static_cast<int>(node.immediate >> 8)]);
  movzx(eax, byte[V3D_OF_THREAD(pending.num_config)]);
  cmp(eax, kMost);
  jae(full);
  mov(dword[V3D_OF_THREAD(pending.texture.p0) + rax * 4], ecx);
  inc(byte[V3D_OF_THREAD(pending.num_config)]);
  L(full);
}

void ThreadEmitter::write(const Node& node) {
  const auto effect = static_cast<Effect>(graph::decode_thread_write(node.immediate).effect);
  if (const auto parameter = waiting_parameter(effect)) return set_parameter(node, *parameter);
  switch (effect) {
    case Effect::kUnifa:
      return set_unifa(node);
    case Effect::kTmuData:
      return push_data(node);
    default:
      return call_interpreter(node);
  }
}

void ThreadEmitter::set_unifa(const Node& node) {
  Xbyak::Label none;
  if (!graph_.is_constant(node.operands[1])) {
    mask_to(edx, node.operands[1]);
    test(edx, edx);
  }
  vmovd(ecx, Xbyak::Xmm(vector(in_register(node.operands[0]), 0).getIdx()));
  if (!graph_.is_constant(node.operands[1])) jz(none);
  and_(ecx, ~3u);
  if (!graph_.is_constant(node.operands[1], 0)) mov(dword[V3D_OF_THREAD(unifa)], ecx);
  L(none);
  consume(node);
}

void ThreadEmitter::push_data(const Node& node) {
  Xbyak::Label full;
  const int from = in_register(node.operands[0]);
  movzx(eax, byte[V3D_OF_THREAD(pending.texture.num_data)]);
  cmp(eax, static_cast<uint32_t>(std::size(tmu::TextureLookup{}.data)));
  jae(full);
  inc(byte[V3D_OF_THREAD(pending.texture.num_data)]);
  shl(eax, kLaneShift);
  for (int p = 0; p < parts_; ++p)
    vmovups(ptr[V3D_OF_THREAD(pending.texture.data) + rax + 32 * p], vector(from, p));
  L(full);
  consume(node);
}

void ThreadEmitter::set_parameter(const Node& node, WaitingParameter to) {
  const int from = in_register(node.operands[0]);
  for (int p = 0; p < parts_; ++p) vmovups(ptr[kThread + offset_of(to.offset) + 32 * p], vector(from, p));
  or_(byte[V3D_OF_THREAD(pending.texture.written)], to.bit);
  consume(node);
}

// ---- All others

/// A function of the interpreter does it: nothing is in registers behind it.
void ThreadEmitter::call_interpreter(const Node& node) {
  if (node.op != Op::kReadPort) {
    mask_to(ecx, node.operands[node.op == Op::kCall ? 2 : 1]);
    operand_address(rsi, node.operands[0], 0);
  }
  if (node.op == Op::kCall) operand_address(rdx, node.operands[1], 1);
  consume(node);
  vacate_all();
  if (node.op != Op::kWritePort) {
    Place& place = places_[id_of(node)];
    place.slot = static_cast<int16_t>(num_slots_++);
    lea(r9, slot(place.slot, 0));
  }
  note_place(node);
  if (node.op != Op::kCall) note_uniforms(node);
  mov(r8d, node.immediate);
  mov(rdi, kFrame);
  mov(rax, reinterpret_cast<size_t>(find_thread_call(node.op)));
  vzeroupper();
  call(rax);
  test(rax, rax);
  jnz(hangs_, T_NEAR);
}

/// Where the part leads to is in eax then. What is stored stands behind the node.
void ThreadEmitter::lead(const Node& node) {
  const Lead to = lead_of(graph_, node);
  if (!to.is_known()) mask_to(r10d, node.operands[0]);
  Xbyak::Label forgotten;
  if (ends_) {
    cmp(dword[V3D_OF_FRAME(forgets_registers)], 0);
    jne(forgotten, T_NEAR);
  }
  store_behind(node, kThread);
  L(forgotten);
  mov(eax, to.some);
  if (!to.is_known()) {
    mov(ecx, to.none);
    test(r10d, r10d);
    cmovz(eax, ecx);
  }
  consume(node);
}

}  // namespace v3d::qpu::jit
