/// This header says what the operations compute: it has one function per operation, unpacking and flag, on
/// all 16 lanes.
///
/// Facts: qpu.md 1.5 (flags), 1.9 (modifiers), 2 (operations). Rounding is to nearest even, denormals are
/// live, and every operation rounds once.
#pragma once

#include <bit>

#include "gpu/base/arithmetic.h"
#include "gpu/base/float16.h"
#include "gpu/base/lanes.h"
#include "gpu/base/vector.h"
#include "gpu/qpu/isa/isa.h"
#include "gpu/qpu/run/sfu.h"
#include "gpu/qpu/run/thread.h"

namespace v3d::qpu {

/// @param a, b  operands before unpacking; unused ones are arbitrary
/// @param exec  lanes that take part; only operations with effects or kActiveLanes look at it
using AluFn = Lanes (*)(Thread& thread, Lanes a, Lanes b, LaneMask exec);
/// Z, N or C of a result. a and b are the operands before unpacking.
using FlagFn = LaneMask (*)(Lanes a, Lanes b, Lanes result);

/// The function of an operation with these conversions of its operands.
AluFn find_alu(Op op, Unpack a, Unpack b);
/// The function of the flag that `write` looks at; `write` is not kNone.
FlagFn find_flag(Op op, FlagWrite write, Unpack a, Unpack b);

/// BARRIERID in every lane. SYNCB with this value waits at the barrier of the supergroup.
inline constexpr uint32_t kBarrierToken = 0xba441e40;

/// All lanes of the quads that have a lane in the mask.
inline LaneMask whole_quads(LaneMask mask) {
  return static_cast<LaneMask>(((mask | mask >> 1 | mask >> 2 | mask >> 3) & 0x1111) * 15);
}

/// Lanes that take part in BALLOT, BCASTF, ALLEQ and ALLFEQ: MSF != 0, in the fragment stage whole quads.
inline LaneMask active_lanes(const Thread& thread) {
  const LaneMask live = nonzero(thread.msf);
  return thread.tlb ? whole_quads(live) : live;
}

/// Lanes in which a condition holds.
inline LaneMask lanes_of(Cond cond, const Thread& thread) {
  if (cond == Cond::kNone) return kAllLanes;
  const LaneMask flag = info(cond).of_b ? thread.flag_b : thread.flag_a;
  return info(cond).inverted ? static_cast<LaneMask>(~flag) : flag;
}

// ---- Conversions of operands and results

inline LanesF low_half(Lanes v) { return half_to_float(v & 0xffffu); }
inline LanesF high_half(Lanes v) { return half_to_float(v >> 16); }
inline Lanes join_halves(Lanes low, Lanes high) { return (low & 0xffffu) | high << 16; }
inline Lanes pack_halves(LanesF low, LanesF high) { return float_to_half(low) | float_to_half(high) << 16; }

template <Unpack unpack>
inline Lanes unpacked(Lanes v);

/// A conversion of floats, done to both halves. Assumed: u5, u6 and u7 are the conversions that 7.1 added for
/// floats too, in their order: sat, nsat, max0.
template <Unpack unpack>
inline Lanes both_halves(Lanes v) {
  return pack_halves(as_float(unpacked<unpack>(as_uint(low_half(v)))),
                     as_float(unpacked<unpack>(as_uint(high_half(v)))));
}

template <Unpack unpack>
inline Lanes unpacked(Lanes v) {
  const LanesF f = as_float(v);
  if constexpr (unpack == Unpack::kAbs) return v & 0x7fffffffu;
  if constexpr (unpack == Unpack::kL) return as_uint(half_to_float(v & 0xffffu));
  if constexpr (unpack == Unpack::kH) return as_uint(half_to_float(v >> 16));
  // NaN becomes the lower bound.
  if constexpr (unpack == Unpack::kSat) {
    return as_uint(min(max(f, LanesF{}), splat(1.0f)));
  }
  if constexpr (unpack == Unpack::kNsat) {
    return as_uint(min(max(f, splat(-1.0f)), splat(1.0f)));
  }
  if constexpr (unpack == Unpack::kMax0) return as_uint(max(f, LanesF{}));
  if constexpr (unpack == Unpack::kFf) {
    const Lanes half = float_to_half(f);
    return half | half << 16;
  }
  if constexpr (unpack == Unpack::kLl) return (v & 0xffffu) | v << 16;
  if constexpr (unpack == Unpack::kHh) return v >> 16 | (v & 0xffff0000u);
  if constexpr (unpack == Unpack::kSwp) return v >> 16 | v << 16;
  if constexpr (unpack == Unpack::kU5) return both_halves<Unpack::kSat>(v);
  if constexpr (unpack == Unpack::kU6) return both_halves<Unpack::kNsat>(v);
  if constexpr (unpack == Unpack::kU7) return both_halves<Unpack::kMax0>(v);
  if constexpr (unpack == Unpack::kUl) return v & 0xffffu;
  if constexpr (unpack == Unpack::kUh) return v >> 16;
  if constexpr (unpack == Unpack::kIl) return as_uint(as_int(v << 16) >> 16);
  if constexpr (unpack == Unpack::kIh) return as_uint(as_int(v) >> 16);
  return v;
}

/// unpacked() of two halves, by a code that is known at run time.
Lanes unpack_halves(Unpack unpack, Lanes v);

/// The destination after a packed write: one half new, the other as it was.
inline Lanes packed(Pack pack, Lanes value, Lanes old) {
  const Lanes half = float_to_half(as_float(value));
  return pack == Pack::kL ? (old & 0xffff0000u) | half : (old & 0xffffu) | half << 16;
}

// ---- Helpers of the operations

/// What VFMOV and the others of its opcode do to the sign of one half; bits of the selector.
enum SignBits : uint32_t { kSignOverride = 1, kSignInvert = 2 };
/// @param form  SignBits of the low half, and shifted by 2 of the high half (Mesa qpu_pack.c, opcode 191)
inline Lanes with_signs(Lanes v, uint32_t form) {
  const auto bits = [&](uint32_t bit) {
    return (form & bit ? 0x8000u : 0) | (form >> 2 & bit ? 0x80000000u : 0);
  };
  return (v & ~bits(kSignOverride)) ^ bits(kSignInvert);
}

/// The sum of the products of the four bytes; exact.
inline Lanes dot_bytes(Lanes a, Lanes b, NnMode mode) {
  // (byte ^ 0x80) - 0x80 extends a sign.
  const uint32_t sign_a = static_cast<uint32_t>(mode) & 1 ? 0x80 : 0,
                 sign_b = static_cast<uint32_t>(mode) & 2 ? 0x80 : 0;
  const auto byte = [](Lanes v, uint32_t n, uint32_t sign) { return ((v >> (8 * n) & 0xffu) ^ sign) - sign; };
  Lanes sum = {};
  for (uint32_t n = 0; n < 4; ++n) sum += byte(a, n, sign_a) * byte(b, n, sign_b);
  return sum;
}

/// The float nearest to a whole number of 16 bits / scale, not below -1. Correct rounding is assumed.
inline Lanes normalised(LanesI whole, float scale) {
  const LanesF value = __builtin_convertvector(whole, LanesF) / scale;
  return as_uint(value < -1.0f ? splat(-1.0f) : value);
}

/// One NaN: the other operand. Two: a quiet NaN. Equal operands: a.
template <typename Beyond>
inline LanesF outermost(const LanesF& a, const LanesF& b, Beyond beyond) {
  return by_parts<LanesF>(
      [&](auto x, auto y) {
        typedef HostPart<LanesI>::type Bits;
        const auto number = beyond(y, x) ? y : x;
        const auto other = reinterpret_cast<decltype(y)>(reinterpret_cast<Bits>(y) | ((y != y) & 0x400000));
        return x != x ? other : number;
      },
      a, b);
}
inline LanesF minimum(const LanesF& a, const LanesF& b) {
  return outermost(a, b, [](auto x, auto y) { return x < y; });
}
inline LanesF maximum(const LanesF& a, const LanesF& b) {
  return outermost(a, b, [](auto x, auto y) { return x > y; });
}

/// Integers of whole floats: saturating, 0 for NaN.
inline Lanes to_int(LanesF v) {
  return by_parts<Lanes>(
      [](auto part) {
        typedef HostPart<LanesI>::type Int;
        const Int fits = (part >= -0x1p31f) & (part < 0x1p31f), zero = {};
        const Int converted = __builtin_convertvector(fits ? part : decltype(part){}, Int);
        const Int saturated = part > 0.0f ? zero + 0x7fffffff : part < 0.0f ? ~(zero + 0x7fffffff) : zero;
        return fits ? converted : saturated;
      },
      v);
}
inline Lanes to_uint(LanesF v) {
  const LanesI fits = (v >= 0.0f) & (v < 0x1p32f);
  const Lanes converted = __builtin_convertvector(fits ? v : LanesF{}, Lanes);
  return fits ? converted : v > 0.0f ? splat(0xffffffffu) : Lanes{};
}

/// Normalised integers; NaN gives 0. The products are exact for f16 values.
inline LanesF clamp_unit(LanesF v) {
  const LanesF low = v > 0.0f ? v : LanesF{};
  return low < 1.0f ? low : splat(1.0f);
}
inline LanesF clamp_signed_unit(LanesF v) {
  const LanesF low = v > -1.0f ? v : v <= -1.0f ? splat(-1.0f) : LanesF{};
  return low < 1.0f ? low : splat(1.0f);
}
inline Lanes half_to_unorm(LanesF v, float scale) {
  return to_int(round_lanes<Rounding::kNearestEven>(clamp_unit(v) * scale));
}
inline Lanes half_to_snorm(LanesF v, float scale) {
  return to_int(round_lanes<Rounding::kNearestEven>(clamp_signed_unit(v) * scale));
}
/// The nearest integer of v * scale, exact product: |v * scale| < 2^31.
inline Lanes scaled_integer(LanesF v, double scale) {
  const sfu::LanesD nearest = sfu::to_double(v) * scale + 0x1.8p52;
  return __builtin_convertvector(reinterpret_cast<sfu::LanesL>(nearest), Lanes);
}

/// f16 to a float with 5 exponent bits, no sign and 10 - `drop` mantissa bits (EXT_packed_float): nearest
/// even; too big finite values become the largest one, negative ones 0.
inline Lanes half_to_small_float(Lanes h, uint32_t drop) {
  const uint32_t infinity = 0x7c00u >> drop;
  const Lanes magnitude = h & 0x7fffu;
  Lanes rounded = (magnitude + ((1u << (drop - 1)) - 1) + ((magnitude >> drop) & 1u)) >> drop;
  rounded = rounded >= infinity ? splat(infinity - 1) : rounded;
  rounded = h == 0x7c00u ? splat(infinity) : rounded;
  rounded = (h & 0x8000u) != 0u ? Lanes{} : rounded;
  return magnitude > 0x7c00u ? splat(infinity | 1) : rounded;
}

inline Lanes count_leading_zeros(Lanes v) {
#ifdef __AVX512CD__
  typedef int Native __attribute__((vector_size(64)));
  return reinterpret_cast<Lanes>(
      __builtin_ia32_vplzcntd_512_mask(reinterpret_cast<Native>(v), Native{}, kAllLanes));
#else
  Lanes result;
  for (int i = 0; i < kLanes; ++i) result[i] = static_cast<uint32_t>(std::countl_zero(uint32_t{v[i]}));
  return result;
#endif
}

inline Lanes lanes_of(LaneMask mask, uint32_t value) { return as_uint(expand(mask)) & value; }
inline LaneMask lowest(LaneMask mask) { return static_cast<LaneMask>(mask & -mask); }

/// Word `row` of each lane; 0 beyond the count.
inline Lanes gather_rows(const Lanes* rows, uint32_t count, Lanes row) {
  Lanes result;
  for (int i = 0; i < kLanes; ++i) result[i] = row[i] < count ? rows[row[i]][i] : 0;
  return result;
}

/// Logs once that an operation without known meaning was executed, and returns 0.
Lanes unknown_operation(Op op);

// ---- The operations: a and b are unpacked

template <Op op>
Lanes evaluate(Thread& t, Lanes a, Lanes b, LaneMask exec);

#define V3D_QPU_EVALUATE(op)                                                           \
  template <>                                                                          \
  inline Lanes evaluate<Op::op>([[maybe_unused]] Thread & t, [[maybe_unused]] Lanes a, \
                                [[maybe_unused]] Lanes b, [[maybe_unused]] LaneMask exec)

V3D_QPU_EVALUATE(kNop) { return Lanes{}; }

// Floats
V3D_QPU_EVALUATE(kFadd) { return as_uint(sum(as_float(a), as_float(b))); }
V3D_QPU_EVALUATE(kFaddnf) { return as_uint(sum(as_float(a), as_float(b))); }
V3D_QPU_EVALUATE(kFsub) { return as_uint(difference(as_float(a), as_float(b))); }
V3D_QPU_EVALUATE(kFmin) { return as_uint(minimum(as_float(a), as_float(b))); }
V3D_QPU_EVALUATE(kFmax) { return as_uint(maximum(as_float(a), as_float(b))); }
V3D_QPU_EVALUATE(kFcmp) { return as_uint(difference(as_float(a), as_float(b))); }
V3D_QPU_EVALUATE(kFmul) { return as_uint(product(as_float(a), as_float(b))); }
V3D_QPU_EVALUATE(kFmov) { return a; }
V3D_QPU_EVALUATE(kFround) { return as_uint(round_lanes<Rounding::kNearestEven>(as_float(a))); }
V3D_QPU_EVALUATE(kFtrunc) { return as_uint(round_lanes<Rounding::kZero>(as_float(a))); }
V3D_QPU_EVALUATE(kFfloor) { return as_uint(round_lanes<Rounding::kDown>(as_float(a))); }
V3D_QPU_EVALUATE(kFceil) { return as_uint(round_lanes<Rounding::kUp>(as_float(a))); }
V3D_QPU_EVALUATE(kFdx) {
  constexpr Lanes kEven = {0, 0, 2, 2, 4, 4, 6, 6, 8, 8, 10, 10, 12, 12, 14, 14};
  return as_uint(difference(as_float(permute(a, kEven + 1u)), as_float(permute(a, kEven))));
}
V3D_QPU_EVALUATE(kFdy) {
  constexpr Lanes kUpper = {0, 1, 0, 1, 4, 5, 4, 5, 8, 9, 8, 9, 12, 13, 12, 13};
  return as_uint(difference(as_float(permute(a, kUpper + 2u)), as_float(permute(a, kUpper))));
}

// Two packed halves
V3D_QPU_EVALUATE(kVfpack) { return pack_halves(as_float(a), as_float(b)); }
V3D_QPU_EVALUATE(kVfmin) {
  return pack_halves(minimum(low_half(a), low_half(b)), minimum(high_half(a), high_half(b)));
}
V3D_QPU_EVALUATE(kVfmax) {
  return pack_halves(maximum(low_half(a), low_half(b)), maximum(high_half(a), high_half(b)));
}
// Assumed of the sums of halves: rounded once to the nearest, denormals kept, as every other result
// (qpu.md 2.1).
V3D_QPU_EVALUATE(kVfadd) {
  return pack_halves(sum(low_half(a), low_half(b)), sum(high_half(a), high_half(b)));
}
V3D_QPU_EVALUATE(kVfsub) {
  return pack_halves(difference(low_half(a), low_half(b)), difference(high_half(a), high_half(b)));
}
V3D_QPU_EVALUATE(kVfcmp) { return evaluate<Op::kVfsub>(t, a, b, exec); }  // assumed: as FCMP
V3D_QPU_EVALUATE(kVfmul) {
  return pack_halves(product(low_half(a), low_half(b)), product(high_half(a), high_half(b)));
}
V3D_QPU_EVALUATE(kVfmov) { return with_signs(a, 0); }
V3D_QPU_EVALUATE(kVfabsmov) { return with_signs(a, 1); }
V3D_QPU_EVALUATE(kVfnegmov) { return with_signs(a, 2); }
V3D_QPU_EVALUATE(kVfnabmov) { return with_signs(a, 3); }
V3D_QPU_EVALUATE(kVfmovabs) { return with_signs(a, 4); }
V3D_QPU_EVALUATE(kVfabs) { return with_signs(a, 5); }
V3D_QPU_EVALUATE(kVfnegabs) { return with_signs(a, 6); }
V3D_QPU_EVALUATE(kVfnababs) { return with_signs(a, 7); }
V3D_QPU_EVALUATE(kVfmovneg) { return with_signs(a, 8); }
V3D_QPU_EVALUATE(kVfabsneg) { return with_signs(a, 9); }
V3D_QPU_EVALUATE(kVfneg) { return with_signs(a, 10); }
V3D_QPU_EVALUATE(kVfnabneg) { return with_signs(a, 11); }
V3D_QPU_EVALUATE(kVfmovnab) { return with_signs(a, 12); }
V3D_QPU_EVALUATE(kVfabsnab) { return with_signs(a, 13); }
V3D_QPU_EVALUATE(kVfnegnab) { return with_signs(a, 14); }
V3D_QPU_EVALUATE(kVfnab) { return with_signs(a, 15); }
V3D_QPU_EVALUATE(kVadd) { return join_halves(a + b, (a >> 16) + (b >> 16)); }
V3D_QPU_EVALUATE(kVsub) { return join_halves(a - b, (a >> 16) - (b >> 16)); }

// Integers
V3D_QPU_EVALUATE(kAdd) { return a + b; }
V3D_QPU_EVALUATE(kSub) { return a - b; }
V3D_QPU_EVALUATE(kMin) { return as_int(b) < as_int(a) ? b : a; }
V3D_QPU_EVALUATE(kMax) { return as_int(b) > as_int(a) ? b : a; }
V3D_QPU_EVALUATE(kUmin) { return b < a ? b : a; }
V3D_QPU_EVALUATE(kUmax) { return b > a ? b : a; }
V3D_QPU_EVALUATE(kShl) { return a << (b & 31u); }
V3D_QPU_EVALUATE(kShr) { return a >> (b & 31u); }
V3D_QPU_EVALUATE(kAsr) { return as_uint(as_int(a) >> as_int(b & 31u)); }
V3D_QPU_EVALUATE(kRor) { return a >> (b & 31u) | a << (-b & 31u); }
V3D_QPU_EVALUATE(kAnd) { return a & b; }
V3D_QPU_EVALUATE(kOr) { return a | b; }
V3D_QPU_EVALUATE(kXor) { return a ^ b; }
V3D_QPU_EVALUATE(kNot) { return ~a; }
V3D_QPU_EVALUATE(kNeg) { return -a; }
V3D_QPU_EVALUATE(kClz) { return count_leading_zeros(a); }
V3D_QPU_EVALUATE(kMov) { return a; }
// A 32-bit multiplication is MULTOP, which leaves the cross products in rtop, and then UMUL24.
V3D_QPU_EVALUATE(kUmul24) {
  const Lanes product = (a & 0xffffffu) * (b & 0xffffffu) + (t.rtop << 24);
  t.rtop = Lanes{};
  return product;
}
V3D_QPU_EVALUATE(kMultop) {
  t.rtop = ((a >> 24) * (b & 0xffffffu) + (a & 0xffffffu) * (b >> 24)) & 0xffu;
  return t.rtop;
}
V3D_QPU_EVALUATE(kSmul24) { return as_uint(as_int(a << 8) >> 8) * as_uint(as_int(b << 8) >> 8); }

// A mode in the same word counts already: Mesa's qpu_schedule.c says that it applies from the instruction
// that sets it, although its scheduler puts a dot of the mode before into that word. Assumed, until hardware
// tells; the add ALU runs first (step.cc). Assumed too: a condition must hold in some lane.
V3D_QPU_EVALUATE(kV8dot) { return dot_bytes(a, b, t.nn_mode); }
inline Lanes set_nn_mode(Thread& t, NnMode mode, LaneMask exec) {
  if (exec) t.nn_mode = mode;
  return Lanes{};
}
V3D_QPU_EVALUATE(kSetnnmodeUu) { return set_nn_mode(t, NnMode::kUu, exec); }
V3D_QPU_EVALUATE(kSetnnmodeSu) { return set_nn_mode(t, NnMode::kSu, exec); }
V3D_QPU_EVALUATE(kSetnnmodeUs) { return set_nn_mode(t, NnMode::kUs, exec); }
V3D_QPU_EVALUATE(kSetnnmodeSs) { return set_nn_mode(t, NnMode::kSs, exec); }

// Conversions
V3D_QPU_EVALUATE(kFtoin) { return to_int(round_lanes<Rounding::kNearestEven>(as_float(a))); }
V3D_QPU_EVALUATE(kFtoiz) { return to_int(round_lanes<Rounding::kZero>(as_float(a))); }
V3D_QPU_EVALUATE(kFtouz) { return to_uint(round_lanes<Rounding::kZero>(as_float(a))); }
V3D_QPU_EVALUATE(kFtoc) {
  // Coverage of an alpha value: its nearest quarter as that many samples.
  const Lanes samples = to_int(round_lanes<Rounding::kNearestEven>(clamp_unit(as_float(a)) * 4.0f));
  return (splat(1u) << samples) - 1u;
}
V3D_QPU_EVALUATE(kItof) { return as_uint(__builtin_convertvector(as_int(a), LanesF)); }
V3D_QPU_EVALUATE(kUtof) { return as_uint(__builtin_convertvector(a, LanesF)); }
V3D_QPU_EVALUATE(kVpack) { return join_halves(a, b); }
V3D_QPU_EVALUATE(kV8pack) {
  return (a & 0xffu) | (a >> 8 & 0xff00u) | (b & 0xffu) << 16 | (b << 8 & 0xff000000u);
}
V3D_QPU_EVALUATE(kV10pack) {
  return (a & 0x3ffu) | (a >> 6 & 0xffc00u) | (b & 0x3ffu) << 20 | (b << 14 & 0xc0000000u);
}
V3D_QPU_EVALUATE(kV11fpack) {
  return half_to_small_float(a & 0xffffu, 4) | half_to_small_float(a >> 16, 4) << 11 |
         half_to_small_float(b & 0xffffu, 5) << 22;
}
V3D_QPU_EVALUATE(kFtounorm16) { return scaled_integer(clamp_unit(as_float(a)), 65535.0); }
V3D_QPU_EVALUATE(kFtosnorm16) { return scaled_integer(clamp_signed_unit(as_float(a)), 32767.0); }
V3D_QPU_EVALUATE(kVftounorm8) {
  return join_halves(half_to_unorm(low_half(a), 255.0f), half_to_unorm(high_half(a), 255.0f));
}
V3D_QPU_EVALUATE(kVftosnorm8) {
  return join_halves(half_to_snorm(low_half(a), 127.0f), half_to_snorm(high_half(a), 127.0f));
}
V3D_QPU_EVALUATE(kVftounorm10lo) {
  return join_halves(half_to_unorm(low_half(a), 1023.0f), half_to_unorm(high_half(a), 1023.0f));
}
V3D_QPU_EVALUATE(kVftounorm10hi) {
  return join_halves(half_to_unorm(low_half(a), 1023.0f), half_to_unorm(high_half(a), 3.0f));
}

V3D_QPU_EVALUATE(kFunpackunormlo) { return normalised(as_int(a & 0xffffu), 65535.0f); }
V3D_QPU_EVALUATE(kFunpackunormhi) { return normalised(as_int(a >> 16), 65535.0f); }
V3D_QPU_EVALUATE(kFunpacksnormlo) { return normalised(as_int(a << 16) >> 16, 32767.0f); }
V3D_QPU_EVALUATE(kFunpacksnormhi) { return normalised(as_int(a) >> 16, 32767.0f); }

// SFU
V3D_QPU_EVALUATE(kRecip) { return as_uint(sfu::recip(as_float(a))); }
V3D_QPU_EVALUATE(kRsqrt) { return as_uint(sfu::rsqrt(as_float(a))); }
V3D_QPU_EVALUATE(kRsqrt2) { return as_uint(sfu::rsqrt(as_float(a))); }
V3D_QPU_EVALUATE(kExp) { return as_uint(sfu::exp2(as_float(a))); }
V3D_QPU_EVALUATE(kLog) { return as_uint(sfu::log2(as_float(a))); }
V3D_QPU_EVALUATE(kSin) { return as_uint(sfu::sin(as_float(a))); }

// Across lanes
V3D_QPU_EVALUATE(kRot) { return permute(a, (kLaneIndex + b[0]) & 15u); }
V3D_QPU_EVALUATE(kRotq) {
  const Lanes count = permute(b, kLaneIndex & 12u);
  return permute(a, (kLaneIndex & 12u) | ((kLaneIndex + count) & 3u));
}
V3D_QPU_EVALUATE(kShuffle) { return permute(a, b & 15u); }
V3D_QPU_EVALUATE(kBallot) { return splat(uint32_t{nonzero(a)} & exec); }
V3D_QPU_EVALUATE(kBcastf) { return exec ? splat(uint32_t{a[std::countr_zero(exec)]}) : Lanes{}; }
V3D_QPU_EVALUATE(kAlleq) {
  const Lanes first = evaluate<Op::kBcastf>(t, a, b, exec);
  return splat(uint32_t{(nonzero(a ^ first) & exec) == 0});
}
V3D_QPU_EVALUATE(kAllfeq) {
  const LanesF first = as_float(evaluate<Op::kBcastf>(t, a, b, exec));
  return splat(uint32_t{(nonzero(as_uint(as_float(a) != first)) & exec) == 0});
}

// Flags
V3D_QPU_EVALUATE(kFlapush) { return a << 2 | lanes_of(t.flag_a, 3); }
V3D_QPU_EVALUATE(kFlbpush) { return a << 2 | lanes_of(t.flag_b, 3); }
V3D_QPU_EVALUATE(kFlpop) { return a >> 2; }
V3D_QPU_EVALUATE(kVfla) { return lanes_of(t.flag_a, 0x10001); }
V3D_QPU_EVALUATE(kVflna) { return lanes_of(static_cast<LaneMask>(~t.flag_a), 0x10001); }
V3D_QPU_EVALUATE(kVflb) { return lanes_of(t.flag_b, 0x10001); }
V3D_QPU_EVALUATE(kVflnb) { return lanes_of(static_cast<LaneMask>(~t.flag_b), 0x10001); }
V3D_QPU_EVALUATE(kFlafirst) { return lanes_of(lowest(t.flag_a), 1); }
V3D_QPU_EVALUATE(kFlnafirst) { return lanes_of(lowest(static_cast<LaneMask>(~t.flag_a)), 1); }

// State of the thread
V3D_QPU_EVALUATE(kTidx) { return splat(t.tidx); }
V3D_QPU_EVALUATE(kEidx) { return kLaneIndex; }
V3D_QPU_EVALUATE(kLr) { return splat(t.link); }
V3D_QPU_EVALUATE(kXcd) { return t.pixel_x; }
V3D_QPU_EVALUATE(kYcd) { return t.pixel_y; }
V3D_QPU_EVALUATE(kFxcd) { return as_uint(t.sample_x); }
V3D_QPU_EVALUATE(kFycd) { return as_uint(t.sample_y); }
V3D_QPU_EVALUATE(kMsf) { return t.msf; }
V3D_QPU_EVALUATE(kSetmsf) { return a; }  // the destination is MSF
V3D_QPU_EVALUATE(kRevf) { return lanes_of(t.back_facing, 1); }
V3D_QPU_EVALUATE(kSetrevf) {
  t.back_facing = static_cast<LaneMask>((t.back_facing & ~exec) | (nonzero(a) & exec));
  return a;
}
V3D_QPU_EVALUATE(kIid) { return t.gs_invocation; }
V3D_QPU_EVALUATE(kSampid) { return t.sample_id; }
V3D_QPU_EVALUATE(kBarrierid) { return splat(kBarrierToken); }
V3D_QPU_EVALUATE(kTmuwt) { return Lanes{}; }  // lookups execute in order and at once
V3D_QPU_EVALUATE(kVpmwt) { return Lanes{}; }
V3D_QPU_EVALUATE(kVpmsetup) { return unknown_operation(Op::kVpmsetup); }

// VPM. Rows of V and of the vertex number are uniform: lane 0 counts.
V3D_QPU_EVALUATE(kLdvpmvIn) { return a[0] < t.vpm_in_rows ? t.vpm_in[a[0]] : Lanes{}; }
V3D_QPU_EVALUATE(kLdvpmvOut) { return a[0] < t.vpm_out_rows ? t.vpm_out[a[0]] : Lanes{}; }
V3D_QPU_EVALUATE(kLdvpmdIn) { return gather_rows(t.vpm_in, t.vpm_in_rows, a); }
V3D_QPU_EVALUATE(kLdvpmdOut) { return gather_rows(t.vpm_out, t.vpm_out_rows, a); }
V3D_QPU_EVALUATE(kLdvpmgIn) {
  Lanes result;
  for (int i = 0; i < kLanes; ++i) {
    const bool inside = a[i] < t.gs_in_rows && b[i] < t.gs_in_vertices;
    result[i] = inside ? t.gs_in[size_t{b[i]} * t.gs_in_rows + a[i]][i] : 0;
  }
  return result;
}
V3D_QPU_EVALUATE(kLdvpmgOut) { return unknown_operation(Op::kLdvpmgOut); }
V3D_QPU_EVALUATE(kLdvpmp) { return unknown_operation(Op::kLdvpmp); }
V3D_QPU_EVALUATE(kStvpmv) {
  if (a[0] < t.vpm_out_rows) t.vpm_out[a[0]] = select(exec, b, t.vpm_out[a[0]]);
  return Lanes{};
}
V3D_QPU_EVALUATE(kStvpmd) {
  for (int i = 0; i < kLanes; ++i)
    if ((exec >> i & 1) && a[i] < t.vpm_out_rows) t.vpm_out[a[i]][i] = b[i];
  return Lanes{};
}
V3D_QPU_EVALUATE(kStvpmp) { return unknown_operation(Op::kStvpmp); }

#undef V3D_QPU_EVALUATE

// ---- Flags. a and b are unpacked.

inline LaneMask mask_of(LanesI condition) { return nonzero(as_uint(condition)); }

// Where a relation of the two ALU operands, or of the result and 0, holds.
template <FlagClass flag_class, typename Relation>
LaneMask related_lanes(Lanes a, Lanes b, Lanes result, const Relation& relation) {
  const LanesF zero = {};
  const auto related = [&](const auto& x, const auto& y) { return by_parts<LanesI>(relation, x, y); };
  if constexpr (flag_class == FlagClass::kCompare) return mask_of(related(as_float(a), as_float(b)));
  if constexpr (flag_class == FlagClass::kFloat) return mask_of(related(as_float(result), zero));
  if constexpr (flag_class == FlagClass::kHalves)
    return mask_of(related(low_half(result), zero) & related(high_half(result), zero));
  if constexpr (flag_class == FlagClass::kCompareHalves)
    return mask_of(related(low_half(a), low_half(b)) & related(high_half(a), high_half(b)));
  return mask_of(related(as_int(result), LanesI{}));
}

template <Op op>
LaneMask flag_z(Lanes a, Lanes b, Lanes result) {
  return related_lanes<info(op).flags>(a, b, result, [](auto x, auto y) { return x == y; });
}

template <Op op>
LaneMask flag_n(Lanes a, Lanes b, Lanes result) {
  return related_lanes<info(op).flags>(a, b, result, [](auto x, auto y) { return x < y; });
}

template <Op op>
LaneMask flag_c([[maybe_unused]] Lanes a, [[maybe_unused]] Lanes b, [[maybe_unused]] Lanes result) {
  constexpr FlagClass kClass = info(op).flags;
  if constexpr (is_compare(kClass))
    return related_lanes<kClass>(a, b, result, [](auto x, auto y) { return x <= y; });
  constexpr Carry kCarry = info(op).carry;
  const auto less = [](const auto& v, const auto& w) {
    return mask_of(by_parts<LanesI>([](auto x, auto y) { return x < y; }, v, w));
  };
  if constexpr (kCarry == Carry::kOverflow) return less(result, a);
  if constexpr (kCarry == Carry::kBorrow) return less(a, b);
  if constexpr (kCarry == Carry::kGreater) return less(as_int(b), as_int(a));
  if constexpr (kCarry == Carry::kAbove) return less(b, a);
  return 0;
}

}  // namespace v3d::qpu
