#include "shim/link/connection.h"

#include <poll.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "shim/link/connect.h"
#include "shim/link/known_descriptors.h"
#include "shim/link/launch.h"
#include "shim/link/settings_request.h"
#include "shim/link/submit_order.h"
#include "shim/process/config.h"
#include "shim/process/counts.h"
#include "shim/process/own_pid.h"
#include "shim/process/raw.h"

namespace v3d::shim {
namespace {

constexpr size_t kBufferSize = 64 << 10;
constexpr size_t kKeptBufferSize = 1 << 20;
constexpr size_t kHeader = sizeof(wire::MessageHeader);
/// So many requests that could go through a channel make a thread worth one.
constexpr uint32_t kWorthAChannel = 16;
/// So many next ones do without after one that nobody took.
constexpr uint32_t kNotShort = 4;
/// So long the thread looks for a reply before it sleeps: until the request is taken, and from then on.
constexpr uint64_t kPatienceNs = 30'000, kPatienceTakenNs = 100'000;
/// So long it waits for the daemon to look at the channel again, when that is this recent.
constexpr uint64_t kPatienceDeafNs = 10'000, kRecentNs = 100'000;

// initial-exec: no allocation on first access, which may happen inside malloc.
constexpr Connection kNoConnection{-1, 0, 0, 0, 0, 0, nullptr, 0, 0, 0, 0, false, nullptr, 0};
thread_local Connection mine [[gnu::tls_model("initial-exec")]] = kNoConnection;

// Connections of all threads, for the child of a fork to close: (fd + 1) << 32 | inode. Without locks, as
// fork may come at any moment.
std::atomic<uint64_t> registry[1024];

uint64_t registry_entry(const Connection& c) {
  return static_cast<uint64_t>(c.fd + 1) << 32 | static_cast<uint32_t>(c.ino);
}

void exchange_in_registry(uint64_t from, uint64_t to) {
  for (auto& slot : registry) {
    uint64_t expected = from;
    if (slot.load(std::memory_order_relaxed) == from && slot.compare_exchange_strong(expected, to)) return;
  }
}

/// Channels of this process.
std::atomic<uint32_t> num_channels{0};

void disconnect(Connection* c) {
  // The child of a fork has not got the memory.
  if (c->channel && c->owner == own_pid()) {
    raw::unmap_memory(c->channel, c->channel_bytes);
    num_channels.fetch_sub(1, std::memory_order_relaxed);
  }
  c->channel = nullptr;
  c->short_requests = 0;
  c->last_short_ns = 0;
  if (c->fd < 0) return;
  if (c == &mine) exchange_in_registry(registry_entry(*c), 0);
  if (is_intact(c->fd, c->dev, c->ino)) raw::close(c->fd);
  c->fd = -1;
}

void release_buffer(Connection* c) {
  if (c->buffer) raw::unmap_memory(c->buffer, c->capacity);
  c->buffer = nullptr;
  c->capacity = 0;
}

pthread_key_t exit_key;

void at_thread_exit(void*) {
  disconnect(&mine);
  release_buffer(&mine);
}

void in_fork_child() {
  for (auto& slot : registry) {
    uint64_t entry = slot.exchange(0, std::memory_order_relaxed);
    if (!entry) continue;
    int fd = static_cast<int>(entry >> 32) - 1;
    struct stat st;
    if (raw::fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) &&
        static_cast<uint32_t>(st.st_ino) == static_cast<uint32_t>(entry)) {
      raw::close(fd);
    }
  }
  mine.fd = -1;
  mine.channel = nullptr;
  num_channels.store(0, std::memory_order_relaxed);
  SubmitOrder::forget();
}

void hook_thread_and_fork() {
  enum : int { kNever, kNow, kDone, kFailed };
  static std::atomic<int> hooked{kNever};
  int state = kNever;
  if (hooked.compare_exchange_strong(state, kNow)) {
    pthread_atfork(nullptr, nullptr, in_fork_child);
    state = pthread_key_create(&exit_key, at_thread_exit) == 0 ? kDone : kFailed;
    hooked.store(state);
  }
  // Another thread is at it; or this very thread, below the signal handler in which we are.
  for (int patience = 0; state == kNow && patience < 1000; ++patience) {
    raw::call(SYS_sched_yield);
    state = hooked.load();
  }
  if (state == kDone) pthread_setspecific(exit_key, &mine);
}

int greet(Connection* c);

/// @param fd  of a connection that nobody has greeted, or a negative errno
int greet(Connection* c, int fd) {
  if (fd < 0) return fd;
  struct stat st;
  if (int error = raw::fstat(fd, &st); error < 0) {
    raw::close(fd);
    return error;
  }
  c->fd = fd;
  c->dev = st.st_dev;
  c->ino = st.st_ino;
  c->owner = own_pid();
  c->daemon = 0;
  return greet(c);
}

/// Once: the program hears an errno at most.
void tell_shortage(int error) {
  static std::atomic<bool> told{false};
  if (told.exchange(true)) return;
  Path log;
  log_file(&log);
  complain(error == -ENOMEM ? "no connection to the daemon: it has no room for another one of this process"
                            : "no connection to the daemon: no more files may be open at once (ulimit -n)",
           log.size() ? "; its messages: " : "", log.c_str());
}

/// The daemon that just answered may have been on its way out: then another one is started.
/// @param daemon  that is meant; 0: any
int establish(Connection* c, bool start, pid_t daemon, int node) {
  raw::KeepErrno keep;
  int error = greet(c, connect_anyhow(daemon, node));
  if (error == 0 && daemon && c->daemon != daemon) {
    // At the path another one answers by now.
    disconnect(c);
    error = greet(c, connect_through(node >= 0 ? node : any_known_file(daemon)));
  }
  for (int attempt = 0;
       attempt < 3 && start && error < 0 && error != -EPROTO && error != -EPERM && !is_refusal(error);
       ++attempt) {
    if (start_daemon() != 0) break;
    error = greet(c, connect_anyhow(daemon, node));
  }
  if (is_refusal(error)) {
    tell_shortage(error);
    return -error;
  }
  if (error < 0) return ENODEV;
  if (c == &mine) {
    exchange_in_registry(0, registry_entry(*c));
    hook_thread_and_fork();
  }
  if (!start) return 0;
  // Over a connection of their own.
  if (!compare_settings(c->daemon)) {
    disconnect(c);
    return ENODEV;
  }
  compare_debug_request();
  return 0;
}

long send_all(int fd, const uint8_t* data, size_t size, const int* fds, int num_fds) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * wire::kMaxFds)];
  while (size) {
    iovec piece{const_cast<uint8_t*>(data), size};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    if (num_fds) {
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(sizeof(int) * static_cast<size_t>(num_fds));
      memset(control, 0, message.msg_controllen);
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int) * static_cast<size_t>(num_fds));
      memcpy(CMSG_DATA(header), fds, sizeof(int) * static_cast<size_t>(num_fds));
    }
    count(kSocketCalls);
    long sent = raw::sendmsg(fd, &message, MSG_NOSIGNAL);
    if (sent == -EINTR) continue;
    if (sent < 0) return sent;
    num_fds = 0;
    data += sent;
    size -= static_cast<size_t>(sent);
  }
  return 0;
}

