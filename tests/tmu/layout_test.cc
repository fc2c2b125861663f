#include "gpu/tmu/image/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/tmu/gpu_memory.h"

namespace v3d::tmu {
namespace {

constexpr uint32_t kCpps[] = {1, 2, 4, 8, 16};

uint64_t hash_image(Tiling tiling, uint32_t cpp, uint32_t hb, uint32_t width, uint32_t height) {
  uint64_t h = 0;
  for (uint32_t y = 0; y < height; ++y)
    for (uint32_t x = 0; x < width; ++x) h = h * 0x100000001b3 + texel_offset(tiling, cpp, hb, x, y);
  return h;
}

TEST(Layout, WholeImageHashes) {
  // texture.md 1.3: XOR 8bw x 32bh, UIF 8bw x 20bh, UB2 2bw x 3bh, UB1 bw x 3bh, LT row and column of 5
  // utiles.
  const uint64_t expected[5][6] = {{0x08005ce18c1c8000, 0xc8b03d8bff91d000, 0xb65527f16b24ab00,
                                    0x0c9972aa13975580, 0x9cc7b60abbc0a3a0, 0x9986328066f123a0},
                                   {0xc1f6117aae1c8000, 0xbf0c8ed430d1d000, 0x298a8086964cab00,
                                    0x7e5871b599c45580, 0x84c81656173213a0, 0x16345a15fe9693a0},
                                   {0x7a63aa9f7abc8000, 0x311be19fceb5d000, 0x5a41b56d97c76b00,
                                    0x0216578c1574f580, 0xd481d368d8a62ba0, 0xdd7b38d8a9634ba0},
                                   {0x48676ad716fc8000, 0xc000d8eebf5dd000, 0x9e1ce50412abeb00,
                                    0xc4729785e14a7580, 0x5eac4d32134f07a0, 0x41229cbda7ec27a0},
                                   {0x90ad3a5a40748000, 0xff94c8ea70c8d000, 0x62f8e575adf57b00,
                                    0x4aba9673e2e74d80, 0x8a7b1beb34802da0, 0x80ee63c5592db5a0}};
  for (int i = 0; i < 5; ++i) {
    const uint32_t cpp = kCpps[i], uw = utile_width(cpp), uh = utile_height(cpp);
    const uint32_t bw = 2 * uw, bh = 2 * uh;
    EXPECT_EQ(hash_image(Tiling::kUifXor, cpp, 32, 8 * bw, 32 * bh), expected[i][0]) << cpp;
    EXPECT_EQ(hash_image(Tiling::kUif, cpp, 20, 8 * bw, 20 * bh), expected[i][1]) << cpp;
    EXPECT_EQ(hash_image(Tiling::kUblinear2, cpp, 0, 2 * bw, 3 * bh), expected[i][2]) << cpp;
    EXPECT_EQ(hash_image(Tiling::kUblinear1, cpp, 0, bw, 3 * bh), expected[i][3]) << cpp;
    EXPECT_EQ(hash_image(Tiling::kLineartile, cpp, 0, 5 * uw, uh), expected[i][4]) << cpp;
    EXPECT_EQ(hash_image(Tiling::kLineartile, cpp, 0, uw, 5 * uh), expected[i][5]) << cpp;
  }
}

TEST(Layout, WorkedOffsets) {
  const uint32_t last[5][3] = {{0x95c9, 0xc5c9, 0x85c9},
                               {0x95d2, 0xc5d2, 0x85d2},
                               {0x95d4, 0xc5d4, 0x85d4},
                               {0x95e8, 0xc5e8, 0x85e8},
                               {0x95f0, 0xc5f0, 0x85f0}};
  const uint32_t line[5] = {0x89, 0x92, 0x94, 0xa8, 0xb0};
  for (int i = 0; i < 5; ++i) {
    const uint32_t cpp = kCpps[i], uw = utile_width(cpp), uh = utile_height(cpp);
    const uint32_t bw = 2 * uw, bh = 2 * uh;
    EXPECT_EQ(texel_offset(Tiling::kUblinear2, cpp, 0, bw, 0), 0x100u);
    EXPECT_EQ(texel_offset(Tiling::kUif, cpp, 20, 4 * bw, bh), 0x5400u);
    EXPECT_EQ(texel_offset(Tiling::kUif, cpp, 32, 4 * bw, bh), 0x8400u);
    EXPECT_EQ(texel_offset(Tiling::kUifXor, cpp, 32, 4 * bw, bh), 0xc400u);
    EXPECT_EQ(texel_offset(Tiling::kUifXor, cpp, 32, 8 * bw, 0), 0x10000u);
    const uint32_t x = 5 * bw + uw + 1, y = 17 * bh + uh + 1;
    EXPECT_EQ(texel_offset(Tiling::kUif, cpp, 20, x, y), last[i][0]);
    EXPECT_EQ(texel_offset(Tiling::kUif, cpp, 32, x, y), last[i][1]);
    EXPECT_EQ(texel_offset(Tiling::kUifXor, cpp, 32, x, y), last[i][2]);
    EXPECT_EQ(texel_offset(Tiling::kLineartile, cpp, 0, 2 * uw + 1, 1), line[i]);
    EXPECT_EQ(texel_offset(Tiling::kLineartile, cpp, 0, 1, 2 * uh + 1), line[i]);
    EXPECT_EQ(texel_offset(Tiling::kRaster, cpp, 1000, 7, 3), 3000 + 7 * cpp);
  }
}

TEST(Layout, UbPad) {
  const std::pair<uint32_t, uint32_t> pads[] = {
      {27, 5}, {28, 4}, {29, 3}, {30, 2}, {31, 1}, {33, 5}, {34, 4}, {35, 3}, {36, 2}, {37, 1},
      {59, 5}, {60, 4}, {61, 3}, {62, 2}, {63, 1}, {65, 5}, {66, 4}, {67, 3}, {68, 2}, {69, 1},
      {91, 5}, {92, 4}, {93, 3}, {94, 2}, {95, 1}, {97, 5}, {98, 4}, {99, 3}, {100, 2}};
  for (uint32_t rows = 0; rows <= 100; ++rows) {
    const auto* found =
        std::find_if(std::begin(pads), std::end(pads), [&](const auto& p) { return p.first == rows; });
    EXPECT_EQ(ub_pad(rows), found == std::end(pads) ? 0 : found->second) << rows;
  }
}

struct ExpectedLevel {
  Tiling tiling;
  uint32_t offset;             // from the start of the resource
  uint32_t padded_height = 0;  // 0: not given
  uint32_t size = 0;
};

void check_levels(const ImageShape& shape, const std::vector<ExpectedLevel>& expected) {
  Level levels[kMaxLevels];
  ASSERT_EQ(shape.num_levels, expected.size());
  compute_levels(shape, levels);
  for (size_t i = 0; i < expected.size(); ++i) {
    SCOPED_TRACE(testing::Message() << shape.width << "x" << shape.height << "x" << shape.depth << " cpp "
                                    << shape.cpp << " level " << i);
    EXPECT_EQ(levels[i].tiling, expected[i].tiling);
    EXPECT_EQ(levels[i].offset, int64_t{expected[i].offset} - int64_t{expected[0].offset});
    if (expected[i].padded_height) {
      EXPECT_EQ(levels[i].padded_height, expected[i].padded_height);
    }
    if (expected[i].size) {
      EXPECT_EQ(levels[i].slice_size, expected[i].size);
    }
  }
}

constexpr Tiling kUif = Tiling::kUif, kXor = Tiling::kUifXor, kUb1 = Tiling::kUblinear1,
                 kUb2 = Tiling::kUblinear2, kLt = Tiling::kLineartile, kRaster = Tiling::kRaster;

TEST(Levels, WorkedLayouts) {  // texture.md 1.5
  check_levels({.width = 64, .height = 64, .depth = 1, .cpp = 4, .num_levels = 7},
               {{kUif, 0x2000, 64, 0x4000},
                {kUif, 0x1000, 32, 0x1000},
                {kUb2, 0xc00, 16, 0x400},
                {kUb1, 0xb00, 8, 0x100},
                {kLt, 0xac0},
                {kLt, 0xa80},
                {kLt, 0xa40}});
  check_levels({.width = 257, .height = 129, .depth = 1, .cpp = 4, .num_levels = 9},
               {{kUif, 0xb000, 136, 0x26400},
                {kUif, 0x3000, 64, 0x8000},
                {kUif, 0x1000, 32, 0x2000},
                {kUif, 0x800, 16, 0x800},
                {kUb2, 0x600, 8, 0x200},
                {kLt, 0x580, 4, 0x80},
                {kLt, 0x540},
                {kLt, 0x500},
                {kLt, 0x4c0}});
  check_levels({.width = 9, .height = 9, .depth = 1, .cpp = 1, .num_levels = 4},
               {{kUb1, 0x1000, 16, 0x100}, {kLt, 0xfc0}, {kLt, 0xf80}, {kLt, 0xf40}});
  check_levels({.width = 1024, .height = 1024, .depth = 1, .cpp = 4, .num_levels = 11},
               {{kXor, 0x156000, 1024, 0x400000},
                {kXor, 0x56000, 512, 0x100000},
                {kXor, 0x16000, 256, 0x40000},
                {kUif, 0x6000, 128, 0x10000},
                {kUif, 0x2000},
                {kUif, 0x1000},
                {kUb2, 0xc00},
                {kUb1, 0xb00},
                {kLt, 0xac0},
                {kLt, 0xa80},
                {kLt, 0xa40}});
  check_levels({.width = 1920, .height = 1080, .depth = 1, .cpp = 4, .uif_top = true},
               {{kUif, 0, 1080, 0x7e9000}});
  check_levels({.width = 128, .height = 128, .depth = 1, .cpp = 2, .num_levels = 8},
               {{kUif, 0x3000, 128, 0x8000},
                {kUif, 0x1000, 64, 0x2000},
                {kUb2, 0x800, 32, 0x800},
                {kUb1, 0x600, 16, 0x200},
                {kLt, 0x580, 8, 0x80},
                {kLt, 0x540},
                {kLt, 0x500},
                {kLt, 0x4c0}});
  check_levels({.width = 32, .height = 32, .depth = 32, .cpp = 4, .num_levels = 6},
               {{kUif, 0x5000, 0, 0x1000},
                {kUb2, 0x1000, 0, 0x400},
                {kUb1, 0x800, 0, 0x100},
                {kLt, 0x700, 0, 0x40},
                {kLt, 0x680},
                {kLt, 0x640}});
  check_levels(
      {.width = 17, .height = 5, .depth = 9, .cpp = 4, .num_levels = 5},
      {{kUif, 0x1000, 8, 0x400}, {kLt, 0xe00, 0, 0x80}, {kLt, 0xd80, 0, 0x40}, {kLt, 0xd40}, {kLt, 0xd00}});
  check_levels({.width = 33, .height = 17, .depth = 1, .cpp = 4, .multisample = true},
               {{kUif, 0, 40, 0x3c00}});
  check_levels({.width = 100, .height = 1, .depth = 1, .cpp = 4, .num_levels = 7, .raster = true},
               {{kRaster, 0x1000, 1, 448},
                {kRaster, 0xf00, 1, 256},
                {kRaster, 0xe80, 1, 128},
                {kRaster, 0xe40, 1, 64},
                {kRaster, 0xe00, 1, 64},
                {kRaster, 0xdc0, 1, 64},
                {kRaster, 0xd80, 1, 64}});
  check_levels(
      {.width = 50, .height = 30, .depth = 1, .cpp = 8, .block_width = 4, .block_height = 4, .num_levels = 6},
      {{kUb2, 0x1000, 8, 0x400},
       {kUb1, 0xf00, 4, 0x100},
       {kLt, 0xec0},
       {kLt, 0xe80},
       {kLt, 0xe40},
       {kLt, 0xe00}});
  check_levels({.width = 256,
                .height = 256,
                .depth = 1,
                .cpp = 16,
                .block_width = 4,
                .block_height = 4,
                .num_levels = 9},
               {{kUif, 0x6000, 64, 0x10000},
                {kUif, 0x2000},
                {kUif, 0x1000},
                {kUb2, 0xc00},
                {kUb1, 0xb00},
                {kLt, 0xac0},
                {kLt, 0xa80},
                {kLt, 0xa40},
                {kLt, 0xa00}});
  check_levels({.width = 12, .height = 12, .depth = 1, .cpp = 4, .uif_top = true}, {{kUif, 0, 16, 0x800}});
}

TEST(Levels, ExtentsAreMinifiedAndNotPowersOfTwo) {
  Level levels[6];
  compute_levels({.width = 257, .height = 9, .depth = 5, .cpp = 4, .num_levels = 6}, levels);
  EXPECT_EQ(levels[2].width, 64u);
  EXPECT_EQ(levels[2].height, 2u);
  EXPECT_EQ(levels[1].depth, 2u);
  EXPECT_EQ(levels[5].height, 1u);
}

TEST(Levels, AnySizeIsHarmless) {
  Level levels[kMaxLevels];
  std::minstd_rand random(1);
  for (int i = 0; i < 2000; ++i) {
    ImageShape shape{.width = 0, .height = 0, .depth = 0, .cpp = 1u << random() % 5};
    shape.num_levels = kMaxLevels;
    for (uint32_t* size : {&shape.width, &shape.height, &shape.depth}) *size = random() & 0x3fff;
    shape.raster = random() % 4 == 0;
    if (shape.raster) shape.width = random() & 0xfffffff;
    if (random() % 8 == 0) shape.width = shape.height = shape.depth = 0;
    compute_levels(shape, levels);
    for (const Level& level : levels) EXPECT_GE(level.width, 1u);
  }
}

class Rectangles : public testing::Test {
 protected:
  static constexpr GpuAddr kBase = GpuMemory::kBase;
  static constexpr uint32_t kSize = 1 << 20;
  Rectangles() { gpu_.randomize(kSize, 2); }
  Memory memory() { return gpu_.memory(); }

