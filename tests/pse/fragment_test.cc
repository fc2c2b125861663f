#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "gpu/base/work_meter.h"
#include "gpu/mmu/fault_place.h"
#include "tests/base/counting_control.h"
#include "tests/pse/scene.h"

namespace v3d::pse {
namespace {

using qpu::Op;
using testing::HasSubstr;

std::vector<SceneVertex> triangle(const std::array<std::array<double, 2>, 3>& at,
                                  const std::array<std::vector<uint32_t>, 3>& words = {},
                                  const std::array<float, 3>& r = {1, 1, 1},
                                  const std::array<float, 3>& z = {0.5f, 0.5f, 0.5f}) {
  std::vector<SceneVertex> v(3);
  for (size_t i = 0; i < 3; ++i) v[i] = {at[i][0], at[i][1], z[i], r[i], words[i]};
  return v;
}

constexpr std::array<std::array<double, 2>, 3> kWholeFrame = {{{-10, -10}, {300, -10}, {-10, 300}}};

/// Barycentric coordinates of a point, in long double.
std::array<long double, 3> barycentric(const std::array<std::array<double, 2>, 3>& t, long double x,
                                       long double y) {
  const auto area = [](long double ax, long double ay, long double bx, long double by, long double cx,
                       long double cy) { return (bx - ax) * (cy - ay) - (by - ay) * (cx - ax); };
  const long double all = area(t[0][0], t[0][1], t[1][0], t[1][1], t[2][0], t[2][1]);
  return {area(x, y, t[1][0], t[1][1], t[2][0], t[2][1]) / all,
          area(t[0][0], t[0][1], x, y, t[2][0], t[2][1]) / all,
          area(t[0][0], t[0][1], t[1][0], t[1][1], x, y) / all};
}

TEST(Fragment, ConstantsAreExactWhateverThePerspective) {
  Scene scene;
  const std::vector<uint32_t> words = {bits(0.1f), bits(-1234.567f), bits(1e-40f), bits(3e20f)};
  ProgramBuilder fs;
  for (uint8_t i = 0; i < 4; ++i) fs.varying(10 + i);
  fs.store(10);
  scene.add_draw(3, triangle(kWholeFrame, {words, words, words}, {1, 0.3f, 0.017f}), fs, 4);
  ASSERT_TRUE(scene.render()) << scene.error();
  for (uint32_t y = 0; y < 64; ++y)
    for (uint32_t x = 0; x < 64; ++x)
      for (uint32_t c = 0; c < 4; ++c) ASSERT_EQ(scene.word(x, y, c), words[c]) << x << " " << y << " " << c;
}

TEST(Fragment, VaryingsFollowTheirFormulas) {
  Scene scene(100, 80, 32);
  const std::array<std::array<double, 2>, 3> at = {{{3.25, 2.5}, {98.75, 10.125}, {20.5, 77.25}}};
  const std::array<float, 3> r = {1.0f, 0.25f, 2.5f};
  const float u[3][3] = {{0.0f, 10.0f, -3.0f}, {1.0f, -20.0f, 5.0f}, {-2.0f, 700.0f, 0.5f}};
  std::array<std::vector<uint32_t>, 3> words;
  for (size_t i = 0; i < 3; ++i) words[i] = {bits(u[i][0]), bits(u[i][1]), bits(u[i][2])};
  ProgramBuilder fs;
  fs.varying(10).varying(11, -1).varying(12);
  fs.add(Op::kOr, 13, ProgramBuilder::rf(3), ProgramBuilder::rf(3)).store(10);
  draw::Draw& draw = scene.add_draw(3, triangle(at, words, r), fs, 3);
  draw.state.noperspective.words[0] = 2;
  ASSERT_TRUE(scene.render()) << scene.error();
  int covered = 0;
  for (uint32_t y = 0; y < 80; ++y)
    for (uint32_t x = 0; x < 100; ++x) {
      if (scene.is_clear(x, y)) continue;
      ++covered;
      const auto b = barycentric(at, x + 0.5L, y + 0.5L);
      long double inverse_w = 0, smooth0 = 0, smooth2 = 0, linear = 0;
      for (size_t i = 0; i < 3; ++i) {
        inverse_w += b[i] * r[i];
        smooth0 += b[i] * r[i] * u[i][0];
        smooth2 += b[i] * r[i] * u[i][2];
        linear += b[i] * u[i][1];
      }
      ASSERT_NEAR(scene.value(x, y, 0), static_cast<double>(smooth0 / inverse_w), 2e-6);
      ASSERT_NEAR(scene.value(x, y, 1), static_cast<double>(linear), 2e-4);
      ASSERT_NEAR(scene.value(x, y, 2), static_cast<double>(smooth2 / inverse_w), 4e-6);
      ASSERT_NEAR(scene.value(x, y, 3), static_cast<double>(1 / inverse_w), 1e-6);
    }
  EXPECT_GT(covered, 3000);
}

TEST(Fragment, FlatVaryingsAndPrimitiveIdsKeepTheirBits) {
  Scene scene;
  // A signalling NaN, a denormal, all ones, minus zero.
  const std::vector<uint32_t> last = {0x7f800001, 0x00000001, 0xffffffff, 0x80000000};
  const std::vector<uint32_t> other = {5, 6, 7, 8};
  ProgramBuilder fs;
  fs.varying(20);  // primitive id, through the formula of smooth varyings
  for (uint8_t i = 0; i < 3; ++i) fs.flat(10 + i);
  fs.add(Op::kOr, 13, ProgramBuilder::rf(20), ProgramBuilder::rf(20)).store(10);
  draw::Draw& draw = scene.add_draw(3, triangle(kWholeFrame, {other, other, last}, {1, 0.5f, 0.1f}), fs, 4);
  draw.state.flat.words[0] = 15;
  draw.primitives[0].primitive_id = 4711;
  scene.record().primitive_id_varying = true;
  ASSERT_TRUE(scene.render()) << scene.error();
  for (uint32_t y = 0; y < 64; ++y)
    for (uint32_t x = 0; x < 64; ++x) {
      for (uint32_t c = 0; c < 3; ++c) ASSERT_EQ(scene.word(x, y, c), last[c]);
      ASSERT_EQ(scene.word(x, y, 3), 4711u);
    }
}

/// Varyings of more than 16 components, of many small primitives that share batches.
TEST(Fragment, BatchesMixPrimitives) {
  Scene scene(128, 128, 32);
  std::mt19937 random(5);
  std::uniform_real_distribution<double> position(0, 128), size(-6, 6);
  std::uniform_real_distribution<float> value(-10, 10), inverse_w(0.2f, 2);
  std::vector<SceneVertex> vertices;
  for (int i = 0; i < 900; ++i) {
    const double x = position(random), y = position(random);
    const uint32_t id = 1000 + static_cast<uint32_t>(i);
    for (int k = 0; k < 3; ++k)
      vertices.push_back(
          {std::round((x + size(random)) * 64) / 64,
           std::round((y + size(random)) * 64) / 64,
           0.5f,
           inverse_w(random),
           {bits(value(random)), bits(value(random)), bits(value(random)), id, bits(value(random))}});
  }
  ProgramBuilder fs;
  for (uint8_t i = 0; i < 3; ++i) fs.varying(10 + i);
  fs.flat(13).varying(13 + 10).store(10);
  draw::Draw& draw = scene.add_draw(3, vertices, fs, 5);
  draw.state.flat.words[0] = 8;
  ASSERT_TRUE(scene.render()) << scene.error();
  int pixels = 0;
  for (uint32_t y = 0; y < 128; ++y)
    for (uint32_t x = 0; x < 128; ++x) {
      if (scene.is_clear(x, y)) continue;
      ++pixels;
      const uint32_t id = scene.word(x, y, 3) - 1000;
      ASSERT_LT(id, 900u);
      const SceneVertex* v = &vertices[size_t{id} * 3];
      const auto b =
          barycentric({{{v[0].x, v[0].y}, {v[1].x, v[1].y}, {v[2].x, v[2].y}}}, x + 0.5L, y + 0.5L);
      long double w = 0;
      for (size_t i = 0; i < 3; ++i) w += b[i] * v[i].r;
      for (uint32_t c = 0; c < 3; ++c) {
        long double sum = 0;
        for (size_t i = 0; i < 3; ++i) sum += b[i] * v[i].r * std::bit_cast<float>(v[i].words[c]);
        ASSERT_NEAR(scene.value(x, y, c), static_cast<double>(sum / w), 1e-4) << "primitive " << id;
      }
      // A later primitive that covers the pixel would have won.
      for (uint32_t later = id + 1; later < 900; ++later) {
        const SceneVertex* l = &vertices[size_t{later} * 3];
        const auto lb =
            barycentric({{{l[0].x, l[0].y}, {l[1].x, l[1].y}, {l[2].x, l[2].y}}}, x + 0.5L, y + 0.5L);
        ASSERT_FALSE(lb[0] > 1e-9L && lb[1] > 1e-9L && lb[2] > 1e-9L)
            << "order of " << id << " and " << later;
      }
    }
  EXPECT_GT(pixels, 6000);
}

TEST(Fragment, PayloadHoldsPositionAndDepth) {
  Scene scene(80, 48, 16);
  ProgramBuilder fs;
  fs.add(Op::kXcd, 10).add(Op::kYcd, 11);
  fs.add(Op::kFxcd, 12).add(Op::kFycd, 13);
  fs.add(Op::kFadd, 12, ProgramBuilder::rf(12), ProgramBuilder::rf(13));
  fs.add(Op::kOr, 13, ProgramBuilder::rf(2), ProgramBuilder::rf(2)).store(10);
  // z = x / 128 + y / 256 exactly
  const std::array<std::array<double, 2>, 3> at = {{{0, 0}, {128, 0}, {0, 128}}};
  scene.add_draw(3, triangle(at, {}, {1, 1, 1}, {0, 1, 0.5f}), fs, 0);
  ASSERT_TRUE(scene.render()) << scene.error();
  for (uint32_t y = 0; y < 48; ++y)
    for (uint32_t x = 0; x < 80; ++x) {
      ASSERT_EQ(scene.word(x, y, 0), x);
      ASSERT_EQ(scene.word(x, y, 1), y);
      ASSERT_EQ(scene.value(x, y, 2), static_cast<float>(x + y + 1));
      ASSERT_EQ(scene.value(x, y, 3), (x + 0.5f) / 128 + (y + 0.5f) / 256);
    }
}

TEST(Fragment, ConstantDepthIsExactlyConstant) {
  Scene scene(64, 64, 32);
  const float z = 0.3f;
  ProgramBuilder fs;
  for (uint8_t i = 10; i < 14; ++i) fs.add(Op::kOr, i, ProgramBuilder::rf(2), ProgramBuilder::rf(2));
  fs.store(10);
  scene.add_draw(
      3, triangle({{{-1000.25, -777.5}, {3000.125, 11.5}, {-3.5, 2117.75}}}, {}, {1, 0.1f, 7}, {z, z, z}), fs,
      0);
  ASSERT_TRUE(scene.render()) << scene.error();
  for (uint32_t y = 0; y < 64; ++y)
    for (uint32_t x = 0; x < 64; ++x) {
      if (!scene.is_clear(x, y)) {
        ASSERT_EQ(scene.value(x, y, 0), z);
      }
    }
  EXPECT_FALSE(scene.is_clear(20, 20));
}

/// Varyings, depth and W have the same bits whatever the tiles are (dEQP-VK
/// draw.renderpass.output_location.array.r32-sfloat-highp).
TEST(Fragment, PlanesDoNotDependOnTheTiles) {
  constexpr uint32_t kSize = 60;
  const auto render = [](Scene& scene) {
    ProgramBuilder fs;
    fs.varying(10).varying(11);
    fs.add(Op::kOr, 12, ProgramBuilder::rf(2), ProgramBuilder::rf(2));
    fs.add(Op::kOr, 13, ProgramBuilder::rf(3), ProgramBuilder::rf(3)).store(10);
    // The first varying is 0 along the diagonal, where two large products cancel.
    scene.add_draw(3,
                   triangle({{{0, kSize}, {kSize, 0}, {kSize, kSize}}},
                            {{{bits(0.0f), bits(0.1f)}, {bits(0.0f), bits(7.3f)}, {bits(1.0f), bits(-5.7f)}}},
                            {1, 0.3f, 1.7f}, {0.1f, 0.7f, 0.4f}),
                   fs, 2);
    ASSERT_TRUE(scene.render()) << scene.error();
  };
  Scene whole(kSize, kSize, 64);
  render(whole);
  for (uint32_t i = 0; i < kSize; ++i)
    if (!whole.is_clear(i, kSize - 1 - i)) {
      ASSERT_EQ(whole.value(i, kSize - 1 - i, 0), 0.0f) << i;
    }
  for (const uint32_t tile : {8u, 16u, 32u}) {
    Scene parts(kSize, kSize, tile);
    render(parts);
    for (uint32_t y = 0; y < kSize; ++y)
      for (uint32_t x = 0; x < kSize; ++x)
        for (uint32_t c = 0; c < 4; ++c)
          ASSERT_EQ(whole.word(x, y, c), parts.word(x, y, c)) << tile << ": " << x << " " << y << " " << c;
  }
}

ProgramBuilder constant(uint32_t value) {
  ProgramBuilder fs;
  for (uint8_t i = 0; i < 4; ++i) fs.uniform(10 + i, value);
  fs.store(10);
  return fs;
}

TEST(Fragment, ClipWindowIsExact) {
  Scene scene(128, 96, 32);
  ProgramBuilder fs = constant(99);
  draw::Draw& draw = scene.add_draw(3, triangle(kWholeFrame), fs, 0);
  draw.state.clip_left = 17;
  draw.state.clip_bottom = 30;
  draw.state.clip_width = 50;
  draw.state.clip_height = 35;
  ASSERT_TRUE(scene.render()) << scene.error();
  for (uint32_t y = 0; y < 96; ++y)
    for (uint32_t x = 0; x < 128; ++x)
      ASSERT_EQ(!scene.is_clear(x, y), x >= 17 && x < 67 && y >= 30 && y < 65) << x << " " << y;
}

TEST(Fragment, DepthTestAndOcclusionCount) {
  Scene scene(64, 64, 32);
  const GpuAddr counters = scene.test().put(std::vector<uint32_t>{10, 20, 30});
  ProgramBuilder near = constant(1000), far = constant(2000);
  const auto set = [&](draw::Draw& d, GpuAddr counter) {
    d.state.cfg.depth_func = Compare::kLess;
    d.state.cfg.z_write = true;
    d.state.occlusion_counter = counter;
  };
  set(scene.add_draw(3, triangle({{{0, 0}, {40, 0}, {0, 40}}}, {}, {1, 1, 1}, {0.25f, 0.25f, 0.25f}), near,
                     0),
      counters);
  set(scene.add_draw(3, triangle(kWholeFrame), far, 0), counters + 4);
  set(scene.add_draw(3, triangle(kWholeFrame), far, 0), counters + 4);  // fails everywhere
  ASSERT_TRUE(scene.render()) << scene.error();
  uint32_t pixels = 0;
  for (uint32_t y = 0; y < 64; ++y)
    for (uint32_t x = 0; x < 64; ++x) {
      ASSERT_EQ(scene.word(x, y, 0), x + y < 39 ? 1000u : 2000u) << x << " " << y;
      pixels += x + y < 39;
    }
  EXPECT_EQ(scene.test().memory().load<uint32_t>(counters), 10 + pixels);
  EXPECT_EQ(scene.test().memory().load<uint32_t>(counters + 4), 20 + 64 * 64 - pixels);
  EXPECT_EQ(scene.test().memory().load<uint32_t>(counters + 8), 30u);
  uint64_t touched = 0, inside = 0;  // quads of the first draw
  for (int y = 0; y < 64; y += 2)
    for (int x = 0; x < 64; x += 2) {
      touched += x + y < 39;
      inside += x + y + 2 < 39;
    }
  EXPECT_EQ(scene.count(perf::kFepValidQuads), touched + 1024 - inside);
  EXPECT_EQ(scene.count(perf::kFepClippedQuads), inside + 1024);
  EXPECT_EQ(scene.count(perf::kFepPrimitivesPixels), 12u);   // three draws in four tiles
  EXPECT_EQ(scene.count(perf::kFepPrimitivesNoPixels), 1u);  // the small one in the last tile
  EXPECT_EQ(scene.count(perf::kQpuFragmentClocks), 4 * scene.count(perf::kQpuActive));
}

TEST(Fragment, ProgramsThatWriteDepthTestLate) {
  Scene scene;
  // The program writes z = 0.75 for even columns and keeps the rasteriser's 0.5 otherwise - as two draws.
  ProgramBuilder own, invariant;
  own.uniform(20, bits(0.75f)).store_depth(20, false);
  for (uint8_t i = 0; i < 4; ++i) own.uniform(10 + i, 7);
  own.store(10);
  invariant.store_depth(20, true);
  for (uint8_t i = 0; i < 4; ++i) invariant.uniform(10 + i, 8);
  invariant.store(10);
  const auto late = [&](draw::Draw& d) {
    d.state.cfg.depth_func = Compare::kLess;
    d.state.cfg.z_write = true;
    scene.record().fs_writes_z = scene.record().early_z_off = true;
  };
  late(scene.add_draw(3, triangle(kWholeFrame, {}, {1, 1, 1}, {0.1f, 0.1f, 0.1f}), own, 0));
  late(scene.add_draw(3, triangle({{{0, 0}, {32, 0}, {0, 32}}}), invariant, 0));
  late(scene.add_draw(3, triangle(kWholeFrame, {}, {1, 1, 1}, {0.6f, 0.6f, 0.6f}), invariant, 0));
  ASSERT_TRUE(scene.render()) << scene.error();
  EXPECT_EQ(scene.word(3, 3, 0), 8u);
  EXPECT_EQ(scene.word(60, 60, 0), 8u);
  EXPECT_EQ(scene.count(perf::kFepClippedQuads), 0u);
}

TEST(Fragment, FacingIsPerPrimitive) {
  Scene scene;
  ProgramBuilder fs;
  for (uint8_t i = 10; i < 14; ++i) fs.add(Op::kRevf, i);
  fs.store(10);
  std::vector<SceneVertex> v = triangle({{{0.5, 0.5}, {4, 0.5}, {0.5, 4}}});
  const auto second = triangle({{{9, 8.5}, {9, 12}, {5, 12}}});
  v.insert(v.end(), second.begin(), second.end());
  draw::Draw& draw = scene.add_draw(3, v, fs, 0);
  draw.primitives[1].back_facing = true;
  ASSERT_TRUE(scene.render()) << scene.error();
  EXPECT_EQ(scene.word(1, 1, 0), 0u);
  EXPECT_EQ(scene.word(8, 11, 0), 1u);
}

TEST(Fragment, PointCoordinates) {
  Scene scene(64, 64, 32);
  ProgramBuilder fs;
  fs.varying(10)
      .varying(11)
      .varying(12)
      .add(Op::kOr, 13, ProgramBuilder::rf(3), ProgramBuilder::rf(3))
      .store(10);
  // Point size 8 from the vertex, W = 4.
  scene.add_draw(1, {{32, 32, 0.5f, 0.25f, {bits(8), bits(77.5f)}}}, fs, 1);
  scene.record().point_size_in_vertices = true;
  scene.record().no_implicit_varyings = false;
  ASSERT_TRUE(scene.render()) << scene.error();
  for (uint32_t y = 0; y < 64; ++y)
    for (uint32_t x = 0; x < 64; ++x) {
      const bool inside = x >= 28 && x < 36 && y >= 28 && y < 36;
      ASSERT_EQ(!scene.is_clear(x, y), inside) << x << " " << y;
      if (!inside) continue;
      ASSERT_FLOAT_EQ(scene.value(x, y, 0), (x - 28 + 0.5f) / 8);
      ASSERT_FLOAT_EQ(scene.value(x, y, 1), 1 - (y - 28 + 0.5f) / 8);
      ASSERT_EQ(scene.value(x, y, 2), 77.5f);
      ASSERT_EQ(scene.value(x, y, 3), 4.0f);
    }
}

TEST(Fragment, LinesInterpolateAlongTheSegment) {
  Scene scene(64, 64, 32);
  ProgramBuilder fs;
  fs.varying(10).varying(11).add(Op::kOr, 12, ProgramBuilder::rf(3), ProgramBuilder::rf(3));
  fs.add(Op::kOr, 13, ProgramBuilder::rf(2), ProgramBuilder::rf(2)).store(10);
  draw::Draw& draw = scene.add_draw(2, {{8.5, 20, 0, 1, {bits(0)}}, {40.5, 20, 1, 0.5f, {bits(1)}}}, fs, 1);
  draw.state.line_width = 4;
  scene.record().no_implicit_varyings = false;
  for (const bool diamond : {false, true}) {
    scene.bin().draws[0].state.cfg.line_mode = diamond ? 0 : 1;
    ASSERT_TRUE(scene.render()) << scene.error();
    for (uint32_t x = 8; x < 40; ++x)
      for (uint32_t y = 18; y < 22; ++y) {
        ASSERT_FALSE(scene.is_clear(x, y)) << x << " " << y;
        const float t = (static_cast<float>(x) - 8) / 32, inverse_w = 1 - t / 2, w = 1 / inverse_w;
        // The line coordinate n reaches the program as 1 - W + W * n.
        const float n = (scene.value(x, y, 0) - (1 - w)) / w;
        const float across = (static_cast<float>(y) + 0.5f - 18) / 4;
        ASSERT_NEAR(std::min(n, 1 - n), std::min(across, 1 - across), 1e-5);
        ASSERT_NEAR(scene.value(x, y, 1), t * 0.5f / inverse_w, 1e-6);
        ASSERT_NEAR(scene.value(x, y, 2), w, 1e-6);
        ASSERT_EQ(scene.value(x, y, 3), t);
      }
    EXPECT_TRUE(scene.is_clear(7, 20));
    EXPECT_TRUE(scene.is_clear(40, 20));
    EXPECT_TRUE(scene.is_clear(20, 17));
    EXPECT_TRUE(scene.is_clear(20, 22));
  }
}

class ClippedTriangle : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Fragment, ClippedTriangle, testing::Bool());

/// A triangle that reaches behind the eye, cut at W = 1/8 by hand. The parameter: the varying is
/// noperspective, that is linear through the vertices as projected, also through the one behind the eye.
TEST_P(ClippedTriangle, KeepsTheAttributesOfTheTriangle) {
  const bool noperspective = GetParam();
  Scene scene;
  ProgramBuilder fs;
  (noperspective ? fs.varying(10, -1) : fs.varying(10))
      .flat(11)
      .varying(12)
      .add(Op::kOr, 13, ProgramBuilder::rf(3), ProgramBuilder::rf(3))
      .store(10);
  // Clip space: x, y, w with W = -1 at vertex 2. Screen = 32 + 32 * x / w.
  const double clip[3][3] = {{-1, -1, 1}, {1, -1, 1}, {0, 2, -1}};
  const float u[3] = {1, 2, 9};
  std::vector<SceneVertex> v;
  for (size_t i = 0; i < 3; ++i)
    v.push_back({32 + 32 * clip[i][0] / clip[i][2],
                 32 + 32 * clip[i][1] / clip[i][2],
                 0.5f,
                 static_cast<float>(1 / clip[i][2]),
                 {bits(u[i]), static_cast<uint32_t>(i), bits(3.75f)}});
  draw::Draw& draw = scene.add_draw(3, v, fs, 3);
  draw.state.flat.words[0] = 2;
  draw.state.noperspective.words[0] = noperspective;
  draw.state.z_offset = 0.5f;
  draw::ClippedPolygon polygon{};
  const double t = (1 - 0.125) / 2;  // along an edge from W = 1 to W = -1
  const double weights[4][3] = {{1, 0, 0}, {0, 1, 0}, {0, 1 - t, t}, {1 - t, 0, t}};
  polygon.num_corners = 4;
  for (size_t i = 0; i < 4; ++i) {
    double c[3] = {};
    for (size_t k = 0; k < 3; ++k)
      for (size_t j = 0; j < 3; ++j) c[k] += weights[i][j] * clip[j][k];
    draw::ClippedPolygon::Corner& corner = polygon.corners[i];
    corner.x = static_cast<int32_t>(std::lround((32 + 32 * c[0] / c[2]) * 64));
    corner.y = static_cast<int32_t>(std::lround((32 + 32 * c[1] / c[2]) * 64));
    for (size_t k = 0; k < 3; ++k) corner.weight[k] = static_cast<float>(weights[i][k]);
    corner.z = 0;
    corner.w = static_cast<float>(c[2]);
  }
  draw.clipped.push_back(polygon);
  draw.primitives[0].clipped = 0;
  ASSERT_TRUE(scene.render()) << scene.error();
  int pixels = 0;
  for (uint32_t y = 0; y < 64; ++y)
    for (uint32_t x = 0; x < 64; ++x) {
      if (scene.is_clear(x, y)) continue;
      ++pixels;
      // Solve weights * clip = (sx * w, sy * w, w) for weights of sum 1.
      const double sx = (x + 0.5 - 32) / 32, sy = (y + 0.5 - 32) / 32;
      // Rows: a_i = x_i - sx * w_i, b_i = y_i - sy * w_i; weights are their cross product, normalised.
      double a[3], b[3];
      for (size_t i = 0; i < 3; ++i) {
        a[i] = clip[i][0] - sx * clip[i][2];
        b[i] = clip[i][1] - sy * clip[i][2];
      }
      const double n[3] = {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
      const double sum = n[0] + n[1] + n[2];
      const double w = (n[0] * clip[0][2] + n[1] * clip[1][2] + n[2] * clip[2][2]) / sum;
      double expected = 0;
      for (size_t i = 0; i < 3; ++i) expected += n[i] / sum * u[i] * (noperspective ? clip[i][2] / w : 1);
      ASSERT_NEAR(scene.value(x, y, 0), expected, 0.02) << x << " " << y;
      ASSERT_EQ(scene.word(x, y, 1), 2u);
      ASSERT_EQ(scene.value(x, y, 2), 3.75f);
      ASSERT_NEAR(scene.value(x, y, 3), w, 0.01);
    }
  EXPECT_GT(pixels, 1000);
}

TEST(Fragment, DepthOffset) {
  const auto offset_depth = [](tlb::DepthType type, float z, float factor, float units, float limit,
                               double slope_per_pixel) {
    Scene scene;
    scene.config().depth_type = type;
    ProgramBuilder fs;
    for (uint8_t i = 10; i < 14; ++i) fs.add(Op::kOr, i, ProgramBuilder::rf(2), ProgramBuilder::rf(2));
    fs.store(10);
    const auto dz = static_cast<float>(256 * slope_per_pixel);
    draw::Draw& draw = scene.add_draw(
        3, triangle({{{0.5, 0.5}, {256.5, 0.5}, {0.5, 256.5}}}, {}, {1, 1, 1}, {z, z + dz, z}), fs, 0);
    draw.state.cfg.depth_offset = true;
    draw.state.offset_factor = factor;
    draw.state.offset_units = units;
    draw.state.offset_limit = limit;
    EXPECT_TRUE(scene.render()) << scene.error();
    return scene.value(0, 0, 0);
  };
  using tlb::DepthType;
  // CTS amber depth_bias/d32_sfloat: 2^22 units at 0.3 and 0.5.
  EXPECT_FLOAT_EQ(offset_depth(DepthType::k32F, 0.3f, 0, 0x1p22f, 0, 0), 0.425f);
  EXPECT_FLOAT_EQ(offset_depth(DepthType::k32F, 0.5f, 0, 0x1p22f, 0, 0), 0.75f);
  EXPECT_FLOAT_EQ(offset_depth(DepthType::k24, 0.25f, 0, 0x1p22f, 0, 0), 0.5f);
  EXPECT_FLOAT_EQ(offset_depth(DepthType::k16, 0.25f, 0, 0x1p14f, 0, 0), 0.5f);
  EXPECT_FLOAT_EQ(offset_depth(DepthType::k24, 0.25f, 2, 0, 0, 0x1p-9), 0.25f + 0x1p-8f);
  EXPECT_FLOAT_EQ(offset_depth(DepthType::k24, 0.25f, -2, 0, 0, -0x1p-9), 0.25f - 0x1p-8f);
  EXPECT_FLOAT_EQ(offset_depth(DepthType::k16, 0.25f, 0, 0x1p14f, 0.125f, 0), 0.375f);
  EXPECT_FLOAT_EQ(offset_depth(DepthType::k16, 0.5f, 0, -0x1p14f, -0.125f, 0), 0.375f);
}

/// Z clamp belongs to the depth test (dEQP-VK.depth.fs_clamp).
TEST(Fragment, ProgramsSeeDepthThatIsNotClamped) {
  for (const bool clamp : {false, true}) {
    Scene scene;
    ProgramBuilder fs;
    for (uint8_t i = 10; i < 14; ++i) fs.add(Op::kOr, i, ProgramBuilder::rf(2), ProgramBuilder::rf(2));
    fs.store(10);
    draw::Draw& draw = scene.add_draw(
        3, triangle({{{0.5, 0.5}, {64.5, 0.5}, {0.5, 64.5}}}, {}, {1, 1, 1}, {-1, 3, -1}), fs, 0);
    draw.state.cfg.z_clamp = clamp;
    draw.state.z_min_clip = 0.25f;
    draw.state.z_max_clip = 0.75f;
    ASSERT_TRUE(scene.render()) << scene.error();
    EXPECT_EQ(scene.value(0, 0, 0), -1.0f);
    EXPECT_EQ(scene.value(24, 1, 0), 0.5f);
    EXPECT_EQ(scene.value(48, 1, 0), 2.0f);
  }
}

TEST(Fragment, HangsEndTheJob) {
  Scene scene;
  scene.test().job().instruction_limit = 100000;
  ProgramBuilder fs;
  fs.loop_forever();
  scene.add_draw(3, triangle(kWholeFrame), fs, 0);
  EXPECT_FALSE(scene.render());
  EXPECT_THAT(scene.error(), HasSubstr("fragment program"));
  EXPECT_THAT(scene.error(), HasSubstr("does not end, and is at pc 0x"));
}

TEST(Fragment, LongProgramsLookAtTheJob) {
  Scene scene;
  CountingControl control;
  scene.test().job().control = &control;
  scene.test().job().instruction_limit = 1'000'000;
  ProgramBuilder fs;
  fs.loop_forever();
  scene.add_draw(3, triangle(kWholeFrame), fs, 0);
  EXPECT_FALSE(scene.render());
  EXPECT_GE(control.looks(), 1'000'000 / kInstructionSlice);
}

TEST(PreparedDraws, LongListsAreGoneThroughInPieces) {
  TestJob test;
  CountingControl control;
  test.job().control = &control;
  draw::BinResult bin;
  bin.tiles.emplace_back(1 << 20,
                         draw::ListEntry{.draw = std::numeric_limits<uint32_t>::max(), .primitive = 0});
  const PreparedDraws draws(test.job(), bin, {});
  EXPECT_GE(control.looks(), 8u);
}

TEST(Fragment, FaultsNameTheInstruction) {
  Scene scene;
  ProgramBuilder fs;
  for (uint8_t i = 0; i < 4; ++i) fs.nop().uniform(10 + i, 1);
  fs.store(10);
  draw::ShaderCode code = fs.build(&scene.test());
  code.uniforms = TestJob::end();
  scene.add_draw(3, triangle(kWholeFrame), code, 0);
  EXPECT_TRUE(scene.render()) << scene.error();
  EXPECT_EQ(scene.test().space().take_faults().first_address, TestJob::end());
  const mmu::FaultPlace place = mmu::take_fault_place(scene.test().space());
  EXPECT_STREQ(place.stage, "fragment");
  EXPECT_EQ(place.program, code.code);
  EXPECT_EQ(place.instruction, code.code + 8);
}

TEST(Fragment, TooManyVaryingsAreRefused) {
  Scene scene;
  ProgramBuilder fs = constant(1);
  scene.add_draw(3, triangle(kWholeFrame), fs, 65);
  EXPECT_FALSE(scene.render());
  EXPECT_THAT(scene.error(), HasSubstr("65 varyings"));
}

}  // namespace
}  // namespace v3d::pse
