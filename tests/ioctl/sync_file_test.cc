// sync_files and the fences behind them: drm-abi.md 6.1, 6.4.
#include <poll.h>

#include <cerrno>
#include <cstdint>
#include <ctime>
#include <memory>
#include <thread>
#include <vector>

#include "ioctl/abi/dma_buf.h"
#include "tests/ioctl/fixture.h"

namespace v3d::ioctl::test {
namespace {

class SyncFileTest : public IoctlTest {
 protected:
  template <typename T>
  int fd_ioctl(int fd, uint32_t request, T& args) {
    std::vector<uint8_t> bytes(drm::request_size(request));
    std::memcpy(bytes.data(), &args, std::min(bytes.size(), sizeof args));
    const int error = ioctl::fd_ioctl(kernel_, *account_, waiter_, fd, memory_, fds_, request, &bytes);
    if (!bytes.empty()) std::memcpy(&args, bytes.data(), std::min(bytes.size(), sizeof args));
    return error;
  }
  UniqueFd export_fence(uint32_t syncobj) {
    drm::SyncobjHandle args = {.handle = syncobj, .flags = drm::kSyncobjSyncFile, .fd = -1, .pad = 0};
    EXPECT_EQ(ioctl(kSyncobjHandleToFd, args), 0);
    return std::move(fds_.given);
  }
  int import_fence(int fd, uint32_t syncobj) {
    drm::SyncobjHandle args = {.handle = syncobj, .flags = drm::kSyncobjSyncFile, .fd = fd, .pad = 0};
    return ioctl(kSyncobjFdToHandle, args);
  }
  UniqueFd merge(int fd1, int fd2) {
    drm::SyncMerge args = {};
    std::strcpy(args.name, "both");
    args.fd2 = fd2;
    EXPECT_EQ(fd_ioctl(fd1, drm::request::kSyncMerge, args), 0);
    EXPECT_EQ(fds_.given_offset, 36u);
    return std::move(fds_.given);
  }
  static short polled(int fd, int timeout_ms = 0) {
    pollfd p = {fd, POLLIN, 0};
    poll(&p, 1, timeout_ms);
    return p.revents;
  }
  int status(int fd) {
    drm::SyncFileInfo info = {};
    EXPECT_EQ(fd_ioctl(fd, drm::request::kSyncFileInfo, info), 0);
    return info.status;
  }
};

TEST_F(SyncFileTest, ExportErrors) {
  const uint32_t empty = create_syncobj();
  drm::SyncobjHandle args = {.handle = 99, .flags = drm::kSyncobjSyncFile, .fd = -1, .pad = 0};
  EXPECT_EQ(ioctl(kSyncobjHandleToFd, args), ENOENT);
  args.handle = empty;
  EXPECT_EQ(ioctl(kSyncobjHandleToFd, args), EINVAL);
  const uint32_t full = create_syncobj(true);
  const UniqueFd fd = export_fence(full);
  EXPECT_EQ(import_fence(fd.get(), 99), ENOENT);
  EXPECT_EQ(import_fence(-1, empty), EINVAL);
  EXPECT_EQ(import_fence(0, empty), EINVAL);
  // An opaque descriptor is no sync_file and the other way round.
  args = {.handle = full, .flags = 0, .fd = -1, .pad = 0};
  ASSERT_EQ(ioctl(kSyncobjHandleToFd, args), 0);
  EXPECT_EQ(import_fence(fds_.given.get(), empty), EINVAL);
  args = {.handle = 0, .flags = 0, .fd = fd.get(), .pad = 0};
  EXPECT_EQ(ioctl(kSyncobjFdToHandle, args), EINVAL);
}

TEST_F(SyncFileTest, BecomesReadableForEver) {
  const uint32_t a = create_syncobj();
  const FencePtr fence = make_pending(a);
  const UniqueFd fd = export_fence(a);
  EXPECT_EQ(polled(fd.get()), 0);
  std::thread signaller([&] { fence->signal(); });
  EXPECT_EQ(polled(fd.get(), -1), POLLIN);
  signaller.join();
  EXPECT_EQ(polled(fd.get()), POLLIN);
  EXPECT_EQ(fence_of(a), fence);  // exporting does not take it away
  const UniqueFd late = export_fence(a);
  EXPECT_EQ(polled(late.get()), POLLIN);
}

TEST_F(SyncFileTest, RoundTripThroughADescriptor) {
  const uint32_t a = create_syncobj(), b = create_syncobj();
  const FencePtr fence = make_pending(a);
  const UniqueFd fd = export_fence(a);
  EXPECT_EQ(import_fence(fd.get(), b), 0);
  EXPECT_EQ(fence_of(b), fence);
}

TEST_F(SyncFileTest, ClosedDescriptorIsForgotten) {
  const uint32_t a = create_syncobj();
  const std::weak_ptr<Fence> fence = make_pending(a);
  UniqueFd fd = export_fence(a);
  file_->find_syncobj(a)->replace(nullptr);
  EXPECT_FALSE(fence.expired());
  fd.reset();
  ASSERT_EQ(host_.hangups.size(), 1u);
  host_.hangups[0]();
  host_.hangups.clear();
  EXPECT_TRUE(fence.expired());
}

/// Notes its number when it hears of a fence.
class Noter : public Watcher {
 public:
  Noter(std::vector<int>& heard, int number) : heard_(heard), number_(number) {}
  void notify() override { heard_.push_back(number_); }

