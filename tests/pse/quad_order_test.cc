#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "gpu/pse/waiting_quads.h"
#include "tests/pse/scene.h"

namespace v3d::pse {
namespace {

struct SmallTriangle {
  std::array<std::array<double, 2>, 3> at;
  float z;
};

/// Flat: the number of the triangle and one.
std::vector<SceneVertex> vertices_of(const SmallTriangle& t, uint32_t number) {
  std::vector<SceneVertex> vertices;
  for (const auto& [x, y] : t.at) vertices.push_back({x, y, t.z, 1, {number, 1, 2, 3}});
  return vertices;
}

struct Tests {
  const char* name;
  Compare depth_func;
  bool writes_depth;
  bool multisample;
};

class QuadOrder : public testing::TestWithParam<Tests> {
 protected:
  static constexpr uint32_t kSize = 32;

  static void draw(Scene& scene, const std::vector<SceneVertex>& vertices, bool tests) {
    ProgramBuilder fs;
    for (uint8_t i = 0; i < 4; ++i) fs.flat(10 + i);
    fs.store(10);
    draw::Draw& draw = scene.add_draw(3, vertices, fs, 4);
    draw.state.flat.words[0] = 15;
    draw.state.cfg.oversample = 1;
    if (!tests) return;
    draw.state.cfg.depth_func = GetParam().depth_func;
    draw.state.cfg.z_write = GetParam().writes_depth;
  }
};

/// The last of the triangles that pass their test stays, as if each had been drawn by itself.
TEST_P(QuadOrder, IsThatOfTheTriangles) {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> position(0, kSize), size(-5, 5);
  std::vector<SmallTriangle> triangles(60);
  std::vector<SceneVertex> all;
  for (uint32_t i = 0; i < triangles.size(); ++i) {
    SmallTriangle& t = triangles[i];
    const double x = position(random), y = position(random);
    for (auto& at : t.at) at = {x + size(random), y + size(random)};
    t.z = static_cast<float>(random() % 16 + 1) / 16;
    for (const SceneVertex& v : vertices_of(t, i)) all.push_back(v);
  }
  const bool multisample = GetParam().multisample;
  const uint32_t samples = multisample ? 4 : 1;
  Scene scene(kSize, kSize, 32, multisample);
  draw(scene, all, true);
  ASSERT_TRUE(scene.render()) << scene.error();

  std::vector<uint32_t> winner(size_t{kSize} * kSize * samples, ~0u);
  std::vector<float> depth(winner.size(), 1);
  for (uint32_t i = 0; i < triangles.size(); ++i) {
    Scene one(kSize, kSize, 32, multisample);
    draw(one, vertices_of(triangles[i], i), false);
    ASSERT_TRUE(one.render()) << one.error();
    for (size_t p = 0; p < winner.size(); ++p) {
      const auto pixel = static_cast<uint32_t>(p / samples), s = static_cast<uint32_t>(p % samples);
      if (one.is_clear(pixel % kSize, pixel / kSize, s)) continue;
      if (GetParam().depth_func == Compare::kLequal && triangles[i].z > depth[p]) continue;
      winner[p] = i;
      if (GetParam().writes_depth) depth[p] = triangles[i].z;
    }
  }
  size_t covered = 0;
  for (size_t p = 0; p < winner.size(); ++p) {
    const auto pixel = static_cast<uint32_t>(p / samples), s = static_cast<uint32_t>(p % samples);
    const uint32_t x = pixel % kSize, y = pixel / kSize;
    ASSERT_EQ(scene.is_clear(x, y, s), winner[p] == ~0u) << x << " " << y;
    if (winner[p] == ~0u) continue;
    ++covered;
    ASSERT_EQ(scene.word(x, y, 0, s), winner[p]) << x << " " << y;
  }
  EXPECT_GT(covered, winner.size() / 4);
}

INSTANTIATE_TEST_SUITE_P(Tests, QuadOrder,
                         testing::Values(Tests{"None", Compare::kAlways, false, false},
                                         Tests{"Writes", Compare::kAlways, true, false},
                                         Tests{"Depth", Compare::kLequal, true, false},
                                         Tests{"Samples", Compare::kLequal, true, true}),
                         [](const auto& tests) { return tests.param.name; });

void expect_pixels(const WaitingQuads& quads, const std::array<uint32_t, 4>& x,
                   const std::array<uint32_t, 4>& y, const std::array<uint32_t, kLanes>& coverage) {
  const Lanes actual_x = WaitingQuads::x(quads.positions()), actual_y = WaitingQuads::y(quads.positions()),
              actual = quads.coverage();
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    EXPECT_EQ(actual_x[lane], x[lane / 4] + (lane & 1));
    EXPECT_EQ(actual_y[lane], y[lane / 4] + (lane >> 1 & 1));
    EXPECT_EQ(actual[lane], coverage[lane]);
  }
}

TEST(WaitingQuads, KeepPositionsCoverageAndFacing) {
  WaitingQuads quads;
  EXPECT_TRUE(quads.empty());
  EXPECT_FALSE(quads.holds(quad_position(0, 0)));
  quads.push(7, false, quad_position(4, 10), 0x1010);
  quads.push(31, true, quad_position(62, 2), 0x0fff);
  EXPECT_EQ(quads.count(), 2);
  EXPECT_FALSE(quads.full());
  EXPECT_TRUE(quads.holds(quad_position(62, 2)));
  EXPECT_FALSE(quads.holds(quad_position(4, 12)));
  EXPECT_FALSE(quads.holds(quad_position(0, 0)));
  EXPECT_TRUE(quads.holds_any_of(quad_position(4, 8)));
  EXPECT_FALSE(quads.holds_any_of(quad_position(8, 8)));
  EXPECT_EQ(quads.setups(), 1u << 7 | 1u << 31);
  EXPECT_EQ(quads.setup(), (std::array<uint8_t, 4>{7, 31, 31, 31}));
  EXPECT_EQ(quads.back_facing(), 0xf0);
  expect_pixels(quads, {4, 62, 62, 62}, {10, 2, 2, 2}, {0, 1, 0, 1, 15, 15, 15});
  EXPECT_EQ(block_coverage(quads.coverage()), 0x0fff1010u);
  quads.clear();
  EXPECT_FALSE(quads.holds(quad_position(4, 10)));
  EXPECT_EQ(quads.setups(), 0u);
}

TEST(WaitingQuads, TakeOfABlockWhatTheyHaveRoomFor) {
  WaitingQuads quads;
  quads.push(1, true, quad_position(0, 0), 0xffff);
  quads.push(2, false, quad_position(2, 0), 0x1111);
  const FourQuads coverage = block_coverage(LaneMask{0b1000'0100'0000'0001}, 1);
  const BlockQuads three = BlockQuads::some(quad_position(8, 4), coverage, 0b1101);
  EXPECT_EQ(three.count, 3u);
  EXPECT_EQ(quads.push(3, true, three), 1u);
  EXPECT_TRUE(quads.full());
  EXPECT_TRUE(quads.holds(quad_position(8, 6)));
  EXPECT_FALSE(quads.holds(quad_position(10, 4)));
  EXPECT_FALSE(quads.holds(quad_position(10, 6)));
  EXPECT_EQ(quads.setup(), (std::array<uint8_t, 4>{1, 2, 3, 3}));
  EXPECT_EQ(quads.back_facing(), 0xff0f);
  expect_pixels(quads, {0, 2, 8, 8}, {0, 0, 4, 6}, {15, 15, 15, 15, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 1, 0});
  quads.clear();
  EXPECT_EQ(quads.push(3, false, three.behind(2)), 0u);
  EXPECT_EQ(quads.count(), 1);
  EXPECT_EQ(quads.blocks(), block_bit(quad_position(8, 4)));
  expect_pixels(quads, {10, 10, 10, 10}, {6, 6, 6, 6}, {0, 0, 0, 1});
}

TEST(WaitingQuads, FindOnlyWhatIsThere) {
  std::mt19937 random(3);
  for (int i = 0; i < 1000; ++i) {
    WaitingQuads quads;
    std::vector<uint32_t> there;
    for (auto left = random() % 5; left != 0; --left) {
      there.push_back(quad_position(random() % 4 * 2, random() % 4 * 2));
      quads.push(0, false, there.back(), 1);
    }
    for (uint32_t x = 0; x < 64; x += 2)
      for (uint32_t y = 0; y < 64; y += 2) {
        const uint32_t position = quad_position(x, y);
        const bool holds = std::find(there.begin(), there.end(), position) != there.end();
        ASSERT_EQ(quads.holds(position), holds);
        if (x % 4 != 0 || y % 4 != 0) continue;
        const bool in_block =
            std::any_of(there.begin(), there.end(), [&](uint32_t p) { return (p & ~0x0101u) == position; });
        ASSERT_EQ(quads.holds_any_of(position), in_block);
      }
  }
}

TEST(WaitingQuads, CoverageIsThatOfPixels) {
  EXPECT_EQ(block_coverage(LaneMask{0x8421}, 15), 0xf000'0f00'00f0'000fu);
  EXPECT_EQ(block_coverage(LaneMask{0x8421}, 5), 0x5000'0500'0050'0005u);
  EXPECT_EQ(quads_of(0x8001), 0b1001u);
  EXPECT_EQ(quads_of(0x0240), 0b0110u);
}

}  // namespace
}  // namespace v3d::pse
