/// These are the operations of V3D 2.1 as expressions of lanes, written once for whoever evaluates them: the
/// host's vectors (vc4_words.h), with which the interpreter computes, or nodes of a graph
/// (gpu/qpu/graph/value.h), of which the compiler makes code. Facts: vc4-qpu.md 2 and 6.1.
///
/// Sums and products are rounded toward zero and overflow to infinity; denormals and zeros are +0; there are
/// no NaNs.
#pragma once

#include <cstdint>

#include "gpu/qpu/isa/vc4.h"
#include "gpu/qpu/run/vc4_words.h"

namespace v3d::qpu::vc4 {

template <typename W>
inline W of_same_kind(const W& v, uint32_t bits) {
  return (v & 0u) + bits;
}

/// Order of floats for minima and maxima: -0 is 0, and NaNs lie beyond infinity.
template <typename W>
inline W key(const W& v) {
  const W negative = shifted_right_signed(v, of_same_kind(v, 31));
  return ((v & kMagnitude) ^ negative) - negative;
}

/// Toward zero. Of what does not fit in 32 bits the low ones stay, as a shifter leaves them.
template <typename W>
inline W integer_of_float(const W& x) {
  const W zero = of_same_kind(x, 0), magnitude = x & kMagnitude;
  const W fits = above(of_same_kind(x, 0x4f000000u), magnitude);
  const W left = (magnitude >> 23) - 150u;  // of 24 bits of mantissa
  const W shifted = ((x & 0x7fffffu) | 0x800000u) << (left & 31u);
  const W whole = choose(above(of_same_kind(x, 32u), left), shifted, zero);
  const W large = choose(above(zero, x), zero - whole, whole);
  return choose(fits, truncated(x & fits), large);
}

/// v / 255, of bytes. After the point it is v again and again; 255 is 1.
template <typename W>
inline W unit_of_byte(const W& v) {
  // Of the 32 bits the last one is never among the 24 that stay.
  const W fraction = exact_product(float_of_integer((v * 0x01010101u) >> 1), of_same_kind(v, 0x30000000u));
  return choose(equal_words(v, of_same_kind(v, 255u)), of_same_kind(v, 0x3f800000u), fraction);
}

/// @tparam op  neither kNop nor kReserved
template <Op op, typename W>
inline W result_of(const W& a, const W& b) {
  if constexpr (op == Op::kFadd) return sum_toward_zero(a, b);
  if constexpr (op == Op::kFsub) return sum_toward_zero(a, b ^ kSign);
  if constexpr (op == Op::kFmin) return choose(above(key(a), key(b)), b, a);
  if constexpr (op == Op::kFmax) return choose(above(key(a), key(b)), a, b);
  if constexpr (op == Op::kFminabs) return least(a & kMagnitude, b & kMagnitude);
  if constexpr (op == Op::kFmaxabs) return greatest(a & kMagnitude, b & kMagnitude);
  if constexpr (op == Op::kFtoi) return integer_of_float(a);
  if constexpr (op == Op::kItof) return float_of_integer(a);
  if constexpr (op == Op::kAdd) return a + b;
  if constexpr (op == Op::kSub) return a - b;
  if constexpr (op == Op::kShr) return a >> (b & 31u);
  if constexpr (op == Op::kAsr) return shifted_right_signed(a, b & 31u);
  if constexpr (op == Op::kRor) return a >> (b & 31u) | a << (-b & 31u);
  if constexpr (op == Op::kShl) return a << (b & 31u);
  if constexpr (op == Op::kMin) return least(a, b);
  if constexpr (op == Op::kMax) return greatest(a, b);
  if constexpr (op == Op::kAnd) return a & b;
  if constexpr (op == Op::kOr) return a | b;
  if constexpr (op == Op::kXor) return a ^ b;
  if constexpr (op == Op::kNot) return ~a;
  if constexpr (op == Op::kClz) return leading_zeros(a);
  if constexpr (op == Op::kFmul) return product_toward_zero(a, b);
  if constexpr (op == Op::kMul24) return (a & 0xffffffu) * (b & 0xffffffu);
  if constexpr (op == Op::kV8muld) {
    const auto divided = [](const W& x, const W& y) -> W {
      const W n = halves_sum(halves_product(x, y), of_same_kind(x, 127u * 0x10001u));
      // n / 255 is exact below 65535:
      return halves_upper_byte(halves_sum(halves_sum(n, of_same_kind(x, 0x10001u)), halves_upper_byte(n)));
    };
    const W even = divided(a & 0xff00ffu, b & 0xff00ffu),
            odd = divided(a >> 8 & 0xff00ffu, b >> 8 & 0xff00ffu);
    return even | odd << 8;
  }
  if constexpr (op == Op::kV8min) return bytes_least(a, b);
  if constexpr (op == Op::kV8max) return bytes_greatest(a, b);
  if constexpr (op == Op::kV8adds) return bytes_sum(a, b);
  if constexpr (op == Op::kV8subs) return bytes_difference(a, b);
  return of_same_kind(a, 0);
}

/// Whether carry() is not 0 for all operands.
constexpr bool has_carry(Op op) {
  switch (op) {
    case Op::kFadd:
    case Op::kFsub:
    case Op::kFmin:
    case Op::kFmax:
    case Op::kFminabs:
    case Op::kFmaxabs:
    case Op::kItof:
    case Op::kAdd:
    case Op::kSub:
    case Op::kShr:
    case Op::kAsr:
    case Op::kShl:
    case Op::kMin:
    case Op::kMax:
      return true;
    default:
      return false;
  }
}

/// All ones in the lanes where C is set.
template <Op op, typename W>
inline W carry(const W& a, const W& b, const W& result) {
  const W zero = of_same_kind(a, 0);
  if constexpr (op == Op::kFadd || op == Op::kFsub) return above(result, zero);
  if constexpr (op == Op::kFmin || op == Op::kFmax) return above(key(a), key(b));
  if constexpr (op == Op::kFminabs || op == Op::kFmaxabs) return above(a & kMagnitude, b & kMagnitude);
  if constexpr (op == Op::kItof) return above(a, zero);
  if constexpr (op == Op::kAdd) return above_unsigned(a, result);
  if constexpr (op == Op::kSub) return above_unsigned(b, a);
  if constexpr (op == Op::kMin || op == Op::kMax) return above(a, b);
  // The last bit that is shifted out; none if nothing is shifted.
  if constexpr (op == Op::kShr || op == Op::kAsr || op == Op::kShl) {
    const W out = (a >> ((op == Op::kShl ? -b : b - 1u) & 31u)) & 1u;
    return ~equal_words(b & 31u, zero) & ~equal_words(out, zero);
  }
  return zero;
}

// ---- Conversions of operands

template <typename W>
inline W float_of_normal_half(const W& h) {
  const W power = h >> 10 & 31u, zero = of_same_kind(h, 0);
  const W number = choose(equal_words(power, zero), zero, (power + 112u) << 23);
  const W high = choose(equal_words(power, of_same_kind(h, 31u)), of_same_kind(h, kInfinity), number);
  return (h & 0x8000u) << 16 | high | (h & 1023u) << 13;
}

/// @param code  0..7  @param to_float  a float operation consumes it, or it is r4
template <typename W>
inline W unpacked_operand(uint8_t code, bool to_float, const W& v) {
  if (code == 0) return v;
  if (code <= 2) {
    const W bits = code == 1 ? v & 0xffffu : v >> 16;
    return to_float ? float_of_normal_half(bits) : shifted_right_signed(bits << 16, of_same_kind(v, 16));
  }
  if (code == 3) return (v >> 24) * 0x01010101u;
  const W byte = v >> (8u * (code - 4u)) & 0xffu;
  return to_float ? unit_of_byte(byte) : byte;
}

// ---- Packs

/// `bits` of one half, byte or all bytes into a register.
template <typename W>
inline W inserted(uint8_t lane, const W& bits, const W& old) {
  if (lane == 3) return bits * 0x01010101u;
  const uint32_t mask = lane < 3 ? 0xffffu : 0xffu, shift = lane < 3 ? 16u * (lane - 1u) : 8u * (lane - 4u);
  return (old & ~(mask << shift)) | bits << shift;
}

/// With pm, of the mul ALU. @param pack  0, 3..7
template <typename W>
inline W with_unorm8(uint8_t pack, const W& value, const W& old) {
  if (pack == 0) return value;
  // Of floats in 0..1: those below and beyond are the ends, NaNs by their sign. Assumed: ties go up.
  const W unit = greatest(least(value, of_same_kind(value, 0x3f800000u)), of_same_kind(value, 0));
  const W scaled = product_to_nearest(unit, of_same_kind(value, 0x437f0000u));  // 255
  return inserted(pack, truncated(sum_to_nearest(scaled, of_same_kind(value, 0x3f000000u))), old);
}

/// What a result is packed from. Of the last two each lane is all ones or 0.
template <typename W>
struct PackableOf {
  W value, carry, overflow;
  bool is_float;
};

/// float32 to float16: away from zero if any bit is dropped; too small is +0.
template <typename W>
inline W half_of_float(const W& v) {
  const W zero = of_same_kind(v, 0), kept = equal_words(v & 0x1fffu, zero);
  const W bits = ((v & kMagnitude) >> 13) + 1u + kept;  // exponent and mantissa; a mask is -1
  const W half =
      choose(above(of_same_kind(v, 143u << 10), bits), bits - (112u << 10), of_same_kind(v, 0x7c00u));
  return choose(above(of_same_kind(v, 113u << 10), bits), zero, (v >> 16 & 0x8000u) | half);
}

/// An integer in the bits of the mask. @param low, high  the ends of its range
template <typename W>
inline W narrowed(const PackableOf<W>& in, int32_t low, int32_t high, uint32_t mask, bool saturate) {
  const W least_of_all = of_same_kind(in.value, static_cast<uint32_t>(low)),
          most = of_same_kind(in.value, static_cast<uint32_t>(high));
  const W of_overflow = choose(in.carry, least_of_all & mask, most & mask);
  if (!saturate) return choose(in.overflow, of_overflow, in.value & mask);
  const W clamped = greatest(least(in.value, most), least_of_all);
  const W narrowing = choose(equal_words(clamped, in.value), of_same_kind(in.value, mask), clamped & mask);
  return choose(in.overflow, of_overflow & narrowing, clamped & mask);
}

/// Without pm, into file A.
template <typename W>
inline W with_pack_to_a(uint8_t pack, const PackableOf<W>& in, const W& old) {
  const bool saturate = pack >= 8;
  const uint8_t lane = pack & 7;
  if (lane == 0) {
    if (!saturate) return in.value;
    const W of_overflow = choose(in.carry, of_same_kind(in.value, kSign), of_same_kind(in.value, kMagnitude));
    return choose(in.overflow, of_overflow, in.value);
  }
  if (lane >= 3) return inserted(lane, narrowed(in, 0, 255, 0xff, saturate), old);
  return inserted(lane, in.is_float ? half_of_float(in.value) : narrowed(in, -32768, 32767, 0xffff, saturate),
                  old);
}

/// Signed overflow of sums and differences.
template <typename W>
inline W overflow_of(Op op, const W& a, const W& b, const W& result) {
  const W last = of_same_kind(a, 31);
  if (op == Op::kAdd) return shifted_right_signed((a ^ result) & (b ^ result), last);
  if (op == Op::kSub) return shifted_right_signed((a ^ b) & (a ^ result), last);
  return of_same_kind(a, 0);
}

// ---- Special functions: their bits are not published
//
// Each is sfu_argument(), then a function of gpu/qpu/run/sfu.h, then sfu_result(). 2^x and log2 are as far
// from exact as those measured on the chip (vc4-qpu.md 6.1), which the programs of drivers leave as they are;
// the reciprocals, which they make exact by a step of Newton's, are exact here.

/// Denormals are 0, and what is no number is infinite.
template <typename W>
inline W sfu_argument(WritePort port, const W& v) {
  const bool of_magnitude = port == WritePort::kSfuRecipsqrt || port == WritePort::kSfuLog;
  const W x = of_magnitude ? v & kMagnitude : v, exponent = x & kExponent;
  const W special = choose(equal_words(exponent, of_same_kind(v, kExponent)), x & (kSign | kInfinity), x);
  return choose(equal_words(exponent, of_same_kind(v, 0)), x & kSign, special);
}

/// With a fraction of 15 bits, too far from 1 by 2^-15 of itself.
template <typename W>
inline W exponential(const W& x, const W& exact) {
  const W is_below_zero = above_unsigned(x, of_same_kind(x, kSign));
  const W factor =
      choose(is_below_zero, of_same_kind(x, 0x3f7ffe00u), of_same_kind(x, 0x3f800100u));  // 1 -+ 2^-15
  const W rounded = (product_to_nearest(exact, factor) + 0x80u) & ~0xffu;
  return choose(above(of_same_kind(x, kInfinity), exact), rounded, exact);
}

/// Of a magnitude: what is behind the point has 15 bits, cut off and one less where it is not 0.
template <typename W>
inline W logarithm(const W& x, const W& exact) {
  const W zero = of_same_kind(x, 0);
  // The exponent as a float, by the one whose last bit is 1.
  const W whole = sum_to_nearest((x >> 23) - 127u + 0x4b400000u, of_same_kind(x, 0xcb400000u));
  const W fraction = sum_to_nearest(exact, whole ^ kSign);
  const W units = sum_to_nearest(rounded_down(product_to_nearest(fraction, of_same_kind(x, 0x47000000u))),
                                 of_same_kind(x, 0xbf800000u));
  const W kept = greatest(units, zero);
  W result = sum_to_nearest(whole, product_to_nearest(kept, of_same_kind(x, 0x38000000u)));
  const W is_below_one = above(of_same_kind(x, 0x3f800000u), x);
  result = sum_to_nearest(result, choose(is_below_one, of_same_kind(x, 0x37800000u), zero));
  return choose(above(x, zero) & above(of_same_kind(x, kInfinity), x), result, exact);
}

/// @param x  the argument  @param exact  what the function of sfu.h gives for it
template <typename W>
inline W sfu_result(WritePort port, const W& x, const W& exact) {
  const W result = port == WritePort::kSfuExp   ? exponential(x, exact)
                   : port == WritePort::kSfuLog ? logarithm(x, exact)
                                                : exact;
  const W zero = of_same_kind(x, 0);
  return choose(equal_words(result & kExponent, zero), zero, result);
}

}  // namespace v3d::qpu::vc4
