#include "tools/cli/run/control.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "ioctl/base/unique_fd.h"
#include "ioctl/link/wire.h"

namespace v3d::tools {
namespace {

constexpr timeval kPatience{10, 0};
constexpr int kEndPatienceSeconds = 60;
constexpr std::string_view kOfCapture = "capture-";

bool send_all(int fd, const void* data, size_t size) {
  auto* at = static_cast<const char*>(data);
  while (size) {
    ssize_t sent = send(fd, at, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    size -= static_cast<size_t>(sent);
  }
  return true;
}

bool receive_all(int fd, void* data, size_t size) {
  auto* at = static_cast<char*>(data);
  while (size) {
    ssize_t got = recv(fd, at, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

/// One request and its reply; false when the connection broke or the daemon answered an error (in errno).
bool exchange(int fd, wire::Op op, const void* payload, size_t size, std::string* reply) {
  wire::MessageHeader header{wire::kMagic, op, static_cast<uint32_t>(size), 0};
  errno = EPROTO;
  if (!send_all(fd, &header, sizeof(header)) || !send_all(fd, payload, size)) return false;
  if (!receive_all(fd, &header, sizeof(header)) || header.magic != wire::kMagic || header.op != op ||
      header.size > wire::kMaxPayload) {
    return false;
  }
  reply->resize(header.size);
  if (!receive_all(fd, reply->data(), header.size)) return false;
  errno = header.error;
  return header.error == 0;
}

}  // namespace

absl::StatusOr<std::string> ask_daemon_at(const std::string& path, const std::string& command) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const ioctl::UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  if (path.size() < sizeof(address.sun_path)) memcpy(address.sun_path, path.c_str(), path.size() + 1);
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0)
    return absl::NotFoundError("no daemon runs on " + path);
  wire::HelloRequest hello{wire::kProtocol, getpid(), "v3demu"};
  std::string reply;
  if (exchange(fd.get(), wire::kHello, &hello, sizeof(hello), &reply) &&
      exchange(fd.get(), wire::kCommand, command.data(), command.size(), &reply))
    return reply;
  return absl::UnavailableError("the daemon on " + path + " does not answer '" + command +
                                "': " + strerror(errno));
}

/// The daemon holds the lock beside its socket as long as it lives.
bool wait_for_daemon_end(const std::string& socket) {
  const ioctl::UniqueFd lock(open((socket + ".lock").c_str(), O_RDWR | O_CLOEXEC));
  bool ended = !lock || flock(lock.get(), LOCK_EX | LOCK_NB) == 0;
  for (int i = 0; !ended && i < kEndPatienceSeconds * 100; ++i) {
    usleep(10'000);
    ended = flock(lock.get(), LOCK_EX | LOCK_NB) == 0;
  }
  return ended;
}

std::vector<DaemonSocket> daemon_sockets(const std::string& one) {
  namespace fs = std::filesystem;
  std::vector<DaemonSocket> sockets;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(one).parent_path(), error)) {
    const std::string name = entry.path().filename();
    // "socket-DEVICE" of `run`, "capture-PID" of `capture`, or what the user has named.
    const bool known = name.starts_with("socket") || name.starts_with(kOfCapture) || entry.path() == one;
    if (known && !name.ends_with('~') && entry.is_socket(error))
      sockets.push_back({entry.path(), name.starts_with(kOfCapture)});
  }
  std::sort(sockets.begin(), sockets.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return sockets;
}

}  // namespace v3d::tools
