#include "gpu/tmu/texel/encode.h"

#include <algorithm>
#include <cmath>

#include "gpu/base/float16.h"
#include "gpu/base/vector.h"

namespace v3d::tmu {
namespace {

/// Unsigned float with 5 exponent bits: a half without its sign and lowest mantissa bits, rounded to nearest
/// even. Negative numbers give 0.
uint32_t small_float(float v, int bits) {
  if (v < 0) return 0;
  const uint32_t half = float_to_half(v) & 0x7fffu;
  const int dropped = 15 - bits;
  if (half >= 0x7c00) return half >> dropped | (half > 0x7c00);
  const uint32_t rounded = half + (1u << (dropped - 1)) - 1 + ((half >> dropped) & 1);
  return std::min(rounded >> dropped, 0x7c00u >> dropped);
}

Lanes encode_channel(Number number, Lanes v, int bits) {
  const int32_t last = static_cast<int32_t>((1u << (bits - (number == Number::kInt))) - 1);
  switch (number) {
    case Number::kInt:
      return as_uint(clamp(as_int(v), splat_int(-last - 1), splat_int(last))) & ((1u << bits) - 1);
    case Number::kUint:
      return v < static_cast<uint32_t>(last) ? v : splat(static_cast<uint32_t>(last));
    default:
      break;
  }
  Lanes result;
  for (int i = 0; i < kLanes; ++i) result[i] = encode_float(number, as_float(v)[i], bits);
  return result;
}

/// RGB9_E5 by the rules of EXT_texture_shared_exponent.
uint32_t shared_exponent(const float (&rgb)[3]) {
  constexpr int kBias = 15, kBits = 9, kLastExponent = 31;
  constexpr float kLargest = 65408;  // 511 / 512 * 2^16
  float v[3];
  for (size_t c = 0; c < 3; ++c) v[c] = rgb[c] > 0 ? std::min(rgb[c], kLargest) : 0;
  const float largest = std::max({v[0], v[1], v[2]});
  int exponent = std::max(-kBias - 1, largest > 0 ? std::ilogb(largest) : -kBias - 1) + 1 + kBias;
  if (std::floor(std::ldexp(largest, kBias + kBits - exponent) + 0.5f) == 1 << kBits) ++exponent;
  uint32_t texel = static_cast<uint32_t>(std::min(exponent, kLastExponent)) << 27;
  for (size_t c = 0; c < 3; ++c)
    texel |= static_cast<uint32_t>(std::floor(std::ldexp(v[c], kBias + kBits - exponent) + 0.5f)) << (9 * c);
  return texel;
}

}  // namespace

uint32_t encode_float(Number number, float v, int bits) {
  const bool is_unorm = number == Number::kUnorm;
  if (number == Number::kHalf) return float_to_half(v);
  if (!is_unorm && number != Number::kSnorm) return small_float(v, bits);
  const auto max = static_cast<float>((1u << (bits - (is_unorm ? 0 : 1))) - 1);
  const float clamped = v == v ? std::clamp(v, is_unorm ? 0.0f : -1.0f, 1.0f) : 0.0f;
  return static_cast<uint32_t>(std::lround(clamped * max)) & ((1u << bits) - 1);
}

void encode_texels(const Packing& packing, const Lanes* rgba, Lanes* words) {
  for (int i = 0; i < 4; ++i) words[i] = Lanes{};
  if (packing.number == Number::kSharedExponent) {
    for (int i = 0; i < kLanes; ++i)
      words[0][i] = shared_exponent({as_float(rgba[0])[i], as_float(rgba[1])[i], as_float(rgba[2])[i]});
    return;
  }
  for (int c = 0; c < 4; ++c) {
    const Channel channel = packing.channels[c];
    if (channel.bits == 0) continue;
    const Lanes code = channel.bits == 32 ? rgba[c] : encode_channel(packing.number, rgba[c], channel.bits);
    words[channel.first / 32] |= code << (channel.first % 32);
  }
}

}  // namespace v3d::tmu
