/// What stands in the device tree of each chip.
#pragma once

#include <cstdint>

#include "shim/text.h"
#include "shim/tree.h"
#include "shim/tree_sink.h"

namespace v3d::shim {

/// Tells the sink everything that belongs to tree.chip and tree.nodes.
void emit_tree(const Tree& tree, TreeSink* sink);

/// card1-HDMI-A-1 @param i  of wire::kConnectors
Text<32> connector_name(const Node& display, uint32_t i);

/// Names of the platform devices and of the folders under /sys/devices/platform that hold them.
struct ChipNames {
  uint32_t chip;
  const char* v3d;          ///< device name, as in by-path links
  const char* v3d_folder;   ///< under sys/devices/platform
  const char* v3d_of_path;  ///< OF_FULLNAME
  const char* v3d_compatible;
  const char* display;
  const char* display_folder;
  const char* display_of_path;
  const char* display_compatible;
  const char* platform_roots[2];  ///< first components under sys/devices/platform; nullptr: one is enough
};
const ChipNames& chip_names(uint32_t chip);
/// Whether the board has the i-th of wire::kConnectors.
bool has_connector(const ChipNames& names, uint32_t i);

/// What the firmware says of a board (raspberrypi/documentation, revision-codes.adoc), by which programs know
/// that they run on one.
struct Board {
  const char* device;      ///< $V3DEMU_DEVICE begins so
  uint32_t chip;           ///< 71 or 42
  const char* model;       ///< /proc/device-tree/model
  const char* compatible;  ///< the board's, before the chip's
  const char* soc;         ///< the chip's compatible
  const char* revision;    ///< hexadecimal
  const char* serial;      ///< made up, in the form that the board's have
};
/// The one that $V3DEMU_DEVICE names, if it has that chip; else the first that has.
const Board& board_of(uint32_t chip);

}  // namespace v3d::shim