  GpuMemory gpu_;
};

TEST_F(Rectangles, LoadAndStoreEveryLayout) {
  std::minstd_rand random(3);
  for (uint32_t cpp : kCpps) {
    const uint32_t uw = utile_width(cpp), uh = utile_height(cpp);
    const struct {
      Tiling tiling;
      uint32_t stride_or_height, width, height;
    } images[] = {{kRaster, 91 * cpp, 90, 50},     {kLt, 0, 9 * uw, uh},       {kLt, 0, uw, 9 * uh},
                  {kUb1, 0, 2 * uw, 10 * uh},      {kUb2, 0, 4 * uw, 10 * uh}, {kUif, 9, 20 * uw, 2 * 9 * uh},
                  {kXor, 32, 24 * uw, 2 * 32 * uh}};
    for (const auto& image : images) {
      const Surface surface{kBase, image.tiling, cpp, image.stride_or_height};
      for (int round = 0; round < 8; ++round) {
        const uint32_t x = round ? random() % image.width : 0, y = round ? random() % image.height : 0;
        const uint32_t w = round ? 1 + random() % (image.width - x) : image.width;
        const uint32_t h = round ? 1 + random() % (image.height - y) : image.height;
        const size_t pitch = size_t{w} * cpp + 3;
        std::vector<uint8_t> rows(pitch * h, 0xcd);
        load_rectangle(memory(), surface, x, y, w, h, rows.data(), pitch);
        for (uint32_t j = 0; j < h; ++j) {
          for (uint32_t i = 0; i < w; ++i) {
            const uint32_t offset = texel_offset(image.tiling, cpp, image.stride_or_height, x + i, y + j);
            ASSERT_EQ(memcmp(&rows[j * pitch + i * cpp], memory().host(kBase + offset), cpp), 0);
          }
          for (size_t i = size_t{w} * cpp; i < pitch; ++i) ASSERT_EQ(rows[j * pitch + i], 0xcd);
        }
        // Storing the inverted texels changes these texels and nothing else.
        std::vector<uint8_t> expected(memory().host(kBase), memory().host(kBase) + kSize);
        for (uint32_t j = 0; j < h; ++j)
          for (uint32_t i = 0; i < w * cpp; ++i) {
            uint8_t& byte = rows[j * pitch + i];
            byte = static_cast<uint8_t>(~byte);
            expected[texel_offset(image.tiling, cpp, image.stride_or_height, x + i / cpp, y + j) + i % cpp] =
                byte;
          }
        store_rectangle(memory(), surface, x, y, w, h, rows.data(), pitch);
        ASSERT_EQ(memcmp(memory().host(kBase), expected.data(), kSize), 0);
      }
    }
  }
}

#ifdef V3DEMU_TEST_WITH_MESA

struct pipe_box {
  int32_t x, width, y, height;
  int16_t z, depth;
};
extern "C" void v3d_load_tiled_image(void* dst, uint32_t dst_stride, void* src, uint32_t src_stride,
                                     unsigned tiling, int cpp, uint32_t image_h, const pipe_box* box);

TEST_F(Rectangles, EqualMesa) {
  std::minstd_rand random(4);
  for (uint32_t cpp : kCpps) {
    for (int round = 0; round < 24; ++round) {
      const auto tiling = static_cast<Tiling>(1 + round % 5);
      const uint32_t uw = utile_width(cpp), uh = utile_height(cpp);
      const uint32_t rows_ub = tiling == kXor ? 32 : 1 + random() % 30;
      uint32_t width = uw * (1 + random() % 24), height = rows_ub * 2 * uh;
      if (tiling == kLt) random() % 2 ? width = uw : height = uh;
      if (tiling == kUb1) width = 2 * uw;
      if (tiling == kUb2) width = 4 * uw;
      const pipe_box box{0, static_cast<int32_t>(width), 0, static_cast<int32_t>(height), 0, 1};
      const size_t pitch = size_t{width} * cpp;
      std::vector<uint8_t> mesa(pitch * height), ours(pitch * height);
      v3d_load_tiled_image(mesa.data(), static_cast<uint32_t>(pitch), memory().host(kBase), 0,
                           static_cast<unsigned>(tiling), static_cast<int>(cpp), height, &box);
      load_rectangle(memory(), {kBase, tiling, cpp, rows_ub}, 0, 0, width, height, ours.data(), pitch);
      ASSERT_EQ(mesa, ours) << "tiling " << static_cast<int>(tiling) << " cpp " << cpp;
    }
  }
}

#endif

}  // namespace
}  // namespace v3d::tmu
