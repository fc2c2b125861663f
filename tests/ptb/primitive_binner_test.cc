#include "gpu/ptb/primitive_binner.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <set>

#include "gpu/ptb/transform_feedback.h"
#include "tests/base/counting_control.h"
#include "tests/vpm/test_job.h"

namespace v3d::ptb {
namespace {

constexpr uint32_t kFrame = 256;

/// A draw over a 256 x 256 frame with shaded vertices given by hand.
struct Scene {
  ViewRules rules{.fraction_bits = 6};
  draw::DrawState state;
  draw::ShaderRecord record;
  draw::BinResult result;
  perf::Counts counts;
  draw::Draw draw;
  vpm::ShadedVertices shaded;

  explicit Scene(uint32_t tile_width = 16, uint32_t tile_height = 16) {
    state.cfg.draw_front = state.cfg.draw_back = true;
    state.xy_half_width = state.xy_half_height = 128 * 64;
    state.viewport_x = state.viewport_y = 128 * 256;
    state.clip_width = state.clip_height = kFrame;
    result.width = result.height = kFrame;
    result.tile_width = tile_width;
    result.tile_height = tile_height;
    result.tiles_x = kFrame / tile_width;
    result.tiles_y = kFrame / tile_height;
    result.layers = 1;
    result.tiles.resize(result.tiles_x * result.tiles_y);
    shaded.rows = 8;
    record.clipping = true;
  }

