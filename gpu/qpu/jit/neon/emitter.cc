#include "gpu/qpu/jit/neon/emitter.h"

#include <cstddef>
#include <cstring>
#include <utility>

#include "gpu/qpu/jit/graph/facts.h"
#include "gpu/qpu/jit/neon/frame.h"
#include "gpu/qpu/run/vc4_compiled.h"
#include "gpu/qpu/run/vc4_thread.h"

namespace v3d::qpu::jit::neon {
namespace {

using namespace vixl::aarch64;  // NOLINT(google-build-using-namespace): registers have their names
using graph::Op;
using vc4::Thread;

constexpr int kUnits = 7;
/// FPCR: denormals are zeros, as operands and as results; toward zero.
constexpr uint64_t kFlushingTowardZero = uint64_t{1} << 24 | uint64_t{3} << 22;
/// What branches and the address of the pool reach is 1 MiB.
constexpr size_t kMostBytes = size_t{960} << 10;
/// Callee-saved registers, and of vector registers v8 to v15, where units 5 and 6 are.
constexpr int kSavedRegisters = 12, kSavedVectors = 8, kRegisterBytes = 8;
constexpr int kVectorsAt = kSavedRegisters * kRegisterBytes,
              kFrameRecord = kVectorsAt + kSavedVectors * kRegisterBytes;
constexpr uint32_t kUnitsOfSaved = 3u << 5;

}  // namespace

Emitter::Emitter(const graph::Graph& graph, GpuAddr code)
    : RegisterScan(graph, kUnits),
      code_(code),
      rounds_(changes_rounding(graph)),
      zero_is_loose_(loose_zeros(graph)) {}

bool Emitter::has_code(Op op) { return lane_operation(op) || other_operation(op); }

void Emitter::emit(const Node& node) {
  const LaneOperation* const operation = lane_operation(node.op);
  operation ? lanes(node, *operation) : (this->*other_operation(node.op))(node);
}

/// What the begin needs is known at the end, where it stands.
std::vector<uint8_t> Emitter::make() {
  Label begin, body;
  masm_.B(&begin);
  masm_.Bind(&body);
  walk();
  epilogue();
  unsure_results();
  guards();
  masm_.Bind(&begin);
  prologue(body);
  while (masm_.GetCursorOffset() % kPartBytes != 0) masm_.Nop();
  if (static_cast<size_t>(masm_.GetCursorOffset()) > kMostBytes) return {};
  masm_.Bind(&pool_label_);
  masm_.FinalizeCode();
  const auto bytes = static_cast<size_t>(masm_.GetCursorOffset());
  std::vector<uint8_t> result(bytes + pool_.size() * sizeof(uint64_t));
  std::memcpy(result.data(), masm_.GetBuffer()->GetStartAddress<const uint8_t*>(), bytes);
  if (!pool_.empty()) std::memcpy(result.data() + bytes, pool_.data(), result.size() - bytes);
  return result;
}

/// What the code is not made for: varyings or rows that are not there, results of lookups from before.
void Emitter::decline(const Needs& needs) {
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

void Emitter::prologue(Label& body) {
  const Needs needs = needs_of(graph_);
  decline(needs);
  masm_.Stp(x29, x30, MemOperand(sp, -kFrameRecord, PreIndex));
  for (int n = 2; n < kSavedRegisters; n += 2)
    masm_.Stp(XRegister(17 + n), XRegister(18 + n), MemOperand(sp, n * kRegisterBytes));
  if (used_ & kUnitsOfSaved)
    for (int n = 0; n < kSavedVectors; n += 2)
      masm_.Stp(DRegister(8 + n), DRegister(9 + n), MemOperand(sp, kVectorsAt + n * kRegisterBytes));
  masm_.Mov(x29, sp);
  masm_.Sub(x12, sp, kSlots + kLaneBytes * num_slots_);
  masm_.And(sp, x12, ~uint64_t{kLaneBytes - 1});
  masm_.Mov(kThread, x0);
  masm_.Add(kUpper, kThread, kUpperAt);
  masm_.Add(kUppermost, kThread, kUppermostAt);
  masm_.Mov(kCode.W(), code_);
  if (!pool_.empty()) masm_.Adr(kPool, &pool_label_);
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

void Emitter::epilogue() {
  set_mode(Mode::kHost);
  masm_.Mov(x0, 0);
  masm_.Bind(&leave_);
  masm_.Mov(sp, x29);
  if (used_ & kUnitsOfSaved)
    for (int n = 0; n < kSavedVectors; n += 2)
      masm_.Ldp(DRegister(8 + n), DRegister(9 + n), MemOperand(sp, kVectorsAt + n * kRegisterBytes));
  for (int n = 2; n < kSavedRegisters; n += 2)
    masm_.Ldp(XRegister(17 + n), XRegister(18 + n), MemOperand(sp, n * kRegisterBytes));
  masm_.Ldp(x29, x30, MemOperand(sp, kFrameRecord, PostIndex));
  masm_.Ret();
  masm_.Bind(&declined_);
  masm_.Mov(x0, reinterpret_cast<uint64_t>(vc4::kDeclined));
  masm_.Ret();
}

void Emitter::set_mode(Mode mode) {
  if (mode == Mode::kAny || current_mode_ == mode) return;
  current_mode_ = mode;
  masm_.Msr(FPCR, mode == Mode::kOwn ? kOwnMode : kHostMode);
}

}  // namespace v3d::qpu::jit::neon
