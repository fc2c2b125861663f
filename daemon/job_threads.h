/// These threads drive jobs to their ends. Any of them serves any queue. They are made as they are needed and
/// leave when they have nothing to do for long.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
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
  /// @param sleeps  the calling thread is about to: who is woken begins on its processor, which will have
  ///   nothing else to do, where Linux may choose that of a client that runs
  void wake_summoned(std::mutex& mutex, bool sleeps = false);
  void wake_all();
  /// Without the mutex, by a thread that goes on running: one that was summoned and does not run yet, perhaps
  /// since this one has its processor, gets another. Costs nothing where there is none.
  void make_way(std::mutex& mutex);

  /// By one of them that found nothing to do: waits. @return  false when it is to return at once, with the
  /// mutex unlocked
  bool rest(std::unique_lock<std::mutex>& lock);

 private:
  /// Where a thread rests. There are as many as there were threads at one time, and they stay.
  struct Place {
    std::condition_variable wake;
    bool is_taken = false;
    bool is_woken = false;   ///< by somebody who has unlocked the mutex, or is about to
    bool is_called = false;  ///< to the processor of who wakes it
    pthread_t thread;
    uint64_t since;  ///< of rests_
  };

  Place* find_to_wake();
  void call_here(Place& place);

  const std::function<void()> work_;
  Crew workers_;
  Idlers idlers_;
  std::list<Place> places_;
  uint64_t rests_ = 0;                // so far
  int summoned_ = 0;                  // of the idle ones
  std::atomic<int> to_wake_{0};       // by those who summoned them, when they have unlocked the mutex
  std::atomic<bool> summons_{false};  // one that does not run yet
  cpu_set_t allowed_;                 // where threads may run that were called elsewhere
};

}  // namespace v3d::daemon
