#include <gtest/gtest.h>

#include "gpu/pse/coverage.h"
#include "tests/pse/scene.h"

namespace v3d::pse {
namespace {

using qpu::Op;

constexpr double kTriangle[3][2] = {{5.25, 3.5}, {58.5, 20.25}, {12.125, 60.75}};

std::vector<SceneVertex> test_triangle() {
  std::vector<SceneVertex> v;
  for (const auto& c : kTriangle)
    v.push_back({c[0],
                 c[1],
                 static_cast<float>(c[0] / 64),
                 0.5f,
                 {bits(static_cast<float>(c[0])), bits(static_cast<float>(c[1]))}});
  return v;
}

bool inside(double x, double y) {
  bool result = true;
  for (int i = 0; i < 3; ++i) {
    const auto& a = kTriangle[i];
    const auto& b = kTriangle[(i + 1) % 3];
    result &= (b[0] - a[0]) * (y - a[1]) - (b[1] - a[1]) * (x - a[0]) > 0;
  }
  return result;
}

double sample_x(uint32_t x, size_t s) { return x + 0.5 + kSampleX[s] / 64.0; }
double sample_y(uint32_t y, size_t s) { return y + 0.5 + kSampleY[s] / 64.0; }

uint32_t covered_samples(uint32_t x, uint32_t y) {
  uint32_t mask = 0;
  for (uint32_t s = 0; s < 4; ++s) mask |= uint32_t{inside(sample_x(x, s), sample_y(y, s))} << s;
  return mask;
}

TEST(Multisample, CoverageMaskAndCentroid) {
  Scene scene(64, 64, 32, true);
  ProgramBuilder fs;
  fs.varying(10, 1)
      .varying(11)
      .add(Op::kMsf, 12)
      .add(Op::kOr, 13, ProgramBuilder::rf(2), ProgramBuilder::rf(2));
  fs.store(10);
  draw::Draw& draw = scene.add_draw(3, test_triangle(), fs, 2);
  draw.state.cfg.oversample = 1;
  draw.state.centroid.words[0] = 1;
  ASSERT_TRUE(scene.render()) << scene.error();
  int partial = 0;
  for (uint32_t y = 0; y < 64; ++y)
    for (uint32_t x = 0; x < 64; ++x) {
      const uint32_t mask = covered_samples(x, y);
      partial += mask != 0 && mask != 15;
      // The rule, spelled out: opposite samples, or nothing, mean the centre.
      double centroid = x + 0.5;
      const bool opposite = (mask & 9) == 9 || (mask & 6) == 6;
      if (mask != 0 && !opposite) {
        const size_t s = mask & 1 ? 0 : mask & 4 ? 2 : mask & 2 ? 1 : 3;
        centroid = sample_x(x, s);
      }
      for (uint32_t s = 0; s < 4; ++s) {
        ASSERT_EQ(!scene.is_clear(x, y, s), ((mask >> s) & 1) != 0) << x << " " << y << " sample " << s;
        if (!((mask >> s) & 1)) continue;
        ASSERT_NEAR(scene.value(x, y, 0, s), centroid, 1e-5) << x << " " << y << " mask " << mask;
        ASSERT_NEAR(scene.value(x, y, 1, s), y + 0.5, 1e-5);
        ASSERT_EQ(scene.word(x, y, 2, s), mask);
        ASSERT_NEAR(scene.value(x, y, 3, s), (x + 0.5) / 64, 1e-6);
      }
    }
  EXPECT_GT(partial, 100);
}

TEST(Multisample, DepthIsTestedPerSample) {
  Scene scene(64, 64, 32, true);
  ProgramBuilder first, second;
  for (uint8_t i = 10; i < 14; ++i) {
    first.uniform(i, 100);
    second.uniform(i, 200);
  }
  first.store(10);
  second.store(10);
  for (int i = 0; i < 2; ++i) {
    // z = x / 64, then 31.5 / 64 everywhere: two samples of column 31 stay with the first draw.
    std::vector<SceneVertex> v = {{0, 0, 0, 1}, {256, 0, 4, 1}, {0, 256, 0, 1}};
    if (i == 1)
      for (SceneVertex& c : v) c.z = 31.5f / 64;
    draw::Draw& draw = scene.add_draw(3, v, i == 0 ? first : second, 0);
    draw.state.cfg.oversample = 1;
    draw.state.cfg.depth_func = Compare::kLess;
    draw.state.cfg.z_write = true;
  }
  ASSERT_TRUE(scene.render()) << scene.error();
  for (uint32_t s = 0; s < 4; ++s) {
    EXPECT_EQ(scene.word(30, 8, 0, s), 100u);
    EXPECT_EQ(scene.word(31, 8, 0, s), sample_x(31, s) < 31.5 ? 100u : 200u) << s;
    EXPECT_EQ(scene.word(32, 8, 0, s), 200u);
  }
}

TEST(Multisample, SampleShadingRunsOncePerSample) {
  Scene scene(64, 64, 32, true);
  ProgramBuilder fs;
  fs.varying(10).varying(11).add(Op::kSampid, 12).add(Op::kMsf, 14);
  fs.add(Op::kShl, 14, ProgramBuilder::rf(14), ProgramBuilder::immediate(8));
  fs.add(Op::kOr, 12, ProgramBuilder::rf(12), ProgramBuilder::rf(14));
  fs.add(Op::kFxcd, 13).store(10);
  draw::Draw& draw = scene.add_draw(3, test_triangle(), fs, 2);
  draw.state.cfg.oversample = 1;
  scene.record().sample_shading = true;
  ASSERT_TRUE(scene.render()) << scene.error();
  for (uint32_t y = 0; y < 64; ++y)
    for (uint32_t x = 0; x < 64; ++x)
      for (uint32_t s = 0; s < 4; ++s) {
        const bool covered = inside(sample_x(x, s), sample_y(y, s));
        ASSERT_EQ(!scene.is_clear(x, y, s), covered);
        if (!covered) continue;
        ASSERT_NEAR(scene.value(x, y, 0, s), sample_x(x, s), 1e-5);
        ASSERT_NEAR(scene.value(x, y, 1, s), sample_y(y, s), 1e-5);
        ASSERT_EQ(scene.word(x, y, 2, s), s | (256u << s));
        ASSERT_EQ(scene.value(x, y, 3, s), static_cast<float>(sample_x(x, s)));
      }
}

TEST(Multisample, CentreCoverageSetsAllSamplesAndTheMaskRemovesSome) {
  Scene scene(64, 64, 32, true);
  ProgramBuilder fs;
  for (uint8_t i = 10; i < 14; ++i) fs.add(Op::kMsf, i);
  fs.store(10);
  scene.add_draw(3, test_triangle(), fs, 2).state.sample_mask = 0xb;
  ASSERT_TRUE(scene.render()) << scene.error();
  for (uint32_t y = 0; y < 64; ++y)
    for (uint32_t x = 0; x < 64; ++x)
      for (uint32_t s = 0; s < 4; ++s) {
        const bool covered = inside(x + 0.5, y + 0.5) && s != 2;
        ASSERT_EQ(!scene.is_clear(x, y, s), covered);
        if (!covered) continue;
        ASSERT_EQ(scene.word(x, y, 0, s), 0xbu);
      }
}

TEST(Multisample, OcclusionCountsSamples) {
  Scene scene(64, 64, 32, true);
  const GpuAddr counter = scene.test().put(std::vector<uint32_t>{0xfffffff0});  // wraps
  ProgramBuilder fs;
  fs.store(10);
  draw::Draw& draw = scene.add_draw(3, test_triangle(), fs, 2);
  draw.state.cfg.oversample = 1;
  draw.state.occlusion_counter = counter;
  ASSERT_TRUE(scene.render()) << scene.error();
  uint32_t samples = 0;
  for (uint32_t y = 0; y < 64; ++y)
    for (uint32_t x = 0; x < 64; ++x) samples += static_cast<uint32_t>(std::popcount(covered_samples(x, y)));
  EXPECT_EQ(scene.test().memory().load<uint32_t>(counter), 0xfffffff0u + samples);
}

}  // namespace
}  // namespace v3d::pse
