/// @file Where values are: registers, the thread, constants and the frame.

#include "gpu/base/lanes.h"
#include "gpu/qpu/jit/graph/emitter.h"
#include "gpu/qpu/jit/graph/frame.h"

namespace v3d::qpu::jit {

constexpr int kScratchOfHalves = 6;

/// Functions of halves have all registers but two for values, of which each is one.
GraphEmitter::Vector GraphEmitter::vector(int unit, int part) const {
  if (are_halves()) return Vector(Xbyak::Operand::YMM, unit < kScratchOfHalves ? unit : unit + 2);
  return Vector(wide_ ? Xbyak::Operand::ZMM : Xbyak::Operand::YMM, parts_ * unit + part);
}
GraphEmitter::Vector GraphEmitter::scratch(int n) const {
  if (are_halves()) return Vector(Xbyak::Operand::YMM, kScratchOfHalves + n);
  return wide_ ? Vector(Xbyak::Operand::ZMM, 30 + n) : Vector(Xbyak::Operand::YMM, 14 + n);
}

Xbyak::Address GraphEmitter::slot(int n, int part) const {
  return ptr[rsp + kSlots + bytes_of_part_ * (parts_ * n + part)];
}

/// A word that an instruction spreads over all lanes; of AVX2 it stands there eight times.
Xbyak::Address GraphEmitter::constant(uint32_t bits) {
  Xbyak::Label& label = constants_[bits];
  return wide_ ? ptr_b[rip + label] : ptr[rip + label];
}

/// It stands in memory once for all lanes.
bool GraphEmitter::is_word(Id id) const {
  return graph_[id].op == Op::kVaryingC || (graph_[id].op == Op::kUniformWord && !uniforms_are_spread_);
}

/// The same, but that it stands there as often as a vector of AVX2 wants it.
bool GraphEmitter::is_everywhere(Id id) const {
  const Op op = graph_[id].op;
  return op == Op::kConst || op == Op::kTextureWord || (op == Op::kUniformWord && uniforms_are_spread_);
}

/// @param spreads  whether the instruction can spread a word
Xbyak::Address GraphEmitter::memory_of(Id id, int part, bool spreads) {
  const Place& place = places_[id];
  return place.slot >= 0 ? slot(place.slot, part) : stands_at(id, part, spreads);
}

/// Where it stands whatever becomes of registers.
Xbyak::Address GraphEmitter::stands_at(Id id, int part, bool spreads) {
  const Node& node = graph_[id];
  switch (node.op) {
    case Op::kConst:
      return spreads ? constant(node.immediate) : ptr[rip + constants_[node.immediate]];
    case Op::kLaneIndex:
      uses_lane_index_ = true;
      return ptr[rip + lane_index_ + (wide_ ? 0 : 32 * part)];
    default:
      return home_of(node, part, spreads);
  }
}

/// The node's result is a mask of a bit for each lane, a word of 16 bits in memory.
void GraphEmitter::mask_from(const Node& node, const Xbyak::Address& from, const Xbyak::Address& second) {
  const int to = result(node);
  if (wide_) {
    for (int p = 0; p < parts_; ++p) {
      kmovw(k1, p == 0 ? from : second);
      vpmovm2d(vector(to, p), k1);
    }
    return;
  }
  movzx(eax, from);
  vmovd(Xbyak::Xmm(scratch(0).getIdx()), eax);
  vpbroadcastd(scratch(0), Xbyak::Xmm(scratch(0).getIdx()));
  uses_lane_bits_ = true;
  for (int p = 0; p < parts_; ++p) {
    vmovdqa(scratch(1), ptr[rip + lane_bits_ + 32 * p]);
    vpand(vector(to, p), scratch(0), scratch(1));
    vpcmpeqd(vector(to, p), vector(to, p), scratch(1));
  }
}

void GraphEmitter::mask_to(const Xbyak::Reg32& to, Id mask) {
  if (graph_.is_constant(mask)) {
    mov(to, are_pairs_ ? graph_[mask].immediate : graph_[mask].immediate & kAllLanes);
    return;
  }
  const int from = in_register(mask);
  if (wide_) {
    vpmovd2m(k1, vector(from, 0));
    if (are_pairs_) {
      vpmovd2m(k5, vector(from, 1));
      kunpckwd(k1, k5, k1);
    }
    kmovd(to, k1);
    return;
  }
  vmovmskps(to, vector(from, 0));
  if (are_halves()) return;
  vmovmskps(eax, vector(from, 1));
  shl(eax, 8);
  or_(to, eax);
}

void GraphEmitter::load(int unit, Id id) {
  if (is_word(id) || (wide_ && is_everywhere(id) && places_[id].slot < 0)) {
    vpbroadcastd(vector(unit, 0), memory_of(id, 0, false));
    if (parts_ == 2)
      wide_ ? vmovdqa32(vector(unit, 1), vector(unit, 0)) : vmovdqa(vector(unit, 1), vector(unit, 0));
    return;
  }
  for (int p = 0; p < parts_; ++p) vmovups(vector(unit, p), memory_of(id, p, false));
}

template <typename Fn>
void GraphEmitter::for_each_vector(int pushed, Fn fn) {
  for (int n = 0; n < (wide_ ? 32 : 16); ++n)
    fn(Vector(wide_ ? Xbyak::Operand::ZMM : Xbyak::Operand::YMM, n),
       ptr[rsp + pushed + kSaved + (wide_ ? 64 : 32) * n]);
}
void GraphEmitter::save_vectors(int pushed) {
  for_each_vector(pushed, [&](const Vector& v, const Xbyak::Address& to) { vmovups(to, v); });
}
void GraphEmitter::restore_vectors(int pushed) {
  for_each_vector(pushed, [&](const Vector& v, const Xbyak::Address& from) { vmovups(v, from); });
}

void GraphEmitter::save(int unit, int n) {
  for (int p = 0; p < parts_; ++p) vmovaps(slot(n, p), vector(unit, p));
}

GraphEmitter::Last GraphEmitter::last_operand(Id id, bool spreads) {
  const Place& place = places_[id];
  const bool spread = is_word(id), is_constant = spread || is_everywhere(id);
  const bool may_stay = place.unit < 0 && (!is_constant || (wide_ ? spreads : !spread));
  if (may_stay && (is_constant || is_last_use(id) || is_needed_late(id))) return {id, -1};
  return {id, in_register(id)};
}

}  // namespace v3d::qpu::jit