  /// Vertex at a screen position (1/64 px), W = 1.
  uint32_t vertex(ScreenPoint p, float z = 0.5f) {
    const auto f = [](int32_t v) {
      return std::bit_cast<uint32_t>(static_cast<float>(v - 128 * 64) / (128 * 64));
    };
    return raw({f(p.x), f(p.y), std::bit_cast<uint32_t>(z), 0x3f800000, static_cast<uint32_t>(p.x - 128 * 64),
                static_cast<uint32_t>(p.y - 128 * 64), 0, 0});
  }
  /// Vertex in clip space.
  uint32_t clip_vertex(float x, float y, float z, float w) {
    const auto s = [](float v) {
      return static_cast<uint32_t>(static_cast<int32_t>(std::clamp(v * 128 * 64, -2e9f, 2e9f)));
    };
    const auto f = [](float v) { return std::bit_cast<uint32_t>(v); };
    return raw({f(x), f(y), f(z), f(w), w != 0 ? s(x / w) : 0, w != 0 ? s(y / w) : 0, 0, 0});
  }
  uint32_t raw(std::array<uint32_t, 8> words) {
    const uint32_t v = shaded.count++;
    if (v % kLanes == 0) shaded.data.resize(shaded.data.size() + shaded.rows, Lanes{});
    for (uint32_t r = 0; r < 8; ++r) shaded.data[v / kLanes * shaded.rows + r][v % kLanes] = words[r];
    return v;
  }
  void add(std::initializer_list<uint32_t> v) {
    draw::Primitive p{.vertex = {}, .provoking = *v.begin(), .primitive_id = 0};
    std::copy(v.begin(), v.end(), p.vertex);
    draw.vertices_per_primitive = static_cast<uint8_t>(v.size());
    draw.primitives.push_back(p);
  }
  uint64_t bin(const JobContext* job = nullptr, uint64_t max_entries = ~uint64_t{0}) {
    draw.state = state;
    PrimitiveBinner binner(state, record, rules, &result, &counts, job);
    return binner.bin(&draw, shaded, 0, max_entries);
  }
  bool listed(uint32_t column, uint32_t row, uint32_t primitive, uint32_t layer = 0) const {
    for (const draw::ListEntry& e : result.tiles[(layer * result.tiles_y + row) * result.tiles_x + column])
      if (e.primitive == primitive) return true;
    return false;
  }
  size_t entries() const {
    size_t n = 0;
    for (const auto& t : result.tiles) n += t.size();
    return n;
  }
};

/// Whether a point lies in a triangle, sides included.
bool in_triangle(const ScreenPoint t[3], int64_t x, int64_t y) {
  int64_t least = INT64_MAX, most = INT64_MIN;
  for (int i = 0; i < 3; ++i) {
    const ScreenPoint &a = t[i], &b = t[(i + 1) % 3];
    const int64_t e = (int64_t{b.x} - a.x) * (y - a.y) - (int64_t{b.y} - a.y) * (x - a.x);
    least = std::min(least, e);
    most = std::max(most, e);
  }
  return least >= 0 || most <= 0;
}

TEST(PrimitiveBinner, EveryTileWithACoveredPixelListsTheTriangle) {
  std::mt19937 random(6);
  size_t needed = 0, made = 0;
  for (int round = 0; round < 300; ++round) {
    const uint32_t tile_height = round % 2 ? 8 : 16;
    Scene s(16, tile_height);
    s.state.cfg.oversample = round % 4 >= 2;
    s.state.clip_left = static_cast<uint16_t>(random() % 64);
    s.state.clip_bottom = static_cast<uint16_t>(random() % 64);
    s.state.clip_width = static_cast<uint16_t>(random() % 250);
    s.state.clip_height = static_cast<uint16_t>(random() % 250);
    const int32_t spread = round % 3 == 0 ? 300 : 20000;
    ScreenPoint t[3];
    const auto c = static_cast<int32_t>(random() % (kFrame * 64));
    for (ScreenPoint& p : t)
      p = {c + static_cast<int32_t>(random() % (2 * spread)) - spread,
           c + static_cast<int32_t>(random() % (2 * spread)) - spread};
    s.add({s.vertex(t[0]), s.vertex(t[1]), s.vertex(t[2])});
    s.bin();
    made += s.entries();
    const int samples[2][4][2] = {{{32, 32}, {32, 32}, {32, 32}, {32, 32}},
                                  {{24, 8}, {56, 24}, {8, 40}, {40, 56}}};
    std::set<std::pair<uint32_t, uint32_t>> tiles;
    for (uint32_t y = s.state.clip_bottom;
         y < std::min<uint32_t>(kFrame, s.state.clip_bottom + s.state.clip_height); ++y)
      for (uint32_t x = s.state.clip_left;
           x < std::min<uint32_t>(kFrame, s.state.clip_left + s.state.clip_width); ++x)
        for (const auto& o : samples[s.state.cfg.oversample])
          if (in_triangle(t, x * 64 + static_cast<uint32_t>(o[0]), y * 64 + static_cast<uint32_t>(o[1])))
            tiles.insert({x / 16, y / tile_height});
    for (const auto& [column, row] : tiles)
      ASSERT_TRUE(s.listed(column, row, 0)) << "round " << round << " tile " << column << "," << row;
    needed += tiles.size();
  }
  EXPECT_GT(needed, 4000u);
  EXPECT_LT(made, needed + needed / 8);  // not everything everywhere
}

TEST(PrimitiveBinner, ClippedTrianglesAreListedWhereTheirPixelsAre) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0, 1);
  size_t pixels = 0;
  for (int round = 0; round < 200; ++round) {
    Scene s;
    s.state.cfg.z_clip_mode = 2;
    s.add({s.clip_vertex(normal(random), normal(random), normal(random), normal(random) + 0.5f),
           s.clip_vertex(normal(random), normal(random), normal(random), normal(random) + 0.5f),
           s.clip_vertex(normal(random), normal(random), normal(random), normal(random) + 0.5f)});
    s.bin();
    if (s.draw.primitives.empty() || s.draw.primitives[0].clipped < 0) continue;
    const draw::ClippedPolygon& polygon = s.draw.clipped.at(0);
    for (uint32_t i = 1; i + 1 < polygon.num_corners; ++i) {
      const auto& c = polygon.corners;
      const ScreenPoint t[3] = {{c[0].x, c[0].y}, {c[i].x, c[i].y}, {c[i + 1].x, c[i + 1].y}};
      if (!(int64_t{t[1].x - t[0].x} * (t[2].y - t[0].y) - int64_t{t[2].x - t[0].x} * (t[1].y - t[0].y)))
        continue;
      for (uint32_t y = 0; y < kFrame; ++y)
        for (uint32_t x = 0; x < kFrame; ++x)
          if (in_triangle(t, x * 64 + 32, y * 64 + 32)) {
            ASSERT_TRUE(s.listed(x / 16, y / 16, 0));
            ++pixels;
          }
    }
  }
  EXPECT_GT(pixels, 100000u);
}

