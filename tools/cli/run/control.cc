#include "tools/cli/run/control.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "ioctl/base/unique_fd.h"
#include "ioctl/link/wire.h"
#include "shim/process/place.h"

namespace v3d::tools {
namespace {

constexpr timeval kPatience{10, 0};
constexpr int kEndPatienceSeconds = 60;
constexpr int kLeavingPatienceSeconds = 5;  // daemons promise to end within two
constexpr std::string_view kOfCapture = "capture-";

/// Nothing when nobody listens there.
ioctl::UniqueFd connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ioctl::UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (path.size() < sizeof(address.sun_path)) memcpy(address.sun_path, path.c_str(), path.size() + 1);
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) fd.reset();
  return fd;
}

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

/// Tells the socket of one daemon from that of the next one under the same name.
struct SocketIdentity {
  ino_t inode = 0;
  timespec made = {};
};

SocketIdentity which_socket(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 ? SocketIdentity{info.st_ino, info.st_mtim} : SocketIdentity{};
}

/// A daemon holds the lock beside its socket as long as it lives, and the next one makes its socket under
/// that lock.
bool wait_for_end_of(const std::string& socket, const SocketIdentity& before, int seconds) {
  const ioctl::UniqueFd lock(open((socket + ".lock").c_str(), O_RDWR | O_CLOEXEC));
  const auto has_ended = [&] {
    if (!lock || flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return true;
    const SocketIdentity now = which_socket(socket);
    return before.inode != 0 && now.inode != 0 &&
           (now.inode != before.inode || now.made.tv_sec != before.made.tv_sec ||
            now.made.tv_nsec != before.made.tv_nsec);
  };
  bool ended = has_ended();
  for (int i = 0; !ended && i < seconds * 100; ++i) {
    usleep(10'000);
    ended = has_ended();
  }
  return ended;
}

}  // namespace

absl::StatusOr<std::string> ask_daemon_at(const std::string& path, const std::string& command) {
  const ioctl::UniqueFd fd = connect_to(path);
  if (!fd) return absl::NotFoundError("no daemon runs on " + path);
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  wire::HelloRequest hello{wire::kProtocol, getpid(), "v3demu"};
  std::string reply;
  if (exchange(fd.get(), wire::kHello, &hello, sizeof(hello), &reply) &&
      exchange(fd.get(), wire::kCommand, command.data(), command.size(), &reply))
    return reply;
  return absl::UnavailableError("the daemon on " + path + " does not answer '" + command +
                                "': " + strerror(errno));
}

bool wait_for_daemon_end(const std::string& socket) {
  return wait_for_end_of(socket, which_socket(socket), kEndPatienceSeconds);
}

absl::Status end_daemon(const std::string& socket) {
  const SocketIdentity before = which_socket(socket);
  const auto answer = ask_daemon_at(socket, "shutdown");
  if (absl::IsNotFound(answer.status())) return answer.status();
  // One that was leaving when it was asked answers nothing, and is gone a moment later.
  if (wait_for_end_of(socket, before, answer.ok() ? kEndPatienceSeconds : kLeavingPatienceSeconds))
    return absl::OkStatus();
  return answer.ok() ? absl::UnavailableError("the daemon on " + socket + " does not end") : answer.status();
}

std::string used_socket() {
  const shim::DaemonPlace& place = shim::place();
  const std::string usual = place.socket.c_str(), limited = usual + shim::kLimitedSuffix;
  return place.runtime_dir_ours && !connect_to(usual) && connect_to(limited) ? limited : usual;
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
