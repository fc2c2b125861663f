#include "gpu/perf/record/work_recorder.h"

#include <utility>

namespace v3d::timing {
void WorkRecorder::begin_vertices(uint32_t draw, uint32_t vertices, uint32_t primitives) {
  end_vertices();
  if (draw >= draws_.size()) {
    threads_.spend((draw + 1 - draws_.size()) * sizeof(DrawRecord));
    draws_.resize(draw + 1);
  }
  shaded_ = draw;
  draws_[draw] = {.vertices = vertices, .primitives = primitives, .first_batch = threads_.batches()};
  threads_.set_draw(draw);
}

/// The batches since it began are the draw's.
void WorkRecorder::end_vertices() {
  if (shaded_ == kNoDraw) return;
  DrawRecord& draw = draws_[shaded_];
  draw.num_batches = threads_.batches() - draw.first_batch;
  shaded_ = kNoDraw;
}

void WorkRecorder::fetch(const Lanes& addresses, LaneMask lanes, uint32_t bytes) {
  threads_.add_fetch(addresses, lanes, bytes);
}

void WorkRecorder::binned(uint64_t entries, uint64_t outside) {
  if (draws_.empty()) return;
  draws_.back().entries = entries;
  draws_.back().outside = outside;
}

void WorkRecorder::add_tiles(const std::vector<uint32_t>& entries, size_t workers) {
  end_vertices();
  first_tile_ = tiles_.size();
  while (workers_.size() < workers) workers_.push_back(std::make_unique<TileRecorder>(threads_, draws_));
  threads_.spend(entries.size() * sizeof(RenderJob::Tile));
  tiles_.resize(first_tile_ + entries.size());
  worker_of_tile_.resize(tiles_.size());
  const std::vector<bool> recorded = recorded_tiles(sampling_, entries);
  for (size_t i = 0; i < entries.size(); ++i) tiles_[first_tile_ + i].recorded = recorded[i];
}

TileWatch& WorkRecorder::begin_tile(size_t number, size_t worker, uint32_t column, uint32_t row) {
  TileRecorder& recorder = *workers_[worker];
  const size_t i = first_tile_ + number;
  tiles_[i].column = static_cast<uint16_t>(column);
  tiles_[i].row = static_cast<uint16_t>(row);
  worker_of_tile_[i] = worker;
  recorder.begin(&tiles_[i], static_cast<uint32_t>(i + 1), pixel_words_);
  return recorder;
}

/// Puts together what the workers recorded, in the order of the tiles.
void WorkRecorder::gather() {
  for (const auto& worker : workers_)
    if (!worker->recorder().failure().empty()) threads_.fail(worker->recorder().failure());
  if (!threads_.failure().empty()) return;
  for (size_t i = 0; i < tiles_.size(); ++i) {
    TileRecorder& worker = *workers_[worker_of_tile_[i]];
    for (RenderJob::Segment& segment : tiles_[i].segments)
      segment.first_batch =
          threads_.add(worker.recorder(), segment.first_batch, segment.num_batches, &worker.numbers());
  }
}

void WorkRecorder::transferred(uint64_t read, uint64_t written) {
  transfer_.read_bytes += read;
  transfer_.written_bytes += written;
}

BinJob WorkRecorder::take_bin() {
  end_vertices();
  return {.trace = threads_.take(),
          .draws = std::move(draws_),
          .packets = packets_,
          .written_bytes = written_bytes_};
}

RenderJob WorkRecorder::take_render() {
  end_vertices();
  gather();
  return {
      .trace = threads_.take(), .draws = std::move(draws_), .tiles = std::move(tiles_), .packets = packets_};
}

}  // namespace v3d::timing
