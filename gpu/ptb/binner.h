/// A Binner is the bin pass over the draws of one job: coordinate shading, transform feedback, clipping,
/// binning.
#pragma once

#include <cstdint>
#include <memory>

#include "gpu/base/job_context.h"
#include "gpu/draw/bin_result.h"
#include "gpu/perf/counters.h"
#include "gpu/ptb/draw_splitter.h"
#include "gpu/ptb/transform_feedback.h"
#include "gpu/vpm/vertex_shading.h"

namespace v3d::ptb {

/// Host memory that the lists, vertices and primitives of one bin job may take.
inline constexpr uint64_t kMaxBinBytes = uint64_t{1} << 30;
/// Lists (tiles times layers) of one bin job. The drivers give the PTB 64 bytes for each, so that far fewer
/// fit into an address space beside everything else.
inline constexpr uint64_t kMaxLists = uint64_t{1} << 22;

/// Frame of a bin job, of packets 119 and 120.
struct BinFrame {
  uint32_t width = 0, height = 0;            ///< pixels
  uint32_t tile_width = 0, tile_height = 0;  ///< 8, 16, 32 or 64
  uint32_t layers = 1;
};

class Binner {
 public:
  explicit Binner(const JobContext& job);

  /// Makes the lists, empty. Must come before the first draw. Errors go to job.error.
  void set_frame(const BinFrame& frame);
  bool has_frame() const { return !result_->tiles.empty(); }

  /// call.mode must be one that draw::topology() knows.
  void draw(const draw::DrawState& state, const draw::DrawCall& call,
            const std::shared_ptr<const draw::ShaderRecord>& record);

  TransformFeedback& feedback() { return feedback_; }
  /// Takes from the job's allowance of work, for things that cost about as much as a vertex.
  bool spend(uint64_t vertices) { return splitter_.spend(vertices); }

  /// Merges the counters into job.counts and hands over the result.
  std::shared_ptr<draw::BinResult> finish();

 private:
  bool takes_lists(const draw::DrawState& state, const draw::ShaderRecord& record) const;
  void bin_piece(draw::Draw&& piece);
  void bin_list(draw::Draw&& piece, const TriangleList& list);
  uint64_t room() const;
  void take(draw::Draw&& piece, uint64_t entries);
  bool charge();

  const JobContext job_;
  std::shared_ptr<draw::BinResult> result_;
  vpm::VertexStages stages_;
  DrawSplitter splitter_;
  TransformFeedback feedback_;
  perf::Counts counts_;
  uint64_t bytes_ = 0;    // of the result
  uint64_t charged_ = 0;  // of them
  uint64_t entries_ = 0;  // list entries made
  uint32_t pieces_ = 0;   // binned
};

}  // namespace v3d::ptb
