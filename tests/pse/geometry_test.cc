#include "gpu/pse/geometry.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

namespace v3d::pse {
namespace {

Corner at(double x, double y, float z = 0, float r = 1) {
  return {static_cast<int32_t>(std::lround(x * 64)), static_cast<int32_t>(std::lround(y * 64)), z, r};
}

/// A weight at the centre of pixel (x, y) of the tile.
double evaluate(const Weights& weights, size_t which, double x, double y) {
  const WeightPlane& p = weights.plane[which];
  return (p.value + (x - weights.anchor_x) * p.step_x + (y - weights.anchor_y) * p.step_y) * weights.scale;
}

TEST(TriangleGeometry, WeightsAreBarycentric) {
  std::mt19937 random(3);
  for (const int32_t reach : {1 << 9, 1 << 14, 1 << 21}) {
    std::uniform_int_distribution<int32_t> coordinate(-reach, reach), tile(0, 63);
    for (int i = 0; i < 200; ++i) {
      const std::array<Corner, 3> c = {Corner{coordinate(random), coordinate(random), 0, 1},
                                       Corner{coordinate(random), coordinate(random), 0, 1},
                                       Corner{coordinate(random), coordinate(random), 0, 1}};
      const int tile_x = tile(random) * 64, tile_y = tile(random) * 64;
      Geometry g;
      if (!triangle_geometry(c, tile_x, tile_y, g)) continue;
      for (const double s : {0.0, -0.125, 0.375}) {
        const double x = 13 + s, y = 50 - s;
        using Wide = long double;
        const Wide px = (tile_x + x) * 64 + 32, py = (tile_y + y) * 64 + 32;
        const auto area = [](Wide ax, Wide ay, Wide bx, Wide by, Wide cx, Wide cy) {
          return (bx - ax) * (cy - ay) - (by - ay) * (cx - ax);
        };
        const Wide whole = area(c[0].x, c[0].y, c[1].x, c[1].y, c[2].x, c[2].y);
        const Wide b1 = area(c[0].x, c[0].y, px, py, c[2].x, c[2].y) / whole;
        const Wide b2 = area(c[0].x, c[0].y, c[1].x, c[1].y, px, py) / whole;
        EXPECT_NEAR(evaluate(g.weights, 0, x, y), static_cast<double>(b1),
                    1e-15 * (1 + std::abs(static_cast<double>(b1))));
        EXPECT_NEAR(evaluate(g.weights, 1, x, y), static_cast<double>(b2),
                    1e-15 * (1 + std::abs(static_cast<double>(b2))));
      }
    }
  }
}

TEST(TriangleGeometry, WeightsAreExactAtTheCorners) {
  Geometry g;
  // Corners on pixel centres; a sliver, so that any rounding before the division would show.
  const std::array<Corner, 3> c = {at(70.5, 70.5), at(101.5, 102.5), at(100.5, 101.5)};
  ASSERT_TRUE(triangle_geometry(c, 64, 64, g));
  const double expected[3][2] = {{0, 0}, {1, 0}, {0, 1}};
  const double pixels[3][2] = {{6, 6}, {37, 38}, {36, 37}};
  for (int i = 0; i < 3; ++i)
    for (size_t k = 0; k < 2; ++k)
      EXPECT_EQ(evaluate(g.weights, k, pixels[i][0], pixels[i][1]), expected[i][k]) << i << " " << k;
}

TEST(TriangleGeometry, NothingWithoutArea) {
  Geometry g;
  EXPECT_FALSE(triangle_geometry({at(1, 1), at(5, 5), at(9, 9)}, 0, 0, g));
  EXPECT_FALSE(triangle_geometry({at(1, 1), at(1, 1), at(9, 2)}, 0, 0, g));
  EXPECT_FALSE(triangle_geometry({Corner{INT32_MIN, 0, 0, 1}, at(1, 1), at(9, 2)}, 0, 0, g));
}

/// Pixels of a parallelogram, by its four edges.
std::vector<std::pair<int, int>> pixels_of(const Geometry& g) {
  std::vector<std::pair<int, int>> pixels;
  const Rect bounds = covered_bounds(g, false);
  for (int y = bounds.top - 2; y < bounds.bottom + 2; ++y)
    for (int x = bounds.left - 2; x < bounds.right + 2; ++x) {
      bool inside = true;
      for (int k = 0; k < g.num_edges; ++k) {
        const Edge& e = g.edges[static_cast<size_t>(k)];
        inside &= e.a * (x * 64 + 32) + e.b * (y * 64 + 32) + e.c >= 0;
      }
      if (!inside) continue;
      EXPECT_TRUE(x >= bounds.left && x < bounds.right && y >= bounds.top && y < bounds.bottom);
      pixels.emplace_back(x, y);
    }
  return pixels;
}

TEST(LineGeometry, EndCapsAreCutOffAtTheEnds) {
  Geometry g;
  for (const bool reverse : {false, true}) {
    const Corner a = at(10.5, 20.5), b = at(15.5, 20.5);
    ASSERT_TRUE(line_geometry(reverse ? b : a, reverse ? a : b, 1, 0, 0, g));
    EXPECT_EQ(pixels_of(g),
              (std::vector<std::pair<int, int>>{{10, 20}, {11, 20}, {12, 20}, {13, 20}, {14, 20}}));
    ASSERT_TRUE(line_geometry(reverse ? b : a, reverse ? a : b, 3, 0, 0, g));
    EXPECT_EQ(pixels_of(g).size(), 15u);
  }
  ASSERT_TRUE(line_geometry(at(3.5, 2), at(3.5, 9), 2, 0, 0, g));
  const auto vertical = pixels_of(g);
  EXPECT_EQ(vertical.size(), 14u);
  EXPECT_EQ(vertical.front(), (std::pair{2, 2}));
  EXPECT_EQ(vertical.back(), (std::pair{3, 8}));
  EXPECT_FALSE(line_geometry(at(3, 3), at(3, 3), 1, 0, 0, g));
  EXPECT_FALSE(line_geometry(at(3, 3), at(5, 3), NAN, 0, 0, g));
}

TEST(LineGeometry, WeightsRunAlongAndAcross) {
  Geometry g;
  const Corner a = at(65.5, 70.5), b = at(95.5, 110.5);
  ASSERT_TRUE(line_geometry(a, b, 5, 64, 64, g));
  EXPECT_EQ(evaluate(g.weights, 0, 1, 6), 0.0);
  EXPECT_NEAR(evaluate(g.weights, 0, 31, 46), 1.0, 1e-15);
  EXPECT_NEAR(evaluate(g.weights, 0, 16, 26), 0.5, 1e-15);
  EXPECT_NEAR(evaluate(g.weights, 1, 16, 26), -0.5, 1e-12);
  // 2.5 px to either side, perpendicular to (30, 40): 0 - 1 and 1 - 1.
  const double side = evaluate(g.weights, 1, 16 - 2, 26 + 1.5),
               other = evaluate(g.weights, 1, 16 + 2, 26 - 1.5);
  EXPECT_NEAR(std::min(side, other), -1.0, 1e-12);
  EXPECT_NEAR(std::max(side, other), 0.0, 1e-12);
}

TEST(PointGeometry, SquareAroundTheVertex) {
  Geometry g;
  ASSERT_TRUE(point_geometry(at(10.5, 12.5), 1, 0, 0, g));
  EXPECT_EQ(pixels_of(g), (std::vector<std::pair<int, int>>{{10, 12}}));
  ASSERT_TRUE(point_geometry(at(10.5, 12.5), 3, 0, 0, g));
  EXPECT_EQ(pixels_of(g).size(), 9u);
  EXPECT_EQ(evaluate(g.weights, 0, 9, 12), 0.5 / 3);
  EXPECT_NEAR(evaluate(g.weights, 0, 11, 12), 2.5 / 3, 1e-15);
  EXPECT_NEAR(evaluate(g.weights, 1, 10, 11), 1 - 0.5 / 3, 1e-15);
  EXPECT_NEAR(evaluate(g.weights, 1, 10, 13), 1 - 2.5 / 3, 1e-15);
  ASSERT_TRUE(point_geometry(at(10, 12), 2, 0, 0, g));  // edges through no centre
  EXPECT_EQ(pixels_of(g).front(), (std::pair{9, 11}));
  EXPECT_EQ(pixels_of(g).back(), (std::pair{10, 12}));
  ASSERT_TRUE(point_geometry(at(100, 100), 1e9f, 0, 0, g));
  EXPECT_EQ(g.max_x - g.min_x, 512 * 64);
  EXPECT_FALSE(point_geometry(at(10, 12), 0, 0, 0, g));
  EXPECT_FALSE(point_geometry(at(10, 12), -1, 0, 0, g));
  EXPECT_FALSE(point_geometry(at(10, 12), NAN, 0, 0, g));
}

constexpr Rect kWholeTile = {0, 0, 64, 64};

TileBitmap diamond(const Corner& a, const Corner& b, float width, const Rect& window = kWholeTile) {
  TileBitmap bitmap{};
  diamond_exit_line(a, b, width, 0, 0, window, bitmap);
  return bitmap;
}

int population(const TileBitmap& bitmap) {
  int count = 0;
  for (const uint64_t row : bitmap) count += std::popcount(row);
  return count;
}

/// The rule of the OpenGL specification by clipping the segment against each diamond.
TEST(DiamondExit, MatchesTheDefinition) {
  std::mt19937 random(11);
  std::uniform_int_distribution<int32_t> coordinate(-600, 64 * 64 + 600);
  for (int i = 0; i < 300; ++i) {
    const Corner a = {coordinate(random), coordinate(random), 0, 1};
    const Corner b = {coordinate(random), coordinate(random), 0, 1};
    const TileBitmap bitmap = diamond(a, b, 1);
    for (int y = 0; y < 64; ++y)
      for (int x = 0; x < 64; ++x) {
        double enter = 0, leave = 1;
        bool tie = false;
        for (const int sx : {-1, 1})
          for (const int sy : {-1, 1}) {  // sx * u + sy * v < 32
            const double from = sx * (a.x - (x * 64 + 32)) + sy * (a.y - (y * 64 + 32));
            const double to = sx * (b.x - (x * 64 + 32)) + sy * (b.y - (y * 64 + 32));
            tie |= from == 32 || to == 32;
            if (from == to) {
              if (from >= 32) leave = -1;
            } else if (to > from) {
              leave = std::min(leave, (32 - from) / (to - from));
            } else {
              enter = std::max(enter, (32 - from) / (to - from));
            }
          }
        if (tie || std::abs(enter - leave) < 1e-9) continue;
        const bool end_inside = std::abs(b.x - (x * 64 + 32)) + std::abs(b.y - (y * 64 + 32)) < 32;
        const bool expected = enter < leave && !end_inside;
        ASSERT_EQ((bitmap[static_cast<size_t>(y)] >> x) & 1, expected ? 1u : 0u)
            << "line " << a.x << "," << a.y << " to " << b.x << "," << b.y << ", pixel " << x << "," << y;
      }
  }
}

TEST(DiamondExit, LinesBetweenCornersOfDiamondsDrawWhatLiesBetween) {
  const TileBitmap across = diamond(at(20, 8.5), at(30, 8.5), 1), down = diamond(at(8.5, 20), at(8.5, 30), 1),
                   up = diamond(at(8.5, 30), at(8.5, 20), 1);
  for (size_t y = 0; y < 64; ++y) {
    EXPECT_EQ(across[y], y == 8 ? 0x3ffull << 20 : 0);
    EXPECT_EQ(down[y], y >= 20 && y < 30 ? 1ull << 8 : 0);
    EXPECT_EQ(up[y], down[y]);
  }
}

TEST(DiamondExit, JoinedSegmentsShareNoPixel) {
  // A monotonic polyline through pixel centres, corners of diamonds, and anything.
  const double points[][2] = {{3.5, 5.5}, {9.5, 7.5}, {15, 9.5},   {22.25, 9.75},
                              {30.5, 14}, {50.5, 14}, {60.5, 20.5}};
  for (const bool transposed : {false, true}) {
    TileBitmap all{};
    int sum = 0;
    for (size_t i = 0; i + 1 < std::size(points); ++i) {
      const auto corner = [&](size_t k) {
        return transposed ? at(points[k][1], points[k][0]) : at(points[k][0], points[k][1]);
      };
      const TileBitmap part = diamond(corner(i), corner(i + 1), 1);
      sum += population(part);
      for (size_t y = 0; y < 64; ++y) all[y] |= part[y];
    }
    EXPECT_EQ(sum, 57);  // one per column from 3 to 59; the last pixel belongs to the end, which is not drawn
    EXPECT_EQ(population(all), sum);
  }
}

TEST(DiamondExit, WidthReplicatesAlongTheMinorAxis) {
  const TileBitmap thin = diamond(at(2.5, 20.5), at(40.5, 30.5), 1),
                   wide = diamond(at(2.5, 20.5), at(40.5, 30.5), 3);
  EXPECT_EQ(population(thin), 38);
  EXPECT_EQ(population(wide), 3 * 38);
  for (size_t y = 1; y < 63; ++y) EXPECT_EQ(wide[y], thin[y - 1] | thin[y] | thin[y + 1]);
  EXPECT_EQ(population(diamond(at(2.5, 20.5), at(40.5, 30.5), 1.4f)), 38);
  EXPECT_EQ(population(diamond(at(2.5, 20.5), at(40.5, 30.5), 0.2f)), 38);
}

TEST(DiamondExit, StaysInTheWindow) {
  const Rect window = {2, 8, 8, 14};
  const TileBitmap all = diamond(at(-100, -60), at(200, 150), 5),
                   part = diamond(at(-100, -60), at(200, 150), 5, window);
  EXPECT_GT(population(part), 0);
  for (int y = 0; y < 64; ++y) {
    const uint64_t columns = y >= 8 && y < 14 ? 0xfcu : 0;
    EXPECT_EQ(part[static_cast<size_t>(y)], all[static_cast<size_t>(y)] & columns);
  }
}

}  // namespace
}  // namespace v3d::pse
