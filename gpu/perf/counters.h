/// JobCounts are the performance counters that a functional model can count exactly (compute-and-timing.md
/// 15, class E).
#pragma once

#include <array>
#include <cstdint>
#include <mutex>

namespace v3d::perf {

inline constexpr int kMaxCounters = 93;  ///< V3D 7.1

/// Bytes of the words in which units count what they read and write.
inline constexpr uint64_t kBusWord = 16;
constexpr uint64_t bus_words(uint64_t bytes) { return (bytes + kBusWord - 1) / kBusWord; }

/// Index = number of the counter on 7.1; those of 4.2 alone come after them.
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
  kPseWordsRead = 73,
  kTlbWordsRead = 74,
  kQpuActive = 83,
  kQpuFragmentClocks = 84,
  kQpuIdleClocks = kMaxCounters,  ///< 4.2 from here on
  kQpuOtherClocks,                ///< of threads that shade no fragments
  kQpuClocks,
  kQpuTmuClocks,  ///< stalled, as those that follow
  kQpuTlbClocks,
  kQpuOtherStallClocks,
  kTmuMisses,
  kL2Writes,
  kL2WriteMisses,
  kCleClocks,
  kL2TmuReads,
  kL2VcdReads,
  kCodeFetches,  ///< 2.1 from here on
  kUniformFetches,
  kQpuVaryingClocks,  ///< stalled
  kVcdClocks,         ///< stalled
  kQpuVertexTime,     ///< clocks in vertex and coordinate programs; stalls, where the timing model tells them
  kQpuFragmentTime,   ///< the same
  kTlbQuadsNoCoverage,
  kTlbQuadsCoverage,
  kNumCounters,
};

/// Plain sums of one worker; no locking.
struct Counts {
  std::array<uint64_t, kNumCounters> values{};
  uint64_t& operator[](Counter c) { return values[static_cast<size_t>(c)]; }
  void add(const Counts& other) {
    for (int i = 0; i < kNumCounters; ++i)
      values[static_cast<size_t>(i)] += other.values[static_cast<size_t>(i)];
  }
};

/// Sets those that follow from others.
inline void derive(Counts* counts) {
  constexpr uint64_t kClocks = 4;  // of an instruction
  (*counts)[kQpuClocks] = kClocks * (*counts)[kQpuActive];
  (*counts)[kQpuOtherClocks] = (*counts)[kQpuClocks] - (*counts)[kQpuFragmentClocks];
  (*counts)[kQpuVertexTime] = (*counts)[kQpuOtherClocks];
  (*counts)[kQpuFragmentTime] = (*counts)[kQpuFragmentClocks];
}

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
