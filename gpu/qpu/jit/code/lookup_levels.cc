/// @file Lookups whose lanes may differ in their levels and filters: finds these, and looks up the lanes that
/// have both in common together. By vectors of 4 quads, or of 8 lanes where they differ inside quads, on all
/// hosts, in ymm2 to ymm6. @see choose_levels() and those around it, in gpu/tmu/lookup/sampling.h

#include <bit>
#include <utility>

#include "gpu/qpu/jit/code/levels_frame.h"
#include "gpu/qpu/jit/code/lookup_emitter.h"
#include "gpu/qpu/jit/code/predicates.h"
#include "gpu/qpu/jit/code/tmu_memory.h"

namespace v3d::qpu::jit {

using tmu::LevelTables;
using tmu::LookupSteps;
using tmu::Plan;
using tmu::TextureLookup;
using Xbyak::Reg32;
using Xbyak::Xmm;
using Xbyak::Ymm;

namespace {

constexpr uint8_t kDown = 9;  // of vroundps, without exceptions

}  // namespace

Xbyak::Address LookupEmitter::eight(float value) { return eight(std::bit_cast<uint32_t>(value)); }

/// All bits of the lanes in `lanes`: that of a lane moves to the highest place.
void LookupEmitter::expand_lanes(const Ymm& to, const Reg32& lanes, int part) {
  vmovd(Xmm(to.getIdx()), lanes);
  vpbroadcastd(to, Xmm(to.getIdx()));
  if (part == 0) vpslld(to, to, 8);
  vpsllvd(to, to, yword[rip + shifts_]);
  vpsrad(to, to, 31);
}

void LookupEmitter::emit_levels() {
  Label base, of_lanes, quads_differ, differ;
  emit_keep_s();
  test(r8d, r8d);
  jz(base);
  emit_level_of_detail(base, of_lanes);
  choose_levels(-1);
  look_up_one_level_of_quads(quads_differ);
  L(of_lanes);
  choose_levels_of_lanes();
  look_up_one_level(differ);
  L(base);
  look_up_base_level();
  L(quads_differ);
  expand_quads();
  choose_filters();
  L(differ);
  look_up_levels();
}

// ---- Level of detail

/// unclamped_lod() without biases: of quads if they need no others. Goes to `base` where all_magnified().
void LookupEmitter::emit_level_of_detail(Label& base, Label& of_lanes) {
  Label is_explicit, small, one_for_a_quad;
  cmp(byte[kSlot + in_plan(offsetof(Plan, explicit_lod))], 0);
  jne(is_explicit);
  emit_footprints();
  find_quads();
  cmp(byte[kSlot + in_plan(offsetof(Plan, magnifies_below_one))], 0);
  je(small);
  test(edx, ecx);
  jz(base);
  L(small);
  log2_of_square();
  test(byte[kThread + kWritten], tmu::kB);
  jz(one_for_a_quad);
  expand_quads(kDetail);
  jmp(of_lanes);
  L(is_explicit);
  vpxor(kY2, kY2, kY2);
  for (int part = 0; part < 2; ++part) vmovaps(yword[kFrame + kDetail + at_part(part)], kY2);
  jmp(of_lanes);
  L(one_for_a_quad);
}

/// Those with active lanes, to ecx.
void LookupEmitter::find_quads() {
  Label all;
  mov(ecx, 15);
  cmp(r8d, kAllLanes);
  je(all);
  mov(ecx, r8d);
  for (const int distance : {1, 2}) {
    mov(eax, ecx);
    shr(eax, static_cast<uint8_t>(distance));
    or_(ecx, eax);
  }
  and_(ecx, 0x1111);
  imul(ecx, ecx, 0x1248);  // bit 4 n to bit 12 + n
  shr(ecx, 12);
  and_(ecx, 15);
  L(all);
}

/// Of each quad, how far its second lane (to xmm5) and its third (to xmm2) are from the first.
void LookupEmitter::quad_differences(const Xbyak::RegExp& values) {
  const auto quad = [&](size_t n) { return xword[values + n * sizeof(Lanes) / 4]; };
  vmovaps(kX2, quad(0));
  vmovaps(kX3, quad(2));
  vunpcklps(kX4, kX2, quad(1));
  vunpckhps(kX2, kX2, quad(1));
  vunpcklps(kX5, kX3, quad(3));
  vunpckhps(kX3, kX3, quad(3));
  vmovlhps(kX6, kX4, kX5);  // lane 0 of the quads
  vmovhlps(kX5, kX5, kX4);  // lane 1
  vmovlhps(kX2, kX2, kX3);  // lane 2
  vsubps(kX5, kX5, kX6);
  vsubps(kX2, kX2, kX6);
}

/// Derivatives: the squared lengths in texels of a step along x, to xmm5, and of one along y, to xmm2.
/// @param steps  where in the frame two Lanes get how far these go in S and in T: along x in the first
/// quarter, along y in the second; 0: nowhere
void LookupEmitter::find_footprint_sides(size_t steps) {
  const struct Parameter {
    Xbyak::Reg64 base;
    size_t coordinates, sizes;
  } axes[2] = {{kFrame, offsetof(Frame, a), offsetof(LevelTables, width)},
               {kThread, kTexture + offsetof(TextureLookup, t), offsetof(LevelTables, height)}};
  find_base_level();
  for (size_t n = 0; n < 2; ++n) {
    const Parameter& axis = axes[n];
    quad_differences(axis.base + axis.coordinates);
    if (steps != 0) {
      vmovaps(xword[kFrame + steps + n * sizeof(Lanes)], kX5);
      vmovaps(xword[kFrame + steps + n * sizeof(Lanes) + kQuadBytes], kX2);
    }
    vpbroadcastd(kX3, dword[kLevel + axis.sizes]);
    vcvtdq2ps(kX3, kX3);
    size_t at = kWeights;
    for (const Xmm& side : {kX5, kX2}) {
      vmulps(side, side, kX3);
      vmulps(side, side, side);
      const auto of_s = xword[kFrame + at];
      n == 0 ? vmovaps(of_s, side) : vaddps(side, side, of_s);
      at += kQuadBytes;
    }
  }
}

/// The squared length of the longer side. Quads where it is above a texel, to edx.
void LookupEmitter::emit_footprints() {
  find_footprint_sides(0);
  vmaxps(kX2, kX5, kX2);
  vmovaps(xword[kFrame + kDetail], kX2);
  vcmpps(kX2, kX2, eight(1.0f), kGreater);
  vmovmskps(edx, kX2);
}

/// The same steps with the sign of what is subtracted from constants changed, which rounding does not see.
void LookupEmitter::log2_of_square() {
  const Xbyak::Address detail = xword[kFrame + kDetail];
  vmovaps(kX2, detail);
  vmaxps(kX2, kX2, eight(0x1p-32f));
  vminps(kX2, kX2, eight(0x1p+60f));
  vpsubd(kX2, kX2, eight(0x3f3504f3u));
  vpand(kX3, kX2, eight(0x7fffffu));
  vpaddd(kX3, kX3, eight(0x3f3504f3u));
  vsubps(kX3, kX3, eight(1.0f));
  vmulps(kX4, kX3, kX3);
  vmulps(kX5, kX3, eight(0.298072372f));
  vsubps(kX5, kX5, eight(0.361390689f));
  vmulps(kX5, kX5, kX4);
  vmulps(kX6, kX3, eight(0.357639749f));
  vsubps(kX6, kX6, eight(0.474986073f));
  vaddps(kX5, kX6, kX5);
  vmulps(kX5, kX5, kX4);
  vmulps(kX6, kX3, eight(0.721367359f));
  vsubps(kX6, kX6, eight(1.44280951f));
  vaddps(kX5, kX6, kX5);
  vmulps(kX5, kX5, kX3);
  vpsrad(kX2, kX2, 23);
  vcvtdq2ps(kX2, kX2);
  vsubps(kX2, kX2, kX5);
  vmulps(kX2, kX2, eight(0.5f));
  vmovaps(detail, kX2);
}

// ---- Levels and filters

/// Of a part of the lanes, or, if negative, of quads: to eax those that are minified, to edx those that take
/// one level only.
void LookupEmitter::choose_levels(int part) {
  Label unbiased, round, chosen;
  const bool of_quads = part < 0;
  const size_t offset = of_quads ? 0 : at_part(part);
  const auto vector = [&](int n) { return of_quads ? Xmm(n) : Xmm(Ymm(n)); };
  const Xmm x = vector(2), level = vector(3), zero = vector(4), base = vector(5), last = vector(6);
  const auto fill = [this](const Xmm& to, size_t at) { vpbroadcastd(to, dword[kSlot + at]); };
  vmovaps(x, ptr[kFrame + kDetail + offset]);
  if (!of_quads) {
    test(byte[kThread + kWritten], tmu::kB);
    jz(unbiased);
    vaddps(x, x, ptr[kThread + kTexture + offsetof(TextureLookup, b) + offset]);
    L(unbiased);
  }
  fill(level, in_steps(offsetof(LookupSteps, bias)));
  vaddps(x, x, level);
  vmaxps(x, x, eight(-64.0f));
  vminps(x, x, eight(64.0f));
  vmulps(x, x, eight(256.0f));
  vroundps(x, x, kDown);
  vcvttps2dq(x, x);
  fill(level, in_plan(offsetof(Plan, sampler.min_lod)));
  vpmaxsd(x, x, level);
  fill(level, in_plan(offsetof(Plan, sampler.max_lod)));
  vpminsd(x, x, level);
  vpxor(zero, zero, zero);
  vpcmpgtd(level, x, zero);
  vmovmskps(eax, level);
  vpmaxsd(x, x, zero);

  fill(base, in_steps(offsetof(LookupSteps, base_level)));
  fill(last, in_steps(offsetof(LookupSteps, last_level)));
  cmp(byte[kSlot + in_plan(offsetof(Plan, sampler.mip_nearest))], 0);
  jne(round);
  vpsrad(level, x, 8);
  vpaddd(level, level, base);
  vpminsd(level, level, last);
  vpcmpgtd(last, last, level);
  vpand(x, x, last);
  vpand(x, x, eight(255u));
  jmp(chosen);
  L(round);
  vpaddd(level, x, eight(128u));
  vpsrad(level, level, 8);
  vpaddd(level, level, base);
  vpminsd(level, level, last);
  vpxor(x, x, x);
  L(chosen);
  vmovaps(ptr[kFrame + kDetail + offset], level);
  vmovaps(ptr[kFrame + kWeights + offset], x);
  vpcmpeqd(x, x, zero);
  vmovmskps(edx, x);
}

void LookupEmitter::choose_levels_of_lanes() {
  choose_levels(0);
  mov(ecx, eax);
  mov(edi, edx);
  choose_levels(1);
  shl(eax, 8);
  or_(ecx, eax);
  shl(edx, 8);
  or_(edx, edi);
  xor_(edx, kAllLanes);
  choose_filters();
}

/// What stands there of each quad becomes that of each lane.
void LookupEmitter::expand_quads(size_t offset) {
  vmovaps(kX2, xword[kFrame + offset]);
  for (int part = 0; part < 2; ++part) {
    vpshufd(kX3, kX2, part == 0 ? 0x00 : 0xaa);
    vpshufd(kX4, kX2, part == 0 ? 0x55 : 0xff);
    vinserti128(kY3, kY3, kX4, 1);
    vmovaps(yword[kFrame + offset + at_part(part)], kY3);
  }
}

/// Levels, weights, and what choose_filters() gets.
void LookupEmitter::expand_quads() {
  expand_quads(kDetail);
  expand_quads(kWeights);
  mov(edx, dword[kFrame + kBlended]);
  mov(ecx, eax);
  for (const Reg32& quads : {ecx, edx}) {
    for (const auto& [distance, mask] : {std::pair(6, 0x0303u), std::pair(3, 0x1111u)}) {  // bit n to bit 4 n
      imul(edi, quads, (1 << distance) + 1);
      mov(quads, edi);
      and_(quads, mask);
    }
    imul(quads, quads, 15);
  }
}

/// From the minified lanes in ecx and those of two levels in edx. Leaves active ones that take the nearest
/// texel in eax.
void LookupEmitter::choose_filters() {
  and_(edx, r8d);
  mov(dword[kFrame + kBlended], edx);
  mov(eax, dword[kSlot + in_steps(offsetof(LookupSteps, minified_nearest))]);
  and_(eax, ecx);
  not_(ecx);
  and_(ecx, dword[kSlot + in_steps(offsetof(LookupSteps, magnified_nearest))]);
  or_(eax, ecx);
  and_(eax, r8d);
  mov(dword[kFrame + kNearestLanes], eax);
}

/// Also others than active ones.
void LookupEmitter::lanes_of_level(const Reg32& to, const Reg32& level) {
  vmovd(Xmm(2), level);
  vpbroadcastd(kY2, Xmm(2));
  vpcmpeqd(kY3, kY2, yword[kFrame + kDetail]);
  vpcmpeqd(kY4, kY2, yword[kFrame + kDetail + kPartBytes]);
  vpackssdw(kY3, kY3, kY4);
  vpermq(kY3, kY3, 0xd8);
  vpacksswb(kY3, kY3, kY3);
  vpermq(kY3, kY3, 0xd8);
  vpmovmskb(to, Xmm(3));
}

// ---- Lookups

void LookupEmitter::look_up_base_level() {
  find_base_level();
  emit_take_s();
  go_to_step(offsetof(LookupSteps, magnified_filter), filter_table_);
}

/// ecx, a level, becomes kLevel. As a rule it is that of the lookup before: a branch that the host guesses
/// lets it go on before it knows.
/// @param guess  where in the Frame that stands
void LookupEmitter::take_level(const Xbyak::RegExp& guess) {
  Label same;
  mov(edi, dword[guess]);
  cmp(ecx, edi);
  je(same);
  mov(dword[guess], ecx);
  mov(edi, ecx);
  L(same);
  lea(kLevel, ptr[kSlot + kLevel * 4 + in_plan(offsetof(Plan, levels))]);
}

/// From edx of choose_levels(), for expand_quads().
void LookupEmitter::note_blended_quads() {
  xor_(edx, 15);
  mov(dword[kFrame + kBlended], edx);
}

/// If all active quads agree, and take only one.
void LookupEmitter::look_up_one_level_of_quads(Label& differ) {
  Label magnified, minified;
  mov(edi, eax);
  find_quads();
  mov(eax, edi);
  note_blended_quads();
  test(edx, ecx);
  jnz(differ);
  bsf(edx, ecx);
  vpbroadcastd(kX2, dword[kFrame + rdx * 4 + kDetail]);
  vpcmpeqd(kX3, kX2, xword[kFrame + kDetail]);
  vmovmskps(edx, kX3);
  not_(edx);
  test(edx, ecx);
  jnz(differ);
  test(eax, ecx);
  jz(magnified);
  mov(edx, eax);
  not_(edx);
  test(edx, ecx);
  jz(minified);
  movzx(edx, byte[kSlot + in_steps(offsetof(LookupSteps, minified_filter))]);
  cmp(dl, byte[kSlot + in_steps(offsetof(LookupSteps, magnified_filter))]);
  jne(differ);
  for (const bool is_minified : {true, false}) {
    L(is_minified ? minified : magnified);
    vmovd(ecx, kX2);
    take_level(kFrame + kGuesses);
    emit_take_s();
    go_to_step(is_minified ? offsetof(LookupSteps, minified_filter) : offsetof(LookupSteps, magnified_filter),
               filter_table_);
  }
}

/// If all active lanes agree, and take only one.
void LookupEmitter::look_up_one_level(Label& differ) {
  Label linear;
  test(edx, edx);
  jnz(differ);
  bsf(ecx, r8d);
  mov(ecx, dword[kFrame + rcx * 4 + kDetail]);
  lanes_of_level(edi, ecx);
  not_(edi);
  test(edi, r8d);
  jnz(differ);
  take_level(kFrame + kGuesses);
  test(eax, eax);
  jz(linear);
  cmp(eax, r8d);
  jne(differ);
  emit_take_s();
  go_to_step(offsetof(LookupSteps, nearest_filter), filter_table_);
  L(linear);
  emit_take_s();
  go_to_step(offsetof(LookupSteps, linear_filter), filter_table_);
}

/// After choose_filters(), to the end.
void LookupEmitter::look_up_levels() {
  mov(qword[kFrame + kOutOfAll], kOut);
  begin_levels();
  look_up_chosen_levels();
  return_words();
}

/// Of the lanes in r8d.
void LookupEmitter::begin_levels() {
  mov(dword[kFrame + kAllOfThem], r8d);
  mov(dword[kFrame + kLeft], r8d);
  mov(dword[kFrame + kToChannels], 1);
  mov(dword[kFrame + kOfNext], 0);
  lea(rax, ptr[kFrame + offsetof(Frame, channels)]);
  mov(qword[kFrame + kTarget], rax);
}

/// sample_levels(), to the channels in the frame.
void LookupEmitter::look_up_chosen_levels() {
  Label next_lanes, next_level, one_level;
  L(next_lanes);
  look_up_some();
  cmp(dword[kFrame + kLeft], 0);
  jne(next_lanes);
  mov(eax, dword[kFrame + kBlended]);
  test(eax, eax);
  jz(one_level);
  cmp(dword[kFrame + kOfNext], 0);
  jne(next_level);
  mov(dword[kFrame + kLeft], eax);
  mov(dword[kFrame + kOfNext], 1);
  lea(rax, ptr[kFrame + kNext]);
  mov(qword[kFrame + kTarget], rax);
  jmp(next_lanes);
  L(next_level);
  blend_levels();
  L(one_level);
}

/// Those that have level and filter in common with the first one that is left.
void LookupEmitter::look_up_some() {
  Label linear, are_linear, chosen, some, done;
  mov(r8d, dword[kFrame + kLeft]);
  bsf(eax, r8d);
  mov(ecx, dword[kFrame + rax * 4 + kDetail]);
  lanes_of_level(edi, ecx);
  and_(r8d, edi);
  mov(edx, dword[kFrame + kNearestLanes]);
  bt(edx, eax);
  movzx(eax, byte[kSlot + in_steps(offsetof(LookupSteps, nearest_filter))]);
  jc(chosen);
  not_(edx);
  movzx(eax, byte[kSlot + in_steps(offsetof(LookupSteps, linear_filter))]);
  L(chosen);
  and_(r8d, edx);
  xor_(dword[kFrame + kLeft], r8d);
  mov(edi, dword[kFrame + kOfNext]);
  add(ecx, edi);
  mov(edx, dword[kSlot + in_steps(offsetof(LookupSteps, last_level))]);
  cmp(ecx, edx);
  cmova(ecx, edx);
  lea(rdx, ptr[kFrame + rdi * 4 + kGuesses]);
  take_level(rdx);
  emit_take_s();
  address_of_step(filter_table_);
  mov(edx, dword[kFrame + kAllOfThem]);
  cmp(r8d, edx);
  jne(some);
  mov(r8d, edx);  // known before the comparison is
  mov(kOut, qword[kFrame + kTarget]);
  call(rax);
  jmp(done);
  L(some);
  lea(kOut, ptr[kFrame + kSome]);
  call(rax);
  merge_some();
  L(done);
}

void LookupEmitter::merge_some() {
  mov(rax, qword[kFrame + kTarget]);
  for (int part = 0; part < 2; ++part) {
    expand_lanes(kY2, r8d, part);
    for (size_t n = 0; n < kChannels; ++n) {
      vmovaps(kY3, yword[kFrame + kSome + n * sizeof(Lanes) + at_part(part)]);
      vmaskmovps(yword[rax + n * sizeof(Lanes) + at_part(part)], kY2, kY3);
    }
  }
}

/// AnyTexel::linear() of the two levels, in the channels of the first.
void LookupEmitter::blend_levels() {
  for (int part = 0; part < 2; ++part) {
    const Xbyak::Address weights = yword[kFrame + kWeights + at_part(part)];
    vcvtdq2ps(kY2, weights);
    vmulps(kY2, kY2, eight(1.0f / 256));
    vmovups(kY3, eight(1.0f));
    vsubps(kY3, kY3, kY2);
    for (size_t n = 0; n < kChannels; ++n) {
      const Xbyak::Address channel =
          yword[kFrame + offsetof(Frame, channels) + n * sizeof(Lanes) + at_part(part)];
      vmovaps(kY4, channel);
      vmulps(kY5, kY4, kY3);
      vmulps(kY6, kY2, yword[kFrame + kNext + n * sizeof(Lanes) + at_part(part)]);
      vaddps(kY5, kY5, kY6);
      vpxor(kY6, kY6, kY6);
      vpcmpeqd(kY6, kY6, weights);
      vblendvps(kY5, kY5, kY4, kY6);
      vmovaps(channel, kY5);
    }
  }
}

/// finish()
void LookupEmitter::return_words() {
  mov(r8d, dword[kFrame + kAllOfThem]);
  mov(kOut, qword[kFrame + kOutOfAll]);
  mov(dword[kFrame + kToChannels], 0);
  const auto channel = [&](size_t n, int part) {
    return yword[kFrame + offsetof(Frame, channels) + n * sizeof(Lanes) + at_part(part)];
  };
  const auto of_word = [&](const Ymm& to, size_t n, size_t half, int part) {
    movzx(eax, byte[kSlot + in_plan(offsetof(Plan, word_channel)) + 2 * n + half]);
    shl(eax, 6);
    vmovaps(to, yword[kFrame + rax + offsetof(Frame, channels) + at_part(part)]);
  };
  for (int part = 0; part < 2; ++part) {
    Label done;
    expand_lanes(kY2, r8d, part);
    vpxor(kY3, kY3, kY3);
    vmovaps(channel(tmu::kZeroSource, part), kY3);
    vpbroadcastd(kY3, dword[kSlot + in_plan(offsetof(Plan, one))]);
    vmovaps(channel(tmu::kOneSource, part), kY3);
    for (size_t n = 0; n < kChannels; ++n) {
      Label whole, integers, packed;
      cmp(kWords, static_cast<uint32_t>(n));
      je(done);
      of_word(kY3, n, 0, part);
      cmp(byte[kSlot + in_plan(offsetof(Plan, wide_output))], 0);
      jne(whole);
      of_word(kY4, n, 1, part);
      cmp(byte[kSlot + in_steps(offsetof(LookupSteps, integers))], 0);
      jne(integers);
      for (const Ymm& y : {kY3, kY4}) {
        vcvtps2ph(Xmm(y.getIdx()), y, 0);
        vpmovzxwd(y, Xmm(y.getIdx()));
      }
      jmp(packed);
      L(integers);
      vpand(kY3, kY3, eight(0xffffu));
      L(packed);
      vpslld(kY4, kY4, 16);
      vpor(kY3, kY3, kY4);
      L(whole);
      vpand(kY3, kY3, kY2);
      vmovaps(yword[kOut + n * sizeof(Lanes) + at_part(part)], kY3);
    }
    L(done);
  }
  jmp(finished_);
}

}  // namespace v3d::qpu::jit
