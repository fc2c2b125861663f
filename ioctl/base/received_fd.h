/// Who closes a descriptor that came from elsewhere may have to wait. How long close(2) of one takes may be
/// up to whoever sent it: a socket lingers, a file system of a user's answers when it likes, and the queue of
/// a local socket may hold such descriptors. So no thread that serves others closes what is not known to
/// close at once.
#pragma once

#include <cstddef>
#include <utility>

#include "ioctl/base/unique_fd.h"

namespace v3d::ioctl {

/// Whether it is memory, as memfds are, and files of tmpfs and hugetlbfs: it closes at once.
bool is_memory(int fd);

/// Whether it is a local socket that this process has made, or one that is connected to such a one: nobody
/// else fills its queue, and it closes at once.
bool is_own_socket(int fd);

inline bool closes_at_once(int fd) { return is_memory(fd) || is_own_socket(fd); }

/// So many may wait for the thread that closes them before whoever sends more is to be served no longer.
inline constexpr size_t kMostWaitingCloses = 128;
bool closer_has_room();

/// Has a thread of its own close it, in the order of these calls. Never blocks.
void close_elsewhere(UniqueFd fd);

/// For threads that serve others: closes it here if that is over at once, else elsewhere.
void close_received(UniqueFd fd);

/// Takes what lies in the queue of a local socket off, closes received descriptors elsewhere, and lets no
/// more come. False: there is no room for them, and the socket may take long to close.
bool empty_queue(int socket);
/// Closes a local socket into whose queue others may have put descriptors. Never blocks.
void close_socket(UniqueFd socket);

template <void (*kClose)(UniqueFd)>
class FdClosedBy {
 public:
  FdClosedBy() = default;
  FdClosedBy(UniqueFd fd) : fd_(std::move(fd)) {}  // NOLINT(google-explicit-constructor): it may be any
  FdClosedBy(FdClosedBy&&) noexcept = default;
  FdClosedBy& operator=(FdClosedBy&& other) noexcept {
    if (this == &other) return *this;
    kClose(std::move(fd_));
    fd_ = std::move(other.fd_);
    return *this;
  }
  ~FdClosedBy() { kClose(std::move(fd_)); }

  int get() const { return fd_.get(); }
  explicit operator bool() const { return static_cast<bool>(fd_); }
  /// To close it is the caller's affair from here on.
  UniqueFd take() { return std::move(fd_); }

 private:
  UniqueFd fd_;
};

/// One that came along with a message.
using ReceivedFd = FdClosedBy<close_received>;
/// One on which they come.
using SharedSocket = FdClosedBy<close_socket>;

}  // namespace v3d::ioctl
