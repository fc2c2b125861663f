/// A TileRecorder records the tiles that one worker has.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/base/work_watch.h"
#include "gpu/draw/bin_result.h"
#include "gpu/perf/counters.h"
#include "gpu/perf/record/recorder.h"
#include "gpu/perf/timing/events.h"

namespace v3d::timing {

class TileRecorder final : public TileWatch {
 public:
  /// @param draws  whose vertices `of` has recorded; these do not change while there are tiles
  TileRecorder(const Recorder& of, const std::vector<DrawRecord>& draws)
      : threads_(of, Recorder::Part{}), draws_(draws) {}

  /// @param number  of the tile in the job, from 1  @param pixel_words  Recorder::set_pixel_words()
  void begin(RenderJob::Tile* tile, uint32_t number, uint32_t pixel_words);
  Recorder& recorder() { return threads_; }
  Recorder::Numbers& numbers() { return numbers_; }

  qpu::ThreadWatch* threads() override { return tile_->recorded ? &threads_ : nullptr; }
  void moved(bool stored, bool depth, uint64_t bytes) override;
  void list(const std::vector<draw::ListEntry>& list, const draw::BinResult& bin) override;
  void begin_draw(uint32_t draw, const perf::Counts& counts) override;
  void end_draw(const perf::Counts& counts) override;

 private:
  RenderJob::Segment* segment_of(uint32_t draw);
  void add_vertices(const draw::Draw& draw, const draw::ListEntry& entry, RenderJob::Segment* segment);
  void add_vertex(uint32_t draw, uint32_t vertex, RenderJob::Segment* segment);

  Recorder threads_;
  Recorder::Numbers numbers_;
  const std::vector<DrawRecord>& draws_;
  RenderJob::Tile* tile_ = nullptr;
  uint32_t number_ = 0;
  RenderJob::Segment* segment_ = nullptr;  // of the draw that is being drawn
  perf::Counts at_draw_;
  /// By draw and vertex: number of the last tile that has it.
  std::vector<std::vector<uint32_t>> seen_;
  std::vector<uint32_t> new_vertices_;  // of the tile, by draw
};

}  // namespace v3d::timing
