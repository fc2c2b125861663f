/// The scheduler runs jobs (drm-abi.md 3.1; Linux sched_main.c, sched_entity.c): six queues, a FIFO per file
/// and queue, with one job of it in flight.
///
/// What stands where is in JobQueues, who runs next in TimeSlices, which threads there are in JobThreads, and
/// how jobs last as long as on the board in Pace: none of these reads a clock, and but for the threads
/// themselves all is under one mutex, the scheduler's, which is not held while a job runs. Here jobs come,
/// run and end.
///
/// The thread that starts a job drives it to its end, so jobs in flight are bounded by threads. These are
/// made as they are needed; where the host gives no more, jobs wait for others to end. A small job whose
/// queue is free is started by the thread that pushed it: waking another one takes longer than the job.
///
/// With Options::pace a job has its queue at least as long as the board would take. An Alarm ends it, at once
/// when its client is gone; a moment is waited for by the thread that executed it.
///
/// It is live: a job that runs either ends, and its thread looks for the next, or comes to a checkpoint,
/// where it sees the end of its slice and lets others run; a job in flight waits for nothing but its slice,
/// as its dependencies are signalled before it starts; the clocks of FairShares pass by everybody who waits.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "daemon/alarm.h"
#include "daemon/gpu_errors.h"
#include "daemon/job_queues.h"
#include "daemon/job_threads.h"
#include "daemon/pace.h"
#include "daemon/predictor.h"
#include "daemon/time_slices.h"
#include "gpu/base/short_mutex.h"
#include "ioctl/jobs/job.h"

namespace v3d::daemon {

/// Thread safe.
class Scheduler {
 public:
  struct Options {
    /// How long a job runs while up to four others want its queue; in a crowd of 50 and more a tenth of it.
    int64_t slice_ns = 20'000'000;
    /// Threads, each of which may drive a job; at least one per queue.
    int max_threads = 256;
    bool pace = false;            ///< jobs end no earlier than predicted
    GpuErrors* errors = nullptr;  ///< where those of jobs are remembered; null: nowhere
  };
  Scheduler() : Scheduler(Options()) {}
  /// Throws std::system_error or std::bad_alloc when the first threads cannot be started.
  explicit Scheduler(const Options& options);
  /// Drops what is queued, cancels what runs, and waits for it.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// All or, with std::bad_alloc, nothing. What comes later needs no memory of the scheduler's; a job that
  /// finds none for itself fails.
  void push(const std::vector<ioctl::JobPtr>& jobs);
  /// After push(), by the same thread: runs the small ones of these jobs whose turn it is.
  void run_small(const std::vector<ioctl::JobPtr>& jobs);
  /// Wakes those for whom a thread found something to do while it had a ReplyFirst.
  /// @param sleeps  the thread has nothing more to do
  void wake_workers(bool sleeps = false) { threads_.wake_summoned(mutex_, sleeps); }
  /// By a thread that goes on running: one that was woken up for a job and has not begun, perhaps since this
  /// one has its processor, gets another. Costs nothing where there is none.
  void make_way();

  /// A client is gone: its jobs in flight are cancelled, its queued ones end with ESRCH as soon as their
  /// dependencies are signalled.
  void kill(uint64_t client);

  struct Activity {
    bool idle = true;    ///< no job queued or in flight
    int in_flight = 0;   ///< jobs
    int64_t ran_ns = 0;  ///< its jobs so far, in slices of theirs
  };
  Activity activity(const ioctl::ClientInfo& client) const;
  bool is_idle(const ioctl::ClientInfo& client) const { return activity(client).idle; }

  struct QueueStatus {
    size_t queued;     ///< those in flight included
    size_t in_flight;  ///< of which one runs and the others are held
    uint64_t jobs_done;
    uint64_t busy_ns;
  };
  std::array<QueueStatus, ioctl::kNumQueues> status() const;

 private:
  /// Threads that stay when there is nothing to do.
  static constexpr int kIdleWorkers = ioctl::kNumQueues - 1;

  class Node;

  void stop();
  void on_ready(QueuedJob& job);
  void run_empty_jobs(std::unique_lock<std::mutex>& lock);

  static bool is_small(const ioctl::Job& job);

  // Threads
  void work();
  void run(std::unique_lock<std::mutex>& lock, QueuedJobPtr job);
  void bury(std::unique_lock<std::mutex>& lock, const QueuedJobPtr& job);
  static void tell_end(const QueuedJob& job, int64_t ran_ns);
  int64_t stop_clock(QueuedJob& job);
  bool lacks_threads();
  void summon();

  // A job that comes to a checkpoint
  void reconsider(Node& node);
  bool wait(Node& node);

  // Jobs that have been executed and are not over yet
  bool keep_pace(QueuedJob& job, device::JobResult& result);
  int64_t look_at_paced(std::unique_lock<std::mutex>& lock);
  void end_paced(std::unique_lock<std::mutex>& lock, QueuedJobPtr job);

  const Options options_;
  mutable ShortMutex mutex_;  // protects all below but what protects itself
  JobQueues queues_;
  TimeSlices slices_;
  Pace pace_;
  JobThreads threads_;
  int small_in_flight_ = 0;  // jobs on threads that are no workers
  bool running_empty_jobs_ = false;
  bool stop_ = false;
  Predictor predictor_;           // thread safe
  std::unique_ptr<Alarm> alarm_;  // null: no pace is kept
};

}  // namespace v3d::daemon
