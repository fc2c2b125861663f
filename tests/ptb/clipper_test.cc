#include "gpu/ptb/clipper.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>

namespace v3d::ptb {
namespace {

draw::DrawState viewport(uint8_t z_clip_mode) {
  draw::DrawState s;
  s.xy_half_width = 320 * 64;
  s.xy_half_height = -240 * 64;
  s.viewport_x = 320 * 256;
  s.viewport_y = 240 * 256;
  s.cfg.z_clip_mode = z_clip_mode;
  return s;
}

ClipVertex vertex(std::array<float, 4> c, const draw::DrawState& s) {
  ClipVertex v{};
  std::copy_n(c.data(), 4, v.clip);
  if (c[3] > 0) {  // as the program computes it
    v.x = static_cast<int32_t>(std::nearbyint(c[0] / c[3] * s.xy_half_width)) + 320 * 64;
    v.y = static_cast<int32_t>(std::nearbyint(c[1] / c[3] * s.xy_half_height)) + 240 * 64;
  }
  return v;
}

uint16_t codes_of(const Clipper& clipper, const ClipVertex* v, int count) {
  LanesF clip[4] = {};
  for (int i = 0; i < count; ++i)
    for (int k = 0; k < 4; ++k) clip[k][i] = v[i].clip[k];
  const Lanes codes = clipper.classify(clip);
  uint32_t any = 0;
  for (int i = 0; i < count; ++i) any |= codes[i];
  return static_cast<uint16_t>(any);
}

/// Distance from the nearest plane that says no, in units of the coordinates: > 0 inside.
double inside(const std::array<double, 4>& p, uint8_t z_clip_mode) {
  constexpr double kBox = ((1 << 21) - 64) / 64.0;
  double d = p[3];
  d = std::min(d, (kBox * p[3] - std::abs(p[0] * 320)) / kBox);
  d = std::min(d, (kBox * p[3] - std::abs(p[1] * 240)) / kBox);
  if (z_clip_mode == 1) d = std::min({d, p[2] + p[3], p[3] - p[2]});
  if (z_clip_mode == 2) d = std::min({d, p[2], p[3] - p[2]});
  return d;
}

/// Whether barycentric point b lies in the polygon of the corners' weights, and how far from its sides.
double inside_weights(const draw::ClippedPolygon& polygon, const std::array<double, 3>& b) {
  double area = 0, least = 1e9;
  for (int pass = 0; pass < 2; ++pass) {
    for (uint32_t i = 0; i < polygon.num_corners; ++i) {
      const auto& p = polygon.corners[i];
      const auto& q = polygon.corners[(i + 1) % polygon.num_corners];
      const double ex = q.weight[1] - p.weight[1], ey = q.weight[2] - p.weight[2];
      const double length = std::hypot(ex, ey);
      if (pass == 0)
        area += double{p.weight[1]} * q.weight[2] - double{q.weight[1]} * p.weight[2];
      else if (length > 1e-6)
        least = std::min(
            least, (ex * (b[2] - p.weight[2]) - ey * (b[1] - p.weight[1])) / length * (area > 0 ? 1 : -1));
    }
  }
  return least;
}

TEST(Clipper, PolygonHoldsExactlyThePointsInsideThePlanes) {
  std::mt19937 random(3);
  std::normal_distribution<double> normal(0, 1);
  std::uniform_real_distribution<double> uniform(0, 1);
  int clipped = 0, points_in = 0, points_out = 0;
  for (int round = 0; round < 4000; ++round) {
    const auto mode = static_cast<uint8_t>(round % 3);
    const draw::DrawState state = viewport(mode);
    const Clipper clipper(state, {6});
    const double spread = round % 5 == 0 ? 2e5 : 2;  // some leave the guard box
    ClipVertex v[3];
    for (ClipVertex& x : v)
      x = vertex({static_cast<float>(normal(random) * spread), static_cast<float>(normal(random) * spread),
                  static_cast<float>(normal(random)), static_cast<float>(normal(random) + 0.7)},
                 state);
    const uint16_t codes = codes_of(clipper, v, 3) & kOutPlanes;
    if (codes == 0) continue;
    draw::ClippedPolygon polygon{};
    const bool left = clipper.clip(v, 3, codes, &polygon);
    clipped += left;
    for (int i = 0; i < 40; ++i) {
      double a = uniform(random), b = uniform(random);
      if (a + b > 1) a = 1 - a, b = 1 - b;
      const std::array<double, 3> weights = {1 - a - b, a, b};
      std::array<double, 4> p{};
      double scale = 0;
      for (int k = 0; k < 3; ++k)
        for (size_t c = 0; c < 4; ++c) {
          p[c] += weights[static_cast<size_t>(k)] * v[k].clip[c];
          scale = std::max(scale, std::abs(double{v[k].clip[c]}));
        }
      const double truth = inside(p, mode);
      if (std::abs(truth) < 1e-3 * scale) continue;
      if (!left) {
        EXPECT_LT(truth, 0);
        continue;
      }
      const double found = inside_weights(polygon, weights);
      if (std::abs(found) < 1e-4) continue;
      ASSERT_EQ(found > 0, truth > 0) << "round " << round;
      (truth > 0 ? points_in : points_out) += 1;
    }
  }
  EXPECT_GT(clipped, 500);
  EXPECT_GT(points_in, 1000);
  EXPECT_GT(points_out, 1000);
}

TEST(Clipper, CornersAreProjectedPointsOfTheTriangle) {
  std::mt19937 random(4);
  std::normal_distribution<float> normal(0, 1);
  int corners = 0;
  for (int round = 0; round < 2000; ++round) {
    const draw::DrawState state = viewport(2);
    const Clipper clipper(state, {6});
    ClipVertex v[3];
    for (ClipVertex& x : v)
      x = vertex({normal(random), normal(random), normal(random), normal(random) + 1}, state);
    const uint16_t codes = codes_of(clipper, v, 3) & kOutPlanes;
    draw::ClippedPolygon polygon{};
    if (codes == 0 || !clipper.clip(v, 3, codes, &polygon)) continue;
    ASSERT_LE(polygon.num_corners, static_cast<uint32_t>(draw::kMaxCorners));
    for (uint32_t i = 0; i < polygon.num_corners; ++i) {
      const auto& c = polygon.corners[i];
      EXPECT_NEAR(c.weight[0] + c.weight[1] + c.weight[2], 1, 1e-6);
      double p[4] = {};
      for (int k = 0; k < 3; ++k)
        for (int m = 0; m < 4; ++m) p[m] += double{c.weight[k]} * v[k].clip[m];
      EXPECT_NEAR(c.z, p[2], 1e-5);
      EXPECT_NEAR(c.w, p[3], 1e-5);
      EXPECT_GE(c.w, 0);
      EXPECT_LE(std::abs(c.x - 320 * 64), kMaxViewCoordinate);
      EXPECT_LE(std::abs(c.y - 240 * 64), kMaxViewCoordinate);
      if (c.w > 0.05) {
        EXPECT_NEAR(c.x, p[0] / p[3] * 320 * 64 + 320 * 64, 4);
        EXPECT_NEAR(c.y, p[1] / p[3] * -240 * 64 + 240 * 64, 4);
      }
      for (int k = 0; k < 3; ++k)
        if (c.weight[k] == 1) {
          EXPECT_EQ(c.x, v[k].x);
          EXPECT_EQ(c.y, v[k].y);
        }
      ++corners;
    }
  }
  EXPECT_GT(corners, 1000);
}

TEST(Clipper, NeighboursMeetAtTheSamePoints) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 1);
  const draw::DrawState state = viewport(1);
  const Clipper clipper(state, {6});
  int shared = 0;
  for (int round = 0; round < 2000; ++round) {
    ClipVertex v[4];
    for (ClipVertex& x : v)
      x = vertex({normal(random) * 3, normal(random) * 3, normal(random), normal(random) + 0.5f}, state);
    const ClipVertex left[3] = {v[0], v[1], v[2]}, right[3] = {v[2], v[1], v[3]};
    const uint16_t a = codes_of(clipper, left, 3) & kOutPlanes, b = codes_of(clipper, right, 3) & kOutPlanes;
    draw::ClippedPolygon p{}, q{};
    if (a == 0 || b == 0 || !clipper.clip(left, 3, a, &p) || !clipper.clip(right, 3, b, &q)) continue;
    // Corners on the side v1 v2: weight of the third vertex is 0.
    std::vector<std::pair<int, int>> on_left, on_right;
    for (uint32_t i = 0; i < p.num_corners; ++i)
      if (p.corners[i].weight[0] == 0) on_left.emplace_back(p.corners[i].x, p.corners[i].y);
    for (uint32_t i = 0; i < q.num_corners; ++i)
      if (q.corners[i].weight[2] == 0) on_right.emplace_back(q.corners[i].x, q.corners[i].y);
    std::sort(on_left.begin(), on_left.end());
    std::sort(on_right.begin(), on_right.end());
    EXPECT_EQ(on_left, on_right);
    shared += !on_left.empty();
  }
  EXPECT_GT(shared, 200);
}

