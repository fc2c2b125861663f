// The job queues with threads and a clock, and jobs that do nothing but tell when they run: drm-abi.md 3.1,
// 3.5, 3.9. Who runs next is for time_slices_test.cc.
#include "daemon/scheduler.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "daemon/reply_first.h"
#include "gpu/perf/timing/prediction.h"
#include "tests/ioctl/failing_new.h"

namespace v3d::daemon {
namespace {

using ioctl::Fence;
using ioctl::FencePtr;
using ioctl::Job;
using ioctl::JobPtr;
using ioctl::Queue;

/// A door that jobs wait at.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  /// Called by a job: says that it is there, and waits.
  void pass() {
    std::unique_lock lock(mutex_);
    ++arrived_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }
  void wait_for_arrivals(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return arrived_ >= count; });
  }
  int arrived() {
    const std::lock_guard lock(mutex_);
    return arrived_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  int arrived_ = 0;
};

class SchedulerTest : public ::testing::Test {
 protected:
  /// A client with a fence context per queue.
  struct Client {
    std::shared_ptr<ioctl::ClientInfo> info = std::make_shared<ioctl::ClientInfo>();
    std::array<uint64_t, ioctl::kNumQueues> contexts;
    std::array<uint64_t, ioctl::kNumQueues> seqnos{};
    std::shared_ptr<ioctl::BoSpace> space = std::make_shared<ioctl::BoSpace>(nullptr);
  };
  Client make_client() {
    Client client;
    client.info->id = ++clients_;
    client.info->pid = static_cast<int32_t>(1000 + clients_);
    client.info->program = "test";
    for (uint64_t& context : client.contexts) context = ioctl::new_fence_context();
    return client;
  }
  JobPtr make_job(Client& client, Queue queue, const std::string& name,
                  std::vector<FencePtr> dependencies = {}, const std::function<void()>& body = nullptr) {
    auto job = std::make_shared<Job>(queue);
    job->client = client.info;
    const auto q = static_cast<size_t>(queue);
    job->done = std::make_shared<Fence>("t", "t", client.contexts[q], ++client.seqnos[q]);
    job->dependencies = std::move(dependencies);
    if (queue != Queue::kTfu && queue != Queue::kCpu && queue != Queue::kCacheClean)
      job->space = client.space;
    if (queue != Queue::kCacheClean) {
      job->run = [this, name, body](JobControl&) {
        record(name);
        if (body) body();
        return device::JobResult();
      };
    }
    return job;
  }
  void record(const std::string& name) {
    const std::lock_guard lock(mutex_);
    ran_.push_back(name);
  }
  std::vector<std::string> ran() {
    const std::lock_guard lock(mutex_);
    return ran_;
  }
  static void wait(const FencePtr& fence) {
    EXPECT_EQ(ioctl::wait_for_all({fence}, std::make_shared<ioctl::Waiter>(), INT64_MAX), 0);
  }
  static FencePtr pending() { return std::make_shared<Fence>("t", "t", ioctl::new_fence_context(), 1); }