TEST(PrimitiveBinner, LinesAndPointsAreListedByTheirExtent) {
  std::mt19937 random(8);
  for (int round = 0; round < 200; ++round) {
    Scene s;
    const auto coordinate = [&] { return static_cast<int32_t>(random() % (kFrame * 64)); };
    const ScreenPoint a{coordinate(), coordinate()}, b{coordinate(), coordinate()};
    const float width = static_cast<float>(random() % 64) / 4;
    s.state.line_width = width;
    s.add({s.vertex(a), s.vertex(b)});
    s.bin();
    Scene p;
    p.record.point_size_in_vertices = true;
    const uint32_t v = p.vertex(a);
    p.shaded.data[6][0] = std::bit_cast<uint32_t>(width);
    p.add({v});
    p.bin();
    const double length = std::hypot(b.x - a.x, b.y - a.y);
    for (uint32_t y = 0; y < kFrame; ++y)
      for (uint32_t x = 0; x < kFrame; ++x) {
        const double px = x * 64 + 32 - a.x, py = y * 64 + 32 - a.y;
        if (std::max(std::abs(px), std::abs(py)) < width * 32) {
          ASSERT_TRUE(p.listed(x / 16, y / 16, 0));
        }
        if (length < 1) continue;
        const double along = (px * (b.x - a.x) + py * (b.y - a.y)) / length;
        const double off = (py * (b.x - a.x) - px * (b.y - a.y)) / length;
        if (along >= 0 && along <= length && std::abs(off) <= width * 32) {
          ASSERT_TRUE(s.listed(x / 16, y / 16, 0));
        }
      }
  }
  Scene diagonal(8, 8);
  diagonal.add({diagonal.vertex({0, 0}), diagonal.vertex({kFrame * 64 - 1, kFrame * 64 - 1})});
  diagonal.bin();
  EXPECT_LT(diagonal.entries(), 32u * 4);
}

TEST(PrimitiveBinner, FacingAndCulling) {
  // Rows grow downwards: this cross product is positive.
  const ScreenPoint t[3] = {{640, 640}, {6400, 640}, {640, 6400}};
  for (int bits = 0; bits < 16; ++bits) {
    Scene s;
    s.state.cfg.draw_front = bits & 1;
    s.state.cfg.draw_back = bits & 2;
    s.state.cfg.clockwise = bits & 4;
    const bool reversed = bits & 8;  // the triangle's winding
    const bool front = reversed == s.state.cfg.clockwise;
    if (reversed)
      s.add({s.vertex(t[0]), s.vertex(t[2]), s.vertex(t[1])});
    else
      s.add({s.vertex(t[0]), s.vertex(t[1]), s.vertex(t[2])});
    s.bin();
    const bool drawn = front ? s.state.cfg.draw_front : s.state.cfg.draw_back;
    ASSERT_EQ(s.draw.primitives.size(), drawn ? 1u : 0u) << bits;
    if (drawn) {
      EXPECT_EQ(s.draw.primitives[0].back_facing, !front);
    }
    EXPECT_EQ(s.counts[perf::kPtbPrimitivesReversed], drawn ? 0u : 1u);
    EXPECT_EQ(s.counts[perf::kPtbPrimitivesBinned], drawn ? 1u : 0u);
  }
  Scene flat;  // no area
  flat.add({flat.vertex({640, 640}), flat.vertex({1280, 1280}), flat.vertex({1920, 1920})});
  EXPECT_EQ(flat.bin(), 0u);
}

