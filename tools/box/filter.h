/// The filter holds up the system calls that a supervisor answers for a program (seccomp user notification).
#pragma once

namespace v3d::box {

/// From now on they wait for the supervisor, in this process and all that come from it.
/// @param physical_memory  whether the board has a /dev/mem that is ours
/// @param unstoppable  gets whether a call that the supervisor has taken is no more cut short by a signal
/// @return  the listener, or a negative errno
int install_filter(bool physical_memory, bool* unstoppable);

}  // namespace v3d::box
