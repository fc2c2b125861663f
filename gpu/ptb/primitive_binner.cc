#include "gpu/ptb/primitive_binner.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <utility>

#include "gpu/base/host_time.h"
#include "gpu/draw/host_key.h"
#include "gpu/vpm/stage_runner.h"

namespace v3d::ptb {

namespace {

/// Rows of a coordinate program's output (cle-and-tiles.md 3.3).
constexpr uint32_t kRowClip = 0, kRowX = 4, kRowY = 5, kRowPointSize = 6;

/// For a WorkMeter: of a primitive, or of 16 triangles, beside what goes to the lists.
constexpr uint32_t kPrimitiveCost = 20;

/// Twice the signed area; positive is clockwise to an eye for which rows grow downwards.
int64_t cross(ScreenPoint a, ScreenPoint b, ScreenPoint c) {
  return (int64_t{b.x} - a.x) * (int64_t{c.y} - a.y) - (int64_t{c.x} - a.x) * (int64_t{b.y} - a.y);
}

}  // namespace

PrimitiveBinner::PrimitiveBinner(const draw::DrawState& state, const draw::ShaderRecord& record,
                                 const ViewRules& rules, draw::BinResult* result, perf::Counts* counts,
                                 const JobContext* job)
    : state_(state),
      record_(record),
      rules_(rules),
      result_(*result),
      counts_(*counts),
      job_(job),
      clips_(record.clipping),
      size_in_vertices_(record.point_size_in_vertices),
      fill_(!state.cfg.wireframe   ? Fill::kSolid
            : state.cfg.point_fill ? Fill::kPoints
                                   : Fill::kLines),
      screen_(state, rules),
      clipper_(state, rules),
      lists_(state, result, job),
      sorter_(state, lists_) {}

/// Screen positions and outcodes of 16 vertices. Without clipping (assumed) vertices have the same rows and
/// are drawn where the program puts them on the screen, in front of the eye or not.
void PrimitiveBinner::load_group(uint32_t g, Shared& to) const {
  const vpm::ShadedVertices& shaded = *to.shaded;
  if (shaded.rows <= kRowY) {  // no position: such vertices draw nothing
    to.vertices.codes[g] = splat(uint32_t{kOutInvalid});
    to.vertices.x[g] = to.vertices.y[g] = Lanes{};
    return;
  }
  const Lanes* rows = &shaded.data[size_t{g} * shaded.rows];
  const LanesF clip[4] = {as_float(rows[kRowClip]), as_float(rows[kRowClip + 1]),
                          as_float(rows[kRowClip + 2]), as_float(rows[kRowClip + 3])};
  to.vertices.codes[g] = clips_ ? clipper_.classify(clip) : Lanes{};
  to.vertices.x[g] = as_uint(screen_.x(as_int(rows[kRowX])));
  to.vertices.y[g] = as_uint(screen_.y(as_int(rows[kRowY])));
}

void PrimitiveBinner::load_vertices(Shared& to) const {
  constexpr uint32_t kPiece = 64;  // groups
  const uint32_t groups = (to.shaded->count + kLanes - 1) / kLanes;
  to.vertices.resize(groups);
  const auto load = [&](int piece, int) {
    const host_time::Scope host(host_time::Block::kBinning);
    const uint32_t begin = static_cast<uint32_t>(piece) * kPiece;
    for (uint32_t g = begin; g < std::min(begin + kPiece, groups); ++g) load_group(g, to);
  };
  const auto pieces = static_cast<int>((groups + kPiece - 1) / kPiece);
  if (job_ != nullptr && pieces > 1)
    return job_->pool->parallel_for(pieces, load, job_->control, ThreadPool::Next::kSoon);
  for (int piece = 0; piece < pieces; ++piece) load(piece, 0);
}

/// Whether both vertices lie beyond the same side of the viewport.
bool PrimitiveBinner::are_beside_view(uint32_t a, uint32_t b) const {
  const auto sides = [&](uint32_t v) {
    const auto word = [&](uint32_t i) {
      return std::bit_cast<float>(shared_->shaded->word(v, kRowClip + i));
    };
    const float x = word(0), y = word(1), w = word(3);
    return (x < -w ? 1u : 0u) | (x > w ? 2u : 0u) | (y < -w ? 4u : 0u) | (y > w ? 8u : 0u);
  };
  return (sides(a) & sides(b)) != 0;
}

float PrimitiveBinner::point_size(uint32_t vertex) const {
  const float size = size_in_vertices_ ? std::bit_cast<float>(shared_->shaded->word(vertex, kRowPointSize))
                                       : state_.point_size;
  return clamp_size(size, kMaxPointSize);
}

uint32_t PrimitiveBinner::layer_of(const draw::Primitive& p) const {
  return p.provoking < shared_->shaded->layer.size() ? shared_->shaded->layer[p.provoking] : 0;
}

void PrimitiveBinner::keep(const draw::Primitive& p, uint32_t entries) {
  if (entries == 0) {
    ++counts_[perf::kPtbPrimitivesOutside];
    return;
  }
  ++counts_[perf::kPtbPrimitivesBinned];
  entries_ += entries;
  const size_t place = first_kept_ + num_kept_;
  if (place == kept_->size())
    kept_->push_back(p);
  else
    (*kept_)[place] = p;
  ++num_kept_;
}

/// Clips the first `count` vertices and appends what is left to the polygons. @return  false if nothing is
bool PrimitiveBinner::clip(int count, uint16_t codes, draw::Primitive* p) {
  if (!std::exchange(was_clipped_, true)) ++counts_[perf::kPtbPrimitivesClipped];
  ClipVertex vertices[3];
  for (int i = 0; i < count; ++i) {
    const uint32_t v = p->vertex[i];
    for (uint32_t r = 0; r < 4; ++r)
      vertices[i].clip[r] = std::bit_cast<float>(shared_->shaded->word(v, kRowClip + r));
    const ScreenPoint point = this->vertices().point(v);
    vertices[i].x = point.x;
    vertices[i].y = point.y;
  }
  draw::ClippedPolygon polygon{};
  if (!clipper_.clip(vertices, count, codes, &polygon)) {
    ++counts_[perf::kPtbPrimitivesOutside];
    return false;
  }
  p->clipped = static_cast<int32_t>(clipped_.size());
  clipped_.push_back(polygon);
  return true;
}

/// Facing of a triangle of that signed area. @return  true if it is not drawn
bool PrimitiveBinner::cull(int64_t area, bool* back_facing) {
  if (area == 0) return true;
  *back_facing = state_.cfg.clockwise ? area > 0 : area < 0;
  if (*back_facing ? state_.cfg.draw_back : state_.cfg.draw_front) return false;
  ++counts_[perf::kPtbPrimitivesReversed];
  return true;
}

void PrimitiveBinner::bin_triangle(const draw::Primitive& p) {
  const uint16_t a = vertices().code(p.vertex[0]), b = vertices().code(p.vertex[1]),
                 c = vertices().code(p.vertex[2]);
  const uint16_t any = a | b | c;
  if ((any & kOutInvalid) || (a & b & c & kOutPlanes)) {
    ++counts_[perf::kPtbPrimitivesOutside];
    return;
  }
  bin_solid(p, any & kOutPlanes);
}

void PrimitiveBinner::bin_solid(draw::Primitive p, uint16_t codes) {
  ScreenPoint corners[draw::kMaxCorners];
  size_t count = 3;
  if (codes == 0) {
    for (int i = 0; i < 3; ++i) corners[i] = vertices().point(p.vertex[i]);
  } else {
    if (!clip(3, codes, &p)) return;
    const draw::ClippedPolygon& polygon = clipped_.back();
    count = polygon.num_corners;
    for (size_t i = 0; i < count; ++i) corners[i] = {polygon.corners[i].x, polygon.corners[i].y};
  }
  int64_t area = 0;
  for (size_t i = 1; i + 1 < count; ++i) area += cross(corners[0], corners[i], corners[i + 1]);
  const bool culled = cull(area, &p.back_facing);
  uint32_t entries = 0;
  if (!culled && fill_ == Fill::kSolid) {
    entries = lists_.add_polygon({corners, count}, layer_of(p), next_entry());
    keep(p, entries);
  }
  if (entries == 0 && p.clipped >= 0) clipped_.pop_back();
  if (!culled && fill_ != Fill::kSolid) bin_outline(p);
}

/// A triangle drawn as its three sides, or as points at its vertices; sides are clipped by themselves.
void PrimitiveBinner::bin_outline(draw::Primitive p) {
  p.clipped = -1;
  const uint32_t v[3] = {p.vertex[0], p.vertex[1], p.vertex[2]};
  for (uint32_t i = 0; i < 3; ++i) {
    for (uint32_t k = 0; k < 3; ++k) p.vertex[k] = v[(i + k) % 3];
    fill_ == Fill::kLines ? bin_line(p) : bin_point(p);
  }
}

void PrimitiveBinner::bin_line(draw::Primitive p) {
  const uint16_t a = vertices().code(p.vertex[0]), b = vertices().code(p.vertex[1]);
  const uint16_t any = a | b;
  if ((any & kOutInvalid) || (a & b & kOutPlanes) ||
      (rules_.rejects_lines_beside_view && are_beside_view(p.vertex[0], p.vertex[1]))) {
    ++counts_[perf::kPtbPrimitivesOutside];
    return;
  }
  ScreenPoint ends[2] = {vertices().point(p.vertex[0]), vertices().point(p.vertex[1])};
  if (any & kOutPlanes) {
    if (!clip(2, any & kOutPlanes, &p)) return;
    for (int i = 0; i < 2; ++i) ends[i] = {clipped_.back().corners[i].x, clipped_.back().corners[i].y};
  }
  const float width = clamp_size(state_.line_width, kMaxLineWidth);
  const uint32_t entries = lists_.add_line(ends[0], ends[1], width, layer_of(p), next_entry());
  if (entries == 0 && p.clipped >= 0) clipped_.pop_back();
  keep(p, entries);
}

/// Clipped by its centre, which may lie beside the viewport as long as it is in the guard box: wide points
/// are cut off at the window (dEQP-GLES2 functional.clipping.point.wide_point_clip).
void PrimitiveBinner::bin_point(const draw::Primitive& p) {
  const uint32_t v = p.vertex[0];
  if (vertices().code(v) != 0) {
    ++counts_[perf::kPtbPrimitivesOutside];
    return;
  }
  keep(p, lists_.add_point(vertices().point(v), point_size(v), layer_of(p), next_entry()));
}

void PrimitiveBinner::bin_primitive(const draw::Primitive& p, uint8_t vertices) {
  was_clipped_ = false;
  // Lines and points count as front facing.
  if (vertices != 3 && !state_.cfg.draw_front) {
    ++counts_[perf::kPtbPrimitivesReversed];
  } else if (lists_.empty_window() || layer_of(p) >= result_.layers) {
    ++counts_[perf::kPtbPrimitivesOutside];
  } else if (vertices == 3) {
    bin_triangle(p);
  } else if (vertices == 2) {
    bin_line(p);
  } else {
    bin_point(p);
  }
}

/// The same for 16 triangles of layer 0, drawn as such.
void PrimitiveBinner::bin_triangles(const draw::Primitive* triangles) {
  TriangleSorter::Sorted sorted;
  sorter_.sort(triangles, vertices(), &sorted);
  counts_[perf::kPtbPrimitivesOutside] += static_cast<uint64_t>(std::popcount(sorted.outside));
  counts_[perf::kPtbPrimitivesReversed] += static_cast<uint64_t>(std::popcount(sorted.reversed));
  uint32_t left = uint32_t{sorted.drawn} | sorted.plain;
  for (; left != 0 && has_room(); left &= left - 1) {
    const auto lane = static_cast<size_t>(std::countr_zero(left));
    if ((sorted.plain >> lane) & 1) {
      bin_primitive(triangles[lane], 3);
      continue;
    }
    const uint32_t entries =
        lists_.add_tiles(sorted.x0[lane], sorted.y0[lane], sorted.x1[lane], sorted.y1[lane], next_entry());
    // There is room: it takes its own place, or one in front. What was stored byte by byte and is then copied
    // as a whole would have to wait.
    draw::Primitive& kept = (*kept_)[first_kept_ + num_kept_++];
    if (&kept != &triangles[lane]) kept = triangles[lane];
    kept.back_facing = ((sorted.back_facing >> lane) & 1) != 0;
    ++counts_[perf::kPtbPrimitivesBinned];
    entries_ += entries;
  }
}

/// Whether the piece may have more entries, and somebody wants them. Others hear of those of this part now
/// and then.
bool PrimitiveBinner::has_room() {
  if (lists_.meter().ended()) return false;
  constexpr uint64_t kTell = 1024;
  if (const uint64_t untold = entries_ - told_entries_; untold >= kTell) {
    told_entries_ = entries_;
    all_entries_ = shared_->entries.fetch_add(untold, std::memory_order_relaxed) + untold;
  }
  return all_entries_ + (entries_ - told_entries_) <= shared_->max_entries;
}

/// Begins a range of a piece.
/// @param first  place in `kept` of the first primitive that is drawn
void PrimitiveBinner::start(Shared& shared, std::vector<draw::Primitive>* kept, size_t first) {
  shared_ = &shared;
  entries_ = told_entries_ = all_entries_ = 0;
  clipped_.clear();
  kept_ = kept;
  first_kept_ = first;
  num_kept_ = 0;
}

/// Bins primitives begin to end of the piece. Those that are drawn take the places of those that are not, but
/// for outlines, which need more room.
void PrimitiveBinner::bin_range(Shared& shared, size_t begin, size_t end) {
  std::vector<draw::Primitive>& primitives = shared.draw->primitives;
  std::vector<draw::Primitive> outlines;
  const uint8_t vertices = shared.draw->vertices_per_primitive;
  const bool outline = vertices == 3 && fill_ != Fill::kSolid;
  start(shared, outline ? &outlines : &primitives, outline ? 0 : begin);
  const bool many = vertices == 3 && !outline && !lists_.empty_window() && shared.shaded->layer.empty();
  for (size_t next = begin; next < end && has_room();) {
    lists_.meter().charge(kPrimitiveCost);
    if (many && end - next >= kLanes) {
      bin_triangles(&primitives[next]);
      next += kLanes;
    } else {
      const draw::Primitive p = primitives[next++];
      bin_primitive(p, vertices);
    }
  }
  if (!outline) return;
  shared.draw->vertices_per_primitive = fill_ == Fill::kLines ? 2 : 1;
  primitives = std::move(outlines);
}

draw::BinResult PrimitiveBinner::empty_lists(const draw::BinResult& of) {
  draw::BinResult result;
  result.width = of.width;
  result.height = of.height;
  result.tile_width = of.tile_width;
  result.tile_height = of.tile_height;
  result.tiles_x = of.tiles_x;
  result.tiles_y = of.tiles_y;
  result.layers = 1;
  result.tiles.resize(size_t{of.tiles_x} * of.tiles_y);
  return result;
}

/// A later part of a piece, with lists and counters of its own.
struct PrimitiveBinner::Part {
  explicit Part(const PrimitiveBinner& whole)
      : result(empty_lists(whole.result_)),
        binner(whole.state_, whole.record_, whole.rules_, &result, &counts, whole.job_) {}
  draw::BinResult result;
  perf::Counts counts;
  PrimitiveBinner binner;
  std::vector<draw::Primitive> kept;  // of a list
  std::vector<draw::VertexRef> vertices;
};

/// Parts into which a piece is worth being cut: the lists of all but the first one are copied.
size_t PrimitiveBinner::parts_of(const Shared& shared) const {
  constexpr size_t kLeast = 2048;  // primitives of a part
  const size_t primitives = shared.draw->primitives.size();
  if (job_ == nullptr || shared.draw->vertices_per_primitive != 3 || fill_ != Fill::kSolid ||
      !shared.shaded->layer.empty() || result_.tiles.size() * 2 > primitives)
    return 1;
  return std::clamp<size_t>(primitives / kLeast, 1, static_cast<size_t>(job_->pool->concurrency()));
}

void PrimitiveBinner::bin_parts(Shared& shared, size_t parts) {
  const size_t count = shared.draw->primitives.size();
  const auto begin = [&](size_t part) { return count * part / parts; };
  std::vector<std::unique_ptr<Part>> later(parts - 1);
  const auto run = [&](int i, int) {
    const auto part = static_cast<size_t>(i);
    const host_time::Scope host(host_time::Block::kBinning);
    const host_time::DrawScope of(host_time::DrawScope::Phase::kBin,
                                  draw::host_key(record_, shared.draw->call));
    if (part == 0) return bin_range(shared, 0, begin(1));
    later[part - 1] = std::make_unique<Part>(*this);
    later[part - 1]->binner.bin_range(shared, begin(part), begin(part + 1));
  };
  job_->pool->parallel_for(static_cast<int>(parts), run, job_->control, ThreadPool::Next::kSoon);
  for (const std::unique_ptr<Part>& part : later) append(*part, kept_->data() + part->binner.first_kept_);
}

/// @param primitives  that it kept, in the same vector or elsewhere
void PrimitiveBinner::append(Part& part, const draw::Primitive* primitives) {
  const PrimitiveBinner& binner = part.binner;
  draw::Primitive* const to = kept_->data() + num_kept_;
  if (primitives != to) std::copy_n(primitives, binner.num_kept_, to);
  if (!binner.clipped_.empty())
    for (draw::Primitive* p = to; p != to + binner.num_kept_; ++p)
      if (p->clipped >= 0) p->clipped += static_cast<int32_t>(clipped_.size());
  clipped_.insert(clipped_.end(), binner.clipped_.begin(), binner.clipped_.end());
  for (size_t t = 0; t < part.result.tiles.size(); ++t) {
    for (draw::ListEntry& entry : part.result.tiles[t]) entry.primitive += num_kept_;
    result_.tiles[t].insert(result_.tiles[t].end(), part.result.tiles[t].begin(), part.result.tiles[t].end());
  }
  num_kept_ += binner.num_kept_;
  entries_ += binner.entries_;
  counts_.add(part.counts);
}

uint64_t PrimitiveBinner::bin(draw::Draw* draw, const vpm::ShadedVertices& shaded, uint32_t draw_number,
                              uint64_t max_entries) {
  std::atomic<uint64_t> all_entries{0};
  Shared shared{.shaded = &shaded,
                .vertices = {},
                .draw = draw,
                .draw_number = draw_number,
                .max_entries = max_entries,
                .entries = all_entries};
  load_vertices(shared);
  const size_t parts = parts_of(shared);
  if (parts > 1)
    bin_parts(shared, parts);
  else
    bin_range(shared, 0, draw->primitives.size());
  draw->primitives.resize(num_kept_);
  draw->clipped = std::move(clipped_);
  return entries_;
}

/// 16 triangles of a list and their 48 vertices, triangle by triangle.
struct PrimitiveBinner::ListGroup {
  static constexpr uint32_t kBatches = 3, kVertices = kBatches * kLanes;

