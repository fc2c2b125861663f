/// A WorkMeter looks at the job of a thread now and then: as often as the work that the thread does for it
/// takes time.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "gpu/base/job_context.h"
#include "gpu/base/qpu_place.h"

namespace v3d {

/// Instructions that a QPU thread executes between two looks at its job. Few, as one may be a lookup in
/// compiled code that takes some microseconds; what may take longer is charged to a WorkMeter.
inline constexpr uint64_t kInstructionSlice = 4096;

/// The most work of a kind that a thread of this process did between two looks. For `v3demu status`.
class LongestWork {
 public:
  /// A thread did so much.
  void note(uint32_t cost) {
    uint32_t most = cost_.load(std::memory_order_relaxed);
    while (cost > most && !cost_.compare_exchange_weak(most, cost, std::memory_order_relaxed)) {
    }
  }
  uint32_t cost() const { return cost_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint32_t> cost_{0};
};
/// Of what is charged to a WorkMeter, and to compile a program, in the same units.
inline constinit LongestWork g_longest_charged, g_longest_compiled;

/// Of one thread. What work costs is counted in a unit that is like time, about 10 ns of a processor of 3
/// GHz, and rather too high than too low: a look costs little. Faults of the thread count, whatever it
/// charges, but for those of former jobs.
class WorkMeter {
 public:
  /// Between two looks, unless one charge is larger.
  static constexpr uint32_t kSlice = 10'000;

  /// @param job  outlives the meter; null: nobody has to know
  explicit WorkMeter(const JobContext* job = nullptr) : job_(job) {
    if (job_ != nullptr) t_fault_cost = 0;
  }

  /// Before or after the work. Waits while it is the turn of others. @return  whether the job goes on
  bool charge(uint32_t cost) {
    cost_ += cost + std::exchange(t_fault_cost, 0);
    if (cost_ >= kSlice) [[unlikely]]
      look();
    return !ended_;
  }
  /// The job has nothing more to do, as the last look found: what is left may be left out.
  bool ended() const { return ended_; }

 private:
  void look() {
    g_longest_charged.note(std::exchange(cost_, 0));
    if (job_ != nullptr) ended_ = job_->stopped();
  }

  const JobContext* job_;
  uint32_t cost_ = 0;
  bool ended_ = false;
};

}  // namespace v3d
