#include "gpu/perf/record/sampling.h"

#include <algorithm>

namespace v3d::timing {
namespace {

constexpr uint64_t kRun = 2, kLeastTiles = 4;
/// Two windows are more than all threads of a board; so many of them are the least.
constexpr uint64_t kWindow = 64, kLeastWindows = 2;
/// Of a dispatch, and of one batch.
constexpr uint64_t kInstructions = 3 << 14, kLeast = 1 << 11, kMost = 1 << 15;

/// How many runs one is taken of, so that so many are taken.
uint64_t interval(uint64_t wanted, uint64_t runs, uint64_t least) {
  return std::clamp<uint64_t>(runs / least, 1, std::max<uint64_t>(wanted, 1));
}

}  // namespace

std::vector<bool> recorded_tiles(const Sampling& sampling, const std::vector<uint32_t>& entries) {
  const auto drawn = static_cast<uint64_t>(
      std::count_if(entries.begin(), entries.end(), [](uint32_t count) { return count != 0; }));
  const uint64_t every = interval(sampling.tiles, drawn, kLeastTiles);
  std::vector<bool> recorded(entries.size(), true);
  uint64_t n = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i] == 0) continue;
    const uint64_t run = n++ / kRun;
    // Another place in each group (11 has no divisor in common with 2 to 8), lest it is the same column of
    // the frame.
    recorded[i] = run % every == run / every * 11 % every;
  }
  return recorded;
}

RecordedBatches::RecordedBatches(const Sampling& sampling, uint64_t batches,
                                 uint32_t batches_per_supergroup) {
  const uint64_t group = std::max(batches_per_supergroup, 1u);
  window_ = (kWindow + group - 1) / group * group;
  every_ = interval(sampling.batches, batches / window_, kLeastWindows);
  if (sampling.batches == 1) return;
  const uint64_t recorded = std::max<uint64_t>(batches / every_, 1);
  instructions_ = std::clamp(kInstructions / recorded, kLeast, kMost);
}

}  // namespace v3d::timing
