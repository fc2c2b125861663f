/// These functions reach the caller's descriptors, as the kernel's fget and fd_install do. Whoever
/// makes calls for another process defines them anew (tools/box).
#pragma once

namespace v3d::shim {

/// A descriptor of this process for what the caller has under that number; negative: there is none.
int find_descriptor(int number);

/// Gives the caller what this process has under `fd`, which is used up. The caller's number, or a negative
/// errno.
int give_descriptor(int fd, bool close_on_exec);
/// Takes back what was just given, as the caller will not learn of it.
void withdraw_descriptor(int number);

}  // namespace v3d::shim
