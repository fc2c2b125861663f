/// The TFU's mip filter makes a smaller image from a larger one (texture.md 10.4).
#pragma once

#include "gpu/base/job_context.h"
#include "gpu/tmu/image/layout.h"
#include "gpu/tmu/texel/format.h"

namespace v3d::tfu {

/// Whether mip levels of this format can be made.
bool can_filter(const tmu::Format& format);

/// Fills target (target_width x target_height) from source. Every target texel is a bilinear tap at the exact
/// centre of its footprint: the mean of 2 x 2 texels for even sizes. Values are linear numbers of the format:
/// sRGB is not decoded.
void filter_level(const JobContext& job, const tmu::Format& format, const tmu::Surface& source,
                  uint32_t source_width, uint32_t source_height, const tmu::Surface& target,
                  uint32_t target_width, uint32_t target_height);

}  // namespace v3d::tfu
