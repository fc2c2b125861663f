// Pages that are compressed: docs/recording.md, and files that claim what is not so.
#include "daemon/page_chunk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "tests/base/temporary_folder.h"
#include "tests/daemon/recording.h"

namespace v3d::daemon::test {
namespace {

using testing::HasSubstr;

constexpr GpuAddr kAddress = 0x10000;

/// Page n is full of the byte n + 1.
std::string pages(uint32_t count) {
  std::string pages;
  for (uint32_t n = 0; n < count; ++n) pages.append(mmu::kPageSize, static_cast<char>(n + 1));
  return pages;
}

class PageChunkTest : public testing::Test {
 protected:
  /// Up to the first job, or what is wrong.
  absl::StatusOr<std::unique_ptr<CaptureReader>> read(const Recording& recording,
                                                      uint64_t limit = uint64_t{1} << 30) {
    recording.save(path_);
    auto reader = CaptureReader::open(path_, nullptr, limit);
    if (!reader.ok()) return reader;
    const auto job = (*reader)->next();
    if (!job.ok()) return job.status();
    return reader;
  }

  const v3d::test::TemporaryFolder own_;
  const std::string path_ = own_ / "file.v3dcap";
};

TEST_F(PageChunkTest, PagesOfBothKindsAreNumberedTogether) {
  Recording recording("rpi5");
  recording.words(Recording::kMaps, {1, kAddress, 4})
      .record(Recording::kPage, std::string(mmu::kPageSize, 77));
  recording.chunk(2, pages(2)).record(Recording::kPage, std::string(mmu::kPageSize, 88));
  recording.words(Recording::kSets,
                  {1, kAddress, 3, kAddress + 0x1000, 1, kAddress + 0x2000, 4, kAddress + 0x3000, 2});
  const auto reader = read(recording.job(CapturedJob::kCsd).end());
  ASSERT_TRUE(reader.ok()) << reader.status();
  const Memory memory = (*reader)->context(1).space().memory();
  for (const auto& [page, value] : {std::tuple(0, 2), std::tuple(1, 77), std::tuple(2, 88), std::tuple(3, 1)})
    for (const uint32_t at : {0u, mmu::kPageSize - 1})
      EXPECT_EQ(memory.load<uint8_t>(kAddress + static_cast<uint32_t>(page) * mmu::kPageSize + at), value);
}

TEST_F(PageChunkTest, ChunksThatAreNotWhatTheySay) {
  const std::string more = pages(kMostPagesOfChunk + 1);
  const auto error_of = [&](Recording& recording) {
    return std::string(read(recording.job(CapturedJob::kCsd).end()).status().message());
  };
  for (const auto& [said, content, error] :
       {std::tuple(0u, pages(1), "is not of 1 to 64 pages"), std::tuple(65u, more, "is not of 1 to 64 pages"),
        std::tuple(~0u, more, "is not of 1 to 64 pages"),
        std::tuple(2u, pages(1), "fewer than their record says"),
        std::tuple(1u, pages(2), "compressed pages: "),
        std::tuple(1u, pages(1) + "x", "compressed pages: ")}) {
    Recording recording("rpi5");
    EXPECT_THAT(error_of(recording.chunk(said, content)), HasSubstr(error)) << said;
  }
  Recording noise("rpi5"), empty("rpi5");
  EXPECT_THAT(error_of(noise.words(Recording::kChunk, {1, 0x12345678, 5})), HasSubstr("compressed pages: "));
  EXPECT_THAT(error_of(empty.words(Recording::kChunk, {})), HasSubstr("is not of 1 to 64 pages"));
}

// 64 pages of one byte are 60 bytes of a file.
TEST_F(PageChunkTest, WhatIsDecompressedIsBounded) {
  Recording recording("rpi5");
  const std::string same(uint64_t{kMostPagesOfChunk} * mmu::kPageSize, 'a');
  for (int i = 0; i < 1000; ++i) recording.chunk(kMostPagesOfChunk, same);
  ASSERT_LT(recording.data().size(), 100'000u);
  recording.job(CapturedJob::kCsd).end();
  const auto reader = read(recording, 16 << 20);
  EXPECT_TRUE(absl::IsResourceExhausted(reader.status())) << reader.status();
}

// What was decompressed is given back before it comes again.
TEST_F(PageChunkTest, IsTheSameFromTheBeginningAgain) {
  Recording recording("rpi5");
  recording.words(Recording::kMaps, {1, kAddress, 3}).chunk(2, pages(2));
  recording.words(Recording::kSets, {1, kAddress, 2, kAddress + 0x2000, 1}).job(CapturedJob::kCsd).end();
  const auto reader = read(recording, 5 * mmu::kPageSize);
  ASSERT_TRUE(reader.ok()) << reader.status();
  for (int time = 0; time < 3; ++time) {
    const Memory memory = (*reader)->context(1).space().memory();
    const std::string both = pages(2);
    EXPECT_EQ(memory.load<uint8_t>(kAddress), static_cast<uint8_t>(both[mmu::kPageSize]));
    EXPECT_EQ(memory.load<uint8_t>(kAddress + 0x2000), static_cast<uint8_t>(both[0]));
    (*reader)->rewind();
    const auto job = (*reader)->next();
    ASSERT_TRUE(job.ok()) << job.status();
  }
}

TEST_F(PageChunkTest, HashesAfterJobs) {
  Recording recording("rpi5");
  recording.words(Recording::kMaps, {1, kAddress, 2}).job(CapturedJob::kCsd);
  recording.words(Recording::kAfterHashes, {1, 1, kAddress, 2, kAddress + 0x1000, 0x89abcdef, 0x01234567});
  const auto reader = read(recording.end());
  ASSERT_TRUE(reader.ok()) << reader.status();
  const auto after = (*reader)->take_after();
  ASSERT_TRUE(after.ok() && after->has_value()) << after.status();
  EXPECT_TRUE((*after)->changed.empty());
  EXPECT_EQ((*after)->hashes.size(), 1u);
  EXPECT_EQ((*after)->hashes.at(kAddress + 0x1000), 0x0123456789abcdefu);
  EXPECT_EQ((*reader)->page_after(**after, kAddress)[5], 0);
  Recording half("rpi5");
  half.words(Recording::kMaps, {1, kAddress, 2}).job(CapturedJob::kCsd);
  half.words(Recording::kAfterHashes, {1, 1, kAddress, 2, kAddress, 5}).end();
  const auto cut = read(half);
  ASSERT_TRUE(cut.ok());
  EXPECT_THAT(std::string((*cut)->take_after().status().message()), HasSubstr("of the wrong size"));
}

TEST(PageHash, TellsPagesApart) {
  CapturedPage page = {};
  const uint64_t zero = page_hash(page);
  page[4095] = 1;
  const uint64_t one = page_hash(page);
  EXPECT_NE(zero, one);
  std::swap(page[4095], page[0]);
  EXPECT_NE(page_hash(page), one);
}

}  // namespace
}  // namespace v3d::daemon::test
