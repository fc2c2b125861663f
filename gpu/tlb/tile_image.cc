#include "gpu/tlb/tile_image.h"

#include <algorithm>
#include <cstring>

#include "gpu/base/t_tiles.h"

namespace v3d::tlb {

TileImage::TileImage(Memory memory, const Tile& tile, const LoadStore& packet, uint32_t cpp, bool all_samples)
    : memory_(memory),
      tile_(tile),
      surface_{packet.address, static_cast<tmu::Tiling>(packet.memory_format), cpp, packet.stride_or_height},
      piece_width_(tmu::utile_width(cpp)),
      scale_(all_samples ? 2 : 1),
      whole_blocks_(tile.live_width % 8 == 0),
      flipped_(packet.flip_y),
      height_(packet.height),
      lower_in_place_(surface_.tiling == tmu::Tiling::kRaster ? packet.stride_or_height : piece_width_ * cpp),
      in_utiles_(cpp == 4 && surface_.tiling != tmu::Tiling::kRaster && scale_ == 1 && !flipped_ &&
                 tile.live_width % 4 == 0 && tile.live_height % 4 == 0),
      in_rows_(cpp == 4 && surface_.tiling == tmu::Tiling::kRaster && scale_ == 1 && !flipped_ &&
               whole_blocks_ && tile.live_height % 2 == 0) {
  place_pieces(0);
  if (!whole_blocks_ || tile.live_height % 2 != 0 || scale_ != 1 || flipped_)
    std::memset(host_rows_, 0, sizeof(host_rows_));
}

/// Offsets of the pieces of a row of the tile.
void TileImage::place_pieces(uint32_t y) {
  if (in_columns()) return place_pieces_of_columns(y);
  const uint32_t piece_bytes = piece_width_ * surface_.cpp;
  const bool raster = surface_.tiling == tmu::Tiling::kRaster;
  // Tiles begin where a UIF block does, in which the second utile follows the first, or a subtile of T, in
  // which four do.
  const bool subtiles = surface_.tiling == tmu::Tiling::kT;
  const uint32_t utiles = raster ? kPieces : subtiles ? t_tiles::kSubtileUtiles : piece_width_ < 8 ? 2 : 1;
  const uint32_t step = raster ? piece_bytes : kUtileBytes;
  for (uint32_t i = 0; i * piece_width_ < tile_.live_width; ++i)
    piece_x_[i] = i % utiles != 0
                      ? piece_x_[i - 1] + step
                      : tmu::texel_offset(surface_.tiling, surface_.cpp, surface_.stride_or_height,
                                          tile_.origin_x + i * piece_width_, tile_.origin_y + y);
}

/// The same where columns of four UIF blocks follow each other, whose blocks are adjacent in each row.
void TileImage::place_pieces_of_columns(uint32_t y) {
  const uint32_t first = tile_.origin_x / piece_width_;
  for (uint32_t i = 0; i * piece_width_ < tile_.live_width; ++i) {
    const uint32_t in_column = (first + i) % (2 * kUifColumnBlocks);
    piece_x_[i] = i != 0 && in_column != 0
                      ? piece_x_[i - 1] + (in_column % 2 != 0 ? kUtileBytes : kUifBlockBytes - kUtileBytes)
                      : tmu::texel_offset(surface_.tiling, surface_.cpp, surface_.stride_or_height,
                                          tile_.origin_x + i * piece_width_, tile_.origin_y + y);
  }
}

/// Of the pieces of a row from those.
uint32_t TileImage::row_offset(uint32_t y) const {
  if (in_columns()) {
    const uint32_t height = tmu::utile_height(surface_.cpp);
    const auto offset = [](uint32_t row) {  // of utiles; XOR moves all rows of a tile alike
      return row / 2 * kUifColumnBlocks * kUifBlockBytes + row % 2 * 2 * kUtileBytes;
    };
    return offset((tile_.origin_y + y) / height) - offset(tile_.origin_y / height);
  }
  return tmu::texel_offset(surface_.tiling, surface_.cpp, surface_.stride_or_height, tile_.origin_x,
                           tile_.origin_y + y) -
         piece_x_[0];
}

/// Offset of the strip's pieces from those.
void TileImage::place_rows() {
  if (surface_.tiling == tmu::Tiling::kRaster)
    piece_y_ = y_ * surface_.stride_or_height;
  else if (const uint32_t line = y_ % tmu::utile_height(surface_.cpp); line != 0)
    piece_y_ += 2 * piece_width_ * surface_.cpp;
  else
    place_row_of_utiles(y_);
}

void TileImage::place_row_of_utiles(uint32_t y) {
  if (surface_.tiling == tmu::Tiling::kT) {
    const uint32_t row = y / tmu::utile_height(surface_.cpp), in_subtile = row % t_tiles::kSubtileUtiles;
    if (row - in_subtile != placed_row_) place_pieces(y - in_subtile * tmu::utile_height(surface_.cpp));
    placed_row_ = row - in_subtile;
    piece_y_ = in_subtile * t_tiles::kSubtileUtiles * kUtileBytes;
  } else {
    piece_y_ = row_offset(y);
  }
}

/// The same of four rows; the second ones of a UIF block come after the first ones.
void TileImage::place_utiles(uint32_t y) {
  if (y % 8 != 0 && tmu::has_uif_blocks(surface_.tiling))
    piece_y_ += 2 * kUtileBytes;
  else
    place_row_of_utiles(y);
}

void TileImage::begin_strip(uint32_t y, bool fetch) {
  y_ = y;
  rows_in_frame_ = std::min(2u, tile_.live_height - y);
  in_place_ = whole_blocks_ && rows_in_frame_ == 2 && scale_ == 1 && !flipped_;
  access_ = !in_place_ || surface_.cpp != 4           ? Access::kAny
            : surface_.tiling == tmu::Tiling::kRaster ? Access::kRasterWords
                                                      : Access::kTiledWords;
  if (in_place_)
    place_rows();
  else if (fetch)
    move_strip<true>();
}

void TileImage::flush_strip() {
  if (!in_place_) move_strip<false>();
}

/// Pixel rows between the image, from image_row on, and host_rows_, from those of line on.
template <bool kLoad>
void TileImage::move_rows(uint32_t line, uint32_t image_row, uint32_t rows) {
  uint8_t* const host = host_rows_[line * scale_];
  const uint32_t x = tile_.origin_x * scale_, y = image_row * scale_, width = tile_.live_width * scale_;
  kLoad ? tmu::load_rectangle(memory_, surface_, x, y, width, rows * scale_, host, kPitch)
        : tmu::store_rectangle(memory_, surface_, x, y, width, rows * scale_, host, kPitch);
}

/// Flipping turns pixel rows round, not the samples in them; rows that the image does not have are not stored
/// and load as 0 (both assumed).
template <bool kLoad>
void TileImage::move_strip() {
  const uint32_t first = tile_.origin_y + y_;
  if (!flipped_) return move_rows<kLoad>(0, first, rows_in_frame_);
  if (kLoad) std::memset(host_rows_, 0, sizeof(host_rows_));
  for (uint32_t line = 0; line < rows_in_frame_; ++line)
    if (first + line < height_) move_rows<kLoad>(line, height_ - 1 - (first + line), 1);
}

BlockRows TileImage::block_rows(uint32_t x) {
  const uint32_t pieces = 8 / piece_width_, piece_bytes = piece_width_ * surface_.cpp;
  BlockRows rows{};
  if (in_place_) {
    for (uint32_t i = 0; i < pieces; ++i) rows.piece[i] = piece_in_place(x / piece_width_ + i);
    rows.lower = lower_in_place_;
  } else {
    for (uint32_t i = 0; i < pieces; ++i) rows.piece[i] = host_rows_[0] + x * surface_.cpp + i * piece_bytes;
    rows.lower = kPitch;
  }
  return rows;
}

BlockRows TileImage::sample_rows(uint32_t x, uint32_t sample) {
  return {{host_rows_[sample >> 1] + (2 * x + (sample & 1)) * surface_.cpp}, 2 * kPitch};
}

void TileImage::get_any(uint32_t x, uint32_t sample, Lanes* texel) {
  if (scale_ == 2)
    load_spread_block(surface_.cpp, sample_rows(x, sample), texel);
  else
    load_block(surface_.cpp, block_rows(x), texel);
}

void TileImage::put_any(uint32_t x, uint32_t sample, const Lanes* texel) {
  if (scale_ == 2)
    store_spread_block(surface_.cpp, texel, sample_rows(x, sample));
  else
    store_block(surface_.cpp, texel, block_rows(x));
}

}  // namespace v3d::tlb
