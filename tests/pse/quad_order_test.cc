#include <gtest/gtest.h>

#include <random>

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

TEST(WaitingQuads, KeepPositionsCoverageAndFacing) {
  WaitingQuads quads;
  EXPECT_TRUE(quads.empty());
  quads.push(7, false, quad_position(4, 10), quad_coverage(0b1010, 1));
  quads.push(31, true, quad_position(65534, 2), quad_coverage(0b0111, 15));
  EXPECT_EQ(quads.count(), 2);
  EXPECT_FALSE(quads.full());
  EXPECT_TRUE(quads.holds(quad_position(65534, 2)));
  EXPECT_FALSE(quads.holds(quad_position(4, 12)));
  EXPECT_TRUE(quads.holds_any_of(quad_position(4, 8)));
  EXPECT_FALSE(quads.holds_any_of(quad_position(8, 8)));
  EXPECT_EQ(quads.setups(), 1u << 7 | 1u << 31);
  EXPECT_EQ(quads.back_facing(), 0xf0);
  const Lanes x = quads.x(), y = quads.y(), coverage = quads.coverage();
  const uint32_t expected_x[] = {4, 65534, 65534, 65534}, expected_y[] = {10, 2, 2, 2};
  const std::array<uint32_t, kLanes> expected = {0, 1, 0, 1, 15, 15, 15};
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    EXPECT_EQ(x[lane], expected_x[lane / 4] + (lane & 1));
    EXPECT_EQ(y[lane], expected_y[lane / 4] + (lane >> 1 & 1));
    EXPECT_EQ(coverage[lane], expected[lane]);
  }
  EXPECT_EQ(pack_coverage(coverage)[5], quad_coverage(0b0111, 15));
  quads.clear();
  EXPECT_FALSE(quads.holds(quad_position(4, 10)));
  EXPECT_EQ(quads.setups(), 0u);
}

}  // namespace
}  // namespace v3d::pse
