/// Records what the units of a bin, render or TFU job do, for the timing model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/base/work_watch.h"
#include "gpu/perf/counters.h"
#include "gpu/perf/record/recorder.h"
#include "gpu/perf/timing/events.h"

namespace v3d::timing {

class WorkRecorder final : public WorkWatch {
 public:
  /// @param threads  of the same job; outlives this
  explicit WorkRecorder(Recorder& threads) : threads_(threads) {}

  void packet() override { ++packets_; }
  void begin_vertices(uint32_t draw, uint32_t vertices, uint32_t primitives) override;
  void fetch(const Lanes& addresses, LaneMask lanes, uint32_t bytes) override;
  void binned(uint64_t entries) override;
  void lists_written(uint64_t bytes) override { written_bytes_ += bytes; }
  void begin_frame(uint32_t words) override { threads_.set_pixel_words(words); }
  void begin_tile(uint32_t column, uint32_t row) override;
  void tile_moved(bool stored, bool depth, uint64_t bytes) override;
  void tile_list(const std::vector<draw::ListEntry>& list, const draw::BinResult& bin) override;
  void begin_draw(uint32_t draw, const perf::Counts& counts) override;
  void end_draw(const perf::Counts& counts) override;
  void transferred(uint64_t read, uint64_t written) override;

  /// What the job was, once it is over. Only the one of its kind makes sense.
  BinJob take_bin();
  RenderJob take_render();
  Transfer take_transfer() const { return transfer_; }

 private:
  void end_vertices();
  RenderJob::Segment* segment_of(uint32_t draw);
  void add_vertex(uint32_t draw, uint32_t vertex, RenderJob::Segment* segment);

  Recorder& threads_;
  std::vector<DrawRecord> draws_;
  uint32_t shaded_ = kNoDraw;  // the draw whose vertices are being shaded
  uint64_t packets_ = 0, written_bytes_ = 0;
  std::vector<RenderJob::Tile> tiles_;
  RenderJob::Segment* segment_ = nullptr;  // of the draw that is being drawn
  perf::Counts at_draw_;
  /// By draw and vertex: number of the last tile that has it, from 1.
  std::vector<std::vector<uint32_t>> seen_;
  std::vector<uint32_t> new_vertices_;  // of the tile, by draw
  Transfer transfer_;
};

}  // namespace v3d::timing
