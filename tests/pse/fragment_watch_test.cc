#include "gpu/pse/fragment_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gpu/base/work_watch.h"
#include "tests/pse/scene.h"

namespace v3d::pse {
namespace {

using testing::ElementsAre;

/// Writes down what happens to one pixel.
class PixelDiary final : public TileWatch, public FragmentWatch {
 public:
  PixelDiary(uint32_t x, uint32_t y) : x_(x), y_(y) {}
  std::vector<std::string> lines;

  qpu::ThreadWatch* threads() override { return nullptr; }
  void moved(bool, bool, uint64_t) override {}
  void list(const std::vector<draw::ListEntry>&, const draw::BinResult&) override {}
  void begin_draw(uint32_t draw, const perf::Counts&) override { draw_ = draw; }
  void end_draw(const perf::Counts&) override {}
  FragmentWatch* fragments() override { return this; }

  void arrive(const WatchedBatch& batch) override { look("arrive", batch); }
  void tested(const WatchedBatch& batch) override { look("tested", batch); }
  void start(const WatchedBatch& batch, int) override {
    batch_ = &batch.batch;
    tile_ = &batch.tile;
    look("start", batch);
  }
  void before(const TileAccess& access) override { note("before", access); }
  void after(const TileAccess& access) override { note("after", access); }
  void end(const Lanes&) override {}

 private:
  void look(const char* what, const WatchedBatch& batch) {
    for (int lane = 0; lane < 4 * batch.num_quads; ++lane) {
      if (batch.batch.x[lane] != x_ || batch.batch.y[lane] != y_) continue;
      const auto primitive = batch.of[static_cast<size_t>(lane / 4)] - batch.draw.primitives.data();
      lines.push_back(
          absl::StrCat(what, " ", draw_, ".", primitive, " coverage ", batch.batch.coverage[lane]));
    }
  }
  void note(const char* what, const TileAccess& access) {
    for (int lane = 0; lane < kLanes; ++lane)
      if (batch_->x[lane] == x_ && batch_->y[lane] == y_ && batch_->coverage[lane] != 0)
        lines.push_back(absl::StrCat(what, " ", std::bit_cast<float>(access.words[0][lane]), ": ",
                                     std::bit_cast<float>(tile_->sample(x_, y_, 0).colors[0][0])));
  }

  const uint32_t x_, y_;
  uint32_t draw_ = 0;
  const tlb::FragmentBatch* batch_ = nullptr;
  tlb::TileBuffer* tile_ = nullptr;
};

std::vector<SceneVertex> everywhere(float z, float color) {
  const std::vector<uint32_t> words(4, bits(color));
  return {{-10, -10, z, 1, words}, {300, -10, z, 1, words}, {-10, 300, z, 1, words}};
}

/// A near triangle, one behind it, and one in front of both, where smaller depths pass.
void add_three(Scene& scene) {
  ProgramBuilder fs;
  for (uint8_t i = 0; i < 4; ++i) fs.varying(10 + i);
  fs.store(10);
  const draw::ShaderCode code = fs.build(&scene.test());
  const float depths[] = {0.5f, 0.75f, 0.25f}, colors[] = {2, 4, 8};
  for (size_t n = 0; n < 3; ++n) {
    draw::Draw& draw = scene.add_draw(3, everywhere(depths[n], colors[n]), code, 4);
    draw.state.cfg.depth_func = Compare::kLess;
    draw.state.cfg.z_write = true;
  }
}

TEST(FragmentWatch, HearsOfTestsAndWritesInOrder) {
  Scene scene;
  add_three(scene);
  PixelDiary diary(5, 6);
  scene.test().job().tile = &diary;
  ASSERT_TRUE(scene.render()) << scene.error();
  EXPECT_THAT(diary.lines,
              ElementsAre("arrive 0.0 coverage 1", "tested 0.0 coverage 1", "start 0.0 coverage 1",
                          testing::StartsWith("before 2: "), "after 2: 2", "arrive 1.0 coverage 1",
                          "tested 1.0 coverage 0", "arrive 2.0 coverage 1", "tested 2.0 coverage 1",
                          "start 2.0 coverage 1", "before 8: 2", "after 8: 8"));
}

TEST(FragmentWatch, ChangesNothing) {
  Scene plain, watched;
  add_three(plain);
  add_three(watched);
  PixelDiary diary(0, 0);
  watched.test().job().tile = &diary;
  ASSERT_TRUE(plain.render() && watched.render());
  for (uint32_t y = 0; y < 64; ++y)
    for (uint32_t x = 0; x < 64; ++x) ASSERT_EQ(plain.word(x, y, 0), watched.word(x, y, 0)) << x << " " << y;
}

/// Keeps the samples that are left after each access.
class SampleDiary final : public FragmentWatch {
 public:
  std::vector<uint32_t> lines;

  void arrive(const WatchedBatch&) override {}
  void tested(const WatchedBatch&) override {}
  void start(const WatchedBatch&, int) override {}
  void before(const TileAccess&) override {}
  void after(const TileAccess& access) override {
    lines.push_back(access.left != nullptr ? uint32_t{(*access.left)[0]} : ~0u);
  }
  void end(const Lanes&) override {}
};

/// A tile buffer whose tests leave sample 2.
class SampleTwo final : public qpu::vc4::Tlb {
 public:
  Lanes load_color(qpu::vc4::Thread&) override { return Lanes{}; }
  void write_color(qpu::vc4::Thread&, const Lanes&, LaneMask, bool) override {}
  void write_z(qpu::vc4::Thread& thread, const Lanes&, LaneMask) override {
    thread.ms_flags = thread.ms_flags & 4u;
  }
  void set_stencil(qpu::vc4::Thread&, uint32_t) override {}
};

// Tests of VideoCore IV, for which the program asks, narrow the flags of the thread, and leave the batch.
TEST(FragmentWatch, IsToldWhatTestsOfVideoCoreIvLeave) {
  SampleTwo tile;
  SampleDiary diary;
  WatchedVc4Port port(tile, diary);
  const auto thread = std::make_unique<qpu::vc4::Thread>();
  thread->ms_flags = splat(15u);
  port.write_z(*thread, Lanes{}, kAllLanes);
  port.write_color(*thread, Lanes{}, kAllLanes, true);
  EXPECT_THAT(diary.lines, ElementsAre(4u, ~0u));
}

}  // namespace
}  // namespace v3d::pse
