/// These threads drive jobs to their ends. Any of them serves any queue. They are made as they are needed and
/// leave when they have nothing to do for long.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>

#include "gpu/base/crew.h"

namespace v3d::daemon {

/// All under the mutex of the scheduler but what says otherwise.
class JobThreads {
 public:
  /// @param keep  threads that stay when there is nothing to do
  /// @param work  what each does: until rest() is false, or it returns for good
  JobThreads(int keep, std::function<void()> work) : work_(std::move(work)), idlers_(keep) {}

  /// Without the mutex, before there are other threads. Throws std::system_error or std::bad_alloc.
  void start(int count);
  /// Without the mutex: waits for all; none is summoned any more.
  void join(std::mutex& mutex) { workers_.join(mutex); }

  int count() const { return static_cast<int>(workers_.size()); }
  /// Those that are about to look for something to do.
  int summoned() const { return summoned_; }
  /// Has a thread look for something to do: after wake_summoned().
  /// @param busy   threads of these that drive jobs: of the others one is about to look
  /// @param limit  threads at most
  /// @return  false when one more is needed that the host does not give
  bool summon(int busy, int limit);
  /// Without the mutex, for which who wakes up would have to wait first. Thread safe.
  void wake_summoned();
  void wake_all() { wake_.notify_all(); }
  /// Without the mutex, by a thread that goes on running: one that was summoned and does not run yet, perhaps
  /// since this one has its processor, gets another. Costs nothing where there is none.
  void make_way(std::mutex& mutex);

  /// By one of them that found nothing to do: waits. @return  false when it is to return at once, with the
  /// mutex unlocked
  bool rest(std::unique_lock<std::mutex>& lock);

 private:
  const std::function<void()> work_;
  Crew workers_;
  Idlers idlers_;
  int summoned_ = 0;                  // of the idle ones
  std::atomic<int> to_wake_{0};       // by those who summoned them, when they have unlocked the mutex
  std::atomic<bool> summons_{false};  // one that does not run yet
  std::condition_variable wake_;
};

}  // namespace v3d::daemon
