/// @file Where values are: registers, the thread, constants and the frame.

#include <cstddef>

#include "gpu/base/lanes.h"
#include "gpu/qpu/jit/neon/emitter.h"
#include "gpu/qpu/jit/neon/frame.h"

namespace v3d::qpu::jit::neon {

using vixl::aarch64::VRegister;

/// The last ones are those of which calls keep halves, and a zero and scratch registers stand behind all.
Emitter::Vector Emitter::part(int unit, int p) {
  constexpr int kFirst[] = {0, 4, 16, 20, 24, 8, 12};
  used_ |= 1u << unit;
  return VRegister(kFirst[unit] + p, vixl::aarch64::kFormat4S);
}

Emitter::Vector Emitter::scratch(int n) { return VRegister(29 + n, vixl::aarch64::kFormat4S); }

Emitter::Memory Emitter::in_thread(int64_t offset) {
  if (offset >= kUppermostAt - kReach) return {kUppermost, offset - kUppermostAt};
  if (offset >= kUpperAt - kReach) return {kUpper, offset - kUpperAt};
  return {kThread, offset};
}

Emitter::Memory Emitter::in_pool(int64_t offset) { return {kPool, offset}; }

/// @param place  of a value that is in memory
Emitter::Memory Emitter::memory_of(Id id, const Place& place) {
  if (place.slot >= 0) return {vixl::aarch64::sp, kSlots + int64_t{kLaneBytes} * place.slot};
  const Node& node = graph_[id];
  if (node.op == Op::kLaneIndex) return in_pool(lane_index());
  if (node.op == Op::kVarying) return {kVaryings, int64_t{node.immediate} * kLaneBytes};
  return in_thread(node.immediate);
}

void Emitter::move(Way way, const Vector& first, const Vector& second, const Memory& memory) {
  const MemOperand at = operand_of(memory);
  if (memory.offset >= -kReach && memory.offset <= kReach - 2 * kPartBytes) {
    way == Way::kLoad ? masm_.Ldp(first.Q(), second.Q(), at) : masm_.Stp(first.Q(), second.Q(), at);
    return;
  }
  const MemOperand behind(memory.base, memory.offset + kPartBytes);
  way == Way::kLoad ? masm_.Ldr(first.Q(), at) : masm_.Str(first.Q(), at);
  way == Way::kLoad ? masm_.Ldr(second.Q(), behind) : masm_.Str(second.Q(), behind);
}

void Emitter::move(Way way, int unit, const Memory& memory) {
  for (int p = 0; p < kParts; p += 2)
    move(way, part(unit, p), part(unit, p + 1), {memory.base, memory.offset + p * kPartBytes});
}

void Emitter::load(int unit, Id id) {
  if (graph_[id].op != Op::kConst || places_[id].slot >= 0) return move(Way::kLoad, unit, memory_of(id));
  spread(part(unit, 0), graph_[id].immediate);
  for (int p = 1; p < kParts; ++p) masm_.Mov(part(unit, p).V16B(), part(unit, 0).V16B());
}

void Emitter::save(int unit, int slot) {
  move(Way::kStore, unit, {vixl::aarch64::sp, kSlots + int64_t{kLaneBytes} * slot});
}

/// A constant, in all lanes of one register.
void Emitter::spread(const Vector& to, uint32_t bits) {
  for (int shift = 0; shift < 32; shift += 8) {
    const uint32_t mask = 0xffu << shift;
    if ((bits & ~mask) == 0) return masm_.Movi(to, bits >> shift, vixl::aarch64::LSL, shift);
    if ((bits | mask) == ~0u)
      return masm_.Mvni(to, static_cast<int>(~bits >> shift), vixl::aarch64::LSL, shift);
  }
  const uint64_t both = uint64_t{bits} << 32 | bits;
  masm_.Ldr(to.Q(), operand_of(in_pool(pooled(both, both))));
}

Emitter::Operand Emitter::operand(Id id, int scratch_for_constant) {
  const bool is_spread = graph_.is_constant(id) && places_[id].unit < 0 && places_[id].slot < 0;
  if (!is_spread) return {in_register(id), {}};
  const Vector to = scratch(scratch_for_constant);
  spread(to, graph_[id].immediate);
  return {-1, to};
}

void Emitter::store_parts(const Operand& from, const Memory& to) {
  for (int p = 0; p < kParts; p += 2)
    move(Way::kStore, at(from, p), at(from, p + 1), {to.base, to.offset + p * kPartBytes});
}

// ---- Constants behind the code

int64_t Emitter::pooled(uint64_t low, uint64_t high) {
  const auto [entry, is_new] =
      pooled_.try_emplace({low, high}, static_cast<int64_t>(pool_.size() * sizeof(uint64_t)));
  if (is_new) pool_.insert(pool_.end(), {low, high});
  return entry->second;
}

int64_t Emitter::table(int64_t& at, uint32_t (*word_of)(uint32_t lane)) {
  if (at >= 0) return at;
  at = static_cast<int64_t>(pool_.size() * sizeof(uint64_t));
  for (uint32_t lane = 0; lane < kLanes; lane += 2)
    pool_.push_back(word_of(lane) | uint64_t{word_of(lane + 1)} << 32);
  return at;
}

int64_t Emitter::lane_index() {
  return table(lane_index_, [](uint32_t lane) { return lane; });
}

int64_t Emitter::lane_bits() {
  return table(lane_bits_, [](uint32_t lane) { return 1u << lane; });
}

}  // namespace v3d::qpu::jit::neon
