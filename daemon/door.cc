#include "daemon/door.h"

#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "absl/strings/str_format.h"
#include "daemon/process.h"
#include "ioctl/base/received_fd.h"
#include "ioctl/link/wire.h"

namespace v3d::daemon {
namespace {

using ioctl::UniqueFd;

/// By which clients know what the descriptor is. The name is abstract: it lies in no folder.
bool name_end(int own_end) {
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number) return false;
  const std::string name = absl::StrFormat("%s%016x", wire::kNodeName, number);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return bind(own_end, reinterpret_cast<const sockaddr*>(&address), size) == 0;
}

int option(int socket, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  return getsockopt(socket, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
}

/// A pair of sockets carries the credentials of its maker. An end of another connection of the sender's, say
/// to a service that answers with what it is told, carries those of that service.
bool is_made_by(const ucred& sender, int socket) {
  if (option(socket, SO_DOMAIN) != AF_UNIX || option(socket, SO_TYPE) != SOCK_STREAM) return false;
  const std::optional<ucred> maker = credentials(socket);
  return maker && maker->pid == sender.pid;
}

}  // namespace

bool make_node_pair(UniqueFd* client_end, UniqueFd* own_end) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return false;
  *client_end = UniqueFd(ends[0]);
  *own_end = UniqueFd(ends[1]);
  const int on = 1;
  return name_end(own_end->get()) && setsockopt(own_end->get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0;
}

Knock take_knock(int own_end, UniqueFd* connection) {
  constexpr size_t kMostFds = 253;  // the kernel's SCM_MAX_FD
  char bytes[2];
  iovec part = {bytes, sizeof bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMostFds) + CMSG_SPACE(sizeof(ucred))];
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (!ioctl::closer_has_room()) return Knock::kLater;  // what came before is not closed yet
  const ssize_t got = recvmsg(own_end, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) return Knock::kNothing;
  std::optional<ucred> sender;
  std::vector<ioctl::ReceivedFd> fds;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET) continue;
    if (c->cmsg_type == SCM_CREDENTIALS) std::memcpy(&sender.emplace(), CMSG_DATA(c), sizeof(ucred));
    if (c->cmsg_type != SCM_RIGHTS) continue;
    for (size_t at = 0; at + sizeof(int) <= c->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(c) + at, sizeof fd);
      fds.emplace_back(UniqueFd(fd));
    }
  }
  if (got != 1) {
    // Nobody can leave anything in its queue from now on, not even a descriptor of the node itself, by which
    // it would stay open for ever.
    return ioctl::empty_queue(own_end) ? Knock::kNeverAgain : Knock::kLater;
  }
  if (fds.size() != 1 || !sender || !is_made_by(*sender, fds[0].get())) return Knock::kNothing;
  *connection = fds[0].take();
  return Knock::kConnection;
}

}  // namespace v3d::daemon
