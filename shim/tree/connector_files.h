/// Connectors have files in /sys/class/drm whose contents are the daemon's: what the display is set to.
#pragma once

#include "shim/process/text.h"

namespace v3d::shim {

/// The command (wire.h, kCommand) that answers with the contents of a file whose path ends like
/// card1-HDMI-A-1/status. false: it is no such file.
bool find_connector_file(const char* path, Text<64>* command);

/// Opens a path of the tree for reading, if it is such a file: its contents of now in memory of its own. A
/// negative errno; ENOENT when it is none, or when there is no daemon. May change errno.
int open_connector_file(const char* path, int flags);

}  // namespace v3d::shim
