// The facade over fake blocks: what it hands them and how it reads their outcome.
#include "gpu/device/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <new>
#include <set>

#include "absl/strings/str_format.h"
#include "gpu/base/job_context.h"
#include "gpu/base/work_watch.h"
#include "gpu/cle/executor.h"
#include "gpu/csd/dispatch.h"
#include "gpu/csd/user_programs.h"
#include "gpu/device/run_surfaces.h"
#include "gpu/perf/record/sampling.h"
#include "gpu/perf/timing/parameters.h"
#include "gpu/perf/timing/prediction.h"
#include "gpu/qpu/isa/vc4_assembler.h"
#include "gpu/qpu/run/program_scope.h"
#include "gpu/tfu/tfu.h"
#include "tests/csd/user_queue.h"
#include "tests/qpu/engine.h"

namespace v3d {
namespace {

/// What the fakes below do with the job they get.
std::function<void(const JobContext&)> g_work;
std::array<uint32_t, 4> g_arguments;
const draw::BinResult* g_bin;

void work(const JobContext& job) {
  const std::function<void(const JobContext&)> copy = g_work;  // it may set g_work
  copy(job);
}

}  // namespace

namespace cle {
std::shared_ptr<draw::BinResult> run_bin_list(const JobContext& job, GpuAddr start, GpuAddr end) {
  g_arguments = {start, end};
  work(job);
  return std::make_shared<draw::BinResult>();
}
void run_render_list(const JobContext& job, GpuAddr start, GpuAddr end, GpuAddr qma,
                     const draw::BinResult* bin) {
  g_arguments = {start, end, qma};
  g_bin = bin;
  work(job);
}
void run_surfaces(const JobContext& job, const SurfaceJob& surfaces, const draw::BinResult* bin,
                  ClearValues* clear) {
  g_arguments = {surfaces.width, surfaces.height, clear->color++};
  g_bin = bin;
  work(job);
}
}  // namespace cle

namespace csd {
bool dispatch(const JobContext& job, const std::array<uint32_t, 7>& cfg, bool serial,
              const mmu::AddressSpace* space) {
  g_arguments = {cfg[0], cfg[6], serial, space != nullptr};
  work(job);
  return !job.stopped();
}
}  // namespace csd

namespace tfu {
void run(const JobContext& job, const Registers& r) {
  g_arguments = {r.icfg, r.ioc, r.coef[0], r.coef[3]};
  work(job);
}
}  // namespace tfu

namespace device {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using End = JobResult::End;

class DeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<Context>> context = Context::create(profile_, qpu::compiler_of_tests());
    ASSERT_TRUE(context.ok()) << context.status();
    context_ = *std::move(context);
    g_work = [](const JobContext&) {};
  }

  /// One run of each kind of job.
  std::vector<std::function<JobResult()>> all_kinds() {
    return {[this] { return device_.run_bin(*context_, {}, control_, &bin_); },
            [this] { return device_.run_render(*context_, {}, control_, nullptr); },
            [this] { return device_.run_csd(*context_, {}, control_); },
            [this] { return device_.run_tfu(*context_, {}, control_); },
            [this] { return run_surfaces(device_, *context_, {}, control_); }};
  }

  const chip::Profile& profile_ = chip::default_profile();
  ThreadPool pool_{1};
  Device device_{profile_, pool_};
  std::unique_ptr<Context> context_;
  JobControl control_;
  std::shared_ptr<const draw::BinResult> bin_;
};

