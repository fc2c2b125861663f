/// V3DEMU_DEBUG for a daemon that may have been started with another.
#pragma once

namespace v3d::shim {

/// Once in a process, when it has a daemon: asks it what V3DEMU_DEBUG, if it is set, is not answered with,
/// and says that on stderr (also the categories, for "help"). The daemon knows the names; this library does
/// not.
void compare_debug_request();

}  // namespace v3d::shim
