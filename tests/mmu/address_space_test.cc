#include "gpu/mmu/address_space.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <utility>
#include <vector>

namespace v3d::mmu {
namespace {

int make_memfd(uint64_t size) {
  const int fd = memfd_create("bo", MFD_CLOEXEC);
  EXPECT_EQ(ftruncate(fd, static_cast<off_t>(size)), 0);
  return fd;
}

TEST(AddressSpace, MappedPagesAreTheMemfd) {
  auto space = AddressSpace::create().value();
  const int fd = make_memfd(8192);
  ASSERT_TRUE(space->map(0x20000, fd, 0, 8192).ok());
  space->memory().store<uint32_t>(0x21004, 0x12345678);
  uint32_t word = 0;
  ASSERT_EQ(pread(fd, &word, 4, 0x1004), 4);
  EXPECT_EQ(word, 0x12345678u);
  EXPECT_TRUE(space->is_mapped(0x21fff));
  EXPECT_FALSE(space->is_mapped(0x22000));
  EXPECT_EQ(space->take_faults().count, 0u);
  close(fd);
}

TEST(AddressSpace, UnmappedAccessesGoToTheScratchPage) {
  auto space = AddressSpace::create().value();
  const Memory memory = space->memory();
  EXPECT_EQ(memory.load<uint32_t>(0x5000), 0u);
  memory.store<uint32_t>(0x700010, 77);
  EXPECT_EQ(memory.load<uint32_t>(0x900010), 77u);  // one page for all, as on hardware
  const Faults faults = space->take_faults();
  EXPECT_EQ(faults.count, 3u);
  EXPECT_EQ(faults.first_address, 0x5000u);
  EXPECT_EQ(space->take_faults().count, 0u);
}

TEST(AddressSpace, ManyFaultsUseFewMappings) {
  auto space = AddressSpace::create().value();
  for (uint32_t page = 1; page < 5000; ++page) space->memory().store<uint8_t>(page * 2 * kPageSize, 1);
  EXPECT_EQ(space->take_faults().count, 4999u);
}

TEST(AddressSpace, AccessesAcrossTheTopEndInTheGuard) {
  auto space = AddressSpace::create().value();
  EXPECT_EQ(space->memory().load<uint64_t>(0xfffffffc), 0u);
  EXPECT_GE(space->take_faults().count, 1u);
}

TEST(AddressSpace, MappingReplacesScratchAndUnmappingBringsFaultsBack) {
  auto space = AddressSpace::create().value();
  EXPECT_EQ(space->memory().load<uint32_t>(0x30000), 0u);
  const int fd = make_memfd(4096);
  const uint32_t value = 5;
  ASSERT_EQ(pwrite(fd, &value, 4, 0), 4);
  ASSERT_TRUE(space->map(0x30000, fd, 0, 4096).ok());
  EXPECT_EQ(space->memory().load<uint32_t>(0x30000), 5u);
  space->take_faults();
  EXPECT_EQ(space->memory().load<uint32_t>(0x30000), 5u);
  space->unmap(0x30000, 4096);
  EXPECT_EQ(space->memory().load<uint32_t>(0x30000), 0u);
  EXPECT_EQ(space->take_faults().count, 1u);
  close(fd);
}

TEST(AddressSpace, MemoryThatAMemfdLostFaultsOnceAndIsScratch) {
  auto space = AddressSpace::create().value();
  const int fd = make_memfd(4 * kPageSize), neighbour = make_memfd(kPageSize);
  ASSERT_TRUE(space->map(0x20000, fd, 0, 4 * kPageSize).ok());
  ASSERT_TRUE(space->map(0x24000, neighbour, 0, kPageSize).ok());
  space->memory().store<uint32_t>(0x20000, 1);
  space->memory().store<uint32_t>(0x24000, 2);
  ASSERT_EQ(ftruncate(fd, kPageSize), 0);
  EXPECT_EQ(space->memory().load<uint32_t>(0x22008), 0u);
  space->memory().store<uint32_t>(0x22008, 5);
  EXPECT_EQ(space->memory().load<uint32_t>(0x22008), 5u);
  const Faults faults = space->take_faults();
  EXPECT_EQ(faults.count, 1u);
  EXPECT_EQ(faults.first_address, 0x22008u);
  // What follows in the same mapping is lost with it; what precedes, and the next mapping, is not.
  EXPECT_FALSE(space->is_mapped(0x23000));
  EXPECT_EQ(space->memory().load<uint32_t>(0x20000), 1u);
  EXPECT_EQ(space->memory().load<uint32_t>(0x24000), 2u);
  EXPECT_EQ(space->take_faults().count, 0u);
  close(fd);
  close(neighbour);
}

TEST(AddressSpace, FaultsKeepErrno) {
  auto space = AddressSpace::create().value();
  const int fd = make_memfd(kPageSize);
  ASSERT_TRUE(space->map(0x20000, fd, 0, kPageSize).ok());
  ASSERT_EQ(ftruncate(fd, 0), 0);
  const auto* lost = reinterpret_cast<const volatile uint8_t*>(space->memory().host(0x20000));
  errno = 4321;
  static_cast<void>(*lost);
  EXPECT_EQ(errno, 4321);
  close(fd);
}

TEST(AddressSpace, RefusesBadRanges) {
  auto space = AddressSpace::create().value();
  const int fd = make_memfd(8192);
  EXPECT_FALSE(space->map(0, fd, 0, 4096).ok());
  EXPECT_FALSE(space->map(0x1004, fd, 0, 4096).ok());
  EXPECT_FALSE(space->map(0xfffff000, fd, 0, 8192).ok());
  EXPECT_TRUE(space->map(0xfffff000, fd, 0, 4096).ok());
  close(fd);
}

TEST(AddressSpace, RangesFollowMapsAndUnmaps) {
  auto space = AddressSpace::create().value();
  const int fd = make_memfd(16 << 20);
  const auto ranges = [&] {
    std::vector<std::pair<uint64_t, uint64_t>> all;
    for (const AddressSpace::Range& r : space->mapped_ranges()) all.emplace_back(r.address, r.size);
    return all;
  };
  using Ranges = std::vector<std::pair<uint64_t, uint64_t>>;
  EXPECT_EQ(ranges(), Ranges());
  ASSERT_TRUE(space->map(0x3ff000, fd, 0, 0x2000).ok());
  ASSERT_TRUE(space->map(0x401000, fd, 0, 0x1000).ok());
  ASSERT_TRUE(space->map(0x401000, fd, 0, 0x1000).ok());  // once more: counts once
  ASSERT_TRUE(space->map(0xff000000, fd, 0, 0x1000000).ok());
  EXPECT_EQ(ranges(), (Ranges{{0x3ff000, 0x3000}, {0xff000000, 0x1000000}}));
  space->unmap(0x400000, 0x1000);
  EXPECT_EQ(ranges(), (Ranges{{0x3ff000, 0x1000}, {0x401000, 0x1000}, {0xff000000, 0x1000000}}));
  space->unmap(0x300000, 0x400000);
  space->unmap(0xff800000, 0x800000);
  EXPECT_EQ(ranges(), (Ranges{{0xff000000, 0x800000}}));
  close(fd);
}

TEST(AddressSpace, ThreadsMayLookWhileOthersMap) {
  auto space = AddressSpace::create().value();
  const int fd = make_memfd(4096);
  std::atomic<bool> done{false};
  std::thread reader([&] {
    while (!done) {
      space->is_mapped(0x100000);
      for (const AddressSpace::Range& r : space->mapped_ranges()) EXPECT_EQ(r.address, 0x100000u);
    }
  });
  for (int i = 0; i < 500; ++i) {
    ASSERT_TRUE(space->map(0x100000, fd, 0, 4096).ok());
    ASSERT_TRUE(space->is_mapped(0x100000));
    space->unmap(0x100000, 4096);
  }
  done = true;
  reader.join();
  close(fd);
}

TEST(AddressSpace, ThreadsMayFaultWhileOthersMap) {
  auto space = AddressSpace::create().value();
  const int fd = make_memfd(4096);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (uint32_t i = 0; i < 2000; ++i)
        space->memory().load<uint32_t>(0x100000 + ((i * 7 + t) % 64) * kPageSize);
    });
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(space->map(0x100000 + static_cast<uint32_t>(i % 64) * kPageSize, fd, 0, 4096).ok());
    space->unmap(0x100000 + static_cast<uint32_t>(i % 64) * kPageSize, 4096);
  }
  for (std::thread& t : threads) t.join();
  close(fd);
}

}  // namespace
}  // namespace v3d::mmu
