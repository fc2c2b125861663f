// Captures: the end record, files that are cut, and disks that take no more.
#include "daemon/capture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <tuple>
#include <vector>

#include "daemon/captured_frame.h"
#include "daemon/captured_programs.h"
#include "ioctl/base/unique_fd.h"
#include "tests/base/temporary_folder.h"

namespace v3d::daemon::test {
namespace {

using testing::HasSubstr;

constexpr size_t kEndBytes = 12;
constexpr GpuAddr kAddress = 0x10000;

class CaptureTest : public testing::Test {
 protected:
  CaptureTest() {
    space_ = *mmu::AddressSpace::create();
    EXPECT_TRUE(space_->map_zeros(kAddress, kPages * mmu::kPageSize).ok());
  }

  /// A capture of so many jobs, each of which finds other memory.
  void write(int jobs) {
    auto writer = CaptureWriter::create(path_, "rpi5");
    ASSERT_TRUE(writer.ok()) << writer.status();
    for (int i = 0; i < jobs; ++i) EXPECT_TRUE(begin_job(**writer));
  }
  /// Whether the job is captured.
  bool begin_job(CaptureWriter& writer) {
    for (uint32_t page = 0; page < kPages; ++page) {
      const uint32_t value = ++last_value_;
      space_->memory().write(kAddress + page * mmu::kPageSize, &value, sizeof value);
    }
    return writer.begin(*space_, CapturedJob::of(device::CsdJob{})).owns_lock();
  }
  std::string contents() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void replace(const std::string& data) { std::ofstream(path_, std::ios::binary) << data; }

  struct Seen {
    int jobs = 0;
    absl::Status end;
  };
  Seen read() const {
    auto reader = CaptureReader::open(path_);
    Seen seen;
    seen.end = reader.status();
    while (seen.end.ok()) {
      seen.end = (*reader)->next().status();
      seen.jobs += seen.end.ok();
    }
    return seen;
  }

