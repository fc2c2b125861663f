/// Speed of the rasteriser with the fragment stage behind it: time per frame of 800 x 600 pixels.

#include <benchmark/benchmark.h>

#include <random>

#include "tests/pse/scene.h"

namespace v3d::pse {
namespace {

constexpr uint32_t kWidth = 800, kHeight = 600;

/// Triangles of about `size` pixels' side from the left to the right and from the top to the bottom,
/// `varyings` smooth components.
std::vector<SceneVertex> triangles(int count, double size, int varyings) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> d(-size, size);
  const int columns = static_cast<int>(std::sqrt(count * 4.0 / 3.0));
  std::vector<SceneVertex> vertices;
  for (int i = 0; i < count; ++i) {
    const int column = i % columns, row = i / columns;
    const double cx = column * double{kWidth} / columns, cy = row * double{kWidth} / columns;
    for (int k = 0; k < 3; ++k) {
      SceneVertex v{cx + d(random), cy + d(random)};
      for (int c = 0; c < varyings; ++c) v.words.push_back(bits(static_cast<float>(c + k)));
      vertices.push_back(v);
    }
  }
  return vertices;
}

std::vector<SceneVertex> full_screen(int layers, int varyings) {
  std::vector<SceneVertex> vertices;
  for (int i = 0; i < layers; ++i)
    for (const auto& at : {std::pair{-10.0, -10.0}, {2000.0, -10.0}, {-10.0, 2000.0}}) {
      SceneVertex v{at.first, at.second};
      for (int c = 0; c < varyings; ++c) v.words.push_back(bits(static_cast<float>(c)));
      vertices.push_back(v);
    }
  return vertices;
}

/// @param fails  every fragment fails the depth test, so that no program runs
void run(benchmark::State& state, const std::vector<SceneVertex>& vertices, uint8_t varyings, bool fails) {
  Scene scene(kWidth, kHeight, 64);
  ProgramBuilder fs;
  for (uint8_t i = 0; i < varyings; ++i) fs.varying(static_cast<uint8_t>(10 + i));
  fs.store(10);
  draw::Draw& draw = scene.add_draw(3, vertices, fs, varyings);
  if (fails) draw.state.cfg.depth_func = Compare::kNever;
  scene.list_everything();
  scene.prepare();
  for (auto _ : state) scene.render_tiles();
}

void BM_FullScreenCoverageAndTest(benchmark::State& s) { run(s, full_screen(10, 0), 0, true); }
void BM_FullScreenProgram(benchmark::State& s) { run(s, full_screen(10, 4), 4, false); }
void BM_FullScreenProgramWithoutVaryings(benchmark::State& s) { run(s, full_screen(10, 0), 0, false); }
void BM_SmallTrianglesCoverageAndTest(benchmark::State& s) { run(s, triangles(20000, 4, 0), 0, true); }
void BM_SmallTrianglesProgram(benchmark::State& s) { run(s, triangles(20000, 4, 8), 8, false); }
void BM_MiddleTrianglesProgram(benchmark::State& s) { run(s, triangles(1000, 30, 8), 8, false); }
BENCHMARK(BM_FullScreenCoverageAndTest)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_FullScreenProgram)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_FullScreenProgramWithoutVaryings)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_SmallTrianglesCoverageAndTest)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_SmallTrianglesProgram)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_MiddleTrianglesProgram)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace v3d::pse

BENCHMARK_MAIN();
