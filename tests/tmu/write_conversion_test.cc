/// @file Stores that convert colours to texels (P2, write conversion of 7.1).
#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "gpu/base/float16.h"
#include "gpu/chip/generation.h"
#include "gpu/tmu/texel/format.h"
#include "tests/tmu/test_texture.h"

namespace v3d::tmu {
namespace {

constexpr uint32_t kConversion = 0x04f00000;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class WriteConversion : public testing::Test {
 protected:
  /// Row 2 of a texture of the type receives the colours, one per lane.
  /// @param p1  5: a word for each component, 4: halves, two a word
  TextureLookup store(const TestTexture& texture, const Lanes (&rgba)[4], int words = 4, uint32_t p1 = 5,
                      chip::Generation generation = chip::Generation::k71) {
    TextureLookup lookup = texture.lookup(Launcher::kSF, kT);
    lookup.p0 &= ~15u;
    lookup.p1 = p1;
    lookup.p2 = kConversion;
    lookup.s = kLaneIndex;
    lookup.t = Lanes{} + 2u;
    lookup.num_data = static_cast<uint8_t>(words);
    std::copy_n(rgba, 4, lookup.data);
    Lanes out[4];
    EXPECT_EQ(Unit(gpu_.memory(), generation).texture(lookup, out), 0);
    return lookup;
  }
  TextureSpec spec(uint32_t type) const {
    return {.type = type,
            .cpp = find_format(chip::kDefaultGeneration, TextureType{type})->cpp,
            .width = 16,
            .height = 4};
  }
  uint32_t word(const TestTexture& texture, uint32_t x) const {
    return gpu_.memory().load<uint32_t>(texture.address(0, x, 2));
  }
  static Lanes floats(std::initializer_list<float> values) {
    Lanes v = {};
    int i = 0;
    for (const float f : values) v[i++] = std::bit_cast<uint32_t>(f);
    return v;
  }
  GpuMemory gpu_;
};

/// What a lookup reads of a texel is stored as a texel that reads the same.
TEST_F(WriteConversion, StoresWhatALookupReads) {
  for (uint32_t type = 0; type < 128; ++type) {
    const Format* const format = find_format(chip::kDefaultGeneration, TextureType{type});
    if (!format || format->compressed() || format->depth()) continue;
    for (const bool reorders : {false, true}) {
      TextureSpec s = spec(type);
      s.reverse = s.rb_swap = reorders;
      TestTexture texture(gpu_, s);
      texture.fill_random(type);
      if (format->kind == Kind::kFloat && format->cpp >= 2)  // no NaN, whose bits need not survive
        for (uint32_t x = 0; x < 16; ++x)
          for (uint32_t b = 1; b < format->cpp; b += 2) {
            uint8_t* const at = gpu_.memory().host(texture.address(0, x, 0) + b);
            *at = static_cast<uint8_t>(*at & 0xb7);
          }
      TextureLookup lookup = texture.lookup(Launcher::kSF, kT);
      lookup.s = kLaneIndex;
      lookup.t = Lanes{};
      Lanes colors[4], again[4];
      ASSERT_EQ(Unit(gpu_.memory(), chip::Generation::k71).texture(lookup, colors), 4);
      store(texture, colors);
      lookup.t = Lanes{} + 2u;
      ASSERT_EQ(Unit(gpu_.memory(), chip::Generation::k71).texture(lookup, again), 4);
      for (int c = 0; c < 4; ++c)
        for (int i = 0; i < kLanes; ++i)
          ASSERT_EQ(again[c][i], colors[c][i]) << format->name << " " << i << "." << c;
    }
  }
}

TEST_F(WriteConversion, ClampsAndRounds) {
  const Lanes colors[4] = {floats({-1, 2, 0.5f, kNan}), floats({0.2f, 0.4f, 1, -0.0f}),
                           floats({-0.5f, 0.25f, 3, kNan}), floats({0, 1, 1, 1})};
  const TestTexture unorm(gpu_, spec(4));
  store(unorm, colors);
  EXPECT_EQ(word(unorm, 0), 0x00003300u);
  EXPECT_EQ(word(unorm, 1), 0xff4066ffu);
  EXPECT_EQ(word(unorm, 2), 0xffffff80u);
  EXPECT_EQ(word(unorm, 3), 0xff000000u);
  const TestTexture snorm(gpu_, spec(5));
  store(snorm, colors);
  EXPECT_EQ(word(snorm, 0), 0x00c01981u);
  const TestTexture shared(gpu_, spec(20));
  const Lanes ones[4] = {floats({1, 70000, 0}), floats({1, 0, -1}), floats({1, 0.5f, kNan}), {}};
  store(shared, ones);
  EXPECT_EQ(word(shared, 0), 0x84020100u);
  EXPECT_EQ(word(shared, 1), 0xf80001ffu);
  EXPECT_EQ(word(shared, 2), 0u);
}

TEST_F(WriteConversion, ClampsIntegers) {
  const Lanes colors[4] = {Lanes{} + 300u, Lanes{} - 300u, Lanes{} + 5u, Lanes{} - 5u};
  const TestTexture with_sign(gpu_, spec(100));
  store(with_sign, colors);
  EXPECT_EQ(word(with_sign, 0), 0xfb05807fu);
  const TestTexture without_sign(gpu_, spec(101));
  store(without_sign, colors);
  EXPECT_EQ(word(without_sign, 0), 0xff05ffffu);
}

/// 16-bit output: two halves a word.
TEST_F(WriteConversion, TakesHalves) {
  const TestTexture texture(gpu_, spec(4));
  const auto pair = [](float low, float high) {
    return Lanes{} + (float_to_half(low) | uint32_t{float_to_half(high)} << 16);
  };
  const Lanes halves[4] = {pair(1, 0.2f), pair(0.4f, 0.6f)};
  store(texture, halves, 2, 4);
  EXPECT_EQ(word(texture, 7), 0x996633ffu);
}

TEST_F(WriteConversion, IsNotOf42) {
  TextureSpec s = spec(109);
  s.generation = chip::Generation::k42;
  const TestTexture texture(gpu_, s);
  const Lanes words[4] = {kLaneIndex};
  store(texture, words, 1, 5, chip::Generation::k42);
  EXPECT_EQ(word(texture, 9), 9u);
}

}  // namespace
}  // namespace v3d::tmu
