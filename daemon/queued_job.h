/// This is a job on its way through a queue, as the code that decides what runs sees it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "gpu/base/job_control.h"
#include "ioctl/jobs/job.h"

namespace v3d::daemon {

/// The thread that drives the job reads the constants and the atomic members, those of JobControl among them,
/// whenever it likes, and has `error` to itself until the job is over or paced. The scheduler's mutex
/// protects all others.
class QueuedJob : public JobControl {
 public:
  explicit QueuedJob(ioctl::JobPtr j)
      : job(std::move(j)), user(job->user ? job->user : job->client->user()), process(user->pid) {}

  bool orphaned() const { return job->charge.orphaned(); }
  /// With whose clock of FairShares it competes: all processes that have exited count as one.
  uint64_t competitor() const { return orphaned() ? kTheDead : static_cast<uint64_t>(process); }
  static constexpr uint64_t kTheDead = ~uint64_t{0};

  void set_held(bool held) {
    held_ = held;
    attention_ = held;
    if (!held) resume();
  }
  void set_attention(bool on) { attention_ = on; }

  bool take_memory(uint64_t bytes) override {
    const std::lock_guard lock(memory_mutex_);
    return job->derived.grow(bytes) == 0;
  }
  void return_memory(uint64_t bytes) override {
    const std::lock_guard lock(memory_mutex_);
    job->derived.shrink(bytes);
  }

  const ioctl::JobPtr job;
  const std::shared_ptr<const ioctl::User> user;
  const int32_t process;
  std::atomic<int64_t> slice_end_ns{0};  ///< of the job that runs: when it looks whether others want to
  int error = 0;                         ///< of one that has been executed
  uint64_t seqno = 0;
  bool ready = false;   ///< its dependencies are signalled
  bool killed = false;  ///< before it started
  bool in_flight = false;
  bool over = false;       ///< in flight no more than until its fence is signalled
  bool paced = false;      ///< in flight without a thread: it has been executed
  int64_t least_ns = 0;    ///< of a paced one: how long it has its queue
  int64_t granted_ns = 0;  ///< when its slice began
  int64_t ran_ns = 0;      ///< in earlier slices

 private:
  /// It is no longer held: whoever waits for that goes on.
  virtual void resume() {}

  std::mutex memory_mutex_;  // protects job->derived
};
using QueuedJobPtr = std::shared_ptr<QueuedJob>;

}  // namespace v3d::daemon
