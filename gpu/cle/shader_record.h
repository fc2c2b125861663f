/// The records a GL_SHADER_STATE packet points to, decoded into the version-neutral form
/// (cle-and-tiles.md 1.5).
#pragma once

#include <cstdint>

#include "gpu/cle/state.h"
#include "gpu/mmu/memory.h"

namespace v3d::cle {

/// Where the records of one GL_SHADER_STATE packet stand. Without a geometry shader the first three are
/// unused.
struct ShaderRecordLayout {
  GpuAddr geometry, common_params, bin_params, render_params;
  GpuAddr main, attributes;
};
ShaderRecordLayout shader_record_layout(GpuAddr address, bool with_gs, int version);

/// @param num_attributes  1..32
ShaderRecord load_shader_record(Memory memory, GpuAddr address, uint8_t num_attributes, bool with_gs,
                                int version);

}  // namespace v3d::cle
