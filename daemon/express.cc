#include "daemon/express.h"

#include <sched.h>
#include <sys/socket.h>

#include <cerrno>
#include <new>

#include "ioctl/fence.h"

namespace v3d::daemon {
namespace {

/// Looks at all channels between two at the socket, which is a system call.
constexpr uint32_t kLooks = 512;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// So long the thread stays where it is, even on its client's processor.
constexpr int64_t kStay = 300'000;

/// Has the thread go on on another processor, if it may: the client whose request woke it up is on this one.
void leave_cpu(uint32_t cpu) {
  cpu_set_t allowed, others;
  if (cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  others = allowed;
  CPU_CLR(cpu, &others);
  if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0) return;
  sched_setaffinity(0, sizeof allowed, &allowed);
}

/// Whether there is a request, or the end of the connection.
bool has_news(int socket) {
  char byte;
  return recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || (errno != EAGAIN && errno != EINTR);
}

}  // namespace

void Express::enter(std::shared_ptr<Seat> seat) {
  const std::lock_guard lock(mutex_);
  seats_.push_back(std::move(seat));
  ++version_;
}

void Express::leave(const std::shared_ptr<Seat>& seat) {
  seat->leaves_ = true;
  {
    const std::lock_guard lock(seat->mutex_);
    seat->serve_ = nullptr;
  }
  const std::lock_guard lock(mutex_);
  std::erase(seats_, seat);
  ++version_;
}

void Express::look(int socket, int64_t came_ns) {
  const int64_t before = last_over_ns_.exchange(ioctl::monotonic_ns(), std::memory_order_relaxed);
  if (came_ns - before > options_.close_ns || looking_.exchange(true)) return;
  serve_channels(socket);
  looking_ = false;
}

bool Express::serve(Seat& seat) {
  if (!seat.channel_->is_posted() || seat.leaves_.load(std::memory_order_relaxed)) return false;
  // Where the session itself is at it, the client breaks the rule of one request.
  const std::unique_lock lock(seat.mutex_, std::try_to_lock);
  if (!lock || !seat.serve_) return false;
  seat.serve_(*seat.channel_);
  return true;
}

void Express::serve_channels(int socket) {
  uint64_t version = ~uint64_t{0};
  uint32_t cpu = wire::Channel::kNoCpu;
  Seats seats;
  int64_t last_ns = ioctl::monotonic_ns(), moved_ns = 0;
  for (uint32_t looks = 0;; ++looks) {
    if (const uint64_t now = version_.load(); now != version) {
      version = now;
      const std::lock_guard lock(mutex_);
      try {
        seats = seats_;
      } catch (const std::bad_alloc&) {
        break;
      }
      for (const auto& seat : seats) seat->channel_->say_cpu(cpu = static_cast<uint32_t>(sched_getcpu()));
      for (const auto& seat : seats) seat->channel_->listen();
    }
    if (const auto now = static_cast<uint32_t>(sched_getcpu()); now != cpu) {
      cpu = now;
      for (const auto& seat : seats) seat->channel_->say_cpu(cpu);
    }
    bool news = false, in_the_way = false;
    for (const auto& seat : seats) {
      if (!serve(*seat)) continue;
      news = true;
      in_the_way = in_the_way || seat->channel_->client_cpu() == cpu;
    }
    if (news) {
      last_ns = ioctl::monotonic_ns();
      if (in_the_way && last_ns - moved_ns > kStay) {
        moved_ns = last_ns;
        leave_cpu(cpu);
      }
      continue;
    }
    if (ioctl::monotonic_ns() - last_ns >= options_.patience_ns) break;
    if (looks % kLooks == 0 && has_news(socket)) break;
    pause();
  }
  for (const auto& seat : seats)
    while (!seat->channel_->turn_away() && (serve(*seat) || !seat->channel_->is_posted())) {
    }
}

}  // namespace v3d::daemon
