#include "gpu/pse/coverage.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "gpu/pse/geometry.h"

namespace v3d::pse {
namespace {

struct Point {
  int32_t x, y;
};
using Triangle = std::array<Point, 3>;

/// Signed doubled area of (a, b, p), in a type wide enough for anything.
__int128 cross(const Point& a, const Point& b, int64_t px, int64_t py) {
  return static_cast<__int128>(b.x - a.x) * (py - a.y) - static_cast<__int128>(b.y - a.y) * (px - a.x);
}

/// Top-left rule, stated with the third corner instead of signs of steps.
bool inside(const Triangle& t, int64_t px, int64_t py) {
  const __int128 area = cross(t[0], t[1], t[2].x, t[2].y);
  if (area == 0) return false;
  for (size_t i = 0; i < 3; ++i) {
    const Point &a = t[i], &b = t[(i + 1) % 3], &opposite = t[(i + 2) % 3];
    const __int128 value = cross(a, b, px, py);
    if (value == 0) {
      const bool top = a.y == b.y && opposite.y > a.y;
      // Left: moving right from the edge gets towards the opposite corner.
      const __int128 right = cross(a, b, a.x + 1, a.y);
      const bool left = a.y != b.y && (right > 0) == (area > 0);
      if (!top && !left) return false;
    } else if ((value > 0) != (area > 0)) {
      return false;
    }
  }
  return true;
}

/// Coverage of one 64x64 tile: sample bits per pixel.
using Tile = std::array<std::array<uint8_t, 64>, 64>;

template <int kSamples>
Tile rasterize(const Triangle& t, int tile_x, int tile_y, const Rect& window) {
  Tile result{};
  Geometry g;
  const std::array<Corner, 3> corners = {Corner{t[0].x, t[0].y, 0, 1}, Corner{t[1].x, t[1].y, 0, 1},
                                         Corner{t[2].x, t[2].y, 0, 1}};
  if (!triangle_geometry(corners, tile_x, tile_y, g)) return result;
  const Rect bounds = covered_bounds(g, kSamples == 4);
  const Rect area = intersect(
      {bounds.left - tile_x, bounds.top - tile_y, bounds.right - tile_x, bounds.bottom - tile_y}, window);
  if (area.empty()) return result;
  static constexpr int kCenter[1] = {0};
  const TileCoverage<kSamples, 3> coverage(g.edges.data(), tile_x, tile_y,
                                           kSamples == 4 ? kSampleX.data() : kCenter,
                                           kSamples == 4 ? kSampleY.data() : kCenter);
  const auto emit = [&](int x, int y, const std::array<LaneMask, kSamples>& masks) {
    LaneMask any = 0;
    for (int s = 0; s < kSamples; ++s) {
      any |= masks[s];
      for (int lane = 0; lane < kLanes; ++lane) {
        if (((masks[s] >> lane) & 1) == 0) continue;
        const auto row = static_cast<size_t>(y) + kBlockY[lane],
                   column = static_cast<size_t>(x) + kBlockX[lane];
        uint8_t& pixel = result[row][column];
        EXPECT_EQ(pixel & (1 << s), 0) << "a sample is reported twice";
        pixel = static_cast<uint8_t>(pixel | 1 << s);
      }
    }
    EXPECT_NE(any, 0) << "empty block reported";
  };
  coverage.blocks(area, !of_whole_blocks(window), emit, [&](int x, int y) {
    std::array<LaneMask, kSamples> all;
    all.fill(kAllLanes);
    emit(x, y, all);
  });
  return result;
}

template <int kSamples>
Tile reference(const Triangle& t, int tile_x, int tile_y, const Rect& window) {
  Tile result{};
  for (int y = window.top; y < window.bottom; ++y)
    for (int x = window.left; x < window.right; ++x)
      for (size_t s = 0; s < kSamples; ++s) {
        const int64_t px = (int64_t{tile_x} + x) * 64 + 32 + (kSamples == 4 ? kSampleX[s] : 0);
        const int64_t py = (int64_t{tile_y} + y) * 64 + 32 + (kSamples == 4 ? kSampleY[s] : 0);
        if (inside(t, px, py))
          result[static_cast<size_t>(y)][static_cast<size_t>(x)] |= static_cast<uint8_t>(1 << s);
      }
  return result;
}

constexpr Rect kWholeTile = {0, 0, 64, 64};

class RandomTriangles : public testing::TestWithParam<int> {};

/// Scales from slivers inside a tile to the limits of the coordinates.
TEST_P(RandomTriangles, MatchTheDefinition) {
  std::mt19937 random(static_cast<uint32_t>(GetParam()) * 77 + 5);
  const int32_t reach = std::min(1 << GetParam(), kMaxCoordinate - 1);
  std::uniform_int_distribution<int32_t> offset(-reach, reach), tile(0, 63), pixel(0, 64);
  const int rounds = 60;
  int hits = 0;
  for (int i = 0; i < rounds; ++i) {
    const int tile_x = tile(random) * 64, tile_y = tile(random) * 64;
    const auto clamp = [](int32_t v) { return std::clamp(v, -kMaxCoordinate + 1, kMaxCoordinate - 1); };
    const auto corner = [&] {
      return Point{clamp(tile_x * 64 + 2048 + offset(random)), clamp(tile_y * 64 + 2048 + offset(random))};
    };
    Triangle t = {corner(), corner(), corner()};
    if (i % 3 == 0) {  // corners on pixel centres: many ties
      for (Point& p : t) p = {(p.x & ~63) + 32, (p.y & ~63) + 32};
    }
    Rect window = kWholeTile;
    if (i % 4 == 1)
      window = {pixel(random) / 2, pixel(random) / 2, 32 + pixel(random) / 2, 32 + pixel(random) / 2};
    if (i % 3 == 1) window = {window.left & ~3, window.top & ~3, window.right & ~3, window.bottom & ~3};
    const Tile one = reference<1>(t, tile_x, tile_y, window);
    EXPECT_EQ(rasterize<1>(t, tile_x, tile_y, window), one);
    EXPECT_EQ(rasterize<4>(t, tile_x, tile_y, window), reference<4>(t, tile_x, tile_y, window));
    for (const auto& row : one)
      for (const uint8_t p : row) hits += p;
  }
  EXPECT_GT(hits, 10);
}
INSTANTIATE_TEST_SUITE_P(Reach, RandomTriangles, testing::Values(7, 9, 11, 12, 13, 16, 19, 22));

TEST(Coverage, SharedEdgesAreHitExactlyOnce) {
  std::mt19937 random(9);
  std::uniform_int_distribution<int32_t> jitter(-170, 170);
  for (int round = 0; round < 6; ++round) {
    // A jittered grid of quads over the whole tile and beyond, each split in two; every other round with
    // corners on pixel centres and sample positions.
    constexpr int kGrid = 7;
    std::array<std::array<Point, kGrid + 1>, kGrid + 1> p;
    for (int j = 0; j <= kGrid; ++j)
      for (int i = 0; i <= kGrid; ++i) {
        const bool border = i == 0 || j == 0 || i == kGrid || j == kGrid;
        Point c = {-512 + i * 5120 / kGrid + (border ? 0 : jitter(random)),
                   -512 + j * 5120 / kGrid + (border ? 0 : jitter(random))};
        if (round % 2) c = {(c.x & ~31), (c.y & ~31)};
        p[static_cast<size_t>(j)][static_cast<size_t>(i)] = c;
      }
    std::array<std::array<std::array<int, 4>, 64>, 64> hits{};
    std::array<std::array<int, 64>, 64> center_hits{};
    for (size_t j = 0; j < kGrid; ++j)
      for (size_t i = 0; i < kGrid; ++i) {
        const Triangle halves[2] = {{p[j][i], p[j][i + 1], p[j + 1][i]},
                                    {p[j + 1][i + 1], p[j][i + 1], p[j + 1][i]}};
        for (const Triangle& t : halves) {
          const Tile four = rasterize<4>(t, 0, 0, kWholeTile), one = rasterize<1>(t, 0, 0, kWholeTile);
          for (size_t y = 0; y < 64; ++y)
            for (size_t x = 0; x < 64; ++x) {
              center_hits[y][x] += one[y][x];
              for (size_t s = 0; s < 4; ++s) hits[y][x][s] += (four[y][x] >> s) & 1;
            }
        }
      }
    for (size_t y = 0; y < 64; ++y)
      for (size_t x = 0; x < 64; ++x) {
        EXPECT_EQ(center_hits[y][x], 1) << x << " " << y;
        for (size_t s = 0; s < 4; ++s) EXPECT_EQ(hits[y][x][s], 1) << x << " " << y << " sample " << s;
      }
  }
}

TEST(Coverage, TopLeftRuleOfAnAxisAlignedSquare) {
  // Edges through the centres of pixels 4 and 8.
  const Triangle upper = {
      Point{4 * 64 + 32, 4 * 64 + 32}, {8 * 64 + 32, 4 * 64 + 32}, {4 * 64 + 32, 8 * 64 + 32}};
  const Triangle lower = {
      Point{8 * 64 + 32, 8 * 64 + 32}, {8 * 64 + 32, 4 * 64 + 32}, {4 * 64 + 32, 8 * 64 + 32}};
  const Tile a = rasterize<1>(upper, 0, 0, kWholeTile), b = rasterize<1>(lower, 0, 0, kWholeTile);
  for (size_t y = 0; y < 64; ++y)
    for (size_t x = 0; x < 64; ++x)
      EXPECT_EQ(a[y][x] + b[y][x], x >= 4 && x < 8 && y >= 4 && y < 8) << x << " " << y;
}

}  // namespace
}  // namespace v3d::pse
