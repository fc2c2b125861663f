// Which boards, versions of Linux and sizes of memory go together.
#include "daemon/board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "daemon/gpus.h"

namespace v3d::daemon {
namespace {

using ::testing::HasSubstr;

uint32_t buffer_mib(const BoardNames& names) {
  const auto board = find_board(names);
  return board.ok() ? board->buffer_mib : ~0u;
}
std::string what_is_wrong(const BoardNames& names) {
  return std::string(find_board(names).status().message());
}

TEST(FindBoard, MemoryIsTheBoardsUnlessSomebodyAsks) {
  EXPECT_EQ(buffer_mib({}), 0u);
  EXPECT_EQ(buffer_mib({.device = "rpi3"}), 256u);
  EXPECT_EQ(buffer_mib({.device = "rpi0"}), 64u);
  EXPECT_EQ(buffer_mib({.device = "rpi0", .buffer_mib = "128"}), 128u);
}

TEST(FindBoard, MemoryIsOfWhatTheFirmwareLeaves) {
  EXPECT_EQ(buffer_mib({.device = "rpi3", .buffer_mib = "32"}), 32u);
  EXPECT_EQ(buffer_mib({.device = "rpi3", .buffer_mib = "948"}), 948u);
  for (const char* bad : {"31", "949", "-1", "0", "1e3", "64M", "4294967328"})
    EXPECT_THAT(what_is_wrong({.device = "rpi3", .buffer_mib = bad}),
                HasSubstr("the device rpi3 has from 32 to 948"))
        << bad;
  EXPECT_THAT(what_is_wrong({.device = "rpi1", .buffer_mib = "449"}), HasSubstr("from 32 to 448"));
}

TEST(FindBoard, BoardsWithoutMemoryOfTheirOwnRefuseASize) {
  for (const char* device : {"", "rpi5", "rpi4"})
    EXPECT_THAT(what_is_wrong({.device = device, .buffer_mib = "256"}), HasSubstr("rpi0 to rpi3 have"))
        << device;
}

TEST(FindBoard, MemoryIsWhatBuffersAreMadeOf) {
  const auto gpu = make_idle_gpu(*find_board({.device = "rpi3", .buffer_mib = "64"}));
  ASSERT_NE(gpu->vc4_board(), nullptr);
  EXPECT_EQ(gpu->vc4_board()->memory, uint64_t{64} << 20);
}

TEST(FindBoard, Linux61IsForTheDriverVc4) {
  EXPECT_TRUE(find_board({.device = "rpi2", .kernel = "6.1"}).ok());
  for (const char* device : {"", "rpi4"})
    EXPECT_THAT(what_is_wrong({.device = device, .kernel = "6.1"}), HasSubstr("rpi0 to rpi3")) << device;
}

}  // namespace
}  // namespace v3d::daemon
