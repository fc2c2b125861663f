/// A performance monitor counts what the jobs do that are submitted with it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "gpu/chip/generation.h"
#include "gpu/perf/counters.h"
#include "ioctl/abi/v3d.h"

namespace v3d::ioctl {

/// Sums up the counters it selects over all jobs submitted with it. Thread safe.
///
/// Deviation: before Linux 7.3 hardware counts from the start of a job with this perfmon to the start of one
/// without, neighbours on other queues included (drm-abi.md 3.7). Here exactly the jobs submitted with it
/// count, and their counts are there as soon as they end. Mesa separates jobs of different perfmons, so only
/// a leak of counts is missing.
class Perfmon {
 public:
  /// @param counters  at most drm::kMaxPerfmonCounters that the generation has
  Perfmon(std::span<const uint8_t> counters, chip::Generation generation);

  /// A job starts. @return what its add() passes
  uint64_t start() const;
  /// Adds what a job counted, unless the perfmon was stopped since the job started.
  void add(const perf::Counts& counts, uint64_t started);
  /// The jobs that run add nothing any more.
  void stop();
  /// Stops it and clears the values.
  void reset();
  std::vector<uint64_t> values() const;

 private:
  std::vector<int> counters_;  ///< perf::index_in_counts()
  mutable std::mutex mutex_;   // protects all below
  uint64_t stops_ = 0;
  std::array<uint64_t, drm::kMaxPerfmonCounters> values_{};
};

/// Which perfmons count on the device. Thread safe.
class ActivePerfmons {
 public:
  /// The counting of one job.
  struct Run {
    std::shared_ptr<Perfmon> perfmon;  ///< may be null
    uint64_t started = 0;
    bool own = false;  ///< the job's, not the global one
  };
  /// A job starts. The global perfmon takes the place of its own.
  Run begin(std::shared_ptr<Perfmon> own);
  /// @param counts  null when the job was cut short: its perfmon is dropped without a reading
  void end(const Run& run, const perf::Counts* counts);

  /// PERFMON_SET_GLOBAL. EBUSY while any perfmon counts.
  int set_global(std::shared_ptr<Perfmon> perfmon);
  /// EINVAL when there is none.
  int clear_global();
  bool has_global() const;
  /// Null: there is none.
  std::shared_ptr<Perfmon> global() const;
  /// A GPU reset. Assumed: the global perfmon stays set and counts no more until it is set again, since the
  /// kernel starts it at no other time.
  void reset();
  /// A perfmon is destroyed.
  void forget(const Perfmon* perfmon);

 private:
  mutable std::mutex mutex_;  // protects all below
  std::shared_ptr<Perfmon> global_;
  bool global_counts_ = false;
  int running_ = 0;  ///< jobs with a perfmon of their own
};

}  // namespace v3d::ioctl