/// vc4-graphics.md 2.3: dEQP-GLES2.functional.clipping.line.wide_line_clip_viewport_* fail on boards.
TEST(PrimitiveBinner, LinesBesideTheViewAreRejectedWhereTheChipDoes) {
  for (const bool rejects : {false, true}) {
    Scene s;
    s.rules.rejects_lines_beside_view = rejects;
    s.state.line_width = 40;
    const uint32_t above = s.clip_vertex(-0.5f, -1.05f, 0, 1), beside = s.clip_vertex(0.5f, -1.05f, 0, 1),
                   left = s.clip_vertex(-1.05f, 0, 0, 1), inside = s.clip_vertex(0.5f, -0.95f, 0, 1);
    s.add({above, beside});
    s.add({left, above});  // each beyond a side of its own
    s.add({above, inside});
    s.bin();
    EXPECT_EQ(s.counts[perf::kPtbPrimitivesOutside], rejects ? 1u : 0u);
    EXPECT_EQ(s.draw.primitives.size(), rejects ? 2u : 3u);
  }
}

TEST(PrimitiveBinner, PointsAndLinesAreFrontFacing) {
  for (const bool front : {true, false}) {
    Scene points, lines;
    points.state.cfg.draw_front = lines.state.cfg.draw_front = front;
    points.add({points.vertex({640, 640})});
    lines.add({lines.vertex({640, 640}), lines.vertex({1280, 640})});
    EXPECT_EQ(points.bin() > 0, front);
    EXPECT_EQ(lines.bin() > 0, front);
  }
}

TEST(PrimitiveBinner, PointsAreClippedInDepthByTheirCentreAndAtTheSidesByTheWindow) {
  const auto drawn = [](float x, float z, uint8_t mode) {
    Scene s;
    s.state.cfg.z_clip_mode = mode;
    s.state.point_size = 64;
    s.add({s.clip_vertex(x, 0, z, 1)});
    return s.bin() > 0;
  };
  EXPECT_TRUE(drawn(0.99f, 0.5f, 2));
  EXPECT_TRUE(drawn(1.2f, 0.5f, 2));   // 26 px beside the viewport, reaches 32
  EXPECT_FALSE(drawn(1.3f, 0.5f, 2));  // 38 px
  EXPECT_FALSE(drawn(0, -0.1f, 2));
  EXPECT_TRUE(drawn(0, -0.1f, 1));
  EXPECT_FALSE(drawn(0, 1.1f, 1));
  EXPECT_TRUE(drawn(0, 1.1f, 0));
}

TEST(PrimitiveBinner, OrderOfPrimitivesIsKeptAndVanishedOnesLeaveNoGap) {
  Scene s;
  for (int i = 0; i < 10; ++i) {
    const int32_t x = i % 3 == 1 ? -100000 : 1000 + 64 * i;  // every third lies outside
    s.add({s.vertex({x, 1000}), s.vertex({x + 900, 1000}), s.vertex({x, 1900})});
    s.draw.primitives.back().primitive_id = static_cast<uint32_t>(i);
  }
  s.bin();
  ASSERT_EQ(s.draw.primitives.size(), 7u);
  const auto& list = s.result.tiles[s.result.tiles_x + 1];
  ASSERT_GE(list.size(), 2u);
  for (size_t i = 1; i < list.size(); ++i) EXPECT_LT(list[i - 1].primitive, list[i].primitive);
  for (size_t i = 1; i < 7; ++i)
    EXPECT_LT(s.draw.primitives[i - 1].primitive_id, s.draw.primitives[i].primitive_id);
  EXPECT_EQ(s.counts[perf::kPtbPrimitivesOutside], 3u);
}

