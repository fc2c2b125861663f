/// @file Where values are: registers, the thread, constants and the frame.

#include "gpu/qpu/jit/graph/emitter.h"
#include "gpu/qpu/jit/graph/frame.h"

namespace v3d::qpu::jit {

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

/// @param spreads  whether the instruction can spread a word
Xbyak::Address GraphEmitter::memory_of(Id id, int part, bool spreads) {
  const Node& node = graph_[id];
  const Place& place = places_[id];
  if (place.slot >= 0) return slot(place.slot, part);
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

void GraphEmitter::save(int unit, int n) {
  for (int p = 0; p < parts_; ++p) vmovaps(slot(n, p), vector(unit, p));
}

GraphEmitter::Last GraphEmitter::last_operand(Id id, bool spreads) {
  const Place& place = places_[id];
  const bool is_constant = graph_[id].op == Op::kConst;
  const bool may_stay = place.unit < 0 && (!is_constant || spreads || !wide_);
  if (may_stay && (is_constant || is_last_use(id))) return {id, -1};
  return {id, in_register(id)};
}

}  // namespace v3d::qpu::jit
