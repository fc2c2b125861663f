/// The lists tell a tile's size. 4.2 names it in no packet: bin and render lists give what has to fit.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "gpu/chip/generation.h"
#include "gpu/cle/packet.h"

namespace v3d::cle {

/// In pixels.
struct TileSize {
  uint32_t width, height;
};

/// From the fields of TILE_BINNING_MODE_CFG and TILE_RENDERING_MODE_CFG (cle-and-tiles.md 5.8; Mesa
/// v3d_util.c, v3d_choose_tile_size).
/// @param max_bpp  0, 1, 2: 32, 64, 128 bits per pixel
inline TileSize tile_size_42(uint32_t render_targets, uint32_t max_bpp, bool multisample,
                             bool double_buffer) {
  constexpr TileSize kSizes[] = {{64, 64}, {64, 32}, {32, 32}, {32, 16}, {16, 16}, {16, 8}, {8, 8}};
  uint32_t index = render_targets > 2 ? 2 : render_targets > 1 ? 1 : 0;
  index += multisample ? 2 : double_buffer ? 1 : 0;
  index += max_bpp;
  return kSizes[std::min<size_t>(index, std::size(kSizes) - 1)];
}

/// What a TILE_BINNING_MODE_CFG says, in pixels. A tile is larger than 64 x 64 if the hardware has no such
/// tiles.
struct BinningSizes {
  uint32_t width, height;
  TileSize tile;
  const char* unsupported = nullptr;  ///< what the packet asks for and is not modelled
};
BinningSizes binning_sizes(const Packet& packet, chip::Generation generation);

}  // namespace v3d::cle
