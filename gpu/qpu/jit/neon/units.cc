/// @file Code of what reaches outside of the graph: the thread, streams, ports, and functions of the
/// interpreter.

#include <cstddef>

#include "gpu/qpu/isa/vc4.h"
#include "gpu/qpu/jit/graph/calls.h"
#include "gpu/qpu/jit/graph/facts.h"
#include "gpu/qpu/jit/neon/emitter.h"
#include "gpu/qpu/jit/neon/frame.h"
#include "gpu/qpu/run/vc4_thread.h"

namespace v3d::qpu::jit::neon {
namespace {

using namespace vixl::aarch64;  // NOLINT(google-build-using-namespace): registers have their names
using vc4::Thread;

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
  masm_.Ld1r(part(to, 0), MemOperand(kUniform, 4, PostIndex));
  for (int p = 1; p < kParts; ++p) masm_.Mov(part(to, p).V16B(), part(to, 0).V16B());
  reads_uniforms_ = true;
  uniform_bytes_ += 4;
}

void Emitter::count_uniforms() {
  if (uniform_bytes_ == 0) return;
  const MemOperand uniforms(kThread, offsetof(Thread, uniforms));
  masm_.Ldr(w9, uniforms);
  masm_.Add(w9, w9, uniform_bytes_);
  masm_.Str(w9, uniforms);
  uniform_bytes_ = 0;
}

void Emitter::fetch(const Node& node) { move(Way::kLoad, result(node), in_thread(node.immediate)); }

void Emitter::store(const Node& node) {
  keep_what_stands_at(node.immediate);
  const Operand from = operand(node.operands[0], 0);
  const Memory to = in_thread(node.immediate);
  for (int p = 0; p < kParts; p += 2)
    move(Way::kStore, at(from, p), at(from, p + 1), {to.base, to.offset + p * kPartBytes});
  consume(node);
}

/// The lanes as bits, by way of bytes.
void Emitter::mask_to(const Register& to, Id mask) {
  if (graph_.is_constant(mask)) {
    masm_.Mov(to, graph_[mask].immediate & kAllLanes);
    return;
  }
  const int from = in_register(mask);
  const Vector low = scratch(0), high = scratch(1), bits = scratch(2);
  masm_.Uzp1(low.V8H(), part(from, 0).V8H(), part(from, 1).V8H());
  masm_.Uzp1(high.V8H(), part(from, 2).V8H(), part(from, 3).V8H());
  constexpr uint64_t kBits = 0x8040201008040201;
  masm_.Ldr(bits.Q(), operand_of(in_pool(pooled(kBits, kBits))));
  masm_.Uzp1(low.V16B(), low.V16B(), high.V16B());
  masm_.And(low.V16B(), low.V16B(), bits.V16B());
  for (int n = 0; n < 3; ++n) masm_.Addp(low.V16B(), low.V16B(), low.V16B());
  masm_.Umov(to, low.V8H(), 0);
}

void Emitter::store_mask(const Node& node) {
  mask_to(w2, node.operands[0]);
  masm_.Strh(w2, MemOperand(kThread, node.immediate));
  consume(node);
}

void Emitter::end_varyings(const Node& node) {
  const MemOperand next(kThread, offsetof(Thread, pending.next_varying));
  masm_.Ldr(w9, next);
  masm_.Add(w9, w9, node.immediate);
  masm_.Str(w9, next);
}

void Emitter::write_port(const Node& node) {
  tmu_parameter_of(node) ? tmu_parameter(node) : call_interpreter(node);
}

/// T, R or B of a lookup, with the uniform that comes with each.
void Emitter::tmu_parameter(const Node& node) {
  const TmuParameter to = *tmu_parameter_of(node);
  failures_.emplace_back();
  failures_.back().node = &node;
  const Register lookup = x10;
  const auto member = [&](size_t offset) { return MemOperand(lookup, static_cast<int64_t>(offset)); };
  const int from = in_register(node.operands[0]);
  masm_.Add(lookup, kThread, to.lookup);
  masm_.Ldrb(w11, member(offsetof(vc4::Lookup, parameters)));
  masm_.Cmp(w11, 4);
  masm_.B(&failures_.back().entry, eq);
  note_place(node);
  masm_.Ldr(w12, MemOperand(kUniform, 4, PostIndex));
  reads_uniforms_ = true;
  uniform_bytes_ += 4;
  masm_.Add(x13, lookup, vixl::aarch64::Operand(x11, LSL, 2));
  masm_.Str(w12, MemOperand(x13, offsetof(vc4::Lookup, p)));
  masm_.Add(w11, w11, 1);
  masm_.Strb(w11, member(offsetof(vc4::Lookup, parameters)));
  masm_.Mov(w12, 1);
  masm_.Strb(w12, member(to.flag));
  move(Way::kStore, from, {lookup, static_cast<int64_t>(to.value)});
  consume(node);
}

void Emitter::load_tmu(const Node& node) {
  using Unit = Thread::Pending::Unit;
  static_assert(vc4::kTmuResults == 16 && sizeof(Lanes) == 64);
  failures_.emplace_back();
  failures_.back().node = &node;
  const Register unit = x10;
  masm_.Add(unit, kThread, offsetof(Thread, pending.tmu) + node.immediate * sizeof(Unit));
  const MemOperand head(unit, offsetof(Unit, head));
  masm_.Ldr(w11, head);
  masm_.Ldr(w12, MemOperand(unit, offsetof(Unit, tail)));
  masm_.Cmp(w11, w12);
  masm_.B(&failures_.back().entry, eq);
  masm_.Add(w12, w11, 1);
  masm_.Str(w12, head);
  masm_.And(w11, w11, vc4::kTmuResults - 1);
  masm_.Add(unit, unit, vixl::aarch64::Operand(x11, LSL, 6));
  move(Way::kLoad, result(node), {unit, offsetof(Unit, results)});
}

void Emitter::call(const void* function) {
  masm_.Mov(x16, reinterpret_cast<uint64_t>(function));
  masm_.Blr(x16);
}

void Emitter::failures() {
  for (Failure& f : failures_) {
    masm_.Bind(&f.entry);
    note_place(*f.node);
    if (rounds_) masm_.Msr(FPCR, kHostMode);
    masm_.Mov(x0, kThread);
    masm_.Add(x1, sp, kOperands);
    masm_.Mov(w2, kAllLanes);
    masm_.Mov(w3, f.node->immediate);
    masm_.Mov(x4, x1);
    call(reinterpret_cast<const void*>(find_call(f.node->op)));
    masm_.B(&leave_);
  }
}

/// A function of the interpreter does it: nothing is in registers behind it.
void Emitter::call_interpreter(const Node& node) {
  const bool is_write = node.op == Op::kWritePort;
  const bool is_tmu = is_write && reads_uniform(node);
  set_mode(Mode::kHost);
  if (is_write) {
    mask_to(w2, node.operands[1]);
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
  if (is_tmu) count_uniforms();
  masm_.Mov(x0, kThread);
  masm_.Mov(w3, node.immediate);
  call(reinterpret_cast<const void*>(find_call(node.op)));
  has_zero_ = false;
  masm_.Cbnz(x0, &leave_);
  if (!is_tmu) return;
  masm_.Ldr(x10, MemOperand(kThread, offsetof(Thread, memory)));
  masm_.Ldr(w11, MemOperand(kThread, offsetof(Thread, uniforms)));
  masm_.Add(kUniform, x10, x11);
}

// ---- Sums and products whose results the host does not give

void Emitter::unsure_results() {
  Label routines[2];
  bool has[2] = {};
  for (Unsure& u : unsure_) {
    const int which = u.op == Op::kProduct;
    has[which] = true;
    masm_.Bind(&u.entry);
    for (int n = 0; n < 2; ++n) {
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
  for (int which = 0; which < 2; ++which)
    if (has[which]) unsure_routine(which ? Op::kProduct : Op::kSum, routines[which]);
}

/// Leaves all vector registers as they are.
void Emitter::unsure_routine(Op op, Label& label) {
  const auto move_all = [&](Way way) {
    for (int n = 0; n < 32; n += 2)
      move(way, VRegister(n, kFormat4S), VRegister(n + 1, kFormat4S), {sp, kSaved + n * kPartBytes});
  };
  masm_.Bind(&label);
  masm_.Str(x30, MemOperand(sp, kLink));
  move_all(Way::kStore);
  masm_.Msr(FPCR, kHostMode);
  masm_.Add(x0, sp, kOperands);
  masm_.Add(x1, sp, kOperands + kLaneBytes);
  call(reinterpret_cast<const void*>(find_exact(op)));
  masm_.Msr(FPCR, kOwnMode);
  move_all(Way::kLoad);
  masm_.Ldr(x30, MemOperand(sp, kLink));
  masm_.Ret();
}

}  // namespace v3d::qpu::jit::neon