  std::mutex mutex_;
  std::vector<std::string> ran_;
  uint64_t clients_ = 0;
  Client a_ = make_client(), b_ = make_client();
  /// Nobody's slice ends.
  Scheduler scheduler_{{.slice_ns = int64_t{3600} * 1'000'000'000}};
};

TEST_F(SchedulerTest, QueueOfAFileIsInOrder) {
  const FencePtr first_may_run = pending();
  std::vector<JobPtr> jobs = {make_job(a_, Queue::kTfu, "1", {first_may_run})};
  for (const char* name : {"2", "3", "4"}) jobs.push_back(make_job(a_, Queue::kTfu, name));
  for (const JobPtr& job : jobs) scheduler_.push({job});
  first_may_run->signal();
  wait(jobs.back()->done);
  EXPECT_EQ(ran(), (std::vector<std::string>{"1", "2", "3", "4"}));
}

TEST_F(SchedulerTest, BlockedFileDoesNotBlockOthers) {
  const FencePtr later = pending();
  const JobPtr a1 = make_job(a_, Queue::kTfu, "a1", {later}), a2 = make_job(a_, Queue::kTfu, "a2");
  const JobPtr b1 = make_job(b_, Queue::kTfu, "b1");
  scheduler_.push({a1});
  scheduler_.push({a2});
  scheduler_.push({b1});
  wait(b1->done);
  EXPECT_FALSE(a2->done->is_signalled());
  later->signal();
  wait(a2->done);
  EXPECT_EQ(ran(), (std::vector<std::string>{"b1", "a1", "a2"}));
}

TEST_F(SchedulerTest, QueuesOverlap) {
  Gate gate;
  // Render of one frame, bin of the next, a conversion and a CPU job meet at the gate.
  const JobPtr render = make_job(a_, Queue::kRender, "render", {}, [&] { gate.pass(); });
  const JobPtr bin = make_job(a_, Queue::kBin, "bin", {}, [&] { gate.pass(); });
  const JobPtr tfu = make_job(a_, Queue::kTfu, "tfu", {}, [&] { gate.pass(); });
  const JobPtr cpu = make_job(a_, Queue::kCpu, "cpu", {}, [&] { gate.pass(); });
  scheduler_.push({render, bin, tfu, cpu});
  gate.wait_for_arrivals(4);
  const auto status = scheduler_.status();
  EXPECT_EQ(status[0].in_flight, 1u);
  EXPECT_EQ(status[1].queued, 1u);
  gate.open();
  for (const JobPtr& job : {render, bin, tfu, cpu}) wait(job->done);
}

TEST_F(SchedulerTest, CacheCleanEndsWithItsDependency) {
  const FencePtr before = pending();
  const JobPtr clean = make_job(a_, Queue::kCacheClean, "", {before});
  scheduler_.push({clean});
  EXPECT_FALSE(clean->done->is_signalled());
  before->signal();
  EXPECT_TRUE(clean->done->is_signalled());  // without another thread
  const JobPtr free = make_job(a_, Queue::kCacheClean, "");
  scheduler_.push({free});
  EXPECT_TRUE(free->done->is_signalled());
  EXPECT_EQ(a_.info->jobs_done[static_cast<size_t>(Queue::kCacheClean)], 2u);
}

// As the kernel does ([K] v3d_irq.c, v3d_job_update_stats): whoever waited for a job finds it in gpu_stats.
TEST_F(SchedulerTest, JobsAreCountedBeforeTheirFencesSignal) {
  struct Look : ioctl::Watcher {
    Look(Scheduler& of, const ioctl::ClientInfo& whose, Queue which)
        : scheduler(of), client(whose), queue(static_cast<size_t>(which)) {}
    void notify() override {
      of_all = scheduler.status()[queue].jobs_done;
      of_client = client.jobs_done[queue];
      looked.set_value();
    }
    Scheduler& scheduler;
    const ioctl::ClientInfo& client;
    const size_t queue;
    uint64_t of_all = 0, of_client = 0;
    std::promise<void> looked;
  };
  for (const Queue queue : {Queue::kTfu, Queue::kCsd, Queue::kCacheClean}) {
    const FencePtr before = pending();
    const JobPtr job = make_job(a_, queue, "job", {before});
    const auto look = std::make_shared<Look>(scheduler_, *a_.info, queue);
    ASSERT_TRUE(job->done->watch(look));
    scheduler_.push({job});
    before->signal();
    look->looked.get_future().wait();
    EXPECT_EQ(look->of_all, 1u) << ioctl::queue_name(queue);
    EXPECT_EQ(look->of_client, 1u) << ioctl::queue_name(queue);
  }
}

TEST_F(SchedulerTest, CacheCleansOfAFileAreInOrder) {
  const FencePtr before = pending();
  const JobPtr first = make_job(a_, Queue::kCacheClean, "", {before}),
               second = make_job(a_, Queue::kCacheClean, "");
  scheduler_.push({first});
  scheduler_.push({second});
  EXPECT_FALSE(second->done->is_signalled());
  before->signal();
  EXPECT_TRUE(second->done->is_signalled());
}

TEST_F(SchedulerTest, LongChainsOfCacheCleansNeedNoStack) {
  const FencePtr before = pending();
  FencePtr last = before;
  for (int i = 0; i < 50000; ++i) {
    Client& client = i % 2 ? a_ : b_;
    const JobPtr job = make_job(client, Queue::kCacheClean, "", {last});
    scheduler_.push({job});
    last = job->done;
  }
  before->signal();
  EXPECT_TRUE(last->is_signalled());
}

TEST_F(SchedulerTest, ResultsBecomeFenceErrors) {
  using End = device::JobResult::End;
  const struct {
    End end;
    int status;
  } kCases[] = {
      {End::kDone, 1}, {End::kError, -ECANCELED}, {End::kHang, -ECANCELED}, {End::kCancelled, -ESRCH}};
  for (const auto& c : kCases) {
    const JobPtr job = make_job(a_, Queue::kCsd, "");
    job->run = [&](JobControl&) {
      device::JobResult result;
      result.end = c.end;
      result.message = "made to fail by a test";
      return result;
    };
    scheduler_.push({job});
    wait(job->done);
    EXPECT_EQ(job->done->status(), c.status);
  }
  EXPECT_EQ(a_.info->failed_jobs, 2u);
}

TEST_F(SchedulerTest, FailedJobDoesNotStopItsDependants) {
  const JobPtr bin = make_job(a_, Queue::kBin, "bin");
  bin->run = [](JobControl&) {
    device::JobResult result;
    result.end = device::JobResult::End::kHang;
    return result;
  };
  const JobPtr render = make_job(a_, Queue::kRender, "render", {bin->done});
  scheduler_.push({bin, render});
  wait(render->done);
  EXPECT_EQ(render->done->status(), 1);
}

TEST_F(SchedulerTest, MmuFaultsAreCounted) {
  const JobPtr job = make_job(a_, Queue::kRender, "");
  job->run = [](JobControl&) {
    device::JobResult result;
    result.faults = {.count = 3, .first_address = 0x1234};
    return result;
  };
  scheduler_.push({job});
  wait(job->done);
  EXPECT_EQ(job->done->status(), 1);
  EXPECT_EQ(a_.info->mmu_faults, 3u);
}

TEST_F(SchedulerTest, KilledClient) {
  Gate gate;
  const FencePtr never_mind = pending();
  const JobPtr running = make_job(a_, Queue::kRender, "running");
  running->run = [&](JobControl& control) {
    gate.pass();
    while (!control.cancelled()) std::this_thread::yield();
    device::JobResult result;
    result.end = device::JobResult::End::kCancelled;
    return result;
  };
  const JobPtr queued = make_job(a_, Queue::kRender, "queued");
  const JobPtr blocked = make_job(a_, Queue::kTfu, "blocked", {never_mind});
  const JobPtr clean = make_job(a_, Queue::kCacheClean, "", {queued->done});
  const JobPtr other = make_job(b_, Queue::kRender, "other");
  gate.open();
  for (const JobPtr& job : {running, queued, blocked, clean, other}) scheduler_.push({job});
  gate.wait_for_arrivals(1);
  EXPECT_FALSE(scheduler_.is_idle(*a_.info));
  scheduler_.kill(a_.info->id);
  wait(other->done);
  wait(running->done);
  EXPECT_EQ(running->done->status(), -ESRCH);
  wait(clean->done);
  EXPECT_EQ(queued->done->status(), -ESRCH);
  EXPECT_EQ(clean->done->status(), -ESRCH);
  // As in Linux, dropped jobs still wait for their dependencies.
  EXPECT_FALSE(blocked->done->is_signalled());
  never_mind->signal();
  wait(blocked->done);
  EXPECT_EQ(blocked->done->status(), -ESRCH);
  EXPECT_EQ(ran(), (std::vector<std::string>{"other"}));
  while (!scheduler_.is_idle(*a_.info)) std::this_thread::yield();
}

TEST_F(SchedulerTest, EndingDropsWhatIsQueued) {
  JobPtr running, queued;
  {
    Gate gate;
    Scheduler scheduler;
    running = make_job(a_, Queue::kRender, "running");
    running->run = [&](JobControl& control) {
      gate.pass();
      while (!control.cancelled()) std::this_thread::yield();
      return device::JobResult();
    };
    queued = make_job(a_, Queue::kRender, "queued", {running->done});
    scheduler.push({running, queued});
    gate.open();
    gate.wait_for_arrivals(1);
  }
  EXPECT_EQ(running->done->status(), 1);
  EXPECT_EQ(queued->done->status(), -ESRCH);
}

// Unless a worker is awake and takes them first, as those are that have just been started.
TEST_F(SchedulerTest, SmallJobsRunOnTheThreadThatPushesThem) {
  const auto runs_here = [&] {
    std::thread::id bin_thread, render_thread;
    const JobPtr bin = make_job(a_, Queue::kBin, "bin", {}, [&] { bin_thread = std::this_thread::get_id(); });
    const JobPtr render = make_job(a_, Queue::kRender, "render", {bin->done},
                                   [&] { render_thread = std::this_thread::get_id(); });
    const JobPtr clean = make_job(a_, Queue::kCacheClean, "clean", {render->done});
    bin->small = render->small = true;
    scheduler_.push({bin, render, clean});
    scheduler_.run_small({bin, render, clean});
    const bool done =
        bin->done->is_signalled() && render->done->is_signalled() && clean->done->is_signalled();
    for (const JobPtr& job : {bin, render, clean}) wait(job->done);
    return done && bin_thread == std::this_thread::get_id() && render_thread == bin_thread &&
           scheduler_.is_idle(*a_.info);
  };
  int here = 0;
  for (int i = 0; i < 1000 && here < 3; ++i) {
    here += runs_here();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(here, 3);
}

TEST_F(SchedulerTest, JobsBeginWhenTheThreadThatPushedThemHasReplied) {
  Gate gate;
  const JobPtr job = make_job(a_, Queue::kRender, "render", {}, [&] { gate.pass(); });
  gate.open();
  // Those that have just been started look for something to do themselves.
  for (int awake = 0; awake < 1000; ++awake) {
    const JobPtr first = make_job(b_, Queue::kTfu, "first");
    scheduler_.push({first});
    wait(first->done);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  ReplyFirst::begin();
  scheduler_.push({job});
  scheduler_.run_small({job});
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(gate.arrived(), 0);
  ReplyFirst::end();
  scheduler_.wake_workers();
  wait(job->done);
  EXPECT_EQ(gate.arrived(), 1);
}

TEST_F(SchedulerTest, JobsOfOthersBeginMeanwhile) {
  const JobPtr put_off = make_job(a_, Queue::kRender, "put off"), other = make_job(b_, Queue::kTfu, "other");
  ReplyFirst::begin();
  scheduler_.push({put_off});
  std::thread([&] {
    scheduler_.push({other});
    wait(other->done);
  }).join();
  ReplyFirst::end();
  scheduler_.wake_workers();
  wait(put_off->done);
}

TEST_F(SchedulerTest, AThreadThatRunsAJobBeforeItRepliesWakesWorkers) {
  const JobPtr other = make_job(b_, Queue::kTfu, "other");
  const JobPtr small = make_job(a_, Queue::kBin, "small", {}, [&] {
    scheduler_.push({other});
    wait(other->done);
  });
  small->small = true;
  ReplyFirst::begin();
  scheduler_.push({small});
  scheduler_.run_small({small});
  ReplyFirst::end();
  scheduler_.wake_workers();
  wait(small->done);
}

TEST_F(SchedulerTest, SmallJobsThatHaveToWaitAreLeftToOthers) {
  Gate gate;
  const FencePtr later = pending();
  const JobPtr big = make_job(b_, Queue::kTfu, "big", {}, [&] { gate.pass(); });
  scheduler_.push({big});
  gate.wait_for_arrivals(1);
  const JobPtr behind = make_job(a_, Queue::kTfu, "behind"),
               dependent = make_job(a_, Queue::kCpu, "dependent", {later});
  for (const JobPtr& job : {behind, dependent}) {
    job->small = true;
    scheduler_.push({job});
    scheduler_.run_small({job});
    EXPECT_FALSE(job->done->is_signalled());
  }
  later->signal();
  wait(dependent->done);
  gate.open();
  wait(behind->done);
  EXPECT_EQ(ran(), (std::vector<std::string>{"big", "dependent", "behind"}));
}

TEST_F(SchedulerTest, WhoseSmallJobTookLongIsNotBelievedForAWhile) {
  int on_this_thread = 0;
  const auto count = [&, self = std::this_thread::get_id()] {
    if (std::this_thread::get_id() == self) ++on_this_thread;
  };
  const auto run = [&](const std::function<void()>& body) {
    const JobPtr job = make_job(a_, Queue::kTfu, "job", {}, body);
    job->small = true;
    scheduler_.push({job});
    scheduler_.run_small({job});
    wait(job->done);
  };
  // What others do with the processor meanwhile is not its doing. Sanitizers take some time of their own.
  bool believed = false;
  for (int i = 0; i < 50 && !believed; ++i) {
    a_.info->not_small = 0;
    run([&] { std::this_thread::sleep_for(std::chrono::milliseconds(2)); });
    believed = a_.info->not_small == 0;
  }
  EXPECT_TRUE(believed);
  // A worker that is awake may take it first.
  for (int i = 0; i < 1000 && a_.info->not_small == 0; ++i)
    run([&] {
      for (const clock_t start = clock(); clock() - start < CLOCKS_PER_SEC / 200;) {
      }
    });
  EXPECT_GT(a_.info->not_small, 0u);
  for (int i = 0; i < 30; ++i) run(count);
  EXPECT_EQ(on_this_thread, 0);
  for (int i = 0; i < 20'000 && on_this_thread == 0; ++i) run(count);
  EXPECT_GT(on_this_thread, 0);
}

/// Slices of a millisecond, and jobs that run until they are told.
class SlicesTest : public SchedulerTest {
 protected:
  static constexpr int64_t kSliceNs = 1'000'000;

  /// Whether the condition comes true in a time in which it must.
  template <typename Condition>
  static bool soon(const Condition& condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    return true;
  }
  /// Counts rounds until `over`, or until it is cancelled.
  JobPtr make_hog(Client& client, Queue queue, std::atomic<uint64_t>* rounds = nullptr) {
    JobPtr job = make_job(client, queue, "hog");
    job->run = [this, rounds](JobControl& control) {
      while (!over_ && !control.cancelled()) {
        control.checkpoint();
        if (rounds) ++*rounds;
      }
      device::JobResult result;
      if (control.cancelled()) result.end = device::JobResult::End::kCancelled;
      return result;
    };
    return job;
  }
  bool signals_soon(const FencePtr& fence) {
    return soon([&] { return fence->is_signalled(); });
  }
  int64_t ran_ns(const Client& client) { return slices_.activity(*client.info).ran_ns; }
  void TearDown() override { over_ = true; }

  std::atomic<bool> over_{false};
  Scheduler slices_{{.slice_ns = kSliceNs}};
};

TEST_F(SlicesTest, AnEndlessJobYieldsToAnotherClientInEveryQueue) {
  for (const Queue queue : {Queue::kBin, Queue::kRender, Queue::kTfu, Queue::kCsd, Queue::kCpu}) {
    Client hostile = make_client();
    std::atomic<uint64_t> rounds{0};
    const JobPtr hog = make_hog(hostile, queue, &rounds), small = make_job(b_, queue, "small");
    slices_.push({hog});
    ASSERT_TRUE(soon([&] { return rounds > 0; }));
    slices_.push({small});
    EXPECT_TRUE(signals_soon(small->done)) << ioctl::queue_name(queue);
    EXPECT_FALSE(hog->done->is_signalled());
    slices_.kill(hostile.info->id);
    wait(hog->done);
  }
}

TEST_F(SlicesTest, AHeldJobStandsStillAndGoesOn) {
  std::atomic<uint64_t> rounds{0};
  Gate gate;
  const JobPtr hog = make_hog(a_, Queue::kTfu, &rounds);
  const JobPtr other = make_job(b_, Queue::kTfu, "other", {}, [&] { gate.pass(); });
  slices_.push({hog});
  ASSERT_TRUE(soon([&] { return rounds > 0; }));
  slices_.push({other});
  gate.wait_for_arrivals(1);
  uint64_t before = 0;
  EXPECT_TRUE(soon([&] {
    const uint64_t now = rounds;
    const bool stands = now == before;
    before = now;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return stands;
  }));
  EXPECT_EQ(slices_.status()[static_cast<size_t>(Queue::kTfu)].in_flight, 2u);
  gate.open();
  EXPECT_TRUE(signals_soon(other->done));
  EXPECT_TRUE(soon([&] { return rounds > before + 1000; }));
  over_ = true;
  wait(hog->done);
}

TEST_F(SlicesTest, HeldJobsEndWithTheirClient) {
  const JobPtr hog = make_hog(a_, Queue::kTfu);
  Gate gate;
  slices_.push({hog});
  ASSERT_TRUE(soon([&] { return slices_.activity(*a_.info).in_flight == 1; }));
  const JobPtr other = make_job(b_, Queue::kTfu, "other", {}, [&] { gate.pass(); });
  slices_.push({other});
  gate.wait_for_arrivals(1);
  slices_.kill(a_.info->id);
  EXPECT_TRUE(signals_soon(hog->done));
  EXPECT_EQ(hog->done->status(), -ESRCH);
  gate.open();
  wait(other->done);
}

// Jobs that have no thread wait; nothing is lost.
TEST_F(SlicesTest, FewThreads) {
  Scheduler few({.slice_ns = kSliceNs, .max_threads = 5});
  std::vector<Client> clients;
  for (int i = 0; i < 12; ++i) clients.push_back(make_client());
  std::vector<FencePtr> ends;
  for (Client& client : clients) {
    const JobPtr job = make_job(client, Queue::kTfu, "");
    job->run = [](JobControl& control) {
      const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
      while (std::chrono::steady_clock::now() < end) control.checkpoint();
      return device::JobResult();
    };
    few.push({job});
    ends.push_back(job->done);
  }
  for (const FencePtr& end : ends) EXPECT_TRUE(signals_soon(end));
}

TEST_F(SlicesTest, WorkersDoNotWaitInAHeldJob) {
  ThreadPool pool(1);
  std::atomic<int> inside{0};
  const JobPtr hog = make_job(a_, Queue::kRender, "");
  hog->run = [&](JobControl& control) {
    const std::function<void(int, int)> piece = [&](int, int) {
      ++inside;
      while (!over_) control.checkpoint();
    };
    pool.parallel_for(2, piece, &control);
    return device::JobResult();
  };
  slices_.push({hog});
  ASSERT_TRUE(soon([&] { return inside == 2; }));  // its own thread and the pool's
  std::atomic<int> met{0};
  const JobPtr other = make_job(b_, Queue::kRender, "");
  other->run = [&](JobControl& control) {
    const std::function<void(int, int)> piece = [&](int, int) {
      ++met;
      soon([&] { return met == 2; });
    };
    pool.parallel_for(2, piece, &control);
    return device::JobResult();
  };
  slices_.push({other});
  EXPECT_TRUE(signals_soon(other->done));
  EXPECT_EQ(met, 2);  // at one time
  over_ = true;
  wait(hog->done);
}

/// Jobs that do next to nothing and have predictions.
class PacedJobsTest : public SlicesTest {
 protected:
  static constexpr uint64_t kHourNs = uint64_t{3600} * 1'000'000'000;

  JobPtr make_paced(Client& client, Queue queue, uint64_t predicted_ns, int64_t* start_ns = nullptr) {
    JobPtr job = make_job(client, queue, "paced");
    job->run = [predicted_ns, start_ns](JobControl&) {
      if (start_ns) *start_ns = ioctl::monotonic_ns();
      auto prediction = std::make_shared<timing::Prediction>();
      prediction->clocks = predicted_ns;
      prediction->clock_mhz = 1000;
      device::JobResult result;
      result.prediction = std::move(prediction);
      return result;
    };
    return job;
  }
  /// Runs it until the rest of its time is all that is left.
  void push_and_execute(const JobPtr& job) {
    paced_.push({job});
    const auto q = static_cast<size_t>(job->queue);
    EXPECT_TRUE(soon([&] { return paced_.status()[q].in_flight > 0; }));
  }

  Scheduler paced_{{.slice_ns = kSliceNs, .pace = true}};
};

TEST_F(PacedJobsTest, JobsAndThoseBehindThemWaitForThePrediction) {
  constexpr int64_t kNs = 20'000'000;
  int64_t second_ns = 0;
  const JobPtr first = make_paced(a_, Queue::kCsd, kNs);
  const JobPtr second = make_paced(a_, Queue::kCsd, kNs, &second_ns);
  // A job has its queue from a moment before its function is called.
  const int64_t pushed_ns = ioctl::monotonic_ns();
  paced_.push({first});
  paced_.push({second});
  wait(first->done);
  EXPECT_GE(ioctl::monotonic_ns() - pushed_ns, kNs);
  wait(second->done);
  EXPECT_GE(ioctl::monotonic_ns() - pushed_ns, 2 * kNs);
  EXPECT_GE(second_ns - pushed_ns, kNs);
  EXPECT_EQ(first->done->status(), 1);
  EXPECT_GE(paced_.status()[static_cast<size_t>(Queue::kCsd)].busy_ns, static_cast<uint64_t>(2 * kNs));
}

TEST_F(PacedJobsTest, ThePredictionIsMadeFirst) {
  const JobPtr job = make_paced(a_, Queue::kCsd, 5'000'000);
  job->run = [run = job->run](JobControl& control) {
    device::JobResult result;
    result.later = [made = run(control)](device::JobResult& r) { r.prediction = made.prediction; };
    return result;
  };
  const int64_t start_ns = ioctl::monotonic_ns();
  paced_.push({job});
  wait(job->done);
  EXPECT_GE(ioctl::monotonic_ns() - start_ns, 5'000'000);
}

TEST_F(PacedJobsTest, TheExecutionCounts) {
  JobPtr job = make_paced(a_, Queue::kTfu, 1000);
  job->run = [run = job->run](JobControl& control) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return run(control);
  };
  paced_.push({job});
  wait(job->done);
  EXPECT_TRUE(soon([&] { return paced_.is_idle(*a_.info); }));
}

TEST_F(PacedJobsTest, WithoutPaceAPredictionHoldsNobodyUp) {
  const JobPtr job = make_paced(a_, Queue::kCsd, kHourNs);
  slices_.push({job});
  wait(job->done);
}

TEST_F(PacedJobsTest, OtherClientsHaveTheirSlices) {
  const JobPtr hour = make_paced(a_, Queue::kCsd, kHourNs);
  push_and_execute(hour);
  const JobPtr other = make_job(b_, Queue::kCsd, "other"), behind = make_job(a_, Queue::kCsd, "behind");
  paced_.push({behind});
  paced_.push({other});
  wait(other->done);
  EXPECT_FALSE(hour->done->is_signalled());
  EXPECT_FALSE(behind->done->is_signalled());
}

TEST_F(PacedJobsTest, NoThreadWaits) {
  Scheduler few{{.slice_ns = kSliceNs, .max_threads = ioctl::kNumQueues, .pace = true}};
  std::vector<Client> crowd;
  for (int i = 0; i < 20; ++i) crowd.push_back(make_client());
  std::vector<JobPtr> jobs;
  for (Client& client : crowd) few.push({jobs.emplace_back(make_paced(client, Queue::kCsd, kHourNs))});
  ASSERT_TRUE(soon([&] { return few.status()[static_cast<size_t>(Queue::kCsd)].in_flight == crowd.size(); }));
  const JobPtr last = make_job(a_, Queue::kCsd, "last");
  few.push({last});
  wait(last->done);
  for (const JobPtr& job : jobs) EXPECT_FALSE(job->done->is_signalled());
}

TEST_F(PacedJobsTest, ASmallJobLeavesItsThread) {
  const JobPtr job = make_paced(a_, Queue::kCsd, kHourNs);
  job->small = true;
  paced_.push({job});
  paced_.run_small({job});
  EXPECT_FALSE(job->done->is_signalled());
  paced_.kill(a_.info->id);
  wait(job->done);
}

TEST_F(PacedJobsTest, NobodyWaitsForAKilledClient) {
  const JobPtr killed = make_paced(a_, Queue::kCsd, kHourNs), next = make_job(b_, Queue::kCsd, "next");
  push_and_execute(killed);
  paced_.kill(a_.info->id);
  wait(killed->done);
  paced_.push({next});
  wait(next->done);
  EXPECT_TRUE(soon([&] { return paced_.is_idle(*a_.info); }));
}

TEST_F(PacedJobsTest, NorForTheJobsOfAProcessThatHasExited) {
  const auto budget = ioctl::Budget::create();
  ioctl::Resource scarce;
  const auto account = budget->admit({a_.info->pid, 1}, "exits", &scarce);
  const JobPtr job = make_paced(a_, Queue::kCsd, kHourNs);
  ASSERT_EQ(account->charge(ioctl::Resource::kJobs, 1, &job->charge), 0);
  push_and_execute(job);
  account->retire();
  wait(job->done);
}

TEST_F(PacedJobsTest, TheEndOfTheSchedulerIsTheEndOfAll) {
  const JobPtr job = make_paced(a_, Queue::kCsd, kHourNs), behind = make_job(a_, Queue::kCsd, "behind");
  {
    Scheduler scheduler{{.pace = true}};
    scheduler.push({job, behind});
    ASSERT_TRUE(soon([&] { return scheduler.activity(*a_.info).in_flight == 1; }));
  }
  EXPECT_TRUE(job->done->is_signalled());
  EXPECT_EQ(behind->done->status(), -ESRCH);
}

TEST_F(SchedulerTest, PushesAllOrNothingWhenMemoryRunsOut) {
  int failures = 0;
  for (int n = 0;; ++n) {
    Client client = make_client();
    const FencePtr before = pending();
    const std::vector<JobPtr> jobs = {
        make_job(client, Queue::kCsd, "csd", {before}),
        make_job(client, Queue::kRender, "render", {before}),
        make_job(client, Queue::kCacheClean, "", {before}),
    };
    ioctl::test::fail_allocation(n);
    bool pushed = true;
    try {
      scheduler_.push(jobs);
    } catch (const std::bad_alloc&) {
      pushed = false;
    }
    if (ioctl::test::fail_no_allocation()) ++failures;
    EXPECT_EQ(scheduler_.is_idle(*client.info), !pushed);
    const auto status = scheduler_.status();
    for (const auto& queue : status) EXPECT_EQ(queue.queued, pushed && queue.queued ? 1u : 0u);
    for (const JobPtr& job : jobs) EXPECT_EQ(job.use_count() > 1, pushed);  // nobody keeps them
    before->signal();
    if (!pushed) continue;
    for (const JobPtr& job : jobs) wait(job->done);
    EXPECT_EQ(ran().size(), 2u);
    break;
  }
  EXPECT_GT(failures, 10);
}

TEST_F(SchedulerTest, AJobWithoutMemoryFailsAndNothingElse) {
  const JobPtr hungry = make_job(a_, Queue::kTfu, "");
  hungry->run = [](JobControl&) -> device::JobResult { throw std::bad_alloc(); };
  const JobPtr strange = make_job(a_, Queue::kCpu, "");
  strange->run = [](JobControl&) -> device::JobResult { throw std::length_error("size"); };
  scheduler_.push({hungry, strange});
  wait(hungry->done);
  wait(strange->done);
  EXPECT_EQ(hungry->done->status(), -ECANCELED);
  EXPECT_EQ(strange->done->status(), -ECANCELED);
  EXPECT_EQ(a_.info->failed_jobs, 2u);
  const JobPtr other = make_job(a_, Queue::kTfu, "other");
  scheduler_.push({other});
  wait(other->done);
}

// From the end of a job on, the n-th allocation of its thread fails: what it does next is to start others.
TEST_F(SchedulerTest, WorkersNeedNoMemory) {
  for (int n = 0; n < 12; ++n) {
    const JobPtr last_with_memory = make_job(a_, Queue::kTfu, "");
    last_with_memory->run = [n](JobControl&) {
      ioctl::test::fail_allocation(n);
      device::JobResult result;
      result.end = device::JobResult::End::kHang;  // there is something to tell
      return result;
    };
    Client c = make_client();
    std::vector<JobPtr> jobs = {last_with_memory};
    for (Client* client : {&a_, &b_, &c})
      for (const Queue queue : {Queue::kBin, Queue::kRender, Queue::kTfu, Queue::kCsd, Queue::kCpu})
        jobs.push_back(make_job(*client, queue, "", {last_with_memory->done}));
    scheduler_.push(jobs);
    for (const JobPtr& job : jobs) wait(job->done);
    EXPECT_EQ(last_with_memory->done->status(), -ECANCELED);
  }
}

TEST_F(SchedulerTest, ManyThreadsPushing) {
  constexpr int kThreads = 4, kRounds = 200;
  std::vector<std::thread> threads;
  std::atomic<int> done{0};
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Client client;
      client.info->id = 100 + static_cast<uint64_t>(t);
      for (uint64_t& context : client.contexts) context = ioctl::new_fence_context();
      const auto waiter = std::make_shared<ioctl::Waiter>();
      for (int i = 0; i < kRounds; ++i) {
        const auto count = [&] { ++done; };
        const JobPtr bin = make_job(client, Queue::kBin, "", {}, count);
        const JobPtr render = make_job(client, Queue::kRender, "", {bin->done}, count);
        const JobPtr clean = make_job(client, Queue::kCacheClean, "", {render->done});
        const JobPtr csd = make_job(client, Queue::kCsd, "", {}, count);
        scheduler_.push({bin, render, clean});
        scheduler_.push({csd});
        if (i % 8 == 7) {
          EXPECT_EQ(ioctl::wait_for_all({clean->done, csd->done}, waiter, INT64_MAX), 0);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(done, kThreads * kRounds * 3);
}

TEST_F(SchedulerTest, MemoryThatAJobTakesIsItsClients) {
  using enum ioctl::Resource;
  ioctl::ResourceLimits limits;
  limits[kDerivedBytes] = {.per_client = 1000, .guaranteed = 0, .in_all = 2000};
  const auto budget = ioctl::Budget::create(limits);
  ioctl::Resource scarce;
  const auto account = budget->admit({1, 1}, "test", &scarce);
  ASSERT_TRUE(account);
  JobPtr job = make_job(a_, Queue::kBin, "bin");
  ASSERT_EQ(account->charge(kJobs, 1, &job->charge), 0);
  job->derived = job->charge.sibling(kDerivedBytes);
  job->run = [&](JobControl& control) {
    EXPECT_TRUE(control.take_memory(900));
    EXPECT_FALSE(control.take_memory(101));
    EXPECT_EQ(account->used(kDerivedBytes), 900u);
    control.return_memory(400);
    EXPECT_TRUE(control.take_memory(101));
    return device::JobResult();
  };
  const FencePtr done = job->done;
  scheduler_.push({job});
  wait(done);
  EXPECT_EQ(account->used(kDerivedBytes), 601u);  // until the job is freed
  ioctl::Charge kept = std::move(job->derived);
  job.reset();
  EXPECT_EQ(account->used(kDerivedBytes), 601u);
  kept.release();
  EXPECT_EQ(account->used(kDerivedBytes), 0u);
}

}  // namespace
}  // namespace v3d::daemon
