/// TileWork is what tiles have to do, told without running them: the measure by which the recorded tiles of a
/// frame stand for the others.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/chip/profile.h"
#include "gpu/perf/timing/events.h"
#include "gpu/perf/timing/parameters.h"

namespace v3d::timing {

/// Clocks that a TMU works on a lookup.
uint64_t lookup_clocks(const Parameters& parameters, const Shape& shape);

class TileWork {
 public:
  /// Learns from the recorded tiles what draws take. All references outlive it.
  TileWork(const RenderJob& job, const chip::Profile& profile, const Parameters& parameters);

  /// Of the unit that has most to do with the tile, and of its loads and stores, which wait for that; in
  /// kUnit-ths of a clock.
  static constexpr uint64_t kUnit = 16;
  uint64_t of(const RenderJob::Tile& tile) const;

 private:
  /// Sums over recorded segments of a draw.
  struct Rate {
    uint64_t instructions = 0, lookup_clocks = 0;  // of fragments
    uint64_t live_quads = 0, tlb_quads = 0;
    uint64_t primitives = 0, vertex_clocks = 0;  // QPU clocks of vertices

    void add(const Rate& other);
  };
  struct BatchCost {
    uint64_t qpu = 0, tmu = 0;  // clocks
  };

  BatchCost cost_of_path(const std::vector<Event>& path) const;
  void learn(const RenderJob::Segment& segment, const std::vector<BatchCost>& costs);
  const Rate& rate_of(uint32_t draw) const;
  uint64_t clocks_of_bytes(uint64_t bytes, uint64_t ps_per_byte) const;

  const RenderJob& job_;
  const chip::Profile& profile_;
  const Parameters& p_;
  std::vector<Rate> rates_;  // by draw
  Rate all_;
};

}  // namespace v3d::timing
