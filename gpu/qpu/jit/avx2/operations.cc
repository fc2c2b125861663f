/// @file What operations are in host instructions, for 8 lanes. The rows of kEmitters have code of their own;
/// all other operations call the interpreter's function. Each row must give the bits of gpu/qpu/run/alu.h.

#include "gpu/qpu/jit/avx2/emitter.h"
#include "gpu/qpu/jit/avx2/lanes.h"
#include "gpu/qpu/jit/avx2/sfu.h"
#include "gpu/qpu/jit/code/operation_rows.h"
#include "gpu/qpu/jit/code/predicates.h"
#include "gpu/qpu/run/alu.h"

namespace v3d::qpu::jit::avx2 {
namespace {

using E = Emitter;
using S = Source;
using Xbyak::Xmm;
using Xbyak::Ymm;

constexpr uint32_t kOne = 0x3f800000, kTwoTo31 = 0x4f000000, kTwoTo32 = 0x4f800000;

Xmm low(const Ymm& v) { return Xmm(v.getIdx()); }

#define V3D_BINARY(instruction) \
  [](E& e, const Ymm& to, const S& a, const S& b) { e.instruction(to, e.in_register(a), b.operand()); }

// minimum() and maximum(): vminps and vmaxps give their second source when one is NaN, or both are equal.
// Where a is NaN, b it is, which a subtraction of 0 makes quiet.
template <bool is_minimum>
void extremum(E& e, const Ymm& to, const S& a, const S& b) {
  const Ymm x = e.in_register(b), y = e.in_register(a), unordered = e.scratch(), quiet = e.scratch();
  e.vcmpps(unordered, y, y, kUnordered);
  e.vsubps(quiet, x, e.constant(0));
  if constexpr (is_minimum)
    e.vminps(to, x, y);
  else
    e.vmaxps(to, x, y);
  e.vblendvps(to, to, quiet, unordered);
}

// ---- Shifts: the count is b & 31, and host instructions by a register give 0 beyond.

template <typename ByConstant, typename ByRegister>
void shift(E& e, const S& a, const S& b, const ByConstant& by_constant, const ByRegister& by_register) {
  const Ymm value = e.in_register(a);
  if (const auto count = b.constant()) return by_constant(value, static_cast<uint8_t>(*count & 31));
  const Ymm counts = e.scratch();
  e.vpand(counts, e.in_register(b), e.constant(31));
  by_register(value, counts);
}
#define V3D_SHIFT(by_constant, by_register)                                    \
  [](E& e, const Ymm& to, const S& a, const S& b) {                            \
    shift(                                                                     \
        e, a, b, [&](const Ymm& v, uint8_t n) { e.by_constant(to, v, n); },    \
        [&](const Ymm& v, const Ymm& count) { e.by_register(to, v, count); }); \
  }

void rotate_bits(E& e, const Ymm& to, const S& a, const S& b) {
  const Ymm left = e.scratch();
  shift(
      e, a, b,
      [&](const Ymm& v, uint8_t n) {  // shifts by 32 give 0
        e.vpslld(left, v, static_cast<uint8_t>(32 - n));
        e.vpsrld(to, v, n);
      },
      [&](const Ymm& v, const Ymm& count) {
        e.vmovaps(left, e.constant(32));
        e.vpsubd(left, left, count);
        e.vpsllvd(left, v, left);
        e.vpsrlvd(to, v, count);
      });
  e.vpor(to, to, left);
}

// ---- Conversions

template <int rounding>
void round_to(E& e, const Ymm& to, const S& a, const S&) {
  e.vroundps(to, a.operand(), rounding | 8);
}

// Out of range and for NaN the host gives 0x80000000.
template <bool nearest>
void to_signed(E& e, const Ymm& to, const S& a, const S&) {
  const Ymm v = e.in_register(a), mask = e.scratch(), converted = e.scratch();
  if constexpr (nearest)
    e.vcvtps2dq(converted, v);
  else
    e.vcvttps2dq(converted, v);
  e.vcmpps(mask, v, e.constant(kTwoTo31), kAtLeast);  // 0x80000000 becomes 0x7fffffff
  e.vpxor(converted, converted, mask);
  e.vcmpps(mask, v, v, kUnordered);
  e.vpandn(to, mask, converted);
}

// Below 2^31 as signed ones are; above, 0x80000000 and what is more than 2^31.
void to_unsigned(E& e, const Ymm& to, const S& a, const S&) {
  const Ymm v = e.scratch(), rest = e.scratch();
  e.vxorps(to, to, to);
  e.vmaxps(v, e.in_register(a), to);  // NaN is the first source, and gives the second one
  e.vsubps(rest, v, e.constant(kTwoTo31));
  e.vcvttps2dq(rest, rest);
  e.vcvttps2dq(to, v);
  e.vcmpps(v, v, e.constant(kTwoTo32), kAtLeast);
  const Ymm big = e.scratch();
  e.vpsrad(big, to, 31);
  e.vpand(rest, rest, big);
  e.vpor(to, to, rest);
  e.vpor(to, to, v);
}

// The upper 16 bits and the lower ones are exact, and the sum rounds once.
void from_unsigned(E& e, const Ymm& to, const S& a, const S&) {
  const Ymm v = e.in_register(a), upper = e.scratch();
  e.vpsrld(upper, v, 16);
  e.vcvtdq2ps(upper, upper);
  e.vmulps(upper, upper, e.constant(0x47800000));  // 65536
  e.vpand(to, v, e.constant(0xffff));
  e.vcvtdq2ps(to, to);
  e.vaddps(to, upper, to);
}

// By the exponent of the float: bits below the highest one are cleared where they could round it up.
void leading_zeros(E& e, const Ymm& to, const S& a, const S&) {
  const Ymm v = e.in_register(a), exponent = e.scratch();
  e.vpsrld(exponent, v, 1);
  e.vpandn(exponent, exponent, v);
  e.vcvtdq2ps(exponent, exponent);
  e.vpsrld(exponent, exponent, 23);
  e.vmovaps(to, e.constant(158));
  e.vpsubusw(to, to, exponent);  // a float with a sign: 0
  e.vpminsd(to, to, e.constant(32));
}

// Two floats to one word of halves.
void pack_halves(E& e, const Ymm& to, const S& a, const S& b) {
  const Ymm high = e.scratch();
  e.vcvtps2ph(low(to), e.in_register(a), 0);
  e.vcvtps2ph(low(high), e.in_register(b), 0);
  e.vpmovzxwd(to, low(to));
  e.vpmovzxwd(high, low(high));
  e.vpslld(high, high, 16);
  e.vpor(to, to, high);
}

void join_halves(E& e, const Ymm& to, const S& a, const S& b) {
  const Ymm high = e.scratch();
  e.vpslld(high, e.in_register(b), 16);
  e.vpblendw(to, e.in_register(a), high, 0xaa);
}

void derivative(E& e, const Ymm& to, const S& a, uint8_t first, uint8_t second) {
  const Ymm other = e.scratch();
  e.vpshufd(other, a.operand(), first);
  e.vpshufd(to, a.operand(), second);
  e.vsubps(to, to, other);
}

// ---- Multiplication

Ymm low_24_bits(E& e, const S& v) {
  const Ymm to = e.scratch();
  e.vpand(to, e.in_register(v), e.constant(0xffffff));
  return to;
}

void umul24(E& e, const Ymm& to, const S& a, const S& b) {
  const Ymm x = low_24_bits(e, a), y = low_24_bits(e, b);
  e.vpmulld(to, x, y);
  e.vpslld(x, e.in_register(e.rtop()), 24);
  e.vpaddd(to, to, x);
  e.vpxor(y, y, y);
  e.write_rtop(y);
}

void multop(E& e, const Ymm& to, const S& a, const S& b) {
  const Ymm x = e.in_register(a), y = e.in_register(b), other = e.scratch();
  // Of the products only the lowest 8 bits count, and those come from the lowest 8 bits of the factors.
  e.vpsrld(to, x, 24);
  e.vpmulld(to, to, y);
  e.vpsrld(other, y, 24);
  e.vpmulld(other, other, x);
  e.vpaddd(to, to, other);
  e.vpand(to, to, e.constant(0xff));
  e.write_rtop(to);
}

void smul24(E& e, const Ymm& to, const S& a, const S& b) {
  const auto extend = [&](const Ymm& temp, const S& v) {
    e.vpslld(temp, e.in_register(v), 8);
    e.vpsrad(temp, temp, 8);
  };
  const Ymm other = e.scratch();
  extend(to, a);
  extend(other, b);
  e.vpmulld(to, to, other);
}

// ---- SFU

void recip(E& e, const Ymm& to, const S& a, const S&) {
  const Ymm one = e.scratch();
  e.vmovaps(one, e.constant(kOne));
  e.vdivps(to, one, a.operand());
}

void rsqrt(E& e, const Ymm& to, const S& a, const S&) {
  const Ymm v = e.in_register(a), one = e.scratch(), upper = e.scratch();
  e.vmovapd(one, e.doubles(1.0));
  e.vextractf128(low(upper), v, 1);
  e.vcvtps2pd(to, low(v));
  e.vcvtps2pd(upper, low(upper));
  for (const Ymm& part : {to, upper}) {
    e.vsqrtpd(part, part);
    e.vdivpd(part, one, part);
    e.vcvtpd2ps(low(part), part);
  }
  e.vinsertf128(to, to, low(upper), 1);
}

// ---- Across lanes

Ymm left_operand(E& e, int part) { return e.operand_of_part(0, part).reg(); }

void rot(E& e, const Ymm& to, const S&, const S& b) {
  if (const auto count = b.constant()) return rotate_lanes(e, to, *count & 15, left_operand);
  const Ymm index = e.scratch();
  e.vpbroadcastd(index, low(e.operand_of_part(1, 0).reg()));
  e.vpaddd(index, index, e.constants({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}));
  permute_lanes(e, to, index, left_operand);
}

void rotq(E& e, const Ymm& to, const S& a, const S& b) {
  if (const auto count = b.constant()) return e.vpshufd(to, a.operand(), quad_order(*count));
  const Ymm index = e.scratch();
  e.vpshufd(index, b.operand(), 0);
  e.vpaddd(index, index, e.constants({0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}));
  e.vpermilps(to, e.in_register(a), index);
}

void shuffle(E& e, const Ymm& to, const S&, const S& b) {
  const Ymm index = e.scratch();
  e.vmovaps(index, b.operand());
  permute_lanes(e, to, index, left_operand);
}

// ---- State of the thread

template <size_t offset>
void load_word(E& e, const Ymm& to, const S&, const S&) {
  e.vpbroadcastd(to, Xbyak::util::dword[e.kThread + offset]);
}
template <size_t offset>
void load_lanes(E& e, const Ymm& to, const S&, const S&) {
  e.vmovaps(to, e.in_thread(offset));
}

template <bool of_b, bool inverted>
void flag_word(E& e, const Ymm& to, const S&, const S&) {
  e.spread_sign(to, e.flag(of_b));
  if constexpr (inverted)
    e.vpandn(to, to, e.constant(0x10001));
  else
    e.vpand(to, to, e.constant(0x10001));
}

template <uint32_t word>
void load_constant(E& e, const Ymm& to, const S&, const S&) {
  e.move(to, S(e.constant(word), word));
}

/// with_signs().
template <uint32_t form>
void signs(E& e, const Ymm& to, const S& a, const S&) {
  constexpr auto kBits = [](uint32_t bit) {
    return (form & bit ? 0x8000u : 0) | (form >> 2 & bit ? 0x80000000u : 0);
  };
  e.vpand(to, e.in_register(a), e.constant(~kBits(kSignOverride)));
  e.vpxor(to, to, e.constant(kBits(kSignInvert)));
}

// ---- Flags as words

template <bool of_b>
void push_flag(E& e, const Ymm& to, const S& a, const S&) {
  const Ymm flag = e.scratch();
  e.spread_sign(flag, e.flag(of_b));
  e.vpsrld(flag, flag, 30);
  e.vpslld(to, e.in_register(a), 2);
  e.vpor(to, to, flag);
}

void ones_in(E& e, const Ymm& to, const Xbyak::Reg32& lanes) {
  e.spread_bits(to, lanes);
  e.vpsrld(to, to, 31);
}

template <bool inverted>
void first_lane(E& e, const Ymm& to, const S&, const S&) {
  e.flags_to(e.ecx);
  if (inverted) e.not_(e.ecx);
  e.mov(e.eax, e.ecx);
  e.neg(e.eax);
  e.and_(e.eax, e.ecx);
  ones_in(e, to, e.eax);
}

void back_facing(E& e, const Ymm& to, const S&, const S&) {
  e.movzx(e.eax, e.word[e.kThread + offsetof(Thread, back_facing)]);
  ones_in(e, to, e.eax);
}

// ---- VPM rows that are the same for all lanes: lane 0 counts

/// The address of the current part of the row in rcx, or a jump. Takes no register after it.
void find_row(E& e, const S& row, size_t rows, size_t count, Xbyak::Label& none) {
  if (row.constant())
    e.mov(e.eax, *row.constant());
  else
    e.vmovd(e.eax, low(e.operand_of_part(0, 0).reg()));
  e.cmp(e.eax, e.dword[e.kThread + count]);
  e.jae(none);
  e.mov(e.rcx, e.qword[e.kThread + rows]);
  e.shl(e.rax, 6);
  e.lea(e.rcx, e.ptr[e.rcx + e.rax + static_cast<int>(sizeof(Lanes)) / 2 * e.part()]);
}

template <size_t rows, size_t count>
void load_row(E& e, const Ymm& to, const S& row, const S&) {
  Xbyak::Label none;
  e.vpxor(to, to, to);
  find_row(e, row, rows, count, none);
  e.vmovups(to, e.yword[e.rcx]);
  e.L(none);
}

void store_row(E& e, const Ymm& to, const S& row, const S& value) {
  Xbyak::Label none;
  const Ymm v = e.in_register(value);
  const auto lanes = e.lanes_that_store();
  find_row(e, row, offsetof(Thread, vpm_out), offsetof(Thread, vpm_out_rows), none);
  if (lanes)
    e.vmaskmovps(e.yword[e.rcx], *lanes, v);
  else
    e.vmovups(e.yword[e.rcx], v);
  e.L(none);
  e.vpxor(to, to, to);
}

struct Row {
  Op op;
  OperationEmitter emitter;
};
constexpr bool kAcross = true;
constexpr Row kEmitters[] = {
    {Op::kFadd, {V3D_BINARY(vaddps)}},
    {Op::kFaddnf, {V3D_BINARY(vaddps)}},
    {Op::kFsub, {V3D_BINARY(vsubps)}},
    {Op::kFcmp, {V3D_BINARY(vsubps)}},
    {Op::kFmul, {V3D_BINARY(vmulps)}},
    {Op::kFmin, {extremum<true>}},
    {Op::kFmax, {extremum<false>}},
    {Op::kFmov, {[](E& e, const Ymm& to, const S& a, const S&) { e.move(to, a); }}},
    {Op::kMov, {[](E& e, const Ymm& to, const S& a, const S&) { e.move(to, a); }}},
    {Op::kFround, {round_to<static_cast<int>(Rounding::kNearestEven)>}},
    {Op::kFtrunc, {round_to<static_cast<int>(Rounding::kZero)>}},
    {Op::kFfloor, {round_to<static_cast<int>(Rounding::kDown)>}},
    {Op::kFceil, {round_to<static_cast<int>(Rounding::kUp)>}},
    {Op::kFdx, {[](E& e, const Ymm& to, const S& a, const S&) { derivative(e, to, a, 0xa0, 0xf5); }}},
    {Op::kFdy, {[](E& e, const Ymm& to, const S& a, const S&) { derivative(e, to, a, 0x44, 0xee); }}},
    {Op::kAdd, {V3D_BINARY(vpaddd)}},
    {Op::kSub, {V3D_BINARY(vpsubd)}},
    {Op::kMin, {V3D_BINARY(vpminsd)}},
    {Op::kMax, {V3D_BINARY(vpmaxsd)}},
    {Op::kUmin, {V3D_BINARY(vpminud)}},
    {Op::kUmax, {V3D_BINARY(vpmaxud)}},
    {Op::kShl, {V3D_SHIFT(vpslld, vpsllvd)}},
    {Op::kShr, {V3D_SHIFT(vpsrld, vpsrlvd)}},
    {Op::kAsr, {V3D_SHIFT(vpsrad, vpsravd)}},
    {Op::kRor, {rotate_bits}},
    {Op::kAnd, {V3D_BINARY(vpand)}},
    {Op::kOr, {V3D_BINARY(vpor)}},
    {Op::kXor, {V3D_BINARY(vpxor)}},
    {Op::kVadd, {V3D_BINARY(vpaddw)}},
    {Op::kVsub, {V3D_BINARY(vpsubw)}},
    {Op::kNot,
     {[](E& e, const Ymm& to, const S& a, const S&) { e.vpxor(to, e.in_register(a), e.constant(~0u)); }}},
    {Op::kNeg, {[](E& e, const Ymm& to, const S& a, const S&) {
       e.vpxor(to, to, to);
       e.vpsubd(to, to, a.operand());
     }}},
    {Op::kClz, {leading_zeros}},
    {Op::kUmul24, {umul24}},
    {Op::kMultop, {multop}},
    {Op::kSmul24, {smul24}},
    {Op::kFtoin, {to_signed<true>}},
    {Op::kFtoiz, {to_signed<false>}},
    {Op::kFtouz, {to_unsigned}},
    {Op::kItof, {[](E& e, const Ymm& to, const S& a, const S&) { e.vcvtdq2ps(to, a.operand()); }}},
    {Op::kUtof, {from_unsigned}},
    {Op::kVfpack, {pack_halves}},
    {Op::kVpack, {join_halves}},
    {Op::kVfmov, {signs<0>}},
    {Op::kVfabs, {signs<5>}},
    {Op::kVfneg, {signs<10>}},
    {Op::kVfnab, {signs<15>}},
    {Op::kRecip, {recip}},
    {Op::kRsqrt, {rsqrt}},
    {Op::kRsqrt2, {rsqrt}},
    {Op::kExp, {exp2}},
    {Op::kLog, {log2}},
    {Op::kSin, {sine}},
    {Op::kRot, {rot, kAcross}},
    {Op::kRotq, {rotq}},
    {Op::kShuffle, {shuffle, kAcross}},
    {Op::kVfla, {flag_word<false, false>}},
    {Op::kVflna, {flag_word<false, true>}},
    {Op::kVflb, {flag_word<true, false>}},
    {Op::kVflnb, {flag_word<true, true>}},
    {Op::kFlapush, {push_flag<false>}},
    {Op::kFlbpush, {push_flag<true>}},
    {Op::kFlpop, {[](E& e, const Ymm& to, const S& a, const S&) { e.vpsrld(to, e.in_register(a), 2); }}},
    {Op::kFlafirst, {first_lane<false>, kAcross}},
    {Op::kFlnafirst, {first_lane<true>, kAcross}},
    {Op::kRevf, {back_facing}},
    {Op::kLdvpmvIn, {load_row<offsetof(Thread, vpm_in), offsetof(Thread, vpm_in_rows)>, kAcross}},
    {Op::kLdvpmvOut, {load_row<offsetof(Thread, vpm_out), offsetof(Thread, vpm_out_rows)>, kAcross}},
    {Op::kStvpmv, {store_row, kAcross}},
    {Op::kTidx, {load_word<offsetof(Thread, tidx)>}},
    {Op::kLr, {load_word<offsetof(Thread, link)>}},
    {Op::kEidx, {[](E& e, const Ymm& to, const S&, const S&) {
       e.vmovaps(to, e.constants({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}));
     }}},
    {Op::kXcd, {load_lanes<offsetof(Thread, pixel_x)>}},
    {Op::kYcd, {load_lanes<offsetof(Thread, pixel_y)>}},
    {Op::kFxcd, {load_lanes<offsetof(Thread, sample_x)>}},
    {Op::kFycd, {load_lanes<offsetof(Thread, sample_y)>}},
    {Op::kMsf, {load_lanes<offsetof(Thread, msf)>}},
    {Op::kIid, {load_lanes<offsetof(Thread, gs_invocation)>}},
    {Op::kSampid, {load_lanes<offsetof(Thread, sample_id)>}},
    {Op::kSetmsf, {[](E& e, const Ymm& to, const S& a, const S&) { e.move(to, a); }}},
    {Op::kBarrierid, {load_constant<kBarrierToken>}},
    {Op::kTmuwt, {load_constant<0>}},
    {Op::kVpmwt, {load_constant<0>}},
};

static_assert(has_one_row_each(kEmitters));

}  // namespace

OperationEmitter emitter_of(Op op) {
  const Row* const row = row_of(kEmitters, op);
  return row ? row->emitter : OperationEmitter{};
}

}  // namespace v3d::qpu::jit::avx2
