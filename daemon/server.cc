#include "daemon/server.h"

#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <exception>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_format.h"
#include "daemon/door.h"
#include "daemon/session.h"
#include "gpu/base/log.h"
#include "ioctl/base/received_fd.h"

namespace v3d::daemon {
namespace {

// So many sync_files are exported until those that were closed are looked for: a program that exports one a
// frame would have the loop awake in each.
constexpr uint32_t kMuchForLater = 64;

// Keys of the epoll set; watches count from kFirstWatch.
constexpr uint64_t kListenerKey = 0, kWakeKey = 1, kFirstWatch = 2;

/// Linux gives the jobs of an exiting process that long to start (sched_entity.c, drm_sched_entity_flush).
constexpr int64_t kStartGraceNs = 1'000'000'000;
/// A killed process has its queued jobs dropped at once there, and what runs goes on: here so long.
constexpr int64_t kKilledGraceNs = 500'000'000;
constexpr int kDrainPeriodMs = 50, kRoomPeriodMs = 20;
/// So soon after the end of its window what the log left out is told.
constexpr int kReportPeriodMs = LogLimiter::kWindowNs / 1'000'000;

/// So long after a client has left memory goes back.
constexpr int kMemoryReturnPeriodMs = MemoryReturn::kPeriodNs / 1'000'000 + 1;

/// Accounts are compared with the processes that live so often at most: it takes a call of the host for each.
constexpr int64_t kRetirePeriodNs = 50'000'000;

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

bool has_caller(int listener) {
  pollfd fd = {listener, POLLIN, 0};
  return poll(&fd, 1, 0) > 0;
}

/// Answers the greeting that the client has sent or is about to send.
void refuse(int socket, int error) {
  const wire::MessageHeader answer = {wire::kMagic, wire::kHello, 0, error};
  [[maybe_unused]] const ssize_t sent = send(socket, &answer, sizeof answer, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace

Server::Server(ioctl::Gpu& gpu, const Options& options)
    : options_(options),
      started_ns_(ioctl::monotonic_ns()),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      epoll_later_(epoll_create1(EPOLL_CLOEXEC)),
      wake_event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      next_watch_(kFirstWatch),
      kernel_(gpu, *this, options.limits, *options.abi, options.display) {
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
    // A session may run a job.
    for (const auto& [token, open] : files_) scheduler_.kill(open.file->client()->id);
    for (const Draining& d : draining_) scheduler_.kill(d.client->id);
    connection_ended_.wait(lock, ended);
  }
  for (const auto& [token, open] : files_) scheduler_.kill(open.file->client()->id);
  for (const Draining& d : draining_) scheduler_.kill(d.client->id);
  auto files = std::move(files_);
  auto watches = std::move(watches_);
  lock.unlock();
  files.clear();
}

void Server::stop() {
  stop_ = true;
  options_.stopping();
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

  int64_t idle_since = options_.now_ns();
  while (!stop_) {
    int timeout_ms = -1;
    if (drain()) timeout_ms = kDrainPeriodMs;
    if (go_on_where_there_was_no_room())
      timeout_ms = timeout_ms < 0 ? kRoomPeriodMs : std::min(timeout_ms, kRoomPeriodMs);
    report_left_out();
    if (client_left_ || memory_return_.goes_back_again())
      timeout_ms = timeout_ms < 0 ? kMemoryReturnPeriodMs : std::min(timeout_ms, kMemoryReturnPeriodMs);
    if (has_clients()) {
      idle_since = 0;
      if (timeout_ms < 0) timeout_ms = kReportPeriodMs;
    } else if (options_.exit_when_idle >= 0) {
      const int64_t now = options_.now_ns();
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
      look_at_watch(key, events[i].events);
    }
    look_at_hangups();
    // Where a client has left more descriptors than that at once, who knocks stands behind them all.
    if (count == static_cast<int>(std::size(events)) && has_caller(listener.get()))
      accept_client(listener.get());
    give_memory_back();
  }
}

void Server::tell_gone(const std::function<void()>& gone) {
  while (true) {
    try {
      gone();
      break;
    } catch (const std::bad_alloc&) {  // before anything was changed
      poll(nullptr, 0, 10);
    }
  }
}

void Server::give_memory_back() {
  const int64_t now = options_.now_ns();
  if (!memory_return_.is_due(now)) return;
  uint64_t jobs = 0;
  for (const Scheduler::QueueStatus& queue : scheduler_.status()) jobs += queue.jobs_done;
  if (!memory_return_.look(now, jobs, client_left_.exchange(false))) return;
  chores_.add([this] {
    kernel_.gpu().give_memory_back();
    malloc_trim(0);
  });
}

bool Server::watch(int epoll, int socket, std::function<void()> gone, std::function<Again()> readable) {
  epoll_event event = {};
  // Hang-up is always reported.
  event.events = EPOLLONESHOT | (readable ? uint32_t{EPOLLIN} : 0u);
  uint64_t key;
  {
    const std::lock_guard lock(mutex_);
    key = next_watch_++;
    event.data.u64 = key;  // packed: nothing may refer to it
    watches_[key] = {std::move(gone), std::move(readable), socket};
  }
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, socket, &event) == 0) return true;
  log_error("the host refuses to watch another descriptor: errno %d", errno);
  Watch unused;  // destroyed after the lock
  const std::lock_guard lock(mutex_);
  unused = std::move(watches_[key]);
  watches_.erase(key);
  return false;
}

bool Server::watch_hangup_later(int socket, std::function<void()> gone) {
  if (!watch(epoll_later_.get(), socket, std::move(gone), {})) return false;
  if (later_added_.fetch_add(1, std::memory_order_relaxed) + 1 == kMuchForLater) wake();
  return true;
}

void Server::look_at_hangups() {
  later_added_ = 0;
  epoll_event events[64];
  int count;
  do {
    count = epoll_wait(epoll_later_.get(), events, std::size(events), 0);
    for (int i = 0; i < count; ++i) look_at_watch(events[i].data.u64, events[i].events);
  } while (count == static_cast<int>(std::size(events)));
}

void Server::look_at_watch(uint64_t key, uint32_t events) {
  constexpr uint32_t kOver = EPOLLHUP | EPOLLERR;
  Watch watch;
  {
    const std::lock_guard lock(mutex_);
    const auto known = watches_.find(key);
    if (known == watches_.end()) return;
    watch = std::move(known->second);
    if (events & kOver) watches_.erase(known);
  }
  if (events & kOver) {
    tell_gone(watch.gone);
    return;
  }
  const Again again = watch.readable ? watch.readable() : Again::kNever;
  if (again == Again::kNever) watch.readable = nullptr;
  if (again == Again::kWhenThereIsRoom) without_room_.push_back(key);
  const int socket = watch.socket;
  {
    const std::lock_guard lock(mutex_);
    watches_[key] = std::move(watch);
  }
  watch_again(key, socket, again == Again::kWhenReadable);
}

void Server::watch_again(uint64_t key, int socket, bool readable) {
  epoll_event event = {};
  event.events = EPOLLONESHOT | (readable ? uint32_t{EPOLLIN} : 0u);
  event.data.u64 = key;
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, socket, &event);
}

