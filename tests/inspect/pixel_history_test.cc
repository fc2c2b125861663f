// Jobs of which more happens to a pixel than anybody reads.
#include "tools/inspect/pixel_history.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "gpu/base/work_watch.h"
#include "gpu/cle/render_list.h"
#include "gpu/draw/bin_result.h"
#include "gpu/mmu/address_space.h"
#include "gpu/pse/fragment_watch.h"
#include "gpu/tlb/tile_buffer.h"
#include "tools/inspect/tile_pictures.h"

namespace v3d::inspect {
namespace {

class InspectedTileTest : public testing::Test {
 protected:
  InspectedTileTest() { set_frame(64); }
  /// A frame that holds one value everywhere.
  void set_frame(uint32_t size, uint32_t value = 0) {
    tlb::Config config;
    config.width = config.height = size;
    config.targets[0].used = true;
    config.targets[0].clear[0] = value;
    ASSERT_TRUE(tile_.configure(config));
    tile_.begin_tile(0, 0);
  }

  const std::unique_ptr<mmu::AddressSpace> space_ = *mmu::AddressSpace::create();
  tlb::TileBuffer tile_{space_->memory()};
};

TEST_F(InspectedTileTest, HistoriesOfManyCommandsAreCut) {
  PixelHistory history(nullptr, 0, 3, 4, 0);
  history.add_tiles({0}, 1);
  TileWatch& watch = history.begin_tile(0, 0, 0, 0);
  const cle::TileCommand clear = {.kind = cle::TileCommand::Kind::kClear, .clear_colors = true};
  for (size_t i = 0; i < PixelHistory::kMostCommands + 10; ++i) {
    EXPECT_EQ(history.is_cut(), i >= PixelHistory::kMostCommands);  // of which one is where the tile begins
    watch.before(clear, tile_);
    watch.after(clear, tile_);
  }
  EXPECT_EQ(history.events().size(), PixelHistory::kMostCommands);
}

TEST_F(InspectedTileTest, HistoriesOfManyAccessesAreCut) {
  PixelHistory history(nullptr, 0, 3, 4, 0);
  history.add_tiles({0}, 1);
  pse::FragmentWatch& watch = *history.begin_tile(0, 0, 0, 0).fragments();
  draw::Draw draw;
  draw.primitives.resize(1);
  tlb::FragmentBatch batch = {};
  batch.x[2] = 3;
  batch.y[2] = 4;
  batch.coverage[2] = 1;
  const pse::WatchedBatch watched = {
      .draw = draw, .tile = tile_, .batch = batch, .num_quads = 1, .of = {draw.primitives.data()}};
  watch.arrive(watched);
  watch.start(watched, -1);
  const Lanes words[4] = {};
  const pse::TileAccess access = {.kind = pse::TileAccess::Kind::kColor, .spec = {}, .words = words};
  for (size_t i = 0; i < PixelHistory::kMostAccesses + 10; ++i) {
    EXPECT_EQ(history.is_cut(), i > PixelHistory::kMostAccesses);
    watch.before(access);
    watch.after(access);
  }
  watch.end(Lanes{});
  ASSERT_EQ(history.events().size(), 1u);
  ASSERT_EQ(history.events()[0].runs.size(), 1u);
  EXPECT_EQ(history.events()[0].runs[0].accesses.size(), PixelHistory::kMostAccesses);
}

/// Fragments of one pixel, each of a primitive and a batch of its own, as the early tests have them.
class FragmentsTest : public InspectedTileTest {
 protected:
  FragmentsTest() {
    history_.add_tiles({0}, 1);
    watch_ = history_.begin_tile(0, 0, 0, 0).fragments();
    draw_.primitives.resize(4);
  }
  void arrive(size_t primitive, uint32_t coverage, bool passes) {
    tlb::FragmentBatch& batch = batches_[primitive] = tlb::FragmentBatch{};
    batch.x[2] = 3;
    batch.y[2] = 4;
    batch.coverage[2] = coverage;
    watch_->arrive(watched(primitive));
    if (!passes) batch.coverage[2] = 0;
    watch_->tested(watched(primitive));
  }
  /// Its program writes, and the tile holds the value then.
  void run(size_t primitive, uint32_t value) {
    watch_->start(watched(primitive), -1);
    const Lanes words[4] = {};
    const pse::TileAccess access = {.kind = pse::TileAccess::Kind::kColor, .spec = {}, .words = words};
    watch_->before(access);
    set_frame(64, value);
    watch_->after(access);
    watch_->end(Lanes{});
  }
  pse::WatchedBatch watched(size_t primitive) {
    return {.draw = draw_,
            .tile = tile_,
            .batch = batches_[primitive],
            .num_quads = 1,
            .of = {draw_.primitives.data() + primitive}};
  }

  PixelHistory history_{nullptr, 0, 3, 4, 0};
  pse::FragmentWatch* watch_ = nullptr;
  draw::Draw draw_;
  std::array<tlb::FragmentBatch, 4> batches_{};
};

// Fragments that have passed their tests wait for others, with which their program runs.
TEST_F(FragmentsTest, BeginWithWhatThoseBeforeThemHaveLeft) {
  set_frame(64, 1);
  arrive(0, 1, true);
  arrive(1, 1, false);
  arrive(2, 1, true);
  arrive(3, 2, true);  // of another sample
  run(0, 5);
  run(2, 7);
  run(3, 7);
  const std::vector<PixelEvent> events = history_.take();
  ASSERT_EQ(events.size(), 4u);
  const uint32_t before[] = {1, 5, 5, 7}, after[] = {5, 5, 7, 7};
  for (size_t n = 0; n < 4; ++n) {
    EXPECT_EQ(events[n].before.colors[0][0], before[n]) << n;
    EXPECT_EQ(events[n].after.colors[0][0], after[n]) << n;
  }
}

TEST_F(InspectedTileTest, PicturesHaveTheSizeOfTheFirstFrame) {
  TilePictures pictures(0, 0, 0);
  pictures.add_tiles({0}, 1);
  cle::TileCommand store = {.kind = cle::TileCommand::Kind::kStore};
  store.transfer.buffer = 0;
  for (const uint32_t size : {16u, 64u}) {
    set_frame(size);
    pictures.begin_tile(0, 0, 0, 0).before(store, tile_);
  }
  const BufferPicture picture = pictures.take();
  EXPECT_EQ(picture.width, 16u);
  EXPECT_EQ(picture.pixels.size(), 16u * 16);
}

}  // namespace
}  // namespace v3d::inspect
