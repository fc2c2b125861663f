/// These functions mount the device tree in a mount namespace of the program's own, where programs look for
/// it.
#pragma once

#include <string>

namespace v3d::box {

/// Moves this process there. Empty, or why that cannot be: then it is where it was, but for a user namespace
/// with the same user in it.
/// @param tree_server  the command that runs serve_tree(), to which the numbers of its descriptors are added
std::string enter_sandbox(const std::string& tree_server);

}  // namespace v3d::box
