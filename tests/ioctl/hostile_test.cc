// Arguments that nobody sane would pass: nothing may crash, hang or take memory without bound.
#include <random>

#include "ioctl/abi/dma_buf.h"
#include "tests/ioctl/fixture.h"

namespace v3d::ioctl::test {
namespace {

class HostileTest : public IoctlTest {
 protected:
  /// Small numbers, powers of two and their neighbours, addresses of readable memory, anything.
  uint64_t number() {
    switch (random_() % 6) {
      case 0:
        return random_() % 4;
      case 1:
        return random_() % 40;
      case 2:
        return (uint64_t{1} << random_() % 64) - random_() % 2;
      case 3:
        return regions_[random_() % regions_.size()] + 8 * (random_() % 8);
      case 4:
        return 0;
      default:
        return random_() | uint64_t{random_()} << 32;
    }
  }
  void fill(uint8_t* to, size_t bytes) {
    for (size_t i = 0; i < bytes; i += random_() % 2 ? 4 : 8) {
      const uint64_t value = number();
      std::memcpy(to + i, &value, std::min<size_t>(8, bytes - i));
    }
  }

  std::mt19937 random_{20240601};
  std::vector<uint64_t> regions_;
};

TEST_F(HostileTest, RandomIoctls) {
  for (int i = 0; i < 8; ++i) regions_.push_back(memory_.place(std::vector<uint8_t>(512)));
  const std::shared_ptr<File> files[] = {file_, open(kMinorV3d), open(kMinorVc4), open(kMinorV3dRender)};
  constexpr uint32_t kRequests[] = {kVersion,           kGemClose,          kGetCap,        kPrimeHandleToFd,
                                    kPrimeFdToHandle,   kSubmitCl,          kCreateBo,      kMmapBo,
                                    kGetParam,          kGetBoOffset,       kSubmitTfu,     kSubmitCsd,
                                    kSubmitCpu,         kPerfmonCreate,     kSyncobjCreate, kPerfmonDestroy,
                                    kPerfmonGetValues,  kPerfmonGetCounter, kSubmitCpu,     kSyncobjDestroy,
                                    kSyncobjHandleToFd, kSyncobjFdToHandle, kSyncobjReset,  kSyncobjSignal,
                                    kCreateDumb,        kMapDumb,           kDestroyDumb,   0xc04064a0,
                                    0xc05064a7,         0xc06864a1,         0xc01464a6,     0xc008640a,
                                    0xc010640b,         0x4010640d,         0xc0106407,     0x80046402,
                                    0xc04064aa,         0xc01064ac,         0xc01064b5,     0xc02064b6,
                                    0xc02064b9,         0x4008644d,         0xc01064d1,     0xc06864a2,
                                    0xc01c64a3,         0xc02064a5,         0xc01064ab,     0xc01c64ad,
                                    0xc01c64ae,         0xc00464af,         0xc01864b0,     0xc01864b1,
                                    0xc03064b7,         0xc06864b8,         0xc01864ba,     0xc02464bb,
                                    0xc03864bc,         0xc01064bd,         0xc00464be,     0xc06864ce,
                                    0xc00864d0,         0xc018643a,         0xc018643b,     0xc018643c};
  for (int step = 0; step < 60000; ++step) {
    File& file = *files[random_() % std::size(files)];
    uint32_t request = kRequests[random_() % std::size(kRequests)];
    if (random_() % 16 == 0) request = static_cast<uint32_t>(random_());
    if (drm::request_nr(request) == 0x41 || drm::request_nr(request) == 0xc3)
      continue;  // may rightly wait for ever
    for (const uint64_t region : regions_) {
      if (random_() % 4) continue;
      uint8_t bytes[512];
      fill(bytes, sizeof bytes);
      // Often a chain of extensions with known ids.
      for (size_t at = 0; at + 16 <= sizeof bytes && random_() % 4; at += 64) {
        const drm::Extension header = {random_() % 2 ? 0 : number(), static_cast<uint32_t>(random_() % 9), 0};
        std::memcpy(bytes + at, &header, sizeof header);
      }
      ASSERT_TRUE(memory_.write(region, bytes, sizeof bytes));
    }
    std::vector<uint8_t> arg(drm::request_size(request));
    fill(arg.data(), arg.size());
    raw_ioctl(file, request, &arg);
    fds_.given.reset();
    if (step % 64 == 0) host_.run_all();
    if (step % 1024 == 0) {
      for (const auto& gone : std::exchange(host_.hangups, {})) gone();
    }
    ASSERT_LE(account_->used(Resource::kBoBytes), kernel_.budget().limit(Resource::kBoBytes).per_client);
  }
  host_.run_all();
  EXPECT_GT(gpu_.tfus, 0);  // some of it was sane
}

TEST_F(HostileTest, RandomFdIoctls) {
  for (int i = 0; i < 4; ++i) regions_.push_back(memory_.place(std::vector<uint8_t>(512)));
  const UniqueFd buffer = export_bo(*file_, create_bo());
  const UniqueFd fence = kernel_.export_sync_file(*account_, {Fence::stub(), ""});
  const int targets[] = {buffer.get(), fence.get(), 0};
  constexpr uint32_t kRequests[] = {
      drm::request::kSyncMerge,     drm::request::kSyncFileInfo,         drm::request::kSyncSetDeadline,
      drm::request::kDmaBufSync,    drm::request::kDmaBufExportSyncFile, drm::request::kDmaBufImportSyncFile,
      drm::request::kDmaBufSetNameA};
  for (int step = 0; step < 5000; ++step) {
    const uint32_t request =
        random_() % 8 ? kRequests[random_() % std::size(kRequests)] : static_cast<uint32_t>(random_());
    std::vector<uint8_t> arg(drm::request_size(request));
    fill(arg.data(), arg.size());
    if (arg.size() >= 36 && random_() % 2) std::memcpy(&arg[32], &targets[random_() % 3], 4);
    if (arg.size() == 8 && random_() % 2) {
      const int32_t flags_and_fd[] = {static_cast<int32_t>(random_() % 4), targets[random_() % 3]};
      std::memcpy(arg.data(), flags_and_fd, 8);
    }
    fd_ioctl(kernel_, *account_, waiter_, targets[random_() % 3], memory_, fds_, request, &arg);
    fds_.given.reset();
    for (const auto& gone : std::exchange(host_.hangups, {}))
      if (random_() % 2) gone();
  }
}

}  // namespace
}  // namespace v3d::ioctl::test
