/// @file Where values are: registers, the thread, constants and the frame.

#include <algorithm>

#include "gpu/qpu/jit/graph/emitter.h"
#include "gpu/qpu/jit/graph/frame.h"

namespace v3d::qpu::jit {

using graph::kNoNode;

GraphEmitter::Vector GraphEmitter::vector(int unit, int part) const {
  return wide_ ? Vector(Xbyak::Operand::ZMM, unit) : Vector(Xbyak::Operand::YMM, 2 * unit + part);
}
GraphEmitter::Vector GraphEmitter::scratch(int n) const {
  return wide_ ? Vector(Xbyak::Operand::ZMM, 30 + n) : Vector(Xbyak::Operand::YMM, 14 + n);
}

Xbyak::Address GraphEmitter::slot(int n, int part) const {
  return ptr[rsp + kSlots + kLaneBytes * n + 32 * part];
}

/// A word that an instruction spreads over all lanes; of AVX2 it stands there eight times.
Xbyak::Address GraphEmitter::constant(uint32_t bits) {
  Xbyak::Label& label = constants_[bits];
  return wide_ ? ptr_b[rip + label] : ptr[rip + label];
}

bool GraphEmitter::is_in_memory(Id id) const { return places_[id].home || places_[id].slot >= 0; }

/// @param spreads  whether the instruction can spread a word
Xbyak::Address GraphEmitter::memory_of(Id id, int part, bool spreads) {
  const Place& place = places_[id];
  return place.slot >= 0 ? slot(place.slot, part) : home_of(id, part, spreads);
}

/// Where it stands whatever becomes of registers.
Xbyak::Address GraphEmitter::home_of(Id id, int part, bool spreads) {
  const Node& node = graph_[id];
  switch (node.op) {
    case Op::kConst:
      return spreads ? constant(node.immediate) : ptr[rip + constants_[node.immediate]];
    case Op::kLaneIndex:
      uses_lane_index_ = true;
      return ptr[rip + lane_index_ + 32 * part];
    case Op::kVarying:
      return ptr[kVaryings + static_cast<int>(node.immediate) * kLaneBytes + 32 * part];
    default:
      return ptr[kThread + static_cast<int>(node.immediate) + 32 * part];
  }
}

void GraphEmitter::load(int unit, Id id) {
  if (wide_ && graph_[id].op == Op::kConst && places_[id].slot < 0) {
    vpbroadcastd(vector(unit, 0), ptr[rip + constants_[graph_[id].immediate]]);
    return;
  }
  for (int p = 0; p < parts_; ++p) vmovups(vector(unit, p), memory_of(id, p, false));
}

/// What it holds is in memory then, or not needed any more.
void GraphEmitter::vacate(int unit) {
  const Id id = held_[static_cast<size_t>(unit)];
  if (id == kNoNode) return;
  Place& place = places_[id];
  if (uses_.next(id) != Uses::kNever && !is_in_memory(id)) {
    place.slot = static_cast<int16_t>(num_slots_++);
    for (int p = 0; p < parts_; ++p) vmovaps(slot(place.slot, p), vector(unit, p));
  }
  place.unit = -1;
  held_[static_cast<size_t>(unit)] = kNoNode;
}

void GraphEmitter::vacate_all() {
  for (int unit = 0; unit < num_units_; ++unit) vacate(unit);
}

/// A free one, or that of the value that is needed last.
int GraphEmitter::new_unit() {
  int best = -1;
  uint32_t latest = 0;
  for (int unit = 0; unit < num_units_; ++unit) {
    if (locked_ >> unit & 1) continue;
    const Id id = held_[static_cast<size_t>(unit)];
    if (id == kNoNode) return unit;
    const uint32_t next = uses_.next(id);
    if (best >= 0 && next <= latest) continue;
    best = unit;
    latest = next;
  }
  vacate(best);
  return best;
}

int GraphEmitter::in_register(Id id) {
  Place& place = places_[id];
  if (place.unit < 0) {
    const int unit = new_unit();
    load(unit, id);
    place.unit = static_cast<int16_t>(unit);
    held_[static_cast<size_t>(unit)] = id;
  }
  locked_ |= 1u << place.unit;
  return place.unit;
}

GraphEmitter::Last GraphEmitter::last_operand(Id id, bool spreads) {
  const Place& place = places_[id];
  const bool is_constant = graph_[id].op == Op::kConst;
  const bool may_stay = place.unit < 0 && (!is_constant || spreads || !wide_);
  if (may_stay && (is_constant || uses_.after_next(id) == Uses::kNever)) return {id, -1};
  return {id, in_register(id)};
}

/// Its operands are used; units of those that are not needed any more are free.
void GraphEmitter::consume(const Node& node) {
  for (int n = 0; n < graph::info(node.op).operands; ++n) {
    const Id id = node.operands[n];
    uses_.pass(id);
    Place& place = places_[id];
    if (place.unit < 0 || uses_.next(id) != Uses::kNever) continue;
    held_[static_cast<size_t>(place.unit)] = kNoNode;
    locked_ &= ~(1u << place.unit);
    place.unit = -1;
  }
}

/// The unit of the node's result, after its operands are in theirs.
/// @param apart  it is none of theirs
int GraphEmitter::result(const Node& node, bool apart) {
  if (!apart) consume(node);
  const int unit = new_unit();
  if (apart) {
    locked_ |= 1u << unit;
    consume(node);
  }
  const Id id = static_cast<Id>(&node - graph_.nodes().data());
  held_[static_cast<size_t>(unit)] = id;
  places_[id].unit = static_cast<int16_t>(unit);
  return unit;
}

}  // namespace v3d::qpu::jit
