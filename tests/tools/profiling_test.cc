/// What `v3demu profile` makes of jobs and their predictions.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "daemon/json_writer.h"
#include "tools/cli/profiling/schedule.h"
#include "tools/cli/profiling/writers.h"

namespace v3d::tools::profiling {
namespace {

using daemon::JsonWriter;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr uint64_t kUs = 1000;

/// Of so many microseconds at a GHz; 0: without a prediction.
Job make_job(Kind kind, uint64_t us, uint32_t submission = 0, uint32_t client = 1) {
  Job job;
  job.kind = kind;
  job.client = client;
  job.submission = submission;
  job.end = "done";
  job.predicted = us != 0;
  job.times.clocks = 1000 * us;
  job.times.clock_mhz = 1000;
  job.times.qpus = 12;
  job.times.tmus = 3;
  if (us == 0) job.no_prediction = "because";
  return job;
}

Job make_render(uint64_t us, uint32_t submission, uint32_t address, uint32_t width = 500) {
  Job job = make_job(Kind::kRender, us, submission);
  job.targets = {{.address = address, .width = width, .height = 500, .format = 27, .layout = 4}};
  return job;
}

Profile make_profile(std::vector<Job> jobs, FramesBy frames = FramesBy::kTargets) {
  Profile profile;
  profile.board = "rpi5";
  profile.description = "a board";
  for (Job& job : jobs) {
    job.number = static_cast<uint32_t>(profile.jobs.size()) + 1;
    profile.jobs.push_back(std::move(job));
  }
  group_frames(frames, &profile);
  schedule(&profile);
  return profile;
}

std::vector<uint32_t> frames_of(const Profile& profile) {
  std::vector<uint32_t> frames;
  for (const Job& job : profile.jobs) frames.push_back(job.frame);
  return frames;
}

std::vector<uint64_t> begins_of(const Profile& profile) {
  std::vector<uint64_t> begins;
  for (const Job& job : profile.jobs) begins.push_back(job.begin_ns / kUs);
  return begins;
}

/// With everything that the writers write.
Profile full_profile() {
  Job job = make_render(40, 1, 0x10000);
  job.shaders = {{.shader = 0, .batches = 3, .instructions = 12, .stalls = {7}}};
  job.draws = {{.number = 1,
                .vertices = 3,
                .primitives = 1,
                .quads = 64,
                .vertex_batches = 1,
                .fragment_batches = 4,
                .clocks = 70}};
  job.spans = {{.track = "tiles", .name = "tile \"1\"", .begin = 500, .end = 1500}};
  Profile profile = make_profile({make_job(Kind::kBin, 10, 1), job, make_job(Kind::kTransfer, 0)});
  Shader shader;
  shader.stage = "fragment";
  shader.name = "fragment 0x00001000";
  shader.jobs = 1;
  shader.batches = 3;
  shader.instructions = 12;
  shader.stalls = {7};
  shader.at = {{.word = 1, .text = "nop </script><!--", .issued = 12, .stalls = {7}}};
  profile.shaders = {shader};
  return profile;
}

TEST(Frames, ImagesOfASwapchainTakeTurns) {
  const Profile profile = make_profile({make_render(1, 1, 0x1000), make_render(1, 2, 0x2000),
                                        make_render(1, 3, 0x3000), make_render(1, 4, 0x1000)});
  EXPECT_EQ(frames_of(profile), (std::vector<uint32_t>{1, 2, 3, 4}));
}

TEST(Frames, PassesIntoOtherImagesBelongToOne) {
  const Profile profile =
      make_profile({make_render(1, 1, 0x9000, 1024), make_render(1, 2, 0x1000), make_job(Kind::kTransfer, 1),
                    make_render(1, 3, 0x9000, 1024), make_render(1, 4, 0x2000)});
  EXPECT_EQ(frames_of(profile), (std::vector<uint32_t>{1, 1, 1, 2, 2}));
  EXPECT_EQ(profile.frames.size(), 2u);
  EXPECT_EQ(profile.frames[0].jobs, 3u);
}

TEST(Frames, BinJobsGoWithTheirRenderJobs) {
  const Profile profile = make_profile({make_job(Kind::kBin, 1, 1), make_job(Kind::kBin, 1, 2),
                                        make_render(1, 1, 0x1000), make_render(1, 2, 0x2000)});
  EXPECT_EQ(frames_of(profile), (std::vector<uint32_t>{1, 2, 1, 2}));
}

TEST(Frames, JobsThatStoreNothingBeginNone) {
  const auto nothing = [](uint32_t submission) { return make_job(Kind::kRender, 1, submission); };
  const Profile profile = make_profile(
      {nothing(1), nothing(2), make_render(1, 3, 0x1000), nothing(4), nothing(5), make_render(1, 6, 0x2000)});
  EXPECT_EQ(frames_of(profile), (std::vector<uint32_t>{1, 1, 1, 1, 1, 2}));
}

TEST(Frames, EachSubmissionIfAsked) {
  const Profile profile = make_profile(
      {make_render(1, 1, 0x9000, 1024), make_render(1, 2, 0x1000), make_render(1, 3, 0x9000, 1024)},
      FramesBy::kSubmission);
  EXPECT_EQ(frames_of(profile), (std::vector<uint32_t>{1, 2, 3}));
}

TEST(Frames, AreOfOneClient) {
  Job other = make_render(1, 1, 0x1000);
  other.client = 2;
  const Profile profile = make_profile({make_render(1, 1, 0x1000), other, make_render(1, 2, 0x1000)});
  EXPECT_EQ(frames_of(profile), (std::vector<uint32_t>{1, 2, 3}));
  EXPECT_EQ(profile.frames[1].client, 2u);
}

TEST(Frames, ComputeAloneHasNone) {
  EXPECT_EQ(frames_of(make_profile({make_job(Kind::kCompute, 1)})), (std::vector<uint32_t>{0}));
}

TEST(Timeline, QueuesOverlapAndRenderFollowsItsBin) {
  const Profile profile =
      make_profile({make_job(Kind::kBin, 10, 1), make_render(100, 1, 0x1000), make_job(Kind::kBin, 20, 2),
                    make_render(100, 2, 0x2000), make_job(Kind::kCompute, 7)});
  EXPECT_EQ(begins_of(profile), (std::vector<uint64_t>{0, 10, 10, 110, 0}));
  EXPECT_EQ(profile.end_ns(), 210 * kUs);
  EXPECT_EQ(profile.frames[1].begin_ns, 0u);  // the dispatch came then
  EXPECT_EQ(profile.frames[1].busy_ns[1], 100 * kUs);
}

TEST(Timeline, TwoFramesOfAClientAreUnderWay) {
  std::vector<Job> jobs;
  for (uint32_t n = 1; n <= 4; ++n) {
    jobs.push_back(make_job(Kind::kBin, 10, n));
    jobs.push_back(make_render(100, n, 0x1000 * n));
  }
  EXPECT_EQ(begins_of(make_profile(jobs)), (std::vector<uint64_t>{0, 10, 10, 110, 110, 210, 210, 310}));
}

TEST(Timeline, JobsWithoutPredictionTakeNothing) {
  const Profile profile = make_profile(
      {make_job(Kind::kTransfer, 5), make_job(Kind::kTransfer, 0), make_job(Kind::kTransfer, 5)});
  EXPECT_EQ(begins_of(profile), (std::vector<uint64_t>{0, 5, 5}));
  EXPECT_EQ(profile.end_ns(), 10 * kUs);
}

TEST(JsonWriter, WritesValuesAndEscapesText) {
  JsonWriter json;
  json.begin_object().field("a\"\\\n", 1u).key("list").begin_array().value("x").value(true).value(0.5);
  json.begin_object().end_object().end_array().key("t").time(12'034'005).end_object();
  EXPECT_EQ(json.take(), "{\"a\\\"\\\\\\u000a\":1,\"list\":[\"x\",true,0.5,{}],\"t\":12034.005}");
}

constexpr char kPage[] = "<script type=json>{{profile}}</script>";

TEST(Writers, ThePageHoldsTheProfileAsData) {
  const std::string page = to_html(full_profile(), kPage);
  EXPECT_THAT(page, StartsWith("<script type=json>{"));
  EXPECT_THAT(page, EndsWith("}\n</script>"));
  EXPECT_THAT(page, HasSubstr("nop \\u003c/script>\\u003c!--"));
}

TEST(Writers, EqualProfilesGiveEqualBytes) {
  EXPECT_EQ(to_text(full_profile()), to_text(full_profile()));
  EXPECT_EQ(to_json(full_profile()), to_json(full_profile()));
  EXPECT_EQ(to_html(full_profile(), kPage), to_html(full_profile(), kPage));
  EXPECT_EQ(to_trace(full_profile()), to_trace(full_profile()));
}

TEST(Writers, TheTextNamesWhatIsSlowest) {
  const std::string text = to_text(full_profile());
  EXPECT_THAT(text, HasSubstr("jobs: 3, predicted: 2; all queues together take 0.050 ms"));
  EXPECT_THAT(text, HasSubstr("fragment 0x00001000: 1 jobs, 3 batches, 12 instructions"));
  EXPECT_THAT(text, HasSubstr("(12 times; stalls: TMU 12.7 %)"));
  EXPECT_THAT(text, HasSubstr("1 tfu: because"));
}

TEST(Writers, TheTraceHasAnEventForEachJobAndSpan) {
  const std::string trace = to_trace(full_profile());
  EXPECT_THAT(trace,
              HasSubstr(R"("name":"render 2","pid":1,"tid":64,"cat":"job","ts":10.000,"dur":40.000,)"));
  EXPECT_THAT(trace,
              HasSubstr(R"("name":"tile \"1\"","pid":1,"tid":65,"cat":"span","ts":10.500,"dur":1.000,)"));
  EXPECT_THAT(trace, HasSubstr(R"("ph":"C","name":"DRAM bytes/us")"));
  EXPECT_THAT(trace, Not(HasSubstr("tfu 3")));
}

}  // namespace
}  // namespace v3d::tools::profiling
