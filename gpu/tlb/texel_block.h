/// Sixteen texels of an 8x2 block between lanes (four adjacent quads) and memory. Internal to the TLB.
#pragma once

#include <cstddef>
#include <cstring>

#include "gpu/base/lanes.h"

namespace v3d::tlb {

/// Where the block's two rows lie, in pieces as wide as a utile: that many texels are adjacent in every
/// layout. A block has 1 piece of 1 or 2-byte texels, 2 of 4 or 8-byte ones, 4 of 16-byte ones.
struct BlockRows {
  uint8_t* piece[4];
  ptrdiff_t lower;  ///< bytes from the upper row of a piece to its lower row
};

typedef uint32_t Words4 __attribute__((vector_size(16)));
typedef uint32_t Words8 __attribute__((vector_size(32)));

/// Lane order to row order (eight texels of the upper row, eight of the lower one), and back.
inline Lanes quads_to_rows(Lanes v) {
  return __builtin_shufflevector(v, v, 0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
}
inline Lanes rows_to_quads(Lanes v) {
  return __builtin_shufflevector(v, v, 0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
}

/// Texels of four bytes.
inline void store_block_4(const Lanes* texel, const BlockRows& rows) {
  const Lanes v = quads_to_rows(texel[0]);
  const Words4 part[4] = {
      __builtin_shufflevector(v, v, 0, 1, 2, 3), __builtin_shufflevector(v, v, 4, 5, 6, 7),
      __builtin_shufflevector(v, v, 8, 9, 10, 11), __builtin_shufflevector(v, v, 12, 13, 14, 15)};
  for (int i = 0; i < 2; ++i) {
    std::memcpy(rows.piece[i], &part[i], sizeof(Words4));
    std::memcpy(rows.piece[i] + rows.lower, &part[2 + i], sizeof(Words4));
  }
}
inline void load_block_4(const BlockRows& rows, Lanes* texel) {
  Words4 part[4];
  for (int i = 0; i < 2; ++i) {
    std::memcpy(&part[i], rows.piece[i], sizeof(Words4));
    std::memcpy(&part[2 + i], rows.piece[i] + rows.lower, sizeof(Words4));
  }
  const Words8 upper = __builtin_shufflevector(part[0], part[1], 0, 1, 2, 3, 4, 5, 6, 7);
  const Words8 lower = __builtin_shufflevector(part[2], part[3], 0, 1, 2, 3, 4, 5, 6, 7);
  texel[0] = rows_to_quads(
      __builtin_shufflevector(upper, lower, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}

/// @param cpp    1, 2, 4, 8 or 16
/// @param texel  (cpp + 3) / 4 words of each lane's texel
void store_block(uint32_t cpp, const Lanes* texel, const BlockRows& rows);
void load_block(uint32_t cpp, const BlockRows& rows, Lanes* texel);

/// The same with every other texel of two rows, in one piece: a sample of a multisampled image.
void store_spread_block(uint32_t cpp, const Lanes* texel, const BlockRows& rows);
void load_spread_block(uint32_t cpp, const BlockRows& rows, Lanes* texel);

}  // namespace v3d::tlb
