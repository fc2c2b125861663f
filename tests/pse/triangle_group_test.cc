#include "gpu/pse/triangle_group.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <vector>

namespace v3d::pse {
namespace {

constexpr int kTile = 64;

struct TileWindow {
  int tile_x, tile_y;
  Rect window;
};

/// Pixels of each 4x4 block.
using Blocks = std::map<std::pair<int, int>, LaneMask>;

/// Of structures of doubles.
template <typename T>
bool same_bits(const T& a, const T& b) {
  std::array<uint64_t, sizeof(T) / sizeof(uint64_t)> words_of_a, words_of_b;
  std::memcpy(words_of_a.data(), &a, sizeof(T));
  std::memcpy(words_of_b.data(), &b, sizeof(T));
  return words_of_a == words_of_b;
}

/// Sixteen triangles of random corners around a point.
class TriangleGroupTest : public testing::Test {
 protected:
  TriangleGroupTest() {
    draw_.num_vertices = 3 * kLanes;
    draw_.stride = 4;
    draw_.vertices.resize(size_t{draw_.num_vertices} * draw_.stride + kLanes, 0);
    for (uint32_t i = 0; i < kLanes; ++i) {
      triangles_[i].vertex[0] = 3 * i;
      triangles_[i].vertex[1] = 3 * i + 1;
      triangles_[i].vertex[2] = 3 * i + 2;
      of_[i] = &triangles_[i];
    }
  }

