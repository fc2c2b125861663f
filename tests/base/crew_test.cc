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

TEST(Idlers, ThoseThatNeverHadAnythingToDoAtOneTimeAreSuperfluous) {
  Idlers idlers(2);
  auto now = std::chrono::steady_clock::now();
  EXPECT_FALSE(idlers.is_superfluous(now));  // a period begins
  for (int i = 0; i < 8; ++i) idlers.begin();
  EXPECT_TRUE(idlers.is_spare());
  const auto have_something_to_do = [&] {
    for (int i = 0; i < 3; ++i) idlers.end();
    for (int i = 0; i < 3; ++i) idlers.begin();
  };
  now += Idlers::kPeriod;
  idlers.end();
  EXPECT_FALSE(idlers.is_superfluous(now));  // there were none at the time when it began
  idlers.begin();
  for (int i = 0; i < 3; ++i) have_something_to_do();
  now += Idlers::kPeriod;
  idlers.end();
  EXPECT_TRUE(idlers.is_superfluous(now));
  idlers.end();
  EXPECT_TRUE(idlers.is_superfluous(now));
  idlers.end();
  EXPECT_TRUE(idlers.is_superfluous(now));
  idlers.end();
  EXPECT_FALSE(idlers.is_superfluous(now));  // five of eight had nothing to do, two of which stay
}

}  // namespace
}  // namespace v3d
