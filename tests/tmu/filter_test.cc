/// @file Filtered lookups of RGBA8 textures against a double-precision statement of texture.md 13.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "tests/tmu/test_texture.h"

namespace v3d::tmu {
namespace {

constexpr int kRepeat = 0, kClamp = 1, kMirror = 2, kBorder = 3, kMirrorOnce = 4;

/// RGBA8 in double precision.
class Reference {
 public:
  Reference(const GpuMemory& gpu, const TestTexture& texture, const SamplerSpec& sampler, int dims)
      : gpu_(gpu), texture_(texture), sampler_(sampler), dims_(dims) {}

  std::array<double, 4> texel(uint32_t l, const std::array<int64_t, 3>& at, uint32_t layer) const {
    const uint32_t size[3] = {texture_.width(l), texture_.height(l), texture_.depth(l)};
    uint32_t index[3] = {0, 0, layer};
    for (int axis = 0; axis < dims_; ++axis) {
      const size_t a = static_cast<size_t>(axis);
      const int64_t n = size[a];
      int64_t i = at[a];
      switch (sampler_.wrap[a]) {
        case kRepeat:
          i = ((i % n) + n) % n;
          break;
        case kMirror:
          i = ((i % (2 * n)) + 2 * n) % (2 * n);
          if (i >= n) i = 2 * n - 1 - i;
          break;
        case kBorder:
          if (i < 0 || i >= n) return border();
          break;
        case kMirrorOnce:
          if (i < 0) i = -1 - i;
          i = std::min(i, n - 1);
          break;
        default:
          i = std::clamp<int64_t>(i, 0, n - 1);
      }
      index[a] = static_cast<uint32_t>(i);
    }
    std::array<double, 4> result;
    for (uint32_t c = 0; c < 4; ++c)
      result[c] = gpu_.memory().load<uint8_t>(texture_.address(l, index[0], index[1], index[2]) + c) / 255.0;
    return result;
  }

  std::array<double, 4> border() const {
    std::array<double, 4> result = {};
    for (size_t c = 0; c < 4; ++c)
      result[c] = sampler_.border_mode == 7   ? std::bit_cast<float>(sampler_.border[c])
                  : sampler_.border_mode == 2 ? 1.0
                  : sampler_.border_mode == 1 ? (c == 3)
                                              : 0.0;
    return result;
  }

  std::array<double, 4> level(uint32_t l, const std::array<float, 3>& s, bool nearest,
                              const std::array<int, 3>& offset, uint32_t layer) const {
    const uint32_t size[3] = {texture_.width(l), texture_.height(l), texture_.depth(l)};
    std::array<int64_t, 3> i = {};
    double w[3] = {};
    for (size_t a = 0; a < static_cast<size_t>(dims_); ++a) {
      float v = s[a];
      if (sampler_.wrap[a] == kRepeat) v -= std::floor(v);
      if (sampler_.wrap[a] == kMirror) v -= 2 * std::floor(v / 2);
      const auto u =
          static_cast<int64_t>(std::floor(v * static_cast<float>(size[a]) * 256.0f)) - (nearest ? 0 : 128);
      i[a] = (u >> 8) + offset[a];
      w[a] = nearest ? 0 : static_cast<double>(u & 255) / 256;
    }
    std::array<double, 4> sum = {};
    for (int k = 0; k < 1 << dims_; ++k) {
      double weight = 1;
      std::array<int64_t, 3> at = i;
      for (size_t a = 0; a < static_cast<size_t>(dims_); ++a) {
        const bool second = (k >> a) & 1;
        weight *= second ? w[a] : 1 - w[a];
        at[a] += second;
      }
      if (weight == 0) continue;
      const auto t = texel(l, at, layer);
      for (size_t c = 0; c < 4; ++c) sum[c] += weight * t[c];
    }
    return sum;
  }

