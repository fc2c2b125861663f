/// These functions fetch attributes and run the vertex stages: coordinate, vertex and geometry programs over
/// all vertices of a draw.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "gpu/base/job_context.h"
#include "gpu/base/lanes.h"
#include "gpu/base/raw_vector.h"
#include "gpu/draw/bin_result.h"
#include "gpu/vpm/attribute_fetch.h"

namespace v3d::vpm {

enum class Phase : uint8_t { kBin, kRender };

/// Output rows of shaded vertices, 16 vertices side by side.
struct ShadedVertices {
  uint32_t rows = 0, count = 0;
  RawVector<Lanes> data;  ///< [vertex / 16 * rows + row], lane vertex % 16
  /// Geometry stage only, per emitted vertex: starts a new strip; layer.
  std::vector<uint8_t> strip_start, layer;
  /// Geometry stage only: emitted vertices of each (input primitive, invocation).
  std::vector<uint32_t> emitted;

  /// 0 for a vertex or row that does not exist.
  uint32_t word(uint32_t vertex, uint32_t row) const {
    return row < rows && vertex < count ? data[(vertex / kLanes) * rows + row][vertex % kLanes] : 0;
  }
};

/// The vertex stages of the draws of one job. Keeps decoded programs and worker state between draws.
class VertexStages {
 public:
  explicit VertexStages(const JobContext& job);
  ~VertexStages();
  VertexStages(const VertexStages&) = delete;
  VertexStages& operator=(const VertexStages&) = delete;

  /// Runs the coordinate (kBin) or vertex (kRender) program over draw.vertices and, if the record has one,
  /// the geometry program over draw.gs_input. Rows are those of the last stage (cle-and-tiles.md 3.3, 3.4,
  /// without GS headers). Errors go to job.error; what was not shaded then reads 0.
  ShadedVertices shade(const draw::Draw& draw, Phase phase);

  /// Where shaded vertices go.
  struct Sink {
    /// Called once, before the others.
    std::function<void(uint32_t vertices)> begin;
    /// Takes vertices 16 * group to 16 * group + 15, those that there are, side by side. Called from the
    /// threads of the pool, once for each group.
    std::function<void(uint32_t group, const Lanes* data, uint32_t rows)> take;
  };
  /// The same without keeping the rows of all vertices.
  void shade(const draw::Draw& draw, Phase phase, const Sink& sink);

  /// For who makes the batches of a draw without a geometry program: begin(), then run() for each of them,
  /// end().
  /// @param draw  stays until the end; its vertices are not looked at
  /// @return  rows that a batch gives, or nothing: the job has an error, and there is nothing to end
  std::optional<uint32_t> begin(const draw::Draw& draw, Phase phase);
  /// Runs one batch, from a thread of the pool.
  /// @param live  lanes that exist; others have element numbers as well
  /// @param slot  of the thread
  /// @param out   rows of 16 vertices side by side
  void run(const BatchRefs& refs, LaneMask live, int slot, Lanes* out);
  /// @param batches  that there were
  void end(uint32_t batches);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The same for a single draw.
ShadedVertices shade(const JobContext& job, const draw::Draw& draw, Phase phase);

}  // namespace v3d::vpm
