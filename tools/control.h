/// Asking running daemons.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace v3d::tools {

/// Sends a command (wire.h, kCommand) to the daemon at a socket and returns the answer. NotFound when none
/// runs there, Unavailable when it does not answer.
absl::StatusOr<std::string> ask_daemon_at(const std::string& socket, const std::string& command);

}  // namespace v3d::tools
