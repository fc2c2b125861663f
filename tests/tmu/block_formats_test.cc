/// @file Compressed formats: blocks with known colours, and random blocks against Mesa's decoders.
#include "gpu/tmu/texel/block_formats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "gpu/chip/generation.h"

#ifdef V3DEMU_TEST_WITH_MESA
#include "tests/tmu/mesa_block_formats.h"
#endif
#include "tests/tmu/test_texture.h"

namespace v3d::tmu {
namespace {

std::vector<const Format*> compressed_formats() {
  std::vector<const Format*> result;
  for (uint32_t type = 0; type < 128; ++type)
    if (const Format* format = find_format(chip::kDefaultGeneration, TextureType{type});
        format && format->compressed())
      result.push_back(format);
  return result;
}

bool is_astc(const Format& format) { return format.block_scale == BlockScale::kUnorm16; }

TEST(BlockFormats, AllAreThere) { EXPECT_EQ(compressed_formats().size(), 7u + 3u + 14u); }

TEST(BlockFormats, AstcVoidExtent) {
  uint8_t block[16] = {0xfc, 0xfd, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                       0x34, 0x12, 0x00, 0x80, 0xff, 0xff, 0x01, 0x00};
  BlockTexel texels[kMaxBlockTexels];
  decode_astc_block(block, false, 6, 5, texels);
  for (int i = 0; i < 30; ++i) {
    EXPECT_EQ(texels[i][0], 0x1234);
    EXPECT_EQ(texels[i][1], 0x8000);
    EXPECT_EQ(texels[i][2], 0xffff);
    EXPECT_EQ(texels[i][3], 1);
  }
  decode_astc_block(block, true, 6, 5, texels);
  EXPECT_EQ(texels[29][0], 0x12);
  block[1] |= 2;  // HDR
  decode_astc_block(block, false, 6, 5, texels);
  EXPECT_EQ(texels[0][0], 0xffff);
  EXPECT_EQ(texels[0][1], 0);
  EXPECT_EQ(texels[0][2], 0xffff);
  EXPECT_EQ(texels[0][3], 0xffff);
}

TEST(BlockFormats, Bc1ModesByHand) {
  // c0 = red, c1 = blue: four colours; exchanged: three and transparent black. Indices 0 1 2 3 in row 0.
  const uint8_t four[8] = {0x00, 0xf8, 0x1f, 0x00, 0xe4, 0, 0, 0},
                three[8] = {0x1f, 0x00, 0x00, 0xf8, 0xe4, 0, 0, 0};
  BlockTexel texels[16];
  const uint16_t expected4[4][4] = {{255, 0, 0, 255}, {0, 0, 255, 255}, {170, 0, 85, 255}, {85, 0, 170, 255}};
  decode_bc1(four, false, texels);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(memcmp(texels[i], expected4[i], 8), 0) << i;
  const uint16_t expected3[4][4] = {{0, 0, 255, 255}, {255, 0, 0, 255}, {127, 0, 127, 255}, {0, 0, 0, 0}};
  decode_bc1(three, false, texels);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(memcmp(texels[i], expected3[i], 8), 0) << i;
}

TEST(BlockFormats, LookupsDecodeFilterAndConvert) {
  // What the TMU returns for random blocks equals the decoder's texels, converted one by one.
  GpuMemory gpu;
  for (const Format* format : compressed_formats())
    for (bool srgb : {false, true}) {
      TextureSpec spec{
          .type = static_cast<uint32_t>(format->type), .cpp = format->cpp, .width = 37, .height = 29};
      spec.block_width = format->block_width;
      spec.block_height = format->block_height;
      spec.srgb = srgb;
      spec.layers = 2;
      spec.max_level = 2;
      TestTexture texture(gpu, spec);
      texture.fill_random(static_cast<uint32_t>(format->type));
      Unit unit(gpu.memory(), chip::Generation::k71);
      TextureLookup lookup = texture.lookup(Launcher::kSF, kT | kI | kB);
      std::minstd_rand random(1);
      for (int round = 0; round < 10; ++round) {
        const uint32_t l = static_cast<uint32_t>(round) % 3;
        for (int i = 0; i < kLanes; ++i) {
          lookup.s[i] = static_cast<uint32_t>(random()) % texture.width(l);
          lookup.t[i] = static_cast<uint32_t>(random()) % texture.height(l);
          lookup.i[i] = static_cast<uint32_t>(random()) % 2;
        }
        lookup.b = splat(l);
        Lanes out[4];
        ASSERT_EQ(unit.texture(lookup, out), 4);
        for (int i = 0; i < kLanes; ++i) {
          const uint32_t bx = lookup.s[i] / format->block_width, by = lookup.t[i] / format->block_height;
          uint8_t block[16];
          gpu.memory().read(texture.address(l, bx, by, lookup.i[i]), block, format->cpp);
          BlockTexel texels[kMaxBlockTexels];
          const bool decode_srgb = srgb && format->block_srgb;
          format->decode_block(block, decode_srgb, texels);
          const BlockTexel& texel = texels[lookup.t[i] % format->block_height * format->block_width +
                                           lookup.s[i] % format->block_width];
          for (int c = 0; c < 4; ++c) {
            double expected;
            if (decode_srgb && c < 3) {
              const double v = texel[c] / 255.0;
              expected = v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
            } else if (decode_srgb || format->block_scale == BlockScale::kUnorm8) {
              expected = texel[c] / 255.0;
            } else if (format->block_scale == BlockScale::kUnorm16) {
              expected = texel[c] == 65535 ? 1.0 : texel[c] / 65536.0;
            } else if (format->block_scale == BlockScale::kUnorm11) {
              expected = texel[c] / 2047.0;
            } else {
              expected = static_cast<int16_t>(texel[c]) / 1023.0;
            }
            ASSERT_NEAR(as_float(out[c])[i], expected, is_astc(*format) ? 0.0005 : 1e-7)
                << format->name << " channel " << c;
          }
        }
      }
      EXPECT_EQ(gpu.take_faults(), 0u);
    }
}

#ifdef V3DEMU_TEST_WITH_MESA

/// Random bits. Some ASTC blocks become void extents, always with their reserved bits set: Mesa ignores
/// these.
void random_block(std::minstd_rand& random, const Format& format, uint8_t* block) {
  for (int i = 0; i < 16; ++i) block[i] = static_cast<uint8_t>(random() >> 8);
  if (!is_astc(format)) return;
  if (random() % 64 == 0) {
    block[0] = 0xfc;
    block[1] |= 1;
  }
  if (block[0] == 0xfc && (block[1] & 1)) block[1] |= 0x0c;
}

TEST(BlockFormats, RandomBlocksEqualMesa) {
  std::minstd_rand random(3);
  for (const Format* format : compressed_formats()) {
    const int texel_count = format->block_width * format->block_height;
    int legal = 0;  // few random ASTC blocks are
    for (int round = 0; legal < (is_astc(*format) ? 500 : 4000); ++round) {
      ASSERT_LT(round, 40000) << format->name;
      const bool srgb = is_astc(*format) && round % 2;
      uint8_t block[16], mesa[kMaxBlockTexels * 4];
      random_block(random, *format, block);
      BlockTexel texels[kMaxBlockTexels];
      format->decode_block(block, srgb, texels);
      mesa_decode_block(static_cast<uint32_t>(format->type), srgb, block, format->block_width,
                        format->block_height, mesa);
      legal += !(texels[0][0] >= 0xff && texels[0][1] == 0 && texels[0][2] >= 0xff);
      for (int i = 0; i < texel_count; ++i) {
        if (format->block_scale == BlockScale::kUnorm11 || format->block_scale == BlockScale::kSnorm11) {
          const int channels = format->cpp == 8 ? 1 : 2;
          for (int c = 0; c < channels; ++c) {
            int16_t expected;
            memcpy(&expected, mesa + 2 * (i * channels + c), 2);
            if (format->block_scale == BlockScale::kUnorm11)
              ASSERT_EQ(texels[i][c], static_cast<uint16_t>(expected) >> 5) << format->name << " texel " << i;
            else
              ASSERT_EQ(static_cast<int16_t>(texels[i][c]), expected < 0 ? -(-expected >> 5) : expected >> 5)
                  << format->name << " texel " << i;
          }
          continue;
        }
        const bool narrow = format->block_scale == BlockScale::kUnorm8 || srgb;
        for (int c = 0; c < 4; ++c)
          ASSERT_EQ(narrow ? texels[i][c] : texels[i][c] >> 8, mesa[4 * i + c])
              << format->name << " round " << round << " texel " << i << " channel " << c << " srgb " << srgb;
      }
    }
  }
}

#endif

}  // namespace
}  // namespace v3d::tmu
