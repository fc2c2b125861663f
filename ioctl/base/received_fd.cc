#include "ioctl/base/received_fd.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

namespace v3d::ioctl {
namespace {

/// Nothing waits for its thread, which may be in close(2) when the process ends: there is one for as long as
/// the process lives.
class Closer {
 public:
  static Closer& the() {
    static auto* const closer = new Closer;
    return *closer;
  }

  bool has_room() {
    const std::lock_guard lock(mutex_);
    return waiting_.size() < kMostWaitingCloses;
  }

  void take(UniqueFd fd) {
    const std::lock_guard lock(mutex_);
    try {
      waiting_.push_back(fd.get());
      fd.release();
      if (!runs_) std::thread([this] { run(); }).detach();
      runs_ = true;
      some_.notify_one();
    } catch (const std::exception&) {
      // Without memory it stays open, without a thread until there is one.
      fd.release();
    }
  }

 private:
  [[noreturn]] void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      some_.wait(lock, [this] { return !waiting_.empty(); });
      const int fd = waiting_.front();
      lock.unlock();
      // The last holder of a connection waits for nothing then. Another one may undo it, and close it first.
      const linger none = {0, 0};
      setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
      close(fd);
      lock.lock();
      waiting_.pop_front();  // not before: it counts
    }
  }

  std::mutex mutex_;
  std::condition_variable some_;
  std::deque<int> waiting_;
  bool runs_ = false;
};

int option(int socket, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  return getsockopt(socket, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
}

}  // namespace

// Only files in memory have seals. The names in /proc would prove nothing: a file system of a user's can have
// a file of any name.
bool is_memory(int fd) { return fcntl(fd, F_GET_SEALS) >= 0; }

bool is_own_socket(int fd) {
  ucred maker = {};
  socklen_t size = sizeof maker;
  return option(fd, SO_DOMAIN) == AF_UNIX && option(fd, SO_ACCEPTCONN) == 0 &&
         getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &maker, &size) == 0 && maker.pid == getpid();
}

bool closer_has_room() { return Closer::the().has_room(); }

void close_elsewhere(UniqueFd fd) {
  if (fd) Closer::the().take(std::move(fd));
}

void close_received(UniqueFd fd) {
  if (fd && !closes_at_once(fd.get())) close_elsewhere(std::move(fd));
}

bool empty_queue(int socket) {
  constexpr size_t kMostFds = 253;        // the kernel's SCM_MAX_FD
  constexpr int kMostMessages = 1 << 14;  // more than a queue of the host's holds
  if (option(socket, SO_DOMAIN) != AF_UNIX) return true;
  shutdown(socket, SHUT_RD);
  // Then each message comes with its sender's credentials, also one of no bytes, which is not the end.
  const int on = 1;
  setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
  const bool has_empty_messages = option(socket, SO_TYPE) != SOCK_STREAM;
  for (int i = 0; i < kMostMessages && closer_has_room(); ++i) {
    std::array<char, 4096> bytes;
    iovec part = {bytes.data(), bytes.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMostFds) + CMSG_SPACE(sizeof(ucred))];
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0 || (got == 0 && !(has_empty_messages && CMSG_FIRSTHDR(&message)))) return true;
    for (cmsghdr* c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
      if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
      for (size_t at = 0; at + sizeof(int) <= c->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
        int fd;
        std::memcpy(&fd, CMSG_DATA(c) + at, sizeof fd);
        close_received(UniqueFd(fd));
      }
    }
  }
  return false;
}

void close_socket(UniqueFd socket) {
  if (socket && !empty_queue(socket.get())) close_elsewhere(std::move(socket));
}

}  // namespace v3d::ioctl
