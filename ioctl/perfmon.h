/// Performance monitors.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "gpu/perf/counters.h"
#include "ioctl/drm.h"

namespace v3d::ioctl {

/// Sums up the counters it selects over all jobs submitted with it. Thread safe.
///
/// Deviation: hardware counts from the start of a job with this perfmon to the start of one without,
/// neighbours on other queues included (drm-abi.md 3.7). Here exactly the jobs submitted with it count, and
/// their counts are there as soon as they end. Mesa separates jobs of different perfmons, so only a leak of
/// counts is missing.
class Perfmon {
 public:
  /// @param counters  at most drm::kMaxPerfmonCounters numbers below perf::counter_table(version).size()
  Perfmon(std::span<const uint8_t> counters, int version);

  void add(const perf::Counts& counts);
  void reset();
  std::vector<uint64_t> values() const;

 private:
  std::vector<int> counters_;  ///< where perf::Counts keep them; -1: they do not
  mutable std::mutex mutex_;   // protects values_
  std::array<uint64_t, drm::kMaxPerfmonCounters> values_{};
};

}  // namespace v3d::ioctl
