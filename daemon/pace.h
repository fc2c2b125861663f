/// A pace lets jobs last as long as the board would take (their predictions): what is left of that when a job
/// has been executed is time like any other. It is part of the job's slices, is charged to its process, and
/// stands still while others have theirs. But no thread is there for it.
#pragma once

#include <cstdint>

#include "daemon/job_queues.h"
#include "daemon/time_slices.h"

namespace v3d::daemon {

/// Without a clock or a thread of its own, as TimeSlices; under the scheduler's mutex, too.
class Pace {
 public:
  static constexpr int64_t kNever = INT64_MAX;

  Pace(JobQueues& queues, TimeSlices& slices) : queues_(queues), slices_(slices) {}

  /// Of a job that has been executed. @return  how much longer it has its queue, perhaps less than 0
  int64_t left(QueuedJob& job, uint64_t predicted_ns, int64_t now_ns) const;
  /// It has its queue from now on without a thread.
  void begin(QueuedJob& job);

  /// One whose time is over, or nobody waits for; or null.
  QueuedJobPtr find_due(int64_t now_ns) const;

  struct Look {
    int64_t next_ns = kNever;  ///< when to look again
    int needed_threads = 0;    ///< jobs that have to be started in the place of paced ones
  };
  /// Whoever wants a queue whose time is a paced job's gets it after the slice of that, for the job itself
  /// never comes to a checkpoint.
  Look let_others(int64_t now_ns);

 private:
  int64_t let_others(JobQueue& queue, int64_t now_ns, int& needed_threads);

  JobQueues& queues_;
  TimeSlices& slices_;
};

}  // namespace v3d::daemon
