// Jobs of which more happens to a pixel than anybody reads.
#include "tools/inspect/pixel_history.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>

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
  void set_frame(uint32_t size) {
    tlb::Config config;
    config.width = config.height = size;
    config.targets[0].used = true;
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
