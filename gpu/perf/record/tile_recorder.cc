#include "gpu/perf/record/tile_recorder.h"

#include <algorithm>
#include <utility>

namespace v3d::timing {
namespace {

uint64_t difference(const perf::Counts& to, const perf::Counts& from, perf::Counter counter) {
  return to.values[counter] - from.values[counter];
}

}  // namespace

void TileRecorder::begin(RenderJob::Tile* tile, uint32_t number, uint32_t pixel_words) {
  tile_ = tile;
  number_ = number;
  segment_ = nullptr;
  threads_.set_pixel_words(pixel_words);
}

/// The part of the tile that is of the draw: the last one, or a new one.
RenderJob::Segment* TileRecorder::segment_of(uint32_t draw) {
  std::vector<RenderJob::Segment>& segments = tile_->segments;
  if (segments.empty() || segments.back().draw != draw) {
    threads_.spend(sizeof(RenderJob::Segment));
    segments.push_back({.draw = draw, .vertex_batches = {}});
  }
  return &segments.back();
}

void TileRecorder::list(const std::vector<draw::ListEntry>& list, const draw::BinResult& bin) {
  if (!threads_.failure().empty()) return;
  if (tile_->recorded) {
    seen_.resize(bin.draws.size());
    new_vertices_.assign(bin.draws.size(), 0);
  }
  tile_->list_bytes += list.size() * sizeof(draw::ListEntry);
  RenderJob::Segment* segment = nullptr;
  for (const draw::ListEntry& entry : list) {
    if (entry.draw >= draws_.size()) continue;
    if (segment == nullptr || segment->draw != entry.draw) segment = segment_of(entry.draw);
    ++segment->primitives;
    if (tile_->recorded) add_vertices(bin.draws[entry.draw], entry, segment);
  }
}

void TileRecorder::add_vertices(const draw::Draw& draw, const draw::ListEntry& entry,
                                RenderJob::Segment* segment) {
  const draw::Primitive& primitive = draw.primitives[entry.primitive];
  for (uint32_t i = 0; i < draw.vertices_per_primitive; ++i)
    add_vertex(entry.draw, primitive.vertex[i], segment);
}

/// In each tile the vertices of its primitives are shaded again, 16 at a time in the order in which they
/// first come: as the batch that the first of them was in.
void TileRecorder::add_vertex(uint32_t draw, uint32_t vertex, RenderJob::Segment* segment) {
  std::vector<uint32_t>& seen = seen_[draw];
  if (vertex >= seen.size()) {
    const size_t size = std::max<size_t>(vertex + 1, draws_[draw].vertices);
    threads_.spend((size - seen.size()) * sizeof(uint32_t));
    seen.resize(size, 0);
  }
  if (std::exchange(seen[vertex], number_) == number_) return;
  if (new_vertices_[draw]++ % kLanes != 0 || draws_[draw].num_batches == 0) return;
  const uint32_t batch = std::min(vertex / static_cast<uint32_t>(kLanes), draws_[draw].num_batches - 1);
  segment->vertex_batches.push_back(draws_[draw].first_batch + batch);
  threads_.spend(sizeof(uint32_t));
}

void TileRecorder::begin_draw(uint32_t draw, const perf::Counts& counts) {
  at_draw_ = counts;
  threads_.set_draw(draw);
  std::vector<RenderJob::Segment>& segments = tile_->segments;
  segment_ = segment_ ? segment_ + 1 : segments.data();
  const auto end = segments.data() + segments.size();
  while (segment_ < end && segment_->draw != draw) ++segment_;
  if (segment_ >= end) {
    segment_ = nullptr;
    return;
  }
  segment_->first_batch = threads_.batches();
}

void TileRecorder::end_draw(const perf::Counts& counts) {
  if (segment_ == nullptr) return;
  segment_->num_batches = threads_.batches() - segment_->first_batch;
  segment_->live_quads = static_cast<uint32_t>(difference(counts, at_draw_, perf::kFepValidQuads));
  segment_->quads =
      segment_->live_quads + static_cast<uint32_t>(difference(counts, at_draw_, perf::kFepClippedQuads));
  segment_->instructions = difference(counts, at_draw_, perf::kQpuActive);
}

void TileRecorder::moved(bool stored, bool depth, uint64_t bytes) {
  uint32_t& sum = !stored ? tile_->loaded : depth ? tile_->stored_depth : tile_->stored;
  sum += static_cast<uint32_t>(bytes);
}

}  // namespace v3d::timing
