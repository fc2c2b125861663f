// What clients see of syncobjs without asking (wire::Status), and what the daemon hears of them there.
#include "ioctl/file_status.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "tests/ioctl/fixture.h"

namespace v3d::ioctl::test {
namespace {

class FileStatusTest : public IoctlTest {
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
    const auto place = static_cast<uint32_t>(shown_->syncobjs[handle] >> 32);
    const uint32_t index = place & ((1u << wire::kFenceIndexBits) - 1);
    return shown_->fences[index] == (place >> wire::kFenceIndexBits) * 2;
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
  shown_->resets[a] = old;
  EXPECT_EQ(fence_of(a), nullptr);
  EXPECT_EQ(state(a), wire::kEmpty);
  // One that is late empties nothing.
  const FencePtr fence = put_fence(a);
  shown_->resets[a] = old;
  EXPECT_EQ(fence_of(a), fence);
  shown_->resets[a] = lower(a);
  const auto syncobj = file_->find_syncobj(a);
  EXPECT_EQ(syncobj->fence(), nullptr);
  // Also when it is hidden before anybody looks.
  put_fence(a);
  shown_->resets[a] = lower(a);
  syncobj->hide();
  EXPECT_EQ(syncobj->fence(), nullptr);
  EXPECT_EQ(state(a), wire::kAsk);
  fence->signal();
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

}  // namespace
}  // namespace v3d::ioctl::test