  int number(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  void set(size_t triangle, const std::array<Corner, 3>& corners) {
    for (size_t k = 0; k < 3; ++k) {
      uint32_t* words = &draw_.vertices[(3 * triangle + k) * 4];
      words[0] = static_cast<uint32_t>(corners[k].x);
      words[1] = static_cast<uint32_t>(corners[k].y);
      words[2] = std::bit_cast<uint32_t>(corners[k].z);
      words[3] = std::bit_cast<uint32_t>(corners[k].r);
    }
    corners_[triangle] = corners;
  }

  /// @param size  largest distance of corners from their middle, 1/64 px
  /// @param grid  of the corners
  void set_random(const TileWindow& place, int size, int grid) {
    std::uniform_real_distribution<float> depth(-1, 2);
    for (size_t i = 0; i < kLanes; ++i) {
      const int x = (place.tile_x + number(-8, kTile + 8)) * kSubpixels,
                y = (place.tile_y + number(-8, kTile + 8)) * kSubpixels;
      std::array<Corner, 3> corners;
      for (Corner& c : corners)
        c = {(x + number(-size, size)) / grid * grid, (y + number(-size, size)) / grid * grid, depth(random_),
             depth(random_)};
      set(i, corners);
    }
  }

  void check(const TileWindow& place, LaneMask wanted = kAllLanes) {
    group_.set_up(draw_, of_.data(), wanted, place.tile_x, place.tile_y, place.window);
    EXPECT_EQ(group_.small() & ~wanted, 0);
    EXPECT_EQ(group_.valid() & ~group_.small(), 0);
    EXPECT_EQ(group_.covered() & ~group_.valid(), 0);
    for (size_t lane = 0; lane < kLanes; ++lane)
      if (((group_.small() | group_.medium()) >> lane) & 1) check_lane(place, lane);
    EXPECT_EQ(group_.medium() & (group_.small() | ~wanted), 0);
    medium_ += std::popcount(group_.medium());
    small_ += std::popcount(group_.small());
    covered_ += std::popcount(group_.covered());
  }

  void check_lane(const TileWindow& place, size_t lane) {
    Geometry geometry;
    const bool valid = triangle_geometry(corners_[lane], place.tile_x, place.tile_y, geometry);
    const bool is_medium = ((group_.medium() >> lane) & 1) != 0;
    ASSERT_EQ(is_medium || ((group_.valid() >> lane) & 1), valid);
    if (!valid) return;
    const Blocks expected = covered_blocks(geometry, place);
    if (!is_medium) {
      ASSERT_EQ((group_.covered() >> lane) & 1, !expected.empty());
      if (expected.empty()) return;
    }
    Blocks blocks;
    if (is_medium) blocks = covered_blocks(group_.coverage(lane), group_.area(lane), place);
    for (size_t block = 0; block < TriangleGroup::kBlocks && !is_medium; ++block)
      if (const LaneMask pixels = group_.pixels(block, lane))
        blocks[{group_.left(lane) + (block & 1 ? 4 : 0), group_.top(lane) + (block & 2 ? 4 : 0)}] = pixels;
    ASSERT_EQ(blocks, expected);
    Weights weights;
    group_.get_weights(lane, weights);
    ASSERT_TRUE(same_bits(weights, geometry.weights));
    const auto& [a, b, c] = corners_[lane];
    expect_plane(group_.z(lane), make_plane(geometry.weights, a.z + 0.0, double{b.z} - double{a.z},
                                            double{c.z} - double{a.z}));
    expect_plane(group_.r(lane),
                 make_plane(geometry.weights, a.r, double{b.r} - double{a.r}, double{c.r} - double{a.r}));
    for (size_t k = 0; k < 3; ++k)
      ASSERT_EQ(std::bit_cast<uint32_t>(group_.corner_r(k, lane)),
                std::bit_cast<uint32_t>(corners_[lane][k].r));
  }

  static void expect_plane(const LinearPlane& plane, const LinearPlane& expected) {
    ASSERT_TRUE(same_bits(plane, expected))
        << plane.value << " and not " << expected.value << ", steps " << plane.step_x << " " << plane.step_y
        << " and not " << expected.step_x << " " << expected.step_y;
  }

  static Blocks covered_blocks(const Geometry& geometry, const TileWindow& place) {
    const Rect bounds = covered_bounds(geometry, false);
    const Rect area = intersect({bounds.left - place.tile_x, bounds.top - place.tile_y,
                                 bounds.right - place.tile_x, bounds.bottom - place.tile_y},
                                place.window);
    if (area.empty()) return {};
    static constexpr int kCenter[1] = {0};
    const TileCoverage<1, 3> coverage(geometry.edges.data(), place.tile_x, place.tile_y, kCenter, kCenter);
    return covered_blocks(coverage, area, place);
  }

  static Blocks covered_blocks(const TileCoverage<1, 3>& coverage, const Rect& area,
                               const TileWindow& place) {
    Blocks blocks, others;
    const auto emit_to = [](Blocks& to) {
      return [&to](int x, int y, const std::array<LaneMask, 1>& masks) {
        EXPECT_TRUE(to.insert({{x, y}, masks[0]}).second) << x << ", " << y;
      };
    };
    const auto whole_to = [](Blocks& to) {
      return [&to](int x, int y) { EXPECT_TRUE(to.insert({{x, y}, kAllLanes}).second) << x << ", " << y; };
    };
    const bool cuts = !of_whole_blocks(place.window);
    coverage.blocks(area, cuts, emit_to(blocks), whole_to(blocks));
    coverage.blocks_in_any_order(area, cuts, emit_to(others), whole_to(others));
    EXPECT_EQ(blocks, others);
    return blocks;
  }

  std::mt19937 random_{7};
  PreparedDraw draw_;
  std::array<draw::Primitive, kLanes> triangles_{};
  std::array<const draw::Primitive*, kLanes> of_{};
  std::array<std::array<Corner, 3>, kLanes> corners_{};
  TriangleGroup group_;
  int small_ = 0, covered_ = 0, medium_ = 0;
};

constexpr TileWindow kTileWindows[] = {{0, 0, {0, 0, kTile, kTile}},
                                       {128, 4032, {0, 0, kTile, kTile}},
                                       {64, 192, {3, 10, 61, 47}},
                                       {64, 0, {20, 21, 22, 22}},
                                       {0, 64, {8, 8, 8, 40}}};

TEST_F(TriangleGroupTest, IsWhatThePlainCodeMakesOfEachTriangle) {
  for (const TileWindow& place : kTileWindows)
    for (const int size : {20, 70, 150, 300, 600, 1500, 1 << 14})
      for (const int grid : {1, 16, 32, 64})
        for (int i = 0; i < 40; ++i) {
          set_random(place, size, grid);
          check(place);
        }
  EXPECT_GT(small_, 20000);
  EXPECT_GT(covered_, 4000);
  EXPECT_GT(medium_, 4000);
}

/// All of 2 x 2 blocks, in whichever way a quarter of them is cut.
TEST_F(TriangleGroupTest, TakesEveryTriangleOfTwoByTwoBlocks) {
  const TileWindow& place = kTileWindows[0];
  for (size_t i = 0; i < kLanes; ++i) {
    const int x = static_cast<int>(i & 3) * 8 * kSubpixels, y = static_cast<int>(i >> 2) * 8 * kSubpixels;
    set(i, {Corner{x, y, 0, 1}, {x + 8 * kSubpixels - 1, y, 0, 1}, {x, y + 8 * kSubpixels - 1, 0, 1}});
  }
  check(place);
  EXPECT_EQ(group_.covered(), kAllLanes);
  check(place, 0x0ff0);
  EXPECT_EQ(group_.covered(), 0x0ff0);
}

TEST_F(TriangleGroupTest, LeavesCornersOutOfRangeToThePlainCode) {
  const TileWindow& place = kTileWindows[0];
  constexpr int kFar = std::numeric_limits<int32_t>::max();
  set_random(place, 100, 1);
  set(3, {Corner{kFar, 0, 0, 1}, {kFar, kFar, 0, 1}, {0, -kFar, 0, 1}});
  set(5, {Corner{-kMaxCoordinate, 0, 0, 1}, {-kMaxCoordinate + 64, 0, 0, 1}, {-kMaxCoordinate, 64, 0, 1}});
  check(place);
  EXPECT_EQ((group_.small() | group_.medium()) & (1 << 3 | 1 << 5), 0);
}

TEST_F(TriangleGroupTest, PlanesOfStrangeDepthsAreThoseOfThePlainCode) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(),
                  kNan = std::numeric_limits<float>::quiet_NaN();
  const float values[] = {0.0f, -0.0f, kInfinity, -kInfinity, kNan, -kNan, 1e-45f, 3e38f, -3e38f, 1.0f};
  const auto value = [&] { return values[number(0, 9)]; };
  for (int round = 0; round < 200; ++round) {
    set_random(kTileWindows[0], 150, 32);
    for (size_t i = 0; i < kLanes; ++i) {
      std::array<Corner, 3> corners = corners_[i];
      for (Corner& c : corners) c.z = value(), c.r = value();
      set(i, corners);
    }
    check(kTileWindows[0]);
  }
  EXPECT_GT(covered_, 500);
}

}  // namespace
}  // namespace v3d::pse
