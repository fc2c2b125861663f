/// A ThreadPool is a fixed set of workers that share out independent pieces of jobs (tiles, vertex batches,
/// workgroups).
///
/// Jobs that run at one time share the workers in turns of kShare. Nobody depends on them: the caller of
/// parallel_for works on its own pieces until none is left. Workers pass over the pieces of a job that is
/// held (JobControl); one that is held in the middle of a piece waits there, and a spare thread takes its
/// place, so that as many workers as before serve the others.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>

#include "gpu/base/crew.h"
#include "gpu/base/job_control.h"
#include "gpu/base/short_mutex.h"

namespace v3d {

class ThreadPool {
 public:
  /// How long a worker stays with one job while others have pieces too.
  static constexpr std::chrono::milliseconds kShare{5};
  /// Threads that may stand in for workers that wait; idle ones leave. When they do not suffice, jobs run on
  /// fewer.
  static constexpr size_t kMaxSpare = 256;

  /// @param workers  threads besides the caller, 0 or more; 0 runs everything on the caller. Throws
  ///   std::system_error or std::bad_alloc when they cannot be started.
  explicit ThreadPool(int workers);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Number of pieces of a call that can run at once: workers plus the caller.
  int concurrency() const { return workers_ + 1; }

  /// When a job calls again. kSoon: within microseconds, and workers look for that before they sleep. After
  /// the last call of a job, few workers look for the next job's as long as those come soon.
  enum class Next : uint8_t { kLater, kSoon };

  /// Runs fn(i, slot) for i in [0, count) on the caller and the workers and returns when all are done.
  /// slot is in [0, concurrency()) and unique among the pieces of this call that run at one time, so it can
  /// index per-thread state; the caller's is 0. Several threads may call parallel_for at once.
  /// When pieces throw (std::bad_alloc), those that have not begun are left out, and the first exception is
  /// thrown here once all others have ended.
  /// @param turn  of the job; may be null
  /// @param next  of the same job
  void parallel_for(int count, const std::function<void(int i, int slot)>& fn,
                    const JobControl* control = nullptr, Next next = Next::kLater);

  /// Whether pieces are being shared out.
  bool is_busy() const { return crowd_.load(std::memory_order_relaxed) > 0; }
  /// Whether several callers want workers: long pieces end early then and are called again.
  bool is_crowded() const { return crowd_.load(std::memory_order_relaxed) > 1; }

  /// For the time in which this thread waits in the middle of a piece. Nothing on other threads.
  class Away {
   public:
    Away();
    ~Away();
    Away(const Away&) = delete;
    Away& operator=(const Away&) = delete;

   private:
    ThreadPool* const pool_;
  };

 private:
  struct Task;
  void stop();
  void worker();
  void look_for_call(std::unique_lock<std::mutex>& lock, Next next);
  std::shared_ptr<Task> find_task(bool* passed_over);
  void add_thread();
  void invite_again(Task& task);
  void call_for_help(const Task& task);
  void help(Task& task, int slot, bool is_worker);

  const int workers_;
  std::atomic<int> crowd_{0};           // tasks_.size()
  std::atomic<uint32_t> num_calls_{0};  // so far, of those that were shared out
  ShortMutex mutex_;                    // protects all below
  std::condition_variable wake_;
  std::list<std::shared_ptr<Task>> tasks_;  // the next one to be helped first
  Crew threads_;
  int working_ = 0;       // threads that run pieces and do not wait in them
  Idlers idlers_;         // threads without work
  uint32_t vain_ = 0;     // how often of late no call came while a worker looked for the next job's
  uint32_t skipped_ = 0;  // how often none looked, as that was in vain
  bool stop_ = false;
};

}  // namespace v3d
