#include "tools/box/writable_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "ioctl/base/unique_fd.h"

namespace v3d::box {
namespace {

/// Four pages: for reading and writing, the same, for reading alone, and none.
class WritableMemory : public testing::TestWithParam<decltype(&is_writable)> {
 protected:
  WritableMemory() {
    const long page = sysconf(_SC_PAGESIZE);
    page_ = static_cast<uint64_t>(page);
    memory_ = static_cast<uint8_t*>(
        mmap(nullptr, 4 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_NE(memory_, MAP_FAILED);
    // A mapping of its own beside the first one.
    EXPECT_NE(
        mmap(memory_ + page_, page_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
        MAP_FAILED);
    EXPECT_EQ(mprotect(memory_ + 2 * page_, page_, PROT_READ), 0);
    EXPECT_EQ(munmap(memory_ + 3 * page_, page_), 0);
    maps_.reset(open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
  }
  ~WritableMemory() override { munmap(memory_, 3 * page_); }

  bool ask(uint64_t offset, uint64_t size) const {
    return GetParam()(maps_.get(), reinterpret_cast<uintptr_t>(memory_) + offset, size);
  }

  uint64_t page_ = 0;
  uint8_t* memory_ = nullptr;
  ioctl::UniqueFd maps_;
};

INSTANTIATE_TEST_SUITE_P(ByQueryAndText, WritableMemory, testing::Values(&is_writable, &is_writable_by_text));

TEST_P(WritableMemory, IsWhatIsMappedForWriting) {
  EXPECT_TRUE(ask(0, 1));
  EXPECT_TRUE(ask(page_ - 4, 8)) << "of two mappings";
  EXPECT_TRUE(ask(0, 2 * page_));
}

TEST_P(WritableMemory, IsNotWhatIsForReadingOrNotThere) {
  EXPECT_FALSE(ask(2 * page_, 1));
  EXPECT_FALSE(ask(2 * page_ - 4, 8)) << "the second half is not";
  EXPECT_FALSE(ask(3 * page_, 1));
  EXPECT_FALSE(GetParam()(maps_.get(), 0, 4));
  EXPECT_FALSE(GetParam()(maps_.get(), ~uint64_t{7}, 4));
}

}  // namespace
}  // namespace v3d::box
