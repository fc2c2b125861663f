#include "daemon/job_threads.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "gpu/base/short_mutex.h"

namespace v3d::daemon {
namespace {

/// Threads that note who woke up, and where it may run.
class Workers {
 public:
  explicit Workers(int count) : threads_(count, [this] { work(); }) {
    EXPECT_EQ(sched_getaffinity(0, sizeof(allowed_), &allowed_), 0);
    threads_.start(count);
    wait([&] { return resting_ == count; });
  }
  ~Workers() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
      threads_.wake_all();
    }
    threads_.join(mutex_);
  }

  void summon_and_wake(bool sleeps) {
    {
      const std::lock_guard lock(mutex_);
      EXPECT_TRUE(threads_.summon(0, threads_.count()));
    }
    threads_.wake_summoned(mutex_, sleeps);
  }
  /// Of who woke up, in their order, when there are so many and all rest again.
  std::vector<std::thread::id> woken(size_t count) {
    wait([&] { return woken_.size() >= count && resting_ == threads_.count(); });
    const std::lock_guard lock(mutex_);
    return woken_;
  }
  int summoned() {
    const std::lock_guard lock(mutex_);
    return threads_.summoned();
  }

 private:
  void work() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!stop_) {
      ++resting_;
      changed_.notify_all();
      if (!threads_.rest(lock)) return;
      --resting_;
      cpu_set_t here;
      EXPECT_EQ(sched_getaffinity(0, sizeof(here), &here), 0);
      EXPECT_TRUE(CPU_EQUAL(&here, &allowed_)) << "a thread stays where it was called";
      woken_.push_back(std::this_thread::get_id());
    }
  }
  template <typename Condition>
  void wait(const Condition& condition) {
    std::unique_lock<std::mutex> lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, std::chrono::seconds(60), condition));
  }

  ShortMutex mutex_;
  std::condition_variable changed_;
  cpu_set_t allowed_;
  int resting_ = 0;
  bool stop_ = false;
  std::vector<std::thread::id> woken_;
  JobThreads threads_;
};

TEST(JobThreads, WhoRestedLastIsWokenFirst) {
  Workers workers(4);
  constexpr size_t kTimes = 50;
  for (size_t n = 1; n <= kTimes; ++n) {
    workers.summon_and_wake(n % 2 == 0);
    ASSERT_EQ(workers.woken(n).size(), n);
  }
  const std::vector<std::thread::id> woken = workers.woken(kTimes);
  EXPECT_EQ(std::count(woken.begin(), woken.end(), woken[0]), static_cast<ptrdiff_t>(kTimes));
  EXPECT_EQ(workers.summoned(), 0);
}

TEST(JobThreads, EachSummonsWakesAnother) {
  Workers workers(4);
  for (size_t round = 1; round <= 20; ++round) {
    for (int n = 0; n < 3; ++n) workers.summon_and_wake(n == 2);
    ASSERT_GE(workers.woken(3 * round).size(), 3 * round);
    EXPECT_EQ(workers.summoned(), 0);
  }
}

}  // namespace
}  // namespace v3d::daemon
