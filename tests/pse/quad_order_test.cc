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
    draw(scene, vertices, fs, tests);
  }
  static void draw(Scene& scene, const std::vector<SceneVertex>& vertices, ProgramBuilder& fs, bool tests) {
    draw::Draw& draw = scene.add_draw(3, vertices, fs, 4);
    draw.state.flat.words[0] = 15;
    draw.state.cfg.oversample = 1;
    if (!tests) return;
    draw.state.cfg.depth_func = GetParam().depth_func;
    draw.state.cfg.z_write = GetParam().writes_depth;
  }
};

std::vector<SmallTriangle> random_triangles() {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> position(0, 32), size(-5, 5);
  std::vector<SmallTriangle> triangles(60);
  for (SmallTriangle& t : triangles) {
    const double x = position(random), y = position(random);
    for (auto& at : t.at) at = {x + size(random), y + size(random)};
    t.z = static_cast<float>(random() % 16 + 1) / 16;
  }
  return triangles;
}

std::vector<SceneVertex> vertices_of(const std::vector<SmallTriangle>& triangles) {
  std::vector<SceneVertex> all;
  for (uint32_t i = 0; i < triangles.size(); ++i)
    for (const SceneVertex& v : vertices_of(triangles[i], i)) all.push_back(v);
  return all;
}

/// Calls with the number of a triangle, a sample (of 1 or 4 a pixel) and its pixel, in the order of
/// triangles, where the triangle covers the sample and passes its test.
template <typename Draw, typename Fragment>
void each_sample(const std::vector<SmallTriangle>& triangles, uint32_t size, const Tests& tests,
                 const Draw& draw, const Fragment& fragment) {
  const uint32_t samples = tests.multisample ? 4 : 1;
  std::vector<float> depth(size_t{size} * size * samples, 1);
  for (uint32_t i = 0; i < triangles.size(); ++i) {
    Scene one(size, size, 32, tests.multisample);
    draw(one, vertices_of(triangles[i], i));
    ASSERT_TRUE(one.render()) << one.error();
    for (size_t p = 0; p < depth.size(); ++p) {
      const auto pixel = static_cast<uint32_t>(p / samples), s = static_cast<uint32_t>(p % samples);
      if (one.is_clear(pixel % size, pixel / size, s)) continue;
      if (tests.depth_func == Compare::kLequal && triangles[i].z > depth[p]) continue;
      if (tests.writes_depth) depth[p] = triangles[i].z;
      fragment(i, p);
    }
  }
}

