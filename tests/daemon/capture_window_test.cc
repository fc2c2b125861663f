/// Which jobs a capture of some frames takes.

#include "daemon/capture_window.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace v3d::daemon
