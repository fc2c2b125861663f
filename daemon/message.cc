#include "daemon/message.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <new>

#include "ioctl/abi/core.h"
#include "ioctl/abi/mode.h"
#include "ioctl/abi/request.h"
#include "ioctl/abi/v3d.h"
#include "ioctl/abi/vc4.h"
#include "ioctl/base/received_fd.h"

namespace v3d::daemon {
namespace {

/// The descriptors that the argument names, and the one of kAdopt and kFdIoctl.
constexpr size_t kMaxFds = wire::kMaxFds + 1;
constexpr size_t kMaxSentFds = std::max<size_t>(kMaxFds, wire::kMaxScreenFds);
/// So much of a request says how long it may be.
constexpr size_t kDecidedBy = sizeof(wire::MessageHeader) + sizeof(wire::IoctlRequest);

/// Whether an ioctl has pointers to memory that the caller fills (the rules of shim/drm/marshal.cc), by
/// number, which two drivers may use.
bool brings_arrays(uint32_t number) {
  namespace request = ioctl::drm::request;
  namespace vc4 = ioctl::drm::vc4;
  constexpr uint32_t kRequests[] = {
      request::kSubmitCl,       request::kSubmitTfu,
      request::kSubmitCsd,      request::kSubmitCpu,
      request::kSyncobjWait,    request::kSyncobjReset,
      request::kSyncobjSignal,  request::kSyncobjTimelineWait,
      request::kSyncobjQuery,   request::kSyncobjTimelineSignal,
      request::kSetCrtc,        request::kSetGamma,
      request::kDirtyFb,        request::kAtomic,
      request::kCreatePropBlob, request::kCreateLease,
      vc4::kSubmitCl,           vc4::kCreateShaderBo,
  };
  return std::any_of(std::begin(kRequests), std::end(kRequests),
                     [&](uint32_t known) { return ioctl::drm::request_nr(known) == number; });
}

/// What a request of this kind may be long. @param have  what came of it, with the header
uint32_t longest_payload(const wire::MessageHeader& header, std::span<const uint8_t> have) {
  wire::IoctlRequest ioctl;
  if (header.op != wire::kIoctl || have.size() < sizeof header + sizeof ioctl) return kMaxPlainPayload;
  std::memcpy(&ioctl, have.data() + sizeof header, sizeof ioctl);
  return brings_arrays(ioctl::drm::request_nr(ioctl.request)) ? kMaxArrayPayload : kMaxPlainPayload;
}

/// Until there is something to receive. Not in recvmsg, where a thread is woken up, too, when its peer has
/// read what was sent to it.
void wait_for_some(int socket) {
  pollfd fd = {socket, POLLIN, 0};
  while (poll(&fd, 1, -1) < 0 && errno == EINTR) {
  }
}

/// Takes what a request can mean: memory of a BO, or a socket that this daemon gave out. In the place of
/// anything else there is nothing. False: so many wait to be closed already that whoever sends one more is
/// served no longer; this thread closes it, which serves nobody else.
bool accept_descriptor(ioctl::UniqueFd fd, std::vector<ioctl::UniqueFd>* fds) {
  const bool is_taken = ioctl::closes_at_once(fd.get());
  if (!is_taken && !ioctl::closer_has_room()) return false;
  if (is_taken) {
    fds->push_back(std::move(fd));
  } else {
    fds->emplace_back();
    ioctl::close_elsewhere(std::move(fd));
  }
  return true;
}

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
  bool accepted = true;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    for (size_t at = 0; at + sizeof(int) <= c->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(c) + at, sizeof fd);
      if (!accept_descriptor(ioctl::UniqueFd(fd), fds)) accepted = false;
    }
  }
  return !accepted || (message.msg_flags & MSG_CTRUNC) ? -1 : got;
}

}  // namespace

bool MessageSocket::wait_for_more() const {
  // A descriptor that came with the first part may be the client's own end: then no end-of-file ever comes.
  pollfd fds[] = {{socket_, POLLIN, 0}, {process_, POLLIN, 0}};
  while (poll(fds, std::size(fds), -1) < 0)
    if (errno != EINTR) return false;
  return fds[0].revents != 0;
}

