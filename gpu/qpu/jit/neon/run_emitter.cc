/// @file Code of what reaches outside of the graph: the thread, streams, ports, and functions of the
/// interpreter.

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "gpu/qpu/isa/vc4.h"
#include "gpu/qpu/jit/graph/calls.h"
#include "gpu/qpu/jit/neon/emitter.h"
#include "gpu/qpu/jit/neon/frame.h"
#include "gpu/qpu/run/vc4_thread.h"

namespace v3d::qpu::jit::neon {
namespace {

using namespace vixl::aarch64;  // NOLINT(google-build-using-namespace): registers have their names
using vc4::Thread;

constexpr size_t lookup_of(uint32_t unit) {
  using Unit = Thread::Pending::Unit;
  return offsetof(Thread, pending.tmu) + unit * sizeof(Unit) + offsetof(Unit, lookup);
}

}  // namespace

void Emitter::load_mask(const Node& node) {
  const int to = result(node);
  masm_.Ldrh(w9, MemOperand(kThread, node.immediate));
  masm_.Dup(scratch(0), w9);
  const Memory bits = in_pool(lane_bits());
  for (int p = 0; p < kParts; p += 2) {
    move(Way::kLoad, scratch(1), scratch(2), {bits.base, bits.offset + p * kPartBytes});
    masm_.Cmtst(part(to, p), scratch(0), scratch(1));
    masm_.Cmtst(part(to, p + 1), scratch(0), scratch(2));
  }
}

/// For who finds that there is no memory, or that the thread hangs.
void Emitter::note_place(const Node& node) {
  masm_.Add(w9, kCode.W(), node.step * 8u);
  masm_.Str(w9, MemOperand(kThread, offsetof(Thread, pc)));
}

void Emitter::uniform(const Node& node) {
  const int to = result(node);
  note_place(node);
  masm_.Ldr(scratch(0).S(), MemOperand(kUniforms, 4 * int64_t{node.immediate}));
  for (int p = 0; p < kParts; ++p) masm_.Dup(part(to, p), scratch(0), 0);
}

void Emitter::fetch(const Node& node) { move(Way::kLoad, result(node), in_thread(node.immediate)); }

void Emitter::load_row(const Node& node) {
  masm_.Ldr(x10, MemOperand(kThread, offsetof(Thread, vpm_in.rows)));
  move(Way::kLoad, result(node), {x10, int64_t{node.immediate} * kLaneBytes});
}

void Emitter::store_row(const Node& node) {
  const Operand from = operand(node.operands[0], 0);
  masm_.Ldr(x10, MemOperand(kThread, offsetof(Thread, vpm_out.rows)));
  store_parts(from, {x10, int64_t{node.immediate} * kLaneBytes});
  consume(node);
}

// ---- Lookups

void Emitter::copy_uniform(uint32_t index, uint32_t unit, uint32_t parameter) {
  const size_t to = lookup_of(unit) + offsetof(vc4::Lookup, p) + 4 * parameter;
  masm_.Ldr(w9, MemOperand(kUniforms, 4 * int64_t{index}));
  masm_.Str(w9, MemOperand(kThread, static_cast<int64_t>(to)));
}

/// T, R or B, with the uniform that comes with each.
void Emitter::parameter(const Node& node) {
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

void Emitter::look_up(const Node& node) {
  note_place(node);
  if ((node.immediate >> 1 & 7) != 0)
    copy_uniform(node.immediate >> 16, node.immediate & 1, node.immediate >> 4 & 15);
  call_interpreter(node);
}

void Emitter::call(const void* function) {
  masm_.Mov(x16, reinterpret_cast<uint64_t>(function));
  masm_.Blr(x16);
}

/// A function of the interpreter does it: nothing is in registers behind it.
void Emitter::call_interpreter(const Node& node) {
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

// ---- Sums, products and integers that the host does not give

void Emitter::unsure_results() {
  constexpr Op kOps[] = {Op::kSum, Op::kProduct, Op::kIntegerOf};
  Label routines[std::size(kOps)];
  bool has[std::size(kOps)] = {};
  for (Unsure& u : unsure_) {
    const auto which = static_cast<size_t>(std::find(kOps, std::end(kOps), u.op) - kOps);
    has[which] = true;
    masm_.Bind(&u.entry);
    for (int n = 0; n < graph::info(u.op).operands; ++n) {
      const Memory to = {sp, kOperands + n * kLaneBytes};
      if (u.operands[n].unit >= 0) {
        move(Way::kStore, u.operands[n].unit, to);
        continue;
      }
      spread(scratch(0), u.operands[n].bits);
      for (int p = 0; p < kParts; p += 2)
        move(Way::kStore, scratch(0), scratch(0), {sp, to.offset + p * kPartBytes});
    }
    masm_.Bl(&routines[which]);
    move(Way::kLoad, u.to, {sp, kOperands});
    masm_.B(&u.back);
  }
  for (size_t which = 0; which < std::size(kOps); ++which)
    if (has[which]) unsure_routine(kOps[which], routines[which]);
}

/// Leaves all vector registers, and the mode, as they are.
void Emitter::unsure_routine(Op op, Label& label) {
  const auto move_all = [&](Way way) {
    for (int n = 0; n < 32; n += 2)
      move(way, VRegister(n, kFormat4S), VRegister(n + 1, kFormat4S), {sp, kSaved + n * kPartBytes});
  };
  masm_.Bind(&label);
  masm_.Str(x30, MemOperand(sp, kLink));
  move_all(Way::kStore);
  masm_.Mrs(x9, FPCR);
  masm_.Str(x9, MemOperand(sp, kLink + 8));
  masm_.Msr(FPCR, kHostMode);
  masm_.Add(x0, sp, kOperands);
  masm_.Add(x1, sp, kOperands + kLaneBytes);
  call(reinterpret_cast<const void*>(find_exact(op)));
  masm_.Ldr(x9, MemOperand(sp, kLink + 8));
  masm_.Msr(FPCR, x9);
  move_all(Way::kLoad);
  masm_.Ldr(x30, MemOperand(sp, kLink));
  masm_.Ret();
}

}  // namespace v3d::qpu::jit::neon
