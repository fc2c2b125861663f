// What clients see of syncobjs and BOs without asking (wire::Status), what the daemon hears of them there,
// and who wakes those that sleep there.
#include "ioctl/sync/file_status.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "ioctl/sync/deferred_wakes.h"
#include "tests/ioctl/submit_fixture.h"

namespace v3d::ioctl::test {
namespace {

class FileStatusTest : public SubmitTest {
 protected:
  FileStatusTest() {
    void* memory =
        mmap(nullptr, FileStatus::bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, file_->status()->memfd(), 0);
    EXPECT_NE(memory, MAP_FAILED);
    shown_ = static_cast<wire::Status*>(memory);
  }
  ~FileStatusTest() override { munmap(shown_, FileStatus::bytes()); }

  uint32_t lower(uint32_t handle) const { return static_cast<uint32_t>(shown_->syncobjs[handle]); }
  uint32_t state(uint32_t handle) const { return lower(handle) & 3; }
  bool is_pending(uint32_t handle) const {
    return is_pending_at(static_cast<uint32_t>(shown_->syncobjs[handle] >> 32));
  }
  bool is_pending_at(uint32_t place) const {
    const uint32_t index = place & ((1u << wire::kFenceIndexBits) - 1);
    return shown_->fences[index] == (place >> wire::kFenceIndexBits) * 2;
  }
  enum class Use { kUnknown, kIdle, kBusy };
  Use use_of(uint32_t bo) const {
    const uint32_t place = shown_->bos[bo];
    if (place == wire::kAskOfBo) return Use::kUnknown;
    return place != wire::kIdleBo && is_pending_at(place) ? Use::kBusy : Use::kIdle;
  }
  void submit() {
    drm::SubmitCl args = cl();
    EXPECT_EQ(ioctl(kSubmitCl, args), 0);
  }
  /// A fence as jobs of the file have.
  FencePtr put_fence(uint32_t handle) {
    FencePtr fence = file_->next_fence(Queue::kRender);
    file_->find_syncobj(handle)->replace(fence);
    return fence;
  }

