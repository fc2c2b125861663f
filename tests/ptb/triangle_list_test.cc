#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <tuple>

#include "gpu/ptb/binner.h"
#include "gpu/qpu/run/program_cache.h"
#include "tests/qpu/engine.h"
#include "tests/vpm/shader_builder.h"
#include "tests/vpm/test_job.h"

namespace v3d::ptb {
namespace {

constexpr uint32_t kFrame = 256, kHalf = kFrame / 2;

/// A job with a program cache, and a draw of triangles whose coordinate program copies what is in memory.
struct ListScene : TestJob {
  explicit ListScene(int workers)
      : TestJob(chip::default_profile(), workers),
        programs(chip::default_profile().generation, qpu::compiler_of_tests()) {
    job().programs = &programs;
  }

  void make(std::mt19937& random, uint32_t triangles) {
    state = {};
    state.cfg.draw_front = random() % 4 != 0;
    state.cfg.draw_back = random() % 4 != 0;
    state.cfg.clockwise = random() % 2;
    state.cfg.provoking_first = random() % 2;
    state.xy_half_width = state.xy_half_height = kHalf * 64;
    state.viewport_x = state.viewport_y = kHalf * 256;
    state.clip_left = static_cast<uint16_t>(random() % 64);
    state.clip_width = static_cast<uint16_t>(random() % 8 != 0 ? kFrame : 0);
    state.clip_height = kFrame;
    constexpr uint32_t kBefore = 5;
    call = {};
    call.mode = draw::Mode::kTriangles;
    call.count = 3 * triangles + static_cast<uint32_t>(random() % 3);
    call.first_vertex = kBefore;
    std::vector<float> positions;
    std::normal_distribution<float> middle(0, 0.7f), side(0, 0.05f);
    float x = 0, y = 0;
    for (uint32_t v = 0; v < call.count + kBefore; ++v) {
      if (v % 3 == kBefore % 3) std::tie(x, y) = std::pair(middle(random), middle(random));
      const float w = random() % 64 == 0 ? middle(random) : 1.0f, dx = x + side(random),
                  dy = y + side(random);
      const auto screen = [](float at) {
        return std::bit_cast<float>(static_cast<int32_t>(std::clamp(at * kHalf * 64, -2e9f, 2e9f)));
      };
      const float z = random() % 256 == 0 ? NAN : 0.5f;
      positions.insert(positions.end(),
                       {dx, dy, z, w, screen(w != 0 ? dx / w : 0), screen(w != 0 ? dy / w : 0), 0, 0});
    }
    const GpuAddr address = put(positions);
    auto made = std::make_shared<draw::ShaderRecord>();
    made->clipping = true;
    made->num_attributes = 2;
    for (uint32_t i = 0; i < 2; ++i)
      made->attributes[i] = {.address = address + 16 * i,
                             .vec_size = 4,
                             .type = 2,
                             .cs_words = 4,
                             .vs_words = 4,
                             .stride = 32,
                             .max_index = call.count + kBefore - 1};
    made->cs_output_sectors = made->vs_output_sectors = 1;
    made->cs = made->vs = ShaderBuilder(job().profile->generation).copy_rows(8).build(this);
    record = std::move(made);
  }

  /// @param call  of the draw, or of one that is equal
  std::shared_ptr<draw::BinResult> bin(const draw::DrawCall& of) {
    Binner binner(job());
    binner.set_frame({.width = kFrame, .height = kFrame, .tile_width = 32, .tile_height = 32});
    binner.draw(state, of, record);
    return binner.finish();
  }
  /// The same vertices by their indices, which is no list.
  draw::DrawCall indexed() {
    std::vector<uint32_t> indices(call.count);
    for (uint32_t i = 0; i < call.count; ++i) indices[i] = call.first_vertex + i;
    draw::DrawCall other = call;
    other.indexed = true;
    other.index_size = 4;
    other.index_buffer = put(indices);
    other.index_buffer_size = 4 * call.count;
    return other;
  }

  qpu::ProgramCache programs;
  draw::DrawState state;
  draw::DrawCall call;
  std::shared_ptr<draw::ShaderRecord> record;
};

void expect_same(const draw::Draw& got, const draw::Draw& want) {
  const auto words_of = [](const draw::Primitive& p) {
    return std::tuple(p.vertex[0], p.vertex[1], p.vertex[2], p.provoking, p.primitive_id, p.clipped,
                      p.back_facing);
  };
  ASSERT_EQ(got.primitives.size(), want.primitives.size());
  for (size_t i = 0; i < want.primitives.size(); ++i)
    ASSERT_EQ(words_of(got.primitives[i]), words_of(want.primitives[i])) << i;
  ASSERT_EQ(got.vertices.size(), want.vertices.size());
  for (size_t i = 0; i < want.vertices.size(); ++i) {
    ASSERT_EQ(got.vertices[i].index, want.vertices[i].index) << i;
    ASSERT_EQ(got.vertices[i].instance, want.vertices[i].instance) << i;
  }
  ASSERT_EQ(got.clipped.size(), want.clipped.size());
  for (size_t i = 0; i < want.clipped.size(); ++i)
    ASSERT_EQ(got.clipped[i].num_corners, want.clipped[i].num_corners) << i;
}

/// Triangles of a list are shaded and binned 16 at a time, in parts; those with indices piece by piece.
TEST(TriangleList, IsBinnedAsTrianglesWithIndices) {
  std::mt19937 random(43);
  size_t kept = 0, clipped = 0;
  for (const int workers : {0, 3}) {
    for (const uint32_t triangles : {1u, 15u, 16u, 17u, 600u, 3000u, 30000u}) {
      ListScene scene(workers);
      scene.make(random, triangles);
      const std::shared_ptr<draw::BinResult> want = scene.bin(scene.indexed());
      const perf::Counts by_index = scene.counts();
      const std::shared_ptr<draw::BinResult> got = scene.bin(scene.call);
      perf::Counts twice = by_index;
      twice.add(by_index);
      EXPECT_EQ(scene.counts().values, twice.values) << triangles;
      ASSERT_EQ(scene.error(), "");
      ASSERT_EQ(got->tiles, want->tiles) << triangles;
      ASSERT_EQ(got->draws.size(), want->draws.size());
      for (size_t d = 0; d < want->draws.size(); ++d) {
        expect_same(got->draws[d], want->draws[d]);
        kept += got->draws[d].primitives.size();
        clipped += got->draws[d].clipped.size();
      }
    }
  }
  EXPECT_GT(kept, 5000u);
  EXPECT_GT(clipped, 100u);
}

TEST(TriangleList, EndsSoonWhenTheJobIsCancelled) {
  std::mt19937 random(44);
  ListScene scene(3);
  scene.make(random, 30000);
  scene.cancel() = true;
  EXPECT_TRUE(scene.bin(scene.call)->draws.empty());
  EXPECT_EQ(scene.error(), "");
}

}  // namespace
}  // namespace v3d::ptb
