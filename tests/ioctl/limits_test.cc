// What a client holds is counted for the process that asked, at every object.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "tests/ioctl/submit_fixture.h"

namespace v3d::ioctl::test {
namespace {

using LimitsTest = SubmitTest;

/// Leaves room for so many more.
Charge take_all_but(Account& account, Resource resource, uint64_t left) {
  Charge charge;
  uint64_t step = account.has_room(resource, 1) ? 1 : 0;
  static_cast<void>(account.charge(resource, 0, &charge));
  for (; step; step = account.has_room(resource, 2 * step) ? 2 * step : account.has_room(resource, 1) ? 1 : 0)
    EXPECT_EQ(charge.grow(step), 0);
  charge.shrink(left);
  return charge;
}

TEST_F(LimitsTest, JobsThatHaveNotEnded) {
  const Charge rest = take_all_but(*account_, Resource::kJobs, 4);
  drm::SubmitCl args = cl();  // two jobs
  EXPECT_EQ(ioctl(kSubmitCl, args), 0);
  EXPECT_EQ(ioctl(kSubmitCl, args), 0);
  EXPECT_EQ(ioctl(kSubmitCl, args), ENOMEM);
  host_.run_all();
  EXPECT_EQ(ioctl(kSubmitCl, args), 0);
}

TEST_F(LimitsTest, WhoeverAsksIsChargedWhoeverOpenedTheNode) {
  const auto other = admit(kernel_, 2000);
  Call call{kernel_, *file_, memory_, fds_, waiter_, *other};
  std::vector<uint8_t> arg(8);
  const uint64_t own = account_->used(Resource::kSyncobjs);
  EXPECT_EQ(drm_ioctl(call, kSyncobjCreate, &arg), 0);
  EXPECT_EQ(account_->used(Resource::kSyncobjs), own);
  EXPECT_EQ(other->used(Resource::kSyncobjs), 1u);
  file_->release();
  EXPECT_EQ(other->used(Resource::kSyncobjs), 0u);
}

TEST_F(LimitsTest, AllNodesOfAProcessCountTogether) {
  const auto second = open(kMinorV3dRender);
  const Charge rest = take_all_but(*account_, Resource::kSyncobjs, 2);
  create_syncobj(*file_);
  create_syncobj(*second);
  drm::SyncobjCreate args = {};
  EXPECT_EQ(ioctl(*second, kSyncobjCreate, args), ENOMEM);
}

TEST_F(LimitsTest, FencesThatAreWatched) {
  const std::vector<uint32_t> handles = {create_syncobj(), create_syncobj()};
  make_pending(handles[0]);
  make_pending(handles[1]);
  drm::SyncobjWait args = {};
  args.handles = memory_.place(handles);
  args.count_handles = 2;
  const Charge rest = take_all_but(*account_, Resource::kWatches, 1);
  EXPECT_EQ(ioctl(kSyncobjWait, args), ENOMEM);
  args.count_handles = 1;
  EXPECT_EQ(ioctl(kSyncobjWait, args), ETIME);
}

TEST_F(LimitsTest, AnImportedBufferIsItsImporters) {
  const auto other = admit(kernel_, 2000);
  UniqueFd dmabuf = export_bo(*file_, create_bo(1 << 20));
  const uint64_t bytes = account_->used(Resource::kBoBytes);
  uint32_t handle;
  ASSERT_EQ(import_bo(*open(kMinorV3dRender), dmabuf.get(), &handle), 0);
  EXPECT_EQ(account_->used(Resource::kBoBytes), bytes);  // the same memory
}

// As those of /dev/dma_heap and udmabuf: their memory is the client's own until somebody imports it.
TEST_F(LimitsTest, AClientsOwnMemoryIsChargedWhenItIsImported) {
  const UniqueFd memory(memfd_create("heap", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(memory.get(), 8 << 20), 0);
  ASSERT_EQ(fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
  const uint64_t bytes = account_->used(Resource::kBoBytes);
  uint32_t handle = 0;
  {
    const Charge rest = take_all_but(*account_, Resource::kBoBytes, (8 << 20) - 1);
    EXPECT_EQ(import_bo(*file_, memory.get(), &handle), ENOMEM);
  }
  EXPECT_EQ(account_->used(Resource::kBoBytes), bytes);
  ASSERT_EQ(import_bo(*file_, memory.get(), &handle), 0);
  EXPECT_EQ(account_->used(Resource::kBoBytes), bytes + (8 << 20));
  file_->close_handle(handle);
  EXPECT_EQ(account_->used(Resource::kBoBytes), bytes);
}

TEST_F(LimitsTest, ANameStaysWithItsBo) {
  const auto file = open(kMinorV3d, true);
  std::vector<uint32_t> names;
  for (int i = 0; i < 200; ++i) {
    drm::GemFlink args = {.handle = create_bo(*file), .name = 0};
    ASSERT_EQ(ioctl(*file, 0xc008640a, args), 0);
    names.push_back(args.name);
    if (i % 3 == 0) file->close_handle(args.handle);
  }
  drm::GemFlink args = {.handle = 2, .name = 0};
  ASSERT_EQ(ioctl(*file, 0xc008640a, args), 0);
  EXPECT_NE(std::find(names.begin(), names.end(), args.name), names.end());
}

}  // namespace
}  // namespace v3d::ioctl::test
