#include "samples/common/textures.h"

#include <algorithm>
#include <cmath>

#include "samples/common/linear.h"

namespace samples {
namespace {

constexpr uint32_t kRows = 8, kColumns = 4;

/// 0 to 1, without pattern.
float hash(uint32_t a, uint32_t b) {
  uint32_t h = a * 0x9e3779b1u ^ (b + 0x7f4a7c15u) * 0x85ebca6bu;
  h = (h ^ h >> 15) * 0x2c1b3c6du;
  h = (h ^ h >> 12) * 0x297a2d39u;
  return static_cast<float>((h ^ h >> 15) & 0xffffff) / 0x1000000;
}

/// Smooth noise that repeats after `cells`.
float noise(float u, float v, uint32_t cells) {
  const float x = u * static_cast<float>(cells), y = v * static_cast<float>(cells);
  const auto i = static_cast<uint32_t>(x), j = static_cast<uint32_t>(y);
  const auto smooth = [](float t) { return t * t * (3 - 2 * t); };
  const float s = smooth(x - static_cast<float>(i)), t = smooth(y - static_cast<float>(j));
  const auto corner = [&](uint32_t a, uint32_t b) {
    return hash((i + a) % cells, (j + b) % cells + 1000 * cells);
  };
  return std::lerp(std::lerp(corner(0, 0), corner(1, 0), s), std::lerp(corner(0, 1), corner(1, 1), s), t);
}

struct Point {
  float height;  ///< 0 mortar, about 1 brick
  uint32_t row, brick;
};

Point bricks(float u, float v) {
  u -= std::floor(u);
  v -= std::floor(v);
  const float y = v * kRows;
  const auto row = static_cast<uint32_t>(y) % kRows;
  const float x = u * kColumns + (row % 2 ? 0.5f : 0.0f);
  const auto brick = static_cast<uint32_t>(x) % kColumns;
  // Distance to the nearest joint, in heights of a brick; bricks are twice as wide as high.
  const float fx = 2 * (x - std::floor(x)), fy = y - std::floor(y);
  const float edge = std::min(std::min(fx, 2 - fx), std::min(fy, 1 - fy));
  const float raised = std::clamp((edge - 0.05f) / 0.13f, 0.0f, 1.0f);
  const float rough = 0.22f * noise(u, v, 32) + 0.1f * noise(u, v, 64);
  return {raised * raised * (3 - 2 * raised) * (0.8f + 0.35f * hash(row, brick)) + rough, row, brick};
}

uint8_t to_byte(float x) { return static_cast<uint8_t>(std::lround(std::clamp(x, 0.0f, 1.0f) * 255)); }

}  // namespace

BrickTextures brick_textures(uint32_t size) {
  BrickTextures result{{size, {}}, {size, {}}};
  const float step = 1 / static_cast<float>(size);
  for (uint32_t j = 0; j < size; ++j)
    for (uint32_t i = 0; i < size; ++i) {
      const float u = (static_cast<float>(i) + 0.5f) * step, v = (static_cast<float>(j) + 0.5f) * step;
      const Point p = bricks(u, v);
      const float shade = hash(p.row + 17, p.brick),
                  is_brick = std::clamp((p.height - 0.35f) * 4, 0.0f, 1.0f);
      const float grain = 0.85f + 0.3f * noise(u, v, 64);
      const Vec3 clay = Vec3{0.50f, 0.17f, 0.10f} * (0.6f + 0.7f * shade), mortar{0.45f, 0.43f, 0.40f};
      const Vec3 color = (mortar * (1 - is_brick) + clay * is_brick) * grain;
      for (const float channel : {color.x, color.y, color.z, 0.15f + 0.6f * is_brick})
        result.color.texels.push_back(to_byte(channel));
      const float du = bricks(u + step, v).height - bricks(u - step, v).height;
      const float dv = bricks(u, v + step).height - bricks(u, v - step).height;
      const Vec3 n = normalize({-du * 2.5f, -dv * 2.5f, 1});
      for (const float channel : {n.x, n.y, n.z, 1.0f})
        result.normal.texels.push_back(to_byte(0.5f + 0.5f * channel));
    }
  return result;
}

Texture half_size(const Texture& texture) {
  Texture half{texture.size / 2, {}};
  const size_t row = size_t{4} * texture.size;
  for (uint32_t j = 0; j < half.size; ++j)
    for (uint32_t i = 0; i < half.size; ++i)
      for (uint32_t channel = 0; channel < 4; ++channel) {
        const uint8_t* const t = &texture.texels[row * 2 * j + size_t{8} * i + channel];
        half.texels.push_back(static_cast<uint8_t>((t[0] + t[4] + t[row] + t[row + 4] + 2) / 4));
      }
  return half;
}

}  // namespace samples
