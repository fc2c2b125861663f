/// Asking a running daemon.
#pragma once

#include <optional>
#include <string>

namespace v3d::tools {

/// Sends a command (wire.h, kCommand) and returns the answer. Nothing, with the reason on stderr, when no
/// daemon runs or it refuses.
std::optional<std::string> ask_daemon(const std::string& command);
/// The same of the daemon at a socket other than the configured one.
std::optional<std::string> ask_daemon_at(const std::string& socket, const std::string& command);

}  // namespace v3d::tools
