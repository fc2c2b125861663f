#include "daemon/express.h"

#include <algorithm>
#include <exception>
#include <new>

#include "ioctl/fence.h"

namespace v3d::daemon {
namespace {

/// Fewer requests than that were not worth it.
constexpr uint64_t kWorthIt = 4;
/// After failures it is tried ever less, down to once in so many requests.
constexpr uint32_t kMostFailures = 6;
/// What a thread takes: a stack and its guard.
constexpr uint64_t kThreadMappings = 2;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

Express::~Express() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    wake_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

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

void Express::note_request(int64_t came_ns, int64_t over_ns) {
  const int64_t before = last_over_ns_.exchange(over_ns, std::memory_order_relaxed);
  if (came_ns - before > options_.close_ns || hot_.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(mutex_);
  if (++skipped_ < uint32_t{1} << failures_ || hot_ || !start_thread()) return;
  skipped_ = 0;
  hot_ = true;
  wake_.notify_one();
}

bool Express::start_thread() {
  if (thread_.joinable()) return true;
  failures_ = kMostFailures;  // until it looked
  ioctl::Charge connection, mappings;
  if (account_->charge(ioctl::Resource::kConnections, 1, &connection) != 0 ||
      account_->charge(ioctl::Resource::kMappings, kThreadMappings, &mappings) != 0)
    return false;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::exception&) {  // none left, or no memory: all goes over sockets
    return false;
  }
  connection_ = std::move(connection);
  mappings_ = std::move(mappings);
  failures_ = 0;
  return true;
}

void Express::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return hot_ || stop_; });
    if (stop_) return;
    lock.unlock();
    uint64_t served = 0;
    try {
      served = serve_channels();
    } catch (const std::bad_alloc&) {  // for the list of seats
    }
    lock.lock();
    hot_ = false;
    failures_ = served >= kWorthIt ? 0 : std::min(failures_ + 1, kMostFailures);
  }
}

bool Express::serve(Seat& seat) {
  if (!seat.channel_->is_posted() || seat.leaves_.load(std::memory_order_relaxed)) return false;
  // Where the session itself is at it, the client breaks the rule of one request.
  const std::unique_lock lock(seat.mutex_, std::try_to_lock);
  if (!lock || !seat.serve_) return false;
  seat.serve_(*seat.channel_);
  return true;
}

uint64_t Express::serve_channels() {
  uint64_t served = 0, version = ~uint64_t{0};
  Seats seats;
  int64_t last_ns = ioctl::monotonic_ns();
  while (!stop_) {
    if (const uint64_t now = version_.load(); now != version) {
      version = now;
      const std::lock_guard lock(mutex_);
      seats = seats_;
      for (const auto& seat : seats) seat->channel_->listen();
    }
    uint64_t news = 0;
    for (const auto& seat : seats) news += serve(*seat);
    served += news;
    if (news > 0) {
      last_ns = ioctl::monotonic_ns();
      continue;
    }
    if (ioctl::monotonic_ns() - last_ns >= (served ? options_.patience_ns : options_.first_patience_ns))
      break;
    for (int i = 0; i < 8; ++i) pause();
  }
  for (const auto& seat : seats) {
    while (!seat->channel_->turn_away()) {
      if (serve(*seat))
        ++served;
      else if (seat->channel_->is_posted())
        break;  // by one who broke the rules; an honest client took it back
    }
  }
  return served;
}

}  // namespace v3d::daemon
