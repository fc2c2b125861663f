/// A supervisor does this about each system call that the filter (filter.h) holds up.
#pragma once

#include "tools/box/caller.h"

namespace v3d::box {

/// Answers the call, or passes it on.
/// @param mounted  the device tree is (mounts.h); else paths are looked up in the preload library's
void handle_call(Caller& caller, bool mounted);

/// Whether the call may take as long as it pleases its caller.
bool may_wait(const seccomp_data& call);

}  // namespace v3d::box
