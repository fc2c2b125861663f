/// These functions turn channels into texels of plain formats: the inverse of Format::decode.
#pragma once

#include <cstdint>

#include "gpu/tmu/texel/format.h"

namespace v3d::tmu {

/// One channel of floats; numbers outside the format's range are clamped, NaN of integers is 0.
/// @param number  kUnorm, kSnorm, kHalf or kSmallFloat
uint32_t encode_float(Number number, float v, int bits);

/// Sixteen texels. @param rgba  floats, or the bits of integers, which are clamped; channels of 32 bits as
/// they are
/// @param words  as Format::decode reads them
void encode_texels(const Packing& packing, const Lanes* rgba, Lanes* words);

}  // namespace v3d::tmu
