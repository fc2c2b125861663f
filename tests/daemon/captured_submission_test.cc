// Submissions of VideoCore IV in recordings: what the kernel's checks make of them, and files that nobody has
// written.
#include "daemon/captured_submission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "ioctl/abi/vc4.h"
#include "tests/base/temporary_folder.h"
#include "tests/daemon/recording.h"
#include "tests/ioctl/vc4/job_source.h"
#include "tests/ioctl/vc4/words.h"

namespace v3d::daemon::test {
namespace {

using ioctl::vc4::test::Bytes;
using testing::HasSubstr;
namespace drm = ioctl::drm::vc4;

/// A frame of one triangle on 64x64 pixels: three shaders, attributes, and the image.
constexpr uint32_t kShader = 0x10000, kAttributes = 0x20000, kImage = 0x40000, kImagePages = 4;

class CapturedSubmissionTest : public testing::Test {
 protected:
  CapturedSubmissionTest() {
    for (drm::Surface* s : {&args.color_read, &args.color_write, &args.zs_read, &args.zs_write,
                            &args.msaa_color_write, &args.msaa_zs_write})
      s->hindex = drm::kNoSurface;
    args.width = args.height = 64;
    args.color_write = {4, 0, 0x44, 0};
    args.shader_rec_count = 1;
    ioctl::vc4::test::Record record;
    record.vertex = 1;
    record.coordinate = 2;
    record.attributes = {{.bo = 3, .offset = 16, .bytes = 8, .stride = 8}};
    list = ioctl::vc4::test::list(
        ioctl::vc4::test::shader_state(record.bits()).append(ioctl::vc4::test::draw_arrays(3, 0)));
    records = record.bytes();
    for (uint32_t n = 0; n < 3; ++n) bos.push_back({kShader + n * 0x1000, 1, 1});
    bos.push_back({kAttributes, 1, 0});
    bos.push_back({kImage, kImagePages, 0});
  }

  std::string submission() {
    args.bin_cl_size = static_cast<uint32_t>(list.size());
    args.shader_rec_size = static_cast<uint32_t>(records.size());
    args.bo_handle_count = static_cast<uint32_t>(bos.size());
    std::string payload = Recording::bytes_of({1});
    payload.append(reinterpret_cast<const char*>(&args), sizeof args);
    for (const auto& bo : bos) payload += Recording::bytes_of(bo);
    for (const Bytes* part : {&list, &records}) {
      payload.append(part->begin(), part->end());
      payload.resize((payload.size() + 3) / 4 * 4);
    }
    return payload;
  }
  /// All before the jobs.
  Recording begun(const char* profile = "rpi3") {
    const std::vector<uint64_t> program = ioctl::vc4::test::program({});
    Recording recording(profile);
    recording.words(Recording::kMaps, {1, kShader, 3, kAttributes, 1, kImage, kImagePages});
    recording.record(Recording::kPage, {reinterpret_cast<const char*>(program.data()), mmu::kPageSize});
    recording.words(Recording::kSets, {1, kShader, 1, kShader + 0x1000, 1, kShader + 0x2000, 1});
    return recording.record(Recording::kSubmission, submission());
  }
  Recording whole() { return begun().job(CapturedJob::kBin, 1).job(CapturedJob::kRender, 1).end(); }

  std::unique_ptr<CaptureReader> open(const Recording& recording) {
    recording.save(path_);
    auto reader = CaptureReader::open(path_);
    EXPECT_TRUE(reader.ok()) << reader.status();
    return reader.ok() ? *std::move(reader) : nullptr;
  }
  /// Why it is not read to its end.
  std::string refusal(const Recording& recording) {
    const auto reader = open(recording);
    while (true) {
      const auto job = reader->next();
      if (!job.ok()) return std::string(job.status().message());
    }
  }

