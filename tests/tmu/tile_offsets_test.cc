#include "gpu/tmu/lookup/tile_offsets.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace v3d::tmu {
namespace {

constexpr Tiling kTilings[] = {Tiling::kLineartile, Tiling::kUblinear1, Tiling::kUblinear2, Tiling::kUif};

TEST(TileOffsets, AreThoseOfImages) {
  constexpr uint32_t kBlocks = 32;  // rows of UIF blocks
  for (int log2_cpp = 0; log2_cpp < 5; ++log2_cpp)
    for (const Tiling tiling : kTilings) {
      const uint32_t cpp = 1u << log2_cpp;
      const TileOffsets& offsets = kTileOffsets[static_cast<size_t>(log2_cpp)][kind_of_tiles(tiling)];
      const uint32_t columns = tiling == Tiling::kUblinear1 ? 2 : tiling == Tiling::kUblinear2 ? 4 : 8;
      for (uint32_t x = 0; x < std::min(columns * utile_width(cpp), TileOffsets::kEntries); ++x)
        EXPECT_EQ(offsets.column[x], texel_offset(tiling, cpp, kBlocks, x, 0)) << cpp << " " << x;
      const uint32_t rows = tiling == Tiling::kLineartile ? utile_height(cpp) : 100;
      for (uint32_t y = 0; y < rows; ++y)
        EXPECT_EQ(offsets.row[y % TileOffsets::kEntries] ^ y << row_shift(log2_cpp, tiling),
                  texel_offset(tiling, cpp, kBlocks, 0, y))
            << cpp << " " << y;
    }
}

TEST(TileOffsets, AreTheSameWithBitsFlipped) {
  EXPECT_EQ(kind_of_tiles(Tiling::kUifXor), kind_of_tiles(Tiling::kUif));
  EXPECT_EQ(row_shift(2, Tiling::kUifXor), row_shift(2, Tiling::kUif));
}

}  // namespace
}  // namespace v3d::tmu
