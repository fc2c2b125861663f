/// The image that a tile is loaded from or stored to, strip by strip (two pixel rows), in 8x2 blocks.
/// Internal to the TLB.
#pragma once

#include "gpu/tlb/texel_rows.h"
#include "gpu/tlb/tile.h"
#include "gpu/tmu/layout.h"

namespace v3d::tlb {

/// Rows of raster images and utiles of 32-bit texels are accessed in place; all others, and blocks that reach
/// over the frame's edge, through rows on the host.
class TileImage {
 public:
  /// @param all_samples  the image holds 2x2 texels for each pixel, one per sample
  TileImage(Memory memory, const Tile& tile, const LoadStore& packet, uint32_t cpp, bool all_samples);

  /// Makes the strip at row y (even, of the tile) current; get() needs fetch.
  void begin_strip(uint32_t y, bool fetch);
  /// Completes the put()s of the current strip.
  void flush_strip();

  /// Texels of the block whose first pixel is x (a multiple of 8, of the tile).
  void get(uint32_t x, uint32_t sample, Lanes* texel) const;
  void put(uint32_t x, uint32_t sample, const Lanes* texel);

 private:
  enum class Access : uint8_t { kHostRows, kRowsInPlace, kUtilesInPlace };
  static constexpr uint32_t kPitch = 2 * kMaxTileSize * 16;  // bytes of the longest row
  static constexpr uint32_t kPieces = kMaxTileSize / 4;      // half utiles in a strip

  uint8_t* piece(uint32_t x) const { return memory_.host(surface_.address + piece_x_[x / 4] + piece_y_); }

  Memory memory_;
  const Tile& tile_;
  tmu::Surface surface_;
  uint32_t scale_;  // texels per pixel in each direction
  Access best_;     // of strips that lie inside the frame
  Access access_ = Access::kHostRows;
  uint32_t y_ = 0, rows_in_frame_ = 0;
  // A piece starts at the sum of both: XOR flips a bit of the row that no tile straddles.
  uint32_t piece_x_[kPieces], piece_y_ = 0;
  uint8_t* rows_[4] = {};
  alignas(64) uint8_t host_rows_[4][kPitch] = {};
};

}  // namespace v3d::tlb
