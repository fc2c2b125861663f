#include "tools/xproxy/display.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "ioctl/base/received_fd.h"

namespace v3d::xproxy {
namespace {

/// Far from those that people and xvfb-run choose.
constexpr int kFirstNumber = 600, kLastNumber = 1600;
constexpr char kSockets[] = "/tmp/.X11-unix";

/// The process that a lock file names; 0: none that runs.
pid_t owner_of(const std::string& lock) {
  const ioctl::UniqueFd file(open(lock.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  std::array<char, 16> text{};
  if (!file || read(file.get(), text.data(), text.size() - 1) <= 0) return 0;
  const auto pid = static_cast<pid_t>(strtol(text.data(), nullptr, 10));
  return pid > 0 && (kill(pid, 0) == 0 || errno == EPERM) ? pid : 0;
}

/// @param path  abstract if it begins with a zero
ioctl::UniqueFd listen_at(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(path.begin(), path.end(), address.sun_path);
  ioctl::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::listen(socket.get(), 128) != 0)
    return {};
  return socket;
}

}  // namespace

Display::~Display() {
  if (!socket_file_.empty()) unlink(socket_file_.c_str());
  if (!lock_file_.empty()) unlink(lock_file_.c_str());
}

/// A lock file appears with its contents, or not at all.
bool Display::lock(int number) {
  const std::string file = "/tmp/.X" + std::to_string(number) + "-lock";
  const std::string draft = "/tmp/.tX" + std::to_string(number) + "-lock." + std::to_string(getpid());
  const ioctl::UniqueFd out(::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444));
  if (!out || dprintf(out.get(), "%10d\n", getpid()) != 11) return false;
  bool done = link(draft.c_str(), file.c_str()) == 0;
  if (!done && errno == EEXIST && owner_of(file) == 0)
    done = unlink(file.c_str()) == 0 && link(draft.c_str(), file.c_str()) == 0;
  unlink(draft.c_str());
  if (done) lock_file_ = file;
  return done;
}

bool Display::listen(int number) {
  const std::string path = std::string(kSockets) + "/X" + std::to_string(number);
  ioctl::UniqueFd abstract = listen_at(std::string(1, '\0') + path);
  if (!abstract) return false;
  unlink(path.c_str());  // left behind by whoever had the number before
  ioctl::UniqueFd file = listen_at(path);
  if (file) socket_file_ = path;
  listeners_.clear();
  listeners_.push_back(std::move(abstract));
  if (file) listeners_.push_back(std::move(file));
  return true;
}

std::string Display::open() {
  const mode_t mask = umask(0);
  mkdir(kSockets, 01777);  // fails if it is there
  umask(mask);
  for (int number = kFirstNumber; number <= kLastNumber; ++number) {
    if (!lock(number)) continue;
    if (listen(number)) {
      number_ = number;
      return {};
    }
    unlink(lock_file_.c_str());
    lock_file_.clear();
  }
  return std::string("no display number can be had in /tmp: ") + strerror(errno);
}

ioctl::UniqueFd Display::accept(const ioctl::UniqueFd& listener) {
  ioctl::UniqueFd client(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (!client || getsockopt(client.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return {};
  if (peer.uid == geteuid()) return client;
  ioctl::close_socket(std::move(client));
  return {};
}

}  // namespace v3d::xproxy
