/// A TileImage is what a tile is loaded from or stored to, strip by strip (two pixel rows), in 8x2 blocks. It
/// is internal to the TLB.
#pragma once

#include <cstring>

#include "gpu/tlb/texel_block.h"
#include "gpu/tlb/tile.h"
#include "gpu/tmu/image/layout.h"

namespace v3d::tlb {

/// Blocks inside the frame are accessed in place. Strips that reach over the frame's edge, and multisampled
/// and flipped images, go through rows on the host.
class TileImage {
 public:
  /// @param all_samples  the image holds 2x2 texels for each pixel, one per sample
  TileImage(Memory memory, const Tile& tile, const LoadStore& packet, uint32_t cpp, bool all_samples);

  /// Makes the strip at row y (even, of the tile) current; get() needs fetch.
  void begin_strip(uint32_t y, bool fetch);
  /// Completes the put()s of the current strip.
  void flush_strip();

  /// Whether the tile is one of whole utiles of four-byte texels, each in one piece of memory.
  bool in_utiles() const { return in_utiles_; }
  /// Stores the utiles of the four rows at y.
  /// @param texels  (block, half): the words of its upper two rows, 0, or its lower ones, 1, as in a plane
  /// @param kept    bits that memory keeps; of the texels they are 0
  /// @param of      makes texels of the words
  template <typename Texels, typename Of>
  void put_utiles(uint32_t y, uint32_t kept, const Texels& texels, const Of& of) {
    for_utiles(y, [&](uint8_t* at, uint32_t block, uint32_t word) {
      store_utile_4(texels(block, 0) + word, texels(block, 1) + word, kept, at, of);
    });
  }
  /// The same where all texels are equal. What memory holds already, as where nothing was drawn in the frame
  /// before either, is not stored again: to look takes less, and leaves nothing to be written back.
  void set_utiles(uint32_t y, uint32_t kept, const Lanes& texels) {
    for_utiles(y, [&](uint8_t* at, uint32_t, uint32_t) {
      Lanes old;
      std::memcpy(&old, at, sizeof(old));
      set_words(at, texels | (old & kept));
    });
  }
  /// Loads them. @param words  (block, half): where they go
  template <typename Words, typename Of>
  void get_utiles(uint32_t y, const Words& words, const Of& of) {
    for_utiles(y, [&](const uint8_t* at, uint32_t block, uint32_t word) {
      load_utile_4(at, words(block, 0) + word, words(block, 1) + word, of);
    });
  }

  /// Whether the tile is one of whole blocks of four-byte texels, whose rows are adjacent in memory.
  bool in_rows() const { return in_rows_; }
  /// Stores the two rows at y. @param texels  (block): its words, as in a plane
  template <typename Texels, typename Of>
  void put_rows(uint32_t y, const Texels& texels, const Of& of) {
    for_rows<kBlockWidth>(y, [&](uint8_t* upper, uint8_t* lower, uint32_t x) {
      store_rows_4(texels(x / kBlockWidth), upper, lower, of);
    });
  }
  /// The same where all texels are equal, as set_utiles() does it.
  void set_rows(uint32_t y, const Lanes& texels) {
    for_rows<kLanes>(y, [&](uint8_t* upper, uint8_t* lower, uint32_t x) {
      for (uint8_t* const at : {upper, lower})
        x + kLanes <= tile_.live_width ? set_words(at, texels) : set_block_row(at, texels);
    });
  }
  /// Loads them. @param words  (block): where they go
  template <typename Words, typename Of>
  void get_rows(uint32_t y, const Words& words, const Of& of) {
    for_rows<kBlockWidth>(y, [&](const uint8_t* upper, const uint8_t* lower, uint32_t x) {
      load_rows_4(upper, lower, words(x / kBlockWidth), of);
    });
  }

  /// Texels of the block whose first pixel is x (a multiple of 8, of the tile).
  void get(uint32_t x, uint32_t sample, Lanes* texel) {
    if (access_ == Access::kTiledWords)
      store_lanes(load_tiled_block_4(piece_in_place(x / 4), piece_in_place(x / 4 + 1)), texel);
    else if (access_ == Access::kRasterWords)
      store_lanes(load_raster_block_4(piece_in_place(x / 4), piece_in_place(x / 4) + lower_in_place_), texel);
    else
      get_any(x, sample, texel);
  }
  void put(uint32_t x, uint32_t sample, const Lanes* texel) {
    if (access_ == Access::kTiledWords)
      store_tiled_block_4(texel[0], piece_in_place(x / 4), piece_in_place(x / 4 + 1));
    else if (access_ == Access::kRasterWords)
      store_raster_block_4(texel[0], piece_in_place(x / 4), piece_in_place(x / 4) + lower_in_place_);
    else
      put_any(x, sample, texel);
  }

