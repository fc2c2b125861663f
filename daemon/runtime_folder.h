/// The sockets of a user's daemons, their locks and logs lie in one folder.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace v3d::daemon {

/// $XDG_RUNTIME_DIR/v3demu, else /tmp/v3demu-UID; where nobody names another one (V3DEMU_SOCKET, --socket).
std::string default_runtime_folder();

/// Makes it for this user alone, as /tmp is everybody's. FailedPrecondition when it exists and belongs to
/// others or is writable by them; Unavailable when it cannot be made.
absl::Status make_private_folder(const std::string& folder);

}  // namespace v3d::daemon
