/// @file Flipped axes, exchanged S and T, 1D compressed textures.
#include <gtest/gtest.h>

#include <utility>

#include "tests/tmu/test_texture.h"

namespace v3d::tmu {
namespace {

class Flip : public testing::Test {
 protected:
  float uniform(float low, float high) { return std::uniform_real_distribution<float>(low, high)(random_); }
  Lanes uniform_lanes(float low, float high) {
    return lanes_of([&](int) { return uniform(low, high); });
  }
  GpuMemory gpu_, mirrored_gpu_;
  std::minstd_rand random_{4};
};

struct Shape {
  TextureSpec spec;
  Launcher launcher;
  uint8_t written;
  uint32_t p2 = kDefaultP2;
};

constexpr uint32_t kGather = 0x00f00082, kOffsets = 0x00f02f00;  // S -1, T 2
const Shape kShapes[] = {
    {{.type = 4, .width = 33, .height = 20, .max_level = 4}, Launcher::kS, kT},
    {{.type = 4, .width = 33, .height = 20, .max_level = 4}, Launcher::kSLod, kT | kB, kOffsets},
    {{.type = 0, .cpp = 1, .width = 17, .height = 5}, Launcher::kS, kT},
    {{.type = 4, .width = 33, .height = 20}, Launcher::kS, kT, kGather},
    {{.type = 4, .width = 12, .height = 10, .depth = 6, .max_level = 2, .three_d = true},
     Launcher::kS,
     kT | kR},
    {{.type = 4, .width = 16, .height = 16, .layers = 6, .depth_field = 1}, Launcher::kSCm, kT | kR},
    {{.type = 4, .width = 40, .height = 1, .raster = true}, Launcher::kS, 0},
    {{.type = 14, .cpp = 8, .width = 20, .height = 20, .layers = 3}, Launcher::kS, kT | kI},
};

/// A texture with flipped axes reads like one whose texels are stored in the opposite order.
TEST_F(Flip, IsTheTextureStoredInTheOppositeOrder) {
  for (const Shape& shape : kShapes)
    for (uint32_t flips = 1; flips < 4; ++flips)
      for (uint32_t wrap = 0; wrap < 5; ++wrap) {
        TextureSpec spec = shape.spec;
        const TestTexture plain(mirrored_gpu_, spec);
        spec.flip_x = flips & 1;
        spec.flip_y = flips & 2;
        TestTexture texture(gpu_, spec);
        texture.fill_random(flips);
        for (uint32_t l = 0; l <= spec.max_level; ++l)
          for (uint32_t z = 0; z < (spec.three_d ? texture.depth(l) : spec.layers); ++z)
            for (uint32_t y = 0; y < texture.height(l); ++y)
              for (uint32_t x = 0; x < texture.width(l); ++x) {
                uint8_t texel[16];
                gpu_.memory().read(texture.address(l, x, y, z), texel, spec.cpp);
                mirrored_gpu_.memory().write(plain.address(l, spec.flip_x ? texture.width(l) - 1 - x : x,
                                                           spec.flip_y ? texture.height(l) - 1 - y : y, z),
                                             texel, spec.cpp);
              }
        const SamplerSpec sampler{.wrap = {wrap, wrap, wrap}, .border_mode = 2};
        texture.set_sampler(sampler);
        TestTexture(mirrored_gpu_, shape.spec).set_sampler(sampler);
        TextureLookup lookup = texture.lookup(shape.launcher, shape.written);
        lookup.p2 = shape.p2;
        for (int round = 0; round < 4; ++round) {
          lookup.s = uniform_lanes(-1.5f, 1.5f);
          lookup.t = uniform_lanes(-1.5f, 1.5f);
          lookup.r = uniform_lanes(-1, 1);
          lookup.i = uniform_lanes(0, 2);
          lookup.b = uniform_lanes(0, 4);
          Lanes out[4], expected[4];
          ASSERT_EQ(Unit(gpu_.memory(), chip::Generation::k71).texture(lookup, out), 4);
          ASSERT_EQ(Unit(mirrored_gpu_.memory(), chip::Generation::k71).texture(lookup, expected), 4);
          for (int c = 0; c < 4; ++c)
            for (int i = 0; i < kLanes; ++i)
              ASSERT_NEAR(as_float(out[c])[i], as_float(expected[c])[i], 1e-6)
                  << "shape " << &shape - kShapes << " flips " << flips;
        }
      }
}

TEST_F(Flip, TurnsFetchesAndStoresToo) {
  TextureSpec spec{.type = 109, .width = 19, .height = 11, .max_level = 2, .flip_x = true, .flip_y = true};
  TestTexture texture(gpu_, spec);
  texture.fill_random(1);
  TextureLookup lookup = texture.lookup(Launcher::kSF, kT | kB);
  lookup.s = kLaneIndex;
  lookup.t = Lanes{} + 3u;
  lookup.b = Lanes{} + 1u;
  Lanes out[4];
  ASSERT_EQ(Unit(gpu_.memory(), chip::Generation::k71).texture(lookup, out), 4);
  for (uint32_t i = 0; i < kLanes; ++i)
    EXPECT_EQ(out[0][i], i < 9 ? gpu_.memory().load<uint32_t>(texture.address(1, 8 - i, 1)) : 0) << i;
  lookup.p0 &= ~15u;
  lookup.p1 = 5;
  lookup.num_data = 1;
  lookup.data[0] = kLaneIndex + 100u;
  ASSERT_EQ(Unit(gpu_.memory(), chip::Generation::k71).texture(lookup, out), 0);
  for (uint32_t i = 0; i < 9; ++i)
    EXPECT_EQ(gpu_.memory().load<uint32_t>(texture.address(1, 8 - i, 1)), 100 + i);
}

TEST_F(Flip, TurnsCompressedTexels) {
  TextureSpec spec{.type = 48, .cpp = 8, .width = 22, .height = 18, .block_width = 4, .block_height = 4};
  TestTexture(gpu_, spec).fill_random(2);
  Lanes expected[4], out[4];
  TextureLookup lookup = TestTexture(gpu_, spec).lookup(Launcher::kSF, kT);
  lookup.s = kLaneIndex;
  lookup.t = Lanes{} + 5u;
  ASSERT_EQ(Unit(gpu_.memory(), chip::Generation::k71).texture(lookup, expected), 4);
  spec.flip_x = spec.flip_y = true;
  const TestTexture flipped(gpu_, spec);
  lookup.s = 21u - kLaneIndex;
  lookup.t = Lanes{} + 12u;
  ASSERT_EQ(Unit(gpu_.memory(), chip::Generation::k71).texture(lookup, out), 4);
  for (int c = 0; c < 4; ++c)
    for (int i = 0; i < kLanes; ++i) EXPECT_EQ(out[c][i], expected[c][i]);
}

/// 4.2: with the bit set, a request is one with S and T, and their offsets, exchanged.
TEST_F(Flip, ExchangesSAndTOfTheRequest) {
  for (const uint32_t p2 : {kDefaultP2, kOffsets}) {
    TextureSpec spec{
        .type = 4, .width = 33, .height = 20, .max_level = 3, .generation = chip::Generation::k42};
    TestTexture(gpu_, spec).fill_random(3);
    TestTexture plain(gpu_, spec);
    plain.set_sampler({});
    for (const uint8_t off : {0, int{kOff}}) {
      TextureLookup lookup = plain.lookup(Launcher::kS, static_cast<uint8_t>(kT | off));
      lookup.s = uniform_lanes(-1, 2);
      lookup.t = uniform_lanes(-1, 2);
      lookup.off = Lanes{} + 0x2fu;
      lookup.p2 = p2;
      Lanes expected[4], out[4];
      TestTexture pack_again(gpu_, spec);
      ASSERT_EQ(Unit(gpu_.memory(), chip::Generation::k42).texture(lookup, expected), 4);
      std::swap(lookup.s, lookup.t);
      lookup.off = Lanes{} + 0xf2u;
      lookup.p2 = p2 == kOffsets ? 0x00f0f200 : p2;
      spec.swap = true;
      TestTexture pack_swapped(gpu_, spec);
      spec.swap = false;
      ASSERT_EQ(Unit(gpu_.memory(), chip::Generation::k42).texture(lookup, out), 4);
      for (int c = 0; c < 4; ++c)
        for (int i = 0; i < kLanes; ++i) ASSERT_EQ(out[c][i], expected[c][i]) << c;
    }
  }
}

/// The first lines of texels of a row of blocks, as a 2D texture of the same blocks has them.
TEST_F(Flip, CompressedTexturesOfOneDimensionAreARowOfBlocks) {
  TextureSpec spec{.type = 48, .cpp = 8, .width = 30, .height = 4, .block_width = 4, .block_height = 4};
  TestTexture two(gpu_, spec);
  two.fill_random(9);
  spec.raster = true;
  spec.height = 1;
  TestTexture one(mirrored_gpu_, spec);
  for (uint32_t x = 0; x < 8; ++x)
    mirrored_gpu_.memory().store(one.address(0, x, 0), gpu_.memory().load<uint64_t>(two.address(0, x, 0)));
  two.set_sampler({.mag_nearest = true});
  one.set_sampler({.mag_nearest = true});
  for (const Launcher launcher : {Launcher::kSF, Launcher::kSLod}) {
    TextureLookup lookup = two.lookup(launcher, kT);
    lookup.s = launcher == Launcher::kSF ? kLaneIndex * 2u : uniform_lanes(0, 1);
    lookup.t = Lanes{};
    Lanes expected[4], out[4];
    ASSERT_EQ(Unit(gpu_.memory(), chip::Generation::k71).texture(lookup, expected), 4);
    lookup.written = 0;
    ASSERT_EQ(Unit(mirrored_gpu_.memory(), chip::Generation::k71).texture(lookup, out), 4);
    for (int c = 0; c < 4; ++c)
      for (int i = 0; i < kLanes; ++i) ASSERT_EQ(out[c][i], expected[c][i]) << i;
  }
}

}  // namespace
}  // namespace v3d::tmu