bool Server::go_on_where_there_was_no_room() {
  if (without_room_.empty() || !ioctl::closer_has_room()) return !without_room_.empty();
  for (const uint64_t key : std::exchange(without_room_, {})) {
    const std::lock_guard lock(mutex_);
    const auto known = watches_.find(key);
    if (known != watches_.end()) watch_again(key, known->second.socket, true);
  }
  return false;
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
  serve_connection(std::move(socket), std::nullopt);
}

Server::Again Server::answer_door(uint64_t token) {
  const LogScope scope(&newcomers());
  std::shared_ptr<const ioctl::UniqueFd> own_end;
  uint32_t minor = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto it = files_.find(token);
    if (it == files_.end()) return Again::kNever;
    own_end = it->second.own_end;
    minor = it->second.file->minor();
  }
  ioctl::UniqueFd connection;
  const Knock knock = take_knock(own_end->get(), &connection);
  if (knock == Knock::kConnection) serve_connection(std::move(connection), minor);
  if (knock == Knock::kLater) return Again::kWhenThereIsRoom;
  return knock == Knock::kNeverAgain ? Again::kNever : Again::kWhenReadable;
}

void Server::serve_connection(ioctl::UniqueFd socket, std::optional<uint32_t> node) {
  try {
    Peer peer;
    ConnectionCharges charges;
    if (!admit(socket.get(), node, &peer, &charges)) return ioctl::close_socket(std::move(socket));
    if (peer.account && start_session(&socket, std::move(peer), std::move(charges))) return;
  } catch (const std::bad_alloc&) {
    log_error("no memory for another connection");
  }
  refuse(socket.get(), ENOMEM);
  ioctl::close_socket(std::move(socket));
}

