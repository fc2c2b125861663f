#include "gpu/pse/tile_renderer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <span>

#include "gpu/base/host_time.h"
#include "gpu/base/work_watch.h"
#include "gpu/chip/profile.h"
#include "gpu/draw/host_key.h"
#include "gpu/pse/fragment_stage.h"
#include "gpu/pse/geometry.h"
#include "gpu/pse/hidden_entries.h"
#include "gpu/pse/prepared_draw.h"
#include "gpu/pse/triangle_group.h"

namespace v3d::pse {
namespace {

Corner vertex_corner(const PreparedDraw& draw, uint32_t index) {
  const uint32_t* v = draw.vertex(index);
  return {static_cast<int32_t>(v[0]), static_cast<int32_t>(v[1]), std::bit_cast<float>(v[2]),
          std::bit_cast<float>(v[3])};
}

/// Vertices that clipping kept have the depth and W of the vertex program.
Corner clipped_corner(const PreparedDraw& draw, const draw::Primitive& p,
                      const draw::ClippedPolygon::Corner& c) {
  for (int i = 0; i < draw.draw->vertices_per_primitive; ++i)
    if (c.weight[i] == 1) return vertex_corner(draw, p.vertex[i]);
  const float r = 1.0f / c.w;
  return {c.x, c.y, c.z * draw.state().z_scale * r + draw.state().z_offset, r};
}

/// Unit of the constant factor (cle-and-tiles.md 4.6).
double depth_unit(tlb::DepthType type, const chip::Profile& profile, double largest_z) {
  switch (type) {
    case tlb::DepthType::k16:
      return profile.depth16_offset_unit();
    case tlb::DepthType::k24:
      return 0x1p-24;
    case tlb::DepthType::k32F:
      break;
  }
  if (largest_z == 0 || !std::isfinite(largest_z)) return std::ldexp(1.0, -149);
  return std::ldexp(1.0, std::max(std::ilogb(largest_z) - 23, -149));
}

/// Triangles for which the set-up of 16 pays.
constexpr int kMinGroup = 3;

/// Those that follow each other from `first` on, `max` at most.
std::span<const draw::ListEntry> entries_of_one_draw(std::span<const draw::ListEntry> list, size_t first,
                                                     size_t max) {
  const std::span<const draw::ListEntry> rest = list.subspan(first, std::min(max, list.size() - first));
  size_t count = 1;
  while (count < rest.size() && rest[count].draw == rest[0].draw) ++count;
  return rest.first(count);
}

}  // namespace

struct TileRenderer::State {
  State(const JobContext& j, const PreparedDraws::State& d, uint32_t tidx)
      : job(j), draws(d), multisample(d.config.multisample), stage(j, d.config, tidx, counts) {}

  const JobContext& job;
  const PreparedDraws::State& draws;
  const bool multisample;
  perf::Counts counts;
  FragmentStage stage;

  int tile_x = 0, tile_y = 0;
  const PreparedDraw* draw = nullptr;
  const draw::Primitive* current = nullptr;  // that primitive() draws
  Rect window;                               // of the draw, relative to the tile
  bool window_cuts = false;                  // it goes through blocks of 4x4 pixels
  uint32_t sample_bits = 0;                  // of a pixel, after the sample mask
  bool groups = false;                       // its triangles may be taken together
  TriangleGroup group;
  bool valid = false, covered = false;  // of the primitive: passed set-up; has samples in the tile
  GpuAddr counter = 0;                  // occlusion counter that `samples` belongs to
  uint64_t samples = 0;

  void run(std::span<const draw::ListEntry> list, tlb::TileBuffer& tile);
  void run_entries(std::span<const draw::ListEntry> list, tlb::TileBuffer& tile);
  void begin_draw(const PreparedDraw& next);
  void end_draw(tlb::TileBuffer& tile);
  void flush_counter();

