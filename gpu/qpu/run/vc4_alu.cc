#include "gpu/qpu/run/vc4_alu.h"

#include <bit>

#include "gpu/base/lanes.h"
#include "gpu/base/vector.h"
#include "gpu/qpu/run/sfu.h"

namespace v3d::qpu::vc4 {
namespace {

constexpr uint32_t kSign = 0x80000000, kMagnitude = 0x7fffffff, kExponent = 0x7f800000, kInfinity = kExponent;

// Parts of lanes as wide as the host's vectors.
typedef HostPart<Lanes>::type Words;
typedef HostPart<LanesI>::type Ints;
typedef HostPart<LanesF>::type Floats;
typedef uint16_t Halves __attribute__((vector_size(kHostBytes)));
typedef uint8_t Bytes __attribute__((vector_size(kHostBytes)));
// Half as many lanes, in twice the width.
typedef double Doubles __attribute__((vector_size(kHostBytes)));
typedef uint64_t Longs __attribute__((vector_size(kHostBytes)));
typedef float FewFloats __attribute__((vector_size(kHostBytes / 2)));
typedef int32_t FewInts __attribute__((vector_size(kHostBytes / 2)));

constexpr size_t kFew = kHostWords / 2;

// What fn(doubles...) gives for few lanes at a time, which are converted from From and to To.
template <typename From, typename To, typename Fn, typename... V>
inline Lanes through_doubles(Fn fn, const V&... v) {
  Lanes result;
  for (size_t at = 0; at < sizeof(Lanes); at += kFew * sizeof(uint32_t)) {
    const auto few = [at](const Lanes& lanes) {
      From part;
      __builtin_memcpy(&part, reinterpret_cast<const char*>(&lanes) + at, sizeof(part));
      return __builtin_convertvector(part, Doubles);
    };
    const To part = __builtin_convertvector(fn(few(v)...), To);
    __builtin_memcpy(reinterpret_cast<char*>(&result) + at, &part, sizeof(part));
  }
  return result;
}

// Toward zero to a float that is not denormal; doubles that are too large become infinite when they are
// converted.
inline Doubles cut(Doubles d) {
  constexpr uint64_t kDropped = (uint64_t{1} << 29) - 1, kSmallest = uint64_t{1023 - 126} << 52,
                     kSign64 = uint64_t{1} << 63;
  const Longs bits = reinterpret_cast<Longs>(d);
  const auto counts = (bits & ~kSign64) >= kSmallest;
  return reinterpret_cast<Doubles>(bits & ~kDropped & reinterpret_cast<Longs>(counts));
}

inline Ints is_zero(Words v) { return (v & kExponent) == 0u; }
inline Ints is_special(Words v) { return (v & kExponent) == kExponent; }

// Hosts with AVX-512 round toward zero in one instruction, but for what is too large, of which they make the
// largest number. What is no number stays none in sums and products.
#if defined(__AVX512F__) && !defined(__clang__)
#define V3D_HOST_ROUNDS 1
constexpr int kTowardZero = 3 | 8;  // 8: without exceptions
// Lanes whose exponent is not 0.
inline LaneMask counts(Words v) {
  return __builtin_ia32_ptestmd512(reinterpret_cast<Ints>(v), Ints{} + static_cast<int>(kExponent),
                                   kAllLanes);
}
inline Floats kept(LaneMask lanes, Words v) {
  return reinterpret_cast<Floats>(__builtin_ia32_movdqa32_512_mask(reinterpret_cast<Ints>(v), Ints{}, lanes));
}
inline Words host_sum(Words a, Words b) {
  const Words sum = reinterpret_cast<Words>(
      __builtin_ia32_addps512_mask(kept(counts(a), a), kept(counts(b), b), Floats{}, kAllLanes, kTowardZero));
  return reinterpret_cast<Words>(kept(counts(sum), sum));
}
inline Words host_product(Words a, Words b) {
  const auto lanes = static_cast<LaneMask>(counts(a) & counts(b));
  const Words product = reinterpret_cast<Words>(__builtin_ia32_mulps512_mask(
      reinterpret_cast<Floats>(a), reinterpret_cast<Floats>(b), Floats{}, lanes, kTowardZero));
  return reinterpret_cast<Words>(kept(counts(product), product));
}
// A result that may be too large, or comes from an operand that is no number.
inline bool is_unsure(Words v) {
  constexpr int kLargest = 0x7f7fffff, kNotLess = 5;
  return __builtin_ia32_ucmpd512_mask(reinterpret_cast<Ints>(v & kMagnitude), Ints{} + kLargest, kNotLess,
                                      kAllLanes) != 0;
}
#else
#define V3D_HOST_ROUNDS 0
#endif

inline Words with_special_sum(Words a, Words b, Words sum) {
  sum = is_zero(sum) ? Words{} : sum;
  const Words special = ((is_special(b) ? b : a) & kSign) | kInfinity;
  return is_special(a) | is_special(b) ? special : sum;
}

inline Words sum_toward_zero(Words a, Words b) {
#if V3D_HOST_ROUNDS
  if (const Words sum = host_sum(a, b); !is_unsure(sum)) [[likely]]
    return sum;
#endif
  const Words flushed_a = is_zero(a) ? Words{} : a, flushed_b = is_zero(b) ? Words{} : b;
  Floats x = reinterpret_cast<Floats>(flushed_a), y = reinterpret_cast<Floats>(flushed_b);
  const Ints large = is_special(reinterpret_cast<Words>(x + y));
  x = large ? x * 0.5f : x;
  y = large ? y * 0.5f : y;
  // The sum to nearest, and its error, which is exact.
  const Floats nearest = x + y, of_y = nearest - x;
  const Floats error = (x - (nearest - of_y)) + (y - of_y);
  Words bits = reinterpret_cast<Words>(nearest);
  const Ints away = (error != 0.0f) & (reinterpret_cast<Ints>(reinterpret_cast<Words>(error) ^ bits) < 0);
  bits += reinterpret_cast<Words>(away);
  const Words infinity = (bits & kSign) | kInfinity;
  const Words doubled = (bits & kExponent) >= 254u << 23 ? infinity : bits + (1u << 23);
  return with_special_sum(a, b, large ? doubled : bits);
}

// Of a product that is right but for operands that are no numbers, and for the sign of 0.
inline Words with_special_product(Words a, Words b, Words product) {
  const Words special = ((a ^ b) & kSign) | kInfinity;
  product = is_special(a) | is_special(b) ? special : product;
  return is_zero(a) | is_zero(b) | is_zero(product) ? Words{} : product;
}

inline Lanes product_toward_zero(const Lanes& a, const Lanes& b) {
#if V3D_HOST_ROUNDS
  if (const Words product = host_product(a, b); !is_unsure(product)) [[likely]]
    return product;
#endif
  const Lanes product =
      through_doubles<FewFloats, FewFloats>([](Doubles x, Doubles y) { return cut(x * y); }, a, b);
  return by_parts<Lanes>(with_special_product, a, b, product);
}

// Toward zero. Of what does not fit in 32 bits the low ones stay, as a shifter leaves them.
inline Words integer_of_float(Words x) {
  const Words magnitude = x & kMagnitude;
  const Ints fits = magnitude < 0x4f000000u;
  const Words left = (magnitude >> 23) - 150u;  // of 24 bits of mantissa
  const Words shifted = ((x & 0x7fffffu) | 0x800000u) << (left & 31u);
  const Words whole = left < 32u ? shifted : Words{};
  const Words large = (x & kSign) != 0u ? 0u - whole : whole;
  const Floats small = fits ? reinterpret_cast<Floats>(x) : Floats{};
  return fits ? reinterpret_cast<Words>(__builtin_convertvector(small, Ints)) : large;
}

inline Lanes float_of_integer(const Lanes& v) {
#if V3D_HOST_ROUNDS
  return as_uint(__builtin_ia32_cvtdq2ps512_mask(as_int(v), LanesF{}, kAllLanes, kTowardZero));
#else
  return through_doubles<FewInts, FewFloats>(cut, v);
#endif
}

// v / 255, of bytes. After the point it is v again and again; 255 is 1.
inline Lanes unit_of_byte(const Lanes& v) {
#if V3D_HOST_ROUNDS
  const LanesF fraction =
      __builtin_ia32_cvtudq2ps512_mask(as_int(v * 0x01010101u), LanesF{}, kAllLanes, kTowardZero);
  return as_uint(v == 255u ? splat(1.0f) : fraction * 0x1p-32f);
#else
  return through_doubles<FewInts, FewFloats>([](Doubles d) { return cut(d * 0x1.0101010101011p-8); }, v);
#endif
}

// Order of floats for minima and maxima: -0 is 0, and NaNs lie beyond infinity.
inline Ints key(Words v) {
  const Ints negative = reinterpret_cast<Ints>(v) >> 31;
  return (reinterpret_cast<Ints>(v & kMagnitude) ^ negative) - negative;
}

template <typename Narrow, typename Fn>
inline Lanes by_elements(Fn fn, const Lanes& a, const Lanes& b) {
  return by_parts<Lanes>(
      [&](Words x, Words y) {
        return reinterpret_cast<Words>(fn(reinterpret_cast<Narrow>(x), reinterpret_cast<Narrow>(y)));
      },
      a, b);
}

template <Op op>
inline Lanes alu(const Lanes& a, const Lanes& b) {
  if constexpr (op == Op::kFadd) return by_parts<Lanes>(sum_toward_zero, a, b);
  if constexpr (op == Op::kFsub) return by_parts<Lanes>(sum_toward_zero, a, b ^ kSign);
  if constexpr (op == Op::kFmin)
    return by_parts<Lanes>([](Words x, Words y) { return key(x) > key(y) ? y : x; }, a, b);
  if constexpr (op == Op::kFmax)
    return by_parts<Lanes>([](Words x, Words y) { return key(x) > key(y) ? x : y; }, a, b);
  if constexpr (op == Op::kFminabs)
    return by_parts<Lanes>([](Words x, Words y) { return x > y ? y : x; }, a & kMagnitude, b & kMagnitude);
  if constexpr (op == Op::kFmaxabs)
    return by_parts<Lanes>([](Words x, Words y) { return x > y ? x : y; }, a & kMagnitude, b & kMagnitude);
  if constexpr (op == Op::kFtoi) return by_parts<Lanes>(integer_of_float, a);
  if constexpr (op == Op::kItof) return float_of_integer(a);
  if constexpr (op == Op::kAdd) return a + b;
  if constexpr (op == Op::kSub) return a - b;
  if constexpr (op == Op::kShr) return a >> (b & 31u);
  if constexpr (op == Op::kAsr) return as_uint(as_int(a) >> as_int(b & 31u));
  if constexpr (op == Op::kRor) return a >> (b & 31u) | a << (-b & 31u);
  if constexpr (op == Op::kShl) return a << (b & 31u);
  if constexpr (op == Op::kMin)
    return by_parts<Lanes>([](Ints x, Ints y) { return x > y ? y : x; }, as_int(a), as_int(b));
  if constexpr (op == Op::kMax)
    return by_parts<Lanes>([](Ints x, Ints y) { return x > y ? x : y; }, as_int(a), as_int(b));
  if constexpr (op == Op::kAnd) return a & b;
  if constexpr (op == Op::kOr) return a | b;
  if constexpr (op == Op::kXor) return a ^ b;
  if constexpr (op == Op::kNot) return ~a;
  if constexpr (op == Op::kClz) {
    Lanes result;
    for (int lane = 0; lane < kLanes; ++lane)
      result[lane] = static_cast<uint32_t>(std::countl_zero(uint32_t{a[lane]}));
    return result;
  }
  if constexpr (op == Op::kFmul) return product_toward_zero(a, b);
  if constexpr (op == Op::kMul24) return (a & 0xffffffu) * (b & 0xffffffu);
  if constexpr (op == Op::kV8muld) {
    const auto divided = [](Halves x, Halves y) -> Halves {
      const Halves n = x * y + static_cast<uint16_t>(127);  // n / 255 is exact below 65535:
      return (n + static_cast<uint16_t>(1) + (n >> 8)) >> 8;
    };
    const Lanes even = by_elements<Halves>(divided, a & 0xff00ffu, b & 0xff00ffu),
                odd = by_elements<Halves>(divided, a >> 8 & 0xff00ffu, b >> 8 & 0xff00ffu);
    return even | odd << 8;
  }
  if constexpr (op == Op::kV8min)
    return by_elements<Bytes>([](Bytes x, Bytes y) { return x < y ? x : y; }, a, b);
  if constexpr (op == Op::kV8max)
    return by_elements<Bytes>([](Bytes x, Bytes y) { return x > y ? x : y; }, a, b);
  if constexpr (op == Op::kV8adds)
    return by_elements<Bytes>(
        [](Bytes x, Bytes y) -> Bytes {
          const Bytes sum = x + y;
          return sum | reinterpret_cast<Bytes>(sum < x);
        },
        a, b);
  if constexpr (op == Op::kV8subs)
    return by_elements<Bytes>(
        [](Bytes x, Bytes y) -> Bytes { return (x - y) & reinterpret_cast<Bytes>(x > y); }, a, b);
  return Lanes{};
}

// ---- Carry

LanesI carry_of_positive(const Lanes&, const Lanes&, const Lanes& result) {
  return less(LanesI{}, as_int(result));
}
LanesI carry_of_positive_operand(const Lanes& a, const Lanes&, const Lanes&) {
  return less(LanesI{}, as_int(a));
}
LanesI carry_of_keys(const Lanes& a, const Lanes& b, const Lanes&) {
  return by_parts<LanesI>([](Words x, Words y) { return key(x) > key(y); }, a, b);
}
LanesI carry_of_magnitudes(const Lanes& a, const Lanes& b, const Lanes&) {
  return less(b & kMagnitude, a & kMagnitude);
}
LanesI carry_of_sum(const Lanes& a, const Lanes&, const Lanes& result) { return less(result, a); }
LanesI borrow(const Lanes& a, const Lanes& b, const Lanes&) { return less(a, b); }
LanesI carry_of_greater(const Lanes& a, const Lanes& b, const Lanes&) { return less(as_int(b), as_int(a)); }
// The last bit that is shifted out; none if nothing is shifted.
LanesI carry_of_right_shift(const Lanes& a, const Lanes& b, const Lanes&) {
  return by_parts<LanesI>(
      [](Words x, Words y) { return ((y & 31u) != 0u) & ((x >> ((y - 1u) & 31u) & 1u) != 0u); }, a, b);
}
LanesI carry_of_left_shift(const Lanes& a, const Lanes& b, const Lanes&) {
  return by_parts<LanesI>([](Words x, Words y) { return ((y & 31u) != 0u) & ((x >> (-y & 31u) & 1u) != 0u); },
                          a, b);
}

constexpr CarryFn carry_of(Op op) {
  switch (op) {
    case Op::kFadd:
    case Op::kFsub:
      return carry_of_positive;
    case Op::kFmin:
    case Op::kFmax:
      return carry_of_keys;
    case Op::kFminabs:
    case Op::kFmaxabs:
      return carry_of_magnitudes;
    case Op::kItof:
      return carry_of_positive_operand;
    case Op::kAdd:
      return carry_of_sum;
    case Op::kSub:
      return borrow;
    case Op::kShr:
    case Op::kAsr:
      return carry_of_right_shift;
    case Op::kShl:
      return carry_of_left_shift;
    case Op::kMin:
    case Op::kMax:
      return carry_of_greater;
    default:
      return nullptr;
  }
}

// ---- Actions

template <Op op, bool immediate_a, bool immediate_b>
const char* operate(Thread& t, const Action& x) {
  const Lanes& a = register_at(t, x.a);
  const Lanes& b = register_at(t, x.b);
  register_at(t, x.to) = alu<op>(immediate_a ? splat(x.immediate) : a, immediate_b ? splat(x.immediate) : b);
  return nullptr;
}

template <CarryFn carry>
const char* set_flags(Thread& t, const Action& x) {
  const Lanes& result = register_at(t, x.to);
  t.flags[Thread::kZ] = static_cast<LaneMask>(~nonzero(result));
  t.flags[Thread::kN] = negative(as_int(result));
  if constexpr (carry == nullptr)
    t.flags[Thread::kC] = 0;
  else
    t.flags[Thread::kC] = negative(carry(register_at(t, x.a), register_at(t, x.b), result));
  return nullptr;
}

// ---- Packs

// float32 to float16: away from zero if any bit is dropped; too small is +0.
Lanes half_of(const Lanes& v) {
  return by_parts<Lanes>(
      [](Words w) {
        const Words sign = w >> 16 & 0x8000u;
        const Words cut_off = reinterpret_cast<Words>((w & 0x1fffu) != 0u);
        const Words bits =
            ((w & kMagnitude) >> 13) - cut_off;  // exponent and mantissa; a true comparison is -1
        const Words half = bits >= 143u << 10 ? Words{} + 0x7c00u : bits - (112u << 10);
        return bits < 113u << 10 ? Words{} : sign | half;
      },
      v);
}

Lanes narrowed(const Packable& in, int32_t low, int32_t high, uint32_t mask, bool saturate) {
  // What overflow gives: the ends of the range, by the carry.
  const uint32_t of_carry = static_cast<uint32_t>(low) & mask,
                 of_no_carry = static_cast<uint32_t>(high) & mask;
  return by_parts<Lanes>(
      [&](Words value, Ints carry, Ints overflow) {
        const Ints number = reinterpret_cast<Ints>(value);
        const Ints ends = number < low ? Ints{} + low : number > high ? Ints{} + high : number;
        const Words clamped = reinterpret_cast<Words>(ends) & mask;
        const Words of_overflow = carry ? Words{} + of_carry : Words{} + of_no_carry;
        if (!saturate) return overflow ? of_overflow : value & mask;
        const Words narrowing = (number >= low) & (number <= high) ? Words{} + mask : clamped;
        return overflow ? of_overflow & narrowing : clamped;
      },
      in.value, in.carry, in.overflow);
}

// `bits` of one half, byte or all bytes into a register.
Lanes inserted(uint8_t lane, const Lanes& bits, const Lanes& old) {
  if (lane == 3) return bits * 0x01010101u;
  const uint32_t mask = lane < 3 ? 0xffffu : 0xffu, shift = lane < 3 ? 16u * (lane - 1u) : 8u * (lane - 4u);
  return (old & ~(mask << shift)) | bits << shift;
}

Lanes float_of_half(const Lanes& bits) {
  return by_parts<Lanes>(
      [](Words h) {
        const Words power = h >> 10 & 31u;
        const Words high = power == 31u ? Words{} + kInfinity : power == 0u ? Words{} : (power + 112u) << 23;
        return (h & 0x8000u) << 16 | high | (h & 1023u) << 13;
      },
      bits);
}

// A number for the SFU: denormals are 0 and NaNs infinite.
LanesF plain(const Lanes& v) {
  return as_float(by_parts<Lanes>(
      [](Words w) { return is_zero(w)      ? w & kSign
                           : is_special(w) ? w & (kSign | kInfinity)
                                           : w; }, v));
}

// 2^x and log2 are as far from exact as those measured on the chip (vc4-qpu.md 6.1), which the programs of
// drivers leave as they are; the reciprocals, which they make exact by a step of Newton's, are exact here.

/// 2^x with a fraction of 15 bits, too far from 1 by 2^-15 of itself.
Lanes exponential(const LanesF& x) {
  const LanesF exact = sfu::exp2(x);
  const LanesF moved = exact * (x < 0.0f ? splat(1 - 0x1p-15f) : splat(1 + 0x1p-15f));
  const Lanes rounded = (as_uint(moved) + 0x80u) & ~0xffu;
  return exact < __builtin_inff() ? rounded : as_uint(exact);
}

/// log2 of a magnitude: what is behind the point has 15 bits, cut off and one less where it is not 0.
Lanes logarithm(const LanesF& x) {
  const LanesF exact = sfu::log2(x);
  const LanesF whole = to_float(as_int(as_uint(x) >> 23) - 127);
  const LanesF units = floor((exact - whole) * 0x1p15f) - 1.0f;
  LanesF result = whole + max(units, splat(0.0f)) * 0x1p-15f;
  result += x < 1.0f ? splat(0x1p-16f) : splat(0.0f);
  return (x > 0.0f) & (x < __builtin_inff()) ? as_uint(result) : as_uint(exact);
}

}  // namespace

AluFn find_alu(Op op) {
  static constexpr AluFn kFunctions[] = {
#define V3D_VC4_OP(op, text, add, mul, operands, floats) alu<Op::k##op>,
#include "gpu/qpu/isa/vc4.def"
  };
  return kFunctions[static_cast<int>(op)];
}

CarryFn find_carry(Op op) { return carry_of(op); }

ActionFn find_action(Op op, bool immediate_a, bool immediate_b) {
  static constexpr ActionFn kActions[][3] = {
#define V3D_VC4_OP(op, text, add, mul, operands, floats) \
  {operate<Op::k##op, false, false>, operate<Op::k##op, false, true>, operate<Op::k##op, true, false>},
#include "gpu/qpu/isa/vc4.def"
  };
  return kActions[static_cast<int>(op)][immediate_a ? 2 : immediate_b ? 1 : 0];
}

ActionFn flags_action(Op op, bool carries) {
  static constexpr ActionFn kActions[] = {
#define V3D_VC4_OP(op, text, add, mul, operands, floats) set_flags<carry_of(Op::k##op)>,
#include "gpu/qpu/isa/vc4.def"
  };
  return carries ? kActions[static_cast<int>(op)] : set_flags<nullptr>;
}

LanesI overflow(Op op, const Lanes& a, const Lanes& b, const Lanes& result) {
  switch (op) {
    case Op::kAdd:
      return as_int((a ^ result) & (b ^ result)) >> 31;
    case Op::kSub:
      return as_int((a ^ b) & (a ^ result)) >> 31;
    default:
      return LanesI{};
  }
}

Lanes unpacked(uint8_t unpack, bool to_float, const Lanes& v) {
  if (unpack == 0) return v;
  if (unpack <= 2) {
    const Lanes bits = unpack == 1 ? v & 0xffffu : v >> 16;
    return to_float ? float_of_half(bits) : as_uint(as_int(bits << 16) >> 16);
  }
  if (unpack == 3) return (v >> 24) * 0x01010101u;
  const Lanes byte = v >> (8u * (unpack - 4u)) & 0xffu;
  if (!to_float) return byte;
  return unit_of_byte(byte);
}

Lanes packed_to_a(uint8_t pack, const Packable& result, const Lanes& old) {
  const bool saturate = pack >= 8;
  const uint8_t lane = pack & 7;
  if (lane == 0) {
    if (!saturate) return result.value;
    return by_parts<Lanes>(
        [](Words value, Ints carry, Ints overflow) {
          const Words of_overflow = carry ? Words{} + kSign : Words{} + kMagnitude;
          return overflow ? of_overflow : value;
        },
        result.value, result.carry, result.overflow);
  }
  if (lane >= 3) return inserted(lane, narrowed(result, 0, 255, 0xff, saturate), old);
  return inserted(
      lane, result.is_float ? half_of(result.value) : narrowed(result, -32768, 32767, 0xffff, saturate), old);
}

Lanes packed_to_unorm8(uint8_t pack, const Lanes& value, const Lanes& old) {
  if (pack == 0) return value;
  // Of floats in 0..1: those below and beyond are the ends, NaNs by their sign. Assumed: ties go up.
  constexpr uint32_t kOne = 0x3f800000;
  const Lanes bits = by_parts<Lanes>(
      [](Words w) {
        const Words positive = w > kOne ? Words{} + kOne : w;
        const Words unit = reinterpret_cast<Ints>(w) < 0 ? Words{} : positive;
        return reinterpret_cast<Words>(
            __builtin_convertvector(reinterpret_cast<Floats>(unit) * 255.0f + 0.5f, Ints));
      },
      value);
  return inserted(pack, bits, old);
}

Lanes special_function(WritePort port, const Lanes& v) {
  const LanesF x = plain(v), magnitude = plain(v & kMagnitude);
  Lanes result = {};
  switch (port) {
    case WritePort::kSfuRecip:
      result = as_uint(sfu::recip(x));
      break;
    case WritePort::kSfuRecipsqrt:
      result = as_uint(sfu::rsqrt(magnitude));
      break;
    case WritePort::kSfuExp:
      result = exponential(x);
      break;
    case WritePort::kSfuLog:
      result = logarithm(magnitude);
      break;
    default:
      break;
  }
  return by_parts<Lanes>([](Words w) { return is_zero(w) ? Words{} : w; }, result);
}

Lanes rotated_operand(const Lanes& v, bool from_accumulator, uint32_t count) {
  if (from_accumulator) return permute(v, (kLaneIndex - count) & 15u);
  return permute(v, (kLaneIndex & 12u) | ((kLaneIndex - count) & 3u));
}

Lanes immediate_lanes(uint32_t immediate, ImmediateMode mode) {
  if (mode == kImmediate32) return splat(immediate);
  const Lanes low = splat(immediate) >> kLaneIndex & 1u, high = splat(immediate) >> (kLaneIndex + 16u) & 1u;
  return mode == kImmediateSigned ? low - 2u * high : low + 2u * high;
}

}  // namespace v3d::qpu::vc4
