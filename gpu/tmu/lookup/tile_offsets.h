/// Tile offsets say where the first columns and rows of tiled levels begin, for code that looks them up
/// instead of computing them. @see column() and row() in addressing.h
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "gpu/tmu/image/layout.h"

namespace v3d::tmu {

/// Of one size of texels and one tiling.
struct TileOffsets {
  static constexpr uint32_t kEntries = 32;
  /// Of x modulo 32, without what comes from whole columns of eight utiles, which the pitch decides on.
  alignas(64) uint16_t column[kEntries];
  /// Of y modulo 32, exclusive or with y shifted by row_shift() gives the offset of any y.
  uint16_t row[kEntries];
};

/// The shifts of the formula in addressing.h.
struct TileShifts {
  uint32_t x, y0, y1;
};
constexpr TileShifts tile_shifts(Tiling tiling) {
  const bool uif = tiling == Tiling::kUif || tiling == Tiling::kUifXor;
  if (tiling == Tiling::kLineartile) return {7, 6, 7};
  return {8, 7, uif ? 10u : tiling == Tiling::kUblinear1 ? 8u : 9u};
}

/// By log2 of the bytes of a texel and kind_of_tiles().
inline constexpr size_t kTileKinds = 4;
using AllTileOffsets = std::array<std::array<TileOffsets, kTileKinds>, 5>;
extern const AllTileOffsets kTileOffsets;
constexpr uint32_t kind_of_tiles(Tiling tiling) {
  return tiling == Tiling::kUifXor ? 3 : static_cast<uint32_t>(tiling) - 1;
}
/// From a row to its share of the offset, but for the lowest five bits.
uint32_t row_shift(int log2_cpp, Tiling tiling);

}  // namespace v3d::tmu
