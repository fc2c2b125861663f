// Syncobjs: drm-abi.md 6.1, 6.2.
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <thread>

#include "tests/ioctl/fixture.h"

namespace v3d::ioctl::test {
namespace {

class SyncobjTest : public IoctlTest {
 protected:
  int wait(const std::vector<uint32_t>& handles, uint32_t flags, int64_t timeout_ns,
           uint32_t* first = nullptr) {
    drm::SyncobjWait args = {};
    args.handles = memory_.place(handles);
    args.count_handles = static_cast<uint32_t>(handles.size());
    args.flags = flags;
    args.timeout_ns = timeout_ns;
    args.first_signaled = 1234;
    const int error = ioctl(kSyncobjWait, args);
    if (first) *first = args.first_signaled;
    return error;
  }
  int array_ioctl(uint32_t request, const std::vector<uint32_t>& handles, uint32_t pad = 0) {
    drm::SyncobjArray args = {memory_.place(handles), static_cast<uint32_t>(handles.size()), pad};
    return ioctl(request, args);
  }
  static int64_t in_ms(int64_t ms) { return monotonic_ns() + ms * 1'000'000; }
};

TEST_F(SyncobjTest, CreateAndDestroy) {
  drm::SyncobjCreate create = {.handle = 0, .flags = 2};
  EXPECT_EQ(ioctl(kSyncobjCreate, create), EINVAL);
  EXPECT_EQ(create_syncobj(), 1u);
  EXPECT_EQ(create_syncobj(true), 2u);
  EXPECT_EQ(fence_of(1), nullptr);
  EXPECT_TRUE(fence_of(2)->is_signalled());
  drm::SyncobjDestroy destroy = {.handle = 1, .pad = 1};
  EXPECT_EQ(ioctl(kSyncobjDestroy, destroy), EINVAL);
  destroy.pad = 0;
  EXPECT_EQ(ioctl(kSyncobjDestroy, destroy), 0);
  EXPECT_EQ(ioctl(kSyncobjDestroy, destroy), EINVAL);
  EXPECT_EQ(create_syncobj(), 1u);
  // BO handles are another number space.
  EXPECT_EQ(create_bo(), 1u);
}

TEST_F(SyncobjTest, ResetAndSignal) {
  const uint32_t a = create_syncobj(), b = create_syncobj(true);
  for (const uint32_t request : {kSyncobjReset, kSyncobjSignal}) {
    EXPECT_EQ(array_ioctl(request, {}), EINVAL);
    EXPECT_EQ(array_ioctl(request, {a}, 1), EINVAL);
    EXPECT_EQ(array_ioctl(request, {a, 99}), ENOENT);
    drm::SyncobjArray args = {16, 1, 0};
    EXPECT_EQ(ioctl(request, args), EFAULT);
    args = {memory_.place(a), 2, 0};
    EXPECT_EQ(ioctl(request, args), EFAULT);
    args = {memory_.place(a), ~0u, 0};
    EXPECT_EQ(ioctl(request, args), ENOMEM);
  }
  EXPECT_EQ(fence_of(a), nullptr);  // nothing happened
  EXPECT_EQ(array_ioctl(kSyncobjSignal, {a}), 0);
  EXPECT_TRUE(fence_of(a)->is_signalled());
  EXPECT_EQ(array_ioctl(kSyncobjReset, {a, b}), 0);
  EXPECT_EQ(fence_of(a), nullptr);
  EXPECT_EQ(fence_of(b), nullptr);
}

TEST_F(SyncobjTest, TimelineIoctlsAreNotSupported) {
  for (const uint32_t request : {0xc03064cau, 0xc01864cbu, 0xc02064ccu, 0xc01864cdu, 0xc01864cfu}) {
    std::vector<uint8_t> arg(drm::request_size(request));
    EXPECT_EQ(raw_ioctl(*file_, request, &arg), EOPNOTSUPP) << std::hex << request;
  }
}

TEST_F(SyncobjTest, WaitErrors) {
  const uint32_t signalled = create_syncobj(true), empty = create_syncobj();
  EXPECT_EQ(wait({}, 0, 0), 0);
  EXPECT_EQ(wait({signalled}, drm::kWaitAvailable, 0), EINVAL);
  EXPECT_EQ(wait({signalled}, 16, 0), EINVAL);
  EXPECT_EQ(wait({signalled, 99}, 0, 0), ENOENT);
  EXPECT_EQ(wait({signalled, empty}, 0, 0), EINVAL);  // although one is signalled
  EXPECT_EQ(wait({signalled, empty}, drm::kWaitAll, in_ms(1000)), EINVAL);
  EXPECT_EQ(wait({empty}, drm::kWaitForSubmit, 0), ETIME);
  EXPECT_EQ(wait({signalled}, drm::kWaitDeadline, 0), 0);
  drm::SyncobjWait args = {};
  args.handles = 16;
  args.count_handles = 1;
  EXPECT_EQ(ioctl(kSyncobjWait, args), EFAULT);
}

TEST_F(SyncobjTest, WaitWithoutDeadlineField) {
  drm::SyncobjWait args = {};
  args.handles = memory_.place(create_syncobj(true));
  args.count_handles = 1;
  std::vector<uint8_t> bytes(32);
  std::memcpy(bytes.data(), &args, bytes.size());
  EXPECT_EQ(raw_ioctl(*file_, 0xc02064c3, &bytes), 0);
}

TEST_F(SyncobjTest, AnyAndAll) {
  const uint32_t a = create_syncobj(), b = create_syncobj(), c = create_syncobj();
  const FencePtr fa = make_pending(a), fb = make_pending(b), fc = make_pending(c);
  uint32_t first;
  EXPECT_EQ(wait({a, b, c}, 0, 0, &first), ETIME);
  EXPECT_EQ(first, 1234u);
  fb->signal();
  EXPECT_EQ(wait({a, b, c}, 0, 0, &first), 0);
  EXPECT_EQ(first, 1u);
  EXPECT_EQ(wait({a, b, c}, drm::kWaitAll, 0), ETIME);
  fa->signal(ECANCELED);  // an error counts as signalled
  fc->signal();
  EXPECT_EQ(wait({a, b, c}, drm::kWaitAll, 0, &first), 0);
  EXPECT_EQ(first, 0u);
}

TEST_F(SyncobjTest, WaitAllThatHadToSleepReportsNoFirst) {
  const uint32_t a = create_syncobj();
  const FencePtr fence = make_pending(a);
  std::thread signaller([&] { fence->signal(); });
  uint32_t first = 0;
  EXPECT_EQ(wait({a}, drm::kWaitAll, INT64_MAX, &first), 0);
  signaller.join();
  EXPECT_TRUE(first == ~0u || first == 0);  // 0 when the signal was first
}

TEST_F(SyncobjTest, TimeoutIsAbsolute) {
  const uint32_t a = create_syncobj();
  make_pending(a);
  EXPECT_EQ(wait({a}, 0, 0), ETIME);
  EXPECT_EQ(wait({a}, 0, -5), ETIME);
  EXPECT_EQ(wait({a}, 0, monotonic_ns() - 1'000'000'000), ETIME);
  const int64_t begin = monotonic_ns();
  EXPECT_EQ(wait({a}, 0, begin + 3'000'000), ETIME);
  EXPECT_GE(monotonic_ns(), begin + 3'000'000);
}

TEST_F(SyncobjTest, FenceIsTakenOnce) {
  const uint32_t a = create_syncobj();
  const FencePtr fence = make_pending(a);
  std::thread other([&] {
    file_->find_syncobj(a)->replace(nullptr);
    fence->signal();
  });
  // Either it saw the empty slot (EINVAL), or it waits for the fence that was there.
  const int result = wait({a}, 0, INT64_MAX);
  EXPECT_TRUE(result == 0 || result == EINVAL);
  other.join();
}

TEST_F(SyncobjTest, ForSubmitIsWokenBySignal) {
  const uint32_t a = create_syncobj(), b = create_syncobj();
  std::thread other([&] {
    file_->find_syncobj(b)->replace(Fence::stub());
    file_->find_syncobj(a)->replace(Fence::stub());
  });
  EXPECT_EQ(wait({a, b}, drm::kWaitAll | drm::kWaitForSubmit, INT64_MAX), 0);
  other.join();
}

TEST_F(SyncobjTest, ForSubmitLatchesTheFirstFence) {
  // The slot is filled and emptied before the waiter can look: the fence must not be lost.
  for (int round = 0; round < 200; ++round) {
    const uint32_t a = create_syncobj();
    const auto syncobj = file_->find_syncobj(a);
    std::thread other([&] {
      const auto fence = std::make_shared<Fence>("test", "test", new_fence_context(), 1);
      syncobj->replace(fence);
      syncobj->replace(nullptr);
      fence->signal();
    });
    const int result = wait({a}, drm::kWaitForSubmit, in_ms(20));
    other.join();
    // ETIME only if the other thread was done before the wait began.
    EXPECT_TRUE(result == 0 || result == ETIME);
    if (result == ETIME) continue;
  }
  const uint32_t a = create_syncobj();
  const auto syncobj = file_->find_syncobj(a);
  const auto watch = std::make_shared<Syncobj::Watch>(Syncobj::Watch{waiter_, nullptr});
  syncobj->watch(watch);
  const FencePtr fence = Fence::stub();
  syncobj->replace(fence);
  syncobj->replace(nullptr);
  EXPECT_EQ(syncobj->watched_fence(*watch), fence);
}

TEST_F(SyncobjTest, ForSubmitIsWokenBySubmissions) {
  const uint32_t a = create_syncobj();
  const uint32_t bo = create_bo();
  std::thread submitter([&] {
    FakeMemory memory;
    FakeFds fds;
    const auto waiter = std::make_shared<Waiter>();
    Call call{kernel_, *file_, memory, fds, waiter, *account_};
    drm::SubmitTfu args = {};
    args.bo_handles[0] = bo;
    args.out_sync = a;
    std::vector<uint8_t> bytes(sizeof args);
    std::memcpy(bytes.data(), &args, sizeof args);
    EXPECT_EQ(drm_ioctl(call, kSubmitTfu, &bytes), 0);
    host_.run_all();
  });
  EXPECT_EQ(wait({a}, drm::kWaitForSubmit | drm::kWaitAll, INT64_MAX), 0);
  submitter.join();
}

TEST_F(SyncobjTest, WaitOnTheSameSyncobjTwice) {
  const uint32_t a = create_syncobj();
  const FencePtr fence = make_pending(a);
  std::thread signaller([&] { fence->signal(); });
  EXPECT_EQ(wait({a, a}, drm::kWaitAll, INT64_MAX), 0);
  signaller.join();
}

/// Counts what a WAIT is told.
class CountingWaiter : public Waiter {
 public:
  void notify() override {
    ++told;
    Waiter::notify();
  }
  std::atomic<int> told{0};
};

TEST_F(SyncobjTest, CopiesOfAHandleAreWatchedOnce) {
  const auto waiter = std::make_shared<CountingWaiter>();
  waiter_ = waiter;
  const uint32_t a = create_syncobj(), b = create_syncobj();
  const FencePtr fence = make_pending(a);
  file_->find_syncobj(b)->replace(fence);  // one fence in two syncobjs
  std::vector<uint32_t> handles(1000, a);
  handles.resize(2000, b);
  std::thread signaller([&] {
    usleep(20000);  // lets the wait begin; nothing fails if it has not
    fence->signal();
  });
  EXPECT_EQ(wait(handles, drm::kWaitAll, INT64_MAX), 0);
  signaller.join();
  EXPECT_LE(waiter->told, 1);

  waiter->told = 0;
  const uint32_t c = create_syncobj();
  std::thread submitter([&] {
    usleep(20000);
    file_->find_syncobj(c)->replace(Fence::stub());
  });
  EXPECT_EQ(wait(std::vector<uint32_t>(1000, c), drm::kWaitForSubmit, INT64_MAX), 0);
  submitter.join();
  EXPECT_LE(waiter->told, 1);
}

TEST_F(SyncobjTest, FirstIsAPlaceInTheCallersArray) {
  const uint32_t a = create_syncobj(), b = create_syncobj(), c = create_syncobj();
  make_pending(a);
  const FencePtr fb = make_pending(b), fc = make_pending(c);
  std::thread signaller([&] {
    usleep(5000);
    fc->signal();
  });
  uint32_t first;
  EXPECT_EQ(wait({a, a, b, b, c, c}, 0, INT64_MAX, &first), 0);
  EXPECT_EQ(first, 4u);
  signaller.join();
  fb->signal();
  EXPECT_EQ(wait({a, a, b, b, c, c}, 0, INT64_MAX, &first), 0);
  EXPECT_EQ(first, 2u);
}

TEST_F(SyncobjTest, WaitsForAsManyAsTheKernelHasMemoryFor) {
  const uint32_t a = create_syncobj(true);
  EXPECT_EQ(wait(std::vector<uint32_t>(65536, a), drm::kWaitAll, 0), 0);
  EXPECT_EQ(wait(std::vector<uint32_t>(65537, a), drm::kWaitAll, 0), ENOMEM);
}

TEST_F(SyncobjTest, ManyThreads) {
  // Each waits for the one before it: a chain across threads.
  constexpr int kThreads = 8, kRounds = 50;
  std::vector<uint32_t> syncobjs;
  for (int i = 0; i < kThreads * kRounds + 1; ++i) syncobjs.push_back(create_syncobj());
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      FakeMemory memory;
      FakeFds fds;
      const auto waiter = std::make_shared<Waiter>();
      Call call{kernel_, *file_, memory, fds, waiter, *account_};
      for (int i = t; i < kThreads * kRounds; i += kThreads) {
        drm::SyncobjWait args = {};
        args.handles = memory.place(syncobjs[static_cast<size_t>(i)]);
        args.count_handles = 1;
        args.flags = drm::kWaitForSubmit;
        args.timeout_ns = INT64_MAX;
        std::vector<uint8_t> bytes(sizeof args);
        std::memcpy(bytes.data(), &args, sizeof args);
        EXPECT_EQ(drm_ioctl(call, kSyncobjWait, &bytes), 0);
        file_->find_syncobj(syncobjs[static_cast<size_t>(i) + 1])->replace(Fence::stub());
      }
    });
  }
  file_->find_syncobj(syncobjs[0])->replace(Fence::stub());
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(fence_of(syncobjs.back())->is_signalled());
}

TEST_F(SyncobjTest, WaitIsAbortedWhenTheConnectionEnds) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const UniqueFd own(ends[0]);
  UniqueFd client(ends[1]);
  waiter_ = std::make_shared<Waiter>(own.get());
  const uint32_t a = create_syncobj();
  std::thread killer([&] { client.reset(); });
  EXPECT_EQ(wait({a}, drm::kWaitForSubmit, INT64_MAX), EINTR);
  killer.join();
  make_pending(a);
  EXPECT_EQ(wait({a}, 0, INT64_MAX), EINTR);
}