  static constexpr uint32_t kPages = 4;
  const v3d::test::TemporaryFolder own_;
  const std::string path_ = own_ / "file.v3dcap";
  std::unique_ptr<mmu::AddressSpace> space_;
  uint32_t last_value_ = 0;
};

TEST_F(CaptureTest, EndsWithARecordOfItsOwn) {
  write(3);
  const Seen seen = read();
  EXPECT_EQ(seen.jobs, 3);
  EXPECT_TRUE(absl::IsNotFound(seen.end)) << seen.end;
  const auto count = count_captured_jobs(path_);
  ASSERT_TRUE(count.ok()) << count.status();
  EXPECT_EQ(*count, 3u);
}

TEST_F(CaptureTest, OneWithoutJobsIsComplete) {
  write(0);
  EXPECT_TRUE(absl::IsNotFound(read().end));
  EXPECT_EQ(count_captured_jobs(path_).value_or(99), 0u);
}

TEST_F(CaptureTest, IsCutWithoutTheEndRecord) {
  write(2);
  const std::string data = contents();
  replace(data.substr(0, data.size() - kEndBytes));
  const Seen seen = read();
  EXPECT_EQ(seen.jobs, 2);  // what is there is read
  EXPECT_TRUE(absl::IsDataLoss(seen.end)) << seen.end;
  EXPECT_THAT(std::string(seen.end.message()), HasSubstr("no end record; 2 jobs are whole"));
  EXPECT_EQ(count_captured_jobs(path_).status(), seen.end);
}

TEST_F(CaptureTest, IsCutWhereverItEndsBefore) {
  write(2);
  const std::string data = contents();
  for (size_t size = 32; size < data.size(); size += 397) {
    replace(data.substr(0, size));
    const absl::Status end = read().end;
    EXPECT_TRUE(absl::IsDataLoss(end)) << size << ": " << end;
    EXPECT_EQ(count_captured_jobs(path_).status(), end);
  }
}

TEST_F(CaptureTest, TheEndRecordCountsTheJobs) {
  write(2);
  std::string data = contents();
  data[data.size() - 4] = 7;
  replace(data);
  EXPECT_THAT(std::string(read().end.message()), HasSubstr("counts 7 jobs; 2 were read"));
  data[data.size() - 4] = 2;
  replace(data + "x");
  EXPECT_THAT(std::string(read().end.message()), HasSubstr("something follows"));
}

TEST_F(CaptureTest, FormatOneHasNoEndRecord) {
  write(2);
  std::string data = contents();
  data.resize(data.size() - kEndBytes);
  data[7] = 1;
  replace(data);
  const Seen seen = read();
  EXPECT_EQ(seen.jobs, 2);
  EXPECT_TRUE(absl::IsNotFound(seen.end)) << seen.end;
  EXPECT_EQ((*CaptureReader::open(path_))->format(), 1);
}

TEST_F(CaptureTest, FramesOfVideoCoreIv) {
  device::SurfaceJob frame;
  frame.color_read = {.present = true, .bits = 0x11, .address = 0x10000, .bytes = 0x123456789};
  frame.zs_read = {.present = true, .raw_samples = true, .address = 0x20000, .bytes = 5};
  frame.color_write = {.bits = 0xffff};
  frame.msaa_zs_write = {.present = true, .address = 0xfffffff0};
  frame.width = 65535;
  frame.height = 3;
  frame.min_x = 1;
  frame.min_y = 2;
  frame.max_x = 254;
  frame.max_y = 255;
  frame.fixed_order = true;
  frame.increasing_x = false;
  frame.sets_clear_values = true;
  frame.clear_color = {0x80000001, 0x12345678};
  frame.clear_z = 0xffffffff;
  frame.clear_s = 0xfe;
  frame.list_start = 0x30000;
  frame.list_end = 0x30010;
  frame.tiles_x = 0xfd;
  frame.tiles_y = 0xfc;
  device::ClJob job{.bcl_start = frame.list_start, .bcl_end = frame.list_end};
  job.surfaces = std::make_shared<device::SurfaceJob>(frame);
  {
    auto writer = CaptureWriter::create(path_, "rpi3");
    ASSERT_TRUE(writer.ok()) << writer.status();
    EXPECT_TRUE((*writer)->begin(*space_, CapturedJob::of(job, false, 1)));
    EXPECT_TRUE((*writer)->begin(*space_, CapturedJob::of(job, true, 1)));
  }
  auto reader = CaptureReader::open(path_);
  ASSERT_TRUE(reader.ok()) << reader.status();
  const auto bin = (*reader)->next(), render = (*reader)->next();
  ASSERT_TRUE(bin.ok() && render.ok()) << render.status();
  EXPECT_EQ(bin->surfaces, nullptr);
  EXPECT_EQ(bin->cl().bcl_end, 0x30010u);
  ASSERT_NE(render->surfaces, nullptr);
  EXPECT_EQ(render->cl().surfaces, render->surfaces);
  EXPECT_EQ(words_of(*render->surfaces), words_of(frame));
  EXPECT_EQ(render->surfaces->color_read.bytes, 0x123456789u);
  EXPECT_EQ(render->surfaces->max_y, 255);
  EXPECT_FALSE(render->surfaces->increasing_x);
  EXPECT_EQ(render->surfaces->tiles_y, 0xfc);
  EXPECT_TRUE(absl::IsNotFound((*reader)->next().status()));
}

// Every word that no frame has is found, and so is a frame where there should be none, or none.
TEST_F(CaptureTest, FramesThatCannotBe) {
  FrameWords words = words_of(device::SurfaceJob{});
  ASSERT_NE(frame_of(words), nullptr);
  for (const size_t at : {0, 1, 32, 36, 39}) {  // flags, bits, flags of the frame, stencil, tiles
    words[at] = 0x10000;
    EXPECT_EQ(frame_of(words), nullptr) << at;
    words[at] = 0;
  }
  device::ClJob job;
  for (const auto& [profile, has_frame, error] :
       {std::tuple("rpi3", false, "a render job without its surfaces"),
        std::tuple("rpi5", true, "surfaces of a job that has none")}) {
    job.surfaces = has_frame ? std::make_shared<device::SurfaceJob>() : nullptr;
    EXPECT_TRUE((*CaptureWriter::create(path_, profile))->begin(*space_, CapturedJob::of(job, true, 0)));
    EXPECT_THAT(std::string(read().end.message()), HasSubstr(error));
  }
}

// Memory that has several addresses has them when it is read, too.
TEST_F(CaptureTest, UserPrograms) {
  constexpr GpuAddr kAlias = 0xc0000000 + kAddress;
  ASSERT_TRUE(space_->map_zeros(kAlias, kPages * mmu::kPageSize).ok());
  CapturedPrograms programs{.alone = true, .fresh = false, .reserved_qpus = 0x801};
  programs.programs = {{.code = 0xc0010000, .uniforms = 0xc0010100, .most_instructions = 0x123456789},
                       {.code = 0xc0010000, .uniforms = 0xc0010200, .most_instructions = 1}};
  EXPECT_TRUE((*CaptureWriter::create(path_, "rpi3"))->begin(*space_, CapturedJob::of(programs)));
  auto reader = CaptureReader::open(path_);
  ASSERT_TRUE(reader.ok()) << reader.status();
  const auto job = (*reader)->next();
  ASSERT_TRUE(job.ok()) << job.status();
  ASSERT_NE(job->programs, nullptr);
  EXPECT_EQ(job->kind, CapturedJob::kUser);
  EXPECT_EQ(words_of(*job->programs), words_of(programs));
  EXPECT_EQ(job->programs->programs.at(0).most_instructions, 0x123456789u);
  const Memory memory = (*reader)->context(job->context).space().memory();
  const uint32_t value = 77;
  memory.write(kAlias + 12, &value, sizeof value);
  EXPECT_EQ(memory.load<uint32_t>(kAddress + 12), value);
  EXPECT_TRUE(absl::IsNotFound((*reader)->next().status()));
}

TEST_F(CaptureTest, UserProgramsThatCannotBe) {
  EXPECT_NE(programs_of(std::vector<uint32_t>{3, 0}), nullptr);
  EXPECT_EQ(programs_of(std::vector<uint32_t>{3}), nullptr);
  EXPECT_EQ(programs_of(std::vector<uint32_t>{4, 0}), nullptr);
  EXPECT_EQ(programs_of(std::vector<uint32_t>{3, 0, 1, 2, 3}), nullptr);
  EXPECT_EQ(programs_of(std::vector<uint32_t>(2 + 4 * (kMostCapturedPrograms + 1))), nullptr);
  CapturedJob none;
  none.kind = CapturedJob::kUser;
  CapturedJob other = CapturedJob::of(device::CsdJob{});
  other.programs = std::make_shared<const CapturedPrograms>();
  for (const auto& [profile, job, error] : {std::tuple("rpi3", none, "a job of user programs without these"),
                                            std::tuple("rpi3", other, "user programs of a job that has none"),
                                            std::tuple("rpi5", CapturedJob::of(CapturedPrograms{}),
                                                       "a record of user programs that cannot be")}) {
    EXPECT_TRUE((*CaptureWriter::create(path_, profile))->begin(*space_, job));
    EXPECT_THAT(std::string(read().end.message()), HasSubstr(error));
  }
}

TEST_F(CaptureTest, ANewerFormatIsRefusedByItsNumber) {
  write(1);
  std::string data = contents();
  data[7] = 7;
  replace(data);
  EXPECT_THAT(std::string(read().end.message()), HasSubstr("format 7; this v3demu reads 1 to 6"));
}

/// A capture of one job with a record of memory after it, of these words behind the context.
std::string with_after(std::string data, const std::vector<uint32_t>& words) {
  const std::string end = data.substr(data.size() - kEndBytes);
  data.resize(data.size() - kEndBytes);
  std::vector<uint32_t> record = {8, static_cast<uint32_t>(4 + 4 * words.size()), 1};
  record.insert(record.end(), words.begin(), words.end());
  return data + std::string(reinterpret_cast<const char*>(record.data()), 4 * record.size()) + end;
}

// Pages 1 to 4 are those that the job found, of which the second one is after it where the first one was.
TEST_F(CaptureTest, TellsWhatMemoryHeldAfterAJob) {
  write(1);
  replace(with_after(contents(), {1, kAddress, 3, kAddress, 2, kAddress + 2 * mmu::kPageSize, 0}));
  auto reader = CaptureReader::open(path_);
  ASSERT_TRUE(reader.ok()) << reader.status();
  ASSERT_TRUE((*reader)->next().ok());
  const auto after = (*reader)->take_after();
  ASSERT_TRUE(after.ok()) << after.status();
  ASSERT_TRUE(after->has_value());
  ASSERT_EQ((*after)->ranges.size(), 1u);
  EXPECT_EQ((*after)->ranges[0].size, 3 * mmu::kPageSize);
  const auto first_byte = [&](uint32_t page) {
    return (*reader)->page_after(**after, kAddress + page * mmu::kPageSize)[0];
  };
  EXPECT_EQ(first_byte(0), 2);
  EXPECT_EQ(first_byte(1), 2);
  EXPECT_EQ(first_byte(2), 0);
  EXPECT_EQ((*reader)->context(1).space().memory().load<uint8_t>(kAddress), 1);  // as the job found it
  const auto more = (*reader)->take_after();
  EXPECT_TRUE(more.ok() && !more->has_value());
  EXPECT_TRUE(absl::IsNotFound((*reader)->next().status()));
  EXPECT_TRUE(absl::IsNotFound(read().end));  // by those who do not ask for it
}

// What a job wrote and its program took back before the next one is in no record.
TEST_F(CaptureTest, JobsFindWhatTheyFoundAfterOthersWereRun) {
  constexpr GpuAddr kZeroPage = kAddress + kPages * mmu::kPageSize;
  ASSERT_TRUE(space_->map_zeros(kZeroPage, mmu::kPageSize).ok());
  space_->memory().store<uint32_t>(kAddress, 7);
  {
    auto writer = CaptureWriter::create(path_, "rpi5");
    ASSERT_TRUE(writer.ok()) << writer.status();
    const CapturedJob job = CapturedJob::of(device::CsdJob{});
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE((*writer)->begin(*space_, job).owns_lock());
      space_->memory().store<uint32_t>(kAddress, 8);  // the job
      space_->memory().store<uint32_t>(kAddress, 7);  // the program
    }
    ASSERT_TRUE((*writer)->begin(*space_, CapturedJob::of(device::ClJob{}, false, 3)).owns_lock());
    ASSERT_TRUE((*writer)->begin(*space_, CapturedJob::of(device::ClJob{}, true, 3)).owns_lock());
  }
  auto reader = CaptureReader::open(path_);
  ASSERT_TRUE(reader.ok()) << reader.status();
  for (int i = 0; i < 4; ++i) {
    const auto job = (*reader)->next();
    ASSERT_TRUE(job.ok()) << job.status();
    const Memory memory = (*reader)->context(job->context).space().memory();
    (*reader)->restore_found();
    const bool finds_what_its_bin_job_left = i == 3;
    EXPECT_EQ(memory.load<uint32_t>(kAddress), finds_what_its_bin_job_left ? 8u : 7u) << i;
    EXPECT_EQ(memory.load<uint32_t>(kZeroPage), finds_what_its_bin_job_left ? 9u : 0u) << i;
    memory.store<uint32_t>(kAddress, 8);
    memory.store<uint32_t>(kZeroPage, 9);
  }
}

TEST_F(CaptureTest, BringsBackWhatWasThere) {
  constexpr GpuAddr kOther = 0x4000000;
  ASSERT_TRUE(space_->map_zeros(kOther, mmu::kPageSize).ok());
  space_->memory().store<uint32_t>(kAddress + 8, 7);
  space_->memory().store<uint32_t>(kAddress + mmu::kPageSize, 0);
  {
    auto writer = CaptureWriter::create(path_, "rpi5");
    ASSERT_TRUE(writer.ok()) << writer.status();
    ASSERT_TRUE((*writer)->begin(*space_, CapturedJob::of(device::CsdJob{})).owns_lock());
  }
  auto reader = CaptureReader::open(path_);
  ASSERT_TRUE(reader.ok()) << reader.status();
  const auto job = (*reader)->next();
  ASSERT_TRUE(job.ok()) << job.status();
  const Memory memory = (*reader)->context(job->context).space().memory();
  for (int round = 0; round < 2; ++round) {
    memory.store<uint32_t>(kAddress + 8, 9);
    memory.store<uint32_t>(kAddress + mmu::kPageSize, 1);  // of pages that were zero
    memory.store<uint32_t>(kOther, 2);
    (*reader)->restore();
    EXPECT_EQ(memory.load<uint32_t>(kAddress + 8), 7u);
    EXPECT_EQ(memory.load<uint32_t>(kAddress + mmu::kPageSize), 0u);
    EXPECT_EQ(memory.load<uint32_t>(kOther), 0u);
  }
}

TEST_F(CaptureTest, MemoryAfterJobsThatCannotBe) {
  write(1);
  const std::string data = contents();
  const GpuAddr beyond = kAddress + kPages * mmu::kPageSize;
  for (const auto& [words, error] : std::initializer_list<std::pair<std::vector<uint32_t>, const char*>>{
           {{}, "of the wrong size"},
           {{1}, "of the wrong size"},
           {{2, kAddress, 1}, "of the wrong size"},
           {{~0u, kAddress, 1}, "of the wrong size"},
           {{1, kAddress, 5}, "not mapped or named twice"},
           {{1, beyond, 1}, "not mapped or named twice"},
           {{2, kAddress, 2, kAddress, 1}, "not mapped or named twice"},
           {{1, kAddress, 1, kAddress + 4, 1}, "cannot be after jobs"},
           {{1, kAddress, 1, beyond, 1}, "cannot be after jobs"},
           {{1, kAddress, 1, kAddress, 1, kAddress, 1}, "cannot be after jobs"},
           {{1, kAddress, 1, kAddress, 5}, "cannot be after jobs"}}) {
    replace(with_after(data, words));
    EXPECT_THAT(std::string(read().end.message()), HasSubstr(error)) << testing::PrintToString(words);
  }
}

TEST_F(CaptureTest, NoRangeIsLargerThanAnAddressSpace) {
  write(1);
  std::string data = contents();
  // After the headers of file and record: the context, an address, its number of pages.
  const uint32_t pages = (uint64_t{5} << 30) / mmu::kPageSize;
  ASSERT_EQ(data[32 + 8 + 8], static_cast<char>(kPages));
  data.replace(32 + 8 + 8, sizeof pages, reinterpret_cast<const char*>(&pages), sizeof pages);
  replace(data);
  EXPECT_THAT(std::string(read().end.message()), HasSubstr("leaves the address space"));
}

// Eight bytes fill a page: a small file may ask for more than the host has.
TEST_F(CaptureTest, TheMemoryOfItsProgramsIsBounded) {
  constexpr uint32_t kMany = 1000;
  auto writer = CaptureWriter::create(path_, "rpi5");
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE(space_->map_zeros(kAddress + kPages * mmu::kPageSize, kMany * mmu::kPageSize).ok());
  const uint32_t value = 1;
  for (uint32_t page = 0; page < kMany; ++page)
    space_->memory().write(kAddress + page * mmu::kPageSize, &value, sizeof value);
  for (int i = 0; i < 3; ++i)  // the same pages take no more
    ASSERT_TRUE((*writer)->begin(*space_, CapturedJob::of(device::CsdJob{})).owns_lock());
  writer->reset();
  ASSERT_LT(contents().size(), 20'000u);
  const auto read_with = [this](uint64_t memory) {
    auto reader = CaptureReader::open(path_, nullptr, memory);
    absl::Status status = reader.status();
    while (status.ok()) status = (*reader)->next().status();
    return status;
  };
  EXPECT_TRUE(absl::IsResourceExhausted(read_with(kMany * mmu::kPageSize - 1)));
  EXPECT_TRUE(absl::IsNotFound(read_with((kMany + 16) * mmu::kPageSize)));
  // Zeros take no memory that was not there.
  for (uint32_t page = 0; page < kMany; ++page)
    std::memset(space_->memory().host(kAddress + page * mmu::kPageSize), 0, mmu::kPageSize);
  write(1);
  EXPECT_TRUE(absl::IsNotFound(read_with(16 * mmu::kPageSize)));
}

TEST_F(CaptureTest, IsNotBegunOnAFullDisk) {
  std::signal(SIGXFSZ, SIG_IGN);  // as main.cc does
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit none = {0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
  const auto writer = CaptureWriter::create(path_, "rpi5");
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_FALSE(writer.ok());
  EXPECT_THAT(std::string(writer.status().message()), HasSubstr(path_ + ": File too large"));
}

TEST_F(CaptureTest, IsAFileAndNothingElse) {
  const auto writer = CaptureWriter::create("/dev/null", "rpi5");
  ASSERT_FALSE(writer.ok());
  EXPECT_THAT(std::string(writer.status().message()), HasSubstr("/dev/null: it is no regular file"));
}

TEST_F(CaptureTest, StopsWhenTheDiskIsFullAndSaysSoOnce) {
  std::signal(SIGXFSZ, SIG_IGN);  // as main.cc does
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small = {10 * mmu::kPageSize, before.rlim_max};
  auto writer = CaptureWriter::create(path_, "rpi5");
  ASSERT_TRUE(writer.ok()) << writer.status();
  testing::internal::CaptureStderr();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_TRUE(begin_job(**writer));
  EXPECT_TRUE(begin_job(**writer));
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(begin_job(**writer));
  writer->reset();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
  EXPECT_THAT(log, HasSubstr(path_ + " stops after job 2"));
  EXPECT_THAT(log, HasSubstr("File too large (errno 27)"));
  EXPECT_EQ(read().jobs, 2);
  EXPECT_TRUE(absl::IsDataLoss(read().end));
}

}  // namespace
}  // namespace v3d::daemon::test
