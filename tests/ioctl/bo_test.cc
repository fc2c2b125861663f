// Buffer objects: drm-abi.md 2.5, 4.1, 4.2, 4.4, 4.5.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <random>
#include <set>
#include <thread>

#include "ioctl/base/handle_table.h"
#include "ioctl/memory/va_allocator.h"
#include "tests/ioctl/fixture.h"

namespace v3d::ioctl::test {
namespace {

class BoTest : public IoctlTest {
 protected:
  uint64_t mmap_offset(File& file, uint32_t handle) {
    drm::MmapBo args = {.handle = handle, .flags = 0, .offset = 0};
    EXPECT_EQ(ioctl(file, kMmapBo, args), 0);
    return args.offset;
  }
  int mmap_node(File& file, uint64_t offset, uint64_t length, int flags = MAP_SHARED) {
    Call call{kernel_, file, memory_, fds_, waiter_, *account_};
    Buffer::Backing backing;
    const int error = mmap_file(call, offset, length, PROT_READ, flags, &backing);
    if (error) return error;
    memfd_ = UniqueFd(dup(backing.file->memfd.get()));
    memfd_offset_ = backing.offset;
    return 0;
  }
  UniqueFd memfd_;
  uint64_t memfd_offset_ = 0;
};

TEST_F(BoTest, CreateChecksItsArgument) {
  const struct {
    uint32_t size, flags;
    int error;
  } kCases[] = {{4096, 0, 0},      {1, 0, 0},
                {0, 0, EINVAL},    {0xfffff001, 0, EINVAL},  // wraps to 0
                {4096, 1, EINVAL}, {4096, 1u << 31, EINVAL}};
  for (const auto& c : kCases) {
    drm::CreateBo args = {.size = c.size, .flags = c.flags, .handle = 0, .offset = 0};
    EXPECT_EQ(ioctl(kCreateBo, args), c.error) << c.size;
    EXPECT_EQ(args.handle != 0, c.error == 0);
    EXPECT_EQ(args.offset != 0, c.error == 0);
  }
}

TEST_F(BoTest, AddressesAreFromTheLowest) {
  for (const uint32_t address : {0x1000u, 0x2000u, 0x3000u, 0x4000u})
    EXPECT_EQ(file_->find_bo(create_bo(4096))->address(), address);
  drm::GetBoOffset offset = {.handle = 3, .offset = 0};
  EXPECT_EQ(ioctl(kGetBoOffset, offset), 0);
  EXPECT_EQ(offset.offset, 0x3000u);
  offset.handle = 5;
  EXPECT_EQ(ioctl(kGetBoOffset, offset), ENOENT);
}

TEST_F(BoTest, AddressesAndHandlesAreReusedAtOnce) {
  create_bo();
  const uint32_t second = create_bo();
  create_bo();
  drm::GemClose close_args = {.handle = second, .pad = 7};
  EXPECT_EQ(ioctl(kGemClose, close_args), 0);
  EXPECT_EQ(ioctl(kGemClose, close_args), EINVAL);
  const uint32_t again = create_bo();
  EXPECT_EQ(again, second);
  EXPECT_EQ(file_->find_bo(again)->address(), 0x2000u);
  EXPECT_EQ(create_bo(), 4u);
}

TEST_F(BoTest, ClosedBoIsUnmapped) {
  const uint32_t handle = create_bo(8192);
  const uint32_t address = file_->find_bo(handle)->address();
  mmu::AddressSpace& space = file_->bo_space(*account_)->gpu().space();
  EXPECT_TRUE(space.is_mapped(address + 4096));
  EXPECT_FALSE(space.is_mapped(address + 8192));
  drm::GemClose args = {.handle = handle, .pad = 0};
  EXPECT_EQ(ioctl(kGemClose, args), 0);
  EXPECT_FALSE(space.is_mapped(address));
}

TEST_F(BoTest, ListedBoLivesAsLongAsTheJob) {
  const uint32_t handle = create_bo();
  const uint32_t address = file_->find_bo(handle)->address();
  drm::SubmitTfu submit = {};
  submit.bo_handles[0] = handle;
  ASSERT_EQ(ioctl(kSubmitTfu, submit), 0);
  drm::GemClose args = {.handle = handle, .pad = 0};
  EXPECT_EQ(ioctl(kGemClose, args), 0);
  mmu::AddressSpace& space = file_->bo_space(*account_)->gpu().space();
  EXPECT_TRUE(space.is_mapped(address));
  EXPECT_EQ(file_->find_bo(create_bo())->address(), address + 0x1000);  // its address is not reused
  host_.run_all();
  EXPECT_FALSE(space.is_mapped(address));
}

TEST_F(BoTest, NewMemoryIsZero) {
  for (int round = 0; round < 3; ++round) {
    const uint32_t handle = create_bo(4096);
    uint8_t* memory = bo_memory(handle);
    for (int i = 0; i < 4096; ++i) ASSERT_EQ(memory[i], 0);
    std::memset(memory, 0xff, 4096);
    drm::GemClose args = {.handle = handle, .pad = 0};
    EXPECT_EQ(ioctl(kGemClose, args), 0);
  }
}

TEST_F(BoTest, OutOfAddresses) {
  ResourceLimits limits;
  limits[Resource::kBoBytes].per_client = uint64_t{8} << 30;
  Limited roomy(*this, limits);
  EXPECT_EQ(roomy.create_bo(uint64_t{3} << 30), 0);
  roomy.bo.reset();
  EXPECT_EQ(roomy.create_bo(uint64_t{1} << 30), ENOSPC);
  EXPECT_EQ(roomy.create_bo((uint64_t{1} << 30) - 0x100000), 0);
  EXPECT_EQ(uint64_t{roomy.bo->address()} + roomy.bo->size(), uint64_t{1} << 32);
  EXPECT_EQ(roomy.create_bo(0x100000 - 0x1000), ENOSPC);  // aligned to 64 KiB
  EXPECT_EQ(roomy.create_bo(0x100000 - 0x10000), 0);
  EXPECT_EQ(roomy.create_bo(0x10000), ENOSPC);
}

TEST_F(BoTest, MemoryLimitOfAClient) {
  ResourceLimits limits;
  limits[Resource::kBoBytes].per_client = 1 << 20;
  limits[Resource::kBos].per_client = 3;
  Limited tight(*this, limits);
  EXPECT_EQ(tight.create_bo(1 << 20), 0);
  EXPECT_EQ(tight.file->memory_use().bytes, 1u << 20);
  std::shared_ptr<Bo> second;
  EXPECT_EQ(tight.file->create_bo(*tight.account, 4096, &second, &tight.handle), ENOMEM);
  EXPECT_TRUE(tight.file->close_handle(1));
  tight.bo.reset();
  EXPECT_EQ(tight.file->memory_use().bytes, 0u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(tight.create_bo(4096), 0);
  EXPECT_EQ(tight.create_bo(1 << 20), ENOMEM);
}

TEST_F(BoTest, SyncobjsTakeNoDescriptors) {
  ResourceLimits limits;
  limits[Resource::kDescriptors].per_client = 2;  // the address space's, the BO's
  limits[Resource::kSyncobjs].per_client = 3;
  Limited tight(*this, limits);
  EXPECT_EQ(tight.create_bo(1 << 20), 0);
  EXPECT_EQ(tight.create_bo(1 << 20), ENOMEM);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(tight.file->add_syncobj(*tight.account, std::make_shared<Syncobj>(), &tight.handle), 0);
  EXPECT_EQ(tight.file->add_syncobj(*tight.account, std::make_shared<Syncobj>(), &tight.handle), ENOMEM);
}

TEST_F(BoTest, MmapOffsets) {
  const uint32_t first = create_bo(8192), second = create_bo(4096);
  const uint64_t offset = mmap_offset(*file_, first);
  EXPECT_GE(offset, uint64_t{1} << 32);
  EXPECT_EQ(offset % 4096, 0u);
  EXPECT_EQ(mmap_offset(*file_, first), offset);
  EXPECT_NE(mmap_offset(*file_, second), offset);
  drm::MmapBo args = {.handle = first, .flags = 1, .offset = 0};
  EXPECT_EQ(ioctl(kMmapBo, args), EINVAL);
  args = {.handle = 99, .flags = 0, .offset = 0};
  EXPECT_EQ(ioctl(kMmapBo, args), ENOENT);
}

TEST_F(BoTest, MmapChecksOffsetLengthAndOwner) {
  const uint32_t handle = create_bo(8192);
  const uint64_t offset = mmap_offset(*file_, handle);
  EXPECT_EQ(mmap_node(*file_, offset, 8192), 0);
  EXPECT_EQ(mmap_node(*file_, offset, 64), 0);
  EXPECT_EQ(mmap_node(*file_, offset, 4097), 0);
  EXPECT_EQ(mmap_node(*file_, offset, 8193), EINVAL);
  EXPECT_EQ(mmap_node(*file_, offset, 0), EINVAL);
  EXPECT_EQ(mmap_node(*file_, offset, ~uint64_t{0}), EINVAL);
  EXPECT_EQ(mmap_node(*file_, offset + 4096, 4096), EINVAL);
  EXPECT_EQ(mmap_node(*file_, 0, 4096), EINVAL);
  EXPECT_EQ(mmap_node(*file_, offset, 4096, MAP_PRIVATE), EINVAL);
  const auto other = open(kMinorV3dRender);
  EXPECT_EQ(mmap_node(*other, offset, 4096), EACCES);
  drm::GemClose args = {.handle = handle, .pad = 0};
  EXPECT_EQ(ioctl(kGemClose, args), 0);
  EXPECT_EQ(mmap_node(*file_, offset, 4096), EINVAL);
}

TEST_F(BoTest, MappingIsTheGpusMemory) {
  const uint32_t handle = create_bo(4096);
  ASSERT_EQ(mmap_node(*file_, mmap_offset(*file_, handle), 4096), 0);
  void* mapped = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memfd_.get(),
                      static_cast<off_t>(memfd_offset_));
  ASSERT_NE(mapped, MAP_FAILED);
  static_cast<uint8_t*>(mapped)[100] = 0x5a;
  EXPECT_EQ(bo_memory(handle)[100], 0x5a);
  munmap(mapped, 4096);
  // No client may take pages away from under the daemon.
  EXPECT_EQ(ftruncate(memfd_.get(), 0), -1);
  EXPECT_EQ(fcntl(memfd_.get(), F_ADD_SEALS, F_SEAL_WRITE), -1);
}

TEST_F(BoTest, WaitChecksItsArgument) {
  const uint32_t handle = create_bo();
  drm::WaitBo args = {.handle = handle, .pad = 1, .timeout_ns = 0};
  EXPECT_EQ(ioctl(kWaitBo, args), EINVAL);
  args = {.handle = 99, .pad = 0, .timeout_ns = 0};
  EXPECT_EQ(ioctl(kWaitBo, args), EINVAL);  // not ENOENT
  args = {.handle = handle, .pad = 0, .timeout_ns = ~uint64_t{0}};
  EXPECT_EQ(ioctl(kWaitBo, args), 0);  // idle
  EXPECT_GT(args.timeout_ns, ~uint64_t{0} - 1'000'000'000);
}

TEST_F(BoTest, WaitTimesOutAndCountsDown) {
  const uint32_t handle = create_bo();
  drm::SubmitTfu submit = {};
  submit.bo_handles[0] = handle;
  ASSERT_EQ(ioctl(kSubmitTfu, submit), 0);
  drm::WaitBo args = {.handle = handle, .pad = 0, .timeout_ns = 2'000'000};
  EXPECT_EQ(ioctl(kWaitBo, args), ETIME);
  EXPECT_EQ(args.timeout_ns, 0u);
  EXPECT_EQ(ioctl(kWaitBo, args), ETIME);  // a poll
  std::thread runner([&] { host_.run_all(); });
  args.timeout_ns = ~uint64_t{0};
  EXPECT_EQ(ioctl(kWaitBo, args), 0);
  runner.join();
}

TEST_F(BoTest, FlinkNames) {
  constexpr uint32_t kFlink = 0xc008640a, kOpen = 0xc010640b;
  const auto primary = open(kMinorV3d), other = open(kMinorV3d, true);
  const uint32_t handle = create_bo(*primary, 5000);
  drm::GemFlink flink = {.handle = 9, .name = 0};
  EXPECT_EQ(ioctl(*primary, kFlink, flink), ENOENT);
  flink.handle = handle;
  ASSERT_EQ(ioctl(*primary, kFlink, flink), 0);
  const uint32_t name = flink.name;
  ASSERT_EQ(ioctl(*primary, kFlink, flink), 0);
  EXPECT_EQ(flink.name, name);
  drm::GemOpen opened = {.name = name, .handle = 0, .size = 0};
  ASSERT_EQ(ioctl(*other, kOpen, opened), 0);
  EXPECT_EQ(opened.size, 8192u);
  EXPECT_EQ(other->find_bo(opened.handle)->buffer(), primary->find_bo(handle)->buffer());
  // A second handle for the same object.
  drm::GemOpen again = {.name = name, .handle = 0, .size = 0};
  ASSERT_EQ(ioctl(*other, kOpen, again), 0);
  EXPECT_NE(again.handle, opened.handle);
  EXPECT_EQ(other->find_bo(again.handle), other->find_bo(opened.handle));
  EXPECT_TRUE(other->close_handle(opened.handle));
  EXPECT_EQ(mmap_node(*other, other->find_bo(again.handle)->mmap_offset(), 4096), 0);
  opened.name = name + 1;
  EXPECT_EQ(ioctl(*other, kOpen, opened), ENOENT);
}

TEST_F(BoTest, ReleaseDropsEverything) {
  const uint32_t handle = create_bo();
  create_syncobj();
  const uint64_t offset = mmap_offset(*file_, handle);
  const std::weak_ptr<Bo> bo = file_->find_bo(handle);
  file_->release();
  EXPECT_TRUE(bo.expired());
  EXPECT_EQ(file_->find_syncobj(1), nullptr);
  EXPECT_EQ(kernel_.find_mmap_offset(offset), nullptr);
  EXPECT_EQ(file_->memory_use().bytes, 0u);
}

// Any number of them: who closes does not destroy them, and they cost what they did until somebody has.
TEST_F(BoTest, TheObjectsOfAClosedFileAreLeftToTheHost) {
  host_.keeps_remains = true;
  const uint32_t handle = create_bo();
  const uint64_t offset = mmap_offset(*file_, handle);
  const std::weak_ptr<Bo> bo = file_->find_bo(handle);
  const uint64_t bytes = account_->used(Resource::kBoBytes);
  EXPECT_GT(bytes, 0u);
  file_->release();
  EXPECT_EQ(file_->find_bo(handle), nullptr);
  EXPECT_FALSE(bo.expired());
  EXPECT_EQ(account_->used(Resource::kBos), 1u);
  EXPECT_EQ(account_->used(Resource::kBoBytes), bytes);
  ASSERT_EQ(host_.remains.size(), 1u);
  host_.remains.clear();
  EXPECT_TRUE(bo.expired());
  EXPECT_EQ(kernel_.find_mmap_offset(offset), nullptr);
  EXPECT_EQ(account_->used(Resource::kBos), 0u);
  EXPECT_EQ(account_->used(Resource::kBoBytes), 0u);
}

TEST(HandleTable, LowestFreeFirst) {
  HandleTable<int> table;
  for (uint32_t i = 1; i <= 100; ++i) EXPECT_EQ(table.add(std::make_shared<int>(i)), i);
  for (const uint32_t handle : {70u, 3u, 50u, 100u})
    EXPECT_EQ(*table.remove(handle), static_cast<int>(handle));
  EXPECT_EQ(table.remove(3), nullptr);
  EXPECT_EQ(table.remove(0), nullptr);
  EXPECT_EQ(table.find(0), nullptr);
  EXPECT_EQ(table.find(~0u), nullptr);
  EXPECT_EQ(table.count(), 96u);
  for (const uint32_t handle : {3u, 50u, 70u, 100u, 101u})
    EXPECT_EQ(table.add(std::make_shared<int>(0)), handle);
}

class VaAllocatorTest : public ::testing::TestWithParam<const Abi*> {};

TEST_P(VaAllocatorTest, NeverOverlapsAndMerges) {
  VaAllocator va(GetParam()->bo_alignment);
  std::mt19937 random(7);
  std::map<uint32_t, uint64_t> live;
  for (int step = 0; step < 4000; ++step) {
    if (live.size() > 200 || (!live.empty() && random() % 3 == 0)) {
      const auto victim = std::next(live.begin(), static_cast<int>(random() % live.size()));
      va.release(victim->first, victim->second);
      live.erase(victim);
      continue;
    }
    const uint64_t size = 1 + random() % (random() % 2 ? 8 << 20 : 128 << 10);
    const auto address = va.allocate(size);
    ASSERT_TRUE(address.has_value());
    EXPECT_EQ(*address % va.alignment(size), 0u);
    EXPECT_GE(*address, VaAllocator::kPage);
    const auto next = live.lower_bound(*address);
    if (next != live.end()) {
      EXPECT_LE(*address + size, next->first);
    }
    if (next != live.begin()) {
      EXPECT_LE(std::prev(next)->first + std::prev(next)->second, *address);
    }
    live[*address] = size;
  }
  for (const auto& [address, size] : live) va.release(address, size);
  const uint64_t most = (uint64_t{1} << 32) - va.alignment(1 << 20);
  EXPECT_EQ(va.allocate(most), va.alignment(1 << 20));
}
TEST_P(VaAllocatorTest, TakesTheSmallestHoleThatFits) {
  VaAllocator va(GetParam()->bo_alignment);
  const uint64_t large = 3 << 20, small = 1 << 20;
  const auto a = va.allocate(large), between = va.allocate(small), b = va.allocate(small),
             end = va.allocate(small);
  ASSERT_TRUE(a && between && b && end);
  va.release(*a, large);
  va.release(*b, small);
  EXPECT_EQ(va.allocate(small), b);
  EXPECT_EQ(va.allocate(large), a);
}
INSTANTIATE_TEST_SUITE_P(Kernels, VaAllocatorTest, ::testing::ValuesIn(kernels()), kernel_name);

}  // namespace
}  // namespace v3d::ioctl::test
