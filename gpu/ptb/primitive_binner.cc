#include "gpu/ptb/primitive_binner.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace v3d::ptb {

namespace {

/// Rows of a coordinate program's output (cle-and-tiles.md 3.3).
constexpr uint32_t kRowClip = 0, kRowX = 4, kRowY = 5, kRowPointSize = 6;

/// Twice the signed area; positive is clockwise to an eye for which rows grow downwards.
int64_t cross(ScreenPoint a, ScreenPoint b, ScreenPoint c) {
  return (int64_t{b.x} - a.x) * (int64_t{c.y} - a.y) - (int64_t{c.x} - a.x) * (int64_t{b.y} - a.y);
}

}  // namespace

PrimitiveBinner::PrimitiveBinner(const draw::DrawState& state, const draw::ShaderRecord& record,
                                 int fraction_bits, draw::BinResult* result, perf::Counts* counts)
    : state_(state),
      result_(*result),
      counts_(*counts),
      clips_(record.clipping),
      size_in_vertices_(record.point_size_in_vertices),
      fill_(!state.cfg.wireframe   ? Fill::kSolid
            : state.cfg.point_fill ? Fill::kPoints
                                   : Fill::kLines),
      screen_(state, fraction_bits),
      clipper_(state, fraction_bits),
      lists_(state, result),
      sorter_(state, lists_) {}

/// Screen positions and outcodes of all vertices, 16 at a time. Without clipping (assumed) vertices have the
/// same rows and are drawn where the program puts them on the screen, in front of the eye or not.
void PrimitiveBinner::load_vertices(const vpm::ShadedVertices& shaded) {
  shaded_ = &shaded;
  const uint32_t groups = (shaded.count + kLanes - 1) / kLanes;
  vertices_.resize(groups);
  for (uint32_t g = 0; g < groups; ++g) {
    if (shaded.rows <= kRowY) {  // no position: such vertices draw nothing
      vertices_.codes[g] = splat(uint32_t{kOutInvalid});
      continue;
    }
    const Lanes* rows = &shaded.data[size_t{g} * shaded.rows];
    const LanesF clip[4] = {as_float(rows[kRowClip]), as_float(rows[kRowClip + 1]),
                            as_float(rows[kRowClip + 2]), as_float(rows[kRowClip + 3])};
    vertices_.codes[g] = clips_ ? clipper_.classify(clip) : Lanes{};
    vertices_.x[g] = as_uint(screen_.x(as_int(rows[kRowX])));
    vertices_.y[g] = as_uint(screen_.y(as_int(rows[kRowY])));
  }
}

float PrimitiveBinner::point_size(uint32_t vertex) const {
  const float size =
      size_in_vertices_ ? std::bit_cast<float>(shaded_->word(vertex, kRowPointSize)) : state_.point_size;
  return clamp_size(size, kMaxPointSize);
}

uint32_t PrimitiveBinner::layer_of(const draw::Primitive& p) const {
  return p.provoking < shaded_->layer.size() ? shaded_->layer[p.provoking] : 0;
}

void PrimitiveBinner::keep(const draw::Primitive& p, uint32_t entries) {
  if (entries == 0) {
    ++counts_[perf::kPtbPrimitivesOutside];
    return;
  }
  ++counts_[perf::kPtbPrimitivesBinned];
  entries_ += entries;
  if (num_kept_ == kept_->size())
    kept_->push_back(p);
  else
    (*kept_)[num_kept_] = p;
  ++num_kept_;
}

