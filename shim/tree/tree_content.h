/// This is what stands in the device tree of each chip.
#pragma once

#include <cstdint>

#include "gpu/chip/board.h"
#include "shim/process/text.h"
#include "shim/tree/tree.h"
#include "shim/tree/tree_sink.h"

namespace v3d::shim {

/// Tells the sink everything that belongs to tree.chip and tree.nodes.
void emit_tree(const Tree& tree, TreeSink* sink);

/// card1-HDMI-A-1 @param i  of wire::kConnectors
Text<32> connector_name(const Node& display, uint32_t i);

/// Whether the board has the i-th of wire::kConnectors.
bool has_connector(const chip::Soc& soc, uint32_t i);

/// The one that $V3DEMU_DEVICE names, if it has that chip; else the first that has.
const chip::Board& board_of(uint32_t chip);

/// Its serial number as 16 digits.
Text<20> serial_of(const chip::Board& board);
/// What Raspberry Pi's kernels add to /proc/cpuinfo.
Text<256> processor_lines(const chip::Board& board);

}  // namespace v3d::shim
