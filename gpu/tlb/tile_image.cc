#include "gpu/tlb/tile_image.h"

#include <algorithm>

namespace v3d::tlb {

TileImage::TileImage(Memory memory, const Tile& tile, const LoadStore& packet, uint32_t cpp, bool all_samples)
    : memory_(memory),
      tile_(tile),
      surface_{packet.address, static_cast<tmu::Tiling>(packet.memory_format), cpp, packet.stride_or_height},
      scale_(all_samples ? 2 : 1),
      best_(Access::kHostRows) {
  if (all_samples || tile.live_width % 8 != 0) return;
  if (surface_.tiling == tmu::Tiling::kRaster) {
    best_ = Access::kRowsInPlace;
  } else if (cpp == 4) {
    best_ = Access::kUtilesInPlace;
    for (uint32_t i = 0; i < tile.live_width / 4; ++i)
      piece_x_[i] = tmu::texel_offset(surface_.tiling, cpp, surface_.stride_or_height, tile.origin_x + 4 * i,
                                      tile.origin_y);
  }
}

void TileImage::begin_strip(uint32_t y, bool fetch) {
  y_ = y;
  rows_in_frame_ = std::min(2u, tile_.live_height - y);
  access_ = rows_in_frame_ == 2 ? best_ : Access::kHostRows;
  switch (access_) {
    case Access::kHostRows:
      for (int i = 0; i < 4; ++i) rows_[i] = host_rows_[i];
      if (fetch)
        tmu::load_rectangle(memory_, surface_, tile_.origin_x * scale_, (tile_.origin_y + y) * scale_,
                            tile_.live_width * scale_, rows_in_frame_ * scale_, host_rows_[0], kPitch);
      return;
    case Access::kRowsInPlace:
      for (uint32_t i = 0; i < 2; ++i)
        rows_[i] = memory_.host(surface_.address + tmu::texel_offset(surface_.tiling, surface_.cpp,
                                                                     surface_.stride_or_height,
                                                                     tile_.origin_x, tile_.origin_y + y + i));
      return;
    case Access::kUtilesInPlace:
      piece_y_ = tmu::texel_offset(surface_.tiling, 4, surface_.stride_or_height, tile_.origin_x,
                                   tile_.origin_y + y) -
                 piece_x_[0];
      return;
  }
}

void TileImage::flush_strip() {
  if (access_ == Access::kHostRows)
    tmu::store_rectangle(memory_, surface_, tile_.origin_x * scale_, (tile_.origin_y + y_) * scale_,
                         tile_.live_width * scale_, rows_in_frame_ * scale_, host_rows_[0], kPitch);
}

void TileImage::get(uint32_t x, uint32_t sample, Lanes* texel) const {
  const uint32_t offset = x * scale_ * surface_.cpp;
  if (access_ == Access::kUtilesInPlace) {
    texel[0] = load_half_utiles(piece(x), piece(x + 4));
  } else if (scale_ == 2) {
    const uint32_t row = sample >> 1;
    load_sample_rows(surface_.cpp, sample & 1, rows_[row] + offset, rows_[row + 2] + offset, texel);
  } else {
    load_rows(surface_.cpp, rows_[0] + offset, rows_[1] + offset, texel);
  }
}

void TileImage::put(uint32_t x, uint32_t sample, const Lanes* texel) {
  const uint32_t offset = x * scale_ * surface_.cpp;
  if (access_ == Access::kUtilesInPlace) {
    store_half_utiles(texel[0], piece(x), piece(x + 4));
  } else if (scale_ == 2) {
    const uint32_t row = sample >> 1;
    store_sample_rows(surface_.cpp, sample & 1, texel, rows_[row] + offset, rows_[row + 2] + offset);
  } else {
    store_rows(surface_.cpp, texel, rows_[0] + offset, rows_[1] + offset);
  }
}

}  // namespace v3d::tlb
