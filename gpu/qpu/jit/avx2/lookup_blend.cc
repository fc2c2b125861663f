/// @file Four texels of 8-bit unorm channels to return words. @see Unorm8Texel of the TMU

#include "gpu/qpu/jit/avx2/lookups.h"
#include "gpu/qpu/jit/code/frame.h"
#include "gpu/qpu/jit/code/tmu_memory.h"

namespace v3d::qpu::jit::avx2 {

using tmu::LevelTables;

namespace {

constexpr size_t kPartBytes = sizeof(Lanes) / 2;

}  // namespace

/// @see tmu::column(): x to its part of an offset. All but the last term are bits of their own.
void Lookups::column(const Ymm& x, int log2_cpp) {
  const int w = utile_of(log2_cpp).log2_width;
  right(kA, x, w + 1);
  vpand(kA, kA, constant(3));
  vpbroadcastd(kB, in_level(offsetof(LevelTables, x_shift)));
  vpsllvd(kA, kA, kB);
  left(kB, x, log2_cpp);
  vpand(kB, kB, constant(((1u << w) - 1) << log2_cpp));
  vpor(kA, kA, kB);
  left(kB, x, 6 - w);
  vpand(kB, kB, constant(64));
  vpor(kA, kA, kB);
  right(x, x, w + 3);
  vpbroadcastd(kB, in_level(offsetof(LevelTables, column_pitch)));
  vpmulld(x, x, kB);
  vpaddd(x, x, kA);
}

/// The bit of the row's part that x decides on.
void Lookups::column_flip(const Ymm& to, const Ymm& x, int log2_cpp) {
  left(to, x, 11 - utile_of(log2_cpp).log2_width);
  vpbroadcastd(kA, in_level(offsetof(LevelTables, xor_bit)));
  vpand(to, to, kA);
}

/// @see tmu::row()
void Lookups::row(const Ymm& y, int log2_cpp) {
  const auto [w, h] = utile_of(log2_cpp);
  right(kA, y, h);
  vpand(kA, kA, constant(1));
  vpbroadcastd(kB, in_level(offsetof(LevelTables, y0_shift)));
  vpsllvd(kA, kA, kB);
  left(kB, y, log2_cpp + w);
  vpand(kB, kB, constant(((1u << h) - 1) << (log2_cpp + w)));
  vpor(kA, kA, kB);
  right(y, y, h + 1);
  vpbroadcastd(kB, in_level(offsetof(LevelTables, y1_shift)));
  vpsllvd(y, y, kB);
  vpor(y, y, kA);
}

/// From what emit_linear() kept to the indices of gathers, in ymm0 to ymm3.
void Lookups::find_four(int log2_cpp, int part) {
  for (int n = 0; n < 6; ++n) vmovaps(Ymm(kFirstKept + n), tap(n, part));
  vmovaps(kAddress, tap(6, part));
  vpxor(kAddress, kAddress, constant(0x80000000));  // indices have a sign
  for (int k = 0; k < 2; ++k) {
    row(kPairY[k], log2_cpp);
    column_flip(kFlip[k], kPairX[k], log2_cpp);
    column(kPairX[k], log2_cpp);
    vpaddd(kPairX[k], kPairX[k], kAddress);
  }
  for (int k = 0; k < 4; ++k) {
    vpxor(Ymm(k), kPairY[k >> 1], kFlip[k & 1]);
    vpaddd(Ymm(k), Ymm(k), kPairX[k & 1]);
  }
}

void Lookups::gather_texels(const Ymm& to, const Ymm& index, int bytes, int part) {
  if (bytes < 4) {
    vpand(kB, index, constant(3));
    left(kB, kB, 3);
    vpand(index, index, constant(~3u));
  }
  expand_lanes(kA, ecx, part);
  clear(to);
  vpgatherdd(to, ptr[rdi + index], kA);
  if (bytes < 4) vpsrlvd(to, to, kB);
}

/// Changes ymm2.
void Lookups::emit_gather_values(const Xmm& to, const Xmm& index) {
  const Ymm target(to.getIdx()), lanes(2);
  vpcmpeqd(lanes, lanes, lanes);
  clear(target);
  vpgatherdd(target, ptr[rdi + Ymm(index.getIdx()) * 4], lanes);
}

/// Changes ymm2.
void Lookups::emit_drop_lanes(const Xmm& v, int part) {
  const Ymm lanes(2);
  expand_lanes(lanes, ecx, part);
  vpand(v, v, lanes);
}

void Lookups::emit_blend(const Load& load) {
  // Both need kLevel, whose register addresses memory afterwards.
  find_four(load.log2_count, 1);
  for (int k = 0; k < 4; ++k) vmovaps(tap(k, 1), Ymm(k));
  find_four(load.log2_count, 0);
  mov(ecx, r8d);
  for (int part = 0; part < 2; ++part) {
    mov(edi, 0x80000000);
    add(rdi, kMemory);
    if (part == 1)
      for (int k = 0; k < 4; ++k) vmovaps(Ymm(k), tap(k, 1));
    for (int k = 0; k < 4; ++k) gather_texels(Ymm(kBlend.texel[k].getIdx()), Ymm(k), load.bytes(), part);
    vmovaps(kWeightX, tap(4, part));
    vmovaps(kWeightY, tap(5, part));
    if (load.fields()) {
      blend_factors_in_float(kBlend);
    } else {
      blend_factors(kWeightX, kWeightY);
      blend_rows(kBlend, load.count() > 1);
    }
    return_part(load, part);
  }
  for (int n = 0; n < kNumKept; ++n)
    vmovaps(Ymm(kFirstKept + n), yword[kFrame + offsetof(Frame, kept) + static_cast<size_t>(n) * kPartBytes]);
  load.to_channels ? ret() : jmp(finished_);
}

}  // namespace v3d::qpu::jit::avx2