  void primitive(const draw::Primitive& p);
  void draw_primitive(const draw::Primitive& p);
  void triangles(std::span<const draw::ListEntry> entries);
  int open_group_setup(const draw::Primitive& p, size_t lane);
  void small_triangle(const draw::Primitive& p, size_t lane);
  void medium_triangle(const draw::Primitive& p, size_t lane);
  void polygon(const draw::Primitive& p, std::span<const Corner> corners,
               const draw::ClippedPolygon* clipped);
  double triangle_offset(const draw::Primitive& p) const;
  void triangle(const std::array<Corner, 3>& corners, const VaryingSource& source, bool back_facing,
                double largest_z);
  void line(const Corner& from, const Corner& to, const VaryingSource& source, bool back_facing,
            double offset);
  void point(const Corner& center, float size, const VaryingSource& source, bool back_facing, double offset);
  double depth_offset(const Geometry& geometry, const std::array<Corner, 3>& corners, double largest_z) const;
  float point_size(const uint32_t* vertex) const;
  VaryingSource source_of(const draw::Primitive& p) const;
  void set_source(const draw::Primitive& p, VaryingSource& source) const;

  int open_setup(const Geometry& geometry, std::span<const Corner> corners, const VaryingSource& source,
                 bool back_facing, double offset);
  void cover(const Geometry& geometry, int setup);
  template <int kSamples, int kEdges>
  void cover_blocks(const Geometry& geometry, const Rect& area, int setup);
  template <int kSamples, int kEdges>
  void cover_blocks(const TileCoverage<kSamples, kEdges>& coverage, const Rect& area, int setup);
  void cover_bitmap(const TileBitmap& bitmap, int setup);
  void add_block(int setup, int x, int y, const Lanes& bits);
};

void TileRenderer::State::flush_counter() {
  if (counter != 0 && samples != 0) {
    auto* word = reinterpret_cast<uint32_t*>(job.memory.host(counter & ~GpuAddr{3}));
    __atomic_fetch_add(word, static_cast<uint32_t>(samples), __ATOMIC_RELAXED);
  }
  samples = 0;
}

void TileRenderer::State::begin_draw(const PreparedDraw& next) {
  draw = &next;
  const draw::DrawState& s = next.state();
  const tlb::Config& config = draws.config;
  const Rect tile = {0, 0, static_cast<int>(config.tile_width), static_cast<int>(config.tile_height)};
  const Rect frame = {0, 0, static_cast<int>(config.width) - tile_x,
                      static_cast<int>(config.height) - tile_y};
  const Rect clip = {s.clip_left - tile_x, s.clip_bottom - tile_y, s.clip_left + s.clip_width - tile_x,
                     s.clip_bottom + s.clip_height - tile_y};
  window = intersect(intersect(tile, frame), clip);
  window_cuts = !of_whole_blocks(window);
  sample_bits = s.sample_mask & (multisample ? 15u : 1u);
  groups = next.draw->vertices_per_primitive == 3 && !next.four_samples && !s.cfg.depth_offset;
  if (s.occlusion_counter != counter) flush_counter();
  counter = s.occlusion_counter;
  stage.begin_draw(next);
}

void TileRenderer::State::end_draw(tlb::TileBuffer& tile) {
  stage.end_draw();
  if (job.tile) job.tile->end_draw(counts);
  samples += tile.take_occlusion_count();
  draw = nullptr;
}

void TileRenderer::State::run(std::span<const draw::ListEntry> list, tlb::TileBuffer& tile) {
  stage.begin_tile(tile, tile_x, tile_y);
  const HiddenEntries::Range hidden =
      draws.hidden ? draws.hidden->find(list, tile_x, tile_y) : HiddenEntries::Range{};
  run_entries(list.first(hidden.first), tile);
  run_entries(list.subspan(hidden.end), tile);
  if (draw != nullptr) end_draw(tile);
  flush_counter();
  counter = 0;
}

/// Draws them; the last draw is not ended.
void TileRenderer::State::run_entries(std::span<const draw::ListEntry> list, tlb::TileBuffer& tile) {
  std::optional<host_time::DrawScope> host;
  for (size_t i = 0; i < list.size();) {
    if (job.stopped()) break;
    const PreparedDraw& next = draws.draws[list[i].draw];
    if (next.draw == nullptr) {
      ++i;
      continue;
    }
    if (&next != draw) {
      if (draw != nullptr) end_draw(tile);
      if (job.tile) job.tile->begin_draw(list[i].draw, counts);
      host.reset();
      host.emplace(host_time::DrawScope::Phase::kRender, draw::host_key(next.record(), next.draw->call));
      begin_draw(next);
    }
    const std::span<const draw::ListEntry> same = entries_of_one_draw(list, i, groups ? kLanes : 1);
    i += same.size();
    groups ? triangles(same) : primitive(next.draw->primitives[same[0].primitive]);
  }
}

void TileRenderer::State::set_source(const draw::Primitive& p, VaryingSource& source) const {
  source.corners = draw->draw->vertices_per_primitive;
  for (int i = 0; i < 3; ++i) source.vertex[i] = draw->vertex(p.vertex[i < source.corners ? i : 0]);
  source.provoking = draw->vertex(p.provoking);
  source.primitive_id = p.primitive_id;
}

VaryingSource TileRenderer::State::source_of(const draw::Primitive& p) const {
  VaryingSource source;
  set_source(p, source);
  return source;
}

float TileRenderer::State::point_size(const uint32_t* vertex) const {
  return draw->record().point_size_in_vertices ? std::bit_cast<float>(vertex[4]) : draw->state().point_size;
}

/// Triangles of the draw, 16 at most, in their order.
void TileRenderer::State::triangles(std::span<const draw::ListEntry> entries) {
  const draw::Primitive* of[kLanes];
  LaneMask simple = 0;
  for (size_t lane = 0; lane < entries.size(); ++lane) {
    const draw::Primitive& p = draw->draw->primitives[entries[lane].primitive];
    of[lane] = &p;
    if (p.clipped < 0 && draw->has_vertices(p, 3)) simple |= static_cast<LaneMask>(1u << lane);
  }
  if (std::popcount(simple) < kMinGroup) simple = 0;
  group.set_up(*draw, of, simple, tile_x, tile_y, window);
  const auto drawn = static_cast<LaneMask>(sample_bits != 0 ? group.covered() : 0);
  counts[perf::kFepPrimitivesPixels] += static_cast<uint64_t>(std::popcount(group.valid()));
  counts[perf::kFepPrimitivesNoPixels] +=
      static_cast<uint64_t>(std::popcount(group.valid()) - std::popcount(drawn));
  uint32_t left = ((1u << entries.size()) - 1) & (~uint32_t{group.small()} | drawn);
  for (; left != 0; left &= left - 1) {
    const auto lane = static_cast<size_t>(std::countr_zero(left));
    if ((drawn >> lane) & 1)
      small_triangle(*of[lane], lane);
    else if ((group.medium() >> lane) & 1)
      medium_triangle(*of[lane], lane);
    else
      primitive(*of[lane]);
  }
}

/// Of one that the group has set up.
int TileRenderer::State::open_group_setup(const draw::Primitive& p, size_t lane) {
  job.moved();
  const int index = stage.free_setup();
  PrimitiveSetup& setup = stage.setup(index);
  setup.primitive = &p;
  setup.z = group.z(lane);
  setup.r = group.r(lane);
  setup.back_facing = p.back_facing;
  VaryingSource& source = setup.source;
  set_source(p, source);
  group.get_weights(lane, source.spread);
  for (size_t k = 0; k < 3; ++k) {
    source.r[k] = group.corner_r(k, lane);
    source.weights[k] = nullptr;
  }
  setup.varyings_ready = false;
  return index;
}

/// What primitive() does, for one that the group has set up and that covers pixels.
void TileRenderer::State::small_triangle(const draw::Primitive& p, size_t lane) {
  const int index = open_group_setup(p, lane);
  for (size_t block = 0; block < TriangleGroup::kBlocks; ++block) {
    const LaneMask pixels = group.pixels(block, lane);
    if (pixels == 0) continue;
    const int x = group.left(lane) + (block & 1 ? 4 : 0), y = group.top(lane) + (block & 2 ? 4 : 0);
    stage.add_block(index, tile_x + x, tile_y + y, pixels, sample_bits);
  }
}

/// The same for one of more blocks, which may cover none.
void TileRenderer::State::medium_triangle(const draw::Primitive& p, size_t lane) {
  covered = false;
  if (sample_bits != 0) cover_blocks<1, 3>(group.coverage(lane), group.area(lane), open_group_setup(p, lane));
  ++counts[perf::kFepPrimitivesPixels];
  counts[perf::kFepPrimitivesNoPixels] += !covered;
}

/// Draws one primitive and counts it.
void TileRenderer::State::primitive(const draw::Primitive& p) {
  job.moved();
  current = &p;
  valid = covered = false;
  draw_primitive(p);
  counts[perf::kFepPrimitivesPixels] += valid;
  counts[perf::kFepPrimitivesNoPixels] += valid && !covered;
}

void TileRenderer::State::draw_primitive(const draw::Primitive& p) {
  const int count = draw->draw->vertices_per_primitive;
  if (!draw->has_vertices(p, draw->outlines ? 3 : count)) return;
  const draw::ClippedPolygon* clipped =
      p.clipped >= 0 ? &draw->draw->clipped[static_cast<size_t>(p.clipped)] : nullptr;
  std::array<Corner, draw::kMaxCorners> corners;
  auto num_corners = static_cast<size_t>(count);
  if (clipped != nullptr) {
    num_corners = std::min<size_t>(clipped->num_corners, corners.size());
    for (size_t i = 0; i < num_corners; ++i) corners[i] = clipped_corner(*draw, p, clipped->corners[i]);
  } else {
    for (size_t i = 0; i < num_corners; ++i) corners[i] = vertex_corner(*draw, p.vertex[i]);
  }
  if (count == 3) {
    polygon(p, {corners.data(), num_corners}, clipped);
    return;
  }
  if (num_corners < static_cast<size_t>(count)) return;
  VaryingSource source = source_of(p);
  for (int i = 0; i < count; ++i) {
    source.r[i] = corners[static_cast<size_t>(i)].r;
    if (clipped != nullptr) source.weights[i] = clipped->corners[i].weight;
  }
  const double offset = draw->outlines ? triangle_offset(p) : 0;
  if (count == 2)
    line(corners[0], corners[1], source, p.back_facing, offset);
  else
    point(corners[0], point_size(source.vertex[0]), source, p.back_facing, offset);
}

/// A triangle, or what clipping left of it as a fan.
void TileRenderer::State::polygon(const draw::Primitive& p, std::span<const Corner> corners,
                                  const draw::ClippedPolygon* clipped) {
  double largest_z = 0;
  for (const Corner& c : corners) largest_z = std::max(largest_z, std::abs(double{c.z}));
  VaryingSource source = source_of(p);
  for (size_t i = 1; i + 1 < corners.size(); ++i) {
    const size_t fan[3] = {0, i, i + 1};
    for (int k = 0; k < 3; ++k) {
      source.r[k] = corners[fan[k]].r;
      if (clipped != nullptr) source.weights[k] = clipped->corners[fan[k]].weight;
    }
    triangle({corners[fan[0]], corners[fan[1]], corners[fan[2]]}, source, p.back_facing, largest_z);
  }
}

/// Depth offset of the triangle that an edge or vertex was taken from.
double TileRenderer::State::triangle_offset(const draw::Primitive& p) const {
  if (!draw->state().cfg.depth_offset) return 0;
  const std::array<Corner, 3> corners = {vertex_corner(*draw, p.vertex[0]), vertex_corner(*draw, p.vertex[1]),
                                         vertex_corner(*draw, p.vertex[2])};
  double largest_z = 0;
  for (const Corner& c : corners) largest_z = std::max(largest_z, std::abs(double{c.z}));
  Geometry geometry;
  return triangle_geometry(corners, tile_x, tile_y, geometry) ? depth_offset(geometry, corners, largest_z)
                                                              : 0;
}

double TileRenderer::State::depth_offset(const Geometry& geometry, const std::array<Corner, 3>& corners,
                                         double largest_z) const {
  const draw::DrawState& s = draw->state();
  if (!s.cfg.depth_offset) return 0;
  const LinearPlane z =
      make_plane(geometry.weights, double{corners[0].z}, double{corners[1].z} - double{corners[0].z},
                 double{corners[2].z} - double{corners[0].z});
  const double m = std::max(std::abs(z.step_x), std::abs(z.step_y)) * std::abs(geometry.weights.scale);
  const double r = depth_unit(draws.config.depth_type, *job.profile, largest_z);
  const double offset = m * double{s.offset_factor} + r * double{s.offset_units};
  if (s.offset_limit > 0) return std::min(offset, double{s.offset_limit});
  if (s.offset_limit < 0) return std::max(offset, double{s.offset_limit});
  return offset;
}

int TileRenderer::State::open_setup(const Geometry& geometry, std::span<const Corner> corners,
                                    const VaryingSource& source, bool back_facing, double offset) {
  const int index = stage.free_setup();
  PrimitiveSetup& setup = stage.setup(index);
  setup.primitive = current;
  double z[3] = {double{corners[0].z} + offset, 0, 0}, r[3] = {double{corners[0].r}, 0, 0};
  for (size_t i = 1; i < corners.size(); ++i) {
    z[i] = double{corners[i].z} - double{corners[0].z};
    r[i] = double{corners[i].r} - double{corners[0].r};
  }
  setup.z = make_plane(geometry.weights, z[0], z[1], z[2]);
  setup.r = make_plane(geometry.weights, r[0], r[1], r[2]);
  setup.back_facing = back_facing;
  setup.source = source;
  setup.source.spread = geometry.weights;
  setup.varyings_ready = false;
  return index;
}

void TileRenderer::State::triangle(const std::array<Corner, 3>& corners, const VaryingSource& source,
                                   bool back_facing, double largest_z) {
  Geometry geometry;
  if (!triangle_geometry(corners, tile_x, tile_y, geometry)) return;
  const double offset = depth_offset(geometry, corners, largest_z);
  cover(geometry, open_setup(geometry, corners, source, back_facing, offset));
}

void TileRenderer::State::line(const Corner& from, const Corner& to, const VaryingSource& source,
                               bool back_facing, double offset) {
  Geometry geometry;
  const float width = draw->state().line_width;
  if (!line_geometry(from, to, width, tile_x, tile_y, geometry)) return;
  const int setup = open_setup(geometry, std::array{from, to}, source, back_facing, offset);
  // Diamond exit knows no samples (Mesa v3dv_pipeline.c); GL combines both and expects rectangles.
  if (draw->state().cfg.line_mode != 0 || draw->four_samples) {
    cover(geometry, setup);
    return;
  }
  TileBitmap bitmap{};
  diamond_exit_line(from, to, width, tile_x, tile_y, window, bitmap);
  cover_bitmap(bitmap, setup);
}

void TileRenderer::State::point(const Corner& center, float size, const VaryingSource& source,
                                bool back_facing, double offset) {
  Geometry geometry;
  if (!point_geometry(center, size, tile_x, tile_y, geometry)) return;
  cover(geometry, open_setup(geometry, std::array{center}, source, back_facing, offset));
}

void TileRenderer::State::cover(const Geometry& geometry, int setup) {
  valid = true;
  Rect area = covered_bounds(geometry, draw->four_samples);
  area =
      intersect({area.left - tile_x, area.top - tile_y, area.right - tile_x, area.bottom - tile_y}, window);
  if (area.empty() || sample_bits == 0) return;
  if (draw->four_samples)
    geometry.num_edges == 3 ? cover_blocks<4, 3>(geometry, area, setup)
                            : cover_blocks<4, 4>(geometry, area, setup);
  else
    geometry.num_edges == 3 ? cover_blocks<1, 3>(geometry, area, setup)
                            : cover_blocks<1, 4>(geometry, area, setup);
}

template <int kSamples, int kEdges>
void TileRenderer::State::cover_blocks(const Geometry& geometry, const Rect& area, int setup) {
  static constexpr int kCenter[1] = {0};
  const TileCoverage<kSamples, kEdges> coverage(geometry.edges.data(), tile_x, tile_y,
                                                kSamples == 4 ? kSampleX.data() : kCenter,
                                                kSamples == 4 ? kSampleY.data() : kCenter);
  cover_blocks<kSamples, kEdges>(coverage, area, setup);
}

template <int kSamples, int kEdges>
void TileRenderer::State::cover_blocks(const TileCoverage<kSamples, kEdges>& coverage, const Rect& area,
                                       int setup) {
  const Lanes whole = splat(sample_bits);
  const bool cuts = window_cuts || kEdges > 3;
  const auto emit_part = [&](int x, int y, const std::array<LaneMask, kSamples>& masks) {
    if constexpr (kSamples == 1) {
      covered = true;
      stage.add_block(setup, tile_x + x, tile_y + y, masks[0], sample_bits);
    } else {
      Lanes bits = {};
      for (uint32_t s = 0; s < kSamples; ++s)
        bits |= select(masks[s], splat(sample_bits & (1u << s)), Lanes{});
      add_block(setup, x, y, bits);
    }
  };
  const auto emit_whole = [&](int x, int y) {
    covered = true;
    stage.add_covered_block(setup, tile_x + x, tile_y + y, whole);
  };
  if (kSamples == 1 && stage.has_function())
    coverage.blocks_in_any_order(area, cuts, emit_part, emit_whole);
  else
    coverage.blocks(area, cuts, emit_part, emit_whole);
}

void TileRenderer::State::cover_bitmap(const TileBitmap& bitmap, int setup) {
  valid = true;
  for (size_t y = 0; y < bitmap.size() && sample_bits != 0; y += 4) {
    const uint64_t any = bitmap[y] | bitmap[y + 1] | bitmap[y + 2] | bitmap[y + 3];
    for (int x = 0; x < 64 && any != 0; x += 4) {
      if (((any >> x) & 15) == 0) continue;
      LaneMask mask = 0;
      for (size_t row = 0; row < 4; ++row)
        mask |=
            static_cast<LaneMask>(kBlockColumns[(bitmap[y + row] >> x) & 15] & kBlockRows[size_t{1} << row]);
      add_block(setup, x, static_cast<int>(y), select(mask, splat(sample_bits), Lanes{}));
    }
  }
}

/// @param x, y  relative to the tile
void TileRenderer::State::add_block(int setup, int x, int y, const Lanes& bits) {
  if (nonzero(bits) == 0) return;
  covered = true;
  stage.add_block(setup, tile_x + x, tile_y + y, bits);
}

TileRenderer::TileRenderer(const JobContext& job, const PreparedDraws& draws, uint32_t tidx)
    : state_(std::make_unique<State>(job, *draws.state_, tidx)) {}
TileRenderer::~TileRenderer() = default;

void TileRenderer::run(const std::vector<draw::ListEntry>& list, tlb::TileBuffer& tile, uint32_t column,
                       uint32_t row) {
  state_->tile_x = static_cast<int>(column * state_->draws.config.tile_width);
  state_->tile_y = static_cast<int>(row * state_->draws.config.tile_height);
  state_->run(list, tile);
}

perf::Counts& TileRenderer::counts() { return state_->counts; }

}  // namespace v3d::pse
