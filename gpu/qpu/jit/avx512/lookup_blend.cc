/// @file Four texels of 8-bit unorm channels to return words. @see Unorm8Texel of the TMU

#include "gpu/qpu/jit/avx512/lookups.h"
#include "gpu/qpu/jit/code/frame.h"
#include "gpu/qpu/jit/code/tmu_memory.h"

namespace v3d::qpu::jit::avx512 {

using tmu::LevelTables;

/// From the indices in kPairX and kPairY to the indices of gathers, in zmm3, zmm4, zmm2 and zmm5.
void Lookups::find_four(int log2_cpp) {
  Label plain, found;
  find_tile_offsets(log2_cpp);
  vpxord(kAddress, kAddress, constant(0x80000000));  // indices have a sign
  for (const Zmm& y : kPairY) row(y);
  const Zmm flips[2] = {Zmm(2), Zmm(5)};
  cmp(dword[kLevel + offsetof(LevelTables, xor_bit)], 0);
  je(plain);
  for (const bool has_flips : {true, false}) {
    if (has_flips)
      for (int k = 0; k < 2; ++k) column_flip(flips[k], kPairX[k], log2_cpp);
    else
      L(plain);
    for (const Zmm& x : kPairX) {
      column(x, log2_cpp);
      vpaddd(x, x, kAddress);
    }
    for (int k = 0; k < 4; ++k) {
      const Zmm &x = kPairX[k & 1], &y = kPairY[k >> 1], &index = kIndices[k];
      if (has_flips) vpxord(index, y, flips[k & 1]);
      vpaddd(index, has_flips ? index : y, x);
    }
    if (has_flips) jmp(found);
  }
  L(found);
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

void Lookups::emit_gather_values(const Xmm& to, const Xmm& index) {
  const Zmm target(to.getIdx());
  kxnorw(kLanesMask, kLanesMask, kLanesMask);
  clear(target);
  vpgatherdd(target | kLanesMask, ptr[rdi + Zmm(index.getIdx()) * 4]);
}

void Lookups::emit_drop_lanes(const Xmm& v, int /*part*/) {
  const Zmm z(v.getIdx());
  kmovw(kLanesMask, ecx);
  vmovdqa32(z | kLanesMask | T_z, z);
}

void Lookups::emit_blend(const Load& load) {
  Label done;
  find_four(load.log2_count);
  mov(edi, 0x80000000);
  add(rdi, kMemory);
  mov(ecx, r8d);
  for (int k = 0; k < 4; ++k) gather_texels(Zmm(kBlend.texel[k].getIdx()), kIndices[k], load.bytes());
  if (load.fields()) {
    blend_factors_in_float(kBlend);
  } else {
    blend_factors(kWeightX, kWeightY);
    blend_rows(kBlend, load.count() > 1);
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

}  // namespace v3d::qpu::jit::avx512
