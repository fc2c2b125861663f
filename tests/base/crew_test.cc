#include "gpu/base/crew.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

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

int processors_of(pthread_t thread) {
  cpu_set_t allowed;
  EXPECT_EQ(pthread_getaffinity_np(thread, sizeof(allowed), &allowed), 0);
  return CPU_COUNT(&allowed);
}

TEST(Idlers, WhoIsSentAwayMayRunEverywhereAgainOnceItHasBegun) {
  std::mutex mutex;
  std::condition_variable wake, changed;
  Idlers idlers(2);
  bool woken = false;
  int processors_then = 0;
  std::unique_lock lock(mutex);
  std::thread thread([&] {
    std::unique_lock own(mutex);
    changed.notify_one();
    while (!woken) EXPECT_TRUE(idlers.wait(own, wake));
    processors_then = processors_of(pthread_self());
  });
  changed.wait(lock, [&] { return idlers.count() == 1; });
  const pthread_t sleeper = thread.native_handle();
  const int all = processors_of(pthread_self());
  EXPECT_EQ(processors_of(sleeper), all);
  for (int turn = 0; turn < 2; ++turn) {
    idlers.send_away();
    EXPECT_EQ(processors_of(sleeper), std::max(all - 1, 1));
  }
  EXPECT_EQ(processors_of(pthread_self()), all);
  woken = true;
  wake.notify_one();
  lock.unlock();
  thread.join();
  EXPECT_EQ(processors_then, all);
  idlers.send_away();  // nobody
}

TEST(Idlers, WhoLooksForWorkIsNoSleeper) {
  std::mutex mutex;
  std::condition_variable changed;
  Idlers idlers(2);
  bool looks = false, over = false;
  int processors_then = 0;
  std::thread thread([&] {
    std::unique_lock own(mutex);
    idlers.look(own, [&] {
      std::unique_lock inside(mutex);
      looks = true;
      changed.notify_all();
      changed.wait(inside, [&] { return over; });
    });
    EXPECT_TRUE(own.owns_lock());
    EXPECT_EQ(idlers.looking(), 0);
    processors_then = processors_of(pthread_self());
  });
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return looks; });
  EXPECT_EQ(idlers.looking(), 1);
  EXPECT_EQ(idlers.count(), 0);
  const int all = processors_of(pthread_self());
  idlers.send_away();
  EXPECT_EQ(processors_of(thread.native_handle()), all);
  idlers.send_away(Idlers::Whom::kLookingToo);
  EXPECT_EQ(processors_of(thread.native_handle()), std::max(all - 1, 1));
  over = true;
  changed.notify_all();
  lock.unlock();
  thread.join();
  EXPECT_EQ(processors_then, all);
}

TEST(Idlers, WhoIsSentAwayIsSentOnWhenThatProcessorIsTaken) {
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "one processor";
  std::mutex mutex;
  std::condition_variable wake, changed;
  Idlers idlers(2);
  bool woken = false;
  std::unique_lock lock(mutex);
  std::thread thread([&] {
    std::unique_lock own(mutex);
    changed.notify_one();
    while (!woken) EXPECT_TRUE(idlers.wait(own, wake));
  });
  changed.wait(lock, [&] { return idlers.count() == 1; });
  const pthread_t sleeper = thread.native_handle();
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &all)) continue;
    cpu_set_t here, allowed;
    CPU_ZERO(&here);
    CPU_SET(cpu, &here);
    ASSERT_EQ(sched_setaffinity(0, sizeof here, &here), 0);  // and stays there, if nobody is in the way
    ASSERT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
    idlers.send_away();
    const int now = sched_getcpu();
    ASSERT_EQ(pthread_getaffinity_np(sleeper, sizeof allowed, &allowed), 0);
    EXPECT_EQ(CPU_COUNT(&allowed), CPU_COUNT(&all) - 1);
    if (now == cpu && sched_getcpu() == cpu) {
      EXPECT_FALSE(CPU_ISSET(cpu, &allowed));
    }
  }
  woken = true;
  wake.notify_one();
  lock.unlock();
  thread.join();
}

}  // namespace
}  // namespace v3d
