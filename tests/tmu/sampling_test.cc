/// @file Level of detail, cube maps, comparison, gather, LOD query, anisotropy and border colours.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "gpu/base/float16.h"
#include "tests/tmu/test_texture.h"

namespace v3d::tmu {
namespace {

using enum chip::Generation;

constexpr uint32_t kR32F = 29, kD32F = 23, kD16 = 21, kRGBA8 = 4, kRGBA32F = 31;
constexpr uint32_t kGather = 0x00f00082, kLodQuery = 0x01f00000;

/// Lane i of quad q is pixel (i & 1, i >> 1 & 1) of the quad.
float pixel_x(int lane) { return static_cast<float>(lane & 1); }
float pixel_y(int lane) { return static_cast<float>((lane >> 1) & 1); }

class Sampling : public testing::Test {
 protected:
  float uniform(float low, float high) { return std::uniform_real_distribution<float>(low, high)(random_); }
  static float value(Lanes v, int lane) { return as_float(v)[lane]; }

  GpuMemory gpu_;
  std::minstd_rand random_{21};
};

/// A texture whose every level holds the number of the level (R32F cannot blend; RGBA8 holds level / 255).
void fill_with_levels(const GpuMemory& gpu, const TestTexture& texture, uint32_t levels,
                      uint32_t layers = 1) {
  for (uint32_t l = 0; l < levels; ++l)
    for (uint32_t z = 0; z < layers; ++z)
      for (uint32_t y = 0; y < texture.height(l); ++y)
        for (uint32_t x = 0; x < texture.width(l); ++x)
          gpu.memory().store<uint32_t>(texture.address(l, x, y, z), l);
}

TEST_F(Sampling, CountsWhatNoCodeIsGeneratedFor) {
  TestTexture texture(gpu_, {.type = kRGBA8, .width = 8, .height = 8, .layers = 6});
  texture.set_sampler({.wrap = {0, 0, 0}});
  Unit unit(gpu_.memory(), k71);
  const auto before = lookups_not_generated();
  Lanes out[4];
  const TextureLookup plain = texture.lookup(Launcher::kS, kT),
                      cube = texture.lookup(Launcher::kSCm, kT | kR),
                      moved = texture.lookup(Launcher::kS, kT | kOff);
  TextureLookup gather = plain;
  gather.p2 = kGather;
  for (int n = 0; n < 5; ++n) unit.texture(plain, out);
  for (int n = 0; n < 4; ++n) unit.texture(cube, out);
  for (int n = 0; n < 3; ++n) unit.texture(moved, out);
  for (int n = 0; n < 2; ++n) unit.texture(gather, out);
  EXPECT_EQ(lookups_not_generated(), before);
  unit.begin_job();
  auto expected = before;
  expected[static_cast<size_t>(NotGenerated::kOffsets)] += 3;
  expected[static_cast<size_t>(NotGenerated::kGather)] += 2;
  EXPECT_EQ(lookups_not_generated(), expected);
}

TEST_F(Sampling, AutomaticLodFromTheQuad) {
  TextureSpec spec{.type = kRGBA8, .width = 256, .height = 128, .max_level = 8};
  TestTexture texture(gpu_, spec);
  fill_with_levels(gpu_, texture, 9);
  for (double bias : {0.0, 0.75, -1.5}) {
    SamplerSpec sampler{.bias = bias};
    texture.set_sampler(sampler);
    Unit unit(gpu_.memory(), k71);
    for (int round = 0; round < 40; ++round) {
      TextureLookup lookup = texture.lookup(Launcher::kS, round % 2 ? kT | kB : kT);
      float dx[4][2], dy[4][2], b[4];  // per quad, texels
      for (int q = 0; q < 4; ++q) {
        b[q] = round % 2 ? uniform(-2, 2) : 0;
        for (int axis = 0; axis < 2; ++axis) {
          dx[q][axis] = uniform(-1, 1) * std::exp2(uniform(-2, 7));
          dy[q][axis] = uniform(-1, 1) * std::exp2(uniform(-2, 7));
        }
      }
      lookup.s = lanes_of(
          [&](int i) { return 0.3f + (dx[i / 4][0] * pixel_x(i) + dy[i / 4][0] * pixel_y(i)) / 256; });
      lookup.t = lanes_of(
          [&](int i) { return 0.3f + (dx[i / 4][1] * pixel_x(i) + dy[i / 4][1] * pixel_y(i)) / 128; });
      lookup.b = lanes_of([&](int i) { return b[i / 4]; });
      Lanes out[4];
      ASSERT_EQ(unit.texture(lookup, out), 4);
      for (int i = 0; i < kLanes; ++i) {
        const int q = i / 4;
        const double rho = std::max(std::hypot(dx[q][0], dx[q][1]), std::hypot(dy[q][0], dy[q][1]));
        const double lod = std::clamp(std::log2(rho) + b[q] + bias, 0.0, 8.0);
        EXPECT_NEAR(value(out[0], i) * 255, lod, 1.01 / 256) << "rho " << rho;
      }
    }
  }
}

TEST_F(Sampling, LodOfPowersOfTwoIsExact) {
  TextureSpec spec{.type = kRGBA8, .width = 256, .height = 256, .max_level = 8};
  TestTexture texture(gpu_, spec);
  fill_with_levels(gpu_, texture, 9);
  texture.set_sampler({});
  Unit unit(gpu_.memory(), k71);
  for (int exponent = -3; exponent <= 8; ++exponent) {
    TextureLookup lookup = texture.lookup(Launcher::kS, kT);
    lookup.s = lanes_of([&](int i) { return std::ldexp(pixel_x(i), exponent - 8); });
    lookup.t = lanes_of([&](int i) { return std::ldexp(pixel_y(i), exponent - 8); });
    Lanes out[4];
    unit.texture(lookup, out);
    for (int i = 0; i < kLanes; ++i)
      EXPECT_NEAR(value(out[0], i) * 255, std::max(exponent, 0), 1e-5) << exponent;
  }
}

TEST_F(Sampling, InactiveLanesOfALiveQuadGiveResultsUnlessMaskedPerPixel) {
  TestTexture texture(gpu_, {.type = kRGBA8});
  texture.fill_random(4);
  texture.set_sampler({});
  Unit unit(gpu_.memory(), k71);
  TextureLookup lookup = texture.lookup(Launcher::kS, kT);
  lookup.s = lanes_of([&](int) { return uniform(0, 1); });
  lookup.t = lanes_of([&](int) { return uniform(0, 1); });
  Lanes all[4], out[4];
  unit.texture(lookup, all);
  lookup.live = 0x0021;
  for (uint32_t per_pixel : {0u, 4u}) {
    lookup.p1 = (lookup.p1 & ~4u) | per_pixel;
    unit.texture(lookup, out);
    for (int i = 0; i < kLanes; ++i)
      EXPECT_EQ(out[1][i], (per_pixel ? 0x0021 : 0x00ff) >> i & 1 ? all[1][i] : 0);
  }
}

TEST_F(Sampling, LodQuery) {
  TextureSpec spec{.type = kRGBA8, .width = 64, .height = 64, .base_level = 1, .max_level = 5};
  TestTexture texture(gpu_, spec);
  for (bool mip_nearest : {false, true}) {
    texture.set_sampler({.mip_nearest = mip_nearest, .min_lod = 0.5, .max_lod = 3.25, .bias = 0.25});
    Unit unit(gpu_.memory(), k71);
    for (float texels : {0.0f, 0.1f, 1.5f, 6.0f, 500.0f}) {
      TextureLookup lookup = texture.lookup(Launcher::kS, kT);
      lookup.p2 = kLodQuery;
      lookup.s = lanes_of([&](int i) { return pixel_x(i) * texels / 32; });
      lookup.t = lanes_of([&](int i) { return pixel_y(i) * texels / 32; });
      Lanes out[4], narrow[4];
      ASSERT_EQ(unit.texture(lookup, out), 4);
      const double lod = texels == 0 ? -16 + 0.25 : std::log2(texels) + 0.25;
      const double level = std::clamp(lod, 0.5, 3.25);
      for (int i = 0; i < kLanes; ++i) {
        EXPECT_NEAR(value(out[1], i), lod, 0.005);
        EXPECT_NEAR(value(out[0], i), mip_nearest ? std::floor(level + 0.5) : level, 0.005);
      }
      lookup.p1 &= ~1u;
      lookup.p0 = (lookup.p0 & ~15u) | 1;
      ASSERT_EQ(unit.texture(lookup, narrow), 1);
      for (int i = 0; i < kLanes; ++i)
        EXPECT_EQ(narrow[0][i],
                  float_to_half(value(out[0], i)) | uint32_t{float_to_half(value(out[1], i))} << 16);
    }
  }
}

TEST_F(Sampling, GatherOrderComponentsAndWrap) {
  TextureSpec spec{.type = kRGBA8, .width = 7, .height = 5, .swizzle = {4, 3, 2, 1}};  // B, G, R, one
  TestTexture texture(gpu_, spec);
  texture.fill_random(1);
  SamplerSpec sampler{.mag_nearest = true, .min_nearest = true};
  sampler.wrap = {0, 1, 1};
  texture.set_sampler(sampler);
  Unit unit(gpu_.memory(), k71);
  for (uint32_t component = 0; component < 4; ++component)
    for (int round = 0; round < 10; ++round) {
      TextureLookup lookup = texture.lookup(Launcher::kS, kT);
      lookup.p2 = kGather | component << 5;
      lookup.s = lanes_of([&](int) { return uniform(-1, 2); });
      lookup.t = lanes_of([&](int) { return uniform(-1, 2); });
      Lanes out[4];
      ASSERT_EQ(unit.texture(lookup, out), 4);
      for (int i = 0; i < kLanes; ++i) {
        const float s = value(lookup.s, i) - std::floor(value(lookup.s, i)), t = value(lookup.t, i);
        const int i0 = static_cast<int>(std::floor(s * 7 * 256) - 128) >> 8;
        const int j0 = static_cast<int>(std::floor(t * 5 * 256) - 128) >> 8;
        for (int k = 0; k < 4; ++k) {
          const auto x = static_cast<uint32_t>((i0 + (k & 1) + 7) % 7);
          const auto y = static_cast<uint32_t>(std::clamp(j0 + (k >> 1), 0, 4));
          const uint32_t byte =
              gpu_.memory().load<uint8_t>(texture.address(0, x, y) + (2 - std::min(component, 2u)));
          ASSERT_EQ(value(out[k], i), component == 3 ? 1.0f : static_cast<float>(byte) / 255.0f) << component;
        }
      }
    }
}

double compare(uint32_t function, double reference, double texel) {
  const bool results[8] = {false, reference<texel, reference == texel, reference <= texel, reference> texel,
                           reference != texel, reference >= texel, true};
  return results[function];
}

TEST_F(Sampling, ShadowComparesEveryTexelAndFiltersTheResults) {
  for (uint32_t type : {kD16, kD32F}) {
    const uint32_t cpp = type == kD16 ? 2 : 4;
    for (uint32_t function = 0; function < 8; ++function)
      for (bool nearest : {false, true}) {
        TextureSpec spec{.type = type, .cpp = cpp, .width = 9, .height = 6, .swizzle = {2, 0, 0, 1}};
        TestTexture texture(gpu_, spec);
        const auto depth = [&](uint32_t x, uint32_t y) {
          return static_cast<double>((x * 7 + y * 3) % 5) / 4 * (type == kD32F ? 2 : 1);
        };
        for (uint32_t y = 0; y < 6; ++y)
          for (uint32_t x = 0; x < 9; ++x) {
            if (type == kD16)
              gpu_.memory().store(texture.address(0, x, y),
                                  static_cast<uint16_t>(std::lround(depth(x, y) * 65535)));
            else
              gpu_.memory().store(texture.address(0, x, y), static_cast<float>(depth(x, y)));
          }
        texture.set_sampler({.mag_nearest = nearest, .min_nearest = nearest, .compare = function});
        Unit unit(gpu_.memory(), k71);
        TextureLookup lookup = texture.lookup(Launcher::kS, kT | kDref);
        TextureLookup gather = lookup;
        gather.p2 = kGather;
        for (int round = 0; round < 6; ++round) {
          lookup.s = gather.s = lanes_of([&](int) { return uniform(0, 1); });
          lookup.t = gather.t = lanes_of([&](int) { return uniform(0, 1); });
          lookup.dref = gather.dref =
              lanes_of([&](int) { return static_cast<float>(static_cast<int>(uniform(-1, 8))) / 4; });
          Lanes out[4], four[4];
          ASSERT_EQ(unit.texture(lookup, out), 4);
          ASSERT_EQ(unit.texture(gather, four), 4);
          for (int i = 0; i < kLanes; ++i) {
            double reference = value(lookup.dref, i);
            if (type == kD16) reference = std::clamp(reference, 0.0, 1.0);
            const auto result = [&](int x, int y) {
              double d = depth(static_cast<uint32_t>(std::clamp(x, 0, 8)),
                               static_cast<uint32_t>(std::clamp(y, 0, 5)));
              if (type == kD16) d = static_cast<float>(static_cast<float>(std::lround(d * 65535)) / 65535.0f);
              return compare(function, reference, d);
            };
            const int u = static_cast<int>(std::floor(value(lookup.s, i) * 9 * 256)) - 128;
            const int v = static_cast<int>(std::floor(value(lookup.t, i) * 6 * 256)) - 128;
            const double wx = (u & 255) / 256.0, wy = (v & 255) / 256.0;
            const int x = u >> 8, y = v >> 8;
            for (int k = 0; k < 4; ++k) ASSERT_EQ(value(four[k], i), result(x + (k & 1), y + (k >> 1)));
            const double expected = nearest
                                        ? result((u + 128) >> 8, (v + 128) >> 8)
                                        : (result(x, y) * (1 - wx) + result(x + 1, y) * wx) * (1 - wy) +
                                              (result(x, y + 1) * (1 - wx) + result(x + 1, y + 1) * wx) * wy;
            ASSERT_NEAR(value(out[0], i), expected, 1e-6) << "function " << function;
            ASSERT_EQ(value(out[3], i), 1.0f);
          }
        }
      }
  }
}

TEST_F(Sampling, OfDepthAndWideFloatsLinearFiltersReturnTheFirstTexel) {
  struct Case {
    uint32_t type, cpp;
    bool nearest_filter, nearest_texel;
  };
  for (const Case& c : {Case{kD32F, 4, false, false},
                        {kR32F, 4, false, false},
                        {kR32F, 4, true, true},
                        {kRGBA32F, 16, false, true}}) {
    TextureSpec spec{.type = c.type, .cpp = c.cpp, .width = 8, .height = 8, .max_level = 3};
    TestTexture texture(gpu_, spec);
    for (uint32_t l = 0; l < 4; ++l)
      for (uint32_t y = 0; y < texture.height(l); ++y)
        for (uint32_t x = 0; x < texture.width(l); ++x)
          gpu_.memory().store(texture.address(l, x, y), static_cast<float>(100 * l + 10 * y + x));
    texture.set_sampler({.mag_nearest = c.nearest_filter, .min_nearest = c.nearest_filter});
    Unit unit(gpu_.memory(), k71);
    TextureLookup lookup = texture.lookup(Launcher::kSLod, kT | kB);
    lookup.s = lanes_of([&](int) { return uniform(0, 1); });
    lookup.t = lanes_of([&](int) { return uniform(0, 1); });
    lookup.b = lanes_of([&](int) { return uniform(0, 3); });
    Lanes out[4];
    unit.texture(lookup, out);
    for (int i = 0; i < kLanes; ++i) {
      const auto l = static_cast<uint32_t>(std::floor(std::floor(value(lookup.b, i) * 256) / 256 + 0.5));
      const auto texel = [&](float at) {
        return std::max(0.0f, std::floor(at * static_cast<float>(8 >> l) - (c.nearest_texel ? 0.0f : 0.5f)));
      };
      EXPECT_EQ(value(out[0], i),
                100.0f * static_cast<float>(l) + 10 * texel(value(lookup.t, i)) + texel(value(lookup.s, i)))
          << c.type;
    }
  }
}

/// Direction of point (s, t) in -1..1 of a face; written from the table of texture.md 4.4.
std::array<float, 3> direction(uint32_t face, float s, float t) {
  const std::array<std::array<float, 3>, 6> table = {
      {{1, -t, -s}, {-1, -t, s}, {s, 1, t}, {s, -1, -t}, {s, -t, 1}, {-s, -t, -1}}};
  return table[face];
}

TEST_F(Sampling, CubeFacesAndArrays) {
  TextureSpec spec{.type = kRGBA8, .width = 16, .height = 16, .layers = 18, .depth_field = 3};
  TestTexture texture(gpu_, spec);
  texture.fill_random(2);
  texture.set_sampler({.mag_nearest = true, .min_nearest = true});
  Unit unit(gpu_.memory(), k71);
  for (bool array : {false, true})
    for (int round = 0; round < 40; ++round) {
      TextureLookup lookup = texture.lookup(Launcher::kSCm, static_cast<uint8_t>(kT | kR | (array ? kI : 0)));
      uint32_t face[16], x[16], y[16], cube[16];
      for (int i = 0; i < kLanes; ++i) {
        face[i] = static_cast<uint32_t>(random_()) % 6;
        x[i] = static_cast<uint32_t>(random_()) % 16;
        y[i] = static_cast<uint32_t>(random_()) % 16;
        const auto d = direction(face[i], (static_cast<float>(x[i]) + 0.5f) / 8 - 1,
                                 (static_cast<float>(y[i]) + 0.5f) / 8 - 1);
        const float length = round % 2 ? uniform(0.1f, 40) : 1;
        lookup.s[i] = std::bit_cast<uint32_t>(d[0] * length);
        lookup.t[i] = std::bit_cast<uint32_t>(d[1] * length);
        lookup.r[i] = std::bit_cast<uint32_t>(d[2] * length);
        const float index = uniform(-1, 4);
        lookup.i[i] = std::bit_cast<uint32_t>(index);
        cube[i] = array ? static_cast<uint32_t>(std::clamp(std::floor(index + 0.5f), 0.0f, 2.0f)) : 0;
      }
      Lanes out[4];
      ASSERT_EQ(unit.texture(lookup, out), 4);
      for (int i = 0; i < kLanes; ++i)
        for (uint32_t c = 0; c < 4; ++c) {
          const uint32_t byte =
              gpu_.memory().load<uint8_t>(texture.address(0, x[i], y[i], cube[i] * 6 + face[i]) + c);
          ASSERT_EQ(value(out[c], i), static_cast<float>(byte) / 255.0f) << "face " << face[i];
        }
    }
}

TEST_F(Sampling, CubesAreSeamless) {
  // A colour that varies smoothly over the sphere must vary smoothly across edges and corners.
  for (uint32_t type : {kRGBA8, 18u}) {
    constexpr uint32_t kSize = 32;
    TextureSpec spec{
        .type = type, .cpp = type == kRGBA8 ? 4u : 8u, .width = kSize, .height = kSize, .layers = 6};
    TestTexture texture(gpu_, spec);
    const auto color = [](std::array<float, 3> d, size_t c) {
      const float length = std::sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
      return 0.5f + 0.5f * d[c] / length;
    };
    for (uint32_t face = 0; face < 6; ++face)
      for (uint32_t y = 0; y < kSize; ++y)
        for (uint32_t x = 0; x < kSize; ++x) {
          const auto d = direction(face, (2 * static_cast<float>(x) + 1) / kSize - 1,
                                   (2 * static_cast<float>(y) + 1) / kSize - 1);
          for (uint32_t c = 0; c < 3; ++c) {
            if (type == kRGBA8)
              gpu_.memory().store(texture.address(0, x, y, face) + c,
                                  static_cast<uint8_t>(std::lround(color(d, c) * 255)));
            else
              gpu_.memory().store(texture.address(0, x, y, face) + 2 * c, float_to_half(color(d, c)));
          }
        }
    texture.set_sampler({});
    Unit unit(gpu_.memory(), k71);
    TextureLookup lookup = texture.lookup(Launcher::kSCm, kT | kR);
    lookup.p2 = 0x00f00002;
    for (int round = 0; round < 200; ++round) {
      std::array<float, 3> d[16];
      for (int i = 0; i < kLanes; ++i) {
        // Mostly close to an edge or a corner.
        const auto near_edge = [&] {
          return round % 3 ? (uniform(0, 1) < 0.5f ? -1.0f : 1.0f) * uniform(0.95f, 1) : uniform(-1, 1);
        };
        d[i] = direction(static_cast<uint32_t>(random_()) % 6, near_edge(),
                         uniform(0, 1) < 0.5f ? near_edge() : uniform(-1, 1));
        lookup.s[i] = std::bit_cast<uint32_t>(d[i][0]);
        lookup.t[i] = std::bit_cast<uint32_t>(d[i][1]);
        lookup.r[i] = std::bit_cast<uint32_t>(d[i][2]);
      }
      Lanes out[4];
      unit.texture(lookup, out);
      for (int i = 0; i < kLanes; ++i)
        for (size_t c = 0; c < 3; ++c)
          ASSERT_NEAR(value(out[c], i), color(d[i], c), 0.015) << d[i][0] << " " << d[i][1] << " " << d[i][2];
    }
  }
  EXPECT_EQ(gpu_.take_faults(), 0u);
}

/// What other lanes look up does not matter, even where they find texels of other faces.
TEST_F(Sampling, CubeLookupsOfALaneAreItsOwn) {
  TextureSpec spec{.type = kRGBA8, .width = 8, .height = 8, .layers = 6, .depth_field = 6};
  TestTexture texture(gpu_, spec);
  texture.fill_random(3);
  texture.set_sampler({});
  Unit unit(gpu_.memory(), k71);
  TextureLookup lookup = texture.lookup(Launcher::kSCm, kT | kR);
  lookup.p2 = 0x00f00002;
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < kLanes; ++i) {
      const auto d = direction(static_cast<uint32_t>(random_()) % 6, uniform(-1, 1), uniform(-1, 1));
      lookup.s[i] = std::bit_cast<uint32_t>(d[0]);
      lookup.t[i] = std::bit_cast<uint32_t>(d[1]);
      lookup.r[i] = std::bit_cast<uint32_t>(d[2]);
    }
    Lanes all[4], one[4];
    unit.texture(lookup, all);
    for (int i = 0; i < kLanes; ++i) {
      TextureLookup alone = lookup;
      alone.s = splat(lookup.s[i]);
      alone.t = splat(lookup.t[i]);
      alone.r = splat(lookup.r[i]);
      unit.texture(alone, one);
      for (int c = 0; c < 4; ++c) ASSERT_EQ(all[c][i], one[c][i]) << "lane " << i;
    }
  }
}

