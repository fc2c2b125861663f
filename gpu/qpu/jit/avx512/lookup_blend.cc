/// @file Four texels of 8-bit unorm channels to return words. @see Unorm8Texel of the TMU

#include <utility>

#include "gpu/qpu/jit/avx512/lookups.h"
#include "gpu/qpu/jit/code/frame.h"
#include "gpu/qpu/jit/code/tmu_memory.h"

namespace v3d::qpu::jit::avx512 {

using tmu::LevelTables;
using tmu::LookupSteps;

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

/// Of a pair of coordinates of each lane the first one of the block's first lane and the second one of its
/// last: the lowest and the highest, mostly. kDiffers gets the bits by which a lane's own lie in other
/// columns (rows) of utiles than these, of which one is even and one is odd if they are two.
void Lookups::find_utile_pair(const Zmm* pair, const Zmm& first, const Zmm& second, const Zmm& other) {
  vpbroadcastd(first, Xmm(pair[0].getIdx()));
  vpbroadcastd(second, dword[rip + constant_label(kLanes - 1)]);
  vpermd(second, second, pair[1]);
  for (int n = 0; n < 2; ++n) {
    vpxord(other, pair[n], first);
    vptestmd(kLanesMask, other, constant(4));
    vpxord(other | kLanesMask, pair[n], second);
    vpord(kDiffers, kDiffers, other);
  }
}

/// The offsets of four utiles, (first, second) x (first, second), to eax, ecx, edx and edi. Goes to `back`
/// where lanes lie in others. Bit 2 of coordinates becomes whether they lie in the second one.
void Lookups::find_near_utiles(Label& back) {
  const Zmm columns(2), rows(5), first_column(20), first_row(21), second(3);
  vpbroadcastd(kDiffers, Xmm(kAddress.getIdx()));
  vpxord(kDiffers, kDiffers, kAddress);  // of layers
  find_utile_pair(kPairX, first_column, second, rows);
  vpunpckldq(Xmm(columns.getIdx()), Xmm(first_column.getIdx()), Xmm(second.getIdx()));
  find_utile_pair(kPairY, first_row, second, rows);
  vptestmd(kLanesMask, kDiffers, constant(~3u));
  kortestw(kLanesMask, kLanesMask);
  jnz(back);
  vpunpckldq(Xmm(rows.getIdx()), Xmm(first_row.getIdx()), Xmm(second.getIdx()));
  vpshufd(Xmm(rows.getIdx()), Xmm(rows.getIdx()), 0x50);
  vpandd(rows, rows, constant(~3u));
  vpandd(columns, columns, constant(~3u));
  tiled_offset(columns, rows, 2);
  vpaddd(columns, columns, kAddress);
  vpcmpud(kLanesMask, columns, constant(kHighAddress), 5);
  kortestw(kLanesMask, kLanesMask);
  jnz(back);
  vmovd(eax, Xmm(2));
  vpextrd(ecx, Xmm(2), 1);
  vpextrd(edx, Xmm(2), 2);
  vpextrd(edi, Xmm(2), 3);
  for (const auto& [pair, first] : {std::pair(kPairX, first_column), std::pair(kPairY, first_row)}) {
    vpandd(first, first, constant(4));
    for (int n = 0; n < 2; ++n) vpxord(pair[n], pair[n], first);
  }
}

/// The texels of a row of the pair, of its two columns, to `first` and `second`. zmm2 and zmm3 hold the first
/// column's utiles of the first row and of the second, rcx and rdi the places of the second column's; kPairX
/// says where in a row of two utiles a column is.
void Lookups::permute_row(const Zmm& y, const Zmm& first, const Zmm& second) {
  vptestmd(kLanesMask, y, constant(4));
  vpslld(y, y, 2);
  vpandd(y, y, constant(12));
  vpord(first, y, kPairX[0]);
  vpord(second, y, kPairX[1]);
  vmovdqa64(kWeightX, first);
  vmovdqa64(kWeightY, second);
  vpermi2d(first, Zmm(2), zword[kMemory + rcx]);
  vpermi2d(second, Zmm(2), zword[kMemory + rcx]);
  vpermi2d(kWeightX, Zmm(3), zword[kMemory + rdi]);
  vpermi2d(kWeightY, Zmm(3), zword[kMemory + rdi]);
  vmovdqa32(first | kLanesMask, kWeightX);
  vmovdqa32(second | kLanesMask, kWeightY);
}

/// Where all lanes live and their texels lie in two columns and two rows of utiles, an even and an odd one of
/// each (repeating or not): loads these whole and permutes, which is faster than four gathers, and goes to
/// `loaded`.
void Lookups::load_near_utiles(Label& loaded) {
  Label back, far;
  const auto kept = [this](size_t n) {
    return zword[kFrame + offsetof(Frame, channels) + n * sizeof(Lanes)];
  };
  const auto take_weights = [&] {
    vmovdqa64(kWeightX, kept(2));
    vmovdqa64(kWeightY, kept(3));
  };
  cmp(r8d, kAllLanes);
  jne(far);
  vmovdqa64(kept(2), kWeightX);
  vmovdqa64(kept(3), kWeightY);
  find_near_utiles(back);
  vmovdqu32(Zmm(2), zword[kMemory + rax]);
  vmovdqu32(Zmm(3), zword[kMemory + rdx]);
  for (const Zmm& x : kPairX) {
    vpslld(Zmm(4), x, 2);
    vpandd(x, x, constant(3));
    vpternlogd(x, Zmm(4), constant(16), 0xf8);
  }
  permute_row(kPairY[0], Zmm(4), Zmm(5));
  permute_row(kPairY[1], Zmm(6), kPairY[1]);
  vmovdqa64(kPairX[0], Zmm(4));
  vmovdqa64(kPairX[1], Zmm(5));
  vmovdqa64(kPairY[0], Zmm(6));
  take_weights();
  mov(ecx, r8d);
  jmp(loaded);
  L(back);
  take_weights();
  L(far);
}

void Lookups::emit_blend(const Load& load) {
  constexpr uint32_t kWide = 128;  // texels; narrower levels stay in the host's caches
  Label done, loaded, near;
  cmp(byte[kSlot + in_steps(offsetof(LookupSteps, fetches_ahead))], 0);
  je(near);
  cmp(dword[kLevel + offsetof(LevelTables, width)], kWide);
  jb(near);
  fetch_ahead(kPairX[0], kPairY[0], load.log2_count);
  L(near);
  // Not where levels differ: two of a minified texture seldom are so near.
  if (load.bytes() == 4 && !load.to_channels) load_near_utiles(loaded);
  find_four(load.log2_count);
  mov(edi, 0x80000000);
  add(rdi, kMemory);
  mov(ecx, r8d);
  for (int k = 0; k < 4; ++k) gather_texels(Zmm(kBlend.texel[k].getIdx()), kIndices[k], load.bytes());
  L(loaded);
  if (load.fields()) {
    blend_factors_in_float(kBlend);
    if (decodes_bytes(load)) blend_bytes();
  } else {
    blend_factors(kWeightX, kWeightY);
    blend_rows(kBlend, load.count() > 1);
  }
  if (decodes_bytes(load))
    return_decoded(load, done);
  else if (load.to_channels)
    return_channels(load);
  else
    load.order == Order::kAny ? return_any_words(load, done) : return_words_in_order(load, done);
  L(done);
  each_kept([this](const Zmm& reg, const Xbyak::Address& place) { vmovdqa64(reg, place); });
  load.to_channels ? ret() : jmp(finished_);
}

}  // namespace v3d::qpu::jit::avx512
