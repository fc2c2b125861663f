#include "gpu/qpu/jit/neon/emitter.h"

#include <cstddef>
#include <cstring>

#include "gpu/qpu/jit/graph/facts.h"
#include "gpu/qpu/jit/neon/frame.h"

namespace v3d::qpu::jit::neon {
namespace {

using namespace vixl::aarch64;  // NOLINT(google-build-using-namespace): registers have their names

constexpr int kUnits = 7;
/// What branches and the address of the pool reach is 1 MiB.
constexpr size_t kMostBytes = size_t{960} << 10;
/// Callee-saved registers, and of vector registers v8 to v15, where units 5 and 6 are.
constexpr int kSavedRegisters = 12, kSavedVectors = 8, kRegisterBytes = 8;
constexpr int kVectorsAt = kSavedRegisters * kRegisterBytes,
              kFrameRecord = kVectorsAt + kSavedVectors * kRegisterBytes;
constexpr uint32_t kUnitsOfSaved = 3u << 5;

}  // namespace

Emitter::Emitter(const graph::Graph& graph)
    : RegisterScan(graph, kUnits),
      zero_is_loose_(loose_zeros(graph)),
      nan_is_loose_(loose_nans(graph)),
      is_quiet_(quiet_floats(graph)) {}

void Emitter::emit(const Node& node) {
  if (const LaneOperation* const operation = lane_operation(node.op)) return lanes(node, *operation);
  if (const Emit other = other_operation(node.op)) return (this->*other)(node);
  emit_own(node);
}

/// What the begin needs is known at the end, where it stands.
std::vector<uint8_t> Emitter::make() {
  Label begins, body;
  masm_.B(&begins);
  masm_.Bind(&body);
  before_nodes();
  walk();
  end();
  masm_.Bind(&begins);
  begin(body);
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

/// And makes the frame.
void Emitter::save_registers() {
  masm_.Stp(x29, x30, MemOperand(sp, -kFrameRecord, PreIndex));
  for (int n = 2; n < kSavedRegisters; n += 2)
    masm_.Stp(XRegister(17 + n), XRegister(18 + n), MemOperand(sp, n * kRegisterBytes));
  if (used_ & kUnitsOfSaved)
    for (int n = 0; n < kSavedVectors; n += 2)
      masm_.Stp(DRegister(8 + n), DRegister(9 + n), MemOperand(sp, kVectorsAt + n * kRegisterBytes));
  masm_.Mov(x29, sp);
  masm_.Sub(x12, sp, kSlots + kLaneBytes * num_slots_);
  masm_.And(sp, x12, ~uint64_t{kLaneBytes - 1});
  if (!pool_.empty()) masm_.Adr(kPool, &pool_label_);
}

void Emitter::restore_registers() {
  masm_.Mov(sp, x29);
  if (used_ & kUnitsOfSaved)
    for (int n = 0; n < kSavedVectors; n += 2)
      masm_.Ldp(DRegister(8 + n), DRegister(9 + n), MemOperand(sp, kVectorsAt + n * kRegisterBytes));
  for (int n = 2; n < kSavedRegisters; n += 2)
    masm_.Ldp(XRegister(17 + n), XRegister(18 + n), MemOperand(sp, n * kRegisterBytes));
  masm_.Ldp(x29, x30, MemOperand(sp, kFrameRecord, PostIndex));
}

void Emitter::call(const void* function) {
  masm_.Mov(x16, reinterpret_cast<uint64_t>(function));
  masm_.Blr(x16);
}

void Emitter::set_mode(Mode mode) {
  if (mode == Mode::kAny || current_mode_ == mode) return;
  current_mode_ = mode;
  masm_.Msr(FPCR, mode == Mode::kOwn ? kOwnMode : kHostMode);
}

}  // namespace v3d::qpu::jit::neon
