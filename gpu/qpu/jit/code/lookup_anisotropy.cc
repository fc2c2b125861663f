/// @file Anisotropic lookups: several along the longer side of the footprint of each quad, as many as that is
/// longer than the other one, whose mean counts. @see run_anisotropic() of the TMU

#include "gpu/qpu/jit/code/levels_frame.h"
#include "gpu/qpu/jit/code/lookup_emitter.h"
#include "gpu/qpu/jit/code/predicates.h"
#include "gpu/qpu/jit/code/tmu_memory.h"

namespace v3d::qpu::jit {

using tmu::Plan;
using tmu::TextureLookup;

namespace {

constexpr size_t in_probes(size_t offset) { return offsetof(Frame, probes) + offset; }
constexpr size_t kTotal = in_probes(offsetof(Frame::Probes, total)),
                 kProbes = in_probes(offsetof(Frame::Probes, number)),
                 kStep = in_probes(offsetof(Frame::Probes, step)),
                 kMiddle = in_probes(offsetof(Frame::Probes, middle)),
                 kLanesOfAll = in_probes(offsetof(Frame::Probes, lanes)),
                 kBlendedOfAll = in_probes(offsetof(Frame::Probes, blended)),
                 kProbe = in_probes(offsetof(Frame::Probes, probe)),
                 kSeveral = in_probes(offsetof(Frame::Probes, several));
constexpr size_t kAxisT = kTexture + offsetof(TextureLookup, t);

}  // namespace

void LookupEmitter::emit_anisotropic() {
  Label none, of_lanes, several, quads_differ;
  emit_keep_s();
  test(r8d, r8d);
  jz(none);
  find_footprint_sides(kStep);
  find_probes();
  log2_of_square();
  test(byte[kThread + kWritten], tmu::kB);
  jnz(of_lanes);
  choose_levels(-1);
  cmp(dword[kFrame + kSeveral], 0);
  jne(several);
  look_up_one_level_of_quads(quads_differ);
  L(quads_differ);
  expand_quads();
  choose_filters();
  look_up_levels();
  L(several);
  note_blended_quads();
  expand_quads();
  choose_filters();
  look_up_probes();
  L(of_lanes);
  expand_quads(kDetail);
  choose_levels_of_lanes();
  look_up_probes();
  L(none);
  look_up_base_level();
}

/// From the squared sides to the number of probes of each quad, and what is left of the longer side, to
/// kDetail. kStep becomes that along it. kSeveral: active quads of more than one, or whose coordinates are
/// not finite.
void LookupEmitter::find_probes() {
  const Xbyak::Xmm &probes = kX2, &longer = kX3, &factor = kX4;
  const auto texel = xword[kFrame + kWeights];
  Label next, found;
  // The one along x, unless the other is longer.
  vcmpps(kX6, kX2, kX5, kLessOrEqual);
  for (size_t n = 0; n < 2; ++n) {
    vmovaps(kX3, xword[kFrame + kStep + n * sizeof(Lanes) + kQuadBytes]);
    vblendvps(kX3, kX3, xword[kFrame + kStep + n * sizeof(Lanes)], kX6);
    vmovaps(xword[kFrame + kStep + n * sizeof(Lanes)], kX3);
  }
  vblendvps(longer, kX2, kX5, kX6);
  vblendvps(kX4, kX5, kX2, kX6);
  vmaxps(kX4, kX4, eight(1.0f));
  vmovaps(texel, kX4);
  vmovups(probes, eight(1u));
  vmovups(factor, eight(1.0f));
  movzx(ecx, byte[kSlot + in_plan(offsetof(Plan, sampler.max_anisotropy))]);
  L(next);
  dec(ecx);
  jz(found);
  vmulps(kX5, factor, factor);
  vmulps(kX5, kX5, texel);
  vcmpps(kX5, kX5, longer, kLess);
  vmovmskps(edx, kX5);
  test(edx, edx);
  jz(found);
  vpsubd(probes, probes, kX5);
  vaddps(factor, factor, eight(1.0f));
  jmp(next);
  L(found);
  vmovaps(xword[kFrame + kProbes], probes);
  vcvtdq2ps(kX6, probes);
  vmulps(kX6, kX6, kX6);
  vdivps(kX6, longer, kX6);
  vmovaps(xword[kFrame + kDetail], kX6);
  // One probe is the lookup itself unless its step is infinite or NaN.
  vcmpps(kX5, longer, eight(0x1.fffffep+127f), kLessOrEqual);
  vpcmpeqd(probes, probes, eight(1u));
  vpand(kX5, kX5, probes);
  vmovmskps(edx, kX5);
  find_quads();
  not_(edx);
  and_(edx, ecx);
  mov(dword[kFrame + kSeveral], edx);
}

/// After choose_filters().
void LookupEmitter::look_up_probes() {
  Label next, done;
  begin_probes();
  L(next);
  take_probe(done);
  begin_levels();
  look_up_chosen_levels();
  add_probe();
  inc(dword[kFrame + kProbe]);
  jmp(next);
  L(done);
  end_probes();
}

void LookupEmitter::begin_probes() {
  mov(dword[kFrame + kLanesOfAll], r8d);
  mov(eax, dword[kFrame + kBlended]);
  mov(dword[kFrame + kBlendedOfAll], eax);
  mov(qword[kFrame + kOutOfAll], kOut);
  mov(dword[kFrame + kProbe], 0);
  for (const size_t words : {kProbes, kStep, kStep + sizeof(Lanes)}) expand_quads(words);
  vpxor(kY2, kY2, kY2);
  for (int part = 0; part < 2; ++part) {
    for (size_t n = 0; n < kChannels; ++n)
      vmovaps(yword[kFrame + kTotal + n * sizeof(Lanes) + at_part(part)], kY2);
    vmovaps(kY3, yword[kFrame + offsetof(Frame, a) + at_part(part)]);
    vmovaps(yword[kFrame + kMiddle + at_part(part)], kY3);
    vmovaps(kY3, yword[kThread + kAxisT + at_part(part)]);
    vmovaps(yword[kFrame + kMiddle + sizeof(Lanes) + at_part(part)], kY3);
  }
}

/// The lanes that have this probe, to r8d, and where it is, to where lookups take their coordinates from.
/// Without such lanes on to `done`.
void LookupEmitter::take_probe(Label& done) {
  vpbroadcastd(kY2, dword[kFrame + kProbe]);
  for (int part = 0; part < 2; ++part) {
    vmovdqa(kY3, yword[kFrame + kProbes + at_part(part)]);
    vpcmpgtd(kY3, kY3, kY2);
    vmovmskps(part == 0 ? eax : ecx, kY3);
  }
  shl(ecx, 8);
  or_(eax, ecx);
  mov(r8d, dword[kFrame + kLanesOfAll]);
  and_(r8d, eax);
  jz(done);
  mov(eax, dword[kFrame + kBlendedOfAll]);
  and_(eax, r8d);
  mov(dword[kFrame + kBlended], eax);

  vcvtdq2ps(kY2, kY2);
  vaddps(kY2, kY2, eight(0.5f));
  for (int part = 0; part < 2; ++part) {
    vcvtdq2ps(kY3, yword[kFrame + kProbes + at_part(part)]);
    vdivps(kY3, kY2, kY3);
    vsubps(kY3, kY3, eight(0.5f));
    for (size_t n = 0; n < 2; ++n) {
      vmulps(kY4, kY3, yword[kFrame + kStep + n * sizeof(Lanes) + at_part(part)]);
      vaddps(kY4, kY4, yword[kFrame + kMiddle + n * sizeof(Lanes) + at_part(part)]);
      vmovaps(n == 0 ? yword[kFrame + offsetof(Frame, a) + at_part(part)]
                     : yword[kThread + kAxisT + at_part(part)],
              kY4);
    }
  }
}

void LookupEmitter::add_probe() {
  mov(r8d, dword[kFrame + kAllOfThem]);
  for (int part = 0; part < 2; ++part) {
    expand_lanes(kY2, r8d, part);
    for (size_t n = 0; n < kChannels; ++n) {
      const auto total = yword[kFrame + kTotal + n * sizeof(Lanes) + at_part(part)];
      vmovaps(kY3, total);
      vaddps(kY3, kY3, yword[kFrame + offsetof(Frame, channels) + n * sizeof(Lanes) + at_part(part)]);
      vmaskmovps(total, kY2, kY3);
    }
  }
}

void LookupEmitter::end_probes() {
  mov(eax, dword[kFrame + kLanesOfAll]);
  mov(dword[kFrame + kAllOfThem], eax);
  for (int part = 0; part < 2; ++part) {
    vcvtdq2ps(kY2, yword[kFrame + kProbes + at_part(part)]);
    for (size_t n = 0; n < kChannels; ++n) {
      vmovaps(kY3, yword[kFrame + kTotal + n * sizeof(Lanes) + at_part(part)]);
      vdivps(kY3, kY3, kY2);
      vmovaps(yword[kFrame + offsetof(Frame, channels) + n * sizeof(Lanes) + at_part(part)], kY3);
    }
    vmovaps(kY3, yword[kFrame + kMiddle + sizeof(Lanes) + at_part(part)]);
    vmovaps(yword[kThread + kAxisT + at_part(part)], kY3);
  }
  mov(dword[kFrame + kProbe], 0);
  return_words();
}

}  // namespace v3d::qpu::jit