TEST_F(Sampling, CubeLodHasNoJumpAtEdges) {
  TextureSpec spec{.type = kRGBA8, .width = 64, .height = 64, .max_level = 6, .layers = 6};
  TestTexture texture(gpu_, spec);
  fill_with_levels(gpu_, texture, 7, 6);
  texture.set_sampler({});
  Unit unit(gpu_.memory(), k71);
  TextureLookup lookup = texture.lookup(Launcher::kSCm, kT | kR);
  // Quads that straddle the edge between +Z and +X, two texels of +Z apart.
  lookup.s =
      lanes_of([](int i) { return 0.99f + pixel_x(i) * 0.0625f > 1 ? 1.0f : 0.99f + pixel_x(i) * 0.0625f; });
  lookup.t = lanes_of([](int i) { return pixel_y(i) * 0.0625f; });
  lookup.r = lanes_of([](int i) { return 0.99f + pixel_x(i) * 0.0625f > 1 ? 1 / (0.99f + 0.0625f) : 1.0f; });
  Lanes out[4];
  unit.texture(lookup, out);
  for (int i = 0; i < kLanes; ++i) EXPECT_NEAR(value(out[0], i) * 255, 1.0, 0.15);
}

/// Quads that reach beyond a face, as points of the cube: the directions lie `step` apart on the plane of +Z.
TEST_F(Sampling, CubeLodBeyondTheFace) {
  TextureSpec spec{.type = kRGBA8, .width = 32, .height = 32, .max_level = 5, .layers = 6};
  TestTexture texture(gpu_, spec);
  fill_with_levels(gpu_, texture, 6, 6);
  texture.set_sampler({.mip_nearest = true});
  Unit unit(gpu_.memory(), k71);
  const auto expect_level = [&](float first, float step, double level) {
    const auto s = [&](int i) { return first + pixel_x(i) * step; };
    const auto t = [&](int i) { return first + pixel_y(i) * step; };
    const auto major = [&](int i) { return std::max({1.0f, std::abs(s(i)), std::abs(t(i))}); };
    TextureLookup lookup = texture.lookup(Launcher::kSCm, kT | kR);
    lookup.s = lanes_of([&](int i) { return s(i) / major(i); });
    lookup.t = lanes_of([&](int i) { return t(i) / major(i); });
    lookup.r = lanes_of([&](int i) { return 1 / major(i); });
    Lanes out[4];
    unit.texture(lookup, out);
    for (int i = 0; i < kLanes; ++i)
      EXPECT_NEAR(value(out[0], i) * 255, level, 1e-3) << first << " lane " << i;
  };
  constexpr float kTexel = 2.0f / 32;
  expect_level(-1 - kTexel / 2, kTexel, 0);  // only the last pixel on the face
  expect_level(0.5f, 16 * kTexel, 4);        // only the first one
}

