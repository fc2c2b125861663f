/// The limits say how much of the host the daemon may share out among its clients (ioctl/base/account.h).
#pragma once

#include <string>

#include "absl/status/status.h"
#include "ioctl/base/account.h"

namespace v3d::daemon {

/// Raises the limit of descriptors as far as this user may.
void raise_descriptor_limit();

/// What this process may use: its rlimits, its cgroup (v1 or v2), and the kernel's own limits.
ioctl::HostRoom read_host_room();

/// Takes an option such as "bos=100" or "bos=100:1000": what one client may hold, and all together.
/// InvalidArgument naming what is wrong.
absl::Status set_limit(const std::string& text, ioctl::ResourceLimits* limits);

}  // namespace v3d::daemon