TEST_F(DeviceTest, HandsArgumentsToTheBlocks) {
  const ClJob cl{.bcl_start = 1, .bcl_end = 2, .rcl_start = 3, .rcl_end = 4, .qma = 5, .qms = 6, .qts = 7};
  device_.run_bin(*context_, cl, control_, &bin_);
  EXPECT_THAT(g_arguments, ElementsAre(1, 2, 0, 0));
  ASSERT_NE(bin_, nullptr);
  device_.run_render(*context_, cl, control_, bin_);
  EXPECT_THAT(g_arguments, ElementsAre(3, 4, 5, 0));
  EXPECT_EQ(g_bin, bin_.get());
  device_.run_render(*context_, cl, control_, nullptr);
  EXPECT_EQ(g_bin, nullptr);
  SurfaceJob frame;
  frame.width = 14;
  frame.height = 15;
  for (uint32_t clear_value = 0; clear_value < 2; ++clear_value) {  // these go on from job to job
    device_.run_render(*context_, {.surfaces = std::make_shared<SurfaceJob>(frame)}, control_, bin_);
    EXPECT_THAT(g_arguments, ElementsAre(14, 15, clear_value, 0));
    EXPECT_EQ(g_bin, bin_.get());
  }
  device_.run_csd(*context_, {.cfg = {8, 0, 0, 0, 0, 0, 9}, .indirect = true}, control_);
  EXPECT_THAT(g_arguments, ElementsAre(8, 9, 1, 1));
  device_.run_tfu(*context_, {.icfg = 10, .ioc = 11, .coef = {12, 0, 0, 13}}, control_);
  EXPECT_THAT(g_arguments, ElementsAre(10, 11, 12, 13));
}

TEST_F(DeviceTest, BinsAFrameThatHasAListAndRendersIt) {
  SurfaceJob frame;
  frame.width = 14;
  std::vector<uint32_t> calls;
  g_bin = nullptr;
  g_work = [&](const JobContext& job) {
    calls.push_back(g_arguments[0]);
    perf::Counts counts;
    counts[perf::kFepValidQuads] = 1;
    job.counts->merge(counts);
  };
  EXPECT_EQ(run_surfaces(device_, *context_, frame, control_).end, End::kDone);
  EXPECT_THAT(calls, ElementsAre(14));
  EXPECT_EQ(g_bin, nullptr);

  frame.list_start = 0x100;
  frame.list_end = 0x120;
  calls.clear();
  const JobResult result = run_surfaces(device_, *context_, frame, control_);
  EXPECT_EQ(result.end, End::kDone);
  EXPECT_EQ(result.counts.values[perf::kFepValidQuads], 2u);
  EXPECT_THAT(calls, ElementsAre(0x100, 14));
  EXPECT_NE(g_bin, nullptr);
}

// Linux would bin it again and again; what there is of it is shown instead (vc4-abi.md 6.3).
TEST_F(DeviceTest, RendersWhatWasBinnedBeforeAHang) {
  SurfaceJob frame;
  frame.list_end = 0x20;
  int calls = 0;
  g_work = [&](const JobContext& job) {
    if (++calls == 1) job.error->set_hang("in circles");
  };
  const JobResult result = run_surfaces(device_, *context_, frame, control_);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(result.end, End::kHang);
  EXPECT_EQ(result.message, "in circles");

  calls = 0;
  g_work = [&](const JobContext&) {
    ++calls;
    control_.cancel();
  };
  EXPECT_EQ(run_surfaces(device_, *context_, frame, control_).end, End::kCancelled);
  EXPECT_EQ(calls, 1);
}

TEST_F(DeviceTest, PredictionsAreTheSameWhenTheyAreMadeLater) {
  device_.set_timing(timing::kSampled);
  Device other(profile_, pool_);
  other.set_timing(timing::kSampled, Device::Predict::kLater);
  g_work = [](const JobContext& job) { job.work->transferred(4096, 8192); };
  const JobResult at_once = device_.run_tfu(*context_, {}, control_);
  EXPECT_FALSE(at_once.later);
  ASSERT_TRUE(at_once.prediction);
  JobResult result = other.run_tfu(*context_, {}, control_);
  ASSERT_TRUE(result.later);
  EXPECT_FALSE(result.prediction);
  EXPECT_NE(result.counts.values, at_once.counts.values);
  context_.reset();
  result.predict();
  EXPECT_FALSE(result.later);
  ASSERT_TRUE(result.prediction);
  EXPECT_EQ(result.prediction->ns(), at_once.prediction->ns());
  EXPECT_EQ(result.counts.values, at_once.counts.values);
}

