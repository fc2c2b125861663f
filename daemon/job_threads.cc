#include "daemon/job_threads.h"

#include <exception>

#include "daemon/reply_first.h"
#include "gpu/base/short_mutex.h"

namespace v3d::daemon {

void JobThreads::start(int count) {
  for (int i = 0; i < count; ++i) workers_.start([this] { work_(); });
}

bool JobThreads::summon(int busy, int limit) {
  if (idlers_.count() > summoned_) {
    ++summoned_;
    summons_ = true;
    ++to_wake_;
    return true;
  }
  if (busy < count() || count() >= limit) return true;
  try {
    workers_.start([this] { work_(); });
  } catch (const std::exception&) {  // no thread, or no memory for one
    return false;
  }
  return true;
}

void JobThreads::wake_summoned() {
  if (to_wake_.load(std::memory_order_relaxed) == 0 || ReplyFirst::is_pending()) return;
  for (int n = to_wake_.exchange(0); n > 0; --n) wake_.notify_one();
}

void JobThreads::make_way(std::mutex& mutex) {
  if (!summons_.load(std::memory_order_relaxed)) return;
  std::unique_lock lock(mutex, std::defer_lock);
  lock_soon(lock);
  if (summons_.exchange(false)) idlers_.send_away();
}

bool JobThreads::rest(std::unique_lock<std::mutex>& lock) {
  const bool stays = idlers_.wait(lock, wake_);
  if (summoned_ > 0) --summoned_;
  summons_ = false;
  if (!stays) workers_.leave();
  return stays;
}

}  // namespace v3d::daemon
