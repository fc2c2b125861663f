/// T tiles are the layout of VideoCore IV that its textures, its tile buffer and the display of all boards
/// have in common (vc4-graphics.md 5.4). An image is made of utiles of 64 bytes; 8x8 of them are a tile of 4
/// KiB. Rows of tiles run to the right and to the left in turns.
#pragma once

#include <cstdint>

namespace v3d::t_tiles {

inline constexpr uint32_t kUtileBytes = 64;
inline constexpr uint32_t kTileUtiles = 8;  ///< across and down
inline constexpr uint32_t kTileBytes = kTileUtiles * kTileUtiles * kUtileBytes;
inline constexpr uint32_t kSubtileUtiles = 4;
inline constexpr uint32_t kSubtileBytes = kSubtileUtiles * kSubtileUtiles * kUtileBytes;

/// Where the utile in column `across` and row `down` begins.
/// @param tiles  in a row
constexpr uint64_t utile_offset(uint32_t across, uint32_t down, uint32_t tiles) {
  const uint32_t tile_x = across / kTileUtiles, tile_y = down / kTileUtiles, odd = tile_y & 1;
  const uint32_t right = across / kSubtileUtiles & 1, below = down / kSubtileUtiles & 1;
  const uint32_t tile = tile_y * tiles + (odd ? tiles - 1 - tile_x : tile_x);
  const uint32_t subtile = 2 * odd ^ 3 * right ^ below;
  const uint32_t utile = kSubtileUtiles * (down % kSubtileUtiles) + across % kSubtileUtiles;
  return uint64_t{kTileBytes} * tile + kSubtileBytes * subtile + kUtileBytes * utile;
}

}  // namespace v3d::t_tiles
