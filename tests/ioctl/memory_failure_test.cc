// Every allocation of a call may fail: the call is ENOMEM (or EMFILE for descriptors), nothing half done
// stays behind.
#include <cerrno>
#include <new>

#include "tests/ioctl/failing_new.h"
#include "tests/ioctl/submit_fixture.h"

namespace v3d::ioctl::test {
namespace {

class MemoryFailureTest : public SubmitTest {
 protected:
  /// Calls with the first, the second, ... allocation failing, until none fails.
  /// @param undo  after a call that succeeded all the same
  template <typename Attempt, typename Undo>
  void fail_each(Attempt&& attempt, Undo&& undo) {
    int failures = 0;
    for (int n = 0; n < 1000; ++n) {
      fail_allocation(n);
      const int error = attempt();
      const bool failed = fail_no_allocation();
      if (error == 0) undo();
      if (!failed) {
        EXPECT_EQ(error, 0);
        EXPECT_GT(failures, 0);
        return;
      }
      ++failures;
      EXPECT_TRUE(error == ENOMEM || error == EMFILE || error == 0) << n << ": " << error;
    }
    FAIL() << "allocations without end";
  }
  /// An ioctl. What is thrown outside its handler the session answers with ENOMEM.
  template <typename T>
  int guarded(uint32_t request, T& args) {
    try {
      return ioctl(request, args);
    } catch (const std::bad_alloc&) {
      return ENOMEM;
    }
  }
  uint64_t used(Resource resource) const { return account_->used(resource); }
};

TEST_F(MemoryFailureTest, CreateBo) {
  const uint64_t bos = used(Resource::kBos), bytes = used(Resource::kBoBytes);
  uint32_t handle = 0;
  fail_each(
      [&] {
        drm::CreateBo args = {.size = 8192, .flags = 0, .handle = 0, .offset = 0};
        const int error = guarded(kCreateBo, args);
        handle = args.handle;
        return error;
      },
      [&] { EXPECT_TRUE(file_->close_handle(handle)); });
  EXPECT_EQ(used(Resource::kBos), bos);
  EXPECT_EQ(used(Resource::kBoBytes), bytes);
  create_bo();
}

TEST_F(MemoryFailureTest, Submit) {
  const uint64_t jobs = used(Resource::kJobs);
  drm::SubmitCl args = cl();
  args.out_sync = create_syncobj();
  fail_each([&] { return guarded(kSubmitCl, args); }, [&] { host_.run_all(); });
  host_.run_all();
  EXPECT_EQ(used(Resource::kJobs), jobs);
  // No fence of a job that was never queued holds the BO.
  EXPECT_TRUE(file_->find_bo(bo_)->reservation().fences(true).empty());
}

TEST_F(MemoryFailureTest, ExportedSyncFiles) {
  const uint32_t syncobj = create_syncobj();
  const FencePtr fence = make_pending(syncobj);
  const uint64_t descriptors = used(Resource::kDescriptors);
  fail_each(
      [&] {
        drm::SyncobjHandle args = {};
        args.handle = syncobj;
        args.flags = drm::kSyncobjSyncFile;
        return guarded(kSyncobjHandleToFd, args);
      },
      [&] {
        fds_.given.reset();
        for (const auto& gone : host_.hangups) gone();
        host_.hangups.clear();
      });
  EXPECT_EQ(used(Resource::kDescriptors), descriptors);
  fence->signal();
}

TEST_F(MemoryFailureTest, Wait) {
  const std::vector<uint32_t> handles = {create_syncobj(), create_syncobj()};
  make_pending(handles[0]);
  drm::SyncobjWait args = {};
  args.handles = memory_.place(handles);
  args.count_handles = 2;
  args.flags = drm::kWaitForSubmit | drm::kWaitAll;
  fail_each(
      [&] {
        drm::SyncobjWait copy = args;
        const int error = guarded(kSyncobjWait, copy);
        return error == ETIME ? 0 : error;
      },
      [] {});
  EXPECT_EQ(used(Resource::kWatches), 0u);
}

}  // namespace
}  // namespace v3d::ioctl::test
