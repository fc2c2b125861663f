/// Jobs stand in these queues; here is also what those in flight have of threads and address spaces.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <unordered_map>
#include <vector>

#include "daemon/fair_shares.h"
#include "daemon/queued_job.h"
#include "ioctl/jobs/job.h"

namespace v3d::daemon {

struct JobQueue {
  explicit JobQueue(int64_t slice_ns) : shares(slice_ns) {}

  std::map<uint64_t, std::list<QueuedJobPtr>> entities;  ///< by client; no empty lists when push() is done
  QueuedJobPtr running;                                  ///< in its slice, or null
  size_t in_flight = 0;
  FairShares shares;        ///< by process
  int64_t competitors = 1;  ///< files, at the last look; those of the dead as one
  bool contested = false;   ///< by more than one file
  uint64_t jobs_done = 0;
  uint64_t busy_ns = 0;
};

/// Knows neither threads nor time. Not thread safe: all under the scheduler's mutex.
class JobQueues {
 public:
  /// Of the threads so many are kept for the first job in flight of a process.
  static constexpr int kFirstJobThreads = 128;

  /// @param slice_ns     the credit of newcomers (FairShares)
  /// @param max_threads  jobs in flight that have threads at most, but at least one per queue
  JobQueues(int64_t slice_ns, int max_threads);

  JobQueue& of(ioctl::Queue queue) { return queues_[static_cast<size_t>(queue)]; }
  const JobQueue& of(ioctl::Queue queue) const { return queues_[static_cast<size_t>(queue)]; }
  JobQueue& of(const QueuedJob& job) { return of(job.job->queue); }
  const std::vector<JobQueue>& all() const { return queues_; }
  /// Those in which jobs run: cache cleans have nothing to do, and end where their dependencies do.
  template <typename Visit>
  void for_each_running_queue(const Visit& visit) {
    for (JobQueue& queue : queues_)
      if (&queue != &of(ioctl::Queue::kCacheClean)) visit(queue);
  }

  /// What enqueue() needs of memory: empty places where there are none yet. Throws std::bad_alloc.
  void make_places(const QueuedJob& job);
  void drop_empty_places(const QueuedJob& job);
  /// @param entry   one job, which has its places
  /// @param killed  it will not run
  void enqueue(std::list<QueuedJobPtr>& entry, bool killed);

  /// Sees to it that a job ends soon: cancels one in flight, keeps another from starting.
  void drop(QueuedJob& job);
  void drop_all();
  /// However many jobs it has: each is dropped when it is the first of its file.
  void drop_all_of(uint64_t client);

  /// A job gets a thread.
  void begin(const QueuedJobPtr& job);
  /// The job of a thread has been executed.
  void leave_thread(const QueuedJob& job);
  /// A job is done: before its fence says so.
  void count(const QueuedJob& job);
  /// The first job of its file is over, and was counted.
  void finish(const QueuedJobPtr& job);

  bool is_empty() const;
  int killed() const { return killed_; }  ///< jobs known not to run, the first of a file among them
  int in_flight() const { return in_flight_; }
  int thread_limit() const { return thread_limit_; }
  /// The host refused a thread; it may have some again when a job has left its own.
  void limit_threads(int threads) { thread_limit_ = threads; }

  /// One that can be buried, or null.
  QueuedJobPtr find_killed() const;
  /// The first cache clean of all whose dependencies are signalled, or null while another one is being ended.
  QueuedJobPtr first_clean() const;
  /// Compute excludes bin and render in one address space. The one that was pushed first goes first, so that
  /// neither starves.
  bool is_blocked(const QueuedJob& job) const;
  /// Whether a job may have a thread for itself. The jobs in flight of processes that have one already do not
  /// take what others need for their first, nor do those of the dead.
  bool has_thread_for(const QueuedJob& job) const;

 private:
  /// Jobs of one address space.
  struct SpaceUse {
    size_t jobs = 0;  // queued or in flight
    int cl = 0;       // bin and render in flight
    bool csd = false;
  };
  struct ProcessUse {
    size_t jobs = 0;  // queued or in flight
    int in_flight = 0;
  };

  void dequeue(const QueuedJob& job);
  bool earlier_ready(ioctl::Queue queue, const QueuedJob& than) const;
  void enter_space(const ioctl::Job& job);
  void leave_space(const ioctl::Job& job);

  std::vector<JobQueue> queues_;  // by ioctl::Queue
  // No entries without jobs.
  std::unordered_map<const ioctl::BoSpace*, SpaceUse> spaces_;
  std::unordered_map<int32_t, ProcessUse> processes_;
  int in_flight_ = 0;  // jobs that have threads
  int killed_ = 0;
  uint64_t next_seqno_ = 0;
  const int max_threads_;
  int thread_limit_;
};

}  // namespace v3d::daemon