bool Server::admit(int socket, std::optional<uint32_t> node, Peer* peer, ConnectionCharges* charges) {
  const std::optional<ucred> user = credentials(socket);
  if (!user) {
    log_error("a connection is refused: the kernel does not say whose it is");
    return false;
  }
  // Root too is another user: whoever may send `shutdown`, or name a file's token, is the owner. A process of
  // another pid namespace cannot be told from whoever passes an end of somebody else's connection on.
  const bool is_owner = user->uid == geteuid() && (!node || user->pid != 0);
  if (!is_owner) peer->guest_of = node;
  if (!is_owner && !node) {
    log_error("pid %d of user %d is refused: this daemon serves user %d", user->pid, user->uid, geteuid());
    return false;
  }
  peer->pid = user->pid;
  peer->privileged = user->uid == 0;
  peer->process = std::make_shared<ioctl::UniqueFd>(open_process(socket, user->pid));
  const ioctl::ProcessId id = identify(socket, user->pid, *peer->process);
  // One that has died already could not be watched, and its number may be another's by now.
  if (*peer->process ? has_exited(peer->process) : kill(user->pid, 0) != 0 && errno == ESRCH) return false;
  ioctl::Resource scarce;
  const auto account = kernel_.budget().admit(id, absl::StrFormat("pid %d", user->pid), &scarce);
  if (!account) {
    log_error("pid %d is refused: too few %s are left for another client", user->pid,
              ioctl::resource_row(scarce).name);
    return true;
  }
  using ioctl::Resource;
  if (account->charge(Resource::kConnections, 1, &charges->connection) == 0 &&
      account->charge(Resource::kDescriptors, kConnectionDescriptors, &charges->descriptors) == 0 &&
      account->charge(Resource::kMappings, kConnectionMappings, &charges->mappings) == 0)
    peer->account = account;
  return true;
}

bool Server::start_session(ioctl::UniqueFd* socket, Peer peer, ConnectionCharges charges) {
  const int fd = socket->get();
  uint64_t id;
  {
    const std::lock_guard lock(mutex_);
    id = next_connection_++;
  }
  try {
    {
      const std::lock_guard lock(mutex_);
      connections_[id] = fd;
      if (*peer.process) holders_[peer.account->process()] = {peer.process, peer.account};
    }
    std::thread([this, id, fd, peer = std::move(peer), charges = std::move(charges)] {
      serve(id, fd, peer);
    }).detach();
    socket->release();
    return true;
  } catch (const std::exception& error) {
    log_error("another connection cannot be served: %s", error.what());
  }
  const std::lock_guard lock(mutex_);
  connections_.erase(id);
  return false;
}

void Server::serve(uint64_t connection, int socket, const Peer& peer) {
  const LogScope scope(&newcomers());
  try {
    Session(*this, socket, peer).run();
  } catch (const std::exception& error) {  // of memory, outside all requests
    log_error("a connection of pid %d ends: %s", peer.pid, error.what());
    refuse(socket, ENOMEM);
  }
  // What its client left there, too; and the number must not be reused before the server forgets it.
  ioctl::UniqueFd own_end(socket);
  const bool is_empty = ioctl::empty_queue(own_end.get());
  const std::lock_guard lock(mutex_);
  connections_.erase(connection);
  if (is_empty)
    own_end.reset();
  else
    ioctl::close_elsewhere(std::move(own_end));
  if (connections_.empty()) {  // perhaps nobody is left
    client_left_ = true;
    wake();
  }
  connection_ended_.notify_all();
}