/// A scene whose state and vertices are any: on a grid that makes degenerate triangles frequent, outside,
/// behind the eye, without a position at all.
Scene any_scene(std::mt19937& random) {
  const auto size = [&random] { return 8u << random() % 4; };
  Scene s(size(), size());
  s.state.cfg.draw_front = random() % 4 != 0;
  s.state.cfg.draw_back = random() % 4 != 0;
  s.state.cfg.clockwise = random() % 2;
  s.state.cfg.oversample = random() % 2;
  s.state.cfg.z_clip_mode = static_cast<uint8_t>(random() % 3);
  s.state.clip_left = static_cast<uint16_t>(random() % 64);
  s.state.clip_bottom = static_cast<uint16_t>(random() % 64);
  s.state.clip_width = static_cast<uint16_t>(random() % 300);
  s.state.clip_height = static_cast<uint16_t>(random() % 300);
  s.record.clipping = random() % 8 != 0;
  const int32_t spread = random() % 2 ? 640 : 20000;
  const auto c = static_cast<int32_t>(random() % (kFrame * 64));
  const auto coordinate = [&] {
    return (c + static_cast<int32_t>(random() % static_cast<uint32_t>(2 * spread)) - spread) & ~31;
  };
  std::normal_distribution<float> normal(0, 1);
  for (int i = 0; i < 100; ++i) {
    if (random() % 16 == 0)
      s.clip_vertex(normal(random), normal(random), normal(random), normal(random) + 0.5f);
    else if (random() % 64 == 0)
      s.clip_vertex(NAN, 0, 0, 1);
    else
      s.vertex({coordinate(), coordinate()}, static_cast<float>(random() % 10) / 8);
  }
  return s;
}

void expect_same_draw(const Scene& got, const Scene& want) {
  ASSERT_EQ(got.result.tiles, want.result.tiles);
  ASSERT_EQ(got.draw.primitives.size(), want.draw.primitives.size());
  for (size_t i = 0; i < want.draw.primitives.size(); ++i) {
    const draw::Primitive &a = got.draw.primitives[i], &b = want.draw.primitives[i];
    ASSERT_EQ(a.primitive_id, b.primitive_id);
    ASSERT_EQ(a.provoking, b.provoking);
    ASSERT_EQ(a.back_facing, b.back_facing);
    ASSERT_EQ(a.clipped, b.clipped);
    ASSERT_TRUE(std::equal(a.vertex, a.vertex + 3, b.vertex));
  }
  ASSERT_EQ(got.draw.clipped.size(), want.draw.clipped.size());
  for (size_t i = 0; i < want.draw.clipped.size(); ++i)
    ASSERT_EQ(got.draw.clipped[i].num_corners, want.draw.clipped[i].num_corners);
  for (const auto counter : {perf::kPtbPrimitivesOutside, perf::kPtbPrimitivesReversed,
                             perf::kPtbPrimitivesBinned, perf::kPtbPrimitivesClipped})
    ASSERT_EQ(perf::Counts(got.counts)[counter], perf::Counts(want.counts)[counter]) << counter;
}

/// 9000 triangles of any_scene(), numbered.
Scene many_triangles(std::mt19937& random) {
  Scene s = any_scene(random);
  for (uint32_t i = 0; i < 9000; ++i) {
    const auto first = static_cast<uint32_t>(random() % 98);
    s.add({first, random() % 4 ? first + 1 : first, first + 2});
    s.draw.primitives.back().primitive_id = i;
  }
  return s;
}

TEST(PrimitiveBinner, PartsOfLargeDrawsFollowEachOther) {
  TestJob pool(chip::default_profile(), 3);
  std::mt19937 random(21);
  size_t kept = 0;
  for (int round = 0; round < 12; ++round) {
    Scene alone = many_triangles(random);
    Scene together = alone;
    ASSERT_EQ(together.bin(&pool.job()), alone.bin());
    expect_same_draw(together, alone);
    kept += alone.draw.primitives.size();
  }
  EXPECT_GT(kept, 10000u);
}

TEST(PrimitiveBinner, PartsShareTheRoomForEntries) {
  TestJob pool(chip::default_profile(), 3);
  std::mt19937 random(22);
  int cases = 0;
  for (int round = 0; round < 12; ++round) {
    const Scene scene = many_triangles(random);
    Scene all = scene;
    const uint64_t entries = all.bin();
    if (entries < 5000) continue;
    ++cases;
    Scene fits = scene, too_many = scene;
    EXPECT_EQ(fits.bin(&pool.job(), entries), entries);
    EXPECT_GT(too_many.bin(&pool.job(), entries / 2), entries / 2);
  }
  EXPECT_GT(cases, 2);
}

