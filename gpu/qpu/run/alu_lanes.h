/// These are operations of V3D 4.2 and 7.1 as expressions of lanes, written once for whoever evaluates them:
/// the host's vectors (host_lanes.h), with which the interpreter computes, or nodes of a graph
/// (gpu/qpu/graph/value.h), of which the compiler makes code. What alu.h states itself has no expression.
///
/// Facts: qpu.md 1.5 (flags), 1.9 (modifiers), 2 (operations). Rounding is to nearest even, denormals are
/// live, and every operation rounds once. Of two NaNs a sum, difference or product is the first one, quiet.
#pragma once

#include <bit>
#include <cstdint>

#include "gpu/qpu/isa/isa.h"
#include "gpu/qpu/run/host_lanes.h"

namespace v3d::qpu {

/// Whether result_of() has the operation.
constexpr bool has_expression(Op op) {
  switch (op) {
    case Op::kFadd:
    case Op::kFaddnf:
    case Op::kFsub:
    case Op::kFmin:
    case Op::kFmax:
    case Op::kFcmp:
    case Op::kFmul:
    case Op::kFmov:
    case Op::kFround:
    case Op::kFtrunc:
    case Op::kFfloor:
    case Op::kFceil:
    case Op::kFdx:
    case Op::kFdy:
    case Op::kVfpack:
    case Op::kVfmin:
    case Op::kVfmax:
    case Op::kVfadd:
    case Op::kVfsub:
    case Op::kVfcmp:
    case Op::kVfmul:
    case Op::kVadd:
    case Op::kVsub:
    case Op::kAdd:
    case Op::kSub:
    case Op::kMin:
    case Op::kMax:
    case Op::kUmin:
    case Op::kUmax:
    case Op::kShl:
    case Op::kShr:
    case Op::kAsr:
    case Op::kRor:
    case Op::kAnd:
    case Op::kOr:
    case Op::kXor:
    case Op::kNot:
    case Op::kNeg:
    case Op::kClz:
    case Op::kMov:
    case Op::kSmul24:
    case Op::kFtoin:
    case Op::kFtoiz:
    case Op::kFtouz:
    case Op::kItof:
    case Op::kUtof:
    case Op::kVpack:
    case Op::kV8pack:
    case Op::kV10pack:
    case Op::kVftounorm8:
    case Op::kVftounorm10lo:
    case Op::kVftounorm10hi:
    case Op::kRecip:
      return true;
    default:
      return op >= Op::kVfmov && op <= Op::kVfnab;
  }
}

template <typename W>
inline W of_same_kind(const W& v, uint32_t bits) {
  return (v & 0u) + bits;
}

// ---- Parts of results

template <typename W>
inline W is_nan(const W& v) {
  return ~equal_floats(v, v);
}

/// One NaN: the other operand. Two: a quiet NaN. Equal operands: a.
/// @param beyond  lanes where b takes the place of a
template <typename W>
inline W outermost(const W& a, const W& b, const W& beyond) {
  const W quiet = b | (is_nan(b) & 0x400000u);
  return choose(is_nan(a), quiet, choose(beyond, b, a));
}
template <typename W>
inline W minimum(const W& a, const W& b) {
  return outermost(a, b, below_floats(b, a));
}
template <typename W>
inline W maximum(const W& a, const W& b) {
  return outermost(a, b, below_floats(a, b));
}

template <typename W>
inline W low_half(const W& v) {
  return float_of_half(v);
}
template <typename W>
inline W high_half(const W& v) {
  return float_of_half(v >> 16);
}
template <typename W>
inline W join_halves(const W& low, const W& high) {
  return (low & 0xffffu) | high << 16;
}
template <typename W>
inline W pack_halves(const W& low, const W& high) {
  return half_of(low) | half_of(high) << 16;
}

/// What VFMOV and the others of its opcode do to the sign of one half; bits of the selector.
enum SignBits : uint32_t { kSignOverride = 1, kSignInvert = 2 };
/// @param form  SignBits of the low half, and shifted by 2 of the high half (Mesa qpu_pack.c, opcode 191)
template <typename W>
inline W with_signs(const W& v, uint32_t form) {
  const auto bits = [&](uint32_t bit) {
    return (form & bit ? 0x8000u : 0) | (form >> 2 & bit ? 0x80000000u : 0);
  };
  return (v & ~bits(kSignOverride)) ^ bits(kSignInvert);
}

/// Integers of whole floats: saturating, 0 for NaN.
template <typename W>
inline W integer_of(const W& v) {
  const W zero = of_same_kind(v, 0), beyond = of_same_kind(v, 0x4f000000u);  // 2^31
  const W fits = at_most_floats(of_same_kind(v, 0xcf000000u), v) & below_floats(v, beyond);
  const W below = choose(below_floats(v, zero), of_same_kind(v, 0x80000000u), zero);
  const W saturated = choose(below_floats(zero, v), of_same_kind(v, 0x7fffffffu), below);
  return choose(fits, truncated(v & fits), saturated);
}
/// Of any float, to nearest.
template <typename W>
inline W nearest_integer(const W& v) {
  return integer_of<W>(rounded<Rounding::kNearestEven>(v));
}
/// The nearest multiple of 1 / scale from 0 to 1, as that many. NaN is 0. @param scale  a whole float
template <typename W>
inline W normalised_integer(const W& v, float scale) {
  const W limited = min_floats(max_floats(v, of_same_kind(v, 0)), of_same_kind(v, 0x3f800000u));
  return nearest_integer(float_product(limited, of_same_kind(v, std::bit_cast<uint32_t>(scale))));
}
template <typename W>
inline W normalised_integers(const W& halves, float of_low, float of_high) {
  return join_halves(normalised_integer(low_half(halves), of_low),
                     normalised_integer(high_half(halves), of_high));
}
template <typename W>
inline W unsigned_of(const W& v) {
  const W zero = of_same_kind(v, 0), half = of_same_kind(v, 0x4f000000u);
  const W fits = at_most_floats(zero, v) & below_floats(v, of_same_kind(v, 0x4f800000u));  // 2^32
  const W large = at_most_floats(half, v) & fits;
  // The difference is exact.
  const W low = truncated(float_difference(v, half & large) & fits);
  return choose(fits, low ^ (large & 0x80000000u), below_floats(zero, v));
}
/// The sum rounds once: both of its terms are exact.
template <typename W>
inline W float_of_unsigned(const W& v) {
  const W high = float_product(nearest_float(v >> 16), of_same_kind(v, 0x47800000u));  // 2^16
  return float_sum(high, nearest_float(v & 0xffffu));
}

/// MULTOP: of a product of words the part that UMUL24 does not have, which stays in rtop.
template <typename W>
inline W cross_products(const W& a, const W& b) {
  return ((a >> 24) * (b & 0xffffffu) + (a & 0xffffffu) * (b >> 24)) & 0xffu;
}
/// UMUL24.
template <typename W>
inline W product_of_24_bits(const W& a, const W& b, const W& rtop) {
  return (a & 0xffffffu) * (b & 0xffffffu) + (rtop << 24);
}

// ---- Operations: a and b are unpacked

/// @tparam op  one with has_expression()
template <Op op, typename W>
inline W result_of(const W& a, const W& b) {
  static_assert(has_expression(op));
  const auto both = [&](auto fn) {
    return pack_halves<W>(fn(low_half(a), low_half(b)), fn(high_half(a), high_half(b)));
  };
  if constexpr (op == Op::kFadd || op == Op::kFaddnf) return float_sum(a, b);
  if constexpr (op == Op::kFsub || op == Op::kFcmp) return float_difference(a, b);
  if constexpr (op == Op::kFmin) return minimum(a, b);
  if constexpr (op == Op::kFmax) return maximum(a, b);
  if constexpr (op == Op::kFmul) return float_product(a, b);
  if constexpr (op == Op::kFmov || op == Op::kMov) return a;
  if constexpr (op == Op::kFround) return rounded<Rounding::kNearestEven>(a);
  if constexpr (op == Op::kFtrunc) return rounded<Rounding::kZero>(a);
  if constexpr (op == Op::kFfloor) return rounded<Rounding::kDown>(a);
  if constexpr (op == Op::kFceil) return rounded<Rounding::kUp>(a);
  // The right pixel of a row less the left one, the lower one of a column less the upper one.
  if constexpr (op == Op::kFdx)
    return float_difference(of_quad_lanes<1, 1, 3, 3>(a), of_quad_lanes<0, 0, 2, 2>(a));
  if constexpr (op == Op::kFdy)
    return float_difference(of_quad_lanes<2, 3, 2, 3>(a), of_quad_lanes<0, 1, 0, 1>(a));
  if constexpr (op == Op::kVfpack) return pack_halves(a, b);
  if constexpr (op == Op::kVfmin) return both([](const W& x, const W& y) { return minimum(x, y); });
  if constexpr (op == Op::kVfmax) return both([](const W& x, const W& y) { return maximum(x, y); });
  // Assumed of the sums of halves: rounded once to the nearest, denormals kept, as every other result
  // (qpu.md 2.1); and of VFCMP: as FCMP.
  if constexpr (op == Op::kVfadd) return both([](const W& x, const W& y) { return float_sum(x, y); });
  if constexpr (op == Op::kVfsub || op == Op::kVfcmp)
    return both([](const W& x, const W& y) { return float_difference(x, y); });
  if constexpr (op == Op::kVfmul) return both([](const W& x, const W& y) { return float_product(x, y); });
  if constexpr (op >= Op::kVfmov && op <= Op::kVfnab)
    return with_signs(a, static_cast<uint32_t>(op) - static_cast<uint32_t>(Op::kVfmov));
  if constexpr (op == Op::kVadd) return join_halves<W>(a + b, (a >> 16) + (b >> 16));
  if constexpr (op == Op::kVsub) return join_halves<W>(a - b, (a >> 16) - (b >> 16));
  if constexpr (op == Op::kAdd) return a + b;
  if constexpr (op == Op::kSub) return a - b;
  if constexpr (op == Op::kMin) return least(a, b);
  if constexpr (op == Op::kMax) return greatest(a, b);
  if constexpr (op == Op::kUmin) return choose(above_unsigned(a, b), b, a);
  if constexpr (op == Op::kUmax) return choose(above_unsigned(b, a), b, a);
  if constexpr (op == Op::kShl) return a << (b & 31u);
  if constexpr (op == Op::kShr) return a >> (b & 31u);
  if constexpr (op == Op::kAsr) return shifted_right_signed(a, b & 31u);
  if constexpr (op == Op::kRor) return a >> (b & 31u) | a << (-b & 31u);
  if constexpr (op == Op::kAnd) return a & b;
  if constexpr (op == Op::kOr) return a | b;
  if constexpr (op == Op::kXor) return a ^ b;
  if constexpr (op == Op::kNot) return ~a;
  if constexpr (op == Op::kNeg) return -a;
  if constexpr (op == Op::kClz) return leading_zeros(a);
  if constexpr (op == Op::kSmul24) {
    const W eight = of_same_kind(a, 8);
    return shifted_right_signed(a << 8, eight) * shifted_right_signed(b << 8, eight);
  }
  if constexpr (op == Op::kFtoin) return nearest_integer(a);
  if constexpr (op == Op::kFtoiz) return integer_of<W>(rounded<Rounding::kZero>(a));
  if constexpr (op == Op::kFtouz) return unsigned_of<W>(rounded<Rounding::kZero>(a));
  if constexpr (op == Op::kItof) return nearest_float(a);
  if constexpr (op == Op::kUtof) return float_of_unsigned(a);
  if constexpr (op == Op::kVpack) return join_halves(a, b);
  if constexpr (op == Op::kV8pack)
    return (a & 0xffu) | (a >> 8 & 0xff00u) | (b & 0xffu) << 16 | (b << 8 & 0xff000000u);
  if constexpr (op == Op::kV10pack)
    return (a & 0x3ffu) | (a >> 6 & 0xffc00u) | (b & 0x3ffu) << 20 | (b << 14 & 0xc0000000u);
  if constexpr (op == Op::kVftounorm8) return normalised_integers(a, 255.0f, 255.0f);
  if constexpr (op == Op::kVftounorm10lo) return normalised_integers(a, 1023.0f, 1023.0f);
  if constexpr (op == Op::kVftounorm10hi) return normalised_integers(a, 1023.0f, 3.0f);
  if constexpr (op == Op::kRecip) return float_quotient(of_same_kind(a, 0x3f800000u), a);
  return of_same_kind(a, 0);
}

// ---- Conversions of operands and results

template <Unpack unpack, typename W>
inline W unpacked_lanes(const W& v) {
  // Made where they are wanted: a graph has a node for each.
  const auto word = [&](uint32_t bits) { return of_same_kind(v, bits); };
  constexpr uint32_t kOne = 0x3f800000u, kMinusOne = 0xbf800000u;
  // A conversion of floats, done to both halves. Assumed: u5, u6 and u7 are the conversions that 7.1 added
  // for floats too, in their order: sat, nsat, max0.
  const auto both = [&](auto fn) { return pack_halves<W>(fn(low_half(v)), fn(high_half(v))); };
  if constexpr (unpack == Unpack::kAbs) return v & 0x7fffffffu;
  if constexpr (unpack == Unpack::kL) return low_half(v);
  if constexpr (unpack == Unpack::kH) return high_half(v);
  // NaN becomes the lower bound.
  if constexpr (unpack == Unpack::kSat) return min_floats(max_floats(v, word(0)), word(kOne));
  if constexpr (unpack == Unpack::kNsat) return min_floats(max_floats(v, word(kMinusOne)), word(kOne));
  if constexpr (unpack == Unpack::kMax0) return max_floats(v, word(0));
  if constexpr (unpack == Unpack::kFf) {
    const W half = half_of(v);
    return half | half << 16;
  }
  if constexpr (unpack == Unpack::kLl) return (v & 0xffffu) | v << 16;
  if constexpr (unpack == Unpack::kHh) return v >> 16 | (v & 0xffff0000u);
  if constexpr (unpack == Unpack::kSwp) return v >> 16 | v << 16;
  if constexpr (unpack == Unpack::kU5)
    return both([](const W& h) { return unpacked_lanes<Unpack::kSat>(h); });
  if constexpr (unpack == Unpack::kU6)
    return both([](const W& h) { return unpacked_lanes<Unpack::kNsat>(h); });
  if constexpr (unpack == Unpack::kU7)
    return both([](const W& h) { return unpacked_lanes<Unpack::kMax0>(h); });
  if constexpr (unpack == Unpack::kUl) return v & 0xffffu;
  if constexpr (unpack == Unpack::kUh) return v >> 16;
  if constexpr (unpack == Unpack::kIl) return shifted_right_signed(v << 16, word(16));
  if constexpr (unpack == Unpack::kIh) return shifted_right_signed(v, word(16));
  return v;
}

/// The destination after a packed write: one half new, the other as it was.
template <typename W>
inline W packed(Pack pack, const W& value, const W& old) {
  const W half = half_of(value);
  return pack == Pack::kL ? (old & 0xffff0000u) | half : (old & 0xffffu) | half << 16;
}

// ---- Flags: all ones in the lanes where they are set

/// Where a relation of the two ALU operands, or of the result and 0, holds.
/// @param floats, words  the relation of floats and of signed integers
template <FlagClass flag_class, typename W, typename Floats, typename Integers>
inline W related(const W& a, const W& b, const W& result, Floats floats, Integers integers) {
  if constexpr (flag_class == FlagClass::kCompare) return floats(a, b);
  if constexpr (flag_class == FlagClass::kCompareHalves)
    return floats(low_half(a), low_half(b)) & floats(high_half(a), high_half(b));
  const W zero = of_same_kind(result, 0);
  if constexpr (flag_class == FlagClass::kFloat) return floats(result, zero);
  if constexpr (flag_class == FlagClass::kHalves)
    return floats(low_half(result), zero) & floats(high_half(result), zero);
  return integers(result, zero);
}

template <Op op, Flag flag, typename W>
inline W flag_of(const W& a, const W& b, const W& result) {
  constexpr FlagClass kClass = info(op).flags;
  constexpr Carry kCarry = info(op).carry;
  if constexpr (flag == Flag::kZ)
    return related<kClass>(
        a, b, result, [](const W& x, const W& y) { return equal_floats(x, y); },
        [](const W& x, const W& y) { return equal_words(x, y); });
  if constexpr (flag == Flag::kN)
    return related<kClass>(
        a, b, result, [](const W& x, const W& y) { return below_floats(x, y); },
        [](const W& x, const W& y) { return above(y, x); });
  if constexpr (is_compare(kClass))
    return related<kClass>(
        a, b, result, [](const W& x, const W& y) { return at_most_floats(x, y); },
        [](const W& x, const W&) { return of_same_kind(x, 0); });
  if constexpr (kCarry == Carry::kOverflow) return above_unsigned(a, result);
  if constexpr (kCarry == Carry::kBorrow) return above_unsigned(b, a);
  if constexpr (kCarry == Carry::kGreater) return above(a, b);
  if constexpr (kCarry == Carry::kAbove) return above_unsigned(a, b);
  return of_same_kind(result, 0);
}

}  // namespace v3d::qpu