TEST_F(SyncobjTest, OpaqueDescriptors) {
  const uint32_t a = create_syncobj();
  drm::SyncobjHandle args = {.handle = a, .flags = 0, .fd = -1, .pad = 1};
  EXPECT_EQ(ioctl(kSyncobjHandleToFd, args), EINVAL);
  args = {.handle = a, .flags = 4, .fd = -1, .pad = 0};
  EXPECT_EQ(ioctl(kSyncobjHandleToFd, args), EINVAL);
  args = {.handle = 99, .flags = 0, .fd = -1, .pad = 0};
  EXPECT_EQ(ioctl(kSyncobjHandleToFd, args), EINVAL);
  args.handle = a;
  ASSERT_EQ(ioctl(kSyncobjHandleToFd, args), 0);
  EXPECT_EQ(fds_.given_offset, 8u);
  EXPECT_TRUE(fds_.given_cloexec);
  UniqueFd fd = std::move(fds_.given);

  // Each import is a new handle for the same object, in any file.
  const auto other = open(kMinorV3dRender);
  for (uint32_t expected = 1; expected <= 2; ++expected) {
    args = {.handle = 0, .flags = 0, .fd = fd.get(), .pad = 0};
    ASSERT_EQ(ioctl(*other, kSyncobjFdToHandle, args), 0);
    EXPECT_EQ(args.handle, expected);
    EXPECT_EQ(other->find_syncobj(args.handle), file_->find_syncobj(a));
  }
  const UniqueFd duplicate(dup(fd.get()));
  args.fd = duplicate.get();
  EXPECT_EQ(ioctl(*other, kSyncobjFdToHandle, args), 0);
  args.pad = 1;
  EXPECT_EQ(ioctl(*other, kSyncobjFdToHandle, args), EINVAL);
  args = {.handle = 0, .flags = 4, .fd = fd.get(), .pad = 0};
  EXPECT_EQ(ioctl(*other, kSyncobjFdToHandle, args), EINVAL);
  for (const int bad : {-1, 0, 4000}) {
    args = {.handle = 0, .flags = 0, .fd = bad, .pad = 0};
    EXPECT_EQ(ioctl(*other, kSyncobjFdToHandle, args), EINVAL);
  }

  // The object lives as long as the descriptor.
  const std::weak_ptr<Syncobj> object = file_->find_syncobj(a);
  file_->release();
  other->release();
  EXPECT_FALSE(object.expired());
  ASSERT_EQ(host_.hangups.size(), 1u);
  host_.hangups[0]();
  EXPECT_TRUE(object.expired());
}

}  // namespace
}  // namespace v3d::ioctl::test
