/// These functions ask running daemons.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace v3d::tools {

/// Sends a command (wire.h, kCommand) to the daemon at a socket and returns the answer. NotFound when none
/// runs there, Unavailable when it does not answer.
absl::StatusOr<std::string> ask_daemon_at(const std::string& socket, const std::string& command);

/// False when the daemon that had this socket does not end within a minute.
bool wait_for_daemon_end(const std::string& socket);

/// Tells the daemon at a socket to end and waits until it has; one that leaves by itself meanwhile has ended
/// as well. NotFound when none runs there, Unavailable when it goes on.
absl::Status end_daemon(const std::string& socket);

/// Of the daemon that programs use which ask for the settings that the environment asks for: that of programs
/// under limits (shim/place.h) where no other runs.
std::string used_socket();

struct DaemonSocket {
  std::string path;
  bool captures;  ///< of a `v3demu capture`
};
/// The sockets beside one, itself included, that may be daemons' of this user, in alphabetical order. Those
/// that are gone may have left theirs.
std::vector<DaemonSocket> daemon_sockets(const std::string& one);

}  // namespace v3d::tools
