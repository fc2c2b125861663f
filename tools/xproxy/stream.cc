#include "tools/xproxy/stream.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "tools/xproxy/limits.h"

namespace v3d::xproxy {
namespace {

constexpr size_t kChunk = size_t{1} << 18;
constexpr size_t kMostAtOnce = 16;  ///< descriptors with one message

union Control {
  cmsghdr alignment;
  std::array<char, CMSG_SPACE(sizeof(int) * kMostAtOnce)> bytes;
};

}  // namespace

void Stream::make_room() {
  if (begin_ > 0 && input_.size() - end_ < kChunk) {
    std::copy(input_.begin() + static_cast<ptrdiff_t>(begin_), input_.begin() + static_cast<ptrdiff_t>(end_),
              input_.begin());
    end_ -= begin_;
    begin_ = 0;
  }
  if (input_.size() - end_ < kChunk) input_.resize(end_ + kChunk);
}

bool Stream::fill() {
  const bool to_place = !place_.empty() && begin_ == end_;
  if (!to_place) make_room();
  iovec vector{input_.data() + end_, input_.size() - end_};
  if (to_place) vector = {place_.data(), place_.size()};
  Control control{};
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  const ssize_t got = recvmsg(fd(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  const int error = errno;
  if (got > 0 && to_place)
    place_ = place_.subspan(static_cast<size_t>(got));
  else if (got > 0)
    end_ += static_cast<size_t>(got);
  if (got < 0) return error == EAGAIN || error == EINTR;
  bool is_acceptable = true;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    for (size_t at = CMSG_LEN(0); at + sizeof(int) <= part->cmsg_len; at += sizeof(int)) {
      int descriptor;
      memcpy(&descriptor, reinterpret_cast<char*>(part) + at, sizeof(descriptor));
      is_acceptable = is_acceptable && (ioctl::closes_at_once(descriptor) || ioctl::closer_has_room());
      arrived_.emplace_back(ioctl::UniqueFd(descriptor));
    }
  }
  return got > 0 && is_acceptable && arrived_.size() <= kMostDescriptors;
}

void Stream::consume(size_t bytes) {
  begin_ += bytes;
  if (begin_ == end_) begin_ = end_ = 0;
}

ioctl::ReceivedFd Stream::take_descriptor() {
  if (arrived_.empty()) return {};
  ioctl::ReceivedFd first = std::move(arrived_.front());
  arrived_.pop_front();
  return first;
}

void Stream::write(Bytes bytes, ioctl::ReceivedFd descriptor) {
  if (descriptor) attach(std::move(descriptor));
  output_.insert(output_.end(), bytes.begin(), bytes.end());
}

bool Stream::write_through(Bytes bytes) {
  ssize_t sent = 0;
  if (queued() == 0 && parcels_.empty()) {
    sent = send(fd(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) return false;
    sent = std::max<ssize_t>(sent, 0);
    discarded_ += static_cast<uint64_t>(sent);  // positions count them
  }
  write(bytes.subspan(static_cast<size_t>(sent)));
  return true;
}

void Stream::attach(ioctl::ReceivedFd descriptor) {
  parcels_.push_back({discarded_ + output_.size(), std::move(descriptor)});
}

ssize_t Stream::send_some() {
  const uint64_t position = discarded_ + sent_;
  size_t carried = 0;
  while (carried < std::min(parcels_.size(), kMostAtOnce) && parcels_[carried].position <= position)
    ++carried;
  // Descriptors go with the first byte of a message: it ends before the byte of the next one.
  size_t size = queued();
  if (carried < parcels_.size())
    size = std::min<uint64_t>(size, std::max<uint64_t>(parcels_[carried].position - position, 1));
  iovec vector{output_.data() + sent_, size};
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  Control control{};
  if (carried > 0) {
    message.msg_control = control.bytes.data();
    message.msg_controllen = CMSG_SPACE(sizeof(int) * carried);
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(int) * carried);
    for (size_t i = 0; i < carried; ++i) {
      const int descriptor = parcels_[i].descriptor.get();
      memcpy(CMSG_DATA(part) + i * sizeof(int), &descriptor, sizeof(descriptor));
    }
  }
  const ssize_t sent = sendmsg(fd(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent > 0) parcels_.erase(parcels_.begin(), parcels_.begin() + static_cast<ptrdiff_t>(carried));
  return sent;
}

bool Stream::flush() {
  while (queued() > 0) {
    const ssize_t sent = send_some();
    if (sent < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN;
    }
    sent_ += static_cast<size_t>(sent);
    if (sent_ == output_.size() || sent_ > kMostQueued) {
      output_.erase(output_.begin(), output_.begin() + static_cast<ptrdiff_t>(sent_));
      discarded_ += sent_;
      sent_ = 0;
    }
  }
  return true;
}

}  // namespace v3d::xproxy
