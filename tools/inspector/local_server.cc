#include "tools/inspector/local_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <string>

namespace v3d::inspect {
namespace {

using Clock = std::chrono::steady_clock;

/// Waits until the socket has the event, or until the time. False: it has not.
bool wait_for(int fd, short events, Clock::time_point until) {
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd one = {fd, events, 0};
    const int ready = poll(&one, 1, static_cast<int>(std::max<int64_t>(left, 0)));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

/// Whether the other side of a connection within this host is a socket of this user. Linux tells it of all
/// sockets there are; where it does not, the token in the address has to do.
bool is_of_this_user(int fd) {
  sockaddr_in own = {}, other = {};
  socklen_t size = sizeof own;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) != 0) return false;
  size = sizeof other;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&other), &size) != 0) return false;
  std::ifstream sockets("/proc/net/tcp");
  if (!sockets) return true;
  const auto matches = [](const sockaddr_in& wanted, unsigned address, unsigned port) {
    return wanted.sin_addr.s_addr == address && ntohs(wanted.sin_port) == port;
  };
  std::string line;
  std::getline(sockets, line);  // the head
  while (std::getline(sockets, line)) {
    unsigned from, from_port, to, to_port, user;
    if (std::sscanf(line.c_str(), " %*u: %8x:%4x %8x:%4x %*x %*x:%*x %*x:%*x %*x %u", &from, &from_port, &to,
                    &to_port, &user) == 5 &&
        matches(other, from, from_port) && matches(own, to, to_port))
      return user == getuid();
  }
  return false;
}

/// One request after the other, each within the limits.
class LimitedStream final : public httplib::Stream {
 public:
  LimitedStream(int fd, const LocalLimits& limits) : fd_(fd), limits_(limits) {}

  /// Waits for the next request. False: there is none.
  bool begin_request() {
    left_ = limits_.request_bytes;
    is_answering_ = false;
    if (!wait_for(fd_, POLLIN, Clock::now() + limits_.idle)) return false;
    until_ = Clock::now() + limits_.request;
    return true;
  }

  bool is_readable() const override { return wait_for(fd_, POLLIN, Clock::now()); }
  bool is_writable() const override { return wait_for(fd_, POLLOUT, Clock::now()); }
  ssize_t read(char* bytes, size_t size) override {
    if (at_ == end_ && !fill()) return -1;
    const size_t count = std::min(size, end_ - at_);
    std::copy_n(buffer_ + at_, count, bytes);
    at_ += count;
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* bytes, size_t size) override {
    if (!is_answering_) until_ = Clock::now() + limits_.answer;
    is_answering_ = true;
    while (wait_for(fd_, POLLOUT, until_)) {
      const ssize_t sent = send(fd_, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent >= 0 || (errno != EAGAIN && errno != EINTR)) return sent;
    }
    return -1;
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override { get_local_ip_and_port(ip, port); }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    ip = "127.0.0.1";  // nobody else is listened to, and nobody asks for the port
    port = 0;
  }
  socket_t socket() const override { return fd_; }

 private:
  bool fill() {
    if (left_ == 0 || !wait_for(fd_, POLLIN, until_)) return false;
    const ssize_t got = recv(fd_, buffer_, std::min(sizeof buffer_, left_), MSG_DONTWAIT);
    if (got <= 0) return false;
    left_ -= static_cast<size_t>(got);
    at_ = 0;
    end_ = static_cast<size_t>(got);
    return true;
  }

  const int fd_;
  const LocalLimits& limits_;
  Clock::time_point until_;
  size_t left_ = 0, at_ = 0, end_ = 0;
  bool is_answering_ = false;
  char buffer_[4096];
};

}  // namespace

bool LocalServer::process_and_close_socket(socket_t sock) {
  bool good = is_of_this_user(sock);
  LimitedStream stream(sock, limits_);
  for (size_t left = keep_alive_max_count_; good && left > 0 && svr_sock_ != INVALID_SOCKET; --left) {
    if (!stream.begin_request()) break;
    bool is_closed = false;
    good = process_request(stream, left == 1, is_closed, nullptr);
    if (is_closed) break;
  }
  shutdown(sock, SHUT_RDWR);
  close(sock);
  return good;
}

}  // namespace v3d::inspect
