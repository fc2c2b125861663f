#include "daemon/alarm.h"

#include <sys/prctl.h>

#include <chrono>

namespace v3d::daemon {

Alarm::Alarm(std::mutex& mutex, Look look)
    : mutex_(mutex), look_(std::move(look)), thread_([this] { work(); }) {}

Alarm::~Alarm() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    ring();
  }
  thread_.join();
}

void Alarm::work() {
  // Linux may wake a thread 50 us late, which is longer than many a job.
  prctl(PR_SET_TIMERSLACK, 1);
  std::unique_lock lock(mutex_);
  while (!ends_) {
    rung_ = false;
    const int64_t next_ns = look_(lock);
    const auto is_rung = [this] { return rung_; };
    if (next_ns == kNever)
      wake_.wait(lock, is_rung);
    else
      wake_.wait_until(lock, std::chrono::steady_clock::time_point(std::chrono::nanoseconds(next_ns)),
                       is_rung);
  }
}

}  // namespace v3d::daemon