TEST(Clipper, LinesAreCutWhereTheyCrossThePlanes) {
  const draw::DrawState state = viewport(2);
  const Clipper clipper(state, {6});
  const ClipVertex v[2] = {vertex({-0.5f, 0, -1, 1}, state), vertex({0.5f, 0, 1, 1}, state)};
  draw::ClippedPolygon line{};
  ASSERT_TRUE(clipper.clip(v, 2, codes_of(clipper, v, 2), &line));
  ASSERT_EQ(line.num_corners, 2u);
  EXPECT_EQ(line.corners[0].x, 320 * 64);  // z = 0 in the middle
  EXPECT_FLOAT_EQ(line.corners[0].weight[0], 0.5f);
  EXPECT_FLOAT_EQ(line.corners[0].weight[2], 0);
  EXPECT_EQ(line.corners[1].x, v[1].x);
  const ClipVertex behind[2] = {vertex({0, 0, -1, 1}, state), vertex({1, 0, -2, 1}, state)};
  EXPECT_FALSE(clipper.clip(behind, 2, codes_of(clipper, behind, 2), &line));
}

TEST(Clipper, OutcodesNameThePlanes) {
  const auto code = [](uint8_t mode, std::array<float, 4> c) {
    const draw::DrawState state = viewport(mode);
    ClipVertex v{};
    std::copy_n(c.data(), 4, v.clip);
    return codes_of(Clipper(state, {6}), &v, 1);
  };
  EXPECT_EQ(code(2, {0, 0, 0.5f, 1}), 0);
  EXPECT_EQ(code(2, {0, 0, -0.1f, 1}), kOutNear);
  EXPECT_EQ(code(1, {0, 0, -0.1f, 1}), 0);
  EXPECT_EQ(code(1, {0, 0, -1.1f, 1}), kOutNear);
  EXPECT_EQ(code(2, {0, 0, 1.1f, 1}), kOutFar);
  EXPECT_EQ(code(0, {0, 0, 1.1f, 1}), 0);
  EXPECT_EQ(code(2, {1.5f, 0, 0.5f, 1}), 0);  // beside the viewport, inside the guard box
  EXPECT_NE(code(2, {1e6f, 0, 0.5f, 1}) & kOutRight, 0);
  EXPECT_NE(code(2, {0, 1e6f, 0.5f, 1}) & (kOutTop | kOutBottom), 0);
  EXPECT_NE(code(0, {0, 0, 0.5f, 0}) & kOutBehind, 0);
  EXPECT_NE(code(0, {0, 0, 0.5f, -1}) & kOutBehind, 0);
  EXPECT_NE(code(2, {NAN, 0, 0, 1}) & kOutInvalid, 0);
  EXPECT_NE(code(2, {0, INFINITY, 0, 1}) & kOutInvalid, 0);
  EXPECT_NE(code(2, {0, 0, 0, NAN}) & kOutInvalid, 0);
}

