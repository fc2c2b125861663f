/// This function gives the number of this process, without a system call each time.
#pragma once

#include <sys/types.h>

namespace v3d::shim {

/// getpid(). The child of a fork gets its own number, however it was forked; one that shares its parent's
/// memory until it execs gets the parent's.
pid_t own_pid();

}  // namespace v3d::shim
