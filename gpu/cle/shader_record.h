/// The records that a GL_SHADER_STATE packet points to are decoded into the neutral form
/// (cle-and-tiles.md 1.5).
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/base/memory.h"
#include "gpu/chip/profile.h"
#include "gpu/cle/packet.h"
#include "gpu/draw/state.h"

namespace v3d::cle {

/// Where the records of one GL_SHADER_STATE packet stand. Without a geometry shader the first three are
/// unused.
struct ShaderRecordLayout {
  GpuAddr geometry, common_params, bin_params, render_params;
  GpuAddr main, attributes;
};
ShaderRecordLayout shader_record_layout(GpuAddr address, bool with_gs, const chip::Profile& profile);

/// The form of the main record on that chip.
const RecordInfo& shader_record_info(const chip::Profile& profile);

/// @param num_attributes  1..32
draw::ShaderRecord load_shader_record(Memory memory, GpuAddr address, uint8_t num_attributes, bool with_gs,
                                      const chip::Profile& profile);

/// The record that a state names.
draw::ShaderRecord load_shader_record(Memory memory, const draw::DrawState& state,
                                      const chip::Profile& profile);

/// A record of a GL_SHADER_STATE packet, for dumps.
struct RecordPlace {
  GpuAddr address;
  const RecordInfo* info;
};
/// All of them, in their order. @param state  that the packet has set
std::vector<RecordPlace> shader_record_places(const draw::DrawState& state, const chip::Profile& profile);

}  // namespace v3d::cle