  ListGroup(const TriangleList& list, uint32_t rows, bool provoking_first) : of(list) {
    shaded.rows = rows;
    shaded.count = kVertices;
    shaded.data.resize(kBatches * rows, Lanes{});
    for (uint32_t i = 0; i < kLanes; ++i)
      triangles[i] = {.vertex = {3 * i, 3 * i + 1, 3 * i + 2},
                      .provoking = 3 * i + (provoking_first ? 0 : 2),
                      .primitive_id = 0};
  }
  /// Shades those from `first` on; lanes past the end repeat the last vertex.
  void shade(vpm::VertexStages& stages, const draw::DrawCall& call, uint32_t first, uint32_t count,
             int slot) {
    const uint32_t vertices = 3 * count, begin = of.first_vertex + 3 * first;
    for (uint32_t i = 0; i < count; ++i) triangles[i].primitive_id = of.first_id + first + i;
    for (uint32_t b = 0, v = 0; v < vertices; ++b, v += kLanes) {
      const LanesI vertex = min(as_int(kLaneIndex + v), splat_int(static_cast<int>(vertices - 1)));
      stages.run(vpm::batch_refs(call, as_uint(vertex) + begin, splat(of.instance)),
                 vpm::batch_lanes(b, vertices), slot, &shaded.data[size_t{b} * shaded.rows]);
    }
  }