namespace {

/// What an open node costs. False at a limit of the client.
bool charge_node(ioctl::Account& account, NodeCharges* charges) {
  using ioctl::Resource;
  return account.charge(Resource::kOpenNodes, 1, &charges->node) == 0 &&
         account.charge(Resource::kDescriptors, kNodeDescriptors, &charges->descriptors) == 0 &&
         account.charge(Resource::kMappings, kNodeMappings, &charges->mappings) == 0;
}

}  // namespace

int Server::open_file(uint32_t minor, int flags, const Peer& peer, OpenedFile* opened) {
  NodeCharges charges;
  if (!charge_node(*peer.account, &charges)) return EMFILE;
  std::shared_ptr<ioctl::File> file = kernel_.open(minor, peer.pid, peer.program, peer.privileged);
  if (!file) return ENXIO;
  if (flags & wire::kOwnMemory) file->use_no_slabs();
  log_debug(Debug::kDaemon, "%s (pid %d) opens minor %d as client %d", peer.program, peer.pid, minor,
            file->client()->id);
  return enter_file(std::move(file), flags, std::move(charges), opened);
}

int Server::give_descriptor(std::shared_ptr<ioctl::File> file, int flags, ioctl::Account& account,
                            ioctl::UniqueFd* fd) {
  NodeCharges charges;
  if (!charge_node(account, &charges)) return EMFILE;
  OpenedFile opened;
  if (const int error = enter_file(std::move(file), flags, std::move(charges), &opened)) return error;
  *fd = std::move(opened.client_end);
  return 0;
}

int Server::enter_file(std::shared_ptr<ioctl::File> file, int flags, NodeCharges charges,
                       OpenedFile* opened) {
  ioctl::UniqueFd client_end;
  const std::shared_ptr<ioctl::UniqueFd> own_end(new ioctl::UniqueFd, [](ioctl::UniqueFd* end) {
    ioctl::close_socket(std::move(*end));  // clients may have left descriptors in its queue
    delete end;
  });
  if (!make_node_pair(&client_end, own_end.get())) return EMFILE;
  if (flags & O_NONBLOCK) fcntl(client_end.get(), F_SETFL, O_NONBLOCK);
  if (file->events()) file->events()->connect(own_end);
  const uint64_t cookie = ioctl::socket_cookie(client_end.get());
  const uint64_t token = random_token();
  struct stat end = {};
  if (fstat(client_end.get(), &end) != 0) return EMFILE;
  {
    const std::lock_guard lock(mutex_);
    token_by_cookie_[cookie] = token;
    files_[token] = {std::move(file), own_end, cookie, end.st_ino, std::move(charges)};
  }
  if (!watch(
          epoll_.get(), own_end->get(), [this, token, own_end] { close_file(token); },
          [this, token] { return answer_door(token); })) {
    close_file(token);
    return ENOMEM;
  }
  *opened = {token, std::move(client_end)};
  return 0;
}

bool Server::adopt_file(int fd, uint64_t* token, uint32_t* minor) {
  const uint64_t cookie = ioctl::socket_cookie(fd);
  const std::lock_guard lock(mutex_);
  const auto it = cookie ? token_by_cookie_.find(cookie) : token_by_cookie_.end();
  if (it == token_by_cookie_.end()) return false;
  const auto open = files_.find(it->second);
  if (open == files_.end()) return false;
  *token = it->second;
  *minor = open->second.file->minor();
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
    // What may fail comes first.
    if (!it->second.file->is_render()) closing_.insert(token);
    draining_.push_back({.client = it->second.file->client(), .file = it->second.file});
    open = std::move(it->second);
    token_by_cookie_.erase(open.cookie);
    files_.erase(it);
  }
  const std::shared_ptr<const ioctl::User> user = open.file->client()->user();
  log_debug(Debug::kDaemon, "client %d (%s, pid %d) is closed", open.file->client()->id, user->program,
            user->pid);
  open.file->release();
  const std::lock_guard lock(mutex_);
  if (closing_.erase(token)) closed_.notify_all();
}

