/// Which jobs a capture of some frames takes.

#include "daemon/capture_window.h"

#include <gtest/gtest.h>

#include "tests/cle/packet_writer.h"

namespace v3d::daemon {
namespace {

using Target = FrameCounter::Target;

TEST(CaptureWindowTest, FramesAreReadOrRefused) {
  const auto one = CaptureFrames::parse("7"), some = CaptureFrames::parse("2-30");
  ASSERT_TRUE(one && some);
  EXPECT_EQ(one->first, 7u);
  EXPECT_EQ(one->last, 7u);
  EXPECT_EQ(some->first, 2u);
  EXPECT_EQ(some->last, 30u);
  for (const char* wrong : {"", "0", "3-2", "-2", "2-", "a-b", "1-2-3", "1 - x"})
    EXPECT_FALSE(CaptureFrames::parse(wrong)) << wrong;
}

TEST(CaptureWindowTest, IsOpenForItsFramesBetweenTriggers) {
  CaptureWindow always({2, 3}, true);
  EXPECT_FALSE(always.takes(1));
  EXPECT_TRUE(always.takes(2));
  EXPECT_TRUE(always.takes(3));
  EXPECT_FALSE(always.takes(4));
  CaptureWindow triggered({}, false);
  EXPECT_FALSE(triggered.takes(5));
  EXPECT_TRUE(triggered.toggle());
  EXPECT_TRUE(triggered.takes(5));
  EXPECT_FALSE(triggered.toggle());
  EXPECT_FALSE(triggered.takes(5));
}

TEST(CaptureWindowTest, AFrameEndsWhereItsFirstKindOfImageIsDrawnAgain) {
  const Target shadow{1, 512, 512, 9, 0}, screen{2, 800, 600, 27, 1}, other_screen{3, 800, 600, 27, 1};
  FrameCounter frames;
  EXPECT_EQ(frames.current(), 1u);  // a copy before the first draw
  EXPECT_EQ(frames.draw({shadow}), 1u);
  EXPECT_EQ(frames.draw({}), 1u);
  EXPECT_EQ(frames.draw({screen}), 1u);
  EXPECT_EQ(frames.draw({screen}), 1u);  // more than one pass to the screen
  EXPECT_EQ(frames.current(), 1u);
  EXPECT_EQ(frames.draw({shadow}), 2u);
  EXPECT_EQ(frames.draw({other_screen}), 2u);
  EXPECT_EQ(frames.draw({shadow, screen}), 2u);
  EXPECT_EQ(frames.draw({shadow}), 3u);
}

/// A list of tiles that stores one image at each address.
void add_tile_list(cle::PacketWriter* list, TestJob* test, const std::vector<GpuAddr>& addresses) {
  cle::PacketWriter tiles;
  for (const GpuAddr address : addresses)
    tiles.packet("Store Tile Buffer General", {{"Buffer to Store", 0}, {"Address", address}});
  tiles.packet("End of Tile Marker").packet("Return from sub-list");
  const GpuAddr start = tiles.build(test);
  list->packet("Start Address of Generic Tile List", {{"start", start}, {"end", start + tiles.size()}});
}

std::vector<GpuAddr> addresses_of(cle::PacketWriter* list, TestJob* test) {
  device::ClJob job = {};
  list->packet("End of rendering");
  job.rcl_start = list->build(test);
  job.rcl_end = job.rcl_start + list->size();
  std::vector<GpuAddr> addresses;
  for (const Target& target : targets_of(test->memory(), chip::Generation::k71, job))
    addresses.push_back(target.address);
  return addresses;
}

// A job's list may name as many as it has room for, and is looked at while no other job runs.
TEST(CaptureWindowTest, OfAListSoManyImagesAreLookedAt) {
  TestJob test;
  cle::PacketWriter list;
  for (GpuAddr first = 0; first < 3 * kMostTargets; first += 40) {
    std::vector<GpuAddr> addresses;
    for (GpuAddr i = 0; i < 40; ++i) addresses.push_back((first + i) * 4096);
    add_tile_list(&list, &test, addresses);
  }
  const std::vector<GpuAddr> found = addresses_of(&list, &test);
  ASSERT_EQ(found.size(), kMostTargets);
  for (GpuAddr i = 0; i < kMostTargets; ++i) EXPECT_EQ(found[i], i * 4096);
}

TEST(CaptureWindowTest, AndSoManyTileLists) {
  for (const uint32_t lists : {kMostTileLists - 1, kMostTileLists}) {
    TestJob test;
    cle::PacketWriter list;
    for (uint32_t i = 0; i < lists; ++i) add_tile_list(&list, &test, {4096});
    add_tile_list(&list, &test, {8192});
    EXPECT_EQ(addresses_of(&list, &test).size(), lists < kMostTileLists ? 2u : 1u) << lists;
  }
}

}  // namespace
}  // namespace v3d::daemon
