#include "gpu/tmu/image/texture_levels.h"

#include <algorithm>

namespace v3d::tmu {

ImageShape texture_levels(const TextureState& texture, const Format& format, int dimensions, Level* levels) {
  ImageShape shape{.width = texture.width,
                   .height = texture.height,
                   .depth = dimensions == 3 ? texture.depth : 1,
                   .cpp = format.cpp,
                   .block_width = format.block_width,
                   .block_height = format.block_height};
  shape.num_levels = std::max(texture.base_level, texture.max_level) + 1u;
  shape.raster = dimensions == 1;
  shape.uif_top = texture.level_0_strictly_uif;
  // The height field of 1D textures holds bits 27:14 of the width (texture.md 3.1).
  if (shape.raster) shape.width |= texture.height << 14, shape.height = 1;
  compute_levels(shape, levels);
  if (texture.level_0_strictly_uif && !shape.raster) {
    const uint32_t block_rows = 2 * utile_height(format.cpp);
    levels[0].tiling = texture.level_0_xor ? Tiling::kUifXor : Tiling::kUif;
    levels[0].padded_height_ub = (levels[0].height + block_rows - 1) / block_rows + texture.level_0_ub_pad;
    levels[0].slice_size = levels[0].stride * levels[0].padded_height_ub * block_rows;
  }
  return shape;
}

}  // namespace v3d::tmu
