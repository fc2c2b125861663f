#include "gpu/tmu/image/layout.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "gpu/base/t_tiles.h"

namespace v3d::tmu {
namespace {

constexpr uint32_t kPageUbRowsTimes1_5 = 6;
constexpr uint32_t kPageCacheUbRows = 32;
constexpr uint32_t kPageCacheLessPageAndHalf = kPageCacheUbRows - kPageUbRowsTimes1_5;
constexpr uint32_t kXorRows = 16;
constexpr uint32_t kUifPage = 4096;

constexpr uint32_t minify(uint32_t size, uint32_t level) { return std::max(1u, size >> level); }
constexpr uint32_t round_up(uint32_t size, uint32_t to) { return (size + to - 1) / to * to; }
constexpr uint32_t ceil_div(uint32_t size, uint32_t by) { return (size + by - 1) / by; }

/// Twice the power-of-two size of level 1: what the layout of levels 2 and up derives from.
uint32_t pot_size(uint32_t size, uint32_t block) {
  return 2 * block * std::bit_ceil(ceil_div(minify(size, 1), block));
}

constexpr bool is_vc4(Tiling tiling) { return tiling == Tiling::kT || tiling == Tiling::kLineartileRows; }

/// Offset of the utile that holds column `ux`, row `uy` of utiles.
/// @param pitch  UIF: padded height in UIF blocks; VideoCore IV: utiles in a row
uint32_t utile_offset(Tiling tiling, uint32_t pitch, uint32_t ux, uint32_t uy) {
  const uint32_t in_block = 64 * (ux & 1) + 128 * (uy & 1);
  const uint32_t bx = ux >> 1;
  uint32_t by = uy >> 1;
  switch (tiling) {
    case Tiling::kLineartile:
      return 64 * (ux + uy);
    case Tiling::kUblinear1:
      return 256 * by + in_block;
    case Tiling::kUblinear2:
      return 256 * (2 * by + bx) + in_block;
    case Tiling::kUifXor:
      if ((bx >> 2) & 1) by ^= kXorRows;
      [[fallthrough]];
    case Tiling::kUif:
    case Tiling::kRaster:
      break;
    case Tiling::kT:
      return static_cast<uint32_t>(t_tiles::utile_offset(ux, uy, pitch / t_tiles::kTileUtiles));
    case Tiling::kLineartileRows:
      return t_tiles::kUtileBytes * (uy * pitch + ux);
  }
  return 256 * ((bx >> 2) * 4 * pitch + 4 * by + (bx & 3)) + in_block;
}

/// Copies full or partial utiles. kLoad: from GPU memory to rows.
template <bool kLoad, uint32_t kRowBytes, uint32_t kRows>
void copy_utiles(Memory memory, const Surface& surface, uint32_t x, uint32_t y, uint32_t width,
                 uint32_t height, uint8_t* rows, size_t pitch) {
  const uint32_t shift = static_cast<uint32_t>(std::countr_zero(surface.cpp));
  const uint32_t uw = kRowBytes >> shift;
  const uint32_t utile_pitch =
      is_vc4(surface.tiling) ? surface.stride_or_height / kRowBytes : surface.stride_or_height;
  for (uint32_t top = y; top != y + height;) {
    const uint32_t in_y = top % kRows, lines = std::min(kRows - in_y, y + height - top);
    for (uint32_t left = x; left != x + width;) {
      const uint32_t in_x = left % uw, texels = std::min(uw - in_x, x + width - left);
      const GpuAddr address =
          surface.address + utile_offset(surface.tiling, utile_pitch, left / uw, top / kRows);
      uint8_t* host = rows + (top - y) * pitch + (size_t{left - x} << shift);
      uint8_t* gpu = memory.host(address);
      if (texels == uw && lines == kRows) {
        for (uint32_t line = 0; line < kRows; ++line)
          kLoad ? std::memcpy(host + line * pitch, gpu + line * kRowBytes, kRowBytes)
                : std::memcpy(gpu + line * kRowBytes, host + line * pitch, kRowBytes);
      } else {
        gpu += in_y * kRowBytes + (in_x << shift);
        for (uint32_t line = 0; line < lines; ++line)
          kLoad ? std::memcpy(host + line * pitch, gpu + line * kRowBytes, size_t{texels} << shift)
                : std::memcpy(gpu + line * kRowBytes, host + line * pitch, size_t{texels} << shift);
      }
      left += texels;
    }
    top += lines;
  }
}

template <bool kLoad>
void copy_rectangle(Memory memory, const Surface& surface, uint32_t x, uint32_t y, uint32_t width,
                    uint32_t height, uint8_t* rows, size_t pitch) {
  if (surface.tiling == Tiling::kRaster) {
    for (uint32_t line = 0; line < height; ++line) {
      uint8_t* gpu = memory.host(surface.address + (y + line) * surface.stride_or_height + x * surface.cpp);
      uint8_t* host = rows + line * pitch;
      kLoad ? std::memcpy(host, gpu, size_t{width} * surface.cpp)
            : std::memcpy(gpu, host, size_t{width} * surface.cpp);
    }
    return;
  }
  switch (surface.cpp) {
    case 1:
      return copy_utiles<kLoad, 8, 8>(memory, surface, x, y, width, height, rows, pitch);
    case 2:
    case 4:
      return copy_utiles<kLoad, 16, 4>(memory, surface, x, y, width, height, rows, pitch);
    case 8:
      if (is_vc4(surface.tiling))
        return copy_utiles<kLoad, 16, 4>(memory, surface, x, y, width, height, rows, pitch);
      [[fallthrough]];
    default:
      return copy_utiles<kLoad, 32, 2>(memory, surface, x, y, width, height, rows, pitch);
  }
}

/// Chooses the layout of one level and pads its size (in blocks) accordingly.
void place_level(const ImageShape& shape, uint32_t index, uint32_t width, uint32_t height, Level& level) {
  const uint32_t uw = utile_width(shape.cpp), uh = utile_height(shape.cpp);
  const uint32_t bw = 2 * uw, bh = 2 * uh;
  const bool may_shrink = index > 0 || !(shape.uif_top || shape.multisample);
  if (shape.raster) {
    level.tiling = Tiling::kRaster;
    width = round_up(width, 64 / shape.cpp);
  } else if (may_shrink && (width <= uw || height <= uh)) {
    level.tiling = Tiling::kLineartile;
    width = round_up(width, uw);
    height = round_up(height, uh);
  } else if (may_shrink && width <= 2 * bw) {
    level.tiling = width <= bw ? Tiling::kUblinear1 : Tiling::kUblinear2;
    width = round_up(width, width <= bw ? bw : 2 * bw);
    height = round_up(height, bh);
  } else {
    width = round_up(width, 4 * bw);
    height = round_up(height, bh);
    height += ub_pad(height / bh) * bh;
    level.tiling = height / bh % kPageCacheUbRows == 0 ? Tiling::kUifXor : Tiling::kUif;
  }
  level.padded_width = width;
  level.padded_height = height;
  level.padded_height_ub = height / bh;
  level.stride = width * shape.cpp;
  level.slice_size = level.stride * height;
}

}  // namespace

uint32_t texel_offset(Tiling tiling, uint32_t cpp, uint32_t stride_or_height, uint32_t x, uint32_t y) {
  if (tiling == Tiling::kRaster) return y * stride_or_height + x * cpp;
  if (is_vc4(tiling)) {
    const uint32_t uw = vc4_utile_width(cpp), uh = vc4_utile_height(cpp);
    const uint32_t pitch = stride_or_height / vc4_utile_row_bytes(cpp);
    return utile_offset(tiling, pitch, x / uw, y / uh) + (y % uh * uw + x % uw) * cpp;
  }
  const uint32_t uw = utile_width(cpp), uh = utile_height(cpp);
  return utile_offset(tiling, stride_or_height, x / uw, y / uh) + (y % uh * uw + x % uw) * cpp;
}

uint32_t ub_pad(uint32_t block_rows) {
  const uint32_t rest = block_rows % kPageCacheUbRows;
  if (rest == 0) return 0;
  if (rest < kPageUbRowsTimes1_5) return block_rows < kPageCacheUbRows ? 0 : kPageUbRowsTimes1_5 - rest;
  if (rest > kPageCacheLessPageAndHalf) return kPageCacheUbRows - rest;
  return 0;
}

void load_rectangle(Memory memory, const Surface& surface, uint32_t x, uint32_t y, uint32_t width,
                    uint32_t height, uint8_t* rows, size_t pitch) {
  copy_rectangle<true>(memory, surface, x, y, width, height, rows, pitch);
}

void store_rectangle(Memory memory, const Surface& surface, uint32_t x, uint32_t y, uint32_t width,
                     uint32_t height, const uint8_t* rows, size_t pitch) {
  copy_rectangle<false>(memory, surface, x, y, width, height, const_cast<uint8_t*>(rows), pitch);
}

void compute_levels(const ImageShape& shape, Level* levels) {
  assert(std::has_single_bit(shape.cpp) && shape.cpp <= 16);
  assert(shape.num_levels >= 1 && shape.num_levels <= kMaxLevels);
  const uint32_t pot_width = pot_size(shape.width, shape.block_width);
  const uint32_t pot_height = pot_size(shape.height, shape.block_height);
  const uint32_t pot_depth = pot_size(shape.depth, 1);
  const uint32_t scale = shape.multisample ? 2 : 1;
  const auto width_blocks = [&](uint32_t w) { return ceil_div(w * scale, shape.block_width); };
  const auto height_blocks = [&](uint32_t h) { return ceil_div(h * scale, shape.block_height); };

  int64_t offset = 0;
  for (uint32_t i = 0; i < shape.num_levels; ++i) {
    Level& level = levels[i];
    level.width = width_blocks(minify(shape.width, i));
    level.height = height_blocks(minify(shape.height, i));
    level.depth = minify(shape.depth, i);
    place_level(shape, i, width_blocks(minify(i < 2 ? shape.width : pot_width, i)),
                height_blocks(minify(i < 2 ? shape.height : pot_height, i)), level);
    if (i > 0) {
      uint64_t total = uint64_t{level.slice_size} * minify(pot_depth, i);
      // Level 1 starts on a page when it or a smaller level could be UIF XOR; the others inherit that.
      const uint32_t bw = 2 * utile_width(shape.cpp), bh = 2 * utile_height(shape.cpp);
      if (i == 1 && level.padded_width > 4 * bw && level.padded_height > kPageCacheLessPageAndHalf * bh)
        total = (total + kUifPage - 1) / kUifPage * kUifPage;
      offset -= static_cast<int64_t>(total);
    }
    level.offset = offset;
  }
}

}  // namespace v3d::tmu
