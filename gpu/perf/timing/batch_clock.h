/// A BatchClock tells how long a batch took so far, while it runs: by the constants and caches of QpuArray,
/// but as if it had its QPU, the queues and the memory to itself, since what others ask for is not known
/// then. By these clocks the batches of a dispatch that is recorded take turns.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "gpu/perf/timing/cache.h"
#include "gpu/perf/timing/events.h"
#include "gpu/perf/timing/parameters.h"

namespace v3d::timing {

/// What batches have in common.
class Latencies {
 public:
  explicit Latencies(const chip::Profile& profile, const Parameters& parameters);
  const Parameters& parameters() const { return p_; }
  /// Clocks of a lookup from its instruction on, until the first word can be taken or the store is done.
  /// @param lines  that it touches
  uint64_t of_lookup(uint32_t tidx, const Shape& shape, std::span<const uint32_t> lines);

 private:
  uint64_t clocks_of_ns(uint64_t ns) const { return (ns * mhz_ + 999) / 1000; }
  uint64_t of_line(Cache* l1, uint32_t line);

  const Parameters p_;
  const uint64_t mhz_;
  const uint32_t qpus_per_slice_, sectors_;
  std::vector<Cache> l1_;  // by slice
  Cache l2_, walks_;
};

class BatchClock {
 public:
  /// @param latencies  null: instructions alone count
  void begin(Latencies* latencies) { *this = {}, latencies_ = latencies; }
  uint64_t now() const { return now_; }
  /// Clocks of instructions.
  uint64_t of(uint64_t instructions) const;
  void issue(uint64_t instructions) { now_ += of(instructions); }
  /// After the instruction that is under way. @param lines  of a lookup
  void event(Event::Kind kind, uint32_t tidx, const Shape& shape, std::span<const uint32_t> lines);

 private:
  Latencies* latencies_ = nullptr;
  uint64_t now_ = 0;
  std::deque<uint64_t> results_;  // when they can be taken
  uint64_t stores_done_ = 0;
};

}  // namespace v3d::timing
