/// A PerfmonOrder keeps jobs with and without perfmons apart (Linux 7.3 v3d_submit.c,
/// v3d_serialize_for_perfmon).
#pragma once

#include <cstdint>
#include <unordered_map>

#include "ioctl/jobs/job.h"

namespace v3d::ioctl {

/// A job with a perfmon waits for all that its file has in flight on every queue, and the file's later jobs
/// wait for it. The kernel has one such order for all files, as its counters see whatever runs; ours count
/// each job by itself, so nobody need wait for a stranger. Not synchronised.
class PerfmonOrder {
 public:
  /// Adds the dependencies of a job that is about to be queued and remembers it; job.done is set.
  void add(Job& job);
  /// Remembers it only: a global perfmon is meant to see jobs overlap.
  void pass(const Job& job);

 private:
  std::unordered_map<uint64_t, FencePtr> in_flight_;  // the last of each context
  size_t prune_at_ = 64;
  FencePtr last_counted_;
};

}  // namespace v3d::ioctl