  /// @param lod  before the sampler's limits
  std::array<double, 4> sample(const std::array<float, 3>& s, double lod, uint32_t base, uint32_t last,
                               const std::array<int, 3>& offset, uint32_t layer) const {
    const double fixed = std::clamp(std::floor((lod + sampler_.bias) * 256), sampler_.min_lod * 256,
                                    std::floor(sampler_.max_lod * 256));
    const bool nearest = fixed <= 0 ? sampler_.mag_nearest : sampler_.min_nearest;
    const auto positive = static_cast<uint32_t>(std::max(fixed, 0.0));
    if (sampler_.mip_nearest)
      return level(std::min(base + ((positive + 128) >> 8), last), s, nearest, offset, layer);
    const uint32_t l = std::min(base + (positive >> 8), last);
    const auto a = level(l, s, nearest, offset, layer);
    if (l == last || (positive & 255) == 0) return a;
    const auto b = level(l + 1, s, nearest, offset, layer);
    std::array<double, 4> mix;
    const double w = (positive & 255) / 256.0;
    for (size_t c = 0; c < 4; ++c) mix[c] = a[c] * (1 - w) + b[c] * w;
    return mix;
  }

 private:
  const GpuMemory& gpu_;
  const TestTexture& texture_;
  SamplerSpec sampler_;
  int dims_;
};

class Filter : public testing::Test {
 protected:
  /// Explicit-LOD lookups at random coordinates against the reference.
  void check(const TextureSpec& spec, const SamplerSpec& sampler, int dims, int rounds, float spread,
             uint32_t p2 = kDefaultP2) {
    TestTexture texture(gpu_, spec);
    texture.fill_random(spec.width * 31 + spec.height);
    texture.set_sampler(sampler);
    Unit unit(gpu_.memory(), spec.generation);
    const Reference reference(gpu_, texture, sampler, dims);
    const bool array = spec.layers > 1;
    TextureLookup lookup = texture.lookup(
        Launcher::kSLod,
        static_cast<uint8_t>(kB | (dims > 1 ? kT : 0) | (dims > 2 ? kR : 0) | (array ? kI : 0)));
    lookup.p2 = p2;
    const auto nibble = [&](int shift) { return static_cast<int32_t>(p2 << (28 - shift)) >> 28; };
    const std::array<int, 3> offset = {nibble(8), nibble(12), nibble(16)};
    std::uniform_real_distribution<float> coordinate(-spread, 1 + spread),
        lod(-1.5f, static_cast<float>(spec.max_level) + 1.5f), layer(-1, static_cast<float>(spec.layers));
    for (int round = 0; round < rounds; ++round) {
      const auto random = [&](auto& distribution) {
        return lanes_of([&](int) { return distribution(random_); });
      };
      lookup.s = random(coordinate);
      lookup.t = random(coordinate);
      lookup.r = random(coordinate);
      lookup.b = random(lod);
      lookup.i = random(layer);
      Lanes out[4];
      ASSERT_EQ(unit.texture(lookup, out), 4);
      for (int i = 0; i < kLanes; ++i) {
        const auto f = [i](Lanes v) { return as_float(v)[i]; };
        const auto l = static_cast<uint32_t>(
            std::clamp(std::floor(f(lookup.i) + 0.5f), 0.0f, static_cast<float>(spec.layers - 1)));
        const auto expected = reference.sample({f(lookup.s), f(lookup.t), f(lookup.r)}, f(lookup.b),
                                               spec.base_level, spec.max_level, offset, array ? l : 0);
        for (size_t c = 0; c < 4; ++c)
          ASSERT_NEAR(f(out[c]), expected[c], 2e-6)
              << spec.width << "x" << spec.height << " lane " << i << " channel " << c << " at "
              << f(lookup.s) << "," << f(lookup.t) << "," << f(lookup.r) << " lod " << f(lookup.b);
      }
    }
    EXPECT_EQ(gpu_.take_faults(), 0u);
  }

