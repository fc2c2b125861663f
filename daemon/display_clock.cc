#include "daemon/display_clock.h"

#include <chrono>
#include <system_error>

#include "gpu/base/log.h"

namespace v3d::daemon {

DisplayClock::~DisplayClock() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void DisplayClock::wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
    if (!thread_.joinable() && !stop_) try {
        thread_ = std::thread([this] { run(); });
      } catch (const std::system_error& error) {  // the next one who wakes it tries again
        log_error("the display has no clock: %s", error.what());
      }
  }
  changed_.notify_one();
}

void DisplayClock::run() {
  std::unique_lock lock(mutex_);
  int64_t next_ns = INT64_MAX;
  while (!stop_) {
    if (!woken_) {
      // steady_clock is CLOCK_MONOTONIC.
      const std::chrono::steady_clock::time_point next{std::chrono::nanoseconds(next_ns)};
      if (next_ns == INT64_MAX)
        changed_.wait(lock);
      else
        changed_.wait_until(lock, next);
    }
    if (stop_) return;
    woken_ = false;
    lock.unlock();
    next_ns = display_.tick();
    lock.lock();
  }
}

}  // namespace v3d::daemon
