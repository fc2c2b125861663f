#include "daemon/rest.h"

#include <gtest/gtest.h>

namespace v3d::daemon {
namespace {

constexpr int64_t kSecond = Rest::kPeriodNs;

TEST(RestTest, IsDueOnceASecond) {
  Rest rest;
  EXPECT_TRUE(rest.is_due(kSecond));
  rest.look(kSecond, 0, false);
  EXPECT_FALSE(rest.is_due(2 * kSecond - 1));
  EXPECT_TRUE(rest.is_due(2 * kSecond));
}

TEST(RestTest, WhoWorksKeepsMemory) {
  Rest rest;
  for (uint64_t n = 1; n < 10; ++n)
    EXPECT_FALSE(rest.look(static_cast<int64_t>(n) * kSecond, 100 * n, false));
}

TEST(RestTest, WhoRestsGivesItBackOnce) {
  Rest rest;
  EXPECT_FALSE(rest.look(kSecond, 100, false));
  EXPECT_TRUE(rest.look(2 * kSecond, 100, false));
  EXPECT_FALSE(rest.look(3 * kSecond, 100, false));
  EXPECT_FALSE(rest.look(4 * kSecond, 101, false));
  EXPECT_TRUE(rest.look(5 * kSecond, 101, false));
}

TEST(RestTest, WhoLeavesGivesItBackThoughOthersWork) {
  Rest rest;
  EXPECT_FALSE(rest.look(kSecond, 100, false));
  EXPECT_TRUE(rest.look(2 * kSecond, 200, true));
  EXPECT_FALSE(rest.look(3 * kSecond, 300, false));
}

}  // namespace
}  // namespace v3d::daemon