// Where that is wanted, and for each context.
TEST_F(DeviceTest, TheFirstSubmitOfAContextTakesLonger) {
  const timing::Parameters p = timing::parameters_of(profile_);
  const auto submit_ns = [&](Device& device, Context& context) {
    const JobResult result = device.run_tfu(context, {}, control_);
    return result.prediction ? result.prediction->submit_ns : 0;
  };
  Device first(profile_, pool_), plain(profile_, pool_);
  for (Device* device : {&first, &plain}) device->set_timing(timing::kSampled);
  first.set_first_submit(true);
  g_work = [](const JobContext& job) { job.work->transferred(4096, 8192); };
  for (int i = 0; i < 2; ++i) {
    const std::unique_ptr<Context> context = *Context::create(profile_), other = *Context::create(profile_);
    EXPECT_EQ(submit_ns(first, *context), (p.first_submit + p.submit) * 1000);
    EXPECT_EQ(submit_ns(first, *context), p.submit * 1000);
    EXPECT_EQ(submit_ns(plain, *other), p.submit * 1000);
  }
}

/// User programs of which the first waits for the second, in one job or in two, as stores to registers that
/// come late make it.
class UserProgramJobs : public testing::Test {
 protected:
  static constexpr GpuAddr kWaiting = 0x10000, kReleasing = 0x11000;

