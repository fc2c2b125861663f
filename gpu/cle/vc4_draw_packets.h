/// The packets of VideoCore IV's binning list and the records that they point to are decoded into the neutral
/// form (vc4-graphics.md 1.2, 1.5).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gpu/base/memory.h"
#include "gpu/cle/packet.h"
#include "gpu/cle/shader_record.h"
#include "gpu/draw/state.h"

namespace v3d::cle {

/// Applies a state packet. @return  false for others; *error is set for values that do not exist here
bool apply_vc4_state(const Packet& packet, draw::DrawState* state, std::string* error);

/// The draw that a packet stands for, or nothing.
std::optional<draw::DrawCall> vc4_draw_call(const Packet& packet);

/// What TILE_BINNING_MODE_CONFIGURATION says of the frame, of which it knows whole tiles alone.
struct Vc4Binning {
  uint32_t tiles_x, tiles_y;
  uint32_t tile_size;       ///< pixels, across and down
  const char* unsupported;  ///< a mode that is not modelled, or null
};
Vc4Binning vc4_binning(const Packet& packet);

/// Where the parts of a shader record stand.
struct Vc4RecordLayout {
  GpuAddr main, attributes;
  GpuAddr strides;  ///< one word for each attribute; 0: attributes have theirs
};
Vc4RecordLayout vc4_record_layout(GpuAddr address, bool extended);

/// @param num_attributes  1..8
draw::ShaderRecord load_vc4_shader_record(Memory memory, GpuAddr address, uint8_t num_attributes,
                                          bool extended);

/// The records of a state, for dumps.
std::vector<RecordPlace> vc4_record_places(const draw::DrawState& state);

}  // namespace v3d::cle
