// How much of the log one client may fill.
#include "gpu/base/log_limiter.h"

#include <gtest/gtest.h>

namespace v3d {
namespace {

class LogLimiterTest : public testing::Test {
 protected:
  /// How many of so many lines are written.
  int write(const LogClient& client, const char* kind, int lines) {
    int written = 0;
    for (int i = 0; i < lines; ++i) written += limiter_.admit(client, kind, now_, &left_out_);
    return written;
  }

  static constexpr char kFault[] = "fault at %x", kHang[] = "hang";
  static constexpr int kLines = LogLimiter::kLines;
  const LogClient first_{1, "first"}, second_{2, "second"};
  LogLimiter limiter_;
  int64_t now_ = 1'000'000;
  std::vector<LogLimiter::LeftOut> left_out_;
};

TEST_F(LogLimiterTest, WritesTheFirstLinesOfAWindow) {
  EXPECT_EQ(write(first_, kFault, 100), kLines);
  now_ += LogLimiter::kWindowNs - 1;
  EXPECT_EQ(write(first_, kFault, 100), 0);
  EXPECT_TRUE(left_out_.empty());
}

TEST_F(LogLimiterTest, CountsWhatAWindowLeftOut) {
  write(first_, kFault, kLines + 7);
  now_ += LogLimiter::kWindowNs;
  EXPECT_EQ(write(first_, kFault, 100), kLines);
  ASSERT_EQ(left_out_.size(), 1u);
  EXPECT_EQ(left_out_[0].client, "first");
  EXPECT_EQ(left_out_[0].kind, kFault);
  EXPECT_EQ(left_out_[0].lines, 7u);
}

TEST_F(LogLimiterTest, OneClientDoesNotSilenceAnother) {
  write(first_, kFault, 100);
  EXPECT_EQ(write(second_, kFault, 100), kLines);
}

TEST_F(LogLimiterTest, OneKindDoesNotSilenceAnother) {
  write(first_, kFault, 100);
  EXPECT_EQ(write(first_, kHang, 100), kLines);
}

TEST_F(LogLimiterTest, EndedWindowsReportWithoutAnotherLine) {
  write(first_, kFault, kLines + 1);
  write(second_, kHang, kLines);
  limiter_.end_windows(now_ + LogLimiter::kWindowNs - 1, &left_out_);
  EXPECT_TRUE(left_out_.empty());
  limiter_.end_windows(now_ + LogLimiter::kWindowNs, &left_out_);
  EXPECT_EQ(left_out_.size(), 1u);
  limiter_.end_windows(now_ + LogLimiter::kWindowNs, &left_out_);
  EXPECT_EQ(left_out_.size(), 1u);  // once
}

TEST_F(LogLimiterTest, AClientThatLeavesReportsAndGainsNothing) {
  write(first_, kFault, kLines + 3);
  write(second_, kFault, kLines + 4);
  limiter_.leave(1, &left_out_);
  ASSERT_EQ(left_out_.size(), 1u);
  EXPECT_EQ(left_out_[0].lines, 3u);
  EXPECT_EQ(write(first_, kFault, 100), 0);
}

TEST_F(LogLimiterTest, OfWhoComesAndGoesIsToldOnceInAWindow) {
  for (int turn = 0; turn < 50; ++turn) {
    write(first_, kFault, kLines);
    limiter_.leave(1, &left_out_);
  }
  ASSERT_EQ(left_out_.size(), 1u);
  now_ += LogLimiter::kWindowNs;
  limiter_.end_windows(now_, &left_out_);
  ASSERT_EQ(left_out_.size(), 2u);
  EXPECT_EQ(left_out_[0].lines + left_out_[1].lines, uint64_t{49 * kLines});
}

}  // namespace
}  // namespace v3d