  drm::SubmitCl args = {};
  std::vector<std::vector<uint32_t>> bos;
  Bytes list, records;
  const v3d::test::TemporaryFolder own_;
  const std::string path_ = own_ / "file.v3dcap";
};

TEST_F(CapturedSubmissionTest, BecomesTwoJobs) {
  const auto reader = open(whole());
  const auto bin = reader->next();
  ASSERT_TRUE(bin.ok()) << bin.status();
  EXPECT_EQ(bin->kind, CapturedJob::kBin);
  EXPECT_EQ(bin->surfaces, nullptr);
  EXPECT_EQ(bin->words[0], kCopyAddress);
  EXPECT_EQ(bin->words[1], kCopyAddress + list.size());
  const Memory memory = reader->context(1).space().memory();
  EXPECT_EQ(memory.load<uint8_t>(kCopyAddress), 112);
  // The record, with addresses in the places of what it named.
  const uint32_t record = kCopyAddress + (static_cast<uint32_t>(list.size()) + 15) / 16 * 16;
  EXPECT_EQ(memory.load<uint32_t>(record + 4), kShader);
  EXPECT_EQ(memory.load<uint32_t>(record + 28), kShader + 0x2000);
  EXPECT_EQ(memory.load<uint32_t>(record + 36), kAttributes + 16);
  const auto render = reader->next();
  ASSERT_TRUE(render.ok()) << render.status();
  EXPECT_EQ(render->words, bin->words);
  ASSERT_NE(render->surfaces, nullptr);
  EXPECT_EQ(render->surfaces->color_write.address, kImage);
  EXPECT_EQ(render->surfaces->tiles_x, 2);
  EXPECT_TRUE(absl::IsNotFound(reader->next().status()));
}

TEST_F(CapturedSubmissionTest, IsTheSameFromTheBeginningAgain) {
  const auto reader = open(whole());
  for (int time = 0; time < 3; ++time) {
    const auto bin = reader->next();
    ASSERT_TRUE(bin.ok()) << bin.status();
    EXPECT_EQ(reader->context(1).space().memory().load<uint8_t>(kCopyAddress), 112);
    if (time != 1) {
      const auto render = reader->next();
      ASSERT_TRUE(render.ok()) << render.status();
      EXPECT_TRUE(absl::IsNotFound(reader->next().status()));
    }
    reader->rewind();
  }
}

TEST_F(CapturedSubmissionTest, ItsCopyComesBackAndGoesWithTheNext) {
  Recording recording = begun().job(CapturedJob::kBin, 1).job(CapturedJob::kRender, 1);
  list.clear();
  const auto reader =
      open(recording.record(Recording::kSubmission, submission()).job(CapturedJob::kRender).end());
  ASSERT_TRUE(reader->next().ok());
  mmu::AddressSpace& space = reader->context(1).space();
  space.memory().store<uint32_t>(kCopyAddress, 0);  // a job that runs wild
  reader->restore();
  EXPECT_EQ(space.memory().load<uint8_t>(kCopyAddress), 112);
  ASSERT_TRUE(reader->next().ok());
  const auto alone = reader->next();
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_EQ(alone->words[0], alone->words[1]);
  EXPECT_FALSE(space.is_mapped(kCopyAddress));
}

TEST_F(CapturedSubmissionTest, WhatTheKernelRefuses) {
  args.flags = 16;
  EXPECT_THAT(refusal(whole()), HasSubstr("flags that there are not"));
  args.flags = 0;
  args.color_write.offset = 0x1000;
  EXPECT_THAT(refusal(whole()), HasSubstr("color_write: it reaches beyond its BO"));
  args.color_write.offset = 0;
  list[0] = 113;
  EXPECT_THAT(refusal(whole()), HasSubstr("packet 113 may not be used"));
  list[0] = 112;
  bos[2][2] = 0;
  EXPECT_THAT(refusal(whole()), HasSubstr("a program that is no shader BO"));
  bos[2][2] = bos[3][2] = 1;
  EXPECT_THAT(refusal(whole()), HasSubstr("the shader at 0x20000: "));
}

TEST_F(CapturedSubmissionTest, BufferObjectsThatCannotBe) {
  const auto good = bos;
  for (const auto& [number, bo] :
       std::initializer_list<std::pair<size_t, std::vector<uint32_t>>>{{3, {kAttributes, 0, 0}},
                                                                       {3, {kAttributes, 2, 0}},
                                                                       {3, {kAttributes + 4, 1, 0}},
                                                                       {3, {kImage + 0x1000, 1, 0}},
                                                                       {3, {kCopyAddress, 1, 0}},
                                                                       {4, {kImage, ~0u, 0}}}) {
    bos = good;
    bos[number] = bo;
    EXPECT_THAT(refusal(whole()), HasSubstr("which is not mapped or named twice")) << bo[0] << " " << bo[1];
  }
}

TEST_F(CapturedSubmissionTest, RecordsThatAreNotWhatTheySay) {
  const std::string good = submission();
  for (const size_t bytes : {size_t{0}, size_t{4}, size_t{180}, good.size() - 4}) {
    Recording recording("rpi3");
    EXPECT_FALSE(refusal(recording.record(Recording::kSubmission, good.substr(0, bytes))).empty()) << bytes;
  }
  args.uniforms_size = 0xffffffff;
  EXPECT_THAT(refusal(whole()), HasSubstr("not as long as its parts"));
}

TEST_F(CapturedSubmissionTest, JobsThatAreNotItsOwn) {
  const char* const kError = "a submission that is not of the job behind it";
  EXPECT_THAT(refusal(begun().job(CapturedJob::kUser).end()), HasSubstr(kError));
  EXPECT_THAT(refusal(whole().job(CapturedJob::kRender)), HasSubstr("something follows"));
  list.clear();
  EXPECT_THAT(refusal(begun().job(CapturedJob::kBin, 1).end()), HasSubstr(kError));
  Recording late = begun();
  late.words(Recording::kMaps, {1, kImage, 4}).job(CapturedJob::kRender).end();
  EXPECT_THAT(refusal(late), HasSubstr("a render job without its surfaces"));
}

TEST_F(CapturedSubmissionTest, OtherChipsHaveNone) {
  Recording recording = begun("rpi5");
  EXPECT_THAT(refusal(recording), HasSubstr("a submission of VideoCore IV that cannot be"));
}

}  // namespace
}  // namespace v3d::daemon::test
