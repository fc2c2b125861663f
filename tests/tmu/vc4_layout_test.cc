/// @file Layouts of VideoCore IV against the worked examples of vc4-graphics.md 5.4 and 5.5, and against
/// Mesa.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "gpu/tmu/image/layout.h"
#include "tests/tmu/gpu_memory.h"

namespace v3d::tmu {
namespace {

constexpr uint32_t kCpps[] = {1, 2, 4, 8};
constexpr Tiling kT = Tiling::kT, kLt = Tiling::kLineartileRows;

/// @param across  in utiles
uint64_t hash_image(Tiling tiling, uint32_t cpp, uint32_t across, uint32_t down) {
  const uint32_t width = across * vc4_utile_width(cpp), height = down * vc4_utile_height(cpp);
  uint64_t h = 0;
  for (uint32_t y = 0; y < height; ++y)
    for (uint32_t x = 0; x < width; ++x) h = h * 0x100000001b3 + texel_offset(tiling, cpp, width * cpp, x, y);
  return h;
}

TEST(Vc4Layout, WholeImageHashes) {
  const uint64_t t[4][3] = {{0x92d80d7a25055800, 0x6ba0e09dc7072000, 0x3c09d40939855800},
                            {0x1d36dd358ce55800, 0x4d60d0099d872000, 0xee24731839655800},
                            {0x4eefa28314535800, 0xe7fd87ef4f2f2000, 0xa87163e2bf735800},
                            {0xa229aaabec86d800, 0xb338ed53de392000, 0x3cf89a50974ed800}};
  const uint64_t lt[4][3] = {{0xd9f6946ee10d4e40, 0x6c8e55498f388020, 0xf3cc8b5f87400e80},
                             {0xe1e7f338ca690e40, 0x7692194b29f27020, 0x6fe1cd3d98c70e80},
                             {0xa8813e8f4a26ee40, 0xff3146e0da665820, 0x6cecd94864600e80},
                             {0xf9682950ff09de40, 0x02050cb66fb79020, 0xa4ae8f5ccc832e80}};
  const uint32_t tiles[3][2] = {{1, 3}, {2, 2}, {3, 1}}, utiles[3][2] = {{1, 2}, {3, 3}, {5, 4}};
  for (int i = 0; i < 4; ++i)
    for (int k = 0; k < 3; ++k) {
      EXPECT_EQ(hash_image(kT, kCpps[i], 8 * tiles[k][0], 8 * tiles[k][1]), t[i][k]) << kCpps[i] << " " << k;
      EXPECT_EQ(hash_image(kLt, kCpps[i], utiles[k][0], utiles[k][1]), lt[i][k]) << kCpps[i] << " " << k;
    }
}

TEST(Vc4Layout, WorkedOffsets) {
  const uint32_t utiles[][3] = {{1, 0, 0x40},    {0, 1, 0x100},   {4, 0, 0xc00},   {0, 4, 0x400},
                                {4, 4, 0x800},   {8, 0, 0x1000},  {16, 0, 0x2000}, {0, 8, 0x5800},
                                {4, 8, 0x5400},  {0, 12, 0x5c00}, {4, 12, 0x5000}, {8, 8, 0x4800},
                                {16, 8, 0x3800}, {0, 16, 0x6000}};
  const uint32_t texels[4][2] = {{0x5749, 0x2349}, {0x5752, 0x2352}, {0x5754, 0x2354}, {0x5758, 0x2358}};
  for (int i = 0; i < 4; ++i) {
    const uint32_t cpp = kCpps[i], uw = vc4_utile_width(cpp), uh = vc4_utile_height(cpp);
    const uint32_t stride = 3 * 8 * uw * cpp;
    for (const auto& [ux, uy, offset] : utiles)
      EXPECT_EQ(texel_offset(kT, cpp, stride, ux * uw, uy * uh), offset) << cpp << " " << ux << " " << uy;
    EXPECT_EQ(texel_offset(kT, cpp, stride, 5 * uw + 1, 11 * uh + 1), texels[i][0]);
    EXPECT_EQ(texel_offset(kT, cpp, stride, 17 * uw + 1, 3 * uh + 1), texels[i][1]);
  }
}

struct ExpectedLevel {
  Tiling tiling;
  uint32_t offset;                ///< from the start of the resource
  uint32_t stride = 0, size = 0;  ///< 0: not given
};

void check_levels(const ImageShape& shape, const std::vector<ExpectedLevel>& expected) {
  Level levels[kMaxLevels];
  ASSERT_EQ(shape.num_levels, expected.size());
  compute_vc4_levels(shape, levels);
  for (size_t i = 0; i < expected.size(); ++i) {
    SCOPED_TRACE(testing::Message() << shape.width << "x" << shape.height << " cpp " << shape.cpp << " level "
                                    << i);
    EXPECT_EQ(levels[i].tiling, expected[i].tiling);
    EXPECT_EQ(levels[i].offset, int64_t{expected[i].offset} - int64_t{expected[0].offset});
    if (expected[i].stride) {
      EXPECT_EQ(levels[i].stride, expected[i].stride);
    }
    if (expected[i].size) {
      EXPECT_EQ(levels[i].slice_size, expected[i].size);
    }
  }
}

TEST(Vc4Levels, WorkedLayouts) {
  const auto shape = [](uint32_t width, uint32_t height, uint32_t cpp, uint32_t num_levels) {
    return ImageShape{.width = width, .height = height, .depth = 1, .cpp = cpp, .num_levels = num_levels};
  };
  const auto blocks = [&](uint32_t width, uint32_t height, uint32_t num_levels) {
    ImageShape etc = shape(width, height, 8, num_levels);
    etc.block_width = etc.block_height = 4;
    return etc;
  };
  check_levels(shape(64, 64, 4, 7), {{kT, 0x2000, 256, 0x4000},
                                     {kT, 0x1000, 128, 0x1000},
                                     {kLt, 0xc00},
                                     {kLt, 0xb00},
                                     {kLt, 0xac0},
                                     {kLt, 0xa80},
                                     {kLt, 0xa40}});
  check_levels(shape(256, 256, 4, 9), {{kT, 0x16000},
                                       {kT, 0x6000},
                                       {kT, 0x2000},
                                       {kT, 0x1000},
                                       {kLt, 0xc00},
                                       {kLt, 0xb00},
                                       {kLt, 0xac0},
                                       {kLt, 0xa80},
                                       {kLt, 0xa40}});
  check_levels(shape(129, 65, 4, 8), {{kT, 0xb000, 640, 0xf000},
                                      {kT, 0x3000, 512, 0x8000},
                                      {kT, 0x1000, 256, 0x2000},
                                      {kLt, 0x800, 128, 0x800},
                                      {kLt, 0x600},
                                      {kLt, 0x580},
                                      {kLt, 0x540},
                                      {kLt, 0x500}});
  check_levels(shape(100, 30, 2, 7), {{kT, 0x1000, 256, 0x2000},
                                      {kLt, 0x800, 128, 0x800},
                                      {kLt, 0x600},
                                      {kLt, 0x580},
                                      {kLt, 0x540},
                                      {kLt, 0x500},
                                      {kLt, 0x4c0}});
  check_levels(shape(16, 16, 4, 5), {{kLt, 0x1000}, {kLt, 0xf00}, {kLt, 0xec0}, {kLt, 0xe80}, {kLt, 0xe40}});
  check_levels(shape(256, 256, 1, 6), {{kT, 0x6000},
                                       {kT, 0x2000, 128, 0x4000},
                                       {kT, 0x1000, 64, 0x1000},
                                       {kLt, 0xc00},
                                       {kLt, 0xb00},
                                       {kLt, 0xac0}});
  check_levels(blocks(64, 64, 7), {{kLt, 0x1000, 128, 0x800},
                                   {kLt, 0xe00},
                                   {kLt, 0xd80},
                                   {kLt, 0xd40},
                                   {kLt, 0xd00},
                                   {kLt, 0xcc0},
                                   {kLt, 0xc80}});
  check_levels(
      blocks(33, 17, 6),
      {{kLt, 0x1000, 80, 0x280}, {kLt, 0xf00}, {kLt, 0xe80}, {kLt, 0xe40}, {kLt, 0xe00}, {kLt, 0xdc0}});
  check_levels(shape(17, 17, 4, 1), {{kT, 0, 128, 0x1000}});
  check_levels(shape(1920, 1080, 4, 1), {{kT, 0, 7680, 0x7f8000}});
}

TEST(Vc4Levels, ExtentsAreThoseOfTheTrueSize) {
  Level levels[3];
  compute_vc4_levels({.width = 129, .height = 9, .depth = 1, .cpp = 4, .num_levels = 3}, levels);
  EXPECT_EQ(levels[2].width, 32u);
  EXPECT_EQ(levels[2].padded_width, 64u);
  EXPECT_EQ(levels[2].height, 2u);
}

class Vc4Rectangles : public testing::Test {
 protected:
  static constexpr GpuAddr kBase = GpuMemory::kBase;
  static constexpr uint32_t kSize = 1 << 18;
  Vc4Rectangles() { gpu_.randomize(kSize, 2); }

