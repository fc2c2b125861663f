#include "daemon/server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <thread>

#include "daemon/session.h"
#include "gpu/base/log.h"

namespace v3d::daemon {
namespace {

// Keys of the epoll set; watches count from kFirstWatch.
constexpr uint64_t kListenerKey = 0, kWakeKey = 1, kFirstWatch = 2;

/// Linux gives the jobs of an exiting process that long (sched_entity.c, drm_sched_entity_flush).
constexpr int64_t kDeadClientGraceNs = 1'000'000'000;
constexpr int kDrainPeriodMs = 50;
/// So soon behind the end of its window what the log left out is told.
constexpr int kReportPeriodMs = LogLimiter::kWindowNs / 1'000'000;

uint64_t random_token() {
  uint64_t token = 0;
  while (token == 0)
    if (getrandom(&token, sizeof token, 0) != sizeof token) token = 0;
  return token;
}

bool has_exited(const std::shared_ptr<ioctl::UniqueFd>& process) {
  // Without a pidfd (another pid namespace) nobody could say that it lives.
  if (!process || !*process) return true;
  pollfd fd = {process->get(), POLLIN, 0};
  return poll(&fd, 1, 0) > 0;
}

/// All who are no client (yet) share what the log may hold of one.
const LogClient& newcomers() {
  static const LogClient client{0, "newcomers"};
  return client;
}

/// Of the process that connected, as it did. Nothing when they cannot be read.
std::optional<ucred> credentials(int socket) {
  ucred peer = {};
  socklen_t size = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || size != sizeof peer)
    return std::nullopt;
  return peer;
}

}  // namespace

Server::Server(ioctl::Gpu& gpu, const Options& options)
    : options_(options),
      started_ns_(ioctl::monotonic_ns()),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      next_watch_(kFirstWatch),
      kernel_(gpu, *this, options.limits, *options.abi) {
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.u64 = kWakeKey;
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_event_.get(), &event);
}

Server::~Server() {
  std::unique_lock lock(mutex_);
  // Replies under way, that to "shutdown" among them, still go out; a client that reads none is not waited
  // for.
  const auto ended = [this] { return connections_.empty(); };
  for (const auto& [id, socket] : connections_) shutdown(socket, SHUT_RD);
  if (!connection_ended_.wait_for(lock, std::chrono::seconds(1), ended)) {
    for (const auto& [id, socket] : connections_) shutdown(socket, SHUT_RDWR);
    connection_ended_.wait(lock, ended);
  }
  for (const auto& [token, open] : files_) scheduler_.kill(open.file->client()->id);
  for (const Draining& d : draining_) scheduler_.kill(d.client);
  auto files = std::move(files_);
  auto watches = std::move(watches_);
  lock.unlock();
  files.clear();
}

void Server::stop() {
  stop_ = true;
  wake();
}

void Server::wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_event_.get(), &one, sizeof one);
}

void Server::run(ioctl::UniqueFd listener) {
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.u64 = kListenerKey;
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener.get(), &event);

  int64_t idle_since = ioctl::monotonic_ns();
  while (!stop_) {
    int timeout_ms = -1;
    if (drain()) timeout_ms = kDrainPeriodMs;
    report_left_out();
    if (has_clients()) {
      idle_since = 0;
      if (timeout_ms < 0) timeout_ms = kReportPeriodMs;
    } else if (options_.exit_when_idle >= 0) {
      const int64_t now = ioctl::monotonic_ns();
      if (idle_since == 0) idle_since = now;
      const int64_t left = static_cast<int64_t>(options_.exit_when_idle * 1e9) - (now - idle_since);
      if (left <= 0) {
        log_debug(Debug::kDaemon, "no clients: leaving");
        return;
      }
      const auto left_ms = static_cast<int>(left / 1'000'000 + 1);
      timeout_ms = timeout_ms < 0 ? left_ms : std::min(timeout_ms, left_ms);
    }

    epoll_event events[64];
    const int count = epoll_wait(epoll_.get(), events, std::size(events), timeout_ms);
    for (int i = 0; i < count; ++i) {
      const uint64_t key = events[i].data.u64;
      if (key == kWakeKey) {
        uint64_t wakes;
        [[maybe_unused]] const ssize_t got = read(wake_event_.get(), &wakes, sizeof wakes);
        continue;
      }
      if (key == kListenerKey) {
        accept_client(listener.get());
        continue;
      }
      std::function<void()> gone;
      {
        const std::lock_guard lock(mutex_);
        const auto watch = watches_.find(key);
        if (watch == watches_.end()) continue;
        gone = std::move(watch->second);
        watches_.erase(watch);
      }
      gone();
    }
  }
}