TEST_F(Sampling, AnisotropyKeepsDetailAcrossTheFootprint) {
  // Stripes along T, squeezed in S: an isotropic lookup blurs them away, an anisotropic one keeps them.
  TextureSpec spec{.type = kRGBA8, .width = 64, .height = 64, .max_level = 6};
  TestTexture texture(gpu_, spec);
  for (uint32_t l = 0; l < 7; ++l)
    for (uint32_t y = 0; y < texture.height(l); ++y)
      for (uint32_t x = 0; x < texture.width(l); ++x)
        gpu_.memory().store<uint32_t>(texture.address(l, x, y),
                                      l == 0 ? (y / 2 % 2 ? 0xffffffff : 0) : 0x80808080);
  for (bool nearest : {false, true}) {
    float contrast[2];
    for (bool anisotropic : {false, true}) {
      texture.set_sampler({.min_nearest = nearest, .anisotropy = anisotropic, .max_anisotropy = 3});
      Unit unit(gpu_.memory(), k71);
      TextureLookup lookup = texture.lookup(Launcher::kS, kT);
      lookup.s = lanes_of([](int i) { return 0.5f + pixel_x(i) * 8 / 64; });
      lookup.t = lanes_of([](int i) { return (static_cast<float>(i >> 2 << 1) + 1.0f + pixel_y(i)) / 64; });
      Lanes out[4];
      unit.texture(lookup, out);
      contrast[anisotropic] = 0;
      for (int i = 4; i < kLanes; ++i)
        contrast[anisotropic] += std::abs(value(out[0], i) - value(out[0], i - 4));
      for (int i = 0; i < kLanes; ++i) EXPECT_GE(value(out[3], i), 0.0f);
    }
    EXPECT_LT(contrast[0], 0.01f);
    EXPECT_GT(contrast[1], 5.0f);
  }
}

