/// These functions say what is known of the process at the other end of a connection.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "ioctl/base/account.h"
#include "ioctl/base/unique_fd.h"

namespace v3d::daemon {

/// Of the process that connected, as it did. Nothing when they cannot be read.
std::optional<ucred> credentials(int socket);

/// A pidfd of the process that connected, or empty (another pid namespace, on kernels before Linux 6.5).
ioctl::UniqueFd open_process(int socket, int32_t pid);

/// Whether SIGKILL ended the process, once its parent knows that it has ended. false where the host does not
/// tell (before Linux 6.15).
bool was_killed(const ioctl::UniqueFd& process);

/// Which process it is. Of those whom this pid namespace does not show the kernel may not tell which is which
/// (before Linux 6.9): then each connection is one, lest strangers share what one may hold.
/// @param pid  0: this pid namespace does not show it
ioctl::ProcessId identify(int socket, int32_t pid, const ioctl::UniqueFd& process);

/// A client as the server sees it.
struct Peer {
  int32_t pid;
  std::string program;
  bool privileged;  ///< has CAP_SYS_ADMIN
  /// Of another user, who holds the descriptor of a node: may use that and render nodes, and is not the owner
  /// of the daemon. The minor of that node.
  std::optional<uint32_t> guest_of = {};
  std::shared_ptr<ioctl::UniqueFd> process;  ///< pidfd; may be empty
  std::shared_ptr<ioctl::Account> account;
};

/// What a connection takes besides its thread: the socket, the pidfd, what its waits sleep on; a stack, the
/// guard before it, and a buffer.
inline constexpr uint64_t kConnectionDescriptors = 3, kConnectionMappings = 3;
struct ConnectionCharges {
  ioctl::Charge connection, descriptors, mappings;
};
/// What an open node takes: the daemon's end, the pidfd of its opener, and the memory of its status.
inline constexpr uint64_t kNodeDescriptors = 3, kNodeMappings = 1;
struct NodeCharges {
  ioctl::Charge node, descriptors, mappings;
};

}  // namespace v3d::daemon