 private:
  std::vector<int>& heard_;
  const int number_;
};

// Those that are left hear of it in the order of their coming, whoever went and came meanwhile.
TEST(Fence, WatchersComeAndGo) {
  for (const int count : {5, 100}) {
    Fence fence("driver", "timeline", new_fence_context(), 1);
    std::vector<int> heard, expected;
    std::vector<std::shared_ptr<Noter>> noters;
    for (int i = 0; i < count; ++i) {
      noters.push_back(std::make_shared<Noter>(heard, i));
      ASSERT_TRUE(fence.watch(noters.back()));
      // Of every ten the fourth goes at once, and the seventh when the tenth comes; nobody goes twice.
      if (i % 10 == 3) fence.unwatch(noters[static_cast<size_t>(i)].get());
      if (i % 10 == 9) fence.unwatch(noters[static_cast<size_t>(i - 3)].get());
      if (i % 10 == 9) fence.unwatch(noters[static_cast<size_t>(i - 3)].get());
      if (i % 10 != 3 && i % 10 != 6) expected.push_back(i);
    }
    fence.signal();
    EXPECT_EQ(heard, expected);
  }
}

TEST(Fence, OneWatcherMayComeTwice) {
  Fence fence("driver", "timeline", new_fence_context(), 1);
  std::vector<int> heard;
  std::vector<std::shared_ptr<Noter>> noters;
  for (int i = 0; i < 40; ++i) {
    noters.push_back(std::make_shared<Noter>(heard, i));
    ASSERT_TRUE(fence.watch(noters.back()) && fence.watch(noters.back()));
  }
  for (int i = 1; i < 40; ++i) fence.unwatch(noters[static_cast<size_t>(i)].get());
  for (int i = 2; i < 40; ++i) fence.unwatch(noters[static_cast<size_t>(i)].get());
  fence.signal();
  EXPECT_EQ(heard, (std::vector<int>{0, 0, 1}));
}

/// Processor time of the thread, ns, in which so many watchers go one by one, the last one first.
int64_t cost_of_leaving(size_t count) {
  Fence fence("driver", "timeline", new_fence_context(), 1);
  std::vector<int> heard;
  std::vector<std::shared_ptr<Noter>> noters;
  for (size_t i = 0; i < count; ++i) {
    noters.push_back(std::make_shared<Noter>(heard, 0));
    EXPECT_TRUE(fence.watch(noters.back()));
  }
  timespec begin, end;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
  for (size_t i = count; i-- > 0;) fence.unwatch(noters[i].get());
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  fence.signal();
  EXPECT_TRUE(heard.empty());
  return (end.tv_sec - begin.tv_sec) * 1'000'000'000 + end.tv_nsec - begin.tv_nsec;
}

// One client may have many sync_files of one fence, all of which go with it: ten times as many are ten times
// as much to do, not a hundred times.
TEST(Fence, EachOfManyWatchersGoesInTheSameTime) {
  EXPECT_LT(cost_of_leaving(200'000), 40 * cost_of_leaving(20'000));
}

TEST_F(SyncFileTest, Merge) {
  const uint32_t a = create_syncobj(), b = create_syncobj(), c = create_syncobj();
  const FencePtr fa = make_pending(a), fb = make_pending(b);
  const UniqueFd da = export_fence(a), db = export_fence(b);
  const UniqueFd both = merge(da.get(), db.get());
  EXPECT_EQ(polled(both.get()), 0);
  fb->signal();
  EXPECT_EQ(polled(both.get()), 0);
  EXPECT_EQ(status(both.get()), 0);
  EXPECT_EQ(import_fence(both.get(), c), 0);
  fa->signal();
  EXPECT_EQ(polled(both.get()), POLLIN);
  EXPECT_EQ(status(both.get()), 1);
  EXPECT_TRUE(fence_of(c)->is_signalled());

  drm::SyncMerge args = {};
  args.fd2 = db.get();
  args.flags = 1;
  EXPECT_EQ(fd_ioctl(da.get(), drm::request::kSyncMerge, args), EINVAL);
  args.flags = 0;
  args.pad = 1;
  EXPECT_EQ(fd_ioctl(da.get(), drm::request::kSyncMerge, args), EINVAL);
  args.pad = 0;
  args.fd2 = 4000;
  EXPECT_EQ(fd_ioctl(da.get(), drm::request::kSyncMerge, args), ENOENT);
  args.fd2 = 0;
  EXPECT_EQ(fd_ioctl(da.get(), drm::request::kSyncMerge, args), ENOENT);
}

TEST_F(SyncFileTest, MergeOfOneTimelineKeepsTheLater) {
  const uint64_t context = new_fence_context();
  const auto early = std::make_shared<Fence>("d", "t", context, 1),
             late = std::make_shared<Fence>("d", "t", context, 2);
  EXPECT_EQ(Fence::merge(early, late), late);
  EXPECT_EQ(Fence::merge(late, early), late);
  const auto other = std::make_shared<Fence>("d", "t", new_fence_context(), 1);
  const FencePtr merged = Fence::merge(Fence::merge(early, other), late);
  EXPECT_EQ(merged->parts().size(), 2u);
  late->signal();
  EXPECT_FALSE(merged->is_signalled());
  other->signal(ECANCELED);
  EXPECT_EQ(merged->status(), -ECANCELED);
  EXPECT_TRUE(Fence::merge(late, other)->is_signalled());
}

TEST_F(SyncFileTest, FileInfo) {
  const uint32_t a = create_syncobj(), b = create_syncobj();
  drm::SubmitTfu submit = {};
  submit.out_sync = a;
  ASSERT_EQ(ioctl(kSubmitTfu, submit), 0);
  make_pending(b);
  const UniqueFd job = export_fence(a), other = export_fence(b);
  const UniqueFd both = merge(job.get(), other.get());

  drm::SyncFileInfo info = {};
  ASSERT_EQ(fd_ioctl(both.get(), drm::request::kSyncFileInfo, info), 0);
  EXPECT_STREQ(info.name, "both");
  EXPECT_EQ(info.num_fences, 2u);
  EXPECT_EQ(info.status, 0);
  FakeHost::run(host_.jobs[0], ECANCELED);  // a hang
  info.num_fences = 2;
  info.fence_info = memory_.place(std::vector<drm::SyncFenceInfo>(2));
  ASSERT_EQ(fd_ioctl(both.get(), drm::request::kSyncFileInfo, info), 0);
  const auto record = memory_.at<drm::SyncFenceInfo>(info.fence_info);
  EXPECT_STREQ(record.driver_name, "drm_sched");
  EXPECT_STREQ(record.obj_name, "v3d_tfu");
  EXPECT_EQ(record.status, -125);
  EXPECT_GT(record.timestamp_ns, 0u);
  EXPECT_EQ(info.status, -125);
  EXPECT_EQ(memory_.at<drm::SyncFenceInfo>(info.fence_info + 80).status, 0);
  EXPECT_EQ(status(job.get()), -125);

  info.num_fences = 1;
  EXPECT_EQ(fd_ioctl(both.get(), drm::request::kSyncFileInfo, info), EINVAL);
  info.num_fences = 2;
  info.fence_info = 16;
  EXPECT_EQ(fd_ioctl(both.get(), drm::request::kSyncFileInfo, info), EFAULT);
  info = {};
  info.flags = 1;
  EXPECT_EQ(fd_ioctl(both.get(), drm::request::kSyncFileInfo, info), EINVAL);
  info = {};
  info.pad = 1;
  EXPECT_EQ(fd_ioctl(both.get(), drm::request::kSyncFileInfo, info), EINVAL);
  info = {};
  ASSERT_EQ(fd_ioctl(job.get(), drm::request::kSyncFileInfo, info), 0);
  EXPECT_EQ(std::string(info.name).find("drm_sched-v3d_tfu"), 0u);
}

// What is put into a BO's reservation is paid for until it is dropped there.
TEST_F(SyncFileTest, FencesOfABoAreCharged) {
  const uint32_t first = create_syncobj(), second = create_syncobj(), handle = create_bo();
  const FencePtr a = std::make_shared<Fence>("test", "test", new_fence_context(), 1),
                 b = std::make_shared<Fence>("test", "test", new_fence_context(), 1);
  file_->find_syncobj(first)->replace(a);
  file_->find_syncobj(second)->replace(b);
  const UniqueFd both = merge(export_fence(first).get(), export_fence(second).get()),
                 bo = export_bo(*file_, handle);
  const uint64_t before = account_->used(Resource::kWatches);
  drm::DmaBufSyncFile args = {.flags = drm::kDmaBufRw, .fd = both.get()};
  ASSERT_EQ(fd_ioctl(bo.get(), drm::request::kDmaBufImportSyncFile, args), 0);
  ASSERT_EQ(fd_ioctl(bo.get(), drm::request::kDmaBufImportSyncFile, args), 0);  // in the place of the first
  Reservation& reservation = file_->find_bo(handle)->reservation();
  EXPECT_EQ(reservation.fences(true), (std::vector{a, b}));
  EXPECT_EQ(account_->used(Resource::kWatches), before + 2);
  a->signal();
  EXPECT_EQ(reservation.fences(true), std::vector{b});
  EXPECT_EQ(account_->used(Resource::kWatches), before + 2);  // which were paid together
  b->signal();
  EXPECT_TRUE(reservation.fences(true).empty());
  EXPECT_LE(account_->used(Resource::kWatches), before);
}

TEST_F(SyncFileTest, OtherIoctlsAndDescriptors) {
  const UniqueFd fd = export_fence(create_syncobj(true));
  drm::SyncSetDeadline deadline = {.deadline_ns = 5, .pad = 0};
  EXPECT_EQ(fd_ioctl(fd.get(), drm::request::kSyncSetDeadline, deadline), 0);
  deadline.pad = 1;
  EXPECT_EQ(fd_ioctl(fd.get(), drm::request::kSyncSetDeadline, deadline), EINVAL);
  drm::SyncMerge args = {};
  EXPECT_EQ(fd_ioctl(fd.get(), 0xc0303e07, args), ENOTTY);
  EXPECT_EQ(fd_ioctl(0, drm::request::kSyncMerge, args), ENOTTY);
}

TEST_F(SyncFileTest, FailedCallWritesNothing) {
  const UniqueFd fd = export_fence(create_syncobj(true));
  std::vector<uint8_t> bytes(sizeof(drm::SyncMerge), 0xff);
  EXPECT_EQ(
      ioctl::fd_ioctl(kernel_, *account_, waiter_, fd.get(), memory_, fds_, drm::request::kSyncMerge, &bytes),
      EINVAL);
  EXPECT_TRUE(bytes.empty());
}

}  // namespace
}  // namespace v3d::ioctl::test
