/// A TexturePicture is a level of a texture that a program asked for, decoded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/base/memory.h"
#include "gpu/chip/profile.h"
#include "tools/inspect/thread_steps.h"

namespace v3d::inspect {

struct TexturePicture {
  GpuAddr address = 0;  ///< of the level
  uint32_t width = 0, height = 0, depth = 0, levels = 0;
  uint32_t array_stride = 0, texel_bytes = 0;
  std::string format;   ///< in the field's words
  std::string sampler;  ///< filters and wrap modes; empty: it is looked up without
  struct Row {
    GpuAddr address = 0;
    uint32_t width = 0, height = 0;
    uint32_t stride = 0;  ///< bytes of a row of texels, or of blocks, as they lie in memory
    uint32_t needs = 0;   ///< bytes that those of the width take
    uint32_t padded = 0;  ///< the same in whole units of the layout
    std::string tiling;
  };
  std::vector<Row> rows;       ///< of each level
  std::string problem;         ///< why there are no pixels
  std::vector<uint32_t> rgba;  ///< row by row from the first one in memory; empty: there are none
};

/// Level `level` of the first layer; the last one, if there are fewer.
TexturePicture read_texture(Memory memory, const chip::Profile& profile, const UsedTexture& used,
                            uint32_t level);

}  // namespace v3d::inspect