TEST_F(Sampling, BorderColorsOfBothChips) {
  struct Case {
    uint32_t type, cpp;
    chip::Generation generation;
    bool wide;
    uint32_t mode;
    std::array<uint32_t, 4> words;
    std::array<float, 4> expected;
    bool reverse = false, rb_swap = false, reverse_border = false;
  };
  const uint32_t half = 0x3800, one_half = 0x3c00, one = 0x3f800000;
  const Case cases[] = {
      {kRGBA8, 4, k71, true, 0, {}, {0, 0, 0, 0}},
      {kRGBA8, 4, k71, true, 1, {}, {0, 0, 0, 1}},
      {kRGBA8, 4, k71, true, 2, {}, {1, 1, 1, 1}},
      {kRGBA8, 4, k71, true, 7, {one, 0x3e800000, 0, 0xc0000000}, {1, 0.25f, 0, -2}},
      // 7.1: custom colours are in API order, after reverse and exchange.
      {kRGBA8, 4, k71, true, 7, {one, 0x3e800000, 0, 0}, {1, 0.25f, 0, 0}, true, true},
      {kRGBA8, 4, k71, true, 1, {}, {0, 0, 0, 1}, true, false},
      {kRGBA8, 4, k42, true, 7, {65535, 0x8000, 0, 65535}, {1, 32768 / 65535.0f, 0, 1}},
      {kRGBA8, 4, k42, false, 7, {one_half, half, 0, one_half}, {1, 0.5f, 0, 1}},
      {5, 4, k42, true, 7, {0x3fff, 0xc001, 0, 0x3fff}, {1, -1, 0, 1}},
      {15, 8, k42, true, 7, {0x7fff, 0x8001, 0, 0x7fff}, {1, -1, 0, 1}},
      {18, 8, k42, true, 7, {one_half, half, 0, one_half}, {1, 0.5f, 0, 1}},
      {kR32F, 4, k42, true, 7, {one, 0, 0, one}, {1, 0, 0, 1}},
      {kRGBA8, 4, k42, true, 1, {}, {1, 0, 0, 0}, false, false, true},
  };
  for (const Case& k : cases) {
    TextureSpec spec{.type = k.type, .cpp = k.cpp, .reverse = k.reverse, .rb_swap = k.rb_swap};
    spec.reverse_border = k.reverse_border;
    spec.generation = k.generation;
    TestTexture texture(gpu_, spec);
    texture.fill_random(1);
    SamplerSpec sampler;
    sampler.wrap = {3, 3, 3};
    sampler.border_mode = k.mode;
    sampler.border = k.words;
    texture.set_sampler(sampler);
    Unit unit(gpu_.memory(), k.generation);
    TextureLookup lookup = texture.lookup(Launcher::kS, kT);
    if (!k.wide) lookup.p1 &= ~1u;
    lookup.s = lanes_of([](int) { return 2.5f; });
    lookup.t = lanes_of([](int) { return 0.5f; });
    Lanes out[4];
    unit.texture(lookup, out);
    for (size_t c = 0; c < 4; ++c)
      for (int i = 0; i < kLanes; ++i) {
        const float v =
            k.wide ? value(out[c], i) : half_to_float(static_cast<uint16_t>(out[c / 2][i] >> (16 * (c & 1))));
        EXPECT_EQ(v, k.expected[c]) << "type " << k.type << " generation " << version_text(k.generation)
                                    << " channel " << c;
      }
  }
  // Integer formats: raw integers, and integer one.
  for (uint32_t mode : {1u, 7u}) {
    TestTexture texture(gpu_, {.type = 101});
    SamplerSpec sampler{.mag_nearest = true, .min_nearest = true};
    sampler.wrap = {3, 3, 3};
    sampler.border_mode = mode;
    sampler.border = {7, 8, 9, 200};
    texture.set_sampler(sampler);
    Unit unit(gpu_.memory(), k71);
    TextureLookup lookup = texture.lookup(Launcher::kS, kT);
    lookup.s = lookup.t = lanes_of([](int) { return -1.0f; });
    Lanes out[4];
    unit.texture(lookup, out);
    EXPECT_EQ(out[0][3], mode == 7 ? 7u : 0u);
    EXPECT_EQ(out[3][3], mode == 7 ? 200u : 1u);
  }
}

