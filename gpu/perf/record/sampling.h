/// Sampling says which part of a job is recorded event by event. Its time follows from that part and from
/// what all of it is known to do: tiles, primitives, quads, instructions, bytes.
#pragma once

#include <cstdint>
#include <vector>

namespace v3d::timing {

/// One of so many: 1 is all.
struct Sampling {
  uint32_t vertices = 1;  ///< batches of a vertex stage with the same uniforms; the others do what it did
  uint32_t tiles = 1;     ///< tiles that draw something
  uint32_t batches = 1;   ///< batches of a dispatch

  bool operator==(const Sampling&) const = default;
};

inline constexpr Sampling kWhole{};
inline constexpr Sampling kSampled{.vertices = 8, .tiles = 16, .batches = 64};

/// Which tiles are recorded: all that draw nothing, and of the others pairs that follow each other, so that
/// the second one finds in the caches what a neighbour leaves there. Never less than 16 of these.
/// @param entries  of the list of each tile
std::vector<bool> recorded_tiles(const Sampling& sampling, const std::vector<uint32_t>& entries);

/// What is recorded of a dispatch: all batches of a short one, else windows of whole supergroups; and of
/// programs that run for long their begin.
class RecordedBatches {
 public:
  RecordedBatches() = default;
  RecordedBatches(const Sampling& sampling, uint64_t batches, uint32_t batches_per_supergroup);
  bool has(uint64_t batch) const { return every_ == 1 || batch / window_ % every_ == 0; }
  /// Of a batch.
  uint64_t instructions() const { return instructions_; }

 private:
  uint64_t window_ = 1, every_ = 1, instructions_ = ~uint64_t{0};
};

}  // namespace v3d::timing