  const TriangleList& of;
  vpm::ShadedVertices shaded;
  draw::Primitive triangles[kLanes];
};

/// The vertices of the triangles that were kept from number `from` on follow those that there are.
/// @param first  triangle of the group
void PrimitiveBinner::give_vertices(uint32_t from, const TriangleList& list, size_t first,
                                    std::vector<draw::VertexRef>* vertices) {
  const uint32_t begin = list.first_vertex + 3 * static_cast<uint32_t>(first);
  for (uint32_t n = from; n < num_kept_; ++n) {
    draw::Primitive& p = (*kept_)[n];
    p.provoking += 3 * n - p.vertex[0];
    for (uint32_t k = 0; k < 3; ++k) {
      vertices->push_back({.index = begin + p.vertex[k], .instance = list.instance});
      p.vertex[k] = 3 * n + k;
    }
  }
}

/// Shades and bins triangles begin to end, 16 at a time.
void PrimitiveBinner::bin_list_range(ListJob& job, size_t begin, size_t end, int slot,
                                     std::vector<draw::Primitive>* kept,
                                     std::vector<draw::VertexRef>* vertices) {
  constexpr uint32_t kGroupCost = 100;
  ListGroup group(job.list, job.rows, state_.cfg.provoking_first);
  Shared shared{.shaded = &group.shaded,
                .vertices = {},
                .draw = &job.draw,
                .draw_number = job.draw_number,
                .max_entries = job.max_entries,
                .entries = job.entries};
  shared.vertices.resize(ListGroup::kBatches);
  start(shared, kept, 0);
  for (size_t first = begin; first < end && has_room(); first += kLanes) {
    lists_.meter().charge(kGroupCost);
    const size_t count = std::min<size_t>(end - first, kLanes);
    group.shade(job.stages, job.draw.call, static_cast<uint32_t>(first), static_cast<uint32_t>(count), slot);
    for (uint32_t g = 0; g < ListGroup::kBatches; ++g) load_group(g, shared);
    const uint32_t before = num_kept_;
    if (kept->size() < before + kLanes) kept->resize(2 * kept->size() + 8 * kLanes);
    if (count == kLanes && !lists_.empty_window())
      bin_triangles(group.triangles);
    else
      for (size_t i = 0; i < count; ++i) bin_primitive(group.triangles[i], 3);
    give_vertices(before, job.list, first, vertices);
  }
}

size_t PrimitiveBinner::parts_of_list(size_t triangles) const {
  constexpr size_t kLeast = 512, kForEach = 2;
  const auto threads = static_cast<size_t>(job_->pool->concurrency());
  if (threads == 1 || result_.tiles.size() * 2 > triangles) return 1;
  return std::clamp<size_t>(triangles / kLeast, 1, threads * kForEach);
}

uint64_t PrimitiveBinner::bin_list(draw::Draw* draw, const TriangleList& list, vpm::VertexStages& stages,
                                   uint32_t rows, uint32_t draw_number, uint64_t max_entries) {
  ListJob job{.list = list,
              .stages = stages,
              .rows = rows,
              .draw = *draw,
              .draw_number = draw_number,
              .max_entries = max_entries};
  const size_t parts = parts_of_list(list.count);
  const auto begin = [&](size_t part) {
    return part == parts ? size_t{list.count} : list.count * part / parts / kLanes * kLanes;
  };
  std::vector<std::unique_ptr<Part>> later(parts - 1);
  const auto run = [&](int i, int slot) {
    const auto part = static_cast<size_t>(i);
    const host_time::Scope host(host_time::Block::kBinning);
    const host_time::DrawScope of(host_time::DrawScope::Phase::kBin, draw::host_key(record_, draw->call));
    if (part == 0) return bin_list_range(job, 0, begin(1), slot, &draw->primitives, &draw->vertices);
    later[part - 1] = std::make_unique<Part>(*this);
    Part& own = *later[part - 1];
    own.binner.bin_list_range(job, begin(part), begin(part + 1), slot, &own.kept, &own.vertices);
  };
  job_->pool->parallel_for(static_cast<int>(parts), run, job_->control, ThreadPool::Next::kSoon);
  for (const std::unique_ptr<Part>& part : later) {
    const uint32_t before = num_kept_, first = 3 * num_kept_;
    draw->primitives.resize(before + part->binner.num_kept_);
    append(*part, part->kept.data());
    for (uint32_t n = before; n < num_kept_; ++n) {
      draw::Primitive& p = draw->primitives[n];
      for (uint32_t& v : p.vertex) v += first;
      p.provoking += first;
    }
    draw->vertices.insert(draw->vertices.end(), part->vertices.begin(), part->vertices.end());
  }
  draw->primitives.resize(num_kept_);
  draw->clipped = std::move(clipped_);
  return entries_;
}

}  // namespace v3d::ptb