/// Clips the first `count` vertices and appends what is left to the polygons. @return  false if nothing is
bool PrimitiveBinner::clip(int count, uint16_t codes, draw::Primitive* p) {
  if (!std::exchange(was_clipped_, true)) ++counts_[perf::kPtbPrimitivesClipped];
  ClipVertex vertices[3];
  for (int i = 0; i < count; ++i) {
    const uint32_t v = p->vertex[i];
    for (uint32_t r = 0; r < 4; ++r)
      vertices[i].clip[r] = std::bit_cast<float>(shaded_->word(v, kRowClip + r));
    const ScreenPoint point = vertices_.point(v);
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
  const uint16_t a = vertices_.code(p.vertex[0]), b = vertices_.code(p.vertex[1]),
                 c = vertices_.code(p.vertex[2]);
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
    for (int i = 0; i < 3; ++i) corners[i] = vertices_.point(p.vertex[i]);
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
  const uint16_t a = vertices_.code(p.vertex[0]), b = vertices_.code(p.vertex[1]);
  const uint16_t any = a | b;
  if ((any & kOutInvalid) || (a & b & kOutPlanes)) {
    ++counts_[perf::kPtbPrimitivesOutside];
    return;
  }
  ScreenPoint ends[2] = {vertices_.point(p.vertex[0]), vertices_.point(p.vertex[1])};
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
  if (vertices_.code(v) != 0) {
    ++counts_[perf::kPtbPrimitivesOutside];
    return;
  }
  keep(p, lists_.add_point(vertices_.point(v), point_size(v), layer_of(p), next_entry()));
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
void PrimitiveBinner::bin_triangles(const draw::Primitive* triangles, uint64_t max_entries) {
  TriangleSorter::Sorted sorted;
  sorter_.sort(triangles, vertices_, &sorted);
  counts_[perf::kPtbPrimitivesOutside] += static_cast<uint64_t>(std::popcount(sorted.outside));
  counts_[perf::kPtbPrimitivesReversed] += static_cast<uint64_t>(std::popcount(sorted.reversed));
  uint32_t left = uint32_t{sorted.drawn} | sorted.plain;
  for (; left != 0 && entries_ <= max_entries; left &= left - 1) {
    const auto lane = static_cast<size_t>(std::countr_zero(left));
    if ((sorted.plain >> lane) & 1) {
      bin_primitive(triangles[lane], 3);
      continue;
    }
    const uint32_t entries =
        lists_.add_tiles(sorted.x0[lane], sorted.y0[lane], sorted.x1[lane], sorted.y1[lane], next_entry());
    // There is room: it takes its own place, or one in front. What was stored byte by byte and is then copied
    // as a whole would have to wait.
    draw::Primitive& kept = (*kept_)[num_kept_++];
    kept = triangles[lane];
    kept.back_facing = ((sorted.back_facing >> lane) & 1) != 0;
    ++counts_[perf::kPtbPrimitivesBinned];
    entries_ += entries;
  }
}

uint64_t PrimitiveBinner::bin(draw::Draw* draw, const vpm::ShadedVertices& shaded, uint32_t draw_number,
                              uint64_t max_entries) {
  load_vertices(shaded);
  draw_number_ = draw_number;
  entries_ = 0;
  clipped_.clear();
  // Primitives that are drawn take the places of those that are not, but for outlines, which need more room.
  std::vector<draw::Primitive> outlines;
  num_kept_ = 0;
  const uint8_t vertices = draw->vertices_per_primitive;
  const bool outline = vertices == 3 && fill_ != Fill::kSolid;
  kept_ = outline ? &outlines : &draw->primitives;
  const bool many = vertices == 3 && !outline && !lists_.empty_window() && shaded.layer.empty();
  size_t next = 0;
  for (const size_t count = draw->primitives.size(); next < count && entries_ <= max_entries;) {
    if (many && count - next >= kLanes) {
      bin_triangles(&draw->primitives[next], max_entries);
      next += kLanes;
    } else {
      const draw::Primitive p = draw->primitives[next++];
      bin_primitive(p, vertices);
    }
  }
  if (outline) {
    draw->vertices_per_primitive = fill_ == Fill::kLines ? 2 : 1;
    draw->primitives = std::move(outlines);
  }
  draw->primitives.resize(num_kept_);
  draw->clipped = std::move(clipped_);
  return entries_;
}

}  // namespace v3d::ptb