/// 4.2 has no clip mode; its range is that of packet 109.
TEST(Clipper, DepthRangeOf42) {
  draw::DrawState state = viewport(draw::CfgBits::kZClipRange);
  state.z_scale = 0.5f;
  state.z_offset = 0.5f;
  state.z_min_clip = 0;
  state.z_max_clip = 1;
  const Clipper clipper(state, {8});
  const auto code = [&](float z) {
    const ClipVertex v{{0, 0, z, 2}, 0, 0};
    return codes_of(clipper, &v, 1);
  };
  EXPECT_EQ(code(-2), 0);
  EXPECT_EQ(code(2), 0);
  EXPECT_EQ(code(-2.1f), kOutNear);
  EXPECT_EQ(code(2.1f), kOutFar);
}

TEST(ScreenTransform, RoundsTo64thsAndAddsTheCentre) {
  draw::DrawState s;
  s.viewport_x = 10 * 256 + 4;
  s.viewport_y = -3 * 64 * 256;
  const ScreenTransform v71(s, {6}), v42(s, {8});
  EXPECT_EQ(v71.x(5), 640 + 1 + 5);
  EXPECT_EQ(v71.y(-5), -3 * 64 * 64 - 5);
  EXPECT_EQ(v42.x(6), 641 + 2);
  EXPECT_EQ(v42.x(5), 641 + 1);
  EXPECT_EQ(v42.x(-6), 641 - 1);
  EXPECT_EQ(v71.x(INT32_MAX), 641 + kMaxViewCoordinate);
  EXPECT_EQ(v42.x(INT32_MIN), 641 - kMaxViewCoordinate);
  const LanesI lanes = LanesI{} + 6;
  EXPECT_EQ(v42.x(lanes)[3], 643);
}

