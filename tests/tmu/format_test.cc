/// @file Plain texture formats against scalar decoders written from the table of texture.md 5: every bit
/// pattern of formats of up to 16 bits, random ones of the others.
#include "gpu/tmu/texel/format.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "gpu/base/float16.h"
#include "gpu/chip/generation.h"
#include "tests/tmu/test_texture.h"

namespace v3d::tmu {
namespace {

enum Number { kNone, kUnorm, kDepth, kSnorm, kUint, kInt, kHalf, kFloat, kSmallFloat, kShared };

struct Channel {
  int first, bits;
};
struct Case {
  uint32_t type, cpp;
  Number number;
  Channel channels[4];
};

constexpr Case kCases[] = {
    {0, 1, kUnorm, {{0, 8}}},
    {1, 1, kSnorm, {{0, 8}}},
    {2, 2, kUnorm, {{0, 8}, {8, 8}}},
    {3, 2, kSnorm, {{0, 8}, {8, 8}}},
    {4, 4, kUnorm, {{0, 8}, {8, 8}, {16, 8}, {24, 8}}},
    {5, 4, kSnorm, {{0, 8}, {8, 8}, {16, 8}, {24, 8}}},
    {6, 2, kUnorm, {{11, 5}, {5, 6}, {0, 5}}},
    {7, 2, kUnorm, {{12, 4}, {8, 4}, {4, 4}, {0, 4}}},
    {8, 2, kUnorm, {{11, 5}, {6, 5}, {1, 5}, {0, 1}}},
    {9, 4, kUnorm, {{0, 10}, {10, 10}, {20, 10}, {30, 2}}},
    {10, 2, kUnorm, {{0, 16}}},
    {11, 2, kSnorm, {{0, 16}}},
    {12, 4, kUnorm, {{0, 16}, {16, 16}}},
    {13, 4, kSnorm, {{0, 16}, {16, 16}}},
    {14, 8, kUnorm, {{0, 16}, {16, 16}, {32, 16}, {48, 16}}},
    {15, 8, kSnorm, {{0, 16}, {16, 16}, {32, 16}, {48, 16}}},
    {16, 2, kHalf, {{0, 16}}},
    {17, 4, kHalf, {{0, 16}, {16, 16}}},
    {18, 8, kHalf, {{0, 16}, {16, 16}, {32, 16}, {48, 16}}},
    {19, 4, kSmallFloat, {{0, 11}, {11, 11}, {22, 10}}},
    {20, 4, kShared, {{0, 9}, {9, 9}, {18, 9}}},
    {21, 2, kDepth, {{0, 16}}},
    {23, 4, kFloat, {{0, 32}}},
    {24, 4, kDepth, {{8, 24}}},
    {27, 1, kUint, {{0, 8}}},
    {28, 2, kUint, {{0, 16}}},
    {29, 4, kFloat, {{0, 32}}},
    {30, 8, kFloat, {{0, 32}, {32, 32}}},
    {31, 16, kFloat, {{0, 32}, {32, 32}, {64, 32}, {96, 32}}},
    {96, 1, kInt, {{0, 8}}},
    {97, 1, kUint, {{0, 8}}},
    {98, 2, kInt, {{0, 8}, {8, 8}}},
    {99, 2, kUint, {{0, 8}, {8, 8}}},
    {100, 4, kInt, {{0, 8}, {8, 8}, {16, 8}, {24, 8}}},
    {101, 4, kUint, {{0, 8}, {8, 8}, {16, 8}, {24, 8}}},
    {102, 2, kInt, {{0, 16}}},
    {103, 2, kUint, {{0, 16}}},
    {104, 4, kInt, {{0, 16}, {16, 16}}},
    {105, 4, kUint, {{0, 16}, {16, 16}}},
    {106, 8, kInt, {{0, 16}, {16, 16}, {32, 16}, {48, 16}}},
    {107, 8, kUint, {{0, 16}, {16, 16}, {32, 16}, {48, 16}}},
    {108, 4, kInt, {{0, 32}}},
    {109, 4, kUint, {{0, 32}}},
    {110, 8, kInt, {{0, 32}, {32, 32}}},
    {111, 8, kUint, {{0, 32}, {32, 32}}},
    {112, 16, kInt, {{0, 32}, {32, 32}, {64, 32}, {96, 32}}},
    {113, 16, kUint, {{0, 32}, {32, 32}, {64, 32}, {96, 32}}},
    {114, 4, kUint, {{0, 10}, {10, 10}, {20, 10}, {30, 2}}},
    {115, 2, kUnorm, {{0, 5}, {5, 5}, {10, 5}, {15, 1}}},
};

uint32_t bits_of(double v) { return std::bit_cast<uint32_t>(static_cast<float>(v)); }

double unsigned_float(uint32_t v, int mantissa_bits) {
  const int exponent = static_cast<int>(v >> mantissa_bits);
  const double mantissa = static_cast<double>(v & ((1u << mantissa_bits) - 1)) / (1 << mantissa_bits);
  if (exponent == 31) return mantissa == 0 ? INFINITY : NAN;
  return exponent == 0 ? std::ldexp(mantissa, -14) : std::ldexp(1 + mantissa, exponent - 15);
}

/// Channel c of a texel as the TMU returns it with 32-bit output.
uint32_t expected_channel(const Case& k, const uint8_t* texel, int c, bool srgb) {
  const bool integer = k.number == kUint || k.number == kInt;
  const Channel channel = k.channels[c];
  if (channel.bits == 0) return c < 3 ? 0 : integer ? 1 : bits_of(1.0);
  uint64_t word = 0;
  memcpy(&word, texel + channel.first / 32 * 4,
         std::min<size_t>(8, k.cpp - static_cast<size_t>(channel.first) / 32 * 4));
  const auto v = static_cast<uint32_t>(word >> (channel.first % 32)) &
                 (channel.bits == 32 ? ~0u : (1u << channel.bits) - 1);
  const int32_t s = static_cast<int32_t>(v << (32 - channel.bits)) >> (32 - channel.bits);
  switch (k.number) {
    case kUnorm: {
      const double n = v / (std::ldexp(1.0, channel.bits) - 1);
      if (!srgb || c == 3) return bits_of(n);
      return bits_of(n <= 0.04045 ? n / 12.92 : std::pow((n + 0.055) / 1.055, 2.4));
    }
    case kDepth: {  // rounded towards zero
      const double n = v / (std::ldexp(1.0, channel.bits) - 1);
      const auto nearest = static_cast<float>(n);
      return std::bit_cast<uint32_t>(double{nearest} > n ? std::nextafter(nearest, 0.0f) : nearest);
    }
    case kSnorm:
      return bits_of(std::max(-1.0, s / (std::ldexp(1.0, channel.bits - 1) - 1)));
    case kInt:
      return static_cast<uint32_t>(s);
    case kHalf:
      return std::bit_cast<uint32_t>(half_to_float(static_cast<uint16_t>(v)));
    case kSmallFloat:
      return bits_of(unsigned_float(v, channel.bits - 5));
    case kShared: {
      uint32_t all;
      memcpy(&all, texel, 4);
      return bits_of(std::ldexp(v, static_cast<int>(all >> 27) - 24));
    }
    default:
      return v;
  }
}

bool same_value(uint32_t a, uint32_t b) {
  return a == b || (std::isnan(std::bit_cast<float>(a)) && std::isnan(std::bit_cast<float>(b)));
}

class Formats : public testing::TestWithParam<Case> {
 protected:
  /// Texels [first, first + 16) of a texel buffer.
  void fetch(Unit& unit, TextureLookup& lookup, uint32_t first, Lanes* out) {
    lookup.s = kLaneIndex + first;
    ASSERT_EQ(unit.texture(lookup, out), 4);
  }
  GpuMemory gpu_;
};

TEST_P(Formats, EveryBitPattern) {
  const Case& k = GetParam();
  const uint32_t count = k.cpp == 1 ? 256 : 65536;
  const Format* format = find_format(chip::kDefaultGeneration, TextureType{k.type});
  ASSERT_NE(format, nullptr);
  EXPECT_EQ(format->cpp, k.cpp);
  for (bool srgb : {false, true}) {
    if (srgb && k.type != 4) continue;
    TextureSpec spec{.type = k.type, .cpp = k.cpp, .width = count, .height = 1, .raster = true, .srgb = srgb};
    TestTexture texture(gpu_, spec);
    if (k.cpp > 2) {
      texture.fill_random(k.type);
    } else {
      for (uint32_t i = 0; i < count; ++i) gpu_.memory().write(texture.address(0, i, 0), &i, k.cpp);
    }
    Unit unit(gpu_.memory(), chip::Generation::k71);
    TextureLookup lookup = texture.lookup(Launcher::kSF, 0);
    for (uint32_t first = 0; first<count; first += k.cpp> 2 ? 112 : 16) {
      Lanes out[4];
      fetch(unit, lookup, first, out);
      for (int i = 0; i < kLanes && first + static_cast<uint32_t>(i) < count; ++i) {
        const uint8_t* texel = gpu_.memory().host(texture.address(0, first + static_cast<uint32_t>(i), 0));
        for (int c = 0; c < 4; ++c) {
          const uint32_t expected = expected_channel(k, texel, c, srgb);
          ASSERT_TRUE(k.number == kFloat || k.number == kUint || k.number == kInt
                          ? out[c][i] == expected
                          : same_value(out[c][i], expected))
              << format->name << " texel " << first + static_cast<uint32_t>(i) << " channel " << c << ": "
              << std::hex << out[c][i] << " instead of " << expected;
        }
      }
    }
  }
}

/// 16-bit output is the 32-bit one in halves (texture.md 2.3), whatever the format.
TEST_P(Formats, NarrowOutput) {
  const Case& k = GetParam();
  TextureSpec spec{.type = k.type, .cpp = k.cpp, .width = 64, .height = 1, .raster = true};
  TestTexture texture(gpu_, spec);
  texture.fill_random(k.type + 1);
  Unit unit(gpu_.memory(), chip::Generation::k71);
  TextureLookup lookup = texture.lookup(Launcher::kSF, 0);
  Lanes wide[4], narrow[4];
  fetch(unit, lookup, 3, wide);
  lookup.p1 = 0;
  EXPECT_EQ(unit.texture(lookup, narrow), 2);
  for (int c = 0; c < 4; ++c)
    for (int i = 0; i < kLanes; ++i) {
      const uint32_t half = (narrow[c / 2][i] >> (16 * (c & 1))) & 0xffff;
      const uint32_t expected = k.number == kUint || k.number == kInt
                                    ? wide[c][i] & 0xffff
                                    : float_to_half(std::bit_cast<float>(wide[c][i]));
      ASSERT_EQ(half, expected) << "type " << k.type << " channel " << c;
    }
}

INSTANTIATE_TEST_SUITE_P(Plain, Formats, testing::ValuesIn(kCases), [](const auto& instance) {
  return std::string(format_name(chip::kDefaultGeneration, TextureType{instance.param.type}));
});

TEST(FormatTable, UnknownFormatsReturnZeroAndHaveNames) {
  GpuMemory gpu;
  for (uint32_t type = 0; type < 128; ++type) {
    EXPECT_STRNE(format_name(chip::kDefaultGeneration, TextureType{type}), "");
    if (find_format(chip::kDefaultGeneration, TextureType{type})) continue;
    TestTexture texture(gpu, {.type = type});
    texture.fill_random(1);
    Unit unit(gpu.memory(), chip::Generation::k71);
    TextureLookup lookup = texture.lookup(Launcher::kSF, kT);
    Lanes out[4] = {splat(1u), splat(1u), splat(1u), splat(1u)};
    EXPECT_EQ(unit.texture(lookup, out), 4);
    for (const Lanes& word : out)
      for (int i = 0; i < kLanes; ++i) EXPECT_EQ(word[i], 0u);
  }
}

// texture.md 5, vc4-graphics.md 5.3.
TEST(FormatTable, ANumberIsOfOneGeneration) {
  using chip::Generation;
  const auto name = [](Generation generation, uint32_t type) {
    const Format* format = find_format(generation, TextureType{type});
    return std::string(format ? format->name : "none");
  };
  for (uint32_t type = 0; type < 2 * kTextureTypes; ++type)
    EXPECT_EQ(name(Generation::k42, type), name(Generation::k71, type)) << type;
  EXPECT_EQ(name(Generation::k71, 4), "RGBA8");
  EXPECT_EQ(name(Generation::k21, 4), "RGB565");
  EXPECT_EQ(name(Generation::k71, 5), "RGBA8_SNORM");
  EXPECT_EQ(name(Generation::k21, 5), "L8");
  EXPECT_EQ(name(Generation::k71, 64), "ASTC_4X4");
  EXPECT_EQ(name(Generation::k21, 64), "none");
  EXPECT_EQ(name(Generation::k21, 15), "none");
  EXPECT_STREQ(format_name(Generation::k21, TextureType{15}), "RGBA64");
  EXPECT_STREQ(format_name(Generation::k71, TextureType{25}), "R4");
  EXPECT_STREQ(format_name(Generation::k21, TextureType{25}), "unassigned texture type");
}

// texture.md 5; Mesa v3dvx_formats.c, tfu_supports_tex_format.
TEST(FormatTable, WhatTheTfuAndFiltersDo) {
  for (uint32_t type = 0; type < 128; ++type) {
    const Format* format = find_format(chip::kDefaultGeneration, TextureType{type});
    if (!format) continue;
    const bool copies = type <= 20 || (type >= 29 && type <= 38) || (type >= 96 && type <= 114);
    EXPECT_EQ(format->tfu != TfuUse::kNothing, copies) << format->name;
    EXPECT_EQ(format->tfu == TfuUse::kFilters, type <= 19) << format->name;
    EXPECT_EQ(format->filtering == Filtering::kLinear, format->compressed() || type <= 20 || type == 115)
        << format->name;
    EXPECT_EQ(format->filtering == Filtering::kComparison, type == 21 || type == 23 || type == 24)
        << format->name;
  }
}

TEST(FormatTable, Unorm8IsCorrectlyRounded) {
  for (int first = 0; first < 256; first += kLanes) {
    LanesF v;
    for (int i = 0; i < kLanes; ++i) v[i] = static_cast<float>(first + i);
    const LanesF result = unorm8(v);
    for (int i = 0; i < kLanes; ++i) EXPECT_EQ(result[i], static_cast<float>(first + i) / 255.0f);
  }
}

}  // namespace
}  // namespace v3d::tmu
