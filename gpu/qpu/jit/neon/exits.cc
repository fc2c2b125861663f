/// @file Where code is left, with what others find in the thread then.

#include <algorithm>
#include <cstddef>

#include "gpu/qpu/jit/neon/emitter.h"
#include "gpu/qpu/jit/neon/frame.h"
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
void Emitter::leave(const Node& node) {
  guards_.emplace_back();
  Exit& exit = guards_.back();
  exit.node = &node;
  const Node* const end = graph_.nodes().data() + graph_.nodes().size();
  for (const Node* n = &node + 1; n != end && graph::is_stored(n->op); ++n)
    exit.values.push_back({n, places_[n->operands[0]]});
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

void Emitter::guards() {
  for (Exit& exit : guards_) {
    masm_.Bind(&exit.entry);
    store_all(exit);
    if (exit.mode != Mode::kHost) masm_.Msr(FPCR, kHostMode);
    note_place(*exit.node);
    masm_.Mov(x0, reinterpret_cast<uint64_t>(vc4::kLeft));
    masm_.B(&leave_);
  }
}

void Emitter::store_all(Exit& exit) {
  // Registers that values still stand in, and into which others come.
  const auto is_replaced = [&](uint32_t offset) {
    return std::any_of(exit.values.begin(), exit.values.end(), [&](const Stored& what) {
      return what.node->op == Op::kStore && what.node->immediate == offset;
    });
  };
  for (Stored& what : exit.values) {
    const Id id = what.node->operands[0];
    if (what.place.unit >= 0 || what.place.slot >= 0 || graph_[id].op != Op::kLoad ||
        !is_replaced(graph_[id].immediate))
      continue;
    const int copy = num_slots_++;
    store_to(id, what.place, {sp, kSlots + int64_t{kLaneBytes} * copy});
    what.place.slot = static_cast<int16_t>(copy);
  }
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

/// Two parts of a value, in registers.
std::pair<Emitter::Vector, Emitter::Vector> Emitter::pair_of(Id id, const Place& place, int p,
                                                             int scratch_number) {
  if (place.unit >= 0) return {part(place.unit, p), part(place.unit, p + 1)};
  const Vector first = scratch(scratch_number), second = scratch(scratch_number + 1);
  if (place.slot < 0 && graph_.is_constant(id)) {
    spread(first, graph_[id].immediate);
    return {first, first};
  }
  const Memory memory = memory_of(id, place);
  move(Way::kLoad, first, second, {memory.base, memory.offset + p * kPartBytes});
  return {first, second};
}

void Emitter::store_to(Id id, const Place& place, const Memory& to) {
  for (int p = 0; p < kParts; p += 2) {
    const auto [first, second] = pair_of(id, place, p, 0);
    move(Way::kStore, first, second, {to.base, to.offset + p * kPartBytes});
  }
}

/// The lanes as bits, by way of bytes.
void Emitter::mask_to(const Register& to, Id mask, const Place& place) {
  if (graph_.is_constant(mask)) {
    masm_.Mov(to, graph_[mask].immediate & kAllLanes);
    return;
  }
  const Vector low = scratch(0), high = scratch(1);
  auto parts = pair_of(mask, place, 0, 0);
  masm_.Uzp1(low.V8H(), parts.first.V8H(), parts.second.V8H());
  parts = pair_of(mask, place, 2, 1);
  masm_.Uzp1(high.V8H(), parts.first.V8H(), parts.second.V8H());
  masm_.Uzp1(low.V16B(), low.V16B(), high.V16B());
  constexpr uint64_t kBits = 0x8040201008040201;
  masm_.Ldr(high.Q(), operand_of(in_pool(pooled(kBits, kBits))));
  masm_.And(low.V16B(), low.V16B(), high.V16B());
  for (int n = 0; n < 3; ++n) masm_.Addp(low.V16B(), low.V16B(), low.V16B());
  masm_.Umov(to, low.V8H(), 0);
}

void Emitter::store(const Stored& what) {
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
