// Who runs next, without threads and with a clock of the test's own: queues, slices and pace. The jobs are
// never executed; drm-abi.md 3.1.
#include "daemon/time_slices.h"

#include <gtest/gtest.h>

#include <list>
#include <vector>

#include "daemon/pace.h"

namespace v3d::daemon {
namespace {

using ioctl::Queue;

constexpr Queue kRunningQueues[] = {Queue::kBin, Queue::kRender, Queue::kTfu, Queue::kCsd, Queue::kCpu};

class TimeSlicesTest : public ::testing::Test {
 protected:
  static constexpr int64_t kSliceNs = 1000;
  static constexpr int kThreads = 256;

  struct Client {
    std::shared_ptr<ioctl::ClientInfo> info = std::make_shared<ioctl::ClientInfo>();
    std::shared_ptr<ioctl::BoSpace> space = std::make_shared<ioctl::BoSpace>(nullptr);
  };
  Client make_client() {
    Client client;
    client.info->id = ++clients_;
    client.info->pid = static_cast<int32_t>(1000 + clients_);
    return client;
  }
  std::vector<Client> make_crowd(int count) {
    std::vector<Client> crowd;
    for (int i = 0; i < count; ++i) crowd.push_back(make_client());
    return crowd;
  }
  /// One that nobody looks for a thread for yet. @param ready  its dependencies are signalled
  QueuedJobPtr enqueue(const Client& client, Queue queue, bool ready = true) {
    auto job = std::make_shared<ioctl::Job>(queue);
    job->client = client.info;
    if (queue == Queue::kBin || queue == Queue::kRender || queue == Queue::kCsd) job->space = client.space;
    auto queued = std::make_shared<QueuedJob>(std::move(job));
    queues_.make_places(*queued);
    std::list<QueuedJobPtr> entry = {queued};
    queues_.enqueue(entry, false);
    queued->ready = ready;
    return queued;
  }
  QueuedJobPtr push(const Client& client, Queue queue, bool ready = true) {
    QueuedJobPtr job = enqueue(client, queue, ready);
    choose();
    return job;
  }
  /// The process of a client has exited: its job is charged to an account that is retired.
  void let_die(const Client& client, const QueuedJobPtr& job) {
    ioctl::Resource scarce;
    const auto account = budget_->admit({client.info->pid, 1}, "dead", &scarce);
    ASSERT_EQ(account->charge(ioctl::Resource::kJobs, 1, &job->job->charge), 0);
    account->retire();
  }
  /// As threads that have nothing to do: starts what should run, and buries what was killed.
  void choose() {
    while (const QueuedJobPtr job = slices_.choose(now_ns_).start) {
      if (!job->killed) continue;
      buried_.push_back(job);
      queues_.count(*job);
      queues_.finish(job);
    }
  }
  /// Time passes, and then all jobs that run come to a checkpoint.
  void pass(int64_t ns) {
    now_ns_ += ns;
    for (const Queue queue : kRunningQueues) {
      const QueuedJobPtr job = queues_.of(queue).running;
      if (job && !job->paced && now_ns_ >= job->slice_end_ns && slices_.reconsider(*job, now_ns_)) choose();
    }
  }
  void pass_slices(int count) {
    for (int n = 0; n < 10 * count; ++n) pass(kSliceNs / 10);
  }
  /// @return  whether the job runs before so much time has passed
  bool runs_within(const QueuedJobPtr& job, int64_t ns) {
    for (const int64_t end_ns = now_ns_ + ns; !runs(job) && now_ns_ < end_ns;) pass(kSliceNs / 100);
    return runs(job);
  }
  void end(const QueuedJobPtr& job) {
    slices_.end(*job, now_ns_);
    queues_.count(*job);
    queues_.finish(job);
    choose();
  }
  bool runs(const QueuedJobPtr& job) { return queues_.of(*job).running == job; }
  int64_t ran(const QueuedJobPtr& job) const { return slices_.ran(*job, now_ns_); }
  /// Endless jobs of a crowd share what one of another client has; and each of them gets some of it.
  void expect_one_share(const std::vector<QueuedJobPtr>& crowd) {
    const QueuedJobPtr other = push(a_, Queue::kTfu);
    pass_slices(400);
    int64_t of_crowd = 0;
    for (const QueuedJobPtr& job : crowd) {
      EXPECT_GT(ran(job), 0);
      of_crowd += ran(job);
    }
    EXPECT_NEAR(static_cast<double>(ran(other)), static_cast<double>(of_crowd), 10 * kSliceNs);
  }