bool PageBuffer::grow(size_t size) {
  // Not mremap: ThreadSanitizer does not see it, and takes the next user of an address for a racer.
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  if (data_) {
    std::memcpy(memory, data_, size_);
    munmap(data_, size_);
  }
  data_ = static_cast<uint8_t*>(memory);
  size_ = size;
  return true;
}

void PageBuffer::shrink(size_t size) {
  if (size >= size_) return;
  munmap(data_ + size, size_ - size);
  size_ = size;
}

MessageSocket::MessageSocket(int socket, int process, ioctl::Account& account)
    : socket_(socket), process_(process) {
  // Nothing yet; a charge of nothing is never refused.
  [[maybe_unused]] int error = account.charge(ioctl::Resource::kRequestBytes, 0, &bytes_);
  error = account.charge(ioctl::Resource::kDescriptors, 0, &descriptors_);
  if (!buffer_.grow(kFreeBuffer)) throw std::bad_alloc();
}

void MessageSocket::forget() {
  descriptors_.shrink(descriptors_.amount());
  if (buffer_.size() <= kFreeBuffer) return;
  buffer_.shrink(kFreeBuffer);
  bytes_.shrink(bytes_.amount());
}

int MessageSocket::grow(size_t want) {
  const size_t size = std::min(want, 2 * buffer_.size());
  const size_t charged = size - kFreeBuffer;
  if (charged > bytes_.amount())
    if (const int error = bytes_.grow(charged - bytes_.amount())) return error;
  return buffer_.grow(size) ? 0 : ENOMEM;
}

int MessageSocket::keep_descriptors(const std::vector<ioctl::UniqueFd>& fds) {
  return fds.size() > descriptors_.amount() ? descriptors_.grow(fds.size() - descriptors_.amount()) : 0;
}

bool MessageSocket::receive(Request* request) {
  request->fds.clear();
  request->error = 0;
  request->payload = {};
  forget();
  const auto drop = [&](int error) {
    request->error = error;
    request->fds.clear();
    descriptors_.shrink(descriptors_.amount());
  };
  uint64_t have = 0, want = sizeof(wire::MessageHeader);
  wait_for_some(socket_);
  while (have < want) {
    // The size is only a claim: memory is taken as bytes arrive.
    if (!request->error && have == buffer_.size())
      if (const int error = grow(want)) drop(error);
    // What is dropped goes into the part after the header, again and again.
    const uint64_t at = request->error ? std::min(have, uint64_t{kFreeBuffer} / 2) : have;
    const uint64_t room = request->error ? std::min(want - have, buffer_.size() - at) : buffer_.size() - at;
    if (!request->fds.empty() && !wait_for_more()) return false;
    const ssize_t got = receive_some(socket_, buffer_.bytes().subspan(at, room), &request->fds);
    if (got <= 0 || request->fds.size() > kMaxFds) return false;
    if (request->error)
      request->fds.clear();
    else if (const int error = keep_descriptors(request->fds))
      drop(error);
    const bool had_header = have >= sizeof(wire::MessageHeader);
    have += static_cast<uint64_t>(got);
    if (have < sizeof(wire::MessageHeader)) continue;
    if (!had_header) {
      std::memcpy(&request->header, buffer_.bytes().data(), sizeof request->header);
      if (request->header.magic != wire::kMagic || request->header.size > wire::kMaxPayload) return false;
      want += request->header.size;
    }
    if (!request->error && request->header.size > kMaxPlainPayload && have >= kDecidedBy &&
        request->header.size > longest_payload(request->header, buffer_.bytes().first(kDecidedBy)))
      drop(ENOMEM);
  }
  if (have > want) return false;  // strictly request, reply
  if (!request->error)
    request->payload = buffer_.bytes().subspan(sizeof(wire::MessageHeader), request->header.size);
  return true;
}

bool MessageSocket::send(uint32_t op, const Reply& reply) {
  wire::MessageHeader header = {wire::kMagic, op, static_cast<uint32_t>(reply.payload.size()), reply.error};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxSentFds)] = {};
  iovec parts[] = {{&header, sizeof header},
                   {const_cast<uint8_t*>(reply.payload.data()), reply.payload.size()}};
  msghdr message = {};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  if (!reply.fds.empty()) {
    const size_t count = std::min(reply.fds.size(), kMaxSentFds);
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
