// Readers of captures: pages come from the file when somebody asks for them, in any order of jobs.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "daemon/capture.h"
#include "tests/base/temporary_folder.h"

namespace v3d::daemon::test {
namespace {

constexpr GpuAddr kAddress = 0x10000;
constexpr uint32_t kJobs = 5, kRange = 4;

class CaptureReaderTest : public testing::Test {
 protected:
  /// Each job finds its number in the first page, and what page 2 + number % 2 of the range has stays.
  void SetUp() override {
    space_ = *mmu::AddressSpace::create();
    ASSERT_TRUE(space_->map_zeros(kAddress, kRange * mmu::kPageSize).ok());
    auto writer = CaptureWriter::create(path_, "rpi5");
    ASSERT_TRUE(writer.ok()) << writer.status();
    for (uint32_t job = 1; job <= kJobs; ++job) {
      space_->memory().store(kAddress, job);
      space_->memory().store(kAddress + (2 + job % 2) * mmu::kPageSize, 100 + job);
      if (job == 3) {
        ASSERT_TRUE(space_->map_zeros(kAddress + 2 * kRange * mmu::kPageSize, mmu::kPageSize).ok());
      }
      ASSERT_TRUE((*writer)->begin(*space_, CapturedJob::of(device::CsdJob{})).owns_lock());
    }
  }
  std::string contents() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// The same with each page in a record of its own.
  static std::string with_single_pages(const std::string& data) {
    constexpr uint32_t kPage = 1, kPages = 9;
    std::string single = data.substr(0, 32);
    for (size_t at = 32; at < data.size();) {
      uint32_t head[2];
      std::memcpy(head, data.data() + at, sizeof head);
      at += sizeof head;
      const uint32_t step = head[0] == kPages ? mmu::kPageSize : head[1];
      for (uint32_t done = 0; done < head[1]; done += step) {
        const uint32_t record[2] = {head[0] == kPages ? kPage : head[0], step};
        single.append(reinterpret_cast<const char*>(record), sizeof record);
        single += data.substr(at + done, step);
      }
      at += head[1];
    }
    return single;
  }
  static void expect_memory(CaptureReader& reader, uint32_t job) {
    const Memory memory = reader.context(1).space().memory();
    EXPECT_EQ(memory.load<uint32_t>(kAddress), job);
    EXPECT_EQ(memory.load<uint32_t>(kAddress + mmu::kPageSize), 0u) << job;
    EXPECT_EQ(memory.load<uint32_t>(kAddress + (2 + job % 2) * mmu::kPageSize), 100 + job);
    if (job > 1) {
      EXPECT_EQ(memory.load<uint32_t>(kAddress + (2 + (job - 1) % 2) * mmu::kPageSize), 100 + job - 1);
    }
  }

  const v3d::test::TemporaryFolder own_;
  const std::string path_ = own_ / "file.v3dcap";
  std::unique_ptr<mmu::AddressSpace> space_;
};

TEST_F(CaptureReaderTest, MemoryIsThatOfTheLastJobWhereverItWasAskedFor) {
  auto reader = CaptureReader::open(path_);
  ASSERT_TRUE(reader.ok()) << reader.status();
  for (const uint32_t wanted : {2u, 5u, 1u, 4u}) {
    (*reader)->rewind();
    for (uint32_t job = 1; job <= wanted; ++job) ASSERT_TRUE((*reader)->next().ok());
    expect_memory(**reader, wanted);
    (*reader)->context(1).space().memory().store<uint32_t>(kAddress + mmu::kPageSize, 9);  // as a job does
    (*reader)->restore();
    expect_memory(**reader, wanted);
  }
  for (uint32_t job = 5; job <= kJobs; ++job) ASSERT_TRUE((*reader)->next().ok());
  EXPECT_TRUE(absl::IsNotFound((*reader)->next().status()));
}

TEST_F(CaptureReaderTest, TellsOfPagesWithoutMemory) {
  auto reader = CaptureReader::open(path_);
  ASSERT_TRUE(reader.ok()) << reader.status();
  for (uint32_t job = 1; job <= kJobs; ++job) {
    ASSERT_TRUE((*reader)->next().ok());
    const auto page = (*reader)->found(kAddress + 8);
    ASSERT_TRUE(page.has_value());
    EXPECT_EQ((*page)[0], job);
    EXPECT_EQ((*reader)->found(kAddress + 2 * kRange * mmu::kPageSize).has_value(), job >= 3);
  }
  const Memory part = (*reader)->part(1, kAddress, 1);
  EXPECT_EQ(part.load<uint32_t>(kAddress), kJobs);
  EXPECT_EQ(part.load<uint32_t>(kAddress + 3 * mmu::kPageSize), 0u);  // nobody has asked for it
  expect_memory(**reader, kJobs);
}

TEST_F(CaptureReaderTest, PagesMayHaveRecordsOfTheirOwn) {
  const std::string single = with_single_pages(contents());
  ASSERT_GT(single.size(), contents().size());
  std::ofstream(path_, std::ios::binary) << single;
  auto reader = CaptureReader::open(path_);
  ASSERT_TRUE(reader.ok()) << reader.status();
  for (uint32_t job = 1; job <= kJobs; ++job) {
    ASSERT_TRUE((*reader)->next().ok());
    expect_memory(**reader, job);
  }
  EXPECT_TRUE(absl::IsNotFound((*reader)->next().status()));
}

TEST_F(CaptureReaderTest, APageRecordHasWholePages) {
  for (const auto& [type, size] : {std::pair(1u, 8192u), std::pair(9u, 0u), std::pair(9u, 4097u)}) {
    const uint32_t head[2] = {type, size};
    std::string data = contents().substr(0, 32);
    data.append(reinterpret_cast<const char*>(head), sizeof head);
    const std::string path = own_ / "bad.v3dcap";
    std::ofstream(path, std::ios::binary) << data + std::string(size, 'x');
    auto reader = CaptureReader::open(path);
    ASSERT_TRUE(reader.ok()) << reader.status();
    EXPECT_EQ((*reader)->next().status().message(), "a page record is not a page");
  }
}

// Captures that are small and have programs with large memory.
class LargeMemoryTest : public testing::Test {
 protected:
  enum Record : uint32_t { kMaps = 2, kSets = 3, kJob = 4, kPages = 9 };