  /// On fresh QPUs, a job for each list of programs. @return  of the last one
  JobResult run(const std::vector<std::vector<GpuAddr>>& jobs) {
    Device device(board_, pool_);
    device.set_timing(timing::kSampled);
    const std::unique_ptr<Context> context = *Context::create(board_);
    write(*context, kWaiting,
          "sacq 3\nload_imm r0, nop, 9\nloop:\nsub.setf r0, r0, 1\nbranch.any_zc loop\nnop\nnop\nnop\nend\n");
    write(*context, kReleasing, "nop\nnop\nsrel 3\nend\n");
    csd::UserQpus qpus(board_.qpu_count());
    JobResult result;
    JobControl control;
    waits_.clear();
    for (const std::vector<GpuAddr>& codes : jobs) {
      if (qpus.has_waiting()) waits_.push_back(result.no_prediction);
      csd::TestQueue queue;
      for (const GpuAddr code : codes) queue.waiting.push_back({code, 0, 100'000, 0});
      result = device.run_user_programs(*context, qpus, queue, false, control);
      EXPECT_EQ(result.end, End::kDone) << result.message;
    }
    EXPECT_FALSE(qpus.has_waiting());
    return result;
  }

  const chip::Profile& board_ = *chip::find_profile("rpi3");
  ThreadPool pool_{0};
  std::vector<std::string> waits_;  ///< why jobs had no prediction that ended while programs waited

 private:
  static void write(Context& context, GpuAddr code, std::string_view text) {
    const qpu::Assembly assembly = qpu::vc4::assemble(text);
    ASSERT_TRUE(assembly.errors.empty());
    ASSERT_TRUE(context.space().map_zeros(code, mmu::kPageSize).ok());
    context.space().memory().write(code, assembly.words.data(), assembly.words.size() * sizeof(uint64_t));
  }
};

TEST_F(UserProgramJobs, TakeTheSameTimeWhenStoresComeLate) {
  const JobResult at_once = run({{kWaiting, kReleasing}}), late = run({{kWaiting}, {kReleasing}});
  EXPECT_THAT(waits_, ElementsAre(HasSubstr("wait for those of a later job")));
  ASSERT_TRUE(at_once.prediction && late.prediction) << late.no_prediction;
  EXPECT_EQ(late.prediction->whole, 2u);
  EXPECT_EQ(late.prediction->ns(), at_once.prediction->ns());
}

TEST_F(DeviceTest, JobsKnowTheirContext) {
  g_work = [&](const JobContext& job) {
    EXPECT_EQ(job.memory.host(0), context_->space().memory().host(0));
    EXPECT_EQ(job.profile, &profile_);
    EXPECT_EQ(job.cancel, &control_.cancelled());
    EXPECT_NE(job.programs, nullptr);
    EXPECT_FALSE(job.stopped());
  };
  for (const auto& run : all_kinds()) EXPECT_EQ(run().end, End::kDone);
}

TEST_F(DeviceTest, ErrorsEndJobsWithTheirMessage) {
  g_work = [](const JobContext& job) {
    job.error->set("packet 77 is unknown");
    job.error->set("and more");
  };
  for (const auto& run : all_kinds()) {
    const JobResult result = run();
    EXPECT_EQ(result.end, End::kError);
    EXPECT_EQ(result.message, "packet 77 is unknown");
  }
}

TEST_F(DeviceTest, HangsAreToldFromErrors) {
  g_work = [](const JobContext& job) { job.error->set_hang("program 0x1000 does not end"); };
  for (const auto& run : all_kinds()) EXPECT_EQ(run().end, End::kHang);
}

TEST_F(DeviceTest, JobsThatFindNoMemoryFail) {
  g_work = [&](const JobContext&) { throw std::bad_alloc(); };
  for (const auto& run : all_kinds()) {
    const JobResult result = run();
    EXPECT_EQ(result.end, End::kError);
    EXPECT_EQ(result.message, "out of memory");
  }
  g_work = [&](const JobContext& job) {
    const std::function<void(int, int)> piece = [](int, int) { throw std::bad_alloc(); };
    job.pool->parallel_for(100, piece, job.control);
  };
  for (const auto& run : all_kinds()) EXPECT_EQ(run().end, End::kError);
  g_work = [](const JobContext&) {};
  for (const auto& run : all_kinds()) EXPECT_EQ(run().end, End::kDone);
}

TEST_F(DeviceTest, AnErrorStaysWithItsJob) {
  g_work = [](const JobContext& job) { job.error->set("bad"); };
  EXPECT_EQ(device_.run_render(*context_, {}, control_, nullptr).end, End::kError);
  g_work = [](const JobContext&) {};
  EXPECT_EQ(device_.run_render(*context_, {}, control_, nullptr).end, End::kDone);
}

TEST_F(DeviceTest, CancelledJobs) {
  g_work = [&](const JobContext& job) {
    control_.cancel();
    EXPECT_TRUE(job.stopped());
  };
  for (const auto& run : all_kinds()) EXPECT_EQ(run().end, End::kCancelled);
}

TEST_F(DeviceTest, CountsAndFaultsOfTheJob) {
  g_work = [](const JobContext& job) {
    perf::Counts counts;
    counts[perf::kQpuActive] = 42;
    job.counts->merge(counts);
    EXPECT_EQ(job.memory.load<uint32_t>(0x12345678), 0u);
  };
  for (const auto& run : all_kinds()) {
    const JobResult result = run();
    EXPECT_EQ(result.end, End::kDone) << "a fault does not end a job";
    EXPECT_EQ(result.counts.values[perf::kQpuActive], 42u);
    EXPECT_EQ(result.faults.count, 1u);
    EXPECT_EQ(result.faults.first_address, 0x12345678u);
  }
}

TEST_F(DeviceTest, FaultsOfProgramsNameTheInstruction) {
  constexpr GpuAddr kProgram = 0x10000;
  constexpr uint64_t kNop = 0x38003186bb03f000;
  ASSERT_TRUE(context_->space().map_zeros(kProgram, mmu::kPageSize).ok());
  context_->space().memory().store(kProgram + 8, kNop);
  GpuAddr pc = 0;
  g_work = [&](const JobContext& job) {
    qpu::Thread thread;
    thread.reset();
    thread.pc = pc;
    const qpu::ProgramScope scope("vertex", kProgram, thread);
    EXPECT_EQ(job.memory.load<uint32_t>(0x12345678), 0u);
    job.error->set_hang("it fell");
  };
  for (const auto& run : all_kinds()) {
    for (const auto& [at, text] :
         {std::pair(0u, ", word 0x0000000000000000"), std::pair(8u, " (nop ; nop)")}) {
      pc = kProgram + at;
      const JobResult result = run();
      EXPECT_EQ(result.message, "it fell");
      EXPECT_EQ(result.fault_place,
                absl::StrFormat("in the vertex program at 0x00010000, at pc 0x%08x%s", pc, text));
    }
    pc = 0x20000000;  // of which nobody knows the words
    EXPECT_EQ(run().fault_place, "in the vertex program at 0x00010000, at pc 0x20000000");
    EXPECT_EQ(context_->space().take_faults().count, 0u);
  }
}

// Spills of bin and render jobs that run at one time may share a BO of 4 * QPUs areas.
TEST_F(DeviceTest, ThreadIndicesOfBinAndRenderAreDisjoint) {
  for (const char* name : {"rpi5", "rpi5-16", "rpi4"}) {
    for (int workers : {0, 1, 7, 8, 63}) {
      ThreadPool pool(workers);
      const chip::Profile& profile = *chip::find_profile(name);
      Device device(profile, pool);
      std::set<uint32_t> bin, render;
      const auto collect = [](std::set<uint32_t>* values) {
        return [values](const JobContext& job) {
          for (int slot = 0; slot < job.pool->concurrency(); ++slot)
            values->insert(job.first_tidx + static_cast<uint32_t>(slot));
        };
      };
      g_work = collect(&bin);
      device.run_bin(*context_, {}, control_, &bin_);
      g_work = collect(&render);
      device.run_render(*context_, {}, control_, nullptr);
      const uint32_t threads = 4 * static_cast<uint32_t>(profile.qpu_count());
      EXPECT_EQ(*bin.begin(), threads - 8);
      EXPECT_LT(*bin.rbegin(), threads);
      EXPECT_EQ(*render.begin(), 0u);
      EXPECT_LT(*render.rbegin(), *bin.begin());
    }
  }
}

TEST_F(DeviceTest, ComputeExcludesBinAndRender) {
  JobResult inner;
  g_work = [&](const JobContext&) {
    g_work = [](const JobContext&) { ADD_FAILURE() << "ran although it must not"; };
    inner = device_.run_render(*context_, {}, control_, nullptr);
    g_work = [](const JobContext&) {};
  };
  EXPECT_EQ(device_.run_csd(*context_, {}, control_).end, End::kDone);
  EXPECT_EQ(inner.end, End::kError);
  EXPECT_THAT(inner.message, HasSubstr("compute"));
  EXPECT_EQ(device_.run_render(*context_, {}, control_, nullptr).end, End::kDone);
}

TEST_F(DeviceTest, BinRunsBesideRenderAndOtherContexts) {
  absl::StatusOr<std::unique_ptr<Context>> other = Context::create(profile_, qpu::compiler_of_tests());
  ASSERT_TRUE(other.ok());
  g_work = [&](const JobContext&) {
    g_work = [](const JobContext&) {};
    EXPECT_EQ(device_.run_bin(*context_, {}, control_, &bin_).end, End::kDone);
    EXPECT_EQ(device_.run_csd(**other, {}, control_).end, End::kDone);
    EXPECT_EQ(device_.run_tfu(*context_, {}, control_).end, End::kDone);
  };
  EXPECT_EQ(device_.run_render(*context_, {}, control_, nullptr).end, End::kDone);
}

}  // namespace
}  // namespace device
}  // namespace v3d
