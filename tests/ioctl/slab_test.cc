// Small BOs in slabs: what they share, and what they must not (ioctl/memory/slab.h).
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <thread>

#include "tests/ioctl/fixture.h"

namespace v3d::ioctl::test {
namespace {

class SlabTest : public IoctlTest {
 protected:
  struct Mapped {
    UniqueFd memfd;
    uint64_t offset = 0;
  };
  Mapped map_bo(uint32_t handle) {
    Mapped mapped;
    Call call{kernel_, *file_, memory_, fds_, waiter_, *account_};
    Buffer::Backing backing;
    EXPECT_EQ(mmap_file(call, file_->find_bo(handle)->mmap_offset(), 4096, PROT_READ, MAP_SHARED, &backing),
              0);
    mapped.memfd = UniqueFd(dup(backing.file->memfd.get()));
    mapped.offset = backing.offset;
    return mapped;
  }
  static uint8_t byte_at(const Mapped& mapped) {
    uint8_t byte = 0;
    EXPECT_EQ(pread(mapped.memfd.get(), &byte, 1, static_cast<off_t>(mapped.offset)), 1);
    return byte;
  }
  static ino_t inode(int fd) {
    struct stat info;
    EXPECT_EQ(fstat(fd, &info), 0);
    return info.st_ino;
  }
  /// Of the GPU's view, as jobs see it.
  uint8_t load(uint32_t address) { return space().memory().load<uint8_t>(address); }
  void store(uint32_t address, uint8_t value) { space().memory().store<uint8_t>(address, value); }
  uint32_t address_of(uint32_t handle) { return file_->find_bo(handle)->address(); }
  mmu::AddressSpace& space() { return file_->bo_space(*account_)->gpu().space(); }
  BoSpace::HostUse use() { return file_->bo_space(*account_)->host_use(); }
  uint64_t retired() { return file_->memory_use().retired_bytes; }
};

TEST_F(SlabTest, ManyBosTakeFewDescriptorsAndMappings) {
  create_bo();
  const uint64_t few = use().mappings;
  rlimit limit, old;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
  limit = old;
  limit.rlim_cur = 512;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  drm::CreateBo args = {};
  int error = 0;
  for (int i = 0; i < 100'000 && !error; ++i) {
    args = {.size = 4096, .flags = 0, .handle = 0, .offset = 0};
    error = ioctl(kCreateBo, args);
    if (!error) store(args.offset + 5, 1);
  }
  setrlimit(RLIMIT_NOFILE, &old);
  EXPECT_EQ(error, 0);
  EXPECT_EQ(args.handle, 100'001u);
  EXPECT_LE(use().descriptors, 100'001u / kSlabPages + 2);
  EXPECT_LE(use().mappings, few + 2 * use().descriptors);
  EXPECT_EQ(space().take_faults().count, 0u);
  // Every second one goes: what is left does not take a mapping each.
  for (uint32_t handle = 1; handle <= 100'000; handle += 2) ASSERT_TRUE(file_->close_handle(handle));
  EXPECT_LE(use().mappings, kExactMappings + 3 * use().descriptors);
  EXPECT_EQ(load(address_of(2) + 5), 1);
  for (uint32_t handle = 1; handle <= 100'000; handle += 2) {
    const uint32_t made = create_bo();
    ASSERT_EQ(made, handle);
    ASSERT_EQ(load(address_of(made) + 5), 0) << "the memory of a new BO";
  }
  file_->release();
}

TEST_F(SlabTest, WhatLiesBetweenBosFaults) {
  const uint32_t first = create_bo(), second = create_bo(), third = create_bo();
  const uint32_t address = address_of(second);
  EXPECT_EQ(address_of(first) + 4096, address);
  EXPECT_EQ(address_of(third), address + 4096);
  store(address, 1);
  ASSERT_TRUE(file_->close_handle(second));
  EXPECT_FALSE(space().is_mapped(address));
  file_->bo_space(*account_)->settle();
  EXPECT_EQ(load(address), 0);
  store(address_of(third) + 4096, 1);
  EXPECT_EQ(space().take_faults().count, 2u);
}

TEST_F(SlabTest, ASubmitFindsNothingOfWhatWasClosed) {
  for (int i = 0; i < 100; ++i) store(address_of(create_bo()), 1);
  const uint32_t address = address_of(50);
  const uint64_t before = use().mappings;
  for (uint32_t handle = 10; handle < 90; ++handle) ASSERT_TRUE(file_->close_handle(handle));
  // Taken again at once: memory of its own, though no job has come between.
  ASSERT_EQ(create_bo(), 10u);
  EXPECT_EQ(load(address_of(10)), 0);
  drm::SubmitCsd args = {};
  args.cfg[0] = args.cfg[1] = args.cfg[2] = 1 << 16;
  args.bo_handles = memory_.place(std::vector<uint32_t>{1});
  args.bo_handle_count = 1;
  ASSERT_EQ(ioctl(kSubmitCsd, args), 0);
  EXPECT_LE(use().mappings, before + 2);
  EXPECT_EQ(load(address), 0);
  EXPECT_EQ(space().take_faults().count, 1u);
  EXPECT_EQ(load(address_of(1)) + load(address_of(100)), 2);
  EXPECT_EQ(space().take_faults().count, 0u);
  host_.run_all();
}

TEST_F(SlabTest, UnmappedMemoryIsUsedAgainAndGivenBack) {
  create_bo();
  const uint32_t handle = create_bo(64 << 10), address = address_of(handle);
  const auto file = file_->find_bo(handle)->buffer()->backing().file;
  struct stat info;
  for (uint32_t at = 0; at < 64 << 10; at += 4096) store(address + at, 1);
  ASSERT_EQ(fstat(file->memfd.get(), &info), 0);
  EXPECT_EQ(info.st_blocks, 128);
  ASSERT_TRUE(file_->close_handle(handle));
  ASSERT_EQ(fstat(file->memfd.get(), &info), 0);
  EXPECT_EQ(info.st_blocks, 0);
  EXPECT_EQ(retired(), 0u);
  EXPECT_EQ(address_of(create_bo(64 << 10)), address);
  EXPECT_EQ(load(address), 0);
}

TEST_F(SlabTest, MappedMemoryStaysTheMappingsAfterClose) {
  create_bo();
  const uint32_t handle = create_bo();
  const Mapped mapped = map_bo(handle);
  store(address_of(handle), 0x5a);
  ASSERT_TRUE(file_->close_handle(handle));
  EXPECT_EQ(retired(), 4096u);
  for (int i = 0; i < 600; ++i) {
    const uint32_t other = create_bo();
    EXPECT_EQ(load(address_of(other)), 0);
    store(address_of(other), 0x11);
  }
  EXPECT_EQ(byte_at(mapped), 0x5a);
}

TEST_F(SlabTest, AnEmptySlabForgetsWhatWasRetired) {
  const uint32_t handle = create_bo(), last = create_bo();
  const Mapped mapped = map_bo(handle);
  store(address_of(handle), 0x5a);
  ASSERT_TRUE(file_->close_handle(handle));
  EXPECT_EQ(retired(), 4096u);
  ASSERT_TRUE(file_->close_handle(last));
  EXPECT_EQ(retired(), 0u);
  const uint32_t again = create_bo();
  EXPECT_EQ(load(address_of(again)), 0);
  store(address_of(again), 0x11);
  EXPECT_EQ(byte_at(mapped), 0x5a);  // the old memfd, which only the mapping has now
  EXPECT_NE(inode(mapped.memfd.get()), file_->find_bo(again)->buffer()->backing().file->key.inode);
}

TEST_F(SlabTest, SlabsHoldAtMostTwiceThePeakAndALittle) {
  std::mt19937 random(3);
  std::vector<uint32_t> live;
  uint64_t live_bytes = 0, peak = 0, most = 0;
  for (int step = 0; step < 20'000; ++step) {
    if (live.size() > 400 || (!live.empty() && random() % 2)) {
      const size_t i = random() % live.size();
      live_bytes -= file_->find_bo(live[i])->size();
      ASSERT_TRUE(file_->close_handle(live[i]));
      live[i] = live.back();
      live.pop_back();
    } else {
      live.push_back(create_bo((1 + random() % 32) * 4096));
      live_bytes += file_->find_bo(live.back())->size();
      map_bo(live.back());
    }
    peak = std::max(peak, live_bytes);
    most = std::max(most, live_bytes + retired());
    ASSERT_LE(live_bytes + retired(), 2 * peak + kMaxRetired + kMaxSlabBo);
  }
  RecordProperty("peak", std::to_string(peak));
  RecordProperty("most", std::to_string(most));
  for (const uint32_t handle : live) ASSERT_TRUE(file_->close_handle(handle));
  EXPECT_EQ(retired(), 0u);
}

TEST_F(SlabTest, RetiredMemoryCountsForTheLimit) {
  ResourceLimits limits;
  limits[Resource::kBoBytes] = {4 * 4096, 0, 1 << 20};
  Limited tight(*this, limits);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(tight.create_bo(4096), 0);
  tight.bo->buffer()->backing_for_client();
  tight.bo.reset();
  ASSERT_TRUE(tight.file->close_handle(tight.handle));
  EXPECT_EQ(tight.account->used(Resource::kBoBytes), 3 * 4096u);
  ASSERT_EQ(tight.create_bo(4096), 0);
  tight.bo.reset();
  EXPECT_EQ(tight.create_bo(4096), ENOMEM);
  tight.file->release();
  EXPECT_EQ(tight.account->used(Resource::kBoBytes), 0u);
}

TEST_F(SlabTest, SlabsAndWhatLeavesThemAreCharged) {
  ResourceLimits limits;
  limits[Resource::kDescriptors] = {5, 0, 1 << 10};
  Kernel tight(gpu_, host_, limits);
  const auto account = admit(tight);
  const auto file = tight.open(kMinorV3dRender, 1, "test", false);
  std::vector<std::shared_ptr<Bo>> bos(600);
  uint32_t handle;
  ASSERT_EQ(file->create_bo(*account, 1 << 20, &bos[0], &handle), 0);
  for (size_t i = 1; i < bos.size(); ++i) ASSERT_EQ(file->create_bo(*account, 4096, &bos[i], &handle), 0);
  EXPECT_EQ(account->used(Resource::kDescriptors), 5u);  // address space, large BO, three slabs
  EXPECT_LE(account->used(Resource::kMappings), kRoomMappings + kBoMappings + 3 * kSlabMappings);
  std::shared_ptr<Bo> bo;
  EXPECT_EQ(file->create_bo(*account, 1 << 20, &bo, &handle), ENOMEM);
  drm::PrimeHandle args = {.handle = 5, .flags = 0, .fd = -1};
  Call call{tight, *file, memory_, fds_, waiter_, *account};
  std::vector<uint8_t> bytes(sizeof args);
  std::memcpy(bytes.data(), &args, sizeof args);
  EXPECT_EQ(drm_ioctl(call, kPrimeHandleToFd, &bytes), ENOMEM);
  bos.clear();
  file->release();
  EXPECT_EQ(account->used(Resource::kDescriptors), 0u);
  EXPECT_EQ(account->used(Resource::kMappings), 0u);
}

TEST_F(SlabTest, HolesAreExactAsFarAsTheAccountBearsIt) {
  ResourceLimits limits;
  limits[Resource::kMappings] = {kRoomMappings + 10, 0, 1 << 10};
  Limited tight(*this, limits);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(tight.create_bo(4096), 0);
  tight.bo.reset();
  const auto address = [&](uint32_t h) { return tight.file->find_bo(h)->address(); };
  mmu::AddressSpace& gpu = tight.file->bo_space(*tight.account)->gpu().space();
  for (uint32_t closed = 1; closed < 100; closed += 2) {
    const uint32_t at = address(closed);
    ASSERT_TRUE(tight.file->close_handle(closed));
    EXPECT_FALSE(gpu.is_mapped(at));
    tight.file->bo_space(*tight.account)->settle();
    EXPECT_LE(gpu.host_mappings(), kRoomMappings + 10);
  }
  ASSERT_EQ(tight.create_bo(4096), 0);
  EXPECT_EQ(*tight.bo->host(0, 1), 0);
  EXPECT_EQ(tight.account->refusals(Resource::kMappings) > 0, true);
  gpu.memory().store<uint8_t>(address(2), 1);
  EXPECT_EQ(gpu.take_faults().count, 0u);
}

TEST_F(SlabTest, LargeAndDumbBuffersHaveMemoryOfTheirOwn) {
  EXPECT_TRUE(file_->find_bo(create_bo(kMaxSlabBo))->buffer()->in_slab());
  EXPECT_FALSE(file_->find_bo(create_bo(kMaxSlabBo + 1))->buffer()->in_slab());
  const auto vc4 = open(kMinorVc4);
  std::shared_ptr<Bo> bo;
  uint32_t handle;
  ASSERT_EQ(vc4->create_bo(*account_, 4096, &bo, &handle), 0);
  EXPECT_FALSE(bo->buffer()->in_slab());
}

TEST_F(SlabTest, ExportMovesItOutAndTellsWhoMappedIt) {
  const uint32_t first = create_bo(), handle = create_bo(8192), third = create_bo();
  const uint32_t address = address_of(handle);
  const Mapped old = map_bo(handle);
  store(address_of(first), 1);
  store(address + 4097, 2);
  store(address_of(third), 3);
  const UniqueFd fd = export_bo(*file_, handle), again = export_bo(*file_, handle);
  EXPECT_EQ(inode(fd.get()), inode(again.get()));
  EXPECT_NE(inode(fd.get()), inode(old.memfd.get()));
  EXPECT_EQ(lseek(fd.get(), 0, SEEK_END), 8192);  // nothing of the neighbours
  ASSERT_EQ(fds_.moved.size(), 1u);
  EXPECT_EQ(fds_.moved[0].slab.inode, inode(old.memfd.get()));
  EXPECT_EQ(fds_.moved[0].offset, old.offset);
  EXPECT_EQ(fds_.moved[0].size, 8192u);
  EXPECT_EQ(inode(fds_.moved[0].memfd.get()), inode(fd.get()));
  // Same address, same contents; jobs and the descriptor see each other's writes.
  EXPECT_EQ(address_of(handle), address);
  EXPECT_EQ(load(address + 4097), 2);
  store(address, 9);
  uint8_t byte = 0;
  ASSERT_EQ(pread(fd.get(), &byte, 1, 0), 1);
  EXPECT_EQ(byte, 9);
  EXPECT_EQ(map_bo(handle).offset, 0u);
  EXPECT_EQ(load(address_of(first)) + load(address_of(third)), 4);
  EXPECT_EQ(space().take_faults().count, 0u);
  EXPECT_EQ(retired(), 8192u);
}

TEST_F(SlabTest, ExportOfUnmappedMemoryTellsNobody) {
  create_bo();
  const uint32_t handle = create_bo();
  export_bo(*file_, handle);
  EXPECT_TRUE(fds_.moved.empty());
  EXPECT_EQ(retired(), 0u);
}

TEST_F(SlabTest, AMovedBoHasItsAddressUntilItsEnd) {
  const uint32_t handle = create_bo(), address = address_of(handle);
  store(address, 7);
  const UniqueFd fd = export_bo(*file_, handle);
  for (int i = 0; i < 3; ++i) create_bo();  // the slab goes on, and is given up below
  for (uint32_t other = 2; other <= 4; ++other) ASSERT_TRUE(file_->close_handle(other));
  create_bo(kMaxSlabBo);
  EXPECT_EQ(load(address), 7);
  ASSERT_TRUE(file_->close_handle(handle));
  EXPECT_EQ(load(address), 0);
  EXPECT_EQ(space().take_faults().count, 1u);
  uint32_t imported;
  ASSERT_EQ(import_bo(*file_, fd.get(), &imported), 0);
  EXPECT_EQ(load(address_of(imported)), 7);
}

TEST_F(SlabTest, ExportWaitsForTheJobs) {
  const uint32_t handle = create_bo();
  drm::SubmitTfu submit = {};
  submit.bo_handles[0] = handle;
  ASSERT_EQ(ioctl(kSubmitTfu, submit), 0);
  const JobPtr job = host_.jobs.at(0);
  job->run = [&](JobControl&) {
    EXPECT_TRUE(file_->find_bo(handle)->buffer()->in_slab());
    store(address_of(handle), 6);
    return device::JobResult();
  };
  std::thread runner([&] {
    usleep(20'000);
    host_.run_all();
  });
  const UniqueFd fd = export_bo(*file_, handle);
  runner.join();
  uint8_t byte = 0;
  ASSERT_EQ(pread(fd.get(), &byte, 1, 0), 1);
  EXPECT_EQ(byte, 6);
}

TEST_F(SlabTest, NamesShareMemoryOfItsOwn) {
  const auto primary = open(kMinorV3d);
  const uint32_t handle = create_bo(*primary);
  drm::GemFlink flink = {.handle = handle, .name = 0};
  ASSERT_EQ(ioctl(*primary, 0xc008640a, flink), 0);
  EXPECT_FALSE(primary->find_bo(handle)->buffer()->in_slab());
}

TEST_F(SlabTest, ThreadsMayMakeMapAndExportAtOnce) {
  std::vector<std::thread> threads;
  for (uint8_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        std::shared_ptr<Bo> bo;
        uint32_t handle;
        ASSERT_EQ(file_->create_bo(*account_, 4096u << (i % 4), &bo, &handle), 0);
        ASSERT_EQ(*bo->host(0, 1), 0);
        *bo->host(0, 1) = t;
        if (i % 3 == 0) bo->buffer()->backing_for_client();
        MovedMemory moved;
        if (i % 5 == 0) {
          ASSERT_EQ(bo->leave_slab(*account_, &moved), 0);
        }
        ASSERT_EQ(*bo->host(0, 1), t);
        bo.reset();
        ASSERT_TRUE(file_->close_handle(handle));
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(file_->memory_use().bytes, 0u);
  EXPECT_EQ(retired(), 0u);
}

}  // namespace
}  // namespace v3d::ioctl::test
