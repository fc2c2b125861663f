/// @file Texels of four channels of a byte, of which tables say the values: byte by byte of all of them at
/// once, where the host permutes bytes by two registers. Tables are in memory in four parts of 64. @see
/// tmu::Fields::planes

#include "gpu/qpu/jit/avx512/lookups.h"
#include "gpu/qpu/jit/code/frame.h"
#include "gpu/qpu/jit/code/tmu_memory.h"

namespace v3d::qpu::jit::avx512 {

using tmu::Fields;
using tmu::LookupSteps;
using tmu::Plan;

namespace {

constexpr uint32_t kAlphaOfRow = 0x8888;
constexpr size_t kPart = 64;

}  // namespace

/// Of return_decoded() for extract(); before that, a row.
Xbyak::Address Lookups::kept_channel(int n) {
  return zword[kFrame + offsetof(Frame, taps) + static_cast<size_t>(n) * sizeof(Lanes)];
}

/// For each byte of the texels that of the table of 256 at rdx + `table`. kLanesMask: those from 128 on.
/// @param upper  changed
void Lookups::look_up_bytes(const Zmm& to, const Zmm& texels, size_t table, const Zmm& upper) {
  const auto part = [&](size_t n) { return zword[rdx + table + n * kPart]; };
  vmovdqa64(to, part(0));
  vpermt2b(to, texels, part(1));
  vmovdqa64(upper, part(2));
  vpermt2b(upper, texels, part(3));
  vmovdqu8(to | kLanesMask, upper);
}

/// The values to kRows, that of alpha as if it were a colour. Changes zmm2 to zmm6.
void Lookups::find_rows(const Zmm& texels) {
  vpmovb2m(kLanesMask, texels);
  for (int plane = 0; plane < 4; ++plane)
    look_up_bytes(Zmm(2 + plane), texels, static_cast<size_t>(plane) * Fields::kBytes, Zmm(6));
  vpunpcklbw(Zmm(6), Zmm(2), Zmm(3));
  vpunpckhbw(Zmm(2), Zmm(2), Zmm(3));
  vpunpcklbw(Zmm(3), Zmm(4), Zmm(5));
  vpunpckhbw(Zmm(4), Zmm(4), Zmm(5));
  vpunpcklwd(kRows[0], Zmm(6), Zmm(3));
  vpunpckhwd(kRows[1], Zmm(6), Zmm(3));
  vpunpcklwd(kRows[2], Zmm(2), Zmm(4));
  vpunpckhwd(kRows[3], Zmm(2), Zmm(4));
}

/// Alpha, which is unorm, to its places in the rows, if somebody wants it. Changes the texels and zmm4.
void Lookups::take_alpha(const Zmm& texels) {
  Label done;
  test(byte[kSlot + in_plan(offsetof(Plan, channels_used))], 8);
  jz(done);
  right(texels, texels, 24);
  unorm8(texels, Zmm(4));
  mov(eax, kAlphaOfRow);
  kmovw(kLanesMask, eax);
  for (int row = 0; row < 4; ++row)
    vpermilps(kRows[row] | kLanesMask, texels, static_cast<uint8_t>(row * 0x55));
  L(done);
}

/// By that of the factors in the frame. Changes zmm4.
void Lookups::scale_rows(size_t factor) {
  for (int row = 0; row < 4; ++row) {
    vpermilps(Zmm(4), zword[kFrame + offsetof(Frame, factors) + factor * sizeof(Lanes)],
              static_cast<uint8_t>(row * 0x55));
    vmulps(kRows[row], kRows[row], Zmm(4));
  }
}

/// Those in zmm2, to channels in kRows.
void Lookups::decode_bytes() {
  const Zmm texels(kFirstKept);
  const auto kept = zword[kFrame + offsetof(Frame, kept)];
  vmovdqa64(kept, texels);
  mov(rdx, qword[kSlot + in_steps(offsetof(LookupSteps, fields.planes))]);
  vmovdqa64(texels, kY);
  find_rows(texels);
  take_alpha(texels);
  transpose(*this, kRows, Zmm(4));
  vmovdqa64(texels, kept);
}

/// The four around a point, by the factors in the frame, to channels in kRows: as blend_fields().
void Lookups::blend_bytes() {
  const Zmm top[4] = {kPairX[0], kPairX[1], kWeightX, kWeightY};
  mov(rdx, qword[kSlot + in_steps(offsetof(LookupSteps, fields.planes))]);
  for (size_t n = 0; n < 4; ++n) {
    find_rows(Zmm(kBlend.texel[n].getIdx()));
    take_alpha(Zmm(kBlend.texel[n].getIdx()));
    scale_rows(n & 1);
    if ((n & 1) == 0) {
      for (int row = 0; row < 4; ++row) vmovaps(kept_channel(row), kRows[row]);
      continue;
    }
    for (int row = 0; row < 4; ++row) vaddps(kRows[row], kRows[row], kept_channel(row));
    scale_rows(2 + n / 2);
    for (int row = 0; row < 4; ++row)
      n == 1 ? vmovaps(top[row], kRows[row]) : vaddps(kRows[row], kRows[row], top[row]);
  }
  transpose(*this, kRows, Zmm(4));
}

/// The channels in kRows. Goes on after this, or at `done`.
void Lookups::return_decoded(const Load& load, Label& done) {
  const auto returned = [this](uint32_t n) { return zword[kOut + n * sizeof(Lanes)]; };
  const auto channel = [&](uint32_t n) { return kRows[load.channel(static_cast<int>(n))]; };
  if (load.to_channels) {
    for (uint32_t n = 0; n < 4; ++n) vmovdqa64(returned(n), kRows[n]);
    return;
  }
  if (load.order == Order::kAny) {
    for (int n = 0; n < 4; ++n) vmovdqa64(kept_channel(n), kRows[n]);
    return return_any_words(load, done);
  }
  for (uint32_t n = 0; n < (load.wide ? 4u : 2u); ++n) {
    cmp(kWords, n);
    je(done, T_NEAR);
    if (!load.wide) pack_halves(channel(2 * n), channel(2 * n + 1), false);
    vmovdqa64(returned(n), channel(load.wide ? n : 2 * n));
  }
  jmp(done, T_NEAR);
}

}  // namespace v3d::qpu::jit::avx512
