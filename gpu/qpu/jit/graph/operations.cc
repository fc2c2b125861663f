/// @file Code of operations on values.

#include <algorithm>
#include <utility>
#include <vector>

#include "gpu/qpu/jit/graph/emitter.h"
#include "gpu/qpu/jit/graph/frame.h"

namespace v3d::qpu::jit {
namespace {

constexpr int kNotEqual = 4;               // of floats; what is no number is not equal
constexpr int kNotLess = 5, kGreater = 6;  // of integers
constexpr uint8_t kNoException = 8, kDown = 1 | kNoException;
constexpr uint8_t kEqual = 0, kBelow = 17, kAtMost = 18,  // of floats, which are ordered
    kNotBelow = 13, kNumbers = 7;                         // and both no NaNs
constexpr uint8_t kMaskOrOther = 0xca;                    // vpternlogd: a ? b : c
constexpr uint32_t kLargest = 0x7f7fffff, kMagnitude = 0x7fffffff, kSign = 0x80000000;

}  // namespace

template <typename Fn>
void GraphEmitter::with(const Last& last, int part, bool spreads, Fn fn) {
  if (last.unit >= 0)
    fn(vector(last.unit, part));
  else
    fn(memory_of(last.id, part, spreads));
}

template <typename Fn>
void GraphEmitter::binary(const Node& node, Fn fn, bool spreads) {
  Id a = node.operands[0], b = node.operands[1];
  if (graph::has(node.op, graph::kCommutes) && places_[a].unit < 0 && places_[b].unit >= 0) std::swap(a, b);
  const int first = in_register(a);
  const Last last = last_operand(b, spreads);
  const int to = result(node);
  for (int p = 0; p < parts_; ++p)
    with(last, p, spreads, [&](const Xbyak::Operand& o) { fn(vector(to, p), vector(first, p), o); });
}

template <typename Fn>
void GraphEmitter::unary(const Node& node, Fn fn) {
  const Last last = last_operand(node.operands[0]);
  const int to = result(node);
  for (int p = 0; p < parts_; ++p)
    with(last, p, true, [&](const Xbyak::Operand& o) { fn(vector(to, p), o); });
}

/// @param Fn  the instruction for two registers and an operand of any kind
#define V3D_BINARY(op, instruction, spreads)                                                            \
  case Op::op:                                                                                          \
    binary(                                                                                             \
        node, [&](const Vector& d, const Vector& a, const Xbyak::Operand& b) { instruction(d, a, b); }, \
        spreads);                                                                                       \
    return true;
#define V3D_BITWISE(op, narrow, wide)                                             \
  case Op::op:                                                                    \
    binary(node, [&](const Vector& d, const Vector& a, const Xbyak::Operand& b) { \
      wide_ ? wide(d, a, b) : narrow(d, a, b);                                    \
    });                                                                           \
    return true;

bool GraphEmitter::emit_words(const Node& node) {
  switch (node.op) {
    V3D_BINARY(kAdd, vpaddd, true)
    V3D_BINARY(kSub, vpsubd, true)
    V3D_BINARY(kMul, vpmulld, true)
    V3D_BINARY(kMin, vpminsd, true)
    V3D_BINARY(kMax, vpmaxsd, true)
    V3D_BINARY(kMinUnsigned, vpminud, true)
    V3D_BITWISE(kAnd, vpand, vpandd)
    V3D_BITWISE(kAndNot, vpandn, vpandnd)
    V3D_BITWISE(kOr, vpor, vpord)
    V3D_BITWISE(kXor, vpxor, vpxord)
    case Op::kShl:
    case Op::kShr:
    case Op::kSar:
      shift(node);
      return true;
    case Op::kEqual:
    case Op::kAbove:
    case Op::kAboveUnsigned:
      compare(node);
      return true;
    case Op::kChoose:
      choose(node);
      return true;
    case Op::kLeadingZeros:
      leading_zeros(node);
      return true;
    default:
      return false;
  }
}

bool GraphEmitter::emit_parts(const Node& node) {
  switch (node.op) {
    case Op::kMulHalves:
      multiply_halves(node);
      return true;
      V3D_BINARY(kAddHalves, vpaddw, false)
      V3D_BINARY(kMinBytes, vpminub, false)
      V3D_BINARY(kMaxBytes, vpmaxub, false)
      V3D_BINARY(kAddBytes, vpaddusb, false)
      V3D_BINARY(kSubBytes, vpsubusb, false)
      V3D_BINARY(kByteProducts, vpmaddubsw, false)
      V3D_BINARY(kHalfProducts, vpmaddwd, false)
      V3D_BINARY(kPackWords, vpackssdw, true)
    case Op::kPackBytes:
      pack_bytes(node);
      return true;
    case Op::kUpperBytes: {
      const int a = in_register(node.operands[0]), to = result(node);
      for (int p = 0; p < parts_; ++p) vpsrlw(vector(to, p), vector(a, p), 8);
      return true;
    }
    default:
      return false;
  }
}

bool GraphEmitter::emit_floats(const Node& node) {
  switch (node.op) {
    V3D_BINARY(kMulExact, vmulps, true)
    case Op::kSum:
    case Op::kProduct:
      toward_zero(node);
      return true;
    case Op::kFloatOf:
      float_of(node);
      return true;
    case Op::kIntegerOf:
      integer_of(node);
      return true;
    case Op::kAddNearest:
    case Op::kMulNearest:
      to_nearest(node);
      return true;
    case Op::kReciprocal:
      reciprocal(node);
      return true;
    case Op::kReciprocalRoot:
    case Op::kExp2:
    case Op::kLog2:
      special(node);
      return true;
    case Op::kFloor:
      unary(node, [&](const Vector& d, const Xbyak::Operand& a) {
        wide_ ? vrndscaleps(d, a, kDown) : vroundps(d, a, kDown);
      });
      return true;
    case Op::kTruncate:
      unary(node, [&](const Vector& d, const Xbyak::Operand& a) { vcvttps2dq(d, a); });
      return true;
    default:
      return false;
  }
}

/// Of V3D 4.2 and 7.1: as the host's program computes. Where two operands are NaNs the host, too, gives the
/// first one.
bool GraphEmitter::emit_nearest_floats(const Node& node) {
  switch (node.op) {
    V3D_BINARY(kFloatSum, vaddps, true)
    V3D_BINARY(kFloatDifference, vsubps, true)
    V3D_BINARY(kFloatProduct, vmulps, true)
    V3D_BINARY(kFloatQuotient, vdivps, true)
    V3D_BINARY(kMaxFloats, vmaxps, true)
    V3D_BINARY(kMinFloats, vminps, true)
    case Op::kEqualFloats:
      compare_floats(node, kEqual);
      return true;
    case Op::kBelowFloats:
      compare_floats(node, kBelow);
      return true;
    case Op::kAtMostFloats:
      compare_floats(node, kAtMost);
      return true;
    case Op::kRound: {
      const auto mode = static_cast<uint8_t>(node.immediate | kNoException);
      unary(node, [&](const Vector& d, const Xbyak::Operand& a) {
        wide_ ? vrndscaleps(d, a, mode) : vroundps(d, a, mode);
      });
      return true;
    }
    case Op::kNearestInteger:
      nearest_integer(node);
      return true;
    case Op::kFittingInteger:
      unary(node, [&](const Vector& d, const Xbyak::Operand& a) { vcvtps2dq(d, a); });
      return true;
    case Op::kNearestFloat:
      unary(node, [&](const Vector& d, const Xbyak::Operand& a) { vcvtdq2ps(d, a); });
      return true;
    case Op::kShuffleQuads:
      unary(node, [&](const Vector& d, const Xbyak::Operand& a) {
        vpshufd(d, a, static_cast<uint8_t>(node.immediate));
      });
      return true;
    case Op::kHalfOf:
    case Op::kFloatOfHalf:
    case Op::kRoundToHalf:
      convert_half(node);
      return true;
    default:
      return false;
  }
}
#undef V3D_BINARY
#undef V3D_BITWISE

/// By 256 they are shifted.
void GraphEmitter::multiply_halves(const Node& node) {
  constexpr uint32_t kShifts = 0x01000100;
  if (!graph_.is_constant(node.operands[1], kShifts))
    return binary(
        node, [&](const Vector& d, const Vector& a, const Xbyak::Operand& b) { vpmullw(d, a, b); }, false);
  const int a = in_register(node.operands[0]), to = result(node);
  for (int p = 0; p < parts_; ++p) vpsllw(vector(to, p), vector(a, p), 8);
}

/// Of each four lanes the channels stand one after the other when they are packed.
void GraphEmitter::pack_bytes(const Node& node) {
  packs_bytes_ = true;
  const auto pack = [&](const Vector& d, const Vector& a, const Xbyak::Operand& b) {
    vpackuswb(d, a, b);
    vpshufb(d, d, ptr[rip + bytes_of_lanes_]);
  };
  binary(node, pack, false);
}

void GraphEmitter::shift(const Node& node) {
  if (id_of(node) == left_out_) return consume(node);
  const Id count = node.operands[1];
  if (!graph_.is_constant(count)) {
    binary(node, [&](const Vector& d, const Vector& a, const Xbyak::Operand& b) {
      node.op == Op::kShl ? vpsllvd(d, a, b) : node.op == Op::kShr ? vpsrlvd(d, a, b) : vpsravd(d, a, b);
    });
    return;
  }
  const auto bits = static_cast<uint8_t>(std::min(graph_[count].immediate, 32u));
  const int a = in_register(node.operands[0]), to = result(node);
  for (int p = 0; p < parts_; ++p) {
    const Vector d = vector(to, p), from = vector(a, p);
    node.op == Op::kShl   ? vpslld(d, from, bits)
    : node.op == Op::kShr ? vpsrld(d, from, bits)
                          : vpsrad(d, from, bits);
  }
}

void GraphEmitter::compare(const Node& node) {
  const bool is_unsigned = node.op == Op::kAboveUnsigned;
  binary(node, [&](const Vector& d, const Vector& a, const Xbyak::Operand& b) {
    if (wide_) {
      if (node.op == Op::kEqual)
        vpcmpeqd(k1, a, b);
      else if (is_unsigned)
        vpcmpud(k1, a, b, kGreater);
      else
        vpcmpgtd(k1, a, b);
      vpmovm2d(d, k1);
    } else if (node.op == Op::kEqual) {
      vpcmpeqd(d, a, b);
    } else if (is_unsigned) {  // their order is that of signed numbers with the sign changed
      vmovdqa(scratch(1), ptr[rip + constants_[kSign]]);
      vpxor(scratch(0), scratch(1), b);
      vpxor(scratch(1), scratch(1), a);
      vpcmpgtd(d, scratch(1), scratch(0));
    } else {
      vpcmpgtd(d, a, b);
    }
  });
}

void GraphEmitter::compare_floats(const Node& node, uint8_t predicate) {
  binary(node, [&](const Vector& d, const Vector& a, const Xbyak::Operand& b) {
    if (wide_) {
      vcmpps(k1, a, b, predicate);
      vpmovm2d(d, k1);
    } else {
      vcmpps(d, a, b, predicate);
    }
  });
}

/// What does not fit becomes the least integer on the host.
void GraphEmitter::nearest_integer(const Node& node) {
  constexpr uint32_t kBeyond = 0x4f000000;  // 2^31
  const int a = in_register(node.operands[0]), to = result(node, true);
  for (int p = 0; p < parts_; ++p) {
    const Vector from = vector(a, p), d = vector(to, p), s = scratch(0);
    vcvtps2dq(d, from);
    if (wide_) {
      vcmpps(k1, from, constant(kBeyond), kNotBelow);
      vpternlogd(d | k1, d, d, 0x55);  // all bits of the least one turned round
      vcmpps(k1, from, from, kNumbers);
      vmovdqa32(d | k1 | T_z, d);
    } else {
      vcmpps(s, from, constant(kBeyond), kNotBelow);
      vpxor(d, d, s);
      vcmpps(s, from, from, kNumbers);
      vpand(d, d, s);
    }
  }
}

/// By halves side by side, which are half as wide as the floats.
void GraphEmitter::convert_half(const Node& node) {
  constexpr uint8_t kToNearest = 0;
  if (places_[id_of(node)].unit >= 0) return consume(node);  // with the lower half
  if (!wide_)
    if (const Node* const upper = upper_half_behind(node); upper != nullptr) return both_halves(node, *upper);
  const int a = in_register(node.operands[0]), to = result(node);
  for (int p = 0; p < parts_; ++p) {
    const Vector from = vector(a, p), d = vector(to, p);
    const int s = scratch(0).getIdx();
    const Vector halves = wide_ ? Vector(Xbyak::Ymm(s)) : Vector(s);
    if (node.op != Op::kFloatOfHalf) {
      vcvtps2ph(halves, from, kToNearest);
    } else if (wide_) {
      vpmovdw(halves, Xbyak::Zmm(from.getIdx()));
    } else {
      vpand(scratch(0), from, constant(0xffff));
      vextracti128(Vector(scratch(1).getIdx()), Xbyak::Ymm(s), 1);
      vpackusdw(halves, halves, Vector(scratch(1).getIdx()));
    }
    node.op == Op::kHalfOf ? vpmovzxwd(d, halves) : vcvtph2ps(d, halves);
  }
}

/// The node that converts the upper halves of the words whose lower ones this one converts, if it is the next
/// but for the shift, which nothing else needs.
const graph::Node* GraphEmitter::upper_half_behind(const Node& node) const {
  if (node.op != Op::kFloatOfHalf) return nullptr;
  const auto& nodes = graph_.nodes();
  size_t n = id_of(node) + size_t{1};
  while (n < nodes.size() && nodes[n].op == Op::kConst) ++n;
  if (n + 1 >= nodes.size()) return nullptr;
  const auto id = static_cast<Id>(n);
  const Node &shift = nodes[n], &upper = nodes[n + 1];
  const bool is_shift = shift.op == Op::kShr && shift.operands[0] == node.operands[0] &&
                        graph_.is_constant(shift.operands[1], 16) && uses_.after_next(id) == Uses::kNever;
  return is_shift && upper.op == Op::kFloatOfHalf && upper.operands[0] == id ? &upper : nullptr;
}

/// Of AVX2.
void GraphEmitter::both_halves(const Node& lower, const Node& upper) {
  constexpr uint8_t kEvenFirst = 0xd8;
  uses_halves_ = true;
  left_out_ = upper.operands[0];
  const int from = in_register(lower.operands[0]), to = result(lower, true);
  locked_ |= 1u << to;
  const int to_upper = result_beside(upper);
  const Xbyak::Ymm halves(scratch(0).getIdx());
  const Xbyak::Xmm low(halves.getIdx()), high(scratch(1).getIdx());
  for (int p = 0; p < parts_; ++p) {
    vpshufb(halves, vector(from, p), ptr[rip + halves_of_lanes_]);
    vpermq(halves, halves, kEvenFirst);
    vextracti128(high, halves, 1);
    vcvtph2ps(vector(to, p), low);
    vcvtph2ps(vector(to_upper, p), high);
  }
}

void GraphEmitter::choose(const Node& node) {
  const auto [mask, a, b] = node.operands;
  const int of_mask = in_register(mask);
  if (!wide_) {
    const int of_b = in_register(b);
    const Last last = last_operand(a);
    const int to = result(node);
    for (int p = 0; p < parts_; ++p)
      with(last, p, true, [&](const Xbyak::Operand& o) {
        vblendvps(vector(to, p), vector(of_b, p), o, vector(of_mask, p));
      });
    return;
  }
  const int of_a = in_register(a);
  const Last last = last_operand(b);
  // The mask's own register where that is free behind it.
  const bool takes_mask = is_last_use(mask) && mask != a && mask != b;
  const int to = takes_mask ? result_in(node, of_mask) : result(node, true);
  for (int p = 0; p < parts_; ++p) {
    if (!takes_mask) vmovdqa32(vector(to, p), vector(of_mask, p));
    with(last, p, true,
         [&](const Xbyak::Operand& o) { vpternlogd(vector(to, p), vector(of_a, p), o, kMaskOrOther); });
  }
}

void GraphEmitter::leading_zeros(const Node& node) {
  if (wide_) return unary(node, [&](const Vector& d, const Xbyak::Operand& a) { vplzcntd(d, a); });
  const int a = in_register(node.operands[0]), to = result(node, true);
  for (int p = 0; p < parts_; ++p) {
    // The exponent of the first bit that is set, without bits after it that would round it up.
    const Vector d = vector(to, p), t = scratch(0);
    vpsrld(t, vector(a, p), 1);
    vpandn(t, t, vector(a, p));
    vcvtdq2ps(t, t);
    vpsrld(t, t, 23);
    vmovdqa(d, constant(127 + 31));
    vpsubd(d, d, t);
    vpminsd(d, d, constant(32));
    vpmaxsd(d, d, constant(0));
  }
}

/// Sums and products: as the host rounds them toward zero, but for results that are very large, or none,
/// which a function of the interpreter computes.
void GraphEmitter::toward_zero(const Node& node) {
  set_mode(Mode::kOwn);
  Id a = node.operands[0], b = node.operands[1];
  if (places_[a].unit < 0 && places_[b].unit >= 0 && node.op == Op::kProduct) std::swap(a, b);
  const int first = in_register(a);
  const Last last = wide_ ? Last{b, in_register(b)} : last_operand(b);
  std::vector<Xbyak::Address> memory;
  for (int p = 0; p < parts_; ++p)
    if (last.unit < 0) memory.push_back(memory_of(b, p, true));
  const int to = result(node, !notes_unsure_);
  for (int p = 0; p < parts_; ++p) {
    const Vector d = vector(to, p);
    const auto apply = [&](const Xbyak::Operand& o) {
      node.op == Op::kSum ? vaddps(d, vector(first, p), o) : vmulps(d, vector(first, p), o);
    };
    if (wide_)
      apply(Xbyak::Zmm(last.unit) | T_rz_sae);
    else
      with(last, p, true, apply);
    if (zero_is_loose_[id_of(node)]) continue;
    if (wide_) {  // zeros are positive, also the sum of both
      vaddps(d, d, constant(0));
    } else {
      vcmpps(scratch(0), d, constant(0), kNotEqual);
      vandps(d, d, scratch(0));
    }
  }
  if (notes_unsure_) {
    vpaddd(scratch(0), vector(to, 0), vector(to, 0));
    return note_unsure();
  }
  Unsure& unsure = unsure_.emplace_back(Unsure{{}, {}, node.op, to, {{a, first}, last}, std::move(memory)});
  if (wide_) {
    vpaddd(scratch(0), vector(to, 0), vector(to, 0));
    vpcmpud(k1, scratch(0), constant(2 * kLargest), kNotLess);
    kortestw(k1, k1);
  } else {
    for (int p = 0; p < 2; ++p) vpand(scratch(p), vector(to, p), constant(kMagnitude));
    vpmaxsd(scratch(0), scratch(0), scratch(1));
    vpcmpgtd(scratch(0), scratch(0), constant(kLargest - 1));
    vtestps(scratch(0), scratch(0));
  }
  jnz(unsure.entry, T_NEAR);
  L(unsure.back);
}

/// The largest of what is in the first scratch register and was noted stays.
void GraphEmitter::note_unsure() {
  has_noted_ = true;
  vpmaxud(Xbyak::Zmm(kUnsureUnit), Xbyak::Zmm(kUnsureUnit), scratch(0));
}

/// As the host converts what fits; of what does not it gives one number.
void GraphEmitter::integer_of(const Node& node) {
  constexpr uint32_t kDoesNotFit = 0x80000000;
  const int from = in_register(node.operands[0]), to = result(node, true);
  for (int p = 0; p < parts_; ++p) vcvttps2dq(vector(to, p), vector(from, p));
  if (wide_) vpcmpeqd(k1, vector(to, 0), constant(kDoesNotFit));
  if (notes_unsure_) {
    vpmovm2d(scratch(0), k1);
    return note_unsure();
  }
  const Last operand = {node.operands[0], from};
  Unsure& unsure = unsure_.emplace_back(Unsure{{}, {}, node.op, to, {operand, operand}, {}});
  if (wide_) {
    kortestw(k1, k1);
  } else {
    for (int p = 0; p < 2; ++p) vpcmpeqd(scratch(p), vector(to, p), constant(kDoesNotFit));
    vpor(scratch(0), scratch(0), scratch(1));
    vtestps(scratch(0), scratch(0));
  }
  jnz(unsure.entry, T_NEAR);
  L(unsure.back);
}

void GraphEmitter::to_nearest(const Node& node) {
  const auto apply = [&](const Vector& d, const Vector& a, const Xbyak::Operand& b) {
    node.op == Op::kAddNearest ? vaddps(d, a, b) : vmulps(d, a, b);
  };
  if (!wide_) set_mode(Mode::kHost);
  binary(node, apply);
}

void GraphEmitter::float_of(const Node& node) {
  if (!wide_) {
    set_mode(Mode::kOwn);
    return unary(node, [&](const Vector& d, const Xbyak::Operand& a) { vcvtdq2ps(d, a); });
  }
  const int a = in_register(node.operands[0]), to = result(node);
  vcvtdq2ps(vector(to, 0), Xbyak::Zmm(a) | T_rz_sae);
}

}  // namespace v3d::qpu::jit
