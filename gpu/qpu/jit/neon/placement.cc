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
Emitter::Vector Emitter::zero() { return VRegister(28, vixl::aarch64::kFormat4S); }

Emitter::Memory Emitter::in_pool(int64_t offset) { return {kPool, offset}; }

/// @param place  of a value that is in memory
Emitter::Memory Emitter::memory_of(Id id, const Place& place) {
  if (place.slot >= 0) return {vixl::aarch64::sp, kSlots + int64_t{kLaneBytes} * place.slot};
  const Node& node = graph_[id];
  return node.op == Op::kLaneIndex ? in_pool(lane_index()) : home_of(node);
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

void Emitter::move_all(Way way) {
  for (int n = 0; n < 32; n += 2)
    move(way, VRegister(n, vixl::aarch64::kFormat4S), VRegister(n + 1, vixl::aarch64::kFormat4S),
         {vixl::aarch64::sp, kSaved + n * kPartBytes});
}

/// It stands in memory once for all lanes, or is a constant.
bool Emitter::is_word(Id id) const {
  const Op op = graph_[id].op;
  return op == Op::kConst || op == Op::kVaryingC || op == Op::kUniformWord || op == Op::kTextureWord;
}

void Emitter::load(int unit, Id id) {
  if (!is_word(id) || places_[id].slot >= 0) return move(Way::kLoad, unit, memory_of(id));
  spread_word(part(unit, 0), id);
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

/// A word, in all lanes of one register.
void Emitter::spread_word(const Vector& to, Id id) {
  const Node& node = graph_[id];
  if (node.op == Op::kConst) return spread(to, node.immediate);
  // It may stand there as often as a register has it.
  if (node.op == Op::kTextureWord || (node.op == Op::kUniformWord && uniforms_are_spread_))
    return masm_.Ldr(to.Q(), operand_of(home_of(node)));
  masm_.Ldr(to.S(), operand_of(home_of(node)));
  masm_.Dup(to, to, 0);
}

Emitter::Operand Emitter::operand(Id id, int scratch_for_word) {
  const bool is_spread = is_word(id) && places_[id].unit < 0 && places_[id].slot < 0;
  if (!is_spread) return {in_register(id), {}};
  const Vector to = scratch(scratch_for_word);
  spread_word(to, id);
  return {-1, to};
}

void Emitter::store_parts(const Operand& from, const Memory& to) {
  for (int p = 0; p < kParts; p += 2)
    move(Way::kStore, at(from, p), at(from, p + 1), {to.base, to.offset + p * kPartBytes});
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
  bytes_of(low, high, mask, place);
  constexpr uint64_t kBits = 0x8040201008040201;
  masm_.Ldr(high.Q(), operand_of(in_pool(pooled(kBits, kBits))));
  masm_.And(low.V16B(), low.V16B(), high.V16B());
  for (int n = 0; n < 3; ++n) masm_.Addp(low.V16B(), low.V16B(), low.V16B());
  masm_.Umov(to, low.V8H(), 0);
}

void Emitter::store_behind(const Node& node, const Register& base) {
  std::vector<Stored> values = stored_at(graph_, node, places_);
  copy_replaced(graph_, values, [&](const Stored& what) {
    const int copy = num_slots_++;
    store_to(what.node->operands[0], what.place, {vixl::aarch64::sp, kSlots + int64_t{kLaneBytes} * copy});
    return static_cast<int16_t>(copy);
  });
  for (const Stored& what : values) {
    const Id id = what.node->operands[0];
    const int64_t offset = what.node->immediate;
    if (what.node->op == Op::kStoreMask) {
      mask_to(vixl::aarch64::w10, id, what.place);
      masm_.Strh(vixl::aarch64::w10, MemOperand(base, offset));
    } else {
      store_to(id, what.place, {base, offset});
    }
    consume(*what.node);
  }
}

/// A word in memory, in all lanes of a value.
void Emitter::spread_memory(int unit, const MemOperand& from) {
  masm_.Ldr(part(unit, 0).S(), from);
  for (int p = kParts - 1; p >= 0; --p) masm_.Dup(part(unit, p), part(unit, 0), 0);
}

std::pair<Emitter::Vector, Emitter::Vector> Emitter::pair_of(Id id, const Place& place, int p,
                                                             int scratch_number) {
  if (place.unit >= 0) return {part(place.unit, p), part(place.unit, p + 1)};
  const Vector first = scratch(scratch_number), second = scratch(scratch_number + 1);
  if (place.slot < 0 && is_word(id)) {
    spread_word(first, id);
    return {first, first};
  }
  const Memory memory = memory_of(id, place);
  move(Way::kLoad, first, second, {memory.base, memory.offset + p * kPartBytes});
  return {first, second};
}

// ---- Masks

/// The node's result is a mask of a bit for each lane, a word of 16 bits in memory.
void Emitter::mask_from(const Node& node, const MemOperand& from) {
  const int to = result(node);
  masm_.Ldrh(vixl::aarch64::w9, from);
  masm_.Dup(scratch(0), vixl::aarch64::w9);
  const Memory bits = in_pool(lane_bits());
  for (int p = 0; p < kParts; p += 2) {
    move(Way::kLoad, scratch(1), scratch(2), {bits.base, bits.offset + p * kPartBytes});
    masm_.Cmtst(part(to, p), scratch(0), scratch(1));
    masm_.Cmtst(part(to, p + 1), scratch(0), scratch(2));
  }
}

/// A byte for each lane of a mask, all ones or 0. @param to, other  the first two scratch registers
void Emitter::bytes_of(const Vector& to, const Vector& other, Id mask, const Place& place) {
  auto parts = pair_of(mask, place, 0, 0);
  masm_.Uzp1(to.V8H(), parts.first.V8H(), parts.second.V8H());
  parts = pair_of(mask, place, 2, 1);
  masm_.Uzp1(other.V8H(), parts.first.V8H(), parts.second.V8H());
  masm_.Uzp1(to.V16B(), to.V16B(), other.V16B());
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

/// As kBlockX and kBlockY of gpu/pse have them.
int64_t Emitter::columns_of_block(int64_t& at) {
  return table(at, [](uint32_t lane) { return (lane & 1) + (lane >> 2 & 1) * 2; });
}
int64_t Emitter::rows_of_block(int64_t& at) {
  return table(at, [](uint32_t lane) { return (lane >> 1 & 1) + (lane >> 3) * 2; });
}

int64_t Emitter::lane_bits() {
  return table(lane_bits_, [](uint32_t lane) { return 1u << lane; });
}

}  // namespace v3d::qpu::jit::neon