void Server::watch_hangup(int socket, std::function<void()> gone) {
  epoll_event event = {};
  event.events = EPOLLONESHOT;  // hang-up is always reported; nothing else is of interest
  {
    const std::lock_guard lock(mutex_);
    const uint64_t key = next_watch_++;
    event.data.u64 = key;  // packed: nothing may refer to it
    watches_[key] = std::move(gone);
  }
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket, &event) != 0)
    log_error("epoll_ctl failed: errno %d; a closed descriptor will go unnoticed", errno);
}

void Server::accept_client(int listener) {
  const LogScope scope(&newcomers());
  ioctl::UniqueFd socket(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket) {
    if (errno == EMFILE || errno == ENFILE) {
      log_error("no descriptors left for another client");
      poll(nullptr, 0, 10);  // the connection stays pending: do not spin on it
    }
    return;
  }
  const std::lock_guard lock(mutex_);
  if (connections_.size() >= options_.max_connections) {
    log_error("more than %d connections: one is refused", options_.max_connections);
    return;
  }
  const uint64_t id = next_connection_++;
  const int fd = socket.release();
  connections_[id] = fd;
  std::thread([this, id, fd] { serve(id, fd); }).detach();
}

void Server::serve(uint64_t connection, int socket) {
  const std::optional<ucred> peer = credentials(socket);
  const LogScope scope(&newcomers());
  // Root too is another user: whoever may send `shutdown`, or name a file's token, is the owner.
  if (peer && peer->uid == geteuid()) {
    Session(*this, socket, peer->pid, peer->uid == 0).run();
  } else if (peer) {
    log_error("pid %d of user %d is refused: this daemon serves user %d", peer->pid, peer->uid, geteuid());
  } else {
    log_error("a connection is refused: the kernel does not say whose it is");
  }
  // The number must not be reused before the server forgets it.
  const std::lock_guard lock(mutex_);
  close(socket);
  connections_.erase(connection);
  if (connections_.empty()) wake();  // perhaps nobody is left
  connection_ended_.notify_all();
}

int Server::open_file(uint32_t minor, int flags, const Peer& peer, OpenedFile* opened) {
  const std::shared_ptr<ioctl::File> file = kernel_.open(minor, peer.pid, peer.program, peer.privileged);
  if (!file) return ENXIO;
  ioctl::UniqueFd client_end;
  const auto own_end = std::make_shared<ioctl::UniqueFd>();
  if (!ioctl::make_one_way_pair(&client_end, own_end.get())) return EMFILE;
  if (flags & O_NONBLOCK) fcntl(client_end.get(), F_SETFL, O_NONBLOCK);
  const uint64_t cookie = ioctl::socket_cookie(client_end.get());
  const uint64_t token = random_token();
  {
    const std::lock_guard lock(mutex_);
    files_[token] = {file, cookie, peer.process};
    token_by_cookie_[cookie] = token;
  }
  watch_hangup(own_end->get(), [this, token, own_end] { close_file(token); });
  log_debug(Debug::kDaemon, "%s (pid %d) opens minor %d as client %d", peer.program, peer.pid, minor,
            file->client()->id);
  *opened = {token, std::move(client_end)};
  return 0;
}

bool Server::adopt_file(int fd, uint64_t* token, uint32_t* minor) {
  const uint64_t cookie = ioctl::socket_cookie(fd);
  const std::lock_guard lock(mutex_);
  const auto it = cookie ? token_by_cookie_.find(cookie) : token_by_cookie_.end();
  if (it == token_by_cookie_.end()) return false;
  *token = it->second;
  *minor = files_.at(it->second).file->minor();
  return true;
}

std::shared_ptr<ioctl::File> Server::find_file(uint64_t token) {
  const std::lock_guard lock(mutex_);
  const auto it = files_.find(token);
  return it == files_.end() ? nullptr : it->second.file;
}

void Server::close_file(uint64_t token) {
  OpenFile open;
  {
    const std::lock_guard lock(mutex_);
    const auto it = files_.find(token);
    if (it == files_.end()) return;
    open = std::move(it->second);
    token_by_cookie_.erase(open.cookie);
    files_.erase(it);
    draining_.push_back({open.file->client()->id, open.process, 0});
  }
  log_debug(Debug::kDaemon, "client %d (%s, pid %d) is closed", open.file->client()->id,
            open.file->client()->program, open.file->client()->pid);
  open.file->release();
}

bool Server::drain() {
  const std::lock_guard lock(mutex_);
  const int64_t now = ioctl::monotonic_ns();
  std::erase_if(draining_, [&](Draining& d) {
    if (scheduler_.is_idle(d.client)) return true;
    if (d.dead_since_ns == 0 && has_exited(d.process)) d.dead_since_ns = now;
    if (d.dead_since_ns != 0 && now - d.dead_since_ns >= kDeadClientGraceNs) scheduler_.kill(d.client);
    return false;
  });
  return !draining_.empty();
}

bool Server::has_clients() {
  const std::lock_guard lock(mutex_);
  return !connections_.empty() || !files_.empty() || !draining_.empty();
}

}  // namespace v3d::daemon
