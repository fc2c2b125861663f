// A file that does not wait for the GPU is held back before it has queued without end.
#include "ioctl/sync/backlog.h"

#include <sys/socket.h>

#include <thread>

#include "tests/ioctl/submit_fixture.h"

namespace v3d::ioctl::test {
namespace {

FencePtr submission() { return std::make_shared<Fence>("v3d", "render", 1, 1); }

TEST(Backlog, HoldsBackWhoeverIsTooFarAhead) {
  Backlog backlog;
  const FencePtr first = submission();
  EXPECT_EQ(backlog.add(first), nullptr);
  for (size_t i = 1; i < Backlog::kMax; ++i) EXPECT_EQ(backlog.add(submission()), nullptr);
  EXPECT_EQ(backlog.add(submission()), first);
}

TEST(Backlog, WhatEndedCountsNoMore) {
  Backlog backlog;
  for (size_t i = 0; i < 3 * Backlog::kMax; ++i) {
    const FencePtr fence = submission();
    fence->signal();
    EXPECT_EQ(backlog.add(fence), nullptr);
  }
}

TEST(Backlog, NobodyWaitsTwiceForWhatHangs) {
  Backlog backlog;
  const FencePtr first = submission(), second = submission();
  backlog.add(first);
  backlog.add(second);
  for (size_t i = 2; i < Backlog::kMax; ++i) backlog.add(submission());
  ASSERT_EQ(backlog.add(submission()), first);
  EXPECT_EQ(backlog.add(submission()), nullptr);
  first->signal();
  EXPECT_NE(backlog.add(submission()), nullptr);
}

using BacklogTest = SubmitTest;

TEST_F(BacklogTest, ASubmitWaitsForTheGpuToCatchUp) {
  drm::SubmitCl args = cl();
  for (size_t i = 0; i < Backlog::kMax; ++i) ASSERT_EQ(ioctl(kSubmitCl, args), 0);
  // Only the oldest submission ends: its bin job and its render job.
  const std::vector<JobPtr> oldest(host_.jobs.begin(), host_.jobs.begin() + 2);
  std::thread gpu([&oldest] {
    for (const JobPtr& job : oldest) FakeHost::run(job);
  });
  EXPECT_EQ(ioctl(kSubmitCl, args), 0);
  EXPECT_TRUE(oldest.back()->done->is_signalled());
  gpu.join();
}

TEST_F(BacklogTest, TheJobsOfWhoeverGoesMeanwhileAreQueued) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const UniqueFd own(ends[0]);
  UniqueFd client(ends[1]);
  waiter_ = std::make_shared<Waiter>(own.get());
  drm::SubmitCl args = cl();
  for (size_t i = 0; i < Backlog::kMax; ++i) ASSERT_EQ(ioctl(kSubmitCl, args), 0);
  client.reset();
  EXPECT_EQ(ioctl(kSubmitCl, args), 0);
  EXPECT_EQ(host_.jobs.size(), 2 * (Backlog::kMax + 1));
}

}  // namespace
}  // namespace v3d::ioctl::test
