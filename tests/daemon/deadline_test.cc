#include "daemon/deadline.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>

namespace v3d::daemon {
namespace {

using std::chrono::milliseconds;

TEST(DeadlineTest, AbandonsWhatHasNotEndedByThen) {
  std::atomic<int> abandoned{0};
  {
    Deadline deadline(milliseconds(1), [&] { ++abandoned; });
    usleep(50'000);
    EXPECT_EQ(abandoned, 0);  // it has not begun
    deadline.start();
    deadline.start();
    for (int i = 0; i < 2000 && !abandoned; ++i) usleep(5000);
  }
  EXPECT_EQ(abandoned, 1);
}

TEST(DeadlineTest, IsOverWithItsOwner) {
  std::atomic<int> abandoned{0};
  {
    const Deadline never_started(milliseconds(1), [&] { ++abandoned; });
  }
  {
    Deadline deadline(milliseconds(3'600'000), [&] { ++abandoned; });
    deadline.start();
  }
  EXPECT_EQ(abandoned, 0);
}

}  // namespace
}  // namespace v3d::daemon