/// Whole groups of 16 triangles take a way of their own; a triangle alone never does.
TEST(PrimitiveBinner, ManyTrianglesAreBinnedAsEachOfThemAlone) {
  std::mt19937 random(12);
  size_t kept = 0;
  for (int round = 0; round < 300; ++round) {
    Scene together = any_scene(random);
    for (int i = 0; i < 16 * 6 + 5; ++i) {
      const auto first = static_cast<uint32_t>(random() % 98);
      together.add({first, random() % 4 ? first + 1 : first, first + 2});
      together.draw.primitives.back().primitive_id = static_cast<uint32_t>(i);
    }
    Scene alone = together;
    together.bin();
    std::vector<draw::Primitive> primitives;
    std::vector<draw::ClippedPolygon> clipped;
    for (const draw::Primitive& p : std::vector(alone.draw.primitives)) {
      std::vector<size_t> before;
      for (const auto& tile : alone.result.tiles) before.push_back(tile.size());
      alone.draw.primitives = {p};
      alone.bin();
      for (size_t t = 0; t < before.size(); ++t)
        if (alone.result.tiles[t].size() > before[t])
          alone.result.tiles[t].back().primitive = static_cast<uint32_t>(primitives.size());
      for (draw::Primitive one : alone.draw.primitives) {
        if (one.clipped >= 0) one.clipped = static_cast<int32_t>(clipped.size());
        primitives.push_back(one);
      }
      clipped.insert(clipped.end(), alone.draw.clipped.begin(), alone.draw.clipped.end());
    }
    ASSERT_EQ(together.result.tiles, alone.result.tiles) << round;
    ASSERT_EQ(together.draw.primitives.size(), primitives.size());
    for (size_t i = 0; i < primitives.size(); ++i) {
      const draw::Primitive &got = together.draw.primitives[i], &want = primitives[i];
      ASSERT_EQ(got.primitive_id, want.primitive_id);
      ASSERT_EQ(got.provoking, want.provoking);
      ASSERT_EQ(got.back_facing, want.back_facing);
      ASSERT_EQ(got.clipped, want.clipped);
      ASSERT_TRUE(std::equal(got.vertex, got.vertex + 3, want.vertex));
    }
    ASSERT_EQ(together.draw.clipped.size(), clipped.size());
    for (const auto counter : {perf::kPtbPrimitivesOutside, perf::kPtbPrimitivesReversed,
                               perf::kPtbPrimitivesBinned, perf::kPtbPrimitivesClipped})
      ASSERT_EQ(together.counts[counter], alone.counts[counter]) << counter;
    kept += primitives.size();
  }
  EXPECT_GT(kept, 1000u);
}

TEST(PrimitiveBinner, WireframeDrawsTheSidesAndPointFillTheVertices) {
  for (const bool points : {false, true}) {
    Scene s;
    s.state.cfg.wireframe = true;
    s.state.cfg.point_fill = points;
    s.state.cfg.clockwise = true;
    s.add({s.vertex({1000, 1000}), s.vertex({9000, 1000}), s.vertex({1000, 9000})});
    s.bin();
    ASSERT_EQ(s.draw.primitives.size(), 3u);
    EXPECT_EQ(s.draw.vertices_per_primitive, points ? 1 : 2);
    for (uint32_t i = 0; i < 3; ++i) {
      EXPECT_EQ(s.draw.primitives[i].vertex[0], i);
      EXPECT_EQ(s.draw.primitives[i].vertex[1], (i + 1) % 3);
      EXPECT_EQ(s.draw.primitives[i].provoking, 0u);
      EXPECT_TRUE(s.draw.primitives[i].back_facing);
    }
    s.state.cfg.draw_back = false;
    s.draw.primitives.resize(1);
    s.draw.vertices_per_primitive = 3;
    EXPECT_EQ(s.bin(), 0u);  // culled as a triangle
  }
}

