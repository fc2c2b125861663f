/// A TileRenderer does the set-up of primitives, coverage, varyings and fragment batches, for one tile list
/// at a time.
#pragma once

#include <memory>
#include <vector>

#include "gpu/base/job_context.h"
#include "gpu/draw/bin_result.h"
#include "gpu/perf/counters.h"
#include "gpu/tlb/tile_buffer.h"
#include "gpu/tmu/lookup/unit.h"
#include "gpu/vpm/vertex_shading.h"

namespace v3d::pse {

/// Draws of a bin result made ready for rasterisation: shaded vertices, programs. Shared by all tiles of a
/// render job.
class PreparedDraws {
 public:
  /// Runs the vertex programs of every draw that some tile lists (and those with side effects).
  /// @param job  outlives it
  PreparedDraws(const JobContext& job, const draw::BinResult& bin, const tlb::Config& config);
  ~PreparedDraws();

 private:
  friend class TileRenderer;
  struct State;
  const JobContext& job_;
  std::unique_ptr<State> state_;
};

/// Worker that executes tile lists. One object per slot of the thread pool.
class TileRenderer {
 public:
  TileRenderer(const JobContext& job, const PreparedDraws& draws, uint32_t tidx);
  ~TileRenderer();
  /// Rasterises and shades one tile's list into the tile buffer (begin_tile was called).
  void run(const std::vector<draw::ListEntry>& list, tlb::TileBuffer& tile, uint32_t column, uint32_t row);
  perf::Counts& counts();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace v3d::pse
