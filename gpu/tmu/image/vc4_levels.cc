/// @file Where the levels of images of VideoCore IV lie (vc4-graphics.md 5.5).
#include <algorithm>
#include <bit>
#include <cassert>

#include "gpu/base/t_tiles.h"
#include "gpu/tmu/image/layout.h"

namespace v3d::tmu {
namespace {

/// Images of up to so many utiles across or down are LT.
constexpr uint32_t kLineartileUtiles = 4;

constexpr uint32_t round_up(uint32_t size, uint32_t to) { return (size + to - 1) / to * to; }
constexpr uint32_t minify(uint32_t size, uint32_t level) { return std::max(1u, size >> level); }

}  // namespace

void compute_vc4_levels(const ImageShape& shape, Level* levels) {
  assert(std::has_single_bit(shape.cpp) && shape.cpp <= 8);
  assert(shape.num_levels >= 1 && shape.num_levels <= kMaxLevels);
  const uint32_t uw = vc4_utile_width(shape.cpp), uh = vc4_utile_height(shape.cpp);
  const auto blocks = [](uint32_t texels, uint32_t block) { return (texels + block - 1) / block; };
  // Compressed images count blocks before anything is halved.
  const uint32_t across = blocks(shape.width, shape.block_width),
                 down = blocks(shape.height, shape.block_height);
  int64_t offset = 0;
  for (uint32_t i = 0; i < shape.num_levels; ++i) {
    Level& level = levels[i];
    level = {};
    level.width = blocks(minify(shape.width, i), shape.block_width);
    level.height = blocks(minify(shape.height, i), shape.block_height);
    level.depth = 1;
    const uint32_t width = i == 0 ? across : minify(std::bit_ceil(across), i);
    const uint32_t height = i == 0 ? down : minify(std::bit_ceil(down), i);
    const bool is_lt = width <= kLineartileUtiles * uw || height <= kLineartileUtiles * uh;
    const uint32_t utiles = is_lt ? 1 : t_tiles::kTileUtiles;
    level.tiling = is_lt ? Tiling::kLineartileRows : Tiling::kT;
    level.padded_width = round_up(width, utiles * uw);
    level.padded_height = round_up(height, utiles * uh);
    level.stride = level.padded_width * shape.cpp;
    level.slice_size = level.stride * level.padded_height;
    if (i > 0) offset -= level.slice_size;
    level.offset = offset;
  }
}

}  // namespace v3d::tmu
