#include "gpu/mmu/address_space.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {
std::atomic<bool> g_refuse_scratch{false};
}  // namespace

#ifndef __SANITIZE_THREAD__
/// The C library's, but for a host that has no mapping for a scratch page.
extern "C" void* mremap(void* at, size_t size, size_t new_size, int flags, ...) noexcept {
  va_list rest;
  va_start(rest, flags);
  void* const to = va_arg(rest, void*);
  va_end(rest);
  if (g_refuse_scratch && size == 0) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the result of a system call
  return reinterpret_cast<void*>(syscall(SYS_mremap, at, size, new_size, flags, to));
}
#endif

namespace v3d::mmu {
namespace {

/// All mappings that the host lets this process have (vm.max_map_count), as one that is at its end: pages of
/// different protection, one beside the other.
class Hoard {
 public:
  Hoard() {
    pages_ = static_cast<uint8_t*>(
        mmap(nullptr, kSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    take();
  }
  ~Hoard() { munmap(pages_, kSize); }
  Hoard(const Hoard&) = delete;
  Hoard& operator=(const Hoard&) = delete;
  /// What has become free since.
  void take() {
    while (next_ < kSize && mprotect(pages_ + next_, kPageSize, PROT_READ) == 0) next_ += 2 * kPageSize;
    full_ = next_ < kSize;
  }
  bool full() const { return full_; }

 private:
  static constexpr uint64_t kSize = uint64_t{1} << 30;
  uint8_t* pages_;
  uint64_t next_ = kPageSize;
  bool full_ = false;
};

/// Of the window of a space and the guards around it.
uint64_t count_mappings(const AddressSpace& space) {
  const auto window = reinterpret_cast<uint64_t>(space.memory().host(0));
  std::ifstream maps("/proc/self/maps");
  uint64_t count = 0;
  for (std::string line; std::getline(maps, line);) {
    const uint64_t start = std::stoull(line, nullptr, 16);
    count += start >= window - kSpaceSize && start < window + 2 * kSpaceSize;
  }
  return count;
}

int make_memfd(uint64_t size) {
  const int fd = memfd_create("bo", MFD_CLOEXEC);
  EXPECT_EQ(ftruncate(fd, static_cast<off_t>(size)), 0);
  return fd;
}

/// Whether the kernel tells that a file has no memory for a page. That of qemu-user takes the advice, does
/// nothing and says that all is well, so that lost memory faults for ever there.
bool tells_lost_memory() {
  const int fd = make_memfd(kPageSize);
  void* const page = mmap(nullptr, kPageSize, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  EXPECT_EQ(ftruncate(fd, 0), 0);
  const bool tells = madvise(page, kPageSize, MADV_POPULATE_WRITE) != 0;
  munmap(page, kPageSize);
  close(fd);
  return tells;
}
#define SKIP_WHERE_LOST_MEMORY_IS_NOT_TOLD() \
  if (!tells_lost_memory()) GTEST_SKIP() << "MADV_POPULATE_WRITE does nothing here, as under qemu-user"

absl::Status map(AddressSpace& space, GpuAddr address, int fd, uint64_t offset, uint64_t size,
                 std::optional<uint32_t> frame = {}) {
  const auto map_file = [fd, offset](void* at, uint64_t bytes) {
    return mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, static_cast<off_t>(offset)) !=
           MAP_FAILED;
  };
  return space.map(address, size, map_file, frame);
}

TEST(AddressSpace, MappedPagesAreTheMemfd) {
  auto space = AddressSpace::create().value();
  const int fd = make_memfd(8192);
  ASSERT_TRUE(map(*space, 0x20000, fd, 0, 8192).ok());
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
  ASSERT_TRUE(map(*space, 0x30000, fd, 0, 4096).ok());
  EXPECT_EQ(space->memory().load<uint32_t>(0x30000), 5u);
  space->take_faults();
  EXPECT_EQ(space->memory().load<uint32_t>(0x30000), 5u);
  space->unmap(0x30000, 4096);
  EXPECT_EQ(space->memory().load<uint32_t>(0x30000), 0u);
  EXPECT_EQ(space->take_faults().count, 1u);
  close(fd);
}

TEST(AddressSpace, MemoryThatAMemfdLostFaultsOnceAndIsScratch) {
  SKIP_WHERE_LOST_MEMORY_IS_NOT_TOLD();
  auto space = AddressSpace::create().value();
  const int fd = make_memfd(4 * kPageSize), neighbour = make_memfd(kPageSize);
  ASSERT_TRUE(map(*space, 0x20000, fd, 0, 4 * kPageSize).ok());
  ASSERT_TRUE(map(*space, 0x24000, neighbour, 0, kPageSize).ok());
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
  SKIP_WHERE_LOST_MEMORY_IS_NOT_TOLD();
  auto space = AddressSpace::create().value();
  const int fd = make_memfd(kPageSize);
  ASSERT_TRUE(map(*space, 0x20000, fd, 0, kPageSize).ok());
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
  EXPECT_FALSE(map(*space, 0, fd, 0, 4096).ok());
  EXPECT_FALSE(map(*space, 0x1004, fd, 0, 4096).ok());
  EXPECT_FALSE(map(*space, 0xfffff000, fd, 0, 8192).ok());
  EXPECT_TRUE(map(*space, 0xfffff000, fd, 0, 4096).ok());
  close(fd);
}

TEST(AddressSpace, KnowsHowManyMappingsOfTheHostItTakes) {
  auto space = AddressSpace::create().value();
  const int fd = make_memfd(64 * kPageSize), other = make_memfd(64 * kPageSize);
  const uint64_t empty = space->host_mappings(), elsewhere = empty - count_mappings(*space);
  const auto expect = [&](uint64_t mappings, const char* what) {
    EXPECT_EQ(count_mappings(*space) + elsewhere, space->host_mappings()) << what;
    EXPECT_EQ(space->host_mappings() - empty, mappings) << what;
  };
  expect(0, "empty");
  const uint32_t frame = space->new_frames(64);
  for (uint32_t page = 0; page < 64; ++page)
    ASSERT_TRUE(map(*space, 0x100000 + page * kPageSize, fd, page * kPageSize, kPageSize, frame + page).ok());
  expect(2, "pieces of one file");
  ASSERT_TRUE(map(*space, 0x140000, other, 0, 64 * kPageSize).ok());
  expect(3, "a file beside it");
  EXPECT_TRUE(space->unmap(0x110000, kPageSize));
  expect(5, "a hole");
  EXPECT_TRUE(space->unmap(0x112000, kPageSize));
  expect(7, "another");
  EXPECT_TRUE(space->unmap(0x111000, kPageSize));
  expect(5, "and what was between");
  space->keep(0x100000, 0x8000);
  expect(5, "kept pages");
  space->memory().store<uint8_t>(0x900000, 1);
  expect(7, "a scratch page");
  space->take_faults();
  EXPECT_TRUE(space->unmap(0, kSpaceSize));
  expect(0, "empty again");
  close(fd);
  close(other);
}

TEST(AddressSpace, KeptPagesAreInvalidUntilTheyAreRevived) {
  auto space = AddressSpace::create().value();
  const int fd = make_memfd(4 * kPageSize);
  ASSERT_TRUE(map(*space, 0x20000, fd, 0, 4 * kPageSize).ok());
  space->keep(0x21000, 2 * kPageSize);
  EXPECT_FALSE(space->is_mapped(0x21000));
  ASSERT_EQ(space->mapped_ranges().size(), 2u);
  space->memory().store<uint32_t>(0x21000, 7);
  EXPECT_EQ(space->take_faults().count, 0u);
  EXPECT_FALSE(space->revive(0x20000, 2 * kPageSize));  // the first is not kept
  EXPECT_TRUE(space->revive(0x21000, 2 * kPageSize));
  EXPECT_EQ(space->mapped_ranges().size(), 1u);
  EXPECT_EQ(space->memory().load<uint32_t>(0x21000), 7u);
  EXPECT_TRUE(space->unmap(0x20000, 4 * kPageSize));
  EXPECT_FALSE(space->revive(0x21000, kPageSize));
  close(fd);
}

TEST(AddressSpace, KeptPagesThatLostTheirMemoryAreScratch) {
  auto space = AddressSpace::create().value();
  const int fd = make_memfd(2 * kPageSize);
  ASSERT_TRUE(map(*space, 0x20000, fd, 0, 2 * kPageSize).ok());
  space->keep(0x20000, 2 * kPageSize);
  ASSERT_EQ(ftruncate(fd, 0), 0);
  EXPECT_EQ(space->memory().load<uint32_t>(0x21000), 0u);
  EXPECT_EQ(space->take_faults().count, 1u);
  EXPECT_FALSE(space->revive(0x20000, 2 * kPageSize));
  close(fd);
}

// ThreadSanitizer has an mmap of its own, and ends the program where the host refuses it one.
#ifndef __SANITIZE_THREAD__
TEST(AddressSpace, MappingIsRefusedWhenTheHostHasNoneLeft) {
  auto space = AddressSpace::create().value();
  const int fd = make_memfd(4 * kPageSize);
  absl::StatusCode code;
  {
    const Hoard hoard;
    ASSERT_TRUE(hoard.full());
    code = map(*space, 0x20000, fd, 0, kPageSize).code();
  }
  EXPECT_EQ(code, absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(space->is_mapped(0x20000));
  EXPECT_EQ(space->memory().load<uint32_t>(0x20000), 0u);
  EXPECT_EQ(space->take_faults().count, 1u);
  EXPECT_TRUE(map(*space, 0x20000, fd, 0, kPageSize).ok());
  close(fd);
}

TEST(AddressSpace, FaultsAreServedWhenTheHostHasNoMappingLeft) {
  SKIP_WHERE_LOST_MEMORY_IS_NOT_TOLD();
  auto space = AddressSpace::create().value();
  const int fd = make_memfd(4 * kPageSize), lost = make_memfd(4 * kPageSize);
  ASSERT_TRUE(map(*space, 0x20000, fd, 0, 4 * kPageSize).ok());
  ASSERT_TRUE(map(*space, 0x40000, lost, 0, 4 * kPageSize).ok());
  ASSERT_EQ(ftruncate(lost, kPageSize), 0);
  const Memory memory = space->memory();
  uint32_t read = 0, own = 0, behind = 0;
  uint64_t faults[2];
  {
    Hoard hoard;
    for (uint64_t& count : faults) {
      memory.store<uint32_t>(0x20000, 5);
      for (uint32_t page = 0; page < 100; ++page) memory.store<uint32_t>(0x700000 + page * 2 * kPageSize, 77);
      read += memory.load<uint32_t>(0x900000);
      behind += memory.load<uint32_t>(0x42000);  // SIGBUS, the first time
      own += memory.load<uint32_t>(0x20000);
      read += memory.load<uint8_t>(0x900001) + static_cast<uint32_t>(memory.load<uint64_t>(0xfffffffc) >> 40);
      count = space->take_faults().count;
      hoard.take();
    }
  }
  EXPECT_EQ(read, 2 * 77u);
  EXPECT_EQ(behind, 2 * 77u);
  EXPECT_EQ(own, 10u);
  EXPECT_EQ(faults[0], 104u);  // the last access has two
  EXPECT_EQ(faults[1], 104u);
  close(fd);
  close(lost);
}

TEST(AddressSpace, APartThatTheHostRefusesToUnmapIsKept) {
  auto space = AddressSpace::create().value();
  const int fd = make_memfd(4 * kPageSize);
  ASSERT_TRUE(map(*space, 0x20000, fd, 0, 4 * kPageSize).ok());
  bool part, whole;
  {
    const Hoard hoard;
    part = space->unmap(0x21000, kPageSize);
    space->memory().store<uint32_t>(0x21000, 3);
  }
  EXPECT_FALSE(part);
  EXPECT_FALSE(space->is_mapped(0x21000));
  EXPECT_TRUE(space->is_mapped(0x22000));
  EXPECT_TRUE(space->revive(0x21000, kPageSize));
  EXPECT_EQ(space->memory().load<uint32_t>(0x21000), 3u);
  {
    const Hoard hoard;
    whole = space->unmap(0x20000, 4 * kPageSize);
  }
  EXPECT_TRUE(whole);
  EXPECT_EQ(space->memory().load<uint32_t>(0x21000), 0u);
  EXPECT_EQ(space->take_faults().count, 1u);
  close(fd);
}

TEST(AddressSpace, WhenAllElseFailsTheGapIsScratch) {
  void* const page = mmap(nullptr, kPageSize, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  void* const again = mremap(page, 0, kPageSize, MREMAP_MAYMOVE);
  munmap(page, kPageSize);
  if (again == MAP_FAILED) GTEST_SKIP() << "mremap() doubles no page here, as under qemu-user";
  munmap(again, kPageSize);
  auto space = AddressSpace::create().value();
  const int fd = make_memfd(kPageSize);
  ASSERT_TRUE(map(*space, 0x20000, fd, 0, kPageSize).ok());
  const Memory memory = space->memory();
  g_refuse_scratch = true;
  memory.store<uint32_t>(0x10000, 1);
  memory.store<uint32_t>(0x70000000, 2);
  memory.store<uint32_t>(0xfffffffe, 3);  // into the guard
  const uint32_t read = memory.load<uint32_t>(0x10000) + memory.load<uint32_t>(0x70000000);
  g_refuse_scratch = false;
  EXPECT_EQ(read, 3u);
  const Faults faults = space->take_faults();
  EXPECT_EQ(faults.count, 2u);
  EXPECT_EQ(faults.first_address, 0x10000u);
  EXPECT_EQ(memory.load<uint32_t>(0x70000000), 0u);
  EXPECT_EQ(space->take_faults().count, 1u);
  EXPECT_TRUE(space->is_mapped(0x20000));
  close(fd);
}
#endif

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
  ASSERT_TRUE(map(*space, 0x3ff000, fd, 0, 0x2000).ok());
  ASSERT_TRUE(map(*space, 0x401000, fd, 0, 0x1000).ok());
  ASSERT_TRUE(map(*space, 0x401000, fd, 0, 0x1000).ok());  // once more: counts once
  ASSERT_TRUE(map(*space, 0xff000000, fd, 0, 0x1000000).ok());
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
    ASSERT_TRUE(map(*space, 0x100000, fd, 0, 4096).ok());
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
    ASSERT_TRUE(map(*space, 0x100000 + static_cast<uint32_t>(i % 64) * kPageSize, fd, 0, 4096).ok());
    space->unmap(0x100000 + static_cast<uint32_t>(i % 64) * kPageSize, 4096);
  }
  for (std::thread& t : threads) t.join();
  close(fd);
}

/// Of this process, KiB of page tables.
uint64_t page_tables() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmPTE:") {
      uint64_t kib = 0;
      status >> kib;
      return kib;
    }
  return 0;
}

TEST(AddressSpaceMemory, PageTablesOfTouchedPagesGoWithTheJob) {
  const auto space = AddressSpace::create().value();
  const uint64_t before = page_tables();
  constexpr uint32_t kReachOfTable = 2 << 20;
  for (uint32_t n = 1; n < 2000; ++n)
    EXPECT_EQ(space->memory().load<uint32_t>(static_cast<GpuAddr>(n * kReachOfTable)), 0u);
  EXPECT_GT(page_tables(), before + 4000);
  EXPECT_EQ(space->take_faults().count, 1999u);
  EXPECT_LT(page_tables(), before + 2000);  // AddressSanitizer's shadow of these pages keeps 1000
  // Those of a few stay, and are used again.
  EXPECT_EQ(space->memory().load<uint32_t>(4096), 0u);
  EXPECT_EQ(space->take_faults().count, 1u);
}

}  // namespace
}  // namespace v3d::mmu
