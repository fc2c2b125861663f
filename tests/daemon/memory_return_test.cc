#include "daemon/memory_return.h"

#include <gtest/gtest.h>

namespace v3d::daemon {
namespace {

constexpr int64_t kSecond = MemoryReturn::kPeriodNs;

TEST(MemoryReturn, IsDueOnceASecond) {
  MemoryReturn memory;
  EXPECT_TRUE(memory.is_due(kSecond));
  memory.look(kSecond, 0, false);
  EXPECT_FALSE(memory.is_due(2 * kSecond - 1));
  EXPECT_TRUE(memory.is_due(2 * kSecond));
}

TEST(MemoryReturn, WhoWorksKeepsMemory) {
  MemoryReturn memory;
  for (uint64_t n = 1; n < 10; ++n)
    EXPECT_FALSE(memory.look(static_cast<int64_t>(n) * kSecond, 100 * n, false));
}

TEST(MemoryReturn, WhoDoesNothingGivesItBackOnce) {
  MemoryReturn memory;
  EXPECT_FALSE(memory.look(kSecond, 100, false));
  EXPECT_TRUE(memory.look(2 * kSecond, 100, false));
  EXPECT_FALSE(memory.look(3 * kSecond, 100, false));
  EXPECT_FALSE(memory.look(4 * kSecond, 101, false));
  EXPECT_TRUE(memory.look(5 * kSecond, 101, false));
}

TEST(MemoryReturn, WhoLeavesGivesItBackThoughOthersWork) {
  MemoryReturn memory;
  EXPECT_FALSE(memory.look(kSecond, 100, false));
  EXPECT_TRUE(memory.look(2 * kSecond, 200, true));
  // What it had may be taken apart only now.
  for (unsigned n = 1; n <= MemoryReturn::kLooksAfterLeaving; ++n) {
    EXPECT_TRUE(memory.goes_back_again());
    EXPECT_EQ(memory.look((2 + n) * kSecond, 300 + n, false), n == 1 || n == 2 || n == 4 || n == 8) << n;
  }
  EXPECT_FALSE(memory.goes_back_again());
  EXPECT_FALSE(memory.look(20 * kSecond, 400, false));
}

}  // namespace
}  // namespace v3d::daemon
