/// These textures are made by rule: a wall of bricks.
#pragma once

#include <cstdint>
#include <vector>

namespace samples {

/// RGBA8, `size` x `size` texels, the first row at v = 0.
struct Texture {
  uint32_t size = 0;
  std::vector<uint8_t> texels;
};

struct BrickTextures {
  Texture color;   ///< linear colour; alpha is gloss
  Texture normal;  ///< tangent space, 0..255 for -1..1
};

/// They repeat without a seam.
BrickTextures brick_textures(uint32_t size);

/// The next mipmap level: half the size, each texel the mean of four.
Texture half_size(const Texture& texture);

}  // namespace samples
