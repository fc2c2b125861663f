/// These functions say how many bytes an image takes, in the layouts of VideoCore IV (vc4-abi.md 3.6; Linux
/// vc4_validate.c).
#pragma once

#include <cstdint>

namespace v3d::ioctl::vc4 {

/// The numbers are those of packets.
enum class Tiling : uint8_t { kLinear = 0, kT = 1, kLt = 2 };
inline constexpr uint32_t kNumTilings = 3;

/// A micro tile has 64 bytes.
struct Utile {
  uint32_t width, height;
};
/// @param bytes  of a texel, or of a block of ETC1: 1, 2, 4 or 8
constexpr Utile utile(uint32_t bytes) {
  switch (bytes) {
    case 1:
      return {8, 8};
    case 2:
      return {8, 4};
    case 4:
      return {4, 4};
    default:
      return {2, 4};
  }
}

/// Whether the texture unit takes a level for LT rather than T.
constexpr bool is_small(uint32_t width, uint32_t height, uint32_t bytes) {
  return width <= 4 * utile(bytes).width || height <= 4 * utile(bytes).height;
}

/// Of a surface or level 0; greater ones are refused.
inline constexpr uint32_t kMaxImageSide = 4096;

/// @param width,height  texels, or blocks of ETC1; at most kMaxImageSide
constexpr uint64_t image_bytes(Tiling tiling, uint32_t width, uint32_t height, uint32_t bytes) {
  const auto align = [](uint64_t value, uint32_t to) { return (value + to - 1) / to * to; };
  const auto [w, h] = utile(bytes);
  const uint32_t utiles = tiling == Tiling::kT ? 8 : 1;
  return align(width, w * utiles) * (tiling == Tiling::kLinear ? height : align(height, h * utiles)) * bytes;
}

}  // namespace v3d::ioctl::vc4
