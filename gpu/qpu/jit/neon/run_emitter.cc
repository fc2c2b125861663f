#include "gpu/qpu/jit/neon/run_emitter.h"

#include <cstddef>
#include <utility>

#include "gpu/qpu/isa/vc4.h"
#include "gpu/qpu/jit/graph/calls.h"
#include "gpu/qpu/jit/neon/frame.h"
#include "gpu/qpu/run/vc4_compiled.h"
#include "gpu/qpu/run/vc4_thread.h"

namespace v3d::qpu::jit::neon {
namespace {

using namespace vixl::aarch64;  // NOLINT(google-build-using-namespace): registers have their names
using graph::Op;
using vc4::Thread;

/// FPCR: denormals are zeros, as operands and as results; toward zero.
constexpr uint64_t kFlushingTowardZero = uint64_t{1} << 24 | uint64_t{3} << 22;

constexpr size_t lookup_of(uint32_t unit) {
  using Unit = Thread::Pending::Unit;
  return offsetof(Thread, pending.tmu) + unit * sizeof(Unit) + offsetof(Unit, lookup);
}

}  // namespace

RunEmitter::RunEmitter(const graph::Graph& graph, GpuAddr code)
    : Emitter(graph), code_(code), rounds_(changes_rounding(graph)) {}

bool RunEmitter::has_code(const Node& node) {
  return lane_operation(node.op) || other_operation(node.op) || own_operation(node.op);
}

RunEmitter::EmitOwn RunEmitter::own_operation(Op op) {
  switch (op) {
    case Op::kLoad:  // these are loaded where they are needed
    case Op::kVarying:
    case Op::kStore:  // and these stored where code is left
    case Op::kStoreMask:
    case Op::kStoreResult:
    case Op::kStoreSfu:
      return &RunEmitter::nothing_own;
    case Op::kLoadMask:
      return &RunEmitter::load_mask;
    case Op::kUniform:
      return &RunEmitter::uniform;
    case Op::kFetch:
      return &RunEmitter::fetch;
    case Op::kLoadRow:
      return &RunEmitter::load_row;
    case Op::kStoreRow:
      return &RunEmitter::store_row;
    case Op::kParameter:
      return &RunEmitter::parameter;
    case Op::kLookup:
      return &RunEmitter::look_up;
    case Op::kGuard:
    case Op::kFinish:
      return &RunEmitter::leave;
    case Op::kWritePort:
    case Op::kReadPort:
    case Op::kLoadColor:
      return &RunEmitter::call_interpreter;
    default:
      return nullptr;
  }
}

// ---- Begin and end

/// What the code is not made for: varyings or rows that are not there, results of lookups from before.
void RunEmitter::decline(const Needs& needs) {
  const auto load = [&](const Register& to, size_t offset) {
    masm_.Ldr(to, MemOperand(x0, static_cast<int64_t>(offset)));
  };
  if (needs.varyings != 0) {
    load(w9, offsetof(Thread, pending.next_varying));
    load(w10, offsetof(Thread, num_varyings));
    masm_.Add(w11, w9, needs.varyings);
    masm_.Cmp(w11, w10);
    masm_.B(&declined_, hi);
  }
  for (size_t unit = 0; unit < 2; ++unit) {
    if (!needs.units[unit]) continue;
    using Unit = Thread::Pending::Unit;
    const size_t at = offsetof(Thread, pending.tmu) + unit * sizeof(Unit);
    static_assert(offsetof(vc4::Lookup, has_t) == 1 && offsetof(vc4::Lookup, parameters) == 4);
    load(w10, at + offsetof(Unit, head));
    load(w11, at + offsetof(Unit, tail));
    masm_.Cmp(w10, w11);
    masm_.B(&declined_, ne);
    masm_.Mov(x11, at + offsetof(Unit, lookup) + offsetof(vc4::Lookup, has_t));  // at no multiple of 4
    masm_.Ldr(w10, MemOperand(x0, x11));
    masm_.Cbnz(w10, &declined_);
  }
  if (needs.rows_in == 0 && needs.rows_out == 0) return;
  // Where fewer than these are there, reads were set up before, or what is written could be read.
  masm_.Ldrb(w10, MemOperand(x0, offsetof(Thread, pending.vpm_reads.count)));
  masm_.Cbnz(w10, &declined_);
  for (const auto& [offset, rows] : {std::pair(offsetof(Thread, vpm_in.count), needs.rows_in),
                                     std::pair(offsetof(Thread, vpm_out.count), needs.rows_out)}) {
    load(w10, offset);
    masm_.Cmp(w10, rows);
    masm_.B(&declined_, lo);
  }
  load(x10, offsetof(Thread, vpm_in.rows));
  load(x11, offsetof(Thread, vpm_out.rows));
  masm_.Cmp(x10, x11);
  masm_.B(&declined_, eq);
}

void RunEmitter::begin(Label& body) {
  const Needs needs = needs_of(graph_);
  decline(needs);
  save_registers();
  masm_.Mov(kThread, x0);
  masm_.Add(kUpper, kThread, kUpperAt);
  masm_.Add(kUppermost, kThread, kUppermostAt);
  masm_.Mov(kCode.W(), code_);
  masm_.Ldr(x10, MemOperand(kThread, offsetof(Thread, memory)));
  masm_.Ldr(w11, MemOperand(kThread, offsetof(Thread, uniforms)));
  masm_.Add(kUniforms, x10, x11);
  if (needs.varyings != 0) {
    static_assert(sizeof(vc4::Varying) == 2 * kLaneBytes);
    masm_.Ldr(x10, MemOperand(kThread, offsetof(Thread, varyings)));
    masm_.Add(kVaryings, x10, ::vixl::aarch64::Operand(x9, LSL, 7));
  }
  if (rounds_) {
    masm_.Mrs(kHostMode, FPCR);
    masm_.Mov(kOwnMode, kFlushingTowardZero);
  }
  masm_.B(&body);
}

void RunEmitter::end() {
  set_mode(Mode::kHost);
  masm_.Mov(x0, 0);
  masm_.Bind(&leave_);
  restore_registers();
  masm_.Ret();
  masm_.Bind(&declined_);
  masm_.Mov(x0, reinterpret_cast<uint64_t>(vc4::kDeclined));
  masm_.Ret();
  unsure_results();
  guards();
}

// ---- What reaches outside of the graph: the thread, streams, ports

Emitter::Memory RunEmitter::in_thread(int64_t offset) {
  if (offset >= kUppermostAt - kReach) return {kUppermost, offset - kUppermostAt};
  if (offset >= kUpperAt - kReach) return {kUpper, offset - kUpperAt};
  return {kThread, offset};
}

Emitter::Memory RunEmitter::home_of(const Node& node) {
  if (node.op == Op::kVarying) return {kVaryings, int64_t{node.immediate} * kLaneBytes};
  return in_thread(node.immediate);
}

void RunEmitter::load_mask(const Node& node) { mask_from(node, MemOperand(kThread, node.immediate)); }

/// For who finds that there is no memory, or that the thread hangs.
void RunEmitter::note_place(const Node& node) {
  masm_.Add(w9, kCode.W(), node.step * 8u);
  masm_.Str(w9, MemOperand(kThread, offsetof(Thread, pc)));
}

void RunEmitter::uniform(const Node& node) {
  const int to = result(node);
  note_place(node);
  masm_.Ldr(scratch(0).S(), MemOperand(kUniforms, 4 * int64_t{node.immediate}));
  for (int p = 0; p < kParts; ++p) masm_.Dup(part(to, p), scratch(0), 0);
}

void RunEmitter::fetch(const Node& node) { move(Way::kLoad, result(node), in_thread(node.immediate)); }

void RunEmitter::load_row(const Node& node) {
  masm_.Ldr(x10, MemOperand(kThread, offsetof(Thread, vpm_in.rows)));
  move(Way::kLoad, result(node), {x10, int64_t{node.immediate} * kLaneBytes});
}

void RunEmitter::store_row(const Node& node) {
  const Operand from = operand(node.operands[0], 0);
  masm_.Ldr(x10, MemOperand(kThread, offsetof(Thread, vpm_out.rows)));
  store_parts(from, {x10, int64_t{node.immediate} * kLaneBytes});
  consume(node);
}

// ---- Lookups

void RunEmitter::copy_uniform(uint32_t index, uint32_t unit, uint32_t parameter) {
  const size_t to = lookup_of(unit) + offsetof(vc4::Lookup, p) + 4 * parameter;
  masm_.Ldr(w9, MemOperand(kUniforms, 4 * int64_t{index}));
  masm_.Str(w9, MemOperand(kThread, static_cast<int64_t>(to)));
}

/// T, R or B, with the uniform that comes with each.
void RunEmitter::parameter(const Node& node) {
  constexpr size_t kValues[] = {0, offsetof(vc4::Lookup, t), offsetof(vc4::Lookup, r),
                                offsetof(vc4::Lookup, b)};
  const uint32_t unit = node.immediate & 1, which = node.immediate >> 1 & 3;
  const Operand from = operand(node.operands[0], 0);
  note_place(node);
  copy_uniform(node.immediate >> 16, unit, node.immediate >> 4 & 15);
  masm_.Add(x10, kThread, lookup_of(unit) + kValues[which]);
  store_parts(from, {x10, 0});
  consume(node);
}

void RunEmitter::look_up(const Node& node) {
  note_place(node);
  if ((node.immediate >> 1 & 7) != 0)
    copy_uniform(node.immediate >> 16, node.immediate & 1, node.immediate >> 4 & 15);
  call_interpreter(node);
}

/// A function of the interpreter does it: nothing is in registers behind it.
void RunEmitter::call_interpreter(const Node& node) {
  const bool is_write = node.op == Op::kWritePort;
  set_mode(Mode::kHost);
  if (is_write) {
    const Id mask = node.operands[1];
    in_register(mask);
    mask_to(w2, mask, places_[mask]);
  }
  if (graph::info(node.op).operands != 0) {
    const Id id = node.operands[0];
    const Op op = graph_[id].op;
    if (places_[id].slot >= 0 || (places_[id].home && (op == Op::kLoad || op == Op::kVarying))) {
      const Memory memory = memory_of(id);
      masm_.Add(x1, memory.base, memory.offset);
    } else {
      move(Way::kStore, in_register(id), {sp, kOperands});
      masm_.Add(x1, sp, kOperands);
    }
  }
  consume(node);
  vacate_all();
  if (!is_write) {
    Place& place = places_[id_of(node)];
    place.slot = static_cast<int16_t>(num_slots_++);
    const Memory memory = memory_of(id_of(node));
    masm_.Add(x4, memory.base, memory.offset);
  }
  note_place(node);
  masm_.Mov(x0, kThread);
  masm_.Mov(w3, node.immediate);
  call(reinterpret_cast<const void*>(find_call(node.op)));
  has_zero_ = false;
  masm_.Cbnz(x0, &leave_);
}

}  // namespace v3d::qpu::jit::neon
