/// With a Change workers wait for what others do to what a mutex protects: for a short while awake, then
/// asleep.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "gpu/base/pause.h"
#include "gpu/base/short_mutex.h"

namespace v3d::csd {

class Change {
 public:
  /// How long a worker waits before it goes back to the pool.
  static constexpr std::chrono::milliseconds kPatience{20};

  /// There is something for one more worker. With the mutex.
  void tell_one() { tell(false); }
  void tell_all() { tell(true); }

  /// @return  false: nothing changed for kPatience
  bool wait(std::unique_lock<std::mutex>& lock) {
    const uint32_t before = changes_.load(std::memory_order_relaxed);
    ++waiting_;
    lock.unlock();
    for (int i = 0; i < kLooks && changes_.load(std::memory_order_relaxed) == before; ++i) pause();
    lock_soon(lock);
    --waiting_;
    if (changes_.load(std::memory_order_relaxed) != before) return true;
    ++asleep_;
    ++waiting_;
    const bool changed =
        wake_.wait_for(lock, kPatience, [&] { return changes_.load(std::memory_order_relaxed) != before; });
    --asleep_;
    --waiting_;
    return changed;
  }

  /// Somebody waits. With the mutex.
  bool is_awaited() const { return waiting_ != 0; }

 private:
  /// A turn of a batch takes as long as some of them.
  static constexpr int kLooks = 500;

  void tell(bool all) {
    if (waiting_ == 0) return;
    changes_.fetch_add(1, std::memory_order_relaxed);
    if (asleep_ == 0) return;
    if (all)
      wake_.notify_all();
    else
      wake_.notify_one();
  }

  std::atomic<uint32_t> changes_{0};
  std::condition_variable wake_;
  uint32_t waiting_ = 0, asleep_ = 0;
};

}  // namespace v3d::csd
