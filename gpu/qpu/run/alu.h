/// This header says what the operations compute: it has one function per operation, unpacking and flag, on
/// all 16 lanes. Those that have an expression (alu_lanes.h) are made of it.
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
#include "gpu/qpu/run/alu_lanes.h"
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

// ---- Conversions of operands: unpacked_lanes() of alu_lanes.h

template <Unpack unpack>
inline Lanes unpacked(Lanes v) {
  return unpacked_lanes<unpack>(v);
}

/// unpacked() of two halves, by a code that is known at run time.
Lanes unpack_halves(Unpack unpack, Lanes v);

// ---- Helpers of the operations

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

/// Normalised integers; NaN gives 0. The products are exact for f16 values.
inline LanesF clamp_unit(LanesF v) {
  const LanesF low = v > 0.0f ? v : LanesF{};
  return low < 1.0f ? low : splat(1.0f);
}
inline LanesF clamp_signed_unit(LanesF v) {
  const LanesF low = v > -1.0f ? v : v <= -1.0f ? splat(-1.0f) : LanesF{};
  return low < 1.0f ? low : splat(1.0f);
}
inline Lanes to_unorm(Lanes v, float scale) {
  return integer_of(rounded<Rounding::kNearestEven>(as_uint(clamp_unit(as_float(v)) * scale)));
}
inline Lanes to_snorm(Lanes v, float scale) {
  return integer_of(rounded<Rounding::kNearestEven>(as_uint(clamp_signed_unit(as_float(v)) * scale)));
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

/// Those with an expression; the others follow.
template <Op op>
Lanes evaluate(Thread& /*t*/, Lanes a, Lanes b, LaneMask /*exec*/) {
  return result_of<op>(a, b);
}

#define V3D_QPU_EVALUATE(op)                                                           \
  template <>                                                                          \
  inline Lanes evaluate<Op::op>([[maybe_unused]] Thread & t, [[maybe_unused]] Lanes a, \
                                [[maybe_unused]] Lanes b, [[maybe_unused]] LaneMask exec)

V3D_QPU_EVALUATE(kNop) { return Lanes{}; }

// Integers
// A 32-bit multiplication is MULTOP, which leaves the cross products in rtop, and then UMUL24.
V3D_QPU_EVALUATE(kUmul24) {
  const Lanes product = product_of_24_bits<Lanes>(a, b, t.rtop);
  t.rtop = Lanes{};
  return product;
}
V3D_QPU_EVALUATE(kMultop) {
  t.rtop = cross_products<Lanes>(a, b);
  return t.rtop;
}

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
V3D_QPU_EVALUATE(kFtoc) {
  // Coverage of an alpha value: its nearest quarter as that many samples.
  const Lanes samples = to_unorm(a, 4.0f);
  return (splat(1u) << samples) - 1u;
}
V3D_QPU_EVALUATE(kV11fpack) {
  return half_to_small_float(a & 0xffffu, 4) | half_to_small_float(a >> 16, 4) << 11 |
         half_to_small_float(b & 0xffffu, 5) << 22;
}
V3D_QPU_EVALUATE(kFtounorm16) { return scaled_integer(clamp_unit(as_float(a)), 65535.0); }
V3D_QPU_EVALUATE(kFtosnorm16) { return scaled_integer(clamp_signed_unit(as_float(a)), 32767.0); }
V3D_QPU_EVALUATE(kVftosnorm8) {
  return join_halves(to_snorm(low_half(a), 127.0f), to_snorm(high_half(a), 127.0f));
}

V3D_QPU_EVALUATE(kFunpackunormlo) { return normalised(as_int(a & 0xffffu), 65535.0f); }
V3D_QPU_EVALUATE(kFunpackunormhi) { return normalised(as_int(a >> 16), 65535.0f); }
V3D_QPU_EVALUATE(kFunpacksnormlo) { return normalised(as_int(a << 16) >> 16, 32767.0f); }
V3D_QPU_EVALUATE(kFunpacksnormhi) { return normalised(as_int(a) >> 16, 32767.0f); }

// SFU
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

template <Op op, Flag flag>
LaneMask flag_lanes(Lanes a, Lanes b, Lanes result) {
  return negative(as_int(flag_of<op, flag>(a, b, result)));
}

}  // namespace v3d::qpu