/// One recvmsg; keeps the descriptors that come with it.
long receive_some(int fd, uint8_t* data, size_t size, int flags, int* fds, int* num_fds) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * wire::kMaxFds)];
  iovec piece{data, size};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  count(kSocketCalls);
  long got = raw::recvmsg(fd, &message, flags);
  if (got < 0) return got;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int received;
      memcpy(&received, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      if (*num_fds < wire::kMaxFds) {
        fds[(*num_fds)++] = received;
      } else {
        raw::close(received);
      }
    }
  }
  return got;
}

/// Until there is something to receive. Not in recvmsg, where a thread is woken up, too, when the daemon has
/// read what was sent to it.
void wait_for_some(int fd) {
  pollfd ready{fd, POLLIN, 0};
  while (raw::call(SYS_ppoll, raw::word(&ready), 1, 0, 0, 0) == -EINTR) {
  }
}

int greet(Connection* c) {
  struct {
    wire::MessageHeader header;
    wire::HelloRequest hello;
    char run[wire::kMaxRunNames + 1];
  } request{{wire::kMagic, wire::kHello, 0, 0}, {wire::kProtocol, c->owner, {}}, {}};
  const auto& run = config().run;
  static_assert(decltype(Config::run)::capacity() == sizeof(request.run));
  memcpy(request.run, run.c_str(), run.size());
  request.header.size = static_cast<uint32_t>(sizeof(request.hello) + run.size());
  raw::call(SYS_prctl, 16 /* PR_GET_NAME */, raw::word(request.hello.program));
  struct {
    wire::MessageHeader header;
    wire::HelloReply hello;
  } reply;
  long error = send_all(c->fd, reinterpret_cast<uint8_t*>(&request),
                        sizeof(request.header) + request.header.size, nullptr, 0);
  // One that refuses closes the connection without having read the greeting; its answer is there all the
  // same.
  if (error == -EPIPE || error == -ECONNRESET) error = 0;
  auto* at = reinterpret_cast<uint8_t*>(&reply);
  size_t missing = sizeof(reply);
  int fds[wire::kMaxFds], num_fds = 0;
  while (!error && missing) {
    long got = receive_some(c->fd, at, missing, MSG_CMSG_CLOEXEC, fds, &num_fds);
    if (got == -EINTR) continue;
    if (got <= 0) {
      error = -ECONNRESET;
      break;
    }
    at += got;
    missing -= static_cast<size_t>(got);
    // An error comes without a payload.
    if (missing == sizeof(reply.hello) && reply.header.size == 0) break;
  }
  if (!error && reply.header.magic == wire::kMagic && is_refusal(-reply.header.error))
    error = -reply.header.error;
  if (!error && (reply.header.magic != wire::kMagic || missing || reply.header.error ||
                 reply.hello.protocol != wire::kProtocol)) {
    complain("the daemon that runs speaks another protocol than this library; stop it: ",
             place().socket.c_str());
    error = -EPROTO;
  }
  if (error) {
    disconnect(c);
    return static_cast<int>(error);
  }
  c->daemon = reply.hello.pid;
  c->chip = reply.hello.version;
  return 0;
}

}  // namespace

