/// What every block needs to know of the job it works for.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "gpu/base/memory.h"
#include "gpu/base/thread_pool.h"

namespace v3d {

namespace device {
struct Profile;
}
namespace qpu {
class ProgramCache;
class ThreadWatch;
}  // namespace qpu
namespace perf {
class JobCounts;
}

/// The first error of a job, with its message. Thread safe.
class JobError {
 public:
  /// Later calls are ignored: one job, one message.
  void set(std::string message) {
    const std::lock_guard lock(mutex_);
    if (failed_.exchange(true)) return;
    message_ = std::move(message);
  }
  bool failed() const { return failed_.load(std::memory_order_relaxed); }
  std::string message() const {
    const std::lock_guard lock(mutex_);
    return message_;
  }

 private:
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;
  std::string message_;
};

/// Job::instruction_limit of a job that may run for ever.
inline constexpr uint64_t kNoInstructionLimit = ~uint64_t{0};

/// Context of one bin, render, compute or TFU job. All pointers outlive the job.
struct Job {
  Memory memory;
  const device::Profile* profile;
  ThreadPool* pool;
  qpu::ProgramCache* programs;
  perf::JobCounts* counts;
  JobError* error;
  /// Set from outside to end the job early (its client is gone, or the reset of a hang).
  const std::atomic<bool>* cancel;
  /// Instructions that one QPU thread may execute before the job counts as hung: at a patience of 1, five
  /// seconds of a QPU.
  uint64_t instruction_limit = 1'000'000'000;
  /// Seconds of GPU time that a dispatch may go without a batch that ends (drm-abi.md 3.5).
  double patience = 1;
  qpu::ThreadWatch* watch = nullptr;  ///< null: nobody watches the QPU threads
  /// TIDX of worker slot s is first_tidx + s: unique over the stages of a client that run at one time.
  uint32_t first_tidx = 0;

  bool stopped() const { return cancel->load(std::memory_order_relaxed) || error->failed(); }
};

}  // namespace v3d
