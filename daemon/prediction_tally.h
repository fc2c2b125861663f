/// The tally counts the jobs of the daemon that had a predicted time, and says why the others had none.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "gpu/device/device.h"
#include "ioctl/jobs/job.h"

namespace v3d::daemon {

/// Thread safe.
class PredictionTally {
 public:
  /// A job has been executed; add() follows, now or later.
  void begin();
  /// Throws nothing: a reason for which there is no memory goes to the others.
  void add(ioctl::Queue queue, const device::JobResult& result);
  /// "12 jobs predicted (10 csd, 2 tfu), 3.421 ms; 1 under way; 3 not: 2 bin, 1 render (REASON)".
  std::string text() const;

 private:
  using Counts = std::array<uint64_t, ioctl::kNumQueues>;
  /// Messages name addresses, and programs choose these: further reasons are told as one.
  static constexpr size_t kMostReasons = 8;

  Counts& counts_of(const device::JobResult& result);

  mutable std::mutex mutex_;  // protects all below
  Counts predicted_{};
  uint64_t predicted_ns_ = 0, under_way_ = 0;
  std::map<std::string, Counts> without_;  // by reason
  Counts others_{};
};

}  // namespace v3d::daemon
