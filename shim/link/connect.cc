#include "shim/link/connect.h"

#include <sys/resource.h>
#include <sys/un.h>

#include <atomic>
#include <cstring>

#include "ioctl/link/wire.h"
#include "shim/link/known_descriptors.h"
#include "shim/process/config.h"
#include "shim/process/place.h"
#include "shim/process/raw.h"

namespace v3d::shim {
namespace {

/// Whoever serves a socket can write what it likes into replies: it has to be the same user.
bool served_by_us(int fd) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (raw::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && size == sizeof(peer) &&
      peer.uid == raw::geteuid()) {
    return true;
  }
  static std::atomic<bool> told{false};
  if (!told.exchange(true)) {
    complain("the daemon's socket is served by another user and not used: ", place().socket.c_str(), "");
  }
  return false;
}

/// Nodes that this process has opened, or has been answered of, are its daemon's. Others are if it is this
/// user's, or root's.
bool is_trusted(int node) {
  if (is_known_file(node)) return true;
  ucred maker{};
  socklen_t size = sizeof(maker);
  return is_named_node(node) && raw::getsockopt(node, SOL_SOCKET, SO_PEERCRED, &maker, &size) == 0 &&
         (maker.uid == 0 || maker.uid == raw::geteuid());
}

/// One byte, which brings the daemon's end.
long send_end(int node, int end) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  uint8_t byte = 0;
  iovec piece{&byte, sizeof(byte)};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(header), &end, sizeof(end));
  long sent = -EAGAIN;
  for (int patience = 0; patience < 200 && (sent == -EAGAIN || sent == -EINTR); ++patience) {
    if (patience) raw::sleep_ms(1);  // others have filled the queue
    sent = raw::sendmsg(node, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  return sent;
}

}  // namespace

bool is_refusal(int error) { return error == -ENOMEM || error == -EMFILE || error == -ENFILE; }

int move_high(int fd) {
  int moved = raw::fcntl(fd, F_DUPFD_CLOEXEC, kPrivateFds);
  if (moved < 0) {
    rlimit limit{};
    raw::call(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, raw::word(&limit));
    moved = raw::fcntl(fd, F_DUPFD_CLOEXEC, static_cast<long>(limit.rlim_cur / 2));
  }
  if (moved < 0) return fd;
  raw::close(fd);
  return moved;
}

namespace {

int connect_to(const Text<108>& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.overflowed() || socket.size() >= sizeof(address.sun_path)) return -ENAMETOOLONG;
  memcpy(address.sun_path, socket.c_str(), socket.size() + 1);
  int fd = raw::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC);
  if (fd < 0) return fd;
  fd = move_high(fd);
  int error;
  do {
    error = raw::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address));
  } while (error == -EINTR);
  if (error == 0 && !served_by_us(fd)) error = -EPERM;
  if (error == 0) return fd;
  raw::close(fd);
  return error;
}

}  // namespace

int connect_socket() {
  if (int error = check_runtime_dir()) return -error;
  // Processes with limits that find no daemon share one.
  Text<108> limited;
  limited_socket(place(), &limited);
  const int fd = limited.size() ? connect_to(limited) : -ENOENT;
  return fd >= 0 ? fd : connect_to(place().socket);
}

bool is_named_node(int fd) {
  sockaddr_un address{};
  socklen_t size = sizeof(address);
  constexpr size_t kName = sizeof(wire::kNodeName) - 1;
  return raw::call(SYS_getpeername, fd, raw::word(&address), raw::word(&size)) == 0 &&
         address.sun_family == AF_UNIX && size > offsetof(sockaddr_un, sun_path) + 1 + kName &&
         memcmp(address.sun_path + 1, wire::kNodeName, kName) == 0 && address.sun_path[0] == '\0';
}

int connect_through(int node) {
  if (!is_trusted(node)) return -EPERM;
  int ends[2];
  if (const long error = raw::call(SYS_socketpair, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, raw::word(ends));
      error < 0) {
    return static_cast<int>(error);
  }
  const long sent = send_end(node, ends[1]);
  raw::close(ends[1]);
  if (sent == 1) return move_high(ends[0]);
  raw::close(ends[0]);
  return static_cast<int>(sent);
}

// Who has become another user, or has changed its root, has no way to the control socket of the daemon that
// has its files; and where the new user has a daemon of its own, that is not the one that is meant.
int connect_anyhow(pid_t daemon, int node) {
  const bool changed = has_changed_user();
  if (node < 0 && changed) node = any_known_file(daemon);
  if (node >= 0 && changed)
    if (const int fd = connect_through(node); fd >= 0) return fd;
  const int fd = connect_socket();
  if (fd >= 0 || changed || is_refusal(fd)) return fd;
  if (node < 0) node = any_known_file(daemon);
  const int through = node < 0 ? fd : connect_through(node);
  return through < 0 ? fd : through;
}

}  // namespace v3d::shim