void Server::finish_closes(const ioctl::File* master) {
  std::vector<uint64_t> gone;
  std::unique_lock lock(mutex_);
  const auto it = std::find_if(files_.begin(), files_.end(),
                               [master](const auto& entry) { return entry.second.file.get() == master; });
  if (it != files_.end()) {  // the loop may not have come to a hang-up that is there already
    pollfd end = {it->second.own_end->get(), 0, 0};
    if (poll(&end, 1, 0) == 1 && (end.revents & POLLHUP)) gone.push_back(it->first);
  }
  const std::vector<uint64_t> closing(closing_.begin(), closing_.end());
  lock.unlock();
  for (const uint64_t token : gone) close_file(token);
  gone.insert(gone.end(), closing.begin(), closing.end());
  lock.lock();
  closed_.wait(lock, [&] {
    return std::none_of(gone.begin(), gone.end(),
                        [this](uint64_t token) { return closing_.contains(token); });
  });
}

std::shared_ptr<ChannelServer> Server::channel_server_of(ioctl::Account& account) {
  const std::lock_guard lock(mutex_);
  std::erase_if(channel_servers_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<ChannelServer>& known = channel_servers_[account.process()];
  std::shared_ptr<ChannelServer> channels = known.lock();
  if (!channels)
    known = channels = std::make_shared<ChannelServer>(
        options_.channel_server,
        [this] {
          scheduler_.make_way();
          return kernel_.gpu().takes_all_processors();
        },
        [this] { wake_workers(); });
  return channels;
}

/// What the kernel does when the last descriptor of a file is closed (drm-abi.md 3.9): a process that lives
/// waits in close() until its jobs have started; one that exits waits a second at most, and what has not
/// started by then is dropped. Who closes does not tell, so the process that used the file last stands for
/// it: the program to which an X server passed the descriptor, not the server. A second of the kernel is
/// longer here, Options::run_after_exit, also for what runs: however many die, their jobs are gone by then.
/// When for a second none of them runs, what is left waits for something else. Who was killed gets less.
bool Server::has_drained(Draining& d, int64_t now_ns) {
  const Scheduler::Activity activity = scheduler_.activity(*d.client);
  if (activity.idle && d.file.expired()) return true;
  if (d.dead_ns == 0) {
    if (!has_exited(d.client->user()->process)) return false;
    d.dead_ns = d.moved_ns = now_ns;
    d.ran_ns = activity.ran_ns;
  }
  if (activity.in_flight > 0 || activity.ran_ns != d.ran_ns) d.moved_ns = now_ns;
  d.ran_ns = activity.ran_ns;
  auto grace_ns = static_cast<int64_t>(options_.run_after_exit * 1e9);
  if (const auto process = d.client->user()->process; process && was_killed(*process))
    grace_ns = std::min(grace_ns, kKilledGraceNs);
  if (now_ns - d.moved_ns >= kStartGraceNs || now_ns - d.dead_ns >= grace_ns) {
    scheduler_.kill(d.client->id);
    d.killed = true;
  }
  return false;
}

void Server::retire_the_dead(int64_t now_ns) {
  // When the last one is gone nothing may happen for long, and then at once.
  const bool none = connections_.empty() && files_.empty();
  if (!none && now_ns - last_retired_ns_ < kRetirePeriodNs) return;
  last_retired_ns_ = now_ns;
  std::erase_if(holders_, [](const auto& entry) {
    const std::shared_ptr<ioctl::Account> account = entry.second.account.lock();
    if (!account) return true;
    if (!has_exited(entry.second.process)) return false;
    account->retire();
    return true;
  });
}

bool Server::drain() {
  const std::lock_guard lock(mutex_);
  const int64_t now_ns = options_.now_ns();
  retire_the_dead(now_ns);
  if (std::erase_if(draining_, [&](Draining& d) { return has_drained(d, now_ns); }) > 0) client_left_ = true;
  return !draining_.empty();
}

bool Server::has_clients() {
  const std::lock_guard lock(mutex_);
  const auto waits = [](const Draining& d) { return !d.killed; };
  return !connections_.empty() || !files_.empty() || std::any_of(draining_.begin(), draining_.end(), waits);
}

}  // namespace v3d::daemon
