#include "gpu/perf/record/work_recorder.h"

#include <algorithm>
#include <utility>

#include "gpu/draw/bin_result.h"

namespace v3d::timing {
namespace {

/// Front-end quads, whatever becomes of them.
uint64_t quads_of(const perf::Counts& counts) {
  return counts.values[perf::kFepClippedQuads] + counts.values[perf::kFepValidQuads];
}

}  // namespace

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

void WorkRecorder::binned(uint64_t entries) {
  if (!draws_.empty()) draws_.back().entries = entries;
}

void WorkRecorder::begin_tile(uint32_t column, uint32_t row) {
  end_vertices();
  segment_ = nullptr;
  if (!threads_.failure().empty()) return;
  threads_.spend(sizeof(RenderJob::Tile));
  tiles_.push_back(
      {.column = static_cast<uint16_t>(column), .row = static_cast<uint16_t>(row), .segments = {}});
}

/// The part of the tile that is of the draw: the last one, or a new one.
RenderJob::Segment* WorkRecorder::segment_of(uint32_t draw) {
  std::vector<RenderJob::Segment>& segments = tiles_.back().segments;
  if (segments.empty() || segments.back().draw != draw) {
    threads_.spend(sizeof(RenderJob::Segment));
    segments.push_back({.draw = draw, .vertex_batches = {}});
  }
  return &segments.back();
}

void WorkRecorder::tile_list(const std::vector<draw::ListEntry>& list, const draw::BinResult& bin) {
  if (tiles_.empty() || !threads_.failure().empty()) return;
  seen_.resize(bin.draws.size());
  new_vertices_.assign(bin.draws.size(), 0);
  tiles_.back().list_bytes += list.size() * sizeof(draw::ListEntry);
  for (const draw::ListEntry& entry : list) {
    if (entry.draw >= draws_.size()) continue;
    const draw::Draw& draw = bin.draws[entry.draw];
    RenderJob::Segment* const segment = segment_of(entry.draw);
    ++segment->primitives;
    const draw::Primitive& primitive = draw.primitives[entry.primitive];
    for (uint32_t i = 0; i < draw.vertices_per_primitive; ++i)
      add_vertex(entry.draw, primitive.vertex[i], segment);
  }
}

/// In each tile the vertices of its primitives are shaded again, 16 at a time in the order in which they
/// first come: as the batch that the first of them was in.
void WorkRecorder::add_vertex(uint32_t draw, uint32_t vertex, RenderJob::Segment* segment) {
  const auto tile = static_cast<uint32_t>(tiles_.size());
  std::vector<uint32_t>& seen = seen_[draw];
  if (vertex >= seen.size()) {
    threads_.spend((vertex + 1 - seen.size()) * sizeof(uint32_t));
    seen.resize(std::max<size_t>(vertex + 1, draws_[draw].vertices), 0);
  }
  if (std::exchange(seen[vertex], tile) == tile) return;
  if (new_vertices_[draw]++ % kLanes != 0 || draws_[draw].num_batches == 0) return;
  const uint32_t batch = std::min(vertex / static_cast<uint32_t>(kLanes), draws_[draw].num_batches - 1);
  segment->vertex_batches.push_back(draws_[draw].first_batch + batch);
  threads_.spend(sizeof(uint32_t));
}

void WorkRecorder::begin_draw(uint32_t draw, const perf::Counts& counts) {
  if (tiles_.empty()) return;
  at_draw_ = counts;
  threads_.set_draw(draw);
  std::vector<RenderJob::Segment>& segments = tiles_.back().segments;
  segment_ = segment_ ? segment_ + 1 : segments.data();
  const auto end = segments.data() + segments.size();
  while (segment_ < end && segment_->draw != draw) ++segment_;
  if (segment_ >= end) {
    segment_ = nullptr;
    return;
  }
  segment_->first_batch = threads_.batches();
}

void WorkRecorder::end_draw(const perf::Counts& counts) {
  if (segment_ == nullptr) return;
  segment_->num_batches = threads_.batches() - segment_->first_batch;
  segment_->quads = static_cast<uint32_t>(quads_of(counts) - quads_of(at_draw_));
}

void WorkRecorder::tile_moved(bool stored, bool depth, uint64_t bytes) {
  if (tiles_.empty()) return;
  RenderJob::Tile& tile = tiles_.back();
  uint32_t& sum = !stored ? tile.loaded : depth ? tile.stored_depth : tile.stored;
  sum += static_cast<uint32_t>(bytes);
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
  return {
      .trace = threads_.take(), .draws = std::move(draws_), .tiles = std::move(tiles_), .packets = packets_};
}

}  // namespace v3d::timing