  GpuMemory gpu_;
};

TEST_F(Vc4Rectangles, LoadAndStoreBothLayouts) {
  const Memory memory = gpu_.memory();
  std::minstd_rand random(3);
  for (const uint32_t cpp : kCpps) {
    for (const Tiling tiling : {kT, kLt}) {
      const uint32_t utiles = tiling == kT ? 24 : 5, width = utiles * vc4_utile_width(cpp),
                     height = utiles * vc4_utile_height(cpp);
      const Surface surface{kBase, tiling, cpp, width * cpp};
      for (int round = 0; round < 8; ++round) {
        const uint32_t x = round ? random() % width : 0, y = round ? random() % height : 0;
        const uint32_t w = round ? 1 + random() % (width - x) : width,
                       h = round ? 1 + random() % (height - y) : height;
        std::vector<uint8_t> rows(size_t{w} * cpp * h),
            expected(memory.host(kBase), memory.host(kBase) + kSize);
        load_rectangle(memory, surface, x, y, w, h, rows.data(), size_t{w} * cpp);
        for (uint32_t j = 0; j < h; ++j)
          for (uint32_t i = 0; i < w * cpp; ++i) {
            uint8_t& byte = rows[size_t{j} * w * cpp + i];
            uint8_t& stored = expected[texel_offset(tiling, cpp, width * cpp, x + i / cpp, y + j) + i % cpp];
            ASSERT_EQ(byte, stored);
            byte = stored = static_cast<uint8_t>(~byte);
          }
        // Storing the inverted texels changes these texels and nothing else.
        store_rectangle(memory, surface, x, y, w, h, rows.data(), size_t{w} * cpp);
        ASSERT_EQ(std::memcmp(memory.host(kBase), expected.data(), kSize), 0);
      }
    }
  }
}

#ifdef V3DEMU_TEST_WITH_MESA_VC4

struct pipe_box {
  int32_t x, width, y, height;
  int16_t z, depth;
};
extern "C" void vc4_load_tiled_image(void* dst, uint32_t dst_stride, void* src, uint32_t src_stride,
                                     uint8_t tiling, int cpp, const pipe_box* box);

TEST_F(Vc4Rectangles, EqualMesa) {
  const Memory memory = gpu_.memory();
  std::minstd_rand random(4);
  for (const uint32_t cpp : kCpps) {
    for (int round = 0; round < 16; ++round) {
      const Tiling tiling = round % 2 ? kT : kLt;
      const uint8_t mesa_tiling = tiling == kT ? 1 : 2;  // the memory formats of the tile buffer's packets
      const uint32_t unit = tiling == kT ? 8 : 1;
      const uint32_t width = unit * vc4_utile_width(cpp) * (1 + random() % (tiling == kT ? 3 : 10)),
                     height = unit * vc4_utile_height(cpp) * (1 + random() % (tiling == kT ? 3 : 10));
      const pipe_box box{0, static_cast<int32_t>(width), 0, static_cast<int32_t>(height), 0, 1};
      const uint32_t pitch = width * cpp;
      std::vector<uint8_t> mesa(size_t{pitch} * height), ours(mesa.size());
      vc4_load_tiled_image(mesa.data(), pitch, memory.host(kBase), pitch, mesa_tiling, static_cast<int>(cpp),
                           &box);
      load_rectangle(memory, {kBase, tiling, cpp, pitch}, 0, 0, width, height, ours.data(), pitch);
      ASSERT_EQ(mesa, ours) << "tiling " << int{mesa_tiling} << " cpp " << cpp;
    }
  }
}

#endif

}  // namespace
}  // namespace v3d::tmu