/// The last of the triangles that pass their test stays, as if each had been drawn by itself.
TEST_P(QuadOrder, IsThatOfTheTriangles) {
  const std::vector<SmallTriangle> triangles = random_triangles();
  const bool multisample = GetParam().multisample;
  const uint32_t samples = multisample ? 4 : 1;
  Scene scene(kSize, kSize, 32, multisample);
  draw(scene, vertices_of(triangles), true);
  ASSERT_TRUE(scene.render()) << scene.error();

  std::vector<uint32_t> winner(size_t{kSize} * kSize * samples, ~0u);
  each_sample(
      triangles, kSize, GetParam(),
      [](Scene& one, const std::vector<SceneVertex>& vertices) { draw(one, vertices, false); },
      [&](uint32_t i, size_t p) { winner[p] = i; });
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

/// Without samples: the reads are of pixels.
class ReadOrder : public QuadOrder {};

/// Programs that read the tile buffer find what the triangles before have left there.
TEST_P(ReadOrder, IsThatOfTheTriangles) {
  const std::vector<SmallTriangle> triangles = random_triangles();
  Scene scene(kSize, kSize, 32);
  ProgramBuilder fs;
  for (uint8_t i = 0; i < 4; ++i) fs.flat(20 + i);
  fs.load(10)
      .add(qpu::Op::kAdd, 10, fs.rf(10), fs.rf(10))
      .add(qpu::Op::kAdd, 10, fs.rf(10), fs.rf(20))
      .store(10);
  draw(scene, vertices_of(triangles), fs, true);
  ASSERT_TRUE(scene.render()) << scene.error();

  std::vector<uint32_t> sum(size_t{kSize} * kSize, 1);  // the clear colour
  each_sample(
      triangles, kSize, GetParam(),
      [](Scene& one, const std::vector<SceneVertex>& vertices) { draw(one, vertices, false); },
      [&](uint32_t i, size_t p) { sum[p] = 2 * sum[p] + i; });
  for (uint32_t p = 0; p < sum.size(); ++p)
    ASSERT_EQ(scene.word(p % kSize, p / kSize, 0), sum[p]) << p % kSize << " " << p / kSize;
}

constexpr Tests kNone = {"None", Compare::kAlways, false, false},
                kWrites = {"Writes", Compare::kAlways, true, false},
                kDepth = {"Depth", Compare::kLequal, true, false},
                kSamples = {"Samples", Compare::kLequal, true, true};
constexpr auto kNameOf = [](const auto& tests) { return tests.param.name; };
INSTANTIATE_TEST_SUITE_P(Tests, QuadOrder, testing::Values(kNone, kWrites, kDepth, kSamples), kNameOf);
INSTANTIATE_TEST_SUITE_P(Tests, ReadOrder, testing::Values(kNone, kWrites, kDepth), kNameOf);

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
  EXPECT_FALSE(quads.may_be_in(quad_position(0, 0)));
  quads.push(7, false, quad_position(4, 10), 0x1010);
  quads.push(31, true, quad_position(62, 2), 0x0fff);
  EXPECT_EQ(quads.count(), 2);
  EXPECT_FALSE(quads.full());
  EXPECT_TRUE(quads.may_be_in(quad_position(60, 0)));
  EXPECT_FALSE(quads.may_be_in(quad_position(8, 8)));
  EXPECT_EQ(quads.setups(), 1u << 7 | 1u << 31);
  EXPECT_EQ(quads.setup(), (std::array<uint8_t, 4>{7, 31, 31, 31}));
  EXPECT_EQ(quads.back_facing(), 0xf0);
  expect_pixels(quads, {4, 62, 62, 62}, {10, 2, 2, 2}, {0, 1, 0, 1, 15, 15, 15});
  EXPECT_EQ(block_coverage(quads.coverage()), 0x0fff1010u);
  quads.clear();
  EXPECT_FALSE(quads.may_be_in(quad_position(4, 8)));
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
  EXPECT_EQ(quads.setup(), (std::array<uint8_t, 4>{1, 2, 3, 3}));
  EXPECT_EQ(quads.back_facing(), 0xff0f);
  expect_pixels(quads, {0, 2, 8, 8}, {0, 0, 4, 6}, {15, 15, 15, 15, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 1, 0});
  quads.clear();
  EXPECT_EQ(quads.push(3, false, three.behind(2)), 0u);
  EXPECT_EQ(quads.count(), 1);
  EXPECT_TRUE(quads.may_be_in(quad_position(8, 4)));
  expect_pixels(quads, {10, 10, 10, 10}, {6, 6, 6, 6}, {0, 0, 0, 1});
}

TEST(WaitingQuads, FindOnlyWhatIsThere) {
  std::mt19937 random(3);
  for (int i = 0; i < 10000; ++i) {
    struct Quad {
      uint32_t position, coverage;
    };
    WaitingQuads quads;
    std::vector<Quad> there;
    const auto covers = [&there](uint32_t position, uint32_t coverage) {
      return std::any_of(there.begin(), there.end(), [&](const Quad& q) {
        return q.position == position && (q.coverage & coverage) != 0;
      });
    };
    bool again = false;
    for (auto left = random() % 5; left != 0; --left) {
      const uint32_t position = quad_position(random() % 4 * 2, random() % 4 * 2);
      const uint32_t coverage = static_cast<uint32_t>(random() & random()) & 0xffff;
      ASSERT_EQ(quads.covers(position, coverage), covers(position, coverage));
      if (covers(position, coverage)) continue;
      again |= covers(position, 0xffff);
      quads.push(0, false, position, coverage == 0 ? 1 : coverage);
      there.push_back({position, coverage == 0 ? 1 : coverage});
    }
    ASSERT_EQ(quads.again(), again);
    for (uint32_t x = 0; x < 64; x += 4)
      for (uint32_t y = 0; y < 64; y += 4) {
        const uint32_t block = quad_position(x, y);
        const FourQuads positions = positions_in_block(block);
        const FourQuads coverage =
            (FourQuads{random()} << 32 | random()) & (FourQuads{random()} << 32 | random());
        bool expected = false;
        for (int q = 0; q < kQuads; ++q)
          expected |= covers(positions >> (16 * q) & 0xffff, coverage >> (16 * q) & 0xffff);
        ASSERT_EQ(quads.covers_block(block, coverage), expected);
        ASSERT_TRUE(quads.may_be_in(block) || !expected);
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