/// Words of 1/16 px, as VideoCore IV has them (vc4-graphics.md 2.4).
TEST(ScreenTransform, SixteenthsAreFourSixtyFourths) {
  draw::DrawState s;
  s.viewport_x = 128 * 256;
  s.viewport_y = 127 * 256 + 128;
  const ScreenTransform v21(s, {.fraction_bits = 4, .max_coordinate = 1 << 17});
  EXPECT_EQ(v21.x(5), 128 * 64 + 20);
  EXPECT_EQ(v21.y(-3), 127 * 64 + 32 - 12);
  EXPECT_EQ(v21.x(-32768), 128 * 64 - (1 << 17));
  EXPECT_EQ(v21.x(INT32_MAX), 128 * 64 + (1 << 17));
  const LanesI lanes = LanesI{} - 32767;
  EXPECT_EQ(v21.x(lanes)[9], 128 * 64 - 4 * 32767);
}

/// Coordinates of 16 bits end 2048 px from the centre; what the program puts beyond wraps
/// (vc4-graphics.md 2.2).
TEST(Clipper, SmallerGuardBox) {
  draw::DrawState state;
  state.viewport_x = state.viewport_y = 256 * 256;
  state.xy_half_width = 256 * 16;
  state.xy_half_height = -256 * 16;
  state.cfg.z_clip_mode = 1;
  const Clipper clipper(state, {.fraction_bits = 4, .max_coordinate = 1 << 17});
  const auto code = [&](float x, float y) {
    const ClipVertex v{{x, y, 0, 1}, 0, 0};
    return codes_of(clipper, &v, 1);
  };
  EXPECT_EQ(code(7.99f, -7.99f), 0);
  EXPECT_EQ(code(8.01f, 0), kOutRight);
  EXPECT_EQ(code(-8.01f, 0), kOutLeft);
  EXPECT_EQ(code(0, 8.01f), kOutTop);  // y grows downwards in memory
  // The word of the vertex outside is rubbish; the new one lies on the box.
  const ClipVertex v[2] = {{{0, 0, 0, 1}, 256 * 64, 256 * 64}, {{16, 0, 0, 1}, 12345, 256 * 64}};
  draw::ClippedPolygon line{};
  ASSERT_TRUE(clipper.clip(v, 2, codes_of(clipper, v, 2), &line));
  EXPECT_EQ(line.corners[0].x, 256 * 64);
  EXPECT_NEAR(line.corners[1].x, 256 * 64 + (1 << 17) - 64, 1);
  EXPECT_EQ(line.corners[1].y, 256 * 64);
}

}  // namespace
}  // namespace v3d::ptb
