/// @file Where code is left, with what others find in the thread then.

#include <cstddef>

#include "gpu/qpu/jit/neon/frame.h"
#include "gpu/qpu/jit/neon/run_emitter.h"
#include "gpu/qpu/run/vc4_compiled.h"
#include "gpu/qpu/run/vc4_thread.h"

namespace v3d::qpu::jit::neon {
namespace {

using namespace vixl::aarch64;  // NOLINT(google-build-using-namespace): registers have their names
using graph::Op;
using vc4::Thread;
using Unit = Thread::Pending::Unit;

}  // namespace

/// A guard or the finish. What is stored stands behind it, and its values are where they are now.
void RunEmitter::leave(const Node& node) {
  guards_.emplace_back();
  Exit& exit = guards_.back();
  exit.node = &node;
  exit.values = stored_at(graph_, node, places_);
  const std::vector<Stored> values = exit.values;
  if (node.op == Op::kFinish) {
    store_all(exit);
    set_mode(Mode::kHost);
    guards_.pop_back();
  } else {
    exit.mode = current_mode_;
    masm_.Ldr(w9, MemOperand(kThread, offsetof(Thread, pending.met_no_memory)));
    masm_.Cbnz(w9, &exit.entry);
  }
  for (const Stored& what : values) consume(*what.node);
}

void RunEmitter::guards() {
  for (Exit& exit : guards_) {
    masm_.Bind(&exit.entry);
    store_all(exit);
    if (exit.mode != Mode::kHost) masm_.Msr(FPCR, kHostMode);
    note_place(*exit.node);
    masm_.Mov(x0, reinterpret_cast<uint64_t>(vc4::kLeft));
    masm_.B(&leave_);
  }
}

void RunEmitter::store_all(Exit& exit) {
  copy_replaced(graph_, exit.values, [&](const Stored& what) {
    const int copy = num_slots_++;
    store_to(what.node->operands[0], what.place, {sp, kSlots + int64_t{kLaneBytes} * copy});
    return static_cast<int16_t>(copy);
  });
  for (const Stored& what : exit.values) store(what);
  const auto add_to = [&](size_t offset, uint32_t more) {
    const MemOperand member(kThread, static_cast<int64_t>(offset));
    if (more == 0) return;
    masm_.Ldr(w9, member);
    masm_.Add(w9, w9, more);
    masm_.Str(w9, member);
  };
  add_to(offsetof(Thread, pending.next_varying), exit.node->immediate & 0xffff);
  add_to(offsetof(Thread, uniforms), 4 * (exit.node->immediate >> 16));
}

void RunEmitter::store(const Stored& what) {
  const Node& node = *what.node;
  const Id id = node.operands[0];
  if (node.op == Op::kStoreMask) {
    mask_to(w10, id, what.place);
    masm_.Strh(w10, MemOperand(kThread, node.immediate));
    return;
  }
  if (node.op == Op::kStoreResult) {
    static_assert(vc4::kTmuResults == 16 && sizeof(Lanes) == kLaneBytes);
    masm_.Add(x10, kThread, offsetof(Thread, pending.tmu) + node.immediate * sizeof(Unit));
    const MemOperand tail(x10, offsetof(Unit, tail));
    masm_.Ldr(w11, tail);
    masm_.Add(w12, w11, 1);
    masm_.Str(w12, tail);
    masm_.And(w11, w11, vc4::kTmuResults - 1);
    masm_.Add(x10, x10, ::vixl::aarch64::Operand(x11, LSL, 6));
    return store_to(id, what.place, {x10, offsetof(Unit, results)});
  }
  if (node.op == Op::kStoreSfu) {
    masm_.Mov(w10, node.immediate);
    masm_.Strb(w10, MemOperand(kThread, offsetof(Thread, pending.events.sfu_in)));
    return store_to(id, what.place, in_thread(offsetof(Thread, pending.sfu_result)));
  }
  store_to(id, what.place, in_thread(node.immediate));
}

}  // namespace v3d::qpu::jit::neon
