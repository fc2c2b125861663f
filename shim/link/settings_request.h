/// A program may ask things of a daemon that was started for others.
#pragma once

#include <sys/types.h>

namespace v3d::shim {

/// Whether the daemon is one that this process may use: it has the settings that are asked for, or says
/// nothing of them. One message says what is otherwise. Asks once in the life of that daemon.
bool compare_settings(pid_t daemon);

/// Tells once when $V3DEMU_DEBUG asks for what the daemon does not log.
void compare_debug_request();

}  // namespace v3d::shim