TEST_F(Sampling, UnnormalizedCoordinates) {
  TextureSpec spec{.type = kRGBA8, .width = 20, .height = 10, .max_level = 3};
  TestTexture texture(gpu_, spec);
  texture.fill_random(1);
  texture.set_sampler({.mag_nearest = true, .min_nearest = true});
  Unit unit(gpu_.memory(), k71);
  TextureLookup lookup = texture.lookup(Launcher::kS, kT);
  lookup.p1 |= 2;
  lookup.s = lanes_of([](int i) { return static_cast<float>(i) * 1.5f + 0.25f; });
  lookup.t = lanes_of([](int i) { return static_cast<float>(i) * 0.75f; });
  Lanes out[4];
  unit.texture(lookup, out);
  for (int i = 0; i < kLanes; ++i) {
    const auto x = static_cast<uint32_t>(std::min(19.0f, std::floor(value(lookup.s, i))));
    const auto y = static_cast<uint32_t>(std::min(9.0f, std::floor(value(lookup.t, i))));
    EXPECT_EQ(value(out[0], i),
              static_cast<float>(gpu_.memory().load<uint8_t>(texture.address(0, x, y))) / 255.0f);
  }
}

TEST_F(Sampling, InfiniteTexelsOfWeightZeroTakeNoPart) {
  TextureSpec spec{.type = 16, .cpp = 2, .width = 4, .height = 4};  // R16F
  TestTexture texture(gpu_, spec);
  for (uint32_t y = 0; y < 4; ++y)
    for (uint32_t x = 0; x < 4; ++x)
      gpu_.memory().store(texture.address(0, x, y), static_cast<uint16_t>(x == 2 ? 0x7c00 : 0x3c00));
  texture.set_sampler({});
  Unit unit(gpu_.memory(), k71);
  TextureLookup lookup = texture.lookup(Launcher::kS, kT);
  lookup.s = lanes_of([](int) { return 1.5f / 4; });
  lookup.t = lanes_of([](int) { return 0.4f; });
  Lanes out[4];
  unit.texture(lookup, out);
  EXPECT_EQ(value(out[0], 5), 1.0f);
}

TEST_F(Sampling, LayersThatDoNotExistHaveTheBorderColorWhereTheSamplerSaysSo) {
  TextureSpec spec{.type = kRGBA8, .width = 16, .height = 16, .layers = 3};
  TestTexture texture(gpu_, spec);
  texture.fill_random(1);
  TextureLookup lookup = texture.lookup(Launcher::kS, kT | kI);
  lookup.s = lookup.t = Lanes{};
  lookup.i = lanes_of([](int i) { return static_cast<float>(i) * 0.5f - 2; });
  Lanes clamped[4], out[4];
  texture.set_sampler({.border_mode = 2});
  ASSERT_EQ(Unit(gpu_.memory(), k71).texture(lookup, clamped), 4);
  texture.set_sampler({.layer_border = true, .border_mode = 2});
  ASSERT_EQ(Unit(gpu_.memory(), k71).texture(lookup, out), 4);
  for (int i = 0; i < kLanes; ++i) {
    const float layer = std::floor(static_cast<float>(i) * 0.5f - 1.5f);
    EXPECT_NEAR(value(out[0], i), layer < 0 || layer > 2 ? 1.0f : value(clamped[0], i), 1e-6) << layer;
  }
}

}  // namespace
}  // namespace v3d::tmu
