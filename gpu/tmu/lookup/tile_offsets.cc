#include "gpu/tmu/lookup/tile_offsets.h"

#include <bit>

namespace v3d::tmu {
namespace {

constexpr uint32_t log2(uint32_t power_of_two) {
  return static_cast<uint32_t>(std::countr_zero(power_of_two));
}

constexpr uint32_t shift_of_rows(uint32_t cpp, TileShifts shifts) {
  return shifts.y1 - log2(utile_height(cpp)) - 1;
}

constexpr TileOffsets make_offsets(uint32_t cpp, Tiling tiling) {
  const TileShifts shifts = tile_shifts(tiling);
  const uint32_t width = utile_width(cpp), height = utile_height(cpp);
  TileOffsets offsets = {};
  for (uint32_t n = 0; n < TileOffsets::kEntries; ++n) {
    const uint32_t ux = n / width, uy = n / height;
    offsets.column[n] =
        static_cast<uint16_t>(n % width * cpp + (ux & 1) * 64 + (((ux >> 1) & 3) << shifts.x));
    const uint32_t row = n % height * cpp * width + ((uy & 1) << shifts.y0) + ((uy >> 1) << shifts.y1);
    offsets.row[n] = static_cast<uint16_t>(row ^ n << shift_of_rows(cpp, shifts));
  }
  return offsets;
}

constexpr std::array<Tiling, kTileKinds> kTilings = {Tiling::kLineartile, Tiling::kUblinear1,
                                                     Tiling::kUblinear2, Tiling::kUif};

constexpr AllTileOffsets make_all() {
  AllTileOffsets all = {};
  for (size_t n = 0; n < all.size(); ++n)
    for (size_t kind = 0; kind < kTileKinds; ++kind) all[n][kind] = make_offsets(1u << n, kTilings[kind]);
  return all;
}

}  // namespace

constinit const AllTileOffsets kTileOffsets = make_all();

uint32_t row_shift(int log2_cpp, Tiling tiling) { return shift_of_rows(1u << log2_cpp, tile_shifts(tiling)); }

}  // namespace v3d::tmu
