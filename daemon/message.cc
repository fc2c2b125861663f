#include "daemon/message.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>

namespace v3d::daemon {
namespace {

/// The descriptors that the argument names, and the one of kAdopt and kFdIoctl.
constexpr size_t kMaxFds = wire::kMaxFds + 1;
constexpr size_t kFirstRead = 16 << 10;
/// A request of at most that many bytes leaves its buffer in place.
constexpr size_t kKeepBuffer = 1 << 20;

/// One recvmsg; descriptors are added to *fds. 0 at the end of the connection, -1 on errors.
ssize_t receive_some(int socket, std::span<uint8_t> to, std::vector<ioctl::UniqueFd>* fds) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxFds)];
  iovec part = {to.data(), to.size()};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got;
  do {
    got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return got;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    for (size_t at = 0; at + sizeof(int) <= c->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(c) + at, sizeof fd);
      fds->emplace_back(fd);
    }
  }
  return (message.msg_flags & MSG_CTRUNC) ? -1 : got;
}

}  // namespace

bool MessageSocket::wait_for_more() const {
  // A descriptor that came with the first part may be the client's own end: then no end-of-file ever comes.
  pollfd fds[] = {{socket_, POLLIN, 0}, {process_, POLLIN, 0}};
  while (poll(fds, std::size(fds), -1) < 0)
    if (errno != EINTR) return false;
  return fds[0].revents != 0;
}

bool MessageSocket::receive(Request* request) {
  request->fds.clear();
  if (buffer_.size() < kFirstRead || buffer_.size() > kKeepBuffer) {
    buffer_.resize(kFirstRead);
    buffer_.shrink_to_fit();
  }
  size_t have = 0, want = sizeof(wire::MessageHeader);
  while (have < want) {
    // The size is only a claim: memory is taken as bytes arrive.
    if (have == buffer_.size()) buffer_.resize(std::min(want, 2 * buffer_.size()));
    if (!request->fds.empty() && !wait_for_more()) return false;
    const ssize_t got = receive_some(socket_, std::span(buffer_).subspan(have), &request->fds);
    if (got <= 0 || request->fds.size() > kMaxFds) return false;
    const bool had_header = have >= sizeof(wire::MessageHeader);
    have += static_cast<size_t>(got);
    if (had_header || have < sizeof(wire::MessageHeader)) continue;
    std::memcpy(&request->header, buffer_.data(), sizeof request->header);
    if (request->header.magic != wire::kMagic || request->header.size > wire::kMaxPayload) return false;
    want += request->header.size;
  }
  if (have > want) return false;  // strictly request, reply
  request->payload = std::span(buffer_).subspan(sizeof(wire::MessageHeader), request->header.size);
  return true;
}

bool MessageSocket::send(uint32_t op, const Reply& reply) {
  wire::MessageHeader header = {wire::kMagic, op, static_cast<uint32_t>(reply.payload.size()), reply.error};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxFds)] = {};
  iovec parts[] = {{&header, sizeof header},
                   {const_cast<uint8_t*>(reply.payload.data()), reply.payload.size()}};
  msghdr message = {};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  if (!reply.fds.empty()) {
    const size_t count = std::min(reply.fds.size(), kMaxFds);
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
    cmsghdr* c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int) * count);
    for (size_t i = 0; i < count; ++i) {
      const int fd = reply.fds[i].get();
      std::memcpy(CMSG_DATA(c) + i * sizeof fd, &fd, sizeof fd);
    }
  }
  size_t left = sizeof header + reply.payload.size();
  while (true) {
    const ssize_t sent = sendmsg(socket_, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    left -= static_cast<size_t>(sent);
    if (left == 0) return true;
    message.msg_control = nullptr;
    message.msg_controllen = 0;
    auto skip = static_cast<size_t>(sent);
    for (iovec& part : parts) {
      const size_t here = std::min(skip, part.iov_len);
      part.iov_base = static_cast<uint8_t*>(part.iov_base) + here;
      part.iov_len -= here;
      skip -= here;
    }
  }
}

}  // namespace v3d::daemon
