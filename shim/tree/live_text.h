/// Some files show the state of the moment: the GPU's statistics, what sysfs says of connectors,
/// /proc/PID/fdinfo of DRM files, and /proc/cpuinfo with the board's lines. Whoever opens one gets memory
/// that holds the text of that moment, as sysfs and procfs do.
#pragma once

#include <sys/stat.h>

#include "shim/tree/paths.h"
#include "shim/tree/tree.h"

namespace v3d::shim {

/// A new descriptor, open for reading, of the text that the path stands for. A negative errno; ENOENT when it
/// stands for none of ours, or nobody can say it now: then the file itself is to be opened.
/// @param to  the path's
int open_live_text(const Rewritten& to, int dir, const char* path, int flags);

/// The node behind "/proc/PID/fd/N" of whatever process of this user. nullptr: it is no DRM file of the
/// daemon.
/// @param st  of what the path leads to
const Node* node_in_proc(int dir, const char* path, const struct stat& st);

}  // namespace v3d::shim
