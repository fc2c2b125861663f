/// From channels to texels of plain formats: the inverse of Format::decode.
#pragma once

#include <cstdint>

#include "gpu/base/lanes.h"

namespace v3d::tmu {

enum class Number : uint8_t { kUnorm, kSnorm, kHalf, kSmallFloat, kSharedExponent, kInt, kUint, kRaw };

struct Channel {
  uint8_t first, bits;  ///< counted through the texel's words; 0 bits: not there
};

/// Where R, G, B and A lie in a texel.
struct Packing {
  uint8_t type;  ///< texture data format
  Number number;
  Channel channels[4];
};

/// Null for compressed formats, depth and what find_format does not know.
const Packing* find_packing(uint32_t type);

/// One channel of floats; numbers outside the format's range are clamped, NaN of integers is 0.
/// @param number  kUnorm, kSnorm, kHalf or kSmallFloat
uint32_t encode_float(Number number, float v, int bits);

/// Sixteen texels. @param rgba  floats, or the bits of integers, which are clamped; raw channels as they are
/// @param words  as Format::decode reads them
void encode_texels(const Packing& packing, const Lanes* rgba, Lanes* words);

}  // namespace v3d::tmu
