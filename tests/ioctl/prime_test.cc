// Buffers between files and nodes: drm-abi.md 4.6, and the dumb buffers of vc4 that need it (7.2, 7.6).
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <functional>
#include <thread>

#include "ioctl/abi/dma_buf.h"
#include "tests/ioctl/fixture.h"

namespace {
std::function<void(int)> g_after_fstat;
}  // namespace

/// The C library's, after which a client may be as quick as it likes.
extern "C" int fstat(int fd, struct stat* info) noexcept {
  const int result = fstatat(fd, "", info, AT_EMPTY_PATH);
  if (g_after_fstat) std::exchange(g_after_fstat, nullptr)(fd);
  return result;
}

namespace v3d::ioctl::test {
namespace {

class PrimeTest : public IoctlTest {
 protected:
  static ino_t inode(int fd) {
    struct stat info;
    EXPECT_EQ(fstat(fd, &info), 0);
    return info.st_ino;
  }
  drm::CreateDumb create_dumb(File& file, uint32_t width, uint32_t height, uint32_t bpp = 32) {
    drm::CreateDumb args = {
        .height = height, .width = width, .bpp = bpp, .flags = 0, .handle = 5, .pitch = 5, .size = 5};
    EXPECT_EQ(ioctl(file, kCreateDumb, args), 0);
    return args;
  }
  template <typename T>
  int buffer_ioctl(int fd, uint32_t request, T& args) {
    std::vector<uint8_t> bytes(sizeof args);
    std::memcpy(bytes.data(), &args, sizeof args);
    const int error = fd_ioctl(kernel_, *account_, waiter_, fd, memory_, fds_, request, &bytes);
    if (!bytes.empty()) std::memcpy(&args, bytes.data(), std::min(bytes.size(), sizeof args));
    return error;
  }
  const std::shared_ptr<File> vc4_ = open(kMinorVc4), other_ = open(kMinorV3dRender);
};

TEST_F(PrimeTest, Errors) {
  const uint32_t handle = create_bo();
  drm::PrimeHandle args = {.handle = handle, .flags = 1, .fd = -1};
  EXPECT_EQ(ioctl(kPrimeHandleToFd, args), EINVAL);
  args = {.handle = 99, .flags = 0, .fd = -1};
  EXPECT_EQ(ioctl(kPrimeHandleToFd, args), ENOENT);
  args = {.handle = handle, .flags = drm::kCloexec | drm::kRdwr, .fd = -1};
  EXPECT_EQ(ioctl(kPrimeHandleToFd, args), 0);
  EXPECT_EQ(fds_.given_offset, 8u);
  EXPECT_TRUE(fds_.given_cloexec);
  args.flags = 0;
  EXPECT_EQ(ioctl(kPrimeHandleToFd, args), 0);
  EXPECT_FALSE(fds_.given_cloexec);

  uint32_t imported;
  EXPECT_EQ(import_bo(*other_, -1, &imported), EBADF);
  EXPECT_EQ(import_bo(*other_, 4000, &imported), EBADF);
  EXPECT_EQ(import_bo(*other_, 0, &imported), EINVAL);
  // A foreign memfd, sealed or not, and one of odd size.
  const UniqueFd foreign(memfd_create("x", MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(foreign.get(), 4096), 0);
  EXPECT_EQ(import_bo(*other_, foreign.get(), &imported), EINVAL);
  fcntl(foreign.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
  EXPECT_EQ(import_bo(*other_, foreign.get(), &imported), EINVAL);
}

TEST_F(PrimeTest, SizeIsTheSealedOne) {
  const UniqueFd memfd(memfd_create("x", MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(memfd.get(), 8192), 0);
  g_after_fstat = [](int fd) {
    ASSERT_EQ(ftruncate(fd, 4096), 0);
    ASSERT_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
  };
  uint32_t handle;
  EXPECT_EQ(import_bo(*other_, memfd.get(), &handle), EINVAL);  // not sealed when it was looked at
  EXPECT_EQ(g_after_fstat, nullptr);
  ASSERT_EQ(import_bo(*other_, memfd.get(), &handle), 0);
  EXPECT_EQ(other_->find_bo(handle)->size(), 4096u);
}

TEST_F(PrimeTest, HugePagesAreRefused) {
  const UniqueFd memfd(memfd_create("x", MFD_ALLOW_SEALING | MFD_HUGETLB));
  if (!memfd || ftruncate(memfd.get(), 2 << 20) != 0) GTEST_SKIP() << "the host has no huge pages";
  ASSERT_EQ(fcntl(memfd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
  uint32_t handle;
  EXPECT_EQ(import_bo(*other_, memfd.get(), &handle), EINVAL);
}

TEST_F(PrimeTest, DescriptorIsTheMemory) {
  const uint32_t handle = create_bo(10000);
  const UniqueFd fd = export_bo(*file_, handle), again = export_bo(*file_, handle);
  EXPECT_EQ(inode(fd.get()), inode(again.get()));
  EXPECT_EQ(lseek(fd.get(), 0, SEEK_END), 12288);
  bo_memory(handle)[12287] = 0x42;
  uint8_t byte = 0;
  EXPECT_EQ(pread(fd.get(), &byte, 1, 12287), 1);
  EXPECT_EQ(byte, 0x42);
}

TEST_F(PrimeTest, ReimportGivesTheSameHandle) {
  const uint32_t handle = create_bo();
  const UniqueFd fd = export_bo(*file_, handle);
  uint32_t imported;
  ASSERT_EQ(import_bo(*file_, fd.get(), &imported), 0);
  EXPECT_EQ(imported, handle);
  // It added no reference: one close is enough.
  EXPECT_TRUE(file_->close_handle(handle));
  EXPECT_EQ(file_->find_bo(handle), nullptr);
  ASSERT_EQ(import_bo(*file_, fd.get(), &imported), 0);
  EXPECT_EQ(file_->find_bo(imported)->size(), 4096u);
}

TEST_F(PrimeTest, ImportIntoAnotherFile) {
  create_bo(*other_);
  const uint32_t handle = create_bo(8192);
  bo_memory(handle)[5000] = 0x77;
  const UniqueFd fd = export_bo(*file_, handle);
  uint32_t imported, again;
  ASSERT_EQ(import_bo(*other_, fd.get(), &imported), 0);
  ASSERT_EQ(import_bo(*other_, fd.get(), &again), 0);
  EXPECT_EQ(imported, again);
  const auto bo = other_->find_bo(imported);
  EXPECT_EQ(*bo->host(5000, 1), 0x77);
  EXPECT_NE(bo->address(), file_->find_bo(handle)->address());  // an address of its own
  EXPECT_EQ(&bo->reservation(), &file_->find_bo(handle)->reservation());
  // The importer's object outlives the exporter.
  file_->release();
  EXPECT_EQ(*bo->host(5000, 1), 0x77);
}

TEST_F(PrimeTest, FencesAreSharedBetweenFiles) {
  const uint32_t handle = create_bo();
  const UniqueFd fd = export_bo(*file_, handle);
  uint32_t imported;
  ASSERT_EQ(import_bo(*other_, fd.get(), &imported), 0);
  drm::SubmitTfu submit = {};
  submit.bo_handles[0] = handle;
  ASSERT_EQ(ioctl(*file_, kSubmitTfu, submit), 0);
  submit.bo_handles[0] = imported;
  ASSERT_EQ(ioctl(*other_, kSubmitTfu, submit), 0);
  EXPECT_EQ(host_.jobs[1]->dependencies, std::vector{host_.jobs[0]->done});
  drm::WaitBo wait = {.handle = imported, .pad = 0, .timeout_ns = 0};
  EXPECT_EQ(ioctl(*other_, kWaitBo, wait), ETIME);
  host_.run_all();
  EXPECT_EQ(ioctl(*other_, kWaitBo, wait), 0);
}

TEST_F(PrimeTest, MemoryOutlivesAllHandlesWhileADescriptorIsOpen) {
  const uint32_t handle = create_bo();
  bo_memory(handle)[0] = 0x11;
  const UniqueFd fd = export_bo(*file_, handle);
  file_->release();
  uint32_t imported;
  ASSERT_EQ(import_bo(*other_, fd.get(), &imported), 0);
  EXPECT_EQ(*other_->find_bo(imported)->host(0, 1), 0x11);
}

TEST_F(PrimeTest, DumbBuffers) {
  const drm::CreateDumb dumb = create_dumb(*vc4_, 1024, 300);
  EXPECT_EQ(dumb.handle, 1u);
  EXPECT_EQ(dumb.pitch, 4096u);
  EXPECT_EQ(dumb.size, 4096u * 300);
  EXPECT_EQ(create_dumb(*vc4_, 3, 3, 24).pitch, 9u);
  EXPECT_EQ(create_dumb(*vc4_, 3, 3, 24).size, 4096u);
  const struct {
    uint32_t width, height, bpp;
  } kBad[] = {{0, 1, 32}, {1, 0, 32}, {1, 1, 0}, {1, 1, ~0u}, {~0u, 1, 32}, {1 << 16, 1 << 16, 32},
              {1, ~0u, 8}};
  for (const auto& bad : kBad) {
    drm::CreateDumb args = {.height = bad.height,
                            .width = bad.width,
                            .bpp = bad.bpp,
                            .flags = 0,
                            .handle = 0,
                            .pitch = 0,
                            .size = 0};
    EXPECT_EQ(ioctl(*vc4_, kCreateDumb, args), EINVAL) << bad.width << " " << bad.height << " " << bad.bpp;
  }
  drm::MapDumb map = {.handle = 1, .pad = 0, .offset = 0};
  EXPECT_EQ(ioctl(*vc4_, kMapDumb, map), 0);
  Call call{kernel_, *vc4_, memory_, fds_, waiter_, *account_};
  Buffer::Backing backing;
  EXPECT_EQ(mmap_file(call, map.offset, dumb.size, PROT_READ, MAP_SHARED, &backing), 0);
  EXPECT_EQ(backing.offset, 0u);
  map.handle = 9;
  EXPECT_EQ(ioctl(*vc4_, kMapDumb, map), ENOENT);
  drm::DestroyDumb destroy = {.handle = 1};
  EXPECT_EQ(ioctl(*vc4_, kDestroyDumb, destroy), 0);
  EXPECT_EQ(ioctl(*vc4_, kDestroyDumb, destroy), EINVAL);
}

TEST_F(PrimeTest, NonMastersHaveDumbBuffersToo) {
  const auto second = open(kMinorVc4);
  create_dumb(*second, 64, 64);
}

TEST_F(PrimeTest, BetweenTheNodes) {
  const drm::CreateDumb dumb = create_dumb(*vc4_, 64, 64);
  const UniqueFd fd = export_bo(*vc4_, dumb.handle);
  uint32_t imported;
  ASSERT_EQ(import_bo(*file_, fd.get(), &imported), 0);
  const auto bo = file_->find_bo(imported);
  EXPECT_NE(bo->address(), 0u);
  *bo->host(100, 1) = 0x33;
  uint8_t byte = 0;
  EXPECT_EQ(pread(fd.get(), &byte, 1, 100), 1);
  EXPECT_EQ(byte, 0x33);
  // And back: the dumb handle itself.
  const UniqueFd back = export_bo(*file_, imported);
  uint32_t handle;
  ASSERT_EQ(import_bo(*vc4_, back.get(), &handle), 0);
  EXPECT_EQ(handle, dumb.handle);
  EXPECT_EQ(&vc4_->find_bo(handle)->reservation(), &bo->reservation());
  // A v3d buffer on vc4 is imported, and not for MAP_DUMB.
  const UniqueFd v3d = export_bo(*file_, create_bo());
  ASSERT_EQ(import_bo(*vc4_, v3d.get(), &handle), 0);
  drm::MapDumb map = {.handle = handle, .pad = 0, .offset = 0};
  EXPECT_EQ(ioctl(*vc4_, kMapDumb, map), EINVAL);
}

TEST_F(PrimeTest, DmaBufIoctls) {
  const uint32_t handle = create_bo();
  const UniqueFd fd = export_bo(*file_, handle);
  const struct {
    uint64_t flags;
    int error;
  } kSyncs[] = {{1, 0}, {2, 0}, {3, 0}, {7, 0}, {5, 0}, {0, EINVAL}, {4, EINVAL}, {8 | 1, EINVAL}};
  for (const auto& sync : kSyncs) {
    drm::DmaBufSync args = {.flags = sync.flags};
    EXPECT_EQ(buffer_ioctl(fd.get(), drm::request::kDmaBufSync, args), sync.error) << sync.flags;
  }
  drm::DmaBufSync args = {.flags = 1};
  EXPECT_EQ(buffer_ioctl(fd.get(), 0x40086209, args), ENOTTY);
  EXPECT_EQ(buffer_ioctl(0, drm::request::kDmaBufSync, args), ENOTTY);

  // Export of an idle buffer is signalled; of a busy one it follows the job.
  drm::DmaBufSyncFile sync_file = {.flags = drm::kDmaBufRead, .fd = -1};
  ASSERT_EQ(buffer_ioctl(fd.get(), drm::request::kDmaBufExportSyncFile, sync_file), 0);
  EXPECT_TRUE(kernel_.find_sync_file(fds_.given.get())->fence->is_signalled());
  drm::SubmitTfu submit = {};
  submit.bo_handles[0] = handle;
  ASSERT_EQ(ioctl(kSubmitTfu, submit), 0);
  ASSERT_EQ(buffer_ioctl(fd.get(), drm::request::kDmaBufExportSyncFile, sync_file), 0);
  EXPECT_EQ(fds_.given_offset, 4u);
  EXPECT_EQ(kernel_.find_sync_file(fds_.given.get())->fence, host_.jobs[0]->done);
  for (const uint32_t flags : {0u, 4u, 8u}) {
    sync_file.flags = flags;
    EXPECT_EQ(buffer_ioctl(fd.get(), drm::request::kDmaBufExportSyncFile, sync_file), EINVAL);
    EXPECT_EQ(buffer_ioctl(fd.get(), drm::request::kDmaBufImportSyncFile, sync_file), EINVAL);
  }
  host_.run_all();

  // Import: jobs of others wait for the fence; as a read fence it concerns writers only.
  const auto fence = std::make_shared<Fence>("t", "t", new_fence_context(), 1);
  const UniqueFd imported = kernel_.export_sync_file(*account_, {fence, ""});
  sync_file = {.flags = drm::kDmaBufRead, .fd = imported.get()};
  ASSERT_EQ(buffer_ioctl(fd.get(), drm::request::kDmaBufImportSyncFile, sync_file), 0);
  Reservation& reservation = file_->find_bo(handle)->reservation();
  EXPECT_TRUE(reservation.fences(false).empty());
  EXPECT_EQ(reservation.fences(true), std::vector<FencePtr>{fence});
  sync_file.flags = drm::kDmaBufWrite;
  ASSERT_EQ(buffer_ioctl(fd.get(), drm::request::kDmaBufImportSyncFile, sync_file), 0);
  EXPECT_EQ(reservation.fences(false), std::vector<FencePtr>{fence});
  sync_file.fd = 0;
  EXPECT_EQ(buffer_ioctl(fd.get(), drm::request::kDmaBufImportSyncFile, sync_file), EINVAL);
  fence->signal();
}

TEST_F(PrimeTest, DmaBufSyncWaitsForTheGpu) {
  const uint32_t handle = create_bo();
  const UniqueFd fd = export_bo(*file_, handle);
  const auto begin = [&](uint64_t flags) {
    drm::DmaBufSync args = {.flags = flags};
    return buffer_ioctl(fd.get(), drm::request::kDmaBufSync, args);
  };
  const auto reads = std::make_shared<Fence>("t", "t", new_fence_context(), 1);
  const auto writes = std::make_shared<Fence>("t", "t", new_fence_context(), 1);
  file_->find_bo(handle)->reservation().add(reads, false);
  // Whoever reads does not wait for readers, and whoever ends waits for nobody.
  EXPECT_EQ(begin(drm::kDmaBufRead), 0);
  EXPECT_EQ(begin(drm::kDmaBufRw | drm::kDmaBufEnd), 0);
  std::thread gpu([&] { reads->signal(); });
  EXPECT_EQ(begin(drm::kDmaBufWrite), 0);
  EXPECT_TRUE(reads->is_signalled());
  gpu.join();
  file_->find_bo(handle)->reservation().add(writes, true);
  gpu = std::thread([&] { writes->signal(); });
  EXPECT_EQ(begin(drm::kDmaBufRead), 0);
  EXPECT_TRUE(writes->is_signalled());
  gpu.join();
}

}  // namespace
}  // namespace v3d::ioctl::test
