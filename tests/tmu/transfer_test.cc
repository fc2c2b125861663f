/// @file Transfer functions of textures.
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "gpu/chip/generation.h"
#include "gpu/tmu/texel/format.h"
#include "tests/tmu/test_texture.h"

namespace v3d::tmu {
namespace {

/// Codes and values of the standards themselves: BT.2100's tables and ST 2084's usual reference points.
TEST(TransferTable, GoesThroughTheReferencePointsOfTheStandards) {
  const float* const pq = transfer_table(Transfer::kPq, 16);
  EXPECT_EQ(pq[0], 0.0f);
  EXPECT_EQ(pq[65535], 125.0f);                                // 10000 cd/m2, in units of 80
  EXPECT_NEAR(pq[std::lround(0.508078 * 65535)], 1.25, 1e-4);  // 100 cd/m2
  EXPECT_NEAR(pq[std::lround(0.751827 * 65535)], 12.5, 1e-3);  // 1000 cd/m2
  const float* const hlg = transfer_table(Transfer::kHlg, 16);
  EXPECT_EQ(hlg[0], 0.0f);
  EXPECT_NEAR(hlg[65535], 12.0, 1e-5);
  EXPECT_NEAR(hlg[32768], 1.0, 1e-4);                               // where the two branches meet
  EXPECT_NEAR(hlg[std::lround(0.75 * 65535)], 12 * 0.26496, 1e-3);  // white of graphics, BT.2408
  const float* const srgb = transfer_table(Transfer::kSrgb, 8);
  EXPECT_NEAR(srgb[10], 10 / 255.0 / 12.92, 1e-9);
  EXPECT_NEAR(srgb[188], 0.5029, 1e-4);
}

TEST(TransferTable, Bt1886VariantsCodeTheLightAgain) {
  for (const auto& [coded, light, peak] :
       {std::tuple{Transfer::kPqBt1886, Transfer::kPq, 125}, {Transfer::kHlgBt1886, Transfer::kHlg, 12}})
    for (int i = 0; i < 1024; i += 31)
      EXPECT_NEAR(std::pow(transfer_table(coded, 10)[i], 2.4f), transfer_table(light, 10)[i] / peak, 1e-6)
          << i;
}

struct Case {
  uint32_t type, cpp;
  int bits[4];
};

/// RGBA8, RGB565, RGB10_A2, RGBA16 by fetch: colours from the table, alpha as it is.
TEST(Transfers, ActOnColorsAndNotOnAlpha) {
  GpuMemory gpu;
  for (const Case& k : {Case{4, 4, {8, 8, 8, 8}}, {9, 4, {10, 10, 10, 2}}, {14, 8, {16, 16, 16, 16}}})
    for (uint32_t transfer = 2; transfer < kTransfers; ++transfer) {
      TextureSpec spec{.type = k.type, .cpp = k.cpp, .width = 16, .height = 1, .transfer = transfer};
      TestTexture texture(gpu, spec);
      texture.fill_random(transfer);
      Unit unit(gpu.memory(), chip::Generation::k71);
      TextureLookup lookup = texture.lookup(Launcher::kSF, kT);
      lookup.s = kLaneIndex;
      lookup.t = Lanes{};
      Lanes out[4];
      ASSERT_EQ(unit.texture(lookup, out), 4);
      for (int i = 0; i < kLanes; ++i) {
        uint64_t texel = 0;
        memcpy(&texel, gpu.memory().host(texture.address(0, static_cast<uint32_t>(i), 0)), k.cpp);
        for (int c = 0; c < 4; ++c) {
          const uint32_t last = (1u << k.bits[c]) - 1, code = static_cast<uint32_t>(texel) & last;
          texel >>= k.bits[c];
          const float expected = c < 3 ? transfer_table(static_cast<Transfer>(transfer), k.bits[c])[code]
                                       : static_cast<float>(code) / static_cast<float>(last);
          ASSERT_FLOAT_EQ(as_float(out[c])[i], expected) << "type " << k.type << " channel " << c;
        }
      }
    }
}

TEST(Transfers, ComeBeforeFiltering) {
  GpuMemory gpu;
  TextureSpec spec{.type = 4, .cpp = 4, .width = 16, .height = 16, .transfer = 2};
  TestTexture texture(gpu, spec);
  for (uint32_t y = 0; y < 16; ++y)
    for (uint32_t x = 0; x < 16; ++x)
      gpu.memory().store<uint32_t>(texture.address(0, x, y), x % 2 ? 0xffffffff : 0);
  texture.set_sampler({});
  Unit unit(gpu.memory(), chip::Generation::k71);
  TextureLookup lookup = texture.lookup(Launcher::kSLod, kT);
  lookup.s = splat(0x3f000000u);  // between two texels
  lookup.t = splat(0x3f000000u);
  Lanes out[4];
  ASSERT_EQ(unit.texture(lookup, out), 4);
  EXPECT_EQ(as_float(out[0])[0], 62.5f);
}

TEST(Transfers, ActOnCompressedColors) {
  GpuMemory gpu;
  TextureSpec spec{.type = 48, .cpp = 8, .width = 16, .height = 16, .block_width = 4, .block_height = 4};
  spec.transfer = 3;
  TestTexture texture(gpu, spec);
  texture.fill_random(5);
  TextureLookup lookup = texture.lookup(Launcher::kSF, kT);
  lookup.s = kLaneIndex;
  lookup.t = Lanes{} + 7u;
  Lanes out[4];
  ASSERT_EQ(Unit(gpu.memory(), chip::Generation::k71).texture(lookup, out), 4);
  for (int i = 0; i < kLanes; ++i) {
    uint8_t block[8];
    gpu.memory().read(texture.address(0, static_cast<uint32_t>(i) / 4, 1), block, 8);
    BlockTexel texels[kMaxBlockTexels];
    find_format(chip::kDefaultGeneration, TextureType{48})->decode_block(block, true, texels);
    for (int c = 0; c < 3; ++c)
      EXPECT_EQ(as_float(out[c])[i], transfer_table(Transfer::kHlg, 8)[texels[12 + i % 4][c]]) << i;
  }
}

TEST(Transfers, LeaveFormatsWithoutThreeColorsAlone) {
  GpuMemory gpu;
  TextureSpec spec{.type = 2, .cpp = 2, .width = 16, .height = 1, .transfer = 2};
  TestTexture texture(gpu, spec);
  texture.fill_random(6);
  TextureLookup lookup = texture.lookup(Launcher::kSF, kT);
  lookup.s = kLaneIndex;
  lookup.t = Lanes{};
  Lanes out[4];
  ASSERT_EQ(Unit(gpu.memory(), chip::Generation::k71).texture(lookup, out), 4);
  for (int i = 0; i < kLanes; ++i)
    EXPECT_FLOAT_EQ(
        as_float(out[0])[i],
        static_cast<float>(*gpu.memory().host(texture.address(0, static_cast<uint32_t>(i), 0))) / 255);
}

TEST(Transfers, AreOffWhereTheSamplerDisablesThem) {
  GpuMemory gpu;
  TextureSpec spec{.type = 4, .cpp = 4, .width = 16, .height = 16, .srgb = true};
  TestTexture texture(gpu, spec);
  for (uint32_t y = 0; y < 16; ++y)
    for (uint32_t x = 0; x < 16; ++x) gpu.memory().store<uint32_t>(texture.address(0, x, y), 0x33333333);
  texture.set_sampler({.transfer_disable = true});
  TextureLookup lookup = texture.lookup(Launcher::kSLod, kT);
  lookup.s = lookup.t = Lanes{};
  Lanes out[4];
  ASSERT_EQ(Unit(gpu.memory(), chip::Generation::k71).texture(lookup, out), 4);
  EXPECT_FLOAT_EQ(as_float(out[0])[3], 0.2f);
}

}  // namespace
}  // namespace v3d::tmu