  int64_t now_ns_ = 1'000'000;
  JobQueues queues_{kSliceNs, kThreads};
  TimeSlices slices_{queues_, kSliceNs};
  Pace pace_{queues_, slices_};
  std::shared_ptr<ioctl::Budget> budget_ = ioctl::Budget::create();
  uint64_t clients_ = 0;
  Client a_ = make_client(), b_ = make_client();
  std::vector<QueuedJobPtr> buried_;
};

TEST_F(TimeSlicesTest, EarliestPushedFirst) {
  const Client c = make_client(), d = make_client();
  const QueuedJobPtr blocker = push(d, Queue::kTfu);
  const QueuedJobPtr c1 = push(c, Queue::kTfu), a1 = push(a_, Queue::kTfu), b1 = push(b_, Queue::kTfu);
  ASSERT_TRUE(runs(blocker));
  QueuedJobPtr last = blocker;
  for (const QueuedJobPtr& next : {c1, a1, b1}) {
    end(last);
    EXPECT_TRUE(runs(next));
    last = next;
  }
  end(last);
  EXPECT_TRUE(queues_.is_empty());
}

TEST_F(TimeSlicesTest, JobsOfAFileAreInOrderAndDoNotBlockOthers) {
  const QueuedJobPtr a1 = push(a_, Queue::kTfu, false), a2 = push(a_, Queue::kTfu);
  const QueuedJobPtr b1 = push(b_, Queue::kTfu);
  EXPECT_TRUE(runs(b1));
  end(b1);
  EXPECT_FALSE(queues_.of(Queue::kTfu).running);
  a1->ready = true;
  choose();
  EXPECT_TRUE(runs(a1));
  end(a1);
  EXPECT_TRUE(runs(a2));
}

TEST_F(TimeSlicesTest, QueuesOverlapAndHaveOneJobThatRunsEach) {
  const QueuedJobPtr first[] = {push(a_, Queue::kBin), push(a_, Queue::kRender), push(a_, Queue::kTfu),
                                push(a_, Queue::kCpu)};
  for (const QueuedJobPtr& job : first) {
    EXPECT_TRUE(runs(job));
    EXPECT_FALSE(runs(push(b_, job->job->queue)));
    EXPECT_EQ(queues_.of(*job).in_flight, 1u);
  }
  EXPECT_EQ(queues_.in_flight(), 4);
}

TEST_F(TimeSlicesTest, ComputeExcludesBinAndRenderOfTheSameClient) {
  const QueuedJobPtr render = push(a_, Queue::kRender), dispatch = push(a_, Queue::kCsd),
                     bin = push(a_, Queue::kBin), bin_of_b = push(b_, Queue::kBin);
  EXPECT_TRUE(runs(render));
  EXPECT_FALSE(runs(dispatch));
  EXPECT_FALSE(runs(bin));  // it came after the dispatch: it must not overtake it for ever
  EXPECT_TRUE(runs(bin_of_b));
  end(bin_of_b);
  EXPECT_FALSE(runs(bin));
  end(render);
  EXPECT_TRUE(runs(dispatch));
  EXPECT_FALSE(runs(bin));
  end(dispatch);
  EXPECT_TRUE(runs(bin));
}

TEST_F(TimeSlicesTest, CacheCleansRunNowhereAndEndInTheOrderOfPushing) {
  const QueuedJobPtr a1 = push(a_, Queue::kCacheClean, false), b1 = push(b_, Queue::kCacheClean, false);
  EXPECT_EQ(queues_.first_clean(), nullptr);
  a1->ready = b1->ready = true;
  EXPECT_EQ(queues_.first_clean(), a1);
  EXPECT_EQ(slices_.choose(now_ns_).start, nullptr);
  queues_.of(Queue::kCacheClean).running = a1;  // somebody is at it
  EXPECT_EQ(queues_.first_clean(), nullptr);
  queues_.finish(a1);
  EXPECT_EQ(queues_.first_clean(), b1);
}

TEST_F(TimeSlicesTest, AnEndlessJobYieldsInEveryQueueAndGoesOn) {
  for (const Queue queue : kRunningQueues) {
    const QueuedJobPtr hog = push(a_, queue);
    pass_slices(5);
    EXPECT_FALSE(hog->held());  // nobody else wants the queue
    const QueuedJobPtr other = push(b_, queue);
    EXPECT_TRUE(runs_within(other, kSliceNs)) << ioctl::queue_name(queue);
    EXPECT_TRUE(hog->held());
    EXPECT_EQ(queues_.of(queue).in_flight, 2u);
    const int64_t before = ran(hog);
    now_ns_ += kSliceNs / 2;
    EXPECT_EQ(ran(hog), before);  // its time stands still
    end(other);
    EXPECT_TRUE(runs(hog));
    EXPECT_FALSE(hog->held());
    end(hog);
  }
}

// A thread is looked for first.
TEST_F(TimeSlicesTest, AJobGoesOnUntilAnotherHasAThread) {
  const QueuedJobPtr hog = push(a_, Queue::kTfu), other = enqueue(b_, Queue::kTfu);
  now_ns_ += kSliceNs;
  EXPECT_EQ(slices_.count_to_start(now_ns_), 1);
  EXPECT_TRUE(slices_.reconsider(*hog, now_ns_));
  EXPECT_TRUE(runs(hog));
  EXPECT_FALSE(hog->held());
  EXPECT_EQ(hog->slice_end_ns, now_ns_ + slices_.patience());
  choose();
  EXPECT_TRUE(runs(other));
  EXPECT_TRUE(hog->held());
  EXPECT_EQ(slices_.count_to_start(now_ns_), 0);
}

// It gets no other slice, though its fence takes its time.
TEST_F(TimeSlicesTest, AJobThatEndsWhileItIsHeldIsOver) {
  const QueuedJobPtr held = push(a_, Queue::kTfu), other = push(b_, Queue::kTfu);
  ASSERT_TRUE(runs_within(other, kSliceNs));
  ASSERT_TRUE(held->held());
  const int64_t before = ran(held);
  slices_.end(*held, now_ns_);
  pass_slices(5);
  EXPECT_TRUE(runs(other));
  end(other);
  EXPECT_FALSE(queues_.of(Queue::kTfu).running);
  EXPECT_EQ(ran(held), before);
}

TEST_F(TimeSlicesTest, SlicesAreShorterInACrowd) {
  JobQueue& queue = queues_.of(Queue::kCsd);
  EXPECT_EQ(slices_.length(queue), kSliceNs);
  for (int n = 0; n < 10; ++n) push(make_client(), Queue::kCsd);
  EXPECT_EQ(slices_.length(queue), kSliceNs / 2);
  for (int n = 10; n < 200; ++n) push(make_client(), Queue::kCsd);
  EXPECT_EQ(slices_.length(queue), kSliceNs / 10);
}

TEST_F(TimeSlicesTest, ANewcomerDoesNotWaitForAllOthers) {
  std::vector<QueuedJobPtr> hogs;
  for (const Client& client : make_crowd(40)) hogs.push_back(push(client, Queue::kCsd));
  pass_slices(40);
  EXPECT_EQ(queues_.of(Queue::kCsd).in_flight, hogs.size());
  for (int n = 0; n < 20; ++n) {
    const QueuedJobPtr small = push(a_, Queue::kCsd);
    ASSERT_TRUE(runs_within(small, kSliceNs / 4)) << n;  // two slices among so many
    now_ns_ += kSliceNs / 100;
    end(small);
  }
}

TEST_F(TimeSlicesTest, ProcessesShareNotFiles) {
  std::vector<QueuedJobPtr> jobs;
  std::vector<Client> files = make_crowd(10);
  for (Client& file : files) {
    file.info->pid = files.front().info->pid;
    jobs.push_back(push(file, Queue::kTfu));
  }
  expect_one_share(jobs);
}

TEST_F(TimeSlicesTest, TheDeadShareAsOneProcess) {
  std::vector<QueuedJobPtr> jobs;
  for (const Client& client : make_crowd(10)) {
    jobs.push_back(enqueue(client, Queue::kTfu));
    let_die(client, jobs.back());
  }
  choose();
  expect_one_share(jobs);
}

TEST_F(TimeSlicesTest, KilledJobsDoNotStartAndThoseInFlightAreCancelled) {
  const QueuedJobPtr running = push(a_, Queue::kRender), queued = push(a_, Queue::kRender),
                     blocked = push(a_, Queue::kTfu, false), other = push(b_, Queue::kRender);
  queues_.drop_all_of(a_.info->id);
  EXPECT_TRUE(running->cancelled());
  EXPECT_EQ(queues_.killed(),
            1);  // of a file's jobs the first: to look at all would take as long as it likes
  choose();
  EXPECT_TRUE(buried_.empty());  // the one waits for its file's first, the other for its dependencies
  end(running);
  EXPECT_EQ(buried_, std::vector<QueuedJobPtr>{queued});
  blocked->ready = true;
  choose();
  EXPECT_EQ(buried_, (std::vector<QueuedJobPtr>{queued, blocked}));
  EXPECT_TRUE(runs(other));
  EXPECT_EQ(queues_.killed(), 0);
}

TEST_F(TimeSlicesTest, AllJobsThatWereQueuedBeforeAKillAreBuried) {
  std::vector<QueuedJobPtr> jobs;
  for (int i = 0; i < 5; ++i) jobs.push_back(push(a_, Queue::kCsd));
  queues_.drop_all_of(a_.info->id);
  const QueuedJobPtr later = push(a_, Queue::kCsd);
  ASSERT_TRUE(jobs[0]->cancelled());
  end(jobs[0]);
  EXPECT_EQ(buried_, std::vector<QueuedJobPtr>(jobs.begin() + 1, jobs.end()));
  EXPECT_TRUE(runs(later));
  EXPECT_FALSE(later->cancelled());
  EXPECT_EQ(queues_.killed(), 0);
}

TEST_F(TimeSlicesTest, AHeldJobOfAKilledClientIsNotHeld) {
  const QueuedJobPtr hog = push(a_, Queue::kTfu);
  ASSERT_TRUE(runs_within(push(b_, Queue::kTfu), kSliceNs));
  ASSERT_TRUE(hog->held());
  queues_.drop_all_of(a_.info->id);
  EXPECT_FALSE(hog->held());
  EXPECT_TRUE(hog->cancelled());
}

TEST_F(TimeSlicesTest, TheLastThreadsAreForFirstJobsOfProcesses) {
  constexpr int kFree = kThreads - JobQueues::kFirstJobThreads;
  std::vector<Client> files = make_crowd(kFree + 1);
  for (Client& file : files) {
    file.info->pid = files.front().info->pid;
    push(file, Queue::kTfu);
  }
  pass_slices(2 * kFree);
  EXPECT_EQ(queues_.in_flight(), kFree);
  push(a_, Queue::kTfu);
  pass_slices(2);
  EXPECT_EQ(queues_.in_flight(), kFree + 1);
}

TEST_F(TimeSlicesTest, JobsWaitForThreadsThatTheHostRefuses) {
  queues_.limit_threads(1);
  const QueuedJobPtr first = push(a_, Queue::kTfu), second = push(b_, Queue::kCsd);
  EXPECT_FALSE(runs(second));
  end(first);
  EXPECT_TRUE(runs(second));
  EXPECT_EQ(queues_.thread_limit(), kThreads);  // it may have some again
}

TEST_F(TimeSlicesTest, SmallJobsStartAloneWhereNothingRuns) {
  const QueuedJobPtr unready = enqueue(a_, Queue::kCpu, false);
  EXPECT_EQ(slices_.start_alone(unready->job, now_ns_), nullptr);
  const QueuedJobPtr small = enqueue(a_, Queue::kTfu), behind = enqueue(a_, Queue::kTfu);
  EXPECT_EQ(slices_.start_alone(behind->job, now_ns_), nullptr);
  EXPECT_EQ(slices_.start_alone(small->job, now_ns_), small);
  EXPECT_TRUE(runs(small));
  const QueuedJobPtr other = enqueue(b_, Queue::kTfu);
  EXPECT_EQ(slices_.start_alone(other->job, now_ns_), nullptr);
}

// To wake a thread for what a client has behind a small job takes longer than the small one.
TEST_F(TimeSlicesTest, BehindASmallJobItsClientWaitsForTheSameThread) {
  const QueuedJobPtr small = enqueue(a_, Queue::kBin), render = enqueue(a_, Queue::kRender);
  small->job->small = true;
  TimeSlices::Choice choice = slices_.choose(now_ns_);
  EXPECT_EQ(choice.start, small);
  EXPECT_FALSE(choice.more);
  EXPECT_FALSE(runs(render));
  end(small);
  EXPECT_TRUE(runs(render));
}

TEST_F(TimeSlicesTest, NobodyWaitsBehindASmallJobOfAnotherOrBehindAnyThatIsNot) {
  const QueuedJobPtr small = enqueue(a_, Queue::kBin), of_another = enqueue(b_, Queue::kRender);
  small->job->small = true;
  EXPECT_TRUE(slices_.choose(now_ns_).more);
  choose();
  end(of_another);
  end(small);
  const QueuedJobPtr bin = enqueue(a_, Queue::kBin);
  enqueue(a_, Queue::kRender);
  const TimeSlices::Choice choice = slices_.choose(now_ns_);
  EXPECT_EQ(choice.start, bin);
  EXPECT_TRUE(choice.more);
}

TEST_F(TimeSlicesTest, TimeIsChargedToQueuesAndClients) {
  const QueuedJobPtr job = push(a_, Queue::kCsd);
  now_ns_ += 123;
  end(job);
  EXPECT_EQ(queues_.of(Queue::kCsd).busy_ns, 123u);
  EXPECT_EQ(a_.info->busy_ns[static_cast<size_t>(Queue::kCsd)], 123u);
  EXPECT_EQ(queues_.of(Queue::kCsd).jobs_done, 1u);
}

/// Jobs that take no time of a thread, but some of a board.
class PaceTest : public TimeSlicesTest {
 protected:
  QueuedJobPtr push_paced(const Client& client, Queue queue, int64_t predicted_ns) {
    QueuedJobPtr job = push(client, queue);
    EXPECT_TRUE(runs(job));
    EXPECT_EQ(pace_.left(*job, static_cast<uint64_t>(predicted_ns), now_ns_), predicted_ns);
    pace_.begin(*job);
    return job;
  }
  /// As the alarm does.
  int64_t look() {
    while (const QueuedJobPtr job = pace_.find_due(now_ns_)) end(job);
    const Pace::Look look = pace_.let_others(now_ns_);
    if (look.needed_threads > 0) choose();
    return look.next_ns;
  }
  void pass_paced(int64_t ns) {
    pass(ns);
    look();
  }
};

TEST_F(PaceTest, JobsAndThoseAfterThemWaitForThePrediction) {
  const int64_t start_ns = now_ns_;
  const QueuedJobPtr first = push_paced(a_, Queue::kCsd, 20 * kSliceNs), second = push(a_, Queue::kCsd);
  EXPECT_EQ(queues_.in_flight(), 0);  // no thread waits
  for (int64_t next_ns = look(); next_ns != Pace::kNever; next_ns = look()) {
    EXPECT_FALSE(runs(second));
    now_ns_ = next_ns;
  }
  EXPECT_TRUE(first->over);
  EXPECT_EQ(now_ns_ - start_ns, 20 * kSliceNs);
  EXPECT_TRUE(runs(second));
}

TEST_F(PaceTest, TheExecutionCounts) {
  const QueuedJobPtr job = push(a_, Queue::kTfu);
  now_ns_ += 300;
  EXPECT_EQ(pace_.left(*job, 1000, now_ns_), 700);
  EXPECT_LT(pace_.left(*job, 200, now_ns_), 0);
  EXPECT_GT(pace_.left(*job, ~uint64_t{0}, now_ns_), int64_t{1} << 60);
}

// Not even compute and graphics of one client, which are executed one after the other.
TEST_F(PaceTest, OtherQueuesGoOn) {
  push_paced(a_, Queue::kCsd, 1000 * kSliceNs);
  push_paced(a_, Queue::kBin, 1000 * kSliceNs);
  EXPECT_TRUE(runs(push(a_, Queue::kRender)));
  EXPECT_TRUE(runs(push(b_, Queue::kTfu)));
}

TEST_F(PaceTest, OtherClientsHaveTheirSlicesAndTimeStandsStillMeanwhile) {
  constexpr int64_t kNs = 4 * kSliceNs;
  const QueuedJobPtr hog = push(b_, Queue::kCsd);
  pass_slices(3);
  const QueuedJobPtr job = enqueue(a_, Queue::kCsd);
  choose();
  ASSERT_TRUE(runs(job));
  ASSERT_EQ(pace_.left(*job, kNs, now_ns_), kNs);
  pace_.begin(*job);
  int64_t start_ns = now_ns_, of_hog = -ran(hog);
  while (!job->over) pass_paced(kSliceNs / 10);
  of_hog += ran(hog);
  EXPECT_GE(of_hog, 2 * kSliceNs);
  EXPECT_EQ(ran(job), kNs);
  EXPECT_EQ(now_ns_ - start_ns, kNs + of_hog);
}

TEST_F(PaceTest, NobodyWaitsForAKilledClientOrAProcessThatHasExited) {
  const QueuedJobPtr killed = push_paced(a_, Queue::kCsd, 1000 * kSliceNs);
  const QueuedJobPtr dead = push_paced(b_, Queue::kTfu, 1000 * kSliceNs);
  EXPECT_EQ(pace_.find_due(now_ns_), nullptr);
  queues_.drop_all_of(a_.info->id);
  EXPECT_EQ(pace_.find_due(now_ns_), killed);
  end(killed);
  let_die(b_, dead);
  EXPECT_EQ(pace_.find_due(now_ns_), dead);
  end(dead);
  EXPECT_TRUE(queues_.is_empty());
}

}  // namespace
}  // namespace v3d::daemon