 private:
  static constexpr uint32_t kBlockWidth = 8;
  static constexpr uint32_t kPitch = 2 * kMaxTileSize * 16;  // bytes of the longest row
  static constexpr uint32_t kUtileBytes = 64, kUifBlockBytes = 4 * kUtileBytes;
  static constexpr uint32_t kUifColumnBlocks = 4;        // blocks in a row of a column
  static constexpr uint32_t kPieces = kMaxTileSize / 2;  // of 16-byte texels

  /// Unless memory holds them.
  static void set_words(uint8_t* at, const Lanes& words) {
    Lanes old;
    std::memcpy(&old, at, sizeof(old));
    if (nonzero(old ^ words) != 0) std::memcpy(at, &words, sizeof(words));
  }
  /// The same of a row of a block.
  static void set_block_row(uint8_t* at, const Lanes& words) {
    constexpr size_t kBytes = sizeof(words) / 2;
    if (std::memcmp(at, &words, kBytes) != 0) std::memcpy(at, &words, kBytes);
  }

  /// @param fn  (at, block, word) with where a utile is, and where its words begin in those of the block
  template <typename Fn>
  void for_utiles(uint32_t y, const Fn& fn) {
    place_utiles(y);
    const Memory memory = memory_;
    const GpuAddr row = surface_.address + piece_y_;
    const uint32_t width = tile_.live_width;
    for (uint32_t x = 0, block = 0; x < width; x += 8, ++block) {
      fn(memory.host(row + piece_x_[x / 4]), block, 0);
      if (x + 4 < width) fn(memory.host(row + piece_x_[x / 4 + 1]), block, kLanes / 2);
    }
  }
  /// @tparam kWidth  pixels of a piece, but for the last one of a row
  /// @param fn  (upper, lower, x) with where the rows of a piece are, and the tile's pixel that begins it
  template <uint32_t kWidth, typename Fn>
  void for_rows(uint32_t y, const Fn& fn) {
    const Memory memory = memory_;
    const GpuAddr row = surface_.address + y * surface_.stride_or_height + piece_x_[0];
    const uint32_t width = tile_.live_width;
    for (uint32_t x = 0; x < width; x += kWidth) {
      uint8_t* const upper = memory.host(row + 4 * x);
      fn(upper, upper + lower_in_place_, x);
    }
  }
  void place_pieces(uint32_t y);
  void place_pieces_of_columns(uint32_t y);
  uint32_t row_offset(uint32_t y) const;
  bool in_columns() const {
    return surface_.tiling == tmu::Tiling::kUif || surface_.tiling == tmu::Tiling::kUifXor;
  }
  void place_rows();
  void place_row_of_utiles(uint32_t y);
  void place_utiles(uint32_t y);
  void get_any(uint32_t x, uint32_t sample, Lanes* texel);
  void put_any(uint32_t x, uint32_t sample, const Lanes* texel);
  uint8_t* piece_in_place(uint32_t index) const {
    return memory_.host(surface_.address + piece_x_[index] + piece_y_);
  }
  template <bool kLoad>
  void move_strip();
  template <bool kLoad>
  void move_rows(uint32_t line, uint32_t image_row, uint32_t rows);
  BlockRows block_rows(uint32_t x);
  BlockRows sample_rows(uint32_t x, uint32_t sample);

  Memory memory_;
  const Tile& tile_;
  tmu::Surface surface_;
  uint32_t piece_width_;  // texels
  uint32_t scale_;        // texels per pixel in each direction
  bool whole_blocks_;     // no block of the tile reaches over the frame's right edge
  bool flipped_;
  uint32_t height_;  // pixel rows of the image; of flipped ones alone
  ptrdiff_t lower_in_place_;
  bool in_place_ = false, in_utiles_, in_rows_;
  enum class Access : uint8_t { kTiledWords, kRasterWords, kAny } access_ = Access::kAny;
  uint32_t y_ = 0, rows_in_frame_ = 0;
  // A piece starts at the sum of both: XOR flips a bit of the row that no tile straddles. T tiles run back
  // and forth, and so do their subtiles, so that there the pieces are placed anew for each row of these.
  uint32_t placed_row_ = 0;  // of utiles
  uint32_t piece_x_[kPieces], piece_y_ = 0;
  alignas(64) uint8_t host_rows_[4][kPitch];  // blocks in place do not look at them
};

}  // namespace v3d::tlb
