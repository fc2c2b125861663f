#include "gpu/ptb/binner.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "gpu/base/host_time.h"
#include "gpu/base/work_watch.h"
#include "gpu/chip/profile.h"
#include "gpu/draw/host_key.h"
#include "gpu/ptb/primitive_assembler.h"
#include "gpu/ptb/primitive_binner.h"

namespace v3d::ptb {

namespace {

/// Primitives of the strips that a geometry program emitted; incomplete strips make none.
void assemble_geometry_output(const vpm::ShadedVertices& shaded, draw::Draw* draw) {
  constexpr Mode kModes[] = {Mode::kPoints, Mode::kLineStrip, Mode::kTriangleStrip, Mode::kTriangleStrip};
  const Mode mode = kModes[draw->record->gs_output & 3];
  const uint32_t invocations = std::max<uint32_t>(draw->record->gs_invocations, 1);
  draw->vertices_per_primitive = topology(mode).vertices;
  uint32_t vertex = 0;
  for (size_t item = 0; item < shaded.emitted.size(); ++item) {
    const uint32_t id = draw->gs_primitive_ids[item / invocations];
    const auto emit = [&](const Element* inputs, uint32_t provoking) {
      draw::Primitive p{.vertex = {}, .provoking = inputs[provoking].position, .primitive_id = id};
      for (uint32_t i = 0; i < draw->vertices_per_primitive; ++i) p.vertex[i] = inputs[i].position;
      draw->primitives.push_back(p);
    };
    PrimitiveAssembler assembler(mode, draw->state.cfg.provoking_first);
    for (uint32_t i = 0; i < shaded.emitted[item]; ++i, ++vertex) {
      if (shaded.strip_start[vertex]) assembler.finish(emit);
      assembler.feed({vertex, vertex}, emit);
    }
    assembler.finish(emit);
  }
}

/// Drops the vertices that no primitive uses any more: the render pass need not shade them.
void drop_unused_vertices(draw::Draw* draw) {
  constexpr uint32_t kUnused = ~0u;
  std::vector<uint32_t> moved(draw->vertices.size(), kUnused);
  const auto use = [&moved](uint32_t v) { moved[v] = 0; };
  for (const draw::Primitive& p : draw->primitives) {
    for (const uint32_t v : p.vertex) use(v);
    use(p.provoking);
  }
  uint32_t next = 0;
  for (size_t v = 0; v < moved.size(); ++v) {
    if (moved[v] == kUnused) continue;
    draw->vertices[next] = draw->vertices[v];
    moved[v] = next++;
  }
  if (next == draw->vertices.size()) return;
  draw->vertices.resize(next);
  for (draw::Primitive& p : draw->primitives) {
    for (uint32_t& v : p.vertex) v = moved[v];
    p.provoking = moved[p.provoking];
  }
}

uint64_t bytes_of(const draw::Draw& d) {
  return sizeof(draw::Draw) + d.vertices.size() * sizeof(draw::VertexRef) +
         d.primitives.size() * sizeof(draw::Primitive) + d.clipped.size() * sizeof(draw::ClippedPolygon) +
         (d.gs_input.size() + d.gs_primitive_ids.size()) * 4;
}

}  // namespace

Binner::Binner(const JobContext& job)
    : job_(job),
      result_(std::make_shared<draw::BinResult>()),
      stages_(job),
      splitter_(job),
      feedback_(job_) {}

void Binner::set_frame(const BinFrame& frame) {
  draw::BinResult& r = *result_;
  const uint32_t tiles_x = (frame.width + frame.tile_width - 1) / frame.tile_width;
  const uint32_t tiles_y = (frame.height + frame.tile_height - 1) / frame.tile_height;
  const uint64_t lists = uint64_t{tiles_x} * tiles_y * frame.layers;
  if (lists > kMaxLists) {
    job_.error->set(absl::StrFormat("%d x %d tiles in %d layers are more than the limit of %d lists", tiles_x,
                                    tiles_y, frame.layers, kMaxLists));
    return;
  }
  bytes_ = lists * sizeof(decltype(r.tiles)::value_type);
  entries_ = 0;
  if (!charge()) return;
  r.width = frame.width;
  r.height = frame.height;
  r.tile_width = frame.tile_width;
  r.tile_height = frame.tile_height;
  r.tiles_x = tiles_x;
  r.tiles_y = tiles_y;
  r.layers = frame.layers;
  r.draws.clear();
  r.tiles.assign(lists, {});
  feedback_.reset_counters();
}

/// The client pays for the result as it grows, in steps; for a small one, of which it may have as many as
/// jobs, with the job.
bool Binner::charge() {
  constexpr uint64_t kStep = 4096;
  if (bytes_ < charged_ + kStep) return true;
  if (!job_.take_memory(bytes_ - charged_)) return false;
  charged_ = bytes_;
  return true;
}

void Binner::draw(const draw::DrawState& state, const draw::DrawCall& call,
                  const std::shared_ptr<const draw::ShaderRecord>& record) {
  const host_time::DrawScope of(host_time::DrawScope::Phase::kBin, draw::host_key(*record, call), true);
  const host_time::Scope host(host_time::Block::kBinning);
  DrawSplitter::ConsumeList lists;
  if (takes_lists(state, *record))
    lists = [this](draw::Draw&& piece, const TriangleList& list) { bin_list(std::move(piece), list); };
  splitter_.split(
      state, call, record, [this](draw::Draw&& piece) { bin_piece(std::move(piece)); }, lists);
}

/// Whether nobody but the binner wants to see all vertices of the draw.
bool Binner::takes_lists(const draw::DrawState& state, const draw::ShaderRecord& record) const {
  return job_.work == nullptr && !record.has_gs && !state.cfg.wireframe && !feedback_.enabled();
}

void Binner::bin_list(draw::Draw&& piece, const TriangleList& list) {
  const std::optional<uint32_t> rows = stages_.begin(piece, vpm::Phase::kBin);
  if (!rows) return;
  feedback_.count(list.count);
  PrimitiveBinner binner(piece.state, *piece.record, view_rules(*job_.profile), result_.get(), &counts_,
                         &job_);
  const uint64_t entries =
      binner.bin_list(&piece, list, stages_, *rows, static_cast<uint32_t>(result_->draws.size()), room());
  stages_.end((3 * list.count + kLanes - 1) / kLanes);
  if (job_.stopped()) return;
  take(std::move(piece), entries);
}

/// List entries that the job may still make.
uint64_t Binner::room() const {
  return (kMaxBinBytes - std::min(bytes_, kMaxBinBytes)) / sizeof(draw::ListEntry);
}

/// A piece that was binned.
void Binner::take(draw::Draw&& piece, uint64_t entries) {
  entries_ += entries;
  if (entries == 0) return;
  bytes_ += entries * sizeof(draw::ListEntry) + bytes_of(piece);
  result_->draws.push_back(std::move(piece));
  if (!charge()) return;
  if (bytes_ > kMaxBinBytes)
    job_.error->set(absl::StrFormat("the lists of a bin job take more than %d bytes", kMaxBinBytes));
}

void Binner::bin_piece(draw::Draw&& piece) {
  if (job_.work)
    job_.work->begin_vertices(pieces_++, static_cast<uint32_t>(piece.vertices.size()),
                              static_cast<uint32_t>(piece.primitives.size()));
  const vpm::ShadedVertices shaded = stages_.shade(piece, vpm::Phase::kBin);
  if (job_.stopped()) return;
  if (piece.record->has_gs) {
    assemble_geometry_output(shaded, &piece);
    if (!splitter_.spend(shaded.count)) return;
  }
  const size_t primitives = piece.primitives.size();
  feedback_.capture(piece.primitives, piece.vertices_per_primitive, shaded);

  PrimitiveBinner binner(piece.state, *piece.record, view_rules(*job_.profile), result_.get(), &counts_,
                         &job_);
  const uint64_t outside = counts_[perf::kPtbPrimitivesOutside];
  const uint64_t entries = binner.bin(&piece, shaded, static_cast<uint32_t>(result_->draws.size()), room());
  if (job_.work) job_.work->binned(entries, counts_[perf::kPtbPrimitivesOutside] - outside);
  if (entries != 0 && !piece.record->has_gs && piece.primitives.size() < primitives)
    drop_unused_vertices(&piece);
  take(std::move(piece), entries);
}

std::shared_ptr<draw::BinResult> Binner::finish() {
  const uint64_t bytes = entries_ * sizeof(draw::ListEntry) + feedback_.take_written_bytes();
  counts_[perf::kPtbWordsWritten] += perf::bus_words(bytes);
  if (job_.work) job_.work->lists_written(bytes);
  job_.counts->merge(counts_);
  counts_ = {};
  return result_;
}

}  // namespace v3d::ptb