  wire::Status* shown_;
};

TEST_F(FileStatusTest, ShowsWhatASyncobjHolds) {
  const uint32_t a = create_syncobj(), b = create_syncobj(true);
  EXPECT_EQ(state(a), wire::kEmpty);
  EXPECT_EQ(state(b), wire::kSignalled);
  const FencePtr fence = put_fence(a);
  EXPECT_EQ(state(a), wire::kPending);
  EXPECT_TRUE(is_pending(a));
  fence->signal();
  EXPECT_FALSE(is_pending(a));
  // Fences from elsewhere have no place here.
  const FencePtr other = make_pending(a);
  EXPECT_EQ(state(a), wire::kAsk);
  other->signal();
  drm::SyncobjDestroy destroy = {.handle = b, .pad = 0};
  EXPECT_EQ(ioctl(kSyncobjDestroy, destroy), 0);
  EXPECT_EQ(state(b), wire::kAsk);
  file_->release();
  EXPECT_EQ(shown_->closed, 1u);
}

TEST_F(FileStatusTest, EntriesNeverRepeat) {
  const uint32_t a = create_syncobj();
  std::vector<uint32_t> seen;
  for (int i = 0; i < 100; ++i) {
    seen.push_back(lower(a));
    file_->find_syncobj(a)->replace(i % 2 ? nullptr : Fence::stub());
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(std::unique(seen.begin(), seen.end()), seen.end());
}

TEST_F(FileStatusTest, HearsOfResets) {
  const uint32_t a = create_syncobj(true);
  const uint32_t old = lower(a);
  shown_->changes[a] = old;
  EXPECT_EQ(fence_of(a), nullptr);
  EXPECT_EQ(state(a), wire::kEmpty);
  // One that is late empties nothing.
  const FencePtr fence = put_fence(a);
  shown_->changes[a] = old;
  EXPECT_EQ(fence_of(a), fence);
  shown_->changes[a] = lower(a);
  const auto syncobj = file_->find_syncobj(a);
  EXPECT_EQ(syncobj->fence(), nullptr);
  // Also when it is hidden before anybody looks.
  put_fence(a);
  shown_->changes[a] = lower(a);
  syncobj->hide();
  EXPECT_EQ(syncobj->fence(), nullptr);
  EXPECT_EQ(state(a), wire::kAsk);
  fence->signal();
}

TEST_F(FileStatusTest, HearsOfFencesThatClientsPutInPlace) {
  const uint32_t a = create_syncobj(), b = create_syncobj();
  const auto change = [&](uint32_t to) { shown_->changes[b] = uint64_t{to} << 32 | lower(b); };
  const FencePtr fence = put_fence(a);
  const auto place = static_cast<uint32_t>(shown_->syncobjs[a] >> 32);
  change(place);
  EXPECT_EQ(fence_of(b), fence);
  EXPECT_EQ(state(b), wire::kPending);
  EXPECT_EQ(shown_->syncobjs[b] >> 32, place);
  change(wire::kSignalledNow);
  EXPECT_TRUE(fence_of(b)->is_signalled());
  EXPECT_EQ(state(b), wire::kSignalled);
  // One that is late puts nothing there; one that has signalled still is that fence.
  const uint32_t late = lower(b);
  file_->find_syncobj(b)->replace(nullptr);
  shown_->changes[b] = uint64_t{place} << 32 | late;
  EXPECT_EQ(fence_of(b), nullptr);
  fence->signal();
  change(place);
  EXPECT_EQ(fence_of(b), fence);
  // Where another fence has the place, it has signalled.
  const FencePtr next = put_fence(a);
  ASSERT_NE(shown_->syncobjs[a] >> 32, place);
  change(place);
  EXPECT_NE(fence_of(b), next);
  EXPECT_TRUE(fence_of(b)->is_signalled());
  next->signal();
  // Also when it is hidden before anybody looks.
  const auto syncobj = file_->find_syncobj(b);
  const FencePtr third = put_fence(a);
  change(static_cast<uint32_t>(shown_->syncobjs[a] >> 32));
  syncobj->hide();
  EXPECT_EQ(syncobj->fence(), third);
  third->signal();
}

TEST_F(FileStatusTest, WhatClientsDestroyIsNoMoreUntilTheyReviveIt) {
  const uint32_t a = create_syncobj(true);
  shown_->changes[a] = uint64_t{wire::kDestroyed} << 32 | lower(a);
  EXPECT_EQ(file_->find_syncobj(a), nullptr);
  drm::SyncobjDestroy destroy = {.handle = a, .pad = 0};
  EXPECT_EQ(ioctl(kSyncobjDestroy, destroy), EINVAL);
  EXPECT_NE(create_syncobj(), a);
  shown_->changes[a] = lower(a);
  ASSERT_NE(file_->find_syncobj(a), nullptr);
  EXPECT_EQ(fence_of(a), nullptr);
  EXPECT_EQ(ioctl(kSyncobjDestroy, destroy), 0);
  EXPECT_EQ(create_syncobj(), a);
}

TEST_F(FileStatusTest, ClientsAskWhileTheDaemonWaitsForAFenceToAppear) {
  const uint32_t a = create_syncobj();
  const auto syncobj = file_->find_syncobj(a);
  const auto waiter = std::make_shared<Waiter>();
  const auto watch = std::make_shared<Syncobj::Watch>(Syncobj::Watch{waiter, nullptr});
  syncobj->watch(watch);
  EXPECT_EQ(state(a), wire::kAsk);
  syncobj->unwatch(watch);
  EXPECT_EQ(state(a), wire::kEmpty);
  // The client was faster.
  shown_->changes[a] = uint64_t{wire::kSignalledNow} << 32 | lower(a);
  syncobj->watch(watch);
  ASSERT_NE(syncobj->watched_fence(*watch), nullptr);
  EXPECT_TRUE(syncobj->watched_fence(*watch)->is_signalled());
  EXPECT_EQ(state(a), wire::kSignalled);
}

TEST_F(FileStatusTest, PlacesOfFencesAreUsedAgain) {
  const uint32_t a = create_syncobj();
  for (int i = 0; i < 5000; ++i) {
    const FencePtr fence = put_fence(a);
    ASSERT_EQ(state(a), wire::kPending) << i;
    ASSERT_TRUE(is_pending(a));
    if (i % 2) fence->signal();
    file_->find_syncobj(a)->replace(nullptr);
  }
  // More that are pending than there are places: clients have to ask for the others.
  std::vector<FencePtr> pending;
  for (uint32_t i = 0; i < wire::Status::kFences + 10; ++i) pending.push_back(put_fence(a));
  EXPECT_EQ(state(a), wire::kAsk);
  for (const FencePtr& fence : pending) fence->signal();
  const FencePtr next = put_fence(a);
  EXPECT_EQ(state(a), wire::kPending);
  next->signal();
}

TEST_F(FileStatusTest, BelievesNothingThatClientsWrite) {
  const uint32_t a = create_syncobj(true), b = create_syncobj();
  const FencePtr fence = put_fence(b);
  std::memset(static_cast<void*>(shown_), 0xa5, sizeof *shown_);
  EXPECT_TRUE(fence_of(a)->is_signalled());
  EXPECT_EQ(fence_of(b), fence);
  fence->signal();
  EXPECT_TRUE(fence_of(b)->is_signalled());
  EXPECT_EQ(create_syncobj(), 3u);
  EXPECT_EQ(state(3), wire::kEmpty);
}

TEST_F(FileStatusTest, ShowsWhichBosJobsUse) {
  EXPECT_EQ(use_of(bo_), Use::kIdle);
  EXPECT_EQ(use_of(bo_ + 1), Use::kUnknown);
  submit();
  EXPECT_EQ(use_of(bo_), Use::kBusy);
  submit();
  ASSERT_EQ(host_.jobs.size(), 4u);
  for (size_t i = 0; i < 3; ++i) FakeHost::run(host_.jobs[i]);
  EXPECT_EQ(use_of(bo_), Use::kBusy);
  FakeHost::run(host_.jobs[3]);
  EXPECT_EQ(use_of(bo_), Use::kIdle);
  // Another object that has the handle then.
  submit();
  drm::GemClose close = {.handle = bo_, .pad = 0};
  EXPECT_EQ(ioctl(kGemClose, close), 0);
  EXPECT_EQ(use_of(bo_), Use::kUnknown);
  EXPECT_EQ(create_bo(), bo_);
  EXPECT_EQ(use_of(bo_), Use::kIdle);
}

TEST_F(FileStatusTest, SaysNothingOfBosThatOthersUse) {
  submit();
  host_.run_all();
  EXPECT_EQ(use_of(bo_), Use::kIdle);
  // A fence of nobody's job: it may signal before those of jobs do.
  const auto fence = std::make_shared<Fence>("test", "test", new_fence_context(), 1);
  file_->find_bo(bo_)->reservation().add(fence, false);
  EXPECT_EQ(use_of(bo_), Use::kUnknown);
  submit();  // waits for it
  EXPECT_EQ(use_of(bo_), Use::kBusy);
  fence->signal();
  host_.run_all();
  EXPECT_EQ(use_of(bo_), Use::kIdle);
  // A job of another file that has the memory, too.
  const auto other = open(kMinorV3dRender);
  uint32_t there;
  ASSERT_EQ(import_bo(*other, export_bo(*file_, bo_).get(), &there), 0);
  drm::SubmitCl args = cl();
  args.bo_handles = memory_.place(std::vector<uint32_t>{there});
  EXPECT_EQ(ioctl(*other, kSubmitCl, args), 0);
  EXPECT_EQ(use_of(bo_), Use::kUnknown);
  EXPECT_TRUE(other->close_handle(there));
  EXPECT_EQ(use_of(bo_), Use::kUnknown);
  host_.run_all();
  submit();
  EXPECT_EQ(use_of(bo_), Use::kBusy);
}

TEST_F(FileStatusTest, ShowsAsManyBosAsHaveAPlace) {
  for (uint32_t handle = bo_ + 1; handle < wire::Status::kBos; ++handle) ASSERT_EQ(create_bo(), handle);
  EXPECT_EQ(use_of(wire::Status::kBos - 1), Use::kIdle);
  EXPECT_EQ(create_bo(), wire::Status::kBos);
  drm::SubmitCl args = cl();
  args.bo_handles = memory_.place(std::vector<uint32_t>{wire::Status::kBos});
  EXPECT_EQ(ioctl(kSubmitCl, args), 0);
  host_.run_all();
}

TEST_F(FileStatusTest, LeavesWakesToWhoAsks) {
  const uint32_t a = create_syncobj();
  const auto offset = static_cast<uint32_t>(reinterpret_cast<uint8_t*>(&shown_->syncobjs[a]) -
                                            reinterpret_cast<uint8_t*>(shown_));
  const auto other = open(kMinorV3dRender);
  {
    DeferredWakes wakes(file_->status().get());
    put_fence(a)->signal();
    EXPECT_TRUE(wakes.offsets().empty());  // nobody sleeps
    std::fill(std::begin(shown_->sleepers), std::end(shown_->sleepers), 1);
    const std::array fences = {put_fence(a), put_fence(a)};
    ASSERT_EQ(wakes.offsets().size(), 1u);
    EXPECT_EQ(wakes.offsets()[0], offset);
    EXPECT_FALSE(wakes.add(*other->status(), offset));
    for (uint32_t i = 1; i < wire::Channel::kMostWakes; ++i) EXPECT_TRUE(wakes.add(*file_->status(), i * 4));
    EXPECT_FALSE(wakes.add(*file_->status(), 1000));
    EXPECT_TRUE(wakes.add(*file_->status(), offset));
    wakes.hand_over();
    EXPECT_TRUE(wakes.offsets().empty());
    std::fill(std::begin(shown_->sleepers), std::end(shown_->sleepers), 0);
  }
  EXPECT_EQ(DeferredWakes::current(), nullptr);
}

}  // namespace
}  // namespace v3d::ioctl::test
