/// Sixteen texels of an 8x2 block between lanes (four adjacent quads) and two rows of memory. Internal to the
/// TLB.
#pragma once

#include <cstring>

#include "gpu/base/lanes.h"

namespace v3d::tlb {

typedef uint32_t HalfLanes __attribute__((vector_size(32)));
typedef uint16_t Shorts __attribute__((vector_size(32)));
typedef uint8_t Bytes __attribute__((vector_size(16)));

/// Lane order to row order: eight texels of the upper row, eight of the lower one. And back.
inline Lanes quads_to_rows(Lanes v) {
  return __builtin_shufflevector(v, v, 0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
}
inline Lanes rows_to_quads(Lanes v) {
  return __builtin_shufflevector(v, v, 0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
}

inline void store_halves(Lanes v, uint8_t* first, uint8_t* second) {
  const HalfLanes low = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7);
  const HalfLanes high = __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
  std::memcpy(first, &low, sizeof low);
  std::memcpy(second, &high, sizeof high);
}
inline Lanes load_halves(const uint8_t* first, const uint8_t* second) {
  HalfLanes low, high;
  std::memcpy(&low, first, sizeof low);
  std::memcpy(&high, second, sizeof high);
  return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

/// The 4x2 texels of half a utile of 32-bit texels are adjacent: two of them make a block.
inline void store_half_utiles(Lanes v, uint8_t* left, uint8_t* right) {
  store_halves(__builtin_shufflevector(v, v, 0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15), left,
               right);
}
inline Lanes load_half_utiles(const uint8_t* left, const uint8_t* right) {
  const Lanes v = load_halves(left, right);
  return __builtin_shufflevector(v, v, 0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15);
}

/// @param texel  (cpp + 3) / 4 words of each lane's texel
void store_rows(uint32_t cpp, const Lanes* texel, uint8_t* upper, uint8_t* lower);
void load_rows(uint32_t cpp, const uint8_t* upper, const uint8_t* lower, Lanes* texel);

/// The same for one sample of a multisampled image: each pixel is 2x2 texels, so a block lies on four rows,
/// and the rows given are those of that sample. They start at the block's first pixel.
/// @param column  of the sample in the 2x2 texels
void store_sample_rows(uint32_t cpp, uint32_t column, const Lanes* texel, uint8_t* upper, uint8_t* lower);
void load_sample_rows(uint32_t cpp, uint32_t column, const uint8_t* upper, const uint8_t* lower,
                      Lanes* texel);

}  // namespace v3d::tlb