  GpuMemory gpu_;
  std::minstd_rand random_{7};
};

TEST_F(Filter, EveryLayoutBilinearAndTrilinear) {
  const std::pair<uint32_t, uint32_t> sizes[] = {{1, 1},    {3, 2},     {4, 40},    {40, 4},   {8, 8},
                                                 {9, 9},    {16, 16},   {17, 33},   {33, 17},  {64, 64},
                                                 {100, 37}, {257, 129}, {128, 256}, {300, 300}};
  for (const auto& [width, height] : sizes) {
    TextureSpec spec{.width = width, .height = height};
    spec.max_level = std::bit_width(std::max(width, height)) - 1u;
    check(spec, {}, 2, 12, 0.2f);
    check(spec, {.mip_nearest = true}, 2, 4, 0.2f);
    check(spec, {.mag_nearest = true}, 2, 4, 0.2f);
    check(spec, {.min_nearest = true}, 2, 4, 0.2f);
    check(spec, {.mag_nearest = true, .min_nearest = true, .mip_nearest = true}, 2, 4, 0.2f);
  }
}

TEST_F(Filter, WrapModes) {
  for (uint32_t s : {kRepeat, kClamp, kMirror, kBorder, kMirrorOnce})
    for (uint32_t t : {kRepeat, kClamp, kMirror, kBorder, kMirrorOnce})
      for (uint32_t size : {1u, 2u, 5u, 16u}) {
        TextureSpec spec{.width = size, .height = size + 2, .max_level = 1};
        SamplerSpec sampler;
        sampler.wrap = {s, t, 1};
        sampler.border_mode = 7;
        sampler.border = {0x3f000000, 0x40000000, 0xbf800000, 0x3e800000};
        check(spec, sampler, 2, 3, 3.5f);
        sampler.mag_nearest = sampler.min_nearest = true;
        sampler.border_mode = 1;
        check(spec, sampler, 2, 3, 3.5f);
        check(spec, sampler, 2, 3, 3.5f, 0x00f0f900);  // offset -7, -1
        sampler.mag_nearest = false;
        sampler.border_mode = 2;
        check(spec, sampler, 2, 3, 3.5f, 0x00f07800);  // offset -8, 7
      }
}

TEST_F(Filter, BaseLevelAndLodLimits) {
  TextureSpec spec{.width = 64, .height = 32, .base_level = 2, .max_level = 4};
  check(spec, {}, 2, 8, 0.1f);
  check(spec, {.min_lod = 0.75, .max_lod = 1.5, .bias = -0.5}, 2, 8, 0.1f);
  check(spec, {.min_nearest = true, .mip_nearest = true, .min_lod = 0.00390625, .max_lod = 0.00390625}, 2, 8,
        0.1f);
}

TEST_F(Filter, OneDimensionalTexturesAreRaster) {
  TextureSpec spec{.width = 100, .height = 1, .max_level = 6, .layers = 3, .raster = true};
  check(spec, {}, 1, 20, 0.3f);
  SamplerSpec sampler;
  sampler.wrap = {kRepeat, 0, 0};
  check(spec, sampler, 1, 20, 2.0f);
}

TEST_F(Filter, Arrays) {
  TextureSpec spec{.width = 20, .height = 12, .max_level = 4, .layers = 5};
  check(spec, {}, 2, 20, 0.3f);
}

TEST_F(Filter, ThreeDimensions) {
  TextureSpec spec{.width = 17, .height = 5, .depth = 9, .max_level = 4, .three_d = true};
  check(spec, {}, 3, 20, 0.3f);
  SamplerSpec sampler;
  sampler.wrap = {kRepeat, kMirror, kBorder};
  sampler.border_mode = 2;
  check(spec, sampler, 3, 20, 1.5f);
}

TEST_F(Filter, StrictlyUifWinsOverTheSizeRule) {
  check({.width = 12, .height = 12, .strictly_uif = true}, {}, 2, 10, 0.1f);
  check({.width = 12, .height = 12, .strictly_uif = true, .generation = chip::Generation::k42}, {}, 2, 10,
        0.1f);
}

}  // namespace
}  // namespace v3d::tmu