  void add(uint32_t type, std::initializer_list<uint32_t> words) {
    const uint32_t head[2] = {type, static_cast<uint32_t>(words.size() * sizeof(uint32_t))};
    data_.append(reinterpret_cast<const char*>(head), sizeof head);
    data_.append(reinterpret_cast<const char*>(words.begin()), head[1]);
  }
  void add_job() { add(kJob, {1, CapturedJob::kCsd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}); }
  std::unique_ptr<CaptureReader> open(const char* profile, uint64_t limit) {
    std::string header(kCaptureMagic, sizeof kCaptureMagic);
    header += profile;
    header.resize(32);
    std::ofstream(path_, std::ios::binary) << header << data_;
    auto reader = CaptureReader::open(path_, nullptr, limit);
    EXPECT_TRUE(reader.ok()) << reader.status();
    return reader.ok() ? *std::move(reader) : nullptr;
  }
  /// Of this process; pages of zeros that were only read are none of them.
  static uint64_t resident_bytes() {
    uint64_t all = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> all >> resident;
    return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  }
  /// Kernels of some virtual machines give memory to pages that are only read.
  static bool host_shares_zeros() {
    constexpr size_t kRead = 16 << 20;
    void* const memory = mmap(nullptr, kRead, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const auto* const bytes = static_cast<const volatile char*>(memory);
    const uint64_t before = resident_bytes();
    for (size_t i = 0; i < kRead; i += mmu::kPageSize) static_cast<void>(bytes[i]);
    const bool shares = resident_bytes() < before + kRead / 2;
    munmap(memory, kRead);
    return shares;
  }

  static constexpr uint64_t kMiB = 1 << 20;
  std::string data_;

 private:
  const v3d::test::TemporaryFolder own_;
  const std::string path_ = own_ / "file.v3dcap";
};

TEST_F(LargeMemoryTest, ZerosOfAPartTakeNone) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer keeps four bytes for each that a program maps";
#endif
  if (!host_shares_zeros()) GTEST_SKIP() << "this host's kernel gives memory to zeros that are only read";
  constexpr uint32_t kBytes = 256 << 20;
  add(kMaps, {1, kAddress, kBytes / mmu::kPageSize});
  add_job();
  const auto reader = open("rpi5", 64 * kMiB);
  ASSERT_TRUE(reader->next().ok());
  const uint64_t before = resident_bytes();
  EXPECT_EQ(reader->part(1, kAddress, kBytes).load<uint32_t>(kAddress + kBytes - 4), 0u);
  EXPECT_LT(resident_bytes(), before + 64 * kMiB);
}

// Memory at several addresses is a file's, of which zeros take as much as anything.
TEST_F(LargeMemoryTest, WhatIsAtSeveralAddressesCounts) {
  constexpr uint32_t kMany = (128 << 20) / mmu::kPageSize, kAlias = 1u << 30;
  add(kMaps, {1, kAddress, kMany, kAlias + kAddress, kMany});
  add_job();
  EXPECT_TRUE(absl::IsResourceExhausted(open("rpi3", 64 * kMiB)->next().status()));
  EXPECT_TRUE(open("rpi3", 192 * kMiB)->next().ok());
}

TEST_F(LargeMemoryTest, PagesThatJobsBeforeFoundAreForgotten) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers keep memory that was freed";
#endif
  constexpr uint32_t kMany = 40000;
  const uint32_t head[2] = {kPages, kMany * mmu::kPageSize};
  data_.append(reinterpret_cast<const char*>(head), sizeof head);
  data_.resize(data_.size() + head[1], 'x');
  add(kMaps, {1, kAddress, 1});
  for (uint32_t job = 1; job <= kMany; ++job) {
    add(kSets, {1, kAddress, job});
    add_job();
  }
  const auto reader = open("rpi5", 64 * kMiB);
  data_ = {};
  const uint64_t before = resident_bytes();
  for (uint32_t job = 1; job <= kMany; ++job) {
    ASSERT_TRUE(reader->next().ok());
    ASSERT_EQ((*reader->found(kAddress))[0], 'x');
  }
  EXPECT_LT(resident_bytes(), before + 64 * kMiB);
}

}  // namespace
}  // namespace v3d::daemon::test
