#include "tools/xproxy/clock.h"

#include <gtest/gtest.h>

namespace v3d::xproxy {
namespace {

constexpr int64_t kStart = 5'000'000'000, kSecond = 1'000'000'000;

TEST(Clock, CountsFramesOfASecond) {
  const Clock clock(60, kStart);
  EXPECT_EQ(clock.msc(kStart - 1), 0u);
  EXPECT_EQ(clock.msc(kStart), 0u);
  EXPECT_EQ(clock.msc(kStart + kSecond), 60u);
  EXPECT_EQ(clock.msc(kStart + 3600 * kSecond), 216000u);
}

TEST(Clock, AFrameHasComeWhenItBegins) {
  for (const double hz : {60.0, 59.94, 24.0, 1000.0}) {
    const Clock clock(hz, kStart);
    for (uint64_t msc = 1; msc < 100000; msc += 37) {
      const int64_t when = clock.when_ns(msc, 0);
      // Within the rounding of a double.
      EXPECT_LT(clock.msc(when - 1000), msc);
      EXPECT_GE(clock.msc(when + 1000), msc);
    }
  }
}

TEST(Clock, FramesThatNeverComeDoNotOverflow) {
  const Clock clock(60, kStart);
  EXPECT_GT(clock.when_ns(~uint64_t{0}, kStart), kStart + kSecond * 86400 * 365 * 50);
}

TEST(Clock, AFreeOneFollowsWhatIsShown) {
  Clock clock(0, kStart);
  EXPECT_TRUE(clock.is_free());
  EXPECT_EQ(clock.msc(kStart + kSecond), 0u);
  clock.advance(7);
  clock.advance(3);
  EXPECT_EQ(clock.msc(kStart), 7u);
  EXPECT_EQ(clock.when_ns(100, kStart), kStart);
}

TEST(Clock, ChoosesTheFrameAsPresentSays) {
  constexpr bool kAsync = true, kInTime = false;
  EXPECT_EQ(Clock::choose(10, 15, 0, 0, kInTime), 15u);
  EXPECT_EQ(Clock::choose(10, 10, 0, 0, kInTime), 11u);
  EXPECT_EQ(Clock::choose(10, 0, 0, 0, kInTime), 11u);
  EXPECT_EQ(Clock::choose(10, 0, 0, 0, kAsync), 10u);
  EXPECT_EQ(Clock::choose(10, 15, 0, 0, kAsync), 15u);
  EXPECT_EQ(Clock::choose(10, 0, 4, 1, kInTime), 13u);
  EXPECT_EQ(Clock::choose(10, 0, 4, 2, kInTime), 14u);
  EXPECT_EQ(Clock::choose(10, 0, 4, 2, kAsync), 10u);
  EXPECT_EQ(Clock::choose(10, 0, 4, 3, kAsync), 11u);
  EXPECT_EQ(Clock::choose(10, 12, 4, 3, kInTime), 12u);
}

}  // namespace
}  // namespace v3d::xproxy
