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
  Label done, far, loaded;
  const auto scratch = [&](size_t n) {
    return zword[kFrame + offsetof(Frame, channels) + n * sizeof(Lanes)];
  };
  // Utiles around all lanes that lie in two columns and two rows, an even and an odd one of each (repeating
  // or not): loaded whole and permuted, which is faster than four gathers. Not where levels differ: two of a
  // minified texture seldom are so near.
  if (load.bytes() == 4 && !load.to_channels) {
    const Zmm acc(4);
    cmp(r8d, kAllLanes);
    jne(far);
    vmovdqa64(scratch(2), kWeightX);
    vmovdqa64(scratch(3), kWeightY);
    // What lanes have other than the utiles of the even and odd ones found first: of layers, columns, rows.
    vpbroadcastd(acc, Xmm(kAddress.getIdx()));
    vpxord(acc, acc, kAddress);
    const auto axis = [&](const Zmm* p, const Zmm& even, const Zmm& odd, const Zmm& sel) {
      vmovdqa64(even, p[0]);
      vmovdqa64(odd, p[0]);
      for (int n = 1; n >= 0; --n) {
        vptestnmd(kLanesMask, p[n], constant(4));
        vpcompressd(even | kLanesMask, p[n]);
        vptestmd(kLanesMask, p[n], constant(4));
        vpcompressd(odd | kLanesMask, p[n]);
      }
      vpbroadcastd(even, Xmm(even.getIdx()));
      vpbroadcastd(odd, Xmm(odd.getIdx()));
      for (int n = 0; n < 2; ++n) {
        vptestmd(kLanesMask, p[n], constant(4));
        vpblendmd(sel | kLanesMask, even, odd);
        vpternlogd(acc, sel, p[n], 0xf6);  // a | (b ^ c)
      }
    };
    axis(kPairX, Zmm(2), Zmm(3), Zmm(5));
    vpunpckldq(Xmm(2), Xmm(2), Xmm(3));
    axis(kPairY, Zmm(5), Zmm(20), Zmm(21));
    vptestmd(kLanesMask, acc, constant(~3u));
    kortestw(kLanesMask, kLanesMask);
    Label back;
    jnz(back);
    vpunpckldq(Xmm(5), Xmm(5), Xmm(20));
    vpshufd(Xmm(5), Xmm(5), 0x50);
    vpandd(Zmm(5), Zmm(5), constant(~3u));
    vpandd(Zmm(2), Zmm(2), constant(~3u));
    find_tile_offsets(2);
    row(Zmm(5));
    column_flip(kA, Zmm(2), 2);
    vpxord(Zmm(5), Zmm(5), kA);
    column(Zmm(2), 2);
    vpaddd(Zmm(2), Zmm(2), Zmm(5));
    vpaddd(Zmm(2), Zmm(2), kAddress);
    vpcmpud(kLanesMask, Zmm(2), constant(kHighAddress), 5);
    kortestw(kLanesMask, kLanesMask);
    jnz(back);
    vmovd(eax, Xmm(2));
    vpextrd(ecx, Xmm(2), 1);
    vpextrd(edx, Xmm(2), 2);
    vpextrd(edi, Xmm(2), 3);
    vmovdqu32(Zmm(2), zword[kMemory + rax]);
    vmovdqu32(Zmm(3), zword[kMemory + rdx]);
    for (const Zmm& x : kPairX) {
      vpslld(Zmm(4), x, 2);
      vpandd(x, x, constant(3));
      vpternlogd(x, Zmm(4), constant(16), 0xf8);
    }
    const auto row_of = [&](const Zmm& y, const Zmm& a, const Zmm& b) {
      vptestmd(kLanesMask, y, constant(4));
      vpslld(y, y, 2);
      vpandd(y, y, constant(12));
      vpord(a, y, kPairX[0]);
      vpord(b, y, kPairX[1]);
      vmovdqa64(kWeightX, a);
      vmovdqa64(kWeightY, b);
      vpermi2d(a, Zmm(2), zword[kMemory + rcx]);
      vpermi2d(b, Zmm(2), zword[kMemory + rcx]);
      vpermi2d(kWeightX, Zmm(3), zword[kMemory + rdi]);
      vpermi2d(kWeightY, Zmm(3), zword[kMemory + rdi]);
      vmovdqa32(a | kLanesMask, kWeightX);
      vmovdqa32(b | kLanesMask, kWeightY);
    };
    row_of(kPairY[0], Zmm(4), Zmm(5));
    row_of(kPairY[1], Zmm(6), kPairY[1]);
    vmovdqa64(kPairX[0], Zmm(4));
    vmovdqa64(kPairX[1], Zmm(5));
    vmovdqa64(kPairY[0], Zmm(6));
    vmovdqa64(kWeightX, scratch(2));
    vmovdqa64(kWeightY, scratch(3));
    mov(ecx, r8d);
    jmp(loaded);
    L(back);
    vmovdqa64(kWeightX, scratch(2));
    vmovdqa64(kWeightY, scratch(3));
    L(far);
  }
  find_four(load.log2_count);
  mov(edi, 0x80000000);
  add(rdi, kMemory);
  mov(ecx, r8d);
  for (int k = 0; k < 4; ++k) gather_texels(Zmm(kBlend.texel[k].getIdx()), kIndices[k], load.bytes());
  L(loaded);
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