bool is_intact(int fd, dev_t dev, ino_t ino) {
  struct stat st;
  return fd >= 0 && raw::fstat(fd, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
}

uint32_t probe_chip() {
  Connection c = kNoConnection;
  if (greet(&c, connect_anyhow(0, -1)) < 0) return 0;
  disconnect(&c);
  return c.chip;
}

int Call::open(pid_t daemon, int node) {
  if (mine.busy) {
    temporary_ = kNoConnection;
    connection_ = &temporary_;
  } else {
    connection_ = &mine;
  }
  Connection* c = connection_;
  c->busy = true;
  // A request that most likely goes through the channel does without that look.
  const bool may_do_without = flags_ & kShort && c->channel && c->last_short_ns;
  if (c->fd >= 0 &&
      (c->owner != own_pid() || (!may_do_without && !look_at_socket()) || (daemon && c->daemon != daemon))) {
    disconnect(c);
  }
  node_ = node;
  if (c->fd < 0) {
    if (int error = establish(c, flags_ & kStartDaemon, daemon, node)) return error;
  }
  if (daemon && c->daemon != daemon) return ENODEV;
  return reserve(0, 0) ? 0 : ENOMEM;
}

Call::~Call() {
  for (int i = 0; i < num_received_; ++i) {
    if (received_[i] >= 0) raw::close(received_[i]);
  }
  if (!connection_) return;
  if (connection_ == &temporary_) disconnect(&temporary_);
  if (connection_ == &temporary_ || connection_->capacity > kKeptBufferSize) release_buffer(connection_);
  connection_->busy = false;
}

bool Call::reserve(size_t start, size_t payload) {
  Connection* c = connection_;
  if (payload > wire::kMaxPayload) return false;
  size_t needed = start + kHeader + payload;
  if (needed <= c->capacity) return true;
  size_t capacity = c->capacity ? c->capacity : kBufferSize;
  while (capacity < needed) capacity *= 2;
  long memory = c->buffer ? raw::call(SYS_mremap, raw::word(c->buffer), static_cast<long>(c->capacity),
                                      static_cast<long>(capacity), MREMAP_MAYMOVE)
                          : raw::word(raw::map_memory(capacity));
  if (memory == 0 || raw::is_error(memory)) return false;
  c->buffer = static_cast<uint8_t*>(raw::pointer(static_cast<uint64_t>(memory)));
  c->capacity = capacity;
  return true;
}

void* Call::append(size_t size) {
  if (!reserve(0, size_ + size)) return nullptr;
  void* room = at(size_);
  size_ += size;
  return room;
}

bool Call::append(const void* data, size_t size) {
  void* room = append(size);
  if (room) memcpy(room, data, size);
  return room;
}

uint8_t* Call::at(size_t position) { return connection_->buffer + kHeader + position; }
const uint8_t* Call::reply() const { return connection_->buffer + kHeader + size_ + kHeader; }

bool Call::attach(int fd) {
  if (num_attached_ == wire::kMaxFds) return false;
  attached_[num_attached_++] = fd;
  return true;
}

/// Whether it still is what it was. Before it is used, in each call.
bool Call::look_at_socket() {
  const Connection& c = *connection_;
  has_looked_ = true;
  return is_intact(c.fd, c.dev, c.ino);
}

void Call::say_cpu() {
  std::atomic_ref<uint32_t>(connection_->channel->client_cpu)
      .store(raw::current_cpu(), std::memory_order_relaxed);
}

int Call::transmit() {
  if (!has_looked_ && !look_at_socket()) return -EPIPE;
  if (connection_->channel) say_cpu();
  wire::MessageHeader header{wire::kMagic, op_, static_cast<uint32_t>(size_), 0};
  memcpy(connection_->buffer, &header, kHeader);
  const auto error = static_cast<int>(
      send_all(connection_->fd, connection_->buffer, kHeader + size_, attached_, num_attached_));
  if (connection_->channel) std::atomic_ref<uint32_t>(connection_->channel->on_socket).store(1);
  return error;
}

int Call::receive() {
  Connection* c = connection_;
  // Whether a signal interrupts, its handler says to recvmsg (SA_RESTART), not to poll.
  if (!(flags_ & kInterruptible)) wait_for_some(c->fd);
  const int flags = flags_ & kCloseOnExec ? MSG_CMSG_CLOEXEC : 0;
  // After the request, by which the reply is judged.
  const size_t start = kHeader + size_;
  if (!reserve(start, 0)) return ENOMEM;
  size_t have = 0;
  for (size_t need = kHeader; have < need;) {
    long got = receive_some(c->fd, c->buffer + start + have, c->capacity - start - have, flags, received_,
                            &num_received_);
    if (got == -EINTR) {
      if (have == 0 && flags_ & kInterruptible) return EINTR;
      continue;
    }
    if (got <= 0) return ENODEV;
    have += static_cast<size_t>(got);
    if (have < kHeader) continue;
    wire::MessageHeader header;
    memcpy(&header, c->buffer + start, kHeader);
    if (header.magic == wire::kMagic && header.op == wire::kChannel && header.size == 0 && c->channel)
      return EAGAIN;  // declined
    if (header.magic != wire::kMagic || header.op != op_ || !reserve(start, header.size)) return ENODEV;
    need = kHeader + header.size;
    reply_size_ = header.size;
    error_ = header.error;
  }
  return 0;
}

void Call::want_channel() {
  Connection* c = connection_;
  if (c != &mine || c->channel || ++c->short_requests != kWorthAChannel) return;
  // A message of its own in the place after the request.
  const wire::MessageHeader header{wire::kMagic, wire::kChannel, 0, 0};
  struct {
    wire::MessageHeader header;
    wire::ChannelReply channel;
  } reply;
  auto* at = reinterpret_cast<uint8_t*>(&reply);
  int fds[wire::kMaxFds], num_fds = 0;
  if (send_all(c->fd, reinterpret_cast<const uint8_t*>(&header), sizeof(header), nullptr, 0) < 0) return;
  for (size_t have = 0, need = kHeader; have < need;) {
    const long got = receive_some(c->fd, at + have, need - have, MSG_CMSG_CLOEXEC, fds, &num_fds);
    if (got == -EINTR) continue;
    if (got <= 0) break;  // the request itself will find out
    have += static_cast<size_t>(got);
    if (have == kHeader && reply.header.size == sizeof(reply.channel)) need = sizeof(reply);
    if (have < sizeof(reply) || num_fds != 1 || reply.channel.bytes < sizeof(wire::Channel)) continue;
    void* memory = raw::mmap(nullptr, reply.channel.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
    if (!memory) continue;
    raw::call(SYS_madvise, raw::word(memory), static_cast<long>(reply.channel.bytes), MADV_DONTFORK);
    c->channel = static_cast<wire::Channel*>(memory);
    c->channel_bytes = reply.channel.bytes;
    num_channels.fetch_add(1, std::memory_order_relaxed);
  }
  for (int i = 0; i < num_fds; ++i) raw::close(fds[i]);
}

int Call::take_short_reply() {
  const wire::Channel& channel = *connection_->channel;
  wire::MessageHeader header;
  memcpy(&header, channel.reply_message, kHeader);
  const size_t start = kHeader + size_;
  if (header.magic != wire::kMagic || header.op != op_ || header.size > wire::Channel::kMessage - kHeader ||
      !reserve(start, header.size)) {
    return ENODEV;
  }
  memcpy(connection_->buffer + start, channel.reply_message, kHeader + header.size);
  num_wakes_ = flags_ & kWakes ? std::min(channel.num_wakes, wire::Channel::kMostWakes) : 0;
  memcpy(wakes_, channel.wakes, sizeof(wakes_));
  reply_size_ = header.size;
  error_ = header.error;
  return 0;
}

/// Whether somebody looks at the channel. Who just did, and serves a socket for a moment, is waited for.
bool Call::is_listened_to() {
  Connection* c = connection_;
  if (c->not_short && c->not_short--) return false;
  const std::atomic_ref<uint32_t> request(c->channel->request);
  if (request.load(std::memory_order_acquire) == wire::kListening) return true;
  const uint64_t start = raw::fast_monotonic_ns();
  if (start - c->last_short_ns > kRecentNs) return false;
  while (raw::fast_monotonic_ns() - start < kPatienceDeafNs) {
    for (int i = 0; i < 16; ++i) raw::pause();
    if (request.load(std::memory_order_acquire) == wire::kListening) return true;
  }
  c->last_short_ns = 0;
  return false;
}

/// Looks for the reply to what is posted as long as that is better than to sleep.
/// @param in_the_way  whether the daemon's thread was last seen on this processor
/// @return  state of the reply
uint32_t Call::look_for_reply(bool* in_the_way) {
  wire::Channel* channel = connection_->channel;
  const uint32_t cpu = raw::current_cpu();
  const auto load = [](uint32_t& word) {
    return std::atomic_ref<uint32_t>(word).load(std::memory_order_acquire);
  };
  const uint64_t start = raw::fast_monotonic_ns();
  for (uint64_t patience = kPatienceNs; raw::fast_monotonic_ns() - start < patience;) {
    // On this processor the daemon can do nothing unless it is let.
    *in_the_way = cpu != wire::Channel::kNoCpu && load(channel->daemon_cpu) == cpu;
    if (*in_the_way) raw::call(SYS_sched_yield);
    for (int i = 0; i < 16 && load(channel->reply) == wire::kNoReply; ++i) raw::pause();
    if (load(channel->reply) != wire::kNoReply) break;
    if (load(channel->request) != wire::kPosted) patience = kPatienceTakenNs;
  }
  return load(channel->reply);
}

bool Call::send_short(int* error) {
  wire::Channel* channel = connection_->channel;
  if (kHeader + size_ > channel->kMessage || !is_listened_to()) return false;
  std::atomic_ref<uint32_t> request(channel->request), reply(channel->reply);
  const wire::MessageHeader header{wire::kMagic, op_, static_cast<uint32_t>(size_), 0};
  memcpy(connection_->buffer, &header, kHeader);
  memcpy(channel->request_message, connection_->buffer, kHeader + size_);
  say_cpu();
  std::atomic_ref<uint32_t>(channel->wakes_itself).store(flags_ & kWakes, std::memory_order_relaxed);
  reply.store(wire::kNoReply);
  uint32_t state = wire::kListening;
  if (!request.compare_exchange_strong(state, wire::kPosted)) return false;
  bool in_the_way = false;
  uint32_t answer = look_for_reply(&in_the_way);
  if (answer == wire::kNoReply) {
    // Nobody is there, or the daemon's thread has no processor: then it is not awake either.
    state = wire::kPosted;
    if (request.compare_exchange_strong(state, wire::kListening)) {
      if (in_the_way) connection_->not_short = kNotShort;
      return false;
    }
    if (reply.compare_exchange_strong(answer, wire::kSleeping)) answer = wire::kOnSocket;
  }
  if (answer == wire::kDeclined) return false;
  if (answer == wire::kReplied) {
    connection_->last_short_ns = raw::fast_monotonic_ns();
    *error = take_short_reply();
    return true;
  }
  *error = look_at_socket() ? receive() : ENODEV;
  return *error != EAGAIN;
}

void Call::bring_descriptor() {
  if (num_channels.load(std::memory_order_relaxed) < 2) flags_ &= ~(kShort | kWakes);
}

int Call::send() {
  Connection* c = connection_;
  count(kRequests);
  if (flags_ & kShort && num_attached_ == 0) {
    want_channel();
    int error;
    if (c->channel && send_short(&error)) {
      if (error) disconnect(c);
      return error;
    }
  }
  int error = transmit();
  if (error == -EPIPE) {
    // Closed before it could take the request: asking again repeats nothing.
    pid_t daemon = c->daemon;
    disconnect(c);
    bool bound = op_ == wire::kIoctl || op_ == wire::kMmap;
    if (int failure = establish(c, flags_ & kStartDaemon, bound ? daemon : 0, node_)) return failure;
    if (bound && c->daemon != daemon) return ENODEV;
    error = transmit();
  }
  error = error < 0 ? ENODEV : receive();
  // The reply to an abandoned request must never be taken for that of the next.
  if (error) disconnect(c);
  return error;
}

int Call::take(int index) {
  if (index < 0 || index >= num_received_) return -1;
  int fd = received_[index];
  received_[index] = -1;
  return fd;
}

}  // namespace v3d::shim
