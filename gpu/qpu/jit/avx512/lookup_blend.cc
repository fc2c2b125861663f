/// @file Four texels of 8-bit unorm channels to return words. @see Unorm8Texel of the TMU

#include "gpu/qpu/jit/avx512/lookups.h"
#include "gpu/qpu/jit/code/frame.h"
#include "gpu/qpu/jit/code/tmu_memory.h"

namespace v3d::qpu::jit::avx512 {

/// From the indices in kPairX and kPairY to the indices of gathers, in zmm2 to zmm5.
void Lookups::find_four(int log2_cpp) {
  vpxord(kAddress, kAddress, constant(0x80000000));  // indices have a sign
  for (int k = 0; k < 2; ++k) {
    row(kPairY[k], log2_cpp);
    column_flip(kFlip[k], kPairX[k], log2_cpp);
    column(kPairX[k], log2_cpp);
    vpaddd(kPairX[k], kPairX[k], kAddress);
  }
  for (int k = 0; k < 4; ++k) {
    const Zmm index(2 + k);
    vpxord(index, kPairY[k >> 1], kFlip[k & 1]);
    vpaddd(index, index, kPairX[k & 1]);
  }
}

void Lookups::gather_texels(const Zmm& to, const Zmm& index, int bytes) {
  if (bytes < 4) {
    vpandd(kAddress, index, constant(3));
    left(kAddress, kAddress, 3);
    vpandd(index, index, constant(~3u));
  }
  kmovw(kLanesMask, ecx);
  clear(to);
  vpgatherdd(to | kLanesMask, ptr[rdi + index]);
  if (bytes < 4) vpsrlvd(to, to, kAddress);
}

/// 256 a + (b - a) weight for two channels in the halves of each lane. @see Unorm8Texel::blend
void Lookups::blend_columns(const Zmm& to, const Zmm& a, const Zmm& b, bool odd) {
  if (odd) {
    vpsrlw(kA, a, 8);
    vpsrlw(kB, b, 8);
  } else {
    vpandd(kA, a, constant(0x00ff00ff));
    vpandd(kB, b, constant(0x00ff00ff));
  }
  vpsubw(kB, kB, kA);
  vpmullw(kB, kB, kWeightX);
  vpsllw(kA, kA, 8);
  vpaddw(to, kA, kB);
}

void Lookups::emit_blend(const Load& load) {
  Label done;
  find_four(load.log2_count);
  mov(edi, 0x80000000);
  add(rdi, kMemory);
  mov(ecx, r8d);
  const Zmm texels[4] = {kPairX[0], kPairX[1], kPairY[0], kPairY[1]};
  for (int k = 0; k < 4; ++k) gather_texels(texels[k], Zmm(2 + k), load.bytes());
  left(kA, kWeightX, 16);
  vpord(kWeightX, kWeightX, kA);
  vcvtdq2ps(kWeightY, kWeightY);
  vmulps(kWeightY, kWeightY, of_float(1.0f / 256));
  for (int k = 0; k < 2; ++k) {
    blend_columns(kFlip[k], texels[2 * k], texels[2 * k + 1], false);
    if (load.count() > 1) blend_columns(texels[2 * k], texels[2 * k], texels[2 * k + 1], true);
  }
  if (load.to_channels)
    return_channels(load);
  else
    load.order == Order::kAny ? return_any_words(load, done) : return_words_in_order(load, done);
  L(done);
  for (int n = 0; n < kNumKept; ++n)
    vmovdqa64(Zmm(kFirstKept + n),
              zword[kFrame + offsetof(Frame, kept) + static_cast<size_t>(n) * sizeof(Lanes)]);
  load.to_channels ? ret() : jmp(finished_);
}

/// Blends the rows, which stand where emit_blend() put them.
void Lookups::extract_blended(const Zmm& to, int channel) {
  const bool odd = channel & 1;
  const Zmm bottom(6);
  const auto half = [&](const Zmm& z, const Zmm& from) {
    if (channel < 2)
      vpandd(z, from, constant(0xffff));
    else
      right(z, from, 16);
    vcvtdq2ps(z, z);
  };
  half(to, odd ? kPairX[0] : kFlip[0]);
  half(bottom, odd ? kPairY[0] : kFlip[1]);
  vsubps(bottom, bottom, to);
  vmulps(bottom, bottom, kWeightY);
  vaddps(to, to, bottom);
  vmulps(to, to, of_float(1.0f / (255 * 256)));
}

}  // namespace v3d::qpu::jit::avx512
