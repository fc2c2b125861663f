/// The tree server is a file system of FUSE with the device tree: what shim/tree/tree_content.cc says, nodes
/// as character devices, and what the kernel counts (gpu_stats) as the daemon counts it now.
#pragma once

namespace v3d::box {

/// Serves it until it is unmounted everywhere. Returns an exit status.
/// @param fuse   /dev/fuse, mounted by now or soon
/// @param ready  gets one byte when requests will be answered
int serve_tree(int fuse, int ready);

}  // namespace v3d::box