TEST(PrimitiveBinner, WithoutClippingScreenPositionsCount) {
  for (const bool clipping : {true, false}) {
    Scene s;
    s.record.clipping = clipping;
    s.state.cfg.z_clip_mode = 1;
    s.add(
        {s.vertex({100, 100}, 2), s.vertex({900, 100}, 2), s.vertex({100, 900}, 2)});  // beyond the far plane
    EXPECT_EQ(s.bin() > 0, !clipping);
    EXPECT_TRUE(s.draw.clipped.empty());
    EXPECT_EQ(s.listed(0, 0, 0), !clipping);
    EXPECT_FALSE(s.listed(1, 0, 0));
  }
}

TEST(PrimitiveBinner, LayersOfTheGeometryShader) {
  Scene s;
  s.result.layers = 3;
  s.result.tiles.resize(s.result.tiles_x * s.result.tiles_y * 3);
  for (const uint8_t layer : {2, 0, 3}) {
    s.add({s.vertex({640, 640}), s.vertex({960, 640}), s.vertex({640, 960})});
    s.shaded.layer.insert(s.shaded.layer.end(), {layer, 1, 1});
  }
  s.draw.primitives[0].provoking = 0;
  s.bin();
  EXPECT_TRUE(s.listed(0, 0, 0, 2));
  EXPECT_FALSE(s.listed(0, 0, 0, 1));
  EXPECT_TRUE(s.listed(0, 0, 1, 0));
  EXPECT_EQ(s.draw.primitives.size(), 2u);  // there is no layer 3
}

TEST(PrimitiveBinner, EmptyWindowAndMissingPositionsDrawNothing) {
  Scene s;
  s.state.clip_width = 0;
  s.add({s.vertex({0, 0}), s.vertex({960, 0}), s.vertex({0, 960})});
  EXPECT_EQ(s.bin(), 0u);
  Scene t;
  t.shaded.rows = 4;
  t.shaded.count = 3;
  t.shaded.data.resize(4, Lanes{});
  t.add({0, 1, 2});
  EXPECT_EQ(t.bin(), 0u);
}

TEST(PrimitiveBinner, ScreenWordsThatDoNotBelongToThePositionAreHarmless) {
  std::mt19937 random(9);
  Scene s;
  for (int i = 0; i < 2000; ++i) {
    std::array<uint32_t, 8> words;
    for (uint32_t& w : words) w = random();
    s.raw(words);
  }
  for (uint32_t i = 0; i + 2 < 2000; ++i) s.add({i, i + 1, i + 2});
  s.bin();
  Scene t;
  for (const uint32_t word : {0x7fffffffu, 0x80000000u, 12345u})
    t.raw({0, 0, 0x3f000000, 0x3f800000, word, word * 7, 0, 0});
  t.add({0, 1, 2});
  t.bin();
}

TEST(TransformFeedback, WritesWholePrimitivesInOrderAndCounts) {
  TestJob test;
  Scene s;
  for (uint32_t i = 0; i < 6; ++i)
    s.raw({100 * i, 100 * i + 1, 100 * i + 2, 0, 0, 0, 100 * i + 6, 100 * i + 7});
  s.add({0, 1, 2});
  s.add({2, 1, 3});  // an odd triangle of a strip
  s.add({3, 4, 5});
  TransformFeedback feedback(test.job());
  const GpuAddr a = test.allocate(256), b = test.allocate(256), counts = test.allocate(64);
  feedback.set_buffer(0, a, 12);
  feedback.set_buffer(2, b, 8);  // room for two primitives and a part
  feedback.set_specs(
      {{.first_word = 6, .num_words = 2, .buffer = 0}, {.first_word = 0, .num_words = 1, .buffer = 2}});
  feedback.capture(s.draw.primitives, 3, s.shaded);
  const uint32_t order[] = {0, 1, 2, 2, 1, 3};
  for (uint32_t i = 0; i < 6; ++i) {
    EXPECT_EQ(test.memory().load<uint32_t>(a + 8 * i), 100 * order[i] + 6);
    EXPECT_EQ(test.memory().load<uint32_t>(a + 8 * i + 4), 100 * order[i] + 7);
    EXPECT_EQ(test.memory().load<uint32_t>(b + 4 * i), 100 * order[i]);
  }
  EXPECT_EQ(test.memory().load<uint32_t>(a + 48), 0u);
  EXPECT_EQ(test.memory().load<uint32_t>(b + 24), 0u);
  feedback.store_counters(counts);
  const uint32_t want[7] = {12, 0, 6, 0, 3, 2, 1};
  for (uint32_t i = 0; i < 7; ++i) EXPECT_EQ(test.memory().load<uint32_t>(counts + 4 * i), want[i]) << i;
  feedback.disable();
  feedback.capture(s.draw.primitives, 3, s.shaded);
  feedback.store_counters(counts);
  EXPECT_EQ(test.memory().load<uint32_t>(counts + 16), 6u);  // generated ones go on counting
  EXPECT_EQ(test.memory().load<uint32_t>(counts + 20), 2u);
}

