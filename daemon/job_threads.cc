#include "daemon/job_threads.h"

#include <algorithm>
#include <exception>

#include "daemon/reply_first.h"
#include "gpu/base/short_mutex.h"

namespace v3d::daemon {

void JobThreads::start(int count) {
  for (int i = 0; i < count; ++i) places_.emplace_back();
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
    if (workers_.size() == places_.size()) places_.emplace_back();
    workers_.start([this] { work_(); });
  } catch (const std::exception&) {  // no thread, or no memory for one
    return false;
  }
  return true;
}

/// The one that has rested for the shortest time: what it used is still in the caches.
JobThreads::Place* JobThreads::find_to_wake() {
  Place* found = nullptr;
  for (Place& place : places_)
    if (place.is_taken && !place.is_woken && (found == nullptr || place.since > found->since)) found = &place;
  return found;
}

void JobThreads::wake_summoned(std::mutex& mutex, bool sleeps) {
  if (to_wake_.load(std::memory_order_relaxed) == 0 || ReplyFirst::is_pending()) return;
  for (int n = to_wake_.exchange(0); n > 0; --n) {
    std::unique_lock lock(mutex, std::defer_lock);
    lock_soon(lock);
    Place* const place = find_to_wake();
    if (place == nullptr) return;  // those that run look for something to do before they rest
    place->is_woken = true;
    if (sleeps && n == 1) call_here(*place);
    lock.unlock();
    place->wake.notify_one();
  }
}

void JobThreads::call_here(Place& place) {
  const int cpu = sched_getcpu();
  if (cpu < 0 || cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(allowed_), &allowed_) != 0) return;
  cpu_set_t here;
  CPU_ZERO(&here);
  CPU_SET(cpu, &here);
  place.is_called = pthread_setaffinity_np(place.thread, sizeof(here), &here) == 0;
}

void JobThreads::wake_all() {
  for (Place& place : places_) place.wake.notify_all();
}

void JobThreads::make_way(std::mutex& mutex) {
  if (!summons_.load(std::memory_order_relaxed)) return;
  std::unique_lock lock(mutex, std::defer_lock);
  lock_soon(lock);
  if (summons_.exchange(false)) idlers_.send_away();
}

bool JobThreads::rest(std::unique_lock<std::mutex>& lock) {
  Place& place = *std::find_if(places_.begin(), places_.end(), [](const Place& p) { return !p.is_taken; });
  place.is_taken = true;
  place.is_woken = place.is_called = false;
  place.thread = pthread_self();
  place.since = ++rests_;
  const bool stays = idlers_.wait(lock, place.wake);
  if (place.is_called) sched_setaffinity(0, sizeof(allowed_), &allowed_);
  place.is_taken = false;
  if (summoned_ > 0) --summoned_;
  summons_ = false;
  if (!stays) workers_.leave();
  return stays;
}

}  // namespace v3d::daemon
