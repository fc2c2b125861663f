/// Performance monitors and the names of the counters.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "gpu/device/profile.h"
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
  explicit Perfmon(std::span<const uint8_t> counters) : counters_(counters.begin(), counters.end()) {}

  void add(const perf::Counts& counts);
  void reset();
  std::vector<uint64_t> values() const;

 private:
  const std::vector<uint8_t> counters_;
  mutable std::mutex mutex_;  // protects values_
  std::array<uint64_t, drm::kMaxPerfmonCounters> values_{};
};

/// What PERFMON_GET_COUNTER tells (Linux v3d_perfmon.c).
struct CounterDescription {
  const char *category, *name, *description;
};
/// Index = number of the counter on that chip.
std::span<const CounterDescription> counter_descriptions(const device::Profile& profile);

}  // namespace v3d::ioctl