// ---- Work between looks at the job

/// A frame of 65,535 pixels squared in tiles of 64, and a line, or a thin triangle, from corner to corner.
struct HugeScene : Scene {
  explicit HugeScene(uint8_t corners) {
    constexpr int32_t kSize = 65535, kEnd = 32767 * 64;
    record.clipping = false;
    state.viewport_x = state.viewport_y = 32768 * 256;
    rules.max_coordinate = kEnd;
    state.clip_width = state.clip_height = kSize;
    result.width = result.height = kSize;
    result.tile_width = result.tile_height = 64;
    result.tiles_x = result.tiles_y = 1024;
    result.tiles.resize(size_t{1024} * 1024);
    const auto at = [this](int32_t x, int32_t y) {
      return raw({0, 0, 0, 0x3f800000, static_cast<uint32_t>(x), static_cast<uint32_t>(y), 0, 0});
    };
    for (int n = 0; n < 20; ++n) {
      const uint32_t a = at(-kEnd, -kEnd), b = at(kEnd, kEnd);
      if (corners == 2)
        add({a, b});
      else
        add({a, b, at(kEnd - 64, kEnd)});
    }
  }
};

TEST(BinningWork, ALineOverManyTilesLooksAtTheJob) {
  for (const uint8_t corners : {2, 3}) {
    TestJob test;
    CountingControl control;
    test.job().control = &control;
    HugeScene scene(corners);
    EXPECT_GT(scene.bin(&test.job()), 20u * 1023) << int{corners};
    // 2^20 tiles each, a look after 3 * 10^4 tests of edges
    EXPECT_GT(control.looks(), 20u * 50) << int{corners};
  }
}

TEST(BinningWork, EndsSoonWhenTheJobIsCancelled) {
  TestJob test;
  CountingControl control;
  control.cancel_at(3);
  test.job().control = &control;
  test.job().cancel = &control.cancelled();
  HugeScene scene(2);
  EXPECT_LT(scene.bin(&test.job()), 1023u);
  EXPECT_LE(control.looks(), 4u);
}

TEST(BinningWork, FeedbackLooksAtTheJob) {
  TestJob test;
  CountingControl control;
  test.job().control = &control;
  Scene scene;
  const uint32_t v = scene.vertex({0, 0});
  std::vector<draw::Primitive> primitives(10000, {.vertex = {v, v, v}, .provoking = v, .primitive_id = 0});
  TransformFeedback feedback(test.job());
  // All to one word after the other of a buffer of no end, 64 words a primitive
  feedback.set_buffer(0, 0x100000, 1u << 20);
  feedback.set_specs(std::vector<TransformFeedback::Spec>(8, {.first_word = 0, .num_words = 8, .buffer = 0}));
  feedback.capture(primitives, 1, scene.shaded);
  EXPECT_GT(control.looks(), 10000u * 64 / WorkMeter::kSlice);
}

}  // namespace
}  // namespace v3d::ptb
