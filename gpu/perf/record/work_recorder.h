/// A WorkRecorder records what the units of a bin, render or TFU job do, for the timing model.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gpu/base/work_watch.h"
#include "gpu/perf/record/recorder.h"
#include "gpu/perf/record/sampling.h"
#include "gpu/perf/record/tile_recorder.h"
#include "gpu/perf/timing/events.h"

namespace v3d::timing {

class WorkRecorder final : public WorkWatch {
 public:
  /// @param threads  of vertices, and after take_render() of all; outlives this
  explicit WorkRecorder(Recorder& threads, const Sampling& sampling = kWhole)
      : threads_(threads), sampling_(sampling) {}

  void packet() override { ++packets_; }
  void begin_vertices(uint32_t draw, uint32_t vertices, uint32_t primitives) override;
  void fetch(const Lanes& addresses, LaneMask lanes, uint32_t bytes) override;
  void binned(uint64_t entries, uint64_t outside) override;
  void lists_written(uint64_t bytes) override { written_bytes_ += bytes; }
  void begin_frame(uint32_t words) override { pixel_words_ = words; }
  void add_tiles(const std::vector<uint32_t>& entries, size_t workers) override;
  TileWatch& begin_tile(size_t number, size_t worker, uint32_t column, uint32_t row) override;
  void transferred(uint64_t read, uint64_t written) override;

  /// What the job was, once it is over; the recorder's failure says whether that is all of it. Only the one
  /// of its kind makes sense.
  BinJob take_bin();
  RenderJob take_render();
  Transfer take_transfer() const { return transfer_; }

 private:
  void end_vertices();
  void gather();

  Recorder& threads_;
  const Sampling sampling_;
  std::vector<DrawRecord> draws_;
  uint32_t shaded_ = kNoDraw;  // the draw whose vertices are being shaded
  uint64_t packets_ = 0, written_bytes_ = 0;
  uint32_t pixel_words_ = 1;
  size_t first_tile_ = 0;  // of those that were added last
  std::vector<RenderJob::Tile> tiles_;
  std::vector<size_t> worker_of_tile_;
  std::vector<std::unique_ptr<TileRecorder>> workers_;
  Transfer transfer_;
};

}  // namespace v3d::timing
