/// A TextureConfig is the words P0 to P3 that configure a lookup of VideoCore IV, decoded (vc4-graphics.md
/// 5.2).
#pragma once

#include <cstdint>
#include <span>

#include "gpu/tmu/image/texture_state.h"

namespace v3d::tmu {

inline constexpr int kConfigWords = 4;

struct TextureConfig {
  /// Of it base, width, height, type, max_level, flip_y, array_stride (of the faces of a cube) and
  /// unsupported count.
  TextureState texture;
  /// Of it the filters, limits of the level, and wrap modes of S and T count.
  SamplerState sampler;
  bool cube;
  bool explicit_lod;  ///< B is the level, which is not added to that of the derivatives
  bool etc_flipped;   ///< the rows of each ETC1 block stand upside down
};

/// Decodes any words. @param p  0 where a lookup took fewer
TextureConfig decode_texture_config(std::span<const uint32_t, kConfigWords> p);

}  // namespace v3d::tmu
