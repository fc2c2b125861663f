/// @file What operations are in host instructions. The rows of kEmitters have code of their own; all other
/// operations call the interpreter's function. Each row must give the bits of gpu/qpu/run/alu.h.

#include "gpu/qpu/jit/avx512/emitter.h"
#include "gpu/qpu/jit/avx512/sfu.h"
#include "gpu/qpu/jit/code/operation_rows.h"
#include "gpu/qpu/jit/code/predicates.h"
#include "gpu/qpu/run/alu.h"

namespace v3d::qpu::jit::avx512 {
namespace {

using E = Emitter;
using S = Source;
using Xbyak::Opmask;
using Xbyak::Xmm;
using Xbyak::Ymm;
using Xbyak::Zmm;

constexpr uint32_t kOne = 0x3f800000;

#define V3D_HOST(instruction) \
  [](E& host, const Zmm& z, const Zmm& x, const Xbyak::Operand& y) { host.instruction(z, x, y); }
#define V3D_ORDERED(instruction) \
  [](E& e, const Zmm& to, const S& a, const S& b) { e.ordered(V3D_HOST(instruction), to, a, b); }
#define V3D_COMMUTATIVE(instruction) \
  [](E& e, const Zmm& to, const S& a, const S& b) { e.commutative(V3D_HOST(instruction), to, a, b); }

// minimum() and maximum(): vminps and vmaxps give their second source when one is NaN, or both are equal.
// Where a is NaN, b it is, which a subtraction of 0 makes quiet.
template <bool is_minimum>
void extremum(E& e, const Zmm& to, const S& a, const S& b) {
  const Zmm x = e.in_register(b, e.kTemp), y = e.in_register(a, e.kTemp2);
  e.vcmpps(e.kScratchMask, y, y, kUnordered);
  if constexpr (is_minimum)
    e.vminps(e.kTemp3, x, y);
  else
    e.vmaxps(e.kTemp3, x, y);
  e.vsubps(e.kTemp3 | e.kScratchMask, x, e.constant(0));
  e.vmovdqa64(to, e.kTemp3);
}

// ---- Shifts: the count is b & 31, and host instructions by a register give 0 beyond.

template <typename ByConstant, typename ByRegister>
void shift(E& e, const Zmm& to, const S& a, const S& b, const ByConstant& by_constant,
           const ByRegister& by_register) {
  const Zmm value = e.in_register(a, e.kTemp);
  if (const auto count = b.constant()) return by_constant(value, static_cast<uint8_t>(*count & 31));
  e.vpandd(e.kTemp2, e.in_register(b, e.kTemp2), e.constant(31));
  by_register(value, e.kTemp2);
  (void)to;
}
#define V3D_SHIFT(by_constant, by_register)                                     \
  [](E& e, const Zmm& to, const S& a, const S& b) {                             \
    shift(                                                                      \
        e, to, a, b, [&](const Zmm& v, uint8_t n) { e.by_constant(to, v, n); }, \
        [&](const Zmm& v, const Zmm& count) { e.by_register(to, v, count); });  \
  }

// ---- Conversions

template <int rounding>
void round_to(E& e, const Zmm& to, const S& a, const S&) {
  e.vrndscaleps(to, a.operand(), rounding | 8);
}

// Out of range and for NaN the host gives 0x80000000.
template <bool nearest>
void to_signed(E& e, const Zmm& to, const S& a, const S&) {
  const Zmm v = e.in_register(a, e.kTemp);
  if constexpr (nearest)
    e.vcvtps2dq(e.kTemp2, v);
  else
    e.vcvttps2dq(e.kTemp2, v);
  e.vcmpps(e.kScratchMask, v, e.constant(0x4f000000), kAtLeast);
  e.vpbroadcastd(e.kTemp2 | e.kScratchMask, e.constant(0x7fffffff, false));
  e.vcmpps(e.kScratchMask, v, v, kUnordered);
  e.vpxord(e.kTemp2 | e.kScratchMask, e.kTemp2, e.kTemp2);
  e.vmovdqa64(to, e.kTemp2);
}

// ... and all ones for unsigned ones.
void to_unsigned(E& e, const Zmm& to, const S& a, const S&) {
  const Zmm v = e.in_register(a, e.kTemp);
  e.vcvttps2udq(e.kTemp2, v);
  e.vcmpps(e.kScratchMask, v, e.constant(0xbf800000), kNotGreater);
  e.vpxord(e.kTemp2 | e.kScratchMask, e.kTemp2, e.kTemp2);
  e.vmovdqa64(to, e.kTemp2);
}

// Two floats to one word of halves. a is done with when b is read.
void pack_halves(E& e, const Zmm& to, const S& a, const S& b) {
  const Zmm low = e.in_register(a, e.kTemp), high = e.in_register(b, e.kTemp2);
  e.vcvtps2ph(Ymm(e.kTemp.getIdx()), low, 0);
  e.vcvtps2ph(Ymm(e.kTemp2.getIdx()), high, 0);
  e.vpmovzxwd(e.kTemp, Ymm(e.kTemp.getIdx()));
  e.vpmovzxwd(e.kTemp2, Ymm(e.kTemp2.getIdx()));
  e.vpslld(e.kTemp2, e.kTemp2, 16);
  e.vpord(to, e.kTemp, e.kTemp2);
}

void join_halves(E& e, const Zmm& to, const S& a, const S& b) {
  e.vpslld(e.kTemp2, e.in_register(b, e.kTemp2), 16);
  e.vpandd(e.kTemp, e.in_register(a, e.kTemp), e.constant(0xffff));
  e.vpord(to, e.kTemp, e.kTemp2);
}

void derivative(E& e, const Zmm& to, const S& a, uint8_t first, uint8_t second) {
  e.vpshufd(e.kTemp, e.in_register(a, e.kTemp2), first);
  e.vpshufd(e.kTemp2, e.in_register(a, e.kTemp2), second);
  e.vsubps(to, e.kTemp2, e.kTemp);
}

// ---- Multiplication

void low_24_bits(E& e, const Zmm& to, const S& v) {
  e.vpandd(to, e.in_register(v, to), e.constant(0xffffff));
}

void umul24(E& e, const Zmm& to, const S& a, const S& b) {
  low_24_bits(e, e.kTemp, a);
  low_24_bits(e, e.kTemp2, b);
  e.vpmulld(e.kTemp, e.kTemp, e.kTemp2);
  e.vpslld(e.kTemp2, e.at(offsetof(Thread, rtop)), 24);
  e.vpaddd(to, e.kTemp, e.kTemp2);
  e.vpxord(e.kTemp, e.kTemp, e.kTemp);
  e.vmovdqa64(e.at(offsetof(Thread, rtop)), e.kTemp);
}

void multop(E& e, const Zmm& to, const S& a, const S& b) {
  const Zmm x = e.in_register(a, e.kTemp2), y = e.in_register(b, e.kTemp3);
  // Of the products only the lowest 8 bits count, and those come from the lowest 8 bits of the factors.
  e.vpsrld(e.kTemp, x, 24);
  e.vpmulld(e.kTemp, e.kTemp, y);
  e.vpsrld(e.kTemp3, y, 24);
  e.vpmulld(e.kTemp3, e.kTemp3, x);
  e.vpaddd(e.kTemp, e.kTemp, e.kTemp3);
  e.vpandd(e.kTemp, e.kTemp, e.constant(0xff));
  e.vmovdqa64(e.at(offsetof(Thread, rtop)), e.kTemp);
  e.vmovdqa64(to, e.kTemp);
}

void smul24(E& e, const Zmm& to, const S& a, const S& b) {
  const auto extend = [&](const Zmm& temp, const S& v) {
    e.vpslld(temp, e.in_register(v, temp), 8);
    e.vpsrad(temp, temp, 8);
  };
  extend(e.kTemp, a);
  extend(e.kTemp2, b);
  e.vpmulld(to, e.kTemp, e.kTemp2);
}

// ---- SFU

void recip(E& e, const Zmm& to, const S& a, const S&) {
  e.vpbroadcastd(e.kTemp, e.constant(kOne, false));
  e.vdivps(to, e.kTemp, a.operand());
}

void rsqrt(E& e, const Zmm& to, const S& a, const S&) {
  const Zmm v = e.in_register(a, e.kTemp);
  const Ymm half(e.kTemp2.getIdx());
  e.vextractf64x4(half, v, 1);
  e.vcvtps2pd(e.kTemp2, half);
  e.vcvtps2pd(e.kTemp3, Ymm(v.getIdx()));
  e.vsqrtpd(e.kTemp2, e.kTemp2);
  e.vsqrtpd(e.kTemp3, e.kTemp3);
  e.fill(e.kTemp, 1.0);
  e.vdivpd(e.kTemp2, e.kTemp, e.kTemp2);
  e.vdivpd(e.kTemp3, e.kTemp, e.kTemp3);
  e.vcvtpd2ps(half, e.kTemp2);
  e.vcvtpd2ps(Ymm(e.kTemp3.getIdx()), e.kTemp3);
  e.vinsertf64x4(to, e.kTemp3, half, 1);
}

// ---- Across lanes

void rot(E& e, const Zmm& to, const S& a, const S& b) {
  if (const auto count = b.constant())
    return e.valignd(to, e.in_register(a, e.kTemp), e.in_register(a, e.kTemp),
                     static_cast<uint8_t>(*count & 15));
  e.vpbroadcastd(e.kTemp2, Xmm(e.in_register(b, e.kTemp2).getIdx()));
  e.vpaddd(e.kTemp2, e.kTemp2, e.constants({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}));
  e.vpermd(to, e.kTemp2, a.operand());
}

void rotq(E& e, const Zmm& to, const S& a, const S& b) {
  const Zmm value = e.in_register(a, e.kTemp);
  if (const auto count = b.constant()) return e.vpshufd(to, value, quad_order(*count));
  e.vpshufd(e.kTemp2, e.in_register(b, e.kTemp2), 0);
  e.vpaddd(e.kTemp2, e.kTemp2, e.constants({0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}));
  e.vpermilps(to, value, e.kTemp2);
}

void shuffle(E& e, const Zmm& to, const S& a, const S& b) {
  e.vpermd(to, e.in_register(b, e.kTemp), e.in_register(a, e.kTemp2));
}

// ---- State of the thread

template <size_t offset>
void load_word(E& e, const Zmm& to, const S&, const S&) {
  e.vpbroadcastd(to, Xbyak::util::dword[e.kThread + offset]);
}
template <size_t offset>
void load_lanes(E& e, const Zmm& to, const S&, const S&) {
  e.vmovdqa64(to, e.at(offset));
}

template <bool of_b, bool inverted>
void flag_word(E& e, const Zmm& to, const S&, const S&) {
  const Opmask flag = of_b ? e.kFlagB : e.kFlagA;
  if (inverted) e.knotw(e.kScratchMask, flag);
  e.vpbroadcastd(to | (inverted ? e.kScratchMask : flag) | Xbyak::util::T_z, e.constant(0x10001, false));
}

template <uint32_t word>
void load_constant(E& e, const Zmm& to, const S&, const S&) {
  e.vpbroadcastd(to, e.constant(word, false));
}

/// with_signs().
template <uint32_t form>
void signs(E& e, const Zmm& to, const S& a, const S&) {
  constexpr auto kBits = [](uint32_t bit) {
    return (form & bit ? 0x8000u : 0) | (form >> 2 & bit ? 0x80000000u : 0);
  };
  e.vpandd(e.kTemp, e.in_register(a, e.kTemp), e.constant(~kBits(kSignOverride)));
  e.vpxord(to, e.kTemp, e.constant(kBits(kSignInvert)));
}

// ---- Flags as words

template <bool of_b>
void push_flag(E& e, const Zmm& to, const S& a, const S&) {
  e.vpslld(e.kTemp, e.in_register(a, e.kTemp), 2);
  e.vpord(e.kTemp | (of_b ? e.kFlagB : e.kFlagA), e.kTemp, e.constant(3));
  e.vmovdqa64(to, e.kTemp);
}

void ones_in(E& e, const Zmm& to) { e.vpbroadcastd(to | e.kScratchMask | e.T_z, e.constant(1, false)); }

template <bool inverted>
void first_lane(E& e, const Zmm& to, const S&, const S&) {
  e.kmovw(e.ecx, e.kFlagA);
  if (inverted) e.not_(e.ecx);
  e.mov(e.eax, e.ecx);
  e.neg(e.eax);
  e.and_(e.eax, e.ecx);
  e.kmovw(e.kScratchMask, e.eax);
  ones_in(e, to);
}

void back_facing(E& e, const Zmm& to, const S&, const S&) {
  e.kmovw(e.kScratchMask, e.word[e.kThread + offsetof(Thread, back_facing)]);
  ones_in(e, to);
}

// ---- VPM rows that are the same for all lanes: lane 0 counts

/// The address of the row in rcx, or a jump.
void find_row(E& e, const S& row, size_t rows, size_t count, Xbyak::Label& none) {
  if (row.constant())
    e.mov(e.eax, *row.constant());
  else
    e.vmovd(e.eax, Xmm(e.in_register(row, e.kTemp).getIdx()));
  e.cmp(e.eax, e.dword[e.kThread + count]);
  e.jae(none);
  e.mov(e.rcx, e.qword[e.kThread + rows]);
  e.shl(e.rax, 6);
  e.add(e.rcx, e.rax);
}

template <size_t rows, size_t count>
void load_row(E& e, const Zmm& to, const S& row, const S&) {
  Xbyak::Label none;
  e.vpxord(e.kTemp2, e.kTemp2, e.kTemp2);
  find_row(e, row, rows, count, none);
  e.vmovdqu32(e.kTemp2, e.zword[e.rcx]);
  e.L(none);
  e.vmovdqa64(to, e.kTemp2);
}

void store_row(E& e, const Zmm& to, const S& row, const S& value) {
  Xbyak::Label none;
  const Zmm v = e.in_register(value, e.kTemp2);
  find_row(e, row, offsetof(Thread, vpm_out), offsetof(Thread, vpm_out_rows), none);
  if (const Opmask* exec = e.exec())
    e.vmovdqu32(e.zword[e.rcx] | *exec, v);
  else
    e.vmovdqu32(e.zword[e.rcx], v);
  e.L(none);
  e.vpxord(to, to, to);
}

struct Row {
  Op op;
  OperationEmitter emit;
};
constexpr Row kEmitters[] = {
    {Op::kFadd, V3D_ORDERED(vaddps)},
    {Op::kFaddnf, V3D_ORDERED(vaddps)},
    {Op::kFsub, V3D_ORDERED(vsubps)},
    {Op::kFcmp, V3D_ORDERED(vsubps)},
    {Op::kFmul, V3D_ORDERED(vmulps)},
    {Op::kFmin, extremum<true>},
    {Op::kFmax, extremum<false>},
    {Op::kFmov, [](E& e, const Zmm& to, const S& a, const S&) { e.move(to, a); }},
    {Op::kMov, [](E& e, const Zmm& to, const S& a, const S&) { e.move(to, a); }},
    {Op::kFround, round_to<static_cast<int>(Rounding::kNearestEven)>},
    {Op::kFtrunc, round_to<static_cast<int>(Rounding::kZero)>},
    {Op::kFfloor, round_to<static_cast<int>(Rounding::kDown)>},
    {Op::kFceil, round_to<static_cast<int>(Rounding::kUp)>},
    {Op::kFdx, [](E& e, const Zmm& to, const S& a, const S&) { derivative(e, to, a, 0xa0, 0xf5); }},
    {Op::kFdy, [](E& e, const Zmm& to, const S& a, const S&) { derivative(e, to, a, 0x44, 0xee); }},
    {Op::kAdd, V3D_COMMUTATIVE(vpaddd)},
    {Op::kSub, V3D_ORDERED(vpsubd)},
    {Op::kMin, V3D_COMMUTATIVE(vpminsd)},
    {Op::kMax, V3D_COMMUTATIVE(vpmaxsd)},
    {Op::kUmin, V3D_COMMUTATIVE(vpminud)},
    {Op::kUmax, V3D_COMMUTATIVE(vpmaxud)},
    {Op::kShl, V3D_SHIFT(vpslld, vpsllvd)},
    {Op::kShr, V3D_SHIFT(vpsrld, vpsrlvd)},
    {Op::kAsr, V3D_SHIFT(vpsrad, vpsravd)},
    {Op::kRor, V3D_SHIFT(vprord, vprorvd)},
    {Op::kAnd, V3D_COMMUTATIVE(vpandd)},
    {Op::kOr, V3D_COMMUTATIVE(vpord)},
    {Op::kXor, V3D_COMMUTATIVE(vpxord)},
    {Op::kVadd, [](E& e, const Zmm& to, const S& a,
                   const S& b) { e.vpaddw(to, e.in_register(a, e.kTemp), e.in_register(b, e.kTemp2)); }},
    {Op::kVsub, [](E& e, const Zmm& to, const S& a,
                   const S& b) { e.vpsubw(to, e.in_register(a, e.kTemp), e.in_register(b, e.kTemp2)); }},
    {Op::kNot, [](E& e, const Zmm& to, const S& a,
                  const S&) { e.vpxord(to, e.in_register(a, e.kTemp), e.constant(~0u)); }},
    {Op::kNeg,
     [](E& e, const Zmm& to, const S& a, const S&) {
       e.vpxord(e.kTemp, e.kTemp, e.kTemp);
       e.vpsubd(to, e.kTemp, a.operand());
     }},
    {Op::kClz, [](E& e, const Zmm& to, const S& a, const S&) { e.vplzcntd(to, a.operand()); }},
    {Op::kUmul24, umul24},
    {Op::kMultop, multop},
    {Op::kSmul24, smul24},
    {Op::kFtoin, to_signed<true>},
    {Op::kFtoiz, to_signed<false>},
    {Op::kFtouz, to_unsigned},
    {Op::kItof, [](E& e, const Zmm& to, const S& a, const S&) { e.vcvtdq2ps(to, a.operand()); }},
    {Op::kUtof, [](E& e, const Zmm& to, const S& a, const S&) { e.vcvtudq2ps(to, a.operand()); }},
    {Op::kVfpack, pack_halves},
    {Op::kVpack, join_halves},
    {Op::kVfmov, signs<0>},
    {Op::kVfabs, signs<5>},
    {Op::kVfneg, signs<10>},
    {Op::kVfnab, signs<15>},
    {Op::kVfabsmov, signs<1>},
    {Op::kVfnegmov, signs<2>},
    {Op::kVfnabmov, signs<3>},
    {Op::kVfmovabs, signs<4>},
    {Op::kVfnegabs, signs<6>},
    {Op::kVfnababs, signs<7>},
    {Op::kVfmovneg, signs<8>},
    {Op::kVfabsneg, signs<9>},
    {Op::kVfnabneg, signs<11>},
    {Op::kVfmovnab, signs<12>},
    {Op::kVfabsnab, signs<13>},
    {Op::kVfnegnab, signs<14>},
    {Op::kRecip, recip},
    {Op::kRsqrt, rsqrt},
    {Op::kRsqrt2, rsqrt},
    {Op::kExp, exp2},
    {Op::kLog, log2},
    {Op::kSin, sine},
    {Op::kRot, rot},
    {Op::kRotq, rotq},
    {Op::kShuffle, shuffle},
    {Op::kVfla, flag_word<false, false>},
    {Op::kVflna, flag_word<false, true>},
    {Op::kVflb, flag_word<true, false>},
    {Op::kVflnb, flag_word<true, true>},
    {Op::kFlapush, push_flag<false>},
    {Op::kFlbpush, push_flag<true>},
    {Op::kFlpop,
     [](E& e, const Zmm& to, const S& a, const S&) { e.vpsrld(to, e.in_register(a, e.kTemp), 2); }},
    {Op::kFlafirst, first_lane<false>},
    {Op::kFlnafirst, first_lane<true>},
    {Op::kRevf, back_facing},
    {Op::kLdvpmvIn, load_row<offsetof(Thread, vpm_in), offsetof(Thread, vpm_in_rows)>},
    {Op::kLdvpmvOut, load_row<offsetof(Thread, vpm_out), offsetof(Thread, vpm_out_rows)>},
    {Op::kStvpmv, store_row},
    {Op::kTidx, load_word<offsetof(Thread, tidx)>},
    {Op::kLr, load_word<offsetof(Thread, link)>},
    {Op::kEidx,
     [](E& e, const Zmm& to, const S&, const S&) {
       e.vmovdqu32(to, e.constants({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}));
     }},
    {Op::kXcd, load_lanes<offsetof(Thread, pixel_x)>},
    {Op::kYcd, load_lanes<offsetof(Thread, pixel_y)>},
    {Op::kFxcd, load_lanes<offsetof(Thread, sample_x)>},
    {Op::kFycd, load_lanes<offsetof(Thread, sample_y)>},
    {Op::kMsf, load_lanes<offsetof(Thread, msf)>},
    {Op::kIid, load_lanes<offsetof(Thread, gs_invocation)>},
    {Op::kSampid, load_lanes<offsetof(Thread, sample_id)>},
    {Op::kSetmsf, [](E& e, const Zmm& to, const S& a, const S&) { e.move(to, a); }},
    {Op::kBarrierid, load_constant<kBarrierToken>},
    {Op::kTmuwt, load_constant<0>},
    {Op::kVpmwt, load_constant<0>},
};

static_assert(has_one_row_each(kEmitters));

}  // namespace

OperationEmitter emitter_of(Op op) {
  const Row* const row = row_of(kEmitters, op);
  return row ? row->emit : nullptr;
}

}  // namespace v3d::qpu::jit::avx512
