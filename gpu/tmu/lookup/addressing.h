/// These functions give the addresses of 16 lanes' texels, and read them.
#pragma once

#include "gpu/base/vector.h"
#include "gpu/tmu/lookup/plan.h"

namespace v3d::tmu {

/// The row of LevelTables that each lane needs.
struct LevelLanes {
  Lanes address;
  LanesI width, height, depth;
  Lanes slice_size, x_shift, column_pitch, y0_shift, y1_shift, xor_bit;
};

inline LevelLanes levels_at(const Plan& plan, LanesI level) {
  const LevelTables& t = plan.levels;
  return {permute(t.address, level),      permute(t.width, level),      permute(t.height, level),
          permute(t.depth, level),        permute(t.slice_size, level), permute(t.x_shift, level),
          permute(t.column_pitch, level), permute(t.y0_shift, level),   permute(t.y1_shift, level),
          permute(t.xor_bit, level)};
}

/// The same level in every lane. @param level  0..15
inline LevelLanes level_in_all_lanes(const Plan& plan, int level) {
  const LevelTables& t = plan.levels;
  return {splat(t.address[level]),      splat_int(t.width[level]),  splat_int(t.height[level]),
          splat_int(t.depth[level]),    splat(t.slice_size[level]), splat(t.x_shift[level]),
          splat(t.column_pitch[level]), splat(t.y0_shift[level]),   splat(t.y1_shift[level]),
          splat(t.xor_bit[level])};
}

/// A texel's place: byte address of its texel or block, and its index inside a compressed block.
struct TexelPlace {
  Lanes address, in_block;
};
/// The part of a texel's offset that comes from x. In UIF XOR it decides on a bit of the y part.
struct Column {
  Lanes offset, flip, in_block;
};
struct Row {
  Lanes offset, in_block;
};

/// Index of a texel as stored. Assumed of the flips of a texture: nothing but this changes, so that wrapping,
/// offsets, filters and the order of gathered texels are those of the texture that the request sees.
inline Lanes flipped(LanesI i, LanesI size) { return as_uint(size) - 1u - as_uint(i); }

/// n / divisor for n below 2^14 and block sizes 4..12.
inline Lanes divide_by_block(Lanes n, uint32_t divisor) { return n * ((1u << 18) / divisor + 1) >> 18; }

// All tiled layouts are one formula with different shifts (texture.md 1.2): with ux, uy counting utiles,
//   64 (ux & 1) + ((ux / 2 & 3) << x_shift) + (ux / 8) column_pitch
//   + ((uy & 1) << y0_shift) + ((uy / 2) << y1_shift) + offset inside the utile,
// where LT takes x_shift 7, y0_shift 6, y1_shift 7 and column pitch 512.

template <bool kBlocks>
Column column(const Plan& plan, const LevelLanes& level, Lanes x) {
  Column result = {};
  if constexpr (kBlocks) {
    const Lanes block = divide_by_block(x, plan.format->block_width);
    result.in_block = x - block * uint32_t{plan.format->block_width};
    x = block;
  }
  const Lanes ux = x >> plan.log2_utile_width;
  const uint32_t in_utile = (1u << plan.log2_utile_width) - 1;
  result.offset = ((x & in_utile) << plan.log2_cpp) + ((ux & 1u) << 6) + (((ux >> 1) & 3u) << level.x_shift) +
                  (ux >> 3) * level.column_pitch;
  result.flip = (x << (11 - plan.log2_utile_width)) & level.xor_bit;  // bit 3 of ux to bit 4 of the block row
  return result;
}

template <bool kBlocks>
Row row(const Plan& plan, const LevelLanes& level, Lanes y) {
  Row result = {};
  if constexpr (kBlocks) {
    const Lanes block = divide_by_block(y, plan.format->block_height);
    result.in_block = (y - block * uint32_t{plan.format->block_height}) * uint32_t{plan.format->block_width};
    y = block;
  }
  const Lanes uy = y >> plan.log2_utile_height;
  const uint32_t in_utile = (1u << plan.log2_utile_height) - 1;
  result.offset = ((y & in_utile) << (plan.log2_cpp + plan.log2_utile_width)) +
                  ((uy & 1u) << level.y0_shift) + ((uy >> 1) << level.y1_shift);
  return result;
}

/// The place of a texel of a 1D level: raster memory, for compressed formats a row of blocks of which the
/// first line of texels counts (no driver has such a texture).
template <bool kBlocks>
TexelPlace place_1d(const Plan& plan, Lanes base, Lanes x) {
  if constexpr (!kBlocks) return {base + (x << plan.log2_cpp), Lanes{}};
  const Lanes block = divide_by_block(x, plan.format->block_width);
  return {base + (block << plan.log2_cpp), x - block * uint32_t{plan.format->block_width}};
}

inline TexelPlace place(Lanes base, const Column& x, const Row& y) {
  return {base + x.offset + (y.offset ^ x.flip), x.in_block + y.in_block};
}

/// The raw words of plain texels, zero extended. @param words  room for 4
inline void read_words(Memory memory, uint32_t cpp, Lanes address, LaneMask mask, Lanes* words) {
  if (cpp <= 2) {
    words[0] = gather_small(memory, address, mask, cpp);
    return;
  }
  for (uint32_t i = 0; i < cpp / 4; ++i) words[i] = gather(memory, address + 4 * i, mask);
}

/// Decoded channels (floats, or integers as their bits).
struct Texel {
  Lanes c[4];
};

inline Texel read_plain(const Plan& plan, TexelMemory& texels, const TexelPlace& at, LaneMask mask) {
  if (texels.footprint) texels.footprint->add(at.address, mask, plan.format->cpp);
  Lanes words[4];
  read_words(texels.memory, plan.format->cpp, at.address, mask, words);
  Texel texel;
  plan.decode(words, texel.c);
  return texel;
}

Texel read_compressed(const Plan& plan, TexelMemory& texels, const TexelPlace& at, LaneMask mask);

template <bool kBlocks>
Texel read_texel(const Plan& plan, TexelMemory& texels, const TexelPlace& at, LaneMask mask) {
  if constexpr (kBlocks) return read_compressed(plan, texels, at, mask);
  return read_plain(plan, texels, at, mask);
}

}  // namespace v3d::tmu
