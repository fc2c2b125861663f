// Which quads share a batch, by the lanes that pixels get.

#include <gtest/gtest.h>

#include <vector>

#include "tests/pse/scene.h"

namespace v3d::pse {
namespace {

struct Point {
  double x, y;  ///< pixels: the left upper corner
  float size = 1;
  float z = 0.5f;
};

class Batches : public testing::Test {
 protected:
  /// Draws points whose pixels get the numbers of their lanes.
  void draw(const std::vector<Point>& points) {
    std::vector<SceneVertex> vertices;
    for (const Point& p : points)
      vertices.push_back({p.x + p.size / 2, p.y + p.size / 2, p.z, 1, {bits(p.size)}});
    ProgramBuilder fs;
    fs.add(qpu::Op::kEidx, 10).uniform(11, 0).uniform(12, 0).uniform(13, 0).store(10);
    draw::Draw& draw = scene_.add_draw(1, vertices, fs, 0);
    draw.state.cfg.depth_func = Compare::kLess;
    draw.state.cfg.z_write = true;
    scene_.record().point_size_in_vertices = true;
    ASSERT_TRUE(scene_.render()) << scene_.error();
  }
  /// @param quad  of its batch
  void expect(uint32_t x, uint32_t y, uint32_t quad) const {
    ASSERT_FALSE(scene_.is_clear(x, y)) << x << " " << y;
    EXPECT_EQ(scene_.word(x, y, 0), 4 * quad + (x & 1) + (y & 1) * 2) << x << " " << y;
  }

  Scene scene_{32, 32, 32};
};

TEST_F(Batches, FillInTheOrderOfPrimitives) {
  std::vector<Point> points;
  for (uint32_t i = 0; i < 15; ++i) points.push_back({static_cast<double>(i), 0});
  draw(points);
  for (uint32_t i = 0; i < 15; ++i) expect(i, 0, i % 4);
  EXPECT_EQ(scene_.count(perf::kFepValidQuads), 15u);
}

TEST_F(Batches, HoldSeveralPrimitivesOfOneQuadAndNoneOfOnePixel) {
  draw({{0, 0}, {1, 0}, {0, 1}, {1, 1}, {4, 0}, {4, 0, 1, 0.25f}, {5, 0}, {9, 9}});
  expect(0, 0, 0);
  expect(1, 0, 1);
  expect(0, 1, 2);
  expect(1, 1, 3);
  expect(4, 0, 0);
  expect(5, 0, 1);
  expect(9, 9, 2);
}

TEST_F(Batches, CloseUpWhereQuadsFailTheirTests) {
  draw({{0, 0}, {1, 0, 1, 1}, {2, 0}, {3, 0}, {4, 0}, {5, 0}, {6, 0}, {7, 0}});
  EXPECT_TRUE(scene_.is_clear(1, 0));
  expect(0, 0, 0);
  expect(2, 0, 1);
  expect(3, 0, 2);
  expect(4, 0, 3);
  expect(5, 0, 0);
  expect(6, 0, 1);
  expect(7, 0, 2);
}

TEST_F(Batches, AreWholeBlocksWhateverWaits) {
  draw({{0, 0}, {2, 0}, {8, 8, 4}, {4, 0}, {6, 0}});
  for (uint32_t y = 8; y < 12; ++y)
    for (uint32_t x = 8; x < 12; ++x) expect(x, y, (x / 2 & 1) + (y & 2));
  for (uint32_t i = 0; i < 4; ++i) expect(2 * i, 0, i);
}

}  // namespace
}  // namespace v3d::pse
