/// texture_levels() says where the levels of a texture lie.
#pragma once

#include "gpu/tmu/image/layout.h"
#include "gpu/tmu/image/texture_state.h"
#include "gpu/tmu/texel/format.h"

namespace v3d::tmu {

/// Of V3D, whose descriptors can say more of level 0 than its size does.
/// @param dimensions  coordinates by which it is looked up: 1 (rows of texels), 2 or 3
/// @param levels  kMaxLevels of them; those of the returned shape are set
ImageShape texture_levels(const TextureState& texture, const Format& format, int dimensions, Level* levels);

}  // namespace v3d::tmu
