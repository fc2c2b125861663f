/// Time slices say who runs next, and for how long.
///
/// Between files the kernel starts the earliest pushed job and lets it end; here a job may take a thousand
/// times as long, so files share each queue in slices. In each queue one job runs. The others that have begun
/// are held: their threads wait where they are, at the next checkpoint of their JobControl. Who runs next:
/// - of the client processes the one that has had least (FairShares). A process that comes anew is ahead of
///   the others, and if it is so by half a slice, it does not even wait for the end of the slice. All that
///   have exited count as one: who dies with work in the queues leaves it no more of them than that;
/// - of the files of a process the one whose job has run least;
/// - else the job that was pushed first, as in the kernel.
#pragma once

#include <cstdint>

#include "daemon/job_queues.h"

namespace v3d::daemon {

/// Decides by what stands in the queues and by the time that it is told, and neither starts a thread nor
/// reads a clock. Not thread safe: all under the scheduler's mutex.
class TimeSlices {
 public:
  /// @param slice_ns  how long a job runs while up to four others want its queue; in a crowd of 50 and more
  ///                  a tenth of it
  TimeSlices(JobQueues& queues, int64_t slice_ns) : queues_(queues), slice_ns_(slice_ns) {}

  struct Choice {
    QueuedJobPtr start;  ///< in flight: the caller's to run; or one to bury, when it was killed; or null
    bool more = false;   ///< another thread would find one, too
  };
  /// Lets the right jobs of all queues run.
  Choice choose(int64_t now_ns);
  /// Lets the right ones among those in flight run. @return  in how many queues one should that has to be
  /// started
  int count_to_start(int64_t now_ns);
  /// The same of one queue. @return  whether one should that has to be started; until then nothing changes
  bool needs_start(JobQueue& queue, int64_t now_ns) { return arrange(queue, now_ns, false) != nullptr; }
  /// A job that was just pushed, as one in flight, if it is the next of its queue and nothing runs there; or
  /// null.
  QueuedJobPtr start_alone(const ioctl::JobPtr& job, int64_t now_ns);

  /// The thread of a job asks whether it may go on, and holds it if not. @return  whether another one should
  /// run that has to be started: until it is, this one goes on
  bool reconsider(QueuedJob& job, int64_t now_ns);
  /// The job has been executed or its time is over: no more slices.
  void end(QueuedJob& job, int64_t now_ns);

  int64_t length(const JobQueue& queue) const;
  /// How soon to look again for the thread of a job that has to be started.
  int64_t patience() const { return slice_ns_ / 20; }
  static int64_t elapsed(const QueuedJob& job, int64_t now_ns) { return now_ns - job.granted_ns; }
  /// What a job has had, the slice under way included.
  int64_t ran(const QueuedJob& job, int64_t now_ns) const;

 private:
  QueuedJobPtr next_of(JobQueue& queue, int64_t now_ns);
  QueuedJobPtr arrange(JobQueue& queue, int64_t now_ns, bool may_start);
  bool may_replace(const JobQueue& queue, const QueuedJob& job, int64_t now_ns) const;
  void grant(JobQueue& queue, const QueuedJobPtr& job, int64_t now_ns);
  void hold(JobQueue& queue, int64_t now_ns);
  static void charge(JobQueue& queue, QueuedJob& job, int64_t now_ns);

  JobQueues& queues_;
  const int64_t slice_ns_;
};

}  // namespace v3d::daemon
