// SUBMIT_CPU and what its jobs do: drm-abi.md 2.10, 5.
#include <cerrno>

#include "tests/ioctl/cpu_job_fixture.h"

namespace v3d::ioctl::test {
namespace {

TEST_F(CpuJobTest, Errors) {
  const uint32_t sync = create_syncobj();
  EXPECT_EQ(submit(0, {}), EINVAL);  // no extension
  EXPECT_EQ(submit(timestamp({0}, {sync}), {pool_}, 0), EINVAL);
  EXPECT_EQ(submit(timestamp({0}, {sync}), {pool_}, 1), EINVAL);
  EXPECT_EQ(submit(timestamp({0}, {sync}), {pool_}, 3), 0);
  EXPECT_EQ(submit(timestamp({0}, {sync}), {}), EINVAL);
  EXPECT_EQ(submit(timestamp({0}, {sync}), {pool_, bo_}), EINVAL);
  EXPECT_EQ(submit(timestamp({0}, {sync}), {99}), ENOENT);
  EXPECT_EQ(submit(timestamp({0}, {99}), {pool_}), ENOENT);
  EXPECT_EQ(submit(timestamp({0}, {sync}, timestamp({0}, {sync})), {pool_}), EINVAL);
  drm::TimestampQuery bad = {{0, drm::kExtCpuTimestampQuery, 0}, 16, memory_.place(sync), 1, 0};
  EXPECT_EQ(submit(memory_.place(bad), {pool_}), EFAULT);
  bad = {{0, drm::kExtCpuTimestampQuery, 0}, memory_.place(sync), 16, 1, 0};
  EXPECT_EQ(submit(memory_.place(bad), {pool_}), EFAULT);
  bad.count = 0;
  bad.pad = 1;
  EXPECT_EQ(submit(memory_.place(bad), {pool_}), EINVAL);
  bad.count = 2;
  bad.pad = 0;
  bad.syncs = memory_.place(sync);
  EXPECT_EQ(submit(memory_.place(bad), {pool_}), EFAULT);
  bad.count = ~0u;
  EXPECT_EQ(submit(memory_.place(bad), {pool_}), ENOMEM);
}

TEST_F(CpuJobTest, NumberOfBosPerType) {
  const uint32_t sync = create_syncobj();
  drm::CopyTimestampQuery copy = copy_timestamp({0}, {sync});
  EXPECT_EQ(submit(memory_.place(copy), {bo_}), EINVAL);
  EXPECT_EQ(submit(memory_.place(copy), {bo_, pool_}), 0);
  copy.pad = 1;
  EXPECT_EQ(submit(memory_.place(copy), {bo_, pool_}), EINVAL);
  EXPECT_EQ(submit(reset_timestamp(0, {sync}), {}), EINVAL);
  EXPECT_EQ(submit(reset_timestamp(0, {sync}), {pool_}), 0);
  EXPECT_EQ(submit(reset_timestamp(0, {99}), {pool_}), ENOENT);

  drm::ResetPerformanceQuery reset = {};
  reset.base.id = drm::kExtCpuResetPerformanceQuery;
  EXPECT_EQ(submit(memory_.place(reset), {}), 0);
  EXPECT_EQ(submit(memory_.place(reset), {bo_}), EINVAL);
  drm::CopyPerformanceQuery copy_perf = {};
  copy_perf.base.id = drm::kExtCpuCopyPerformanceQuery;
  EXPECT_EQ(submit(memory_.place(copy_perf), {bo_}), 0);
  EXPECT_EQ(submit(memory_.place(copy_perf), {}), EINVAL);
  copy_perf.pad = 1;
  EXPECT_EQ(submit(memory_.place(copy_perf), {bo_}), EINVAL);

  drm::IndirectCsd indirect = indirect_csd();
  EXPECT_EQ(submit(memory_.place(indirect), {}), EINVAL);
  EXPECT_EQ(submit(memory_.place(indirect), {pool_}), 0);
  EXPECT_EQ(submit(memory_.place(indirect), {bo_}), 0);  // in both BO lists
  indirect.indirect = 99;
  EXPECT_EQ(submit(memory_.place(indirect), {pool_}), ENOENT);
  indirect = indirect_csd();
  indirect.submit.bo_handle_count = 0;
  EXPECT_EQ(submit(memory_.place(indirect), {pool_}), EINVAL);
  indirect = indirect_csd();
  indirect.submit.in_sync = create_syncobj();
  EXPECT_EQ(submit(memory_.place(indirect), {pool_}), EINVAL);
}

TEST_F(CpuJobTest, Timestamps) {
  const uint32_t first = create_syncobj(), second = create_syncobj();
  write<uint64_t>(pool_, 40, ~uint64_t{0});
  ASSERT_EQ(submit(timestamp({32, 40}, {first, second}), {pool_}), 0);
  EXPECT_EQ(fence_of(first), nullptr);  // at run time
  const FencePtr done = host_.jobs[0]->done;
  const int64_t before = monotonic_ns();
  host_.run_all();
  EXPECT_GE(read<int64_t>(pool_, 32), before);
  EXPECT_LE(read<int64_t>(pool_, 32), monotonic_ns());
  EXPECT_EQ(read<uint64_t>(pool_, 40), 0u);
  EXPECT_EQ(fence_of(first), done);
  EXPECT_EQ(fence_of(second), done);

  write<uint64_t>(pool_, 48, ~uint64_t{0});
  ASSERT_EQ(submit(reset_timestamp(40, {first, second}), {pool_}), 0);
  write<uint64_t>(pool_, 40, 5);
  host_.run_all();
  EXPECT_EQ(read<uint64_t>(pool_, 40), 0u);
  EXPECT_EQ(read<uint64_t>(pool_, 48), 0u);
  EXPECT_NE(read<uint64_t>(pool_, 32), 0u);
  EXPECT_EQ(fence_of(first), nullptr);
}

TEST_F(CpuJobTest, CopyTimestamps) {
  const uint32_t signalled = create_syncobj(true), pending = create_syncobj(), empty = create_syncobj();
  make_pending(pending);
  write<uint64_t>(pool_, 0, 0x1111111122222222);
  write<uint64_t>(pool_, 8, 0x3333333344444444);
  std::memset(bo_memory(bo_), 0xee, 256);
  drm::CopyTimestampQuery copy = copy_timestamp({8, 0, 0}, {signalled, pending, empty});
  ASSERT_EQ(submit(memory_.place(copy), {bo_, pool_}), 0);
  host_.run_all();
  EXPECT_EQ(read<uint64_t>(bo_, 16), 0x3333333344444444u);
  EXPECT_EQ(read<uint64_t>(bo_, 24), 1u);
  EXPECT_EQ(read<uint64_t>(bo_, 16 + 24), 0xeeeeeeeeeeeeeeeeu);  // not available, not partial
  EXPECT_EQ(read<uint64_t>(bo_, 24 + 24), 0u);
  EXPECT_EQ(read<uint64_t>(bo_, 24 + 48), 0u);

  copy.do_64bit = 0;
  copy.do_partial = 1;
  copy.availability_bit = 0;
  std::memset(bo_memory(bo_), 0xee, 256);
  ASSERT_EQ(submit(memory_.place(copy), {bo_, pool_}), 0);
  host_.run_all();
  EXPECT_EQ(read<uint32_t>(bo_, 16), 0x44444444u);
  EXPECT_EQ(read<uint32_t>(bo_, 20), 0xeeeeeeeeu);
  EXPECT_EQ(read<uint32_t>(bo_, 16 + 24), 0x22222222u);
}

TEST_F(CpuJobTest, CpuJobsWaitForTheirBosAndFenceThem) {
  const uint32_t sync = create_syncobj(), in = create_syncobj(), out = create_syncobj();
  const FencePtr before = make_pending(in);
  drm::SubmitTfu tfu = {};
  tfu.bo_handles[0] = pool_;
  ASSERT_EQ(ioctl(kSubmitTfu, tfu), 0);
  ASSERT_EQ(submit(timestamp({0}, {sync}, multi_sync(Queue::kCpu, {in}, {out})), {pool_}), 0);
  const Job& job = *host_.jobs[1];
  EXPECT_EQ(job.queue, Queue::kCpu);
  EXPECT_EQ(job.dependencies, (std::vector{before, host_.jobs[0]->done}));
  EXPECT_EQ(fence_of(out), job.done);
  EXPECT_EQ(file_->find_bo(pool_)->reservation().fences(false), (std::vector{host_.jobs[0]->done, job.done}));
}

TEST_F(CpuJobTest, IndirectDispatch) {
  const uint32_t in = create_syncobj(), out = create_syncobj(), nested = create_syncobj();
  const FencePtr before = make_pending(in), nested_before = make_pending(nested);
  drm::IndirectCsd args = indirect_csd();
  args.base.next = multi_sync(Queue::kCpu, {in}, {out});
  args.submit.in_sync = nested;
  args.submit.out_sync = in;    // ignored
  args.submit.perfmon_id = 77;  // ignored
  ASSERT_EQ(submit(memory_.place(args), {pool_}), 0);
  ASSERT_EQ(host_.jobs.size(), 3u);
  const JobPtr cpu = host_.jobs[0], csd = host_.jobs[1], clean = host_.jobs[2];
  EXPECT_EQ(cpu->queue, Queue::kCpu);
  EXPECT_EQ(cpu->dependencies, std::vector{before});
  EXPECT_EQ(csd->dependencies, (std::vector{nested_before, cpu->done}));
  EXPECT_EQ(clean->dependencies, std::vector{csd->done});
  EXPECT_EQ(fence_of(out), clean->done);
  EXPECT_EQ(fence_of(in), before);
  EXPECT_EQ(file_->find_bo(pool_)->reservation().fences(false), std::vector{clean->done});
  EXPECT_EQ(file_->find_bo(bo_)->reservation().fences(false), std::vector{clean->done});

  // The counts are read when the job runs.
  write<uint32_t>(pool_, 8, 3);
  write<uint32_t>(pool_, 12, 4);
  write<uint32_t>(pool_, 16, 5);
  host_.run_all();
  EXPECT_TRUE(gpu_.csd.indirect);
  EXPECT_EQ(gpu_.csd.cfg,
            (std::array<uint32_t, 7>{3 << 16, 4 << 16, 5 << 16, 1 << 16, 3 * 60, 1 << 16, 1 << 16}));
  EXPECT_EQ(read<uint32_t>(uniforms_, 2 * 4), 3u);
  EXPECT_EQ(read<uint32_t>(uniforms_, 5 * 4), 5u);
  EXPECT_EQ(read<uint32_t>(uniforms_, 3 * 4), 0u);
}

TEST_F(CpuJobTest, IndirectDispatchOfNothingRunsNothing) {
  write<uint32_t>(pool_, 8, 3);
  write<uint32_t>(pool_, 12, 0);
  write<uint32_t>(pool_, 16, 5);
  ASSERT_EQ(submit(memory_.place(indirect_csd()), {pool_}), 0);
  host_.run_all();
  EXPECT_EQ(gpu_.csds, 0);
  EXPECT_EQ(read<uint32_t>(uniforms_, 2 * 4), 0u);
}

TEST_F(CpuJobTest, PerformanceQueries) {
  drm::PerfmonCreate create = {.id = 0, .ncounters = 2, .counters = {16, 83}};
  ASSERT_EQ(ioctl(kPerfmonCreate, create), 0);
  const uint32_t perfmon = create.id;
  gpu_.counts[perf::kPtbPrimitivesBinned] = 7;
  gpu_.counts[perf::kQpuActive] = uint64_t{1} << 33;
  drm::SubmitCsd csd = {};
  csd.cfg[0] = csd.cfg[1] = csd.cfg[2] = 1 << 16;
  csd.bo_handles = memory_.place(bo_);
  csd.bo_handle_count = 1;
  csd.perfmon_id = perfmon;
  ASSERT_EQ(ioctl(kSubmitCsd, csd), 0);
  host_.run_all();

  const uint32_t available = create_syncobj(true), missing = create_syncobj();
  const uint64_t ids = memory_.place(std::vector<uint32_t>{perfmon, 99});
  drm::CopyPerformanceQuery copy = {};
  copy.base.id = drm::kExtCpuCopyPerformanceQuery;
  copy.do_64bit = copy.availability_bit = 1;
  copy.offset = 8;
  copy.stride = 1024;
  copy.nperfmons = 2;
  copy.ncounters = 3;
  copy.count = 2;
  copy.syncs = memory_.place(std::vector<uint32_t>{available, missing});
  copy.kperfmon_ids = memory_.place(std::vector<uint64_t>{ids, ids});
  std::memset(bo_memory(bo_), 0xee, 4096);
  ASSERT_EQ(submit(memory_.place(copy), {bo_}), 0);
  host_.run_all();
  EXPECT_EQ(read<uint64_t>(bo_, 8), 7u);
  EXPECT_EQ(read<uint64_t>(bo_, 16), uint64_t{1} << 33);
  EXPECT_EQ(read<uint64_t>(bo_, 24), 0xeeeeeeeeeeeeeeeeu);
  EXPECT_EQ(read<uint64_t>(bo_, 8 + 3 * 8), 1u);                    // availability after ncounters
  EXPECT_EQ(read<uint64_t>(bo_, 8 + 32 * 8), 0xeeeeeeeeeeeeeeeeu);  // the unknown perfmon's slots
  EXPECT_EQ(read<uint64_t>(bo_, 8 + 1024), 0xeeeeeeeeeeeeeeeeu);
  EXPECT_EQ(read<uint64_t>(bo_, 8 + 1024 + 3 * 8), 0u);

  drm::ResetPerformanceQuery reset = {};
  reset.base.id = drm::kExtCpuResetPerformanceQuery;
  reset.count = 1;
  reset.nperfmons = 2;
  reset.syncs = copy.syncs;
  reset.kperfmon_ids = copy.kperfmon_ids;
  ASSERT_EQ(submit(memory_.place(reset), {}), 0);
  host_.run_all();
  EXPECT_EQ(fence_of(available), nullptr);
  EXPECT_EQ(file_->find_perfmon(perfmon)->values(), (std::vector<uint64_t>{0, 0}));

  copy.count = ~0u;
  EXPECT_EQ(submit(memory_.place(copy), {bo_}), ENOMEM);  // more ids than anybody has
  copy.count = 1;
  copy.kperfmon_ids = memory_.place(uint64_t{16});
  EXPECT_EQ(submit(memory_.place(copy), {bo_}), EFAULT);
}

}  // namespace
}  // namespace v3d::ioctl::test
