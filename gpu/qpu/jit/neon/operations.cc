/// @file Code of operations on values: a table of those that are an instruction for each register, and what
/// is more than that.

#include <algorithm>

#include "gpu/qpu/jit/code/sfu_steps.h"
#include "gpu/qpu/jit/neon/emitter.h"
#include "gpu/qpu/jit/neon/frame.h"

namespace v3d::qpu::jit::neon {
namespace {

using vixl::aarch64::VectorFormat;
using vixl::aarch64::VRegister;

// Limits of check(): above all numbers but the largest, and 2^31.
constexpr uint32_t kLargeExponent = 0xfe, kTwoTo31 = 0x9e;

VRegister as(const VRegister& v, VectorFormat format) {
  return VRegister(static_cast<int>(v.GetCode()), format);
}

}  // namespace

/// One instruction of NEON for a register.
struct Emitter::LaneOperation {
  Op op;
  VectorFormat format;
  void (Masm::*of_two)(const Vector& to, const Vector& a, const Vector& b) = nullptr;
  void (Masm::*of_one)(const Vector& to, const Vector& a) = nullptr;
  void (Masm::*with_number)(const Vector& to, const Vector& a, int number) = nullptr;
  int number = 0;
  Mode mode = Mode::kAny;
  bool exchanges = false;   // the instruction takes its operands the other way round
  bool makes_nans = false;  // which may be others than those of V3D 4.2 and 7.1
};

const Emitter::LaneOperation* Emitter::lane_operation(Op op) {
  using vixl::aarch64::kFormat16B;
  using vixl::aarch64::kFormat4S;
  using vixl::aarch64::kFormat8H;
  static const LaneOperation kOperations[] = {
      {.op = Op::kAdd, .format = kFormat4S, .of_two = &Masm::Add},
      {.op = Op::kSub, .format = kFormat4S, .of_two = &Masm::Sub},
      {.op = Op::kMul, .format = kFormat4S, .of_two = &Masm::Mul},
      {.op = Op::kAnd, .format = kFormat16B, .of_two = &Masm::And},
      {.op = Op::kAndNot, .format = kFormat16B, .of_two = &Masm::Bic, .exchanges = true},
      {.op = Op::kOr, .format = kFormat16B, .of_two = &Masm::Orr},
      {.op = Op::kXor, .format = kFormat16B, .of_two = &Masm::Eor},
      {.op = Op::kMin, .format = kFormat4S, .of_two = &Masm::Smin},
      {.op = Op::kMax, .format = kFormat4S, .of_two = &Masm::Smax},
      {.op = Op::kMinUnsigned, .format = kFormat4S, .of_two = &Masm::Umin},
      {.op = Op::kLeadingZeros, .format = kFormat4S, .of_one = &Masm::Clz},
      {.op = Op::kEqual, .format = kFormat4S, .of_two = &Masm::Cmeq},
      {.op = Op::kAbove, .format = kFormat4S, .of_two = &Masm::Cmgt},
      {.op = Op::kAboveUnsigned, .format = kFormat4S, .of_two = &Masm::Cmhi},
      {.op = Op::kMulHalves, .format = kFormat8H, .of_two = &Masm::Mul},
      {.op = Op::kAddHalves, .format = kFormat8H, .of_two = &Masm::Add},
      {.op = Op::kMinBytes, .format = kFormat16B, .of_two = &Masm::Umin},
      {.op = Op::kMaxBytes, .format = kFormat16B, .of_two = &Masm::Umax},
      {.op = Op::kAddBytes, .format = kFormat16B, .of_two = &Masm::Uqadd},
      {.op = Op::kSubBytes, .format = kFormat16B, .of_two = &Masm::Uqsub},
      {.op = Op::kAddNearest, .format = kFormat4S, .of_two = &Masm::Fadd, .mode = Mode::kHost},
      {.op = Op::kMulNearest, .format = kFormat4S, .of_two = &Masm::Fmul, .mode = Mode::kHost},
      {.op = Op::kMulExact, .format = kFormat4S, .of_two = &Masm::Fmul},
      {.op = Op::kFloor, .format = kFormat4S, .of_one = &Masm::Frintm},
      {.op = Op::kTruncate, .format = kFormat4S, .with_number = &Masm::Fcvtzs},
      {.op = Op::kFloatOf, .format = kFormat4S, .with_number = &Masm::Scvtf, .mode = Mode::kOwn},
      {.op = Op::kFloatSum, .format = kFormat4S, .of_two = &Masm::Fadd, .makes_nans = true},
      {.op = Op::kFloatDifference, .format = kFormat4S, .of_two = &Masm::Fsub, .makes_nans = true},
      {.op = Op::kFloatProduct, .format = kFormat4S, .of_two = &Masm::Fmul, .makes_nans = true},
      {.op = Op::kFloatQuotient, .format = kFormat4S, .of_two = &Masm::Fdiv, .makes_nans = true},
      {.op = Op::kEqualFloats, .format = kFormat4S, .of_two = &Masm::Fcmeq},
      {.op = Op::kBelowFloats, .format = kFormat4S, .of_two = &Masm::Fcmgt, .exchanges = true},
      {.op = Op::kAtMostFloats, .format = kFormat4S, .of_two = &Masm::Fcmge, .exchanges = true},
      {.op = Op::kNearestInteger, .format = kFormat4S, .of_one = &Masm::Fcvtns},
      {.op = Op::kNearestFloat, .format = kFormat4S, .with_number = &Masm::Scvtf},
      {.op = Op::kUpperBytes, .format = kFormat8H, .with_number = &Masm::Ushr, .number = 8},
  };
  const auto* const found = std::find_if(std::begin(kOperations), std::end(kOperations),
                                         [op](const auto& o) { return o.op == op; });
  return found == std::end(kOperations) ? nullptr : found;
}

void Emitter::lanes(const Node& node, const LaneOperation& operation) {
  set_mode(operation.mode);
  const Operand a = operand(node.operands[0], 0);
  const Operand b = operation.of_two ? operand(node.operands[1], 1) : Operand{};
  const bool other_nans = operation.makes_nans && gives_other_nans(node);
  const int to = result(node, other_nans);
  for (int p = 0; p < kParts; ++p) {
    const Vector d = as(part(to, p), operation.format), x = as(at(a, p), operation.format);
    if (operation.of_one) (masm_.*operation.of_one)(d, x);
    if (operation.with_number) (masm_.*operation.with_number)(d, x, operation.number);
    if (!operation.of_two) continue;
    const Vector y = as(at(b, p), operation.format);
    operation.exchanges ? (masm_.*operation.of_two)(d, y, x) : (masm_.*operation.of_two)(d, x, y);
  }
  if (other_nans) check_nans(node, to, a, b);
}

Emitter::Emit Emitter::other_operation(Op op) {
  switch (op) {
    case Op::kConst:  // these are loaded where they are needed
    case Op::kLaneIndex:
    case Op::kVaryingC:
    case Op::kUniformWord:
    case Op::kTextureWord:
      return &Emitter::nothing;
    case Op::kShl:
    case Op::kShr:
    case Op::kSar:
      return &Emitter::shift;
    case Op::kChoose:
      return &Emitter::choose;
    case Op::kSum:
    case Op::kProduct:
      return &Emitter::toward_zero;
    case Op::kReciprocal:
      return &Emitter::reciprocal;
    case Op::kReciprocalRoot:
    case Op::kExp2:
    case Op::kLog2:
      return &Emitter::special;
    case Op::kIntegerOf:
      return &Emitter::integer_of;
    case Op::kMaxFloats:
    case Op::kMinFloats:
      return &Emitter::limit;
    case Op::kRound:
      return &Emitter::round;
    case Op::kHalfOf:
    case Op::kFloatOfHalf:
    case Op::kRoundToHalf:
      return &Emitter::convert_half;
    case Op::kShuffleQuads:
      return &Emitter::shuffle_quads;
    case Op::kByte:
      return &Emitter::one_byte;
    case Op::kSrgbValue:
      return &Emitter::srgb_value;
    case Op::kDeposit:
      return &Emitter::deposit;
    case Op::kByteProducts:
      return &Emitter::byte_products;
    case Op::kHalfProducts:
      return &Emitter::half_products;
    case Op::kPickLanes:
      return &Emitter::pick_lanes;
    case Op::kLeastOfLanes:
      return &Emitter::least_of_lanes;
    case Op::kLevelWord:
      return &Emitter::level_word;
    case Op::kGather:
      return &Emitter::gather;
    case Op::kKeep:
      return &Emitter::keep;
    case Op::kKept:
      return &Emitter::kept;
    case Op::kWhen:
      return &Emitter::when;
    case Op::kAgain:
      return &Emitter::again;
    case Op::kResume:
      return &Emitter::resume;
    default:
      return nullptr;
  }
}

void Emitter::shift_by(const Node& node, uint32_t bits) {
  const Operand a = operand(node.operands[0], 0);
  const int to = result(node);
  for (int p = 0; p < kParts; ++p) {
    const Vector d = part(to, p), from = at(a, p);
    if (bits == 0)
      masm_.Mov(d.V16B(), from.V16B());
    else if (node.op == Op::kSar)
      masm_.Sshr(d, from, static_cast<int>(bits));
    else if (node.op == Op::kShr)
      masm_.Ushr(d, from, static_cast<int>(bits));
    else if (bits < 32)
      masm_.Shl(d, from, static_cast<int>(bits));
    else
      masm_.Movi(d, 0);
  }
}

/// The instruction takes the low byte of the count as a signed number, below 0 for shifts to the right.
void Emitter::shift(const Node& node) {
  const Id count = node.operands[1];
  if (graph_.is_constant(count)) return shift_by(node, std::min(graph_[count].immediate, 32u));
  const Node& of_count = graph_[count];
  const bool is_small = of_count.op == Op::kAnd && graph_.is_constant(of_count.operands[1]) &&
                        graph_[of_count.operands[1]].immediate < 128;
  const Operand a = operand(node.operands[0], 0);
  const int by = in_register(count), to = result(node);
  if (!is_small) spread(scratch(1), 32);
  for (int p = 0; p < kParts; ++p) {
    Vector n = part(by, p);
    if (!is_small) {
      masm_.Umin(scratch(2), n, scratch(1));
      n = scratch(2);
    }
    if (node.op != Op::kShl) {
      masm_.Neg(scratch(2), n);
      n = scratch(2);
    }
    node.op == Op::kSar ? masm_.Sshl(part(to, p), at(a, p), n) : masm_.Ushl(part(to, p), at(a, p), n);
  }
}

/// Of a where a mask holds, else b: in place of one that nothing needs any more, if there is one.
/// @param mask  kNoNode: it is in a scratch register
Emitter::Chosen Emitter::result_of_two(const Node& node, Id a, const Operand& x, Id b, const Operand& y,
                                       Id mask) {
  if (mask != graph::kNoNode && is_last_use(mask) && mask != a && mask != b)
    return {result_in(node, in_register(mask)), Instead::kMask};
  if (y.unit >= 0 && is_last_use(b) && b != a && b != mask) return {result_in(node, y.unit), Instead::kB};
  if (x.unit >= 0 && is_last_use(a) && a != b && a != mask) return {result_in(node, x.unit), Instead::kA};
  return {result(node, true), Instead::kNone};
}

void Emitter::choose(const Node& node) {
  const auto [mask, a, b] = node.operands;
  const int of_mask = in_register(mask);
  const Operand x = operand(a, 0), y = operand(b, 1);
  const auto [to, instead] = result_of_two(node, a, x, b, y, mask);
  for (int p = 0; p < kParts; ++p) {
    const Vector d = part(to, p).V16B(), m = part(of_mask, p).V16B(), from_a = at(x, p).V16B(),
                 from_b = at(y, p).V16B();
    if (instead == Instead::kNone) masm_.Mov(d, m);
    if (instead == Instead::kB)
      masm_.Bit(d, from_a, m);
    else if (instead == Instead::kA)
      masm_.Bif(d, from_b, m);
    else
      masm_.Bsl(d, from_a, from_b);
  }
}

/// Sums and products: as the host rounds them toward zero, but for results that are very large, or none,
/// which a function of the interpreter computes.
void Emitter::toward_zero(const Node& node) {
  set_mode(Mode::kOwn);
  const Operand a = operand(node.operands[0], 0), b = operand(node.operands[1], 1);
  const int to = result(node, true);
  Unsure& unsure = unsure_of(node, to, a, b);
  for (int p = 0; p < kParts; ++p)
    node.op == Op::kSum ? masm_.Fadd(part(to, p), at(a, p), at(b, p))
                        : masm_.Fmul(part(to, p), at(a, p), at(b, p));
  if (!zero_is_loose_[id_of(node)]) {  // -0 and 0 are 0, rounded in this way
    if (!has_zero_) spread(zero(), 0);
    has_zero_ = true;
    for (int p = 0; p < kParts; ++p) masm_.Fadd(part(to, p), part(to, p), zero());
  }
  check(to, kLargeExponent, &unsure.entry);
  masm_.Bind(&unsure.back);
}

/// As the host converts what fits.
void Emitter::integer_of(const Node& node) {
  const Operand from = {in_register(node.operands[0]), {}};
  const int to = result(node, true);
  Unsure& unsure = unsure_of(node, to, from, {});
  for (int p = 0; p < kParts; ++p) masm_.Fcvtzs(part(to, p), at(from, p));
  check(from.unit, kTwoTo31, &unsure.entry);
  masm_.Bind(&unsure.back);
}

/// Leaves for `unsure` where a lane has at least this magnitude: by the upper bytes of all lanes, which are
/// the sign and all but one bit of the exponent.
/// @param limit  twice such a byte
void Emitter::check(int unit, uint32_t limit, Label* unsure) {
  const Vector upper = scratch(0), others = scratch(1);
  masm_.Uzp2(upper.V8H(), part(unit, 0).V8H(), part(unit, 1).V8H());
  masm_.Uzp2(others.V8H(), part(unit, 2).V8H(), part(unit, 3).V8H());
  masm_.Uzp2(upper.V16B(), upper.V16B(), others.V16B());
  masm_.Add(upper.V16B(), upper.V16B(), upper.V16B());
  masm_.Umaxv(upper.B(), upper.V16B());
  masm_.Fmov(vixl::aarch64::w9, upper.S());
  masm_.Cmp(vixl::aarch64::w9, limit);
  masm_.B(unsure, vixl::aarch64::hs);
}

void Emitter::reciprocal(const Node& node) {
  set_mode(Mode::kHost);
  const int a = in_register(node.operands[0]), to = result(node);
  spread(scratch(0), sfu_steps::kOne);
  for (int p = 0; p < kParts; ++p) masm_.Fdiv(part(to, p), scratch(0), part(a, p));
}

}  // namespace v3d::qpu::jit::neon
