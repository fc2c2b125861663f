#include "gpu/qpu/jit/neon/thread_emitter.h"

#include <cstddef>

#include "gpu/qpu/graph/thread_front_end.h"
#include "gpu/qpu/jit/code/frame.h"
#include "gpu/qpu/jit/code/functions.h"
#include "gpu/qpu/jit/graph/loop_addresses.h"
#include "gpu/qpu/jit/neon/frame.h"
#include "gpu/qpu/run/thread.h"

namespace v3d::qpu::jit::neon {
namespace {

using namespace vixl::aarch64;  // NOLINT(google-build-using-namespace): registers have their names
using graph::Op;
using graph::ThreadRead;

/// The Frame of the thread in host code.
const Register kFrame = x23;
constexpr int kLaneShift = 6;
static_assert(kLaneBytes == 1 << kLaneShift);

MemOperand of_thread(size_t offset) { return MemOperand(kThread, static_cast<int64_t>(offset)); }
MemOperand of_frame(size_t offset) { return MemOperand(kFrame, static_cast<int64_t>(offset)); }

}  // namespace

ThreadEmitter::ThreadEmitter(const graph::Graph& graph, uint32_t first, bool ends)
    : Emitter(graph), first_(first), ends_(ends) {}

bool ThreadEmitter::has_code(const Node& node) {
  return lane_operation(node.op) || other_operation(node.op) || own_operation(node.op);
}

ThreadEmitter::EmitOwn ThreadEmitter::own_operation(Op op) {
  switch (op) {
    case Op::kLoad:  // these are loaded where they are needed
    case Op::kVarying:
    case Op::kStore:  // and these stored behind the end
    case Op::kStoreMask:
      return &ThreadEmitter::nothing_own;
    case Op::kLoadMask:
      return &ThreadEmitter::load_mask;
    case Op::kUniform:
      return &ThreadEmitter::uniform;
    case Op::kFetch:
      return &ThreadEmitter::fetch;
    case Op::kPut:
      return &ThreadEmitter::put;
    case Op::kReadPort:
      return &ThreadEmitter::read;
    case Op::kWritePort:
      return &ThreadEmitter::write;
    case Op::kCall:
      return &ThreadEmitter::call_interpreter;
    case Op::kLead:
      return &ThreadEmitter::lead;
    default:
      return nullptr;
  }
}

void ThreadEmitter::begin(Label& body) {
  save_registers();
  masm_.Mov(kThread, x0);
  masm_.Mov(kFrame, x1);
  masm_.Ldr(w9, of_frame(offsetof(Frame, uniforms)));
  masm_.Ldr(kUniforms, of_frame(offsetof(Frame, uniform_base)));
  masm_.Add(kUniforms, kUniforms, x9);
  masm_.Ldr(w9, of_thread(offsetof(Thread, pending.next_varying)));
  masm_.Ldr(kVaryings, of_thread(offsetof(Thread, varyings)));
  masm_.Add(kVaryings, kVaryings, x9);
  masm_.B(&body);
}

void ThreadEmitter::end() {
  masm_.Bind(&leave_);
  restore_registers();
  masm_.Ret();
  unsure_results();
  for (EmptyQueue& empty : empty_queues_) {
    masm_.Bind(&empty.entry);
    note_place(*empty.node);
    masm_.Mov(x0, reinterpret_cast<uint64_t>(kEmptyQueue));
    masm_.B(&hangs_);
  }
  masm_.Bind(&hangs_);
  masm_.Str(x0, of_frame(offsetof(Frame, error)));
  masm_.Mov(w0, kThreadHangs);
  masm_.B(&leave_);
}

/// Of varyings of parts before it the number is below 0.
Emitter::Memory ThreadEmitter::home_of(const Node& node) {
  const auto number = static_cast<int32_t>(node.immediate);
  if (node.op == Op::kVarying) return {kVaryings, int64_t{number} * kLaneBytes};
  return {kThread, int64_t{number}};
}

void ThreadEmitter::load_mask(const Node& node) { mask_from(node, operand_of(home_of(node))); }

/// For who finds that there is no memory, or that the thread hangs.
void ThreadEmitter::note_place(const Node& node) {
  masm_.Ldr(w9, of_frame(offsetof(Frame, entry)));
  masm_.Add(w9, w9, first_ + node.step * uint32_t{sizeof(uint64_t)});
  masm_.Str(w9, of_thread(offsetof(Thread, pc)));
}

/// For who takes one, or more.
void ThreadEmitter::note_uniforms(const Node& node) {
  masm_.Ldr(w9, of_frame(offsetof(Frame, uniforms)));
  masm_.Add(w9, w9, uniforms_before(node) * uint32_t{sizeof(uint32_t)});
  masm_.Str(w9, of_thread(offsetof(Thread, uniforms)));
}

void ThreadEmitter::uniform(const Node& node) {
  const int to = result(node);
  note_place(node);
  spread_memory(to, MemOperand(kUniforms, 4 * int64_t{node.immediate}));
}

void ThreadEmitter::fetch(const Node& node) { move(Way::kLoad, result(node), home_of(node)); }

void ThreadEmitter::put(const Node& node) {
  const Operand from = operand(node.operands[0], 0);
  store_parts(from, home_of(node));
  consume(node);
}

// ---- Ports that are places in the thread (gpu/qpu/run/ports.cc)

void ThreadEmitter::read(const Node& node) {
  switch (static_cast<ThreadRead>(node.immediate & 0xff)) {
    case ThreadRead::kTmu:
      return take_result(node);
    case ThreadRead::kUnifa:
      return take_unifa(node);
    default:
      return call_interpreter(node);
  }
}

/// Of the TMU's queue.
void ThreadEmitter::take_result(const Node& node) {
  const int to = result(node);
  EmptyQueue& empty = empty_queues_.emplace_back();
  empty.node = &node;
  masm_.Ldr(w9, of_thread(offsetof(Thread, pending.fifo_head)));
  masm_.Ldr(w10, of_thread(offsetof(Thread, pending.fifo_tail)));
  masm_.Cmp(w9, w10);
  masm_.B(&empty.entry, eq);
  masm_.Add(w10, w9, 1);
  masm_.Str(w10, of_thread(offsetof(Thread, pending.fifo_head)));
  masm_.And(w9, w9, kTmuFifo - 1);
  masm_.Add(x10, kThread, offsetof(Thread, pending.fifo));
  masm_.Add(x10, x10, ::vixl::aarch64::Operand(x9, LSL, kLaneShift));
  move(Way::kLoad, to, {x10, 0});
}

void ThreadEmitter::take_unifa(const Node& node) {
  const int to = result(node);
  note_place(node);
  masm_.Ldr(w9, of_thread(offsetof(Thread, unifa)));
  masm_.Add(w10, w9, sizeof(uint32_t));
  masm_.Str(w10, of_thread(offsetof(Thread, unifa)));
  masm_.Ldr(x10, of_thread(offsetof(Thread, memory)));
  masm_.Add(x10, x10, x9);
  spread_memory(to, MemOperand(x10));
}

void ThreadEmitter::write(const Node& node) {
  const auto effect = static_cast<Effect>(graph::decode_thread_write(node.immediate).effect);
  if (const auto parameter = waiting_parameter(effect)) return set_parameter(node, *parameter);
  call_interpreter(node);
}

void ThreadEmitter::set_parameter(const Node& node, WaitingParameter to) {
  const Operand from = operand(node.operands[0], 0);
  store_parts(from, {kThread, static_cast<int64_t>(to.offset)});
  const MemOperand written = of_thread(offsetof(Thread, pending.texture.written));
  masm_.Ldrb(w9, written);
  masm_.Orr(w9, w9, to.bit);
  masm_.Strb(w9, written);
  consume(node);
}

// ---- All others

void ThreadEmitter::operand_address(const Register& to, Id id, int number) {
  const Op op = graph_[id].op;
  if (places_[id].slot >= 0 || (places_[id].home && (op == Op::kLoad || op == Op::kVarying))) {
    const Memory memory = memory_of(id);
    masm_.Add(to, memory.base, memory.offset);
    return;
  }
  const int64_t at = kOperands + int64_t{number} * kLaneBytes;
  move(Way::kStore, in_register(id), {sp, at});
  masm_.Add(to, sp, at);
}

/// A function of the interpreter does it: nothing is in registers behind it.
void ThreadEmitter::call_interpreter(const Node& node) {
  if (node.op != Op::kReadPort) {
    const Id mask = node.operands[node.op == Op::kCall ? 2 : 1];
    in_register(mask);
    mask_to(w3, mask, places_[mask]);
    operand_address(x1, node.operands[0], 0);
  }
  if (node.op == Op::kCall) operand_address(x2, node.operands[1], 1);
  consume(node);
  vacate_all();
  if (node.op != Op::kWritePort) {
    Place& place = places_[id_of(node)];
    place.slot = static_cast<int16_t>(num_slots_++);
    const Memory memory = memory_of(id_of(node));
    masm_.Add(x5, memory.base, memory.offset);
  }
  note_place(node);
  if (node.op != Op::kCall) note_uniforms(node);
  masm_.Mov(x0, kFrame);
  masm_.Mov(w4, node.immediate);
  call(reinterpret_cast<const void*>(find_thread_call(node.op)));
  masm_.Cbnz(x0, &hangs_);
}

/// Where the part leads to is in w0 then. What is stored stands behind the node.
void ThreadEmitter::lead(const Node& node) {
  const Lead to = lead_of(graph_, node);
  if (!to.is_known()) {
    any_of(node.operands[0]);
    masm_.Mov(w11, w9);
  }
  Label forgotten;
  if (ends_) {
    masm_.Ldr(w9, of_frame(offsetof(Frame, forgets_registers)));
    masm_.Cbnz(w9, &forgotten);
  }
  store_behind(node, kThread);
  masm_.Bind(&forgotten);
  masm_.Mov(w0, to.some);
  if (!to.is_known()) {
    masm_.Mov(w10, to.none);
    masm_.Cmp(w11, 0);
    masm_.Csel(w0, w10, w0, eq);
  }
  consume(node);
}

}  // namespace v3d::qpu::jit::neon
