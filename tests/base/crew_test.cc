#include "gpu/base/crew.h"

#include <gtest/gtest.h>

#include <condition_variable>

namespace v3d {
namespace {

TEST(Crew, WhoLeavesIsCountedNoMoreAndJoined) {
  std::mutex mutex;
  std::condition_variable changed;
  int may_leave = 3, ended = 0;
  bool stop = false;
  Crew crew;
  const auto body = [&] {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return may_leave > 0 || stop; });
    ++ended;
    changed.notify_all();
    if (stop) return;
    --may_leave;
    crew.leave();
  };
  std::unique_lock lock(mutex);
  for (int i = 0; i < 8; ++i) crew.start(body);
  EXPECT_EQ(crew.size(), 8u);
  changed.wait(lock, [&] { return ended == 3; });
  EXPECT_EQ(crew.size(), 5u);
  crew.start(body);
  EXPECT_EQ(crew.size(), 6u);
  stop = true;
  changed.notify_all();
  lock.unlock();
  crew.join(mutex);
  EXPECT_EQ(crew.size(), 0u);
  EXPECT_EQ(ended, 9);
}

}  // namespace
}  // namespace v3d
