/// Performance counters that a functional model can count exactly (compute-and-timing.md 15, class E).
#pragma once

#include <array>
#include <cstdint>
#include <mutex>

namespace v3d::perf {

inline constexpr int kMaxCounters = 93;  ///< V3D 7.1

/// Index = number of the counter on 7.1.
enum Counter : int {
  kFepPrimitivesNoPixels = 5,
  kFepPrimitivesPixels = 6,
  kFepClippedQuads = 7,
  kFepValidQuads = 8,
  kTlbQuadsStencilFail = 9,
  kTlbQuadsZStencilFail = 10,
  kTlbQuadsZStencilPass = 11,
  kTlbQuadsWritten = 12,
  kTlbPartialQuadsWritten = 13,
  kPtbPrimitivesClipped = 14,
  kPtbPrimitivesOutside = 15,
  kPtbPrimitivesBinned = 16,
  kPtbPrimitivesReversed = 17,
  kPtbWordsWritten = 71,
  kTlbWordsWritten = 72,
  kTlbWordsRead = 74,
  kQpuActive = 83,
  kQpuFragmentClocks = 84,
};

/// Plain sums of one worker; no locking.
struct Counts {
  std::array<uint64_t, kMaxCounters> values{};
  uint64_t& operator[](Counter c) { return values[static_cast<size_t>(c)]; }
  void add(const Counts& other) {
    for (int i = 0; i < kMaxCounters; ++i)
      values[static_cast<size_t>(i)] += other.values[static_cast<size_t>(i)];
  }
};

/// The sums of one job; workers merge theirs when they are done.
class JobCounts {
 public:
  void merge(const Counts& counts) {
    const std::lock_guard lock(mutex_);
    total_.add(counts);
  }
  Counts total() const {
    const std::lock_guard lock(mutex_);
    return total_;
  }

 private:
  mutable std::mutex mutex_;
  Counts total_;
};

}  // namespace v3d::perf
