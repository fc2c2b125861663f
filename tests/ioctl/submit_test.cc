// SUBMIT_CL, SUBMIT_TFU, SUBMIT_CSD and the extension chain: drm-abi.md 2.6, 2.7, 2.9.
#include <cerrno>
#include <chrono>
#include <future>
#include <memory>
#include <vector>

#include "tests/ioctl/submit_fixture.h"

namespace v3d::ioctl::test {
namespace {

TEST_F(SubmitTest, ClErrors) {
  const uint32_t empty = create_syncobj();
  const uint32_t missing[] = {bo_, 99};
  const std::vector<Spoilt<drm::SubmitCl>> kCases = {
      {"pad", [](drm::SubmitCl& a) { a.pad = 1; }, EINVAL},
      {"flags", [](drm::SubmitCl& a) { a.flags = 4; }, EINVAL},
      {"flags with extension", [](drm::SubmitCl& a) { a.flags = 6; }, EINVAL},
      {"no BOs", [](drm::SubmitCl& a) { a.bo_handle_count = 0; }, EINVAL},
      {"BO array", [](drm::SubmitCl& a) { a.bo_handles = 16; }, EFAULT},
      {"BO array too short", [](drm::SubmitCl& a) { a.bo_handle_count = 2; }, EFAULT},
      {"BO array of absurd length", [](drm::SubmitCl& a) { a.bo_handle_count = ~0u; }, ENOMEM},
      {"perfmon", [](drm::SubmitCl& a) { a.perfmon_id = 1; }, ENOENT},
      {"chain", [](drm::SubmitCl& a) { a.flags = 2, a.extensions = 16; }, EFAULT},
      // The pad comes before all, BOs before the perfmon.
      {"order 1", [](drm::SubmitCl& a) { a.pad = 1, a.bo_handles = 16; }, EINVAL},
      {"order 2", [](drm::SubmitCl& a) { a.perfmon_id = 1, a.bo_handles = 16; }, EFAULT},
  };
  refuses(kSubmitCl, cl(), kCases);
  drm::SubmitCl args = cl();
  args.bo_handles = memory_.place(missing);
  args.bo_handle_count = 2;
  EXPECT_EQ(ioctl(kSubmitCl, args), ENOENT);
  // A syncobj without a fence; the bin job's only counts when there is a bin job.
  args = cl();
  args.in_sync_rcl = empty;
  EXPECT_EQ(ioctl(kSubmitCl, args), EINVAL);
  args = cl();
  args.in_sync_bcl = empty;
  EXPECT_EQ(ioctl(kSubmitCl, args), EINVAL);
  EXPECT_TRUE(host_.jobs.empty());
  args.bcl_end = args.bcl_start;
  EXPECT_EQ(ioctl(kSubmitCl, args), 0);
}

TEST_F(SubmitTest, FailureTouchesNoSyncobj) {
  const uint32_t out = create_syncobj();
  drm::SubmitCl args = cl();
  args.out_sync = out;
  args.perfmon_id = 5;
  EXPECT_EQ(ioctl(kSubmitCl, args), ENOENT);
  EXPECT_EQ(fence_of(out), nullptr);
  EXPECT_TRUE(file_->find_bo(bo_)->reservation().fences(true).empty());
}

TEST_F(SubmitTest, ClJobsAndTheirOrder) {
  drm::SubmitCl args = cl();
  ASSERT_EQ(ioctl(kSubmitCl, args), 0);
  EXPECT_EQ(queues(), (Queues{Queue::kBin, Queue::kRender}));
  EXPECT_TRUE(depends(host_.jobs[1], host_.jobs[0]->done));
  host_.run_all();

  args.flags = drm::kSubmitFlushCache;
  ASSERT_EQ(ioctl(kSubmitCl, args), 0);
  EXPECT_EQ(queues(), (Queues{Queue::kBin, Queue::kRender, Queue::kCacheClean}));
  EXPECT_TRUE(depends(host_.jobs[2], host_.jobs[1]->done));
  EXPECT_FALSE(host_.jobs[2]->run);
  host_.run_all();

  args = cl();
  args.bcl_end = args.bcl_start;
  args.rcl_end = args.rcl_start;
  ASSERT_EQ(ioctl(kSubmitCl, args), 0);
  EXPECT_EQ(queues(), (Queues{Queue::kRender}));
}

TEST_F(SubmitTest, ClRegistersReachTheGpu) {
  drm::SubmitCl args = cl();
  args.qma = 0x30000;
  args.qms = 0x40000;
  args.qts = 0x50000;
  ASSERT_EQ(ioctl(kSubmitCl, args), 0);
  host_.run_all();
  EXPECT_EQ(gpu_.bins, 1);
  EXPECT_EQ(gpu_.bin.bcl_start, 0x1000u);
  EXPECT_EQ(gpu_.bin.bcl_end, 0x1100u);
  EXPECT_EQ(gpu_.bin.qma, 0x30000u);
  EXPECT_EQ(gpu_.bin.qms, 0x40000u);
  EXPECT_EQ(gpu_.bin.qts, 0x50000u);
  EXPECT_EQ(gpu_.render.rcl_start, 0x2000u);
  EXPECT_EQ(gpu_.render.rcl_end, 0x2100u);
  EXPECT_TRUE(gpu_.render_had_bin_result);
  args.bcl_end = args.bcl_start;
  ASSERT_EQ(ioctl(kSubmitCl, args), 0);
  host_.run_all();
  EXPECT_FALSE(gpu_.render_had_bin_result);  // results belong to the submission
}

TEST_F(SubmitTest, LastFenceGoesToBosAndOutSync) {
  const uint32_t out = create_syncobj();
  drm::SubmitCl args = cl();
  args.flags = drm::kSubmitFlushCache;
  args.out_sync = out;
  ASSERT_EQ(ioctl(kSubmitCl, args), 0);
  EXPECT_EQ(fence_of(out), host_.jobs[2]->done);
  EXPECT_EQ(file_->find_bo(bo_)->reservation().fences(false), std::vector{host_.jobs[2]->done});
  // Later fences of the queue replace earlier ones, other queues' stay.
  ASSERT_EQ(ioctl(kSubmitCl, args), 0);
  drm::SubmitTfu convert = tfu();
  ASSERT_EQ(ioctl(kSubmitTfu, convert), 0);
  EXPECT_EQ(file_->find_bo(bo_)->reservation().fences(false),
            (std::vector{host_.jobs[5]->done, host_.jobs[6]->done}));
  host_.run_all();
  EXPECT_TRUE(file_->find_bo(bo_)->reservation().fences(false).empty());
}

// However many a file names, and whether others know them: a submission concerns those alone who name one of
// its BOs.
TEST_F(SubmitTest, NobodyWaitsForASubmissionOfOtherBos) {
  const auto submit = [this] {
    drm::SubmitCl args = cl();
    return ioctl(kSubmitCl, args);
  };
  const auto other_file = open(kMinorV3dRender);
  const auto share = [&](uint32_t bo) {
    const UniqueFd exported = export_bo(*file_, bo);
    uint32_t handle = 0;
    EXPECT_EQ(import_bo(*other_file, exported.get(), &handle), 0);
    return handle;
  };
  const uint32_t elsewhere = create_bo(), handle = share(bo_);
  share(elsewhere);
  const auto hold = [&](uint32_t bo) {
    Reservation* const reservation = &file_->find_bo(bo)->reservation();
    return std::make_unique<HeldReservations>(std::vector<Reservation*>{reservation, reservation});
  };
  auto others = hold(elsewhere);  // another file's submission is at it
  auto goes_on = std::async(std::launch::async, submit);
  EXPECT_EQ(goes_on.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  others.reset();
  EXPECT_EQ(goes_on.get(), 0);
  others = hold(bo_);
  auto waits = std::async(std::launch::async, submit);
  EXPECT_EQ(waits.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  others.reset();
  EXPECT_EQ(waits.get(), 0);
  // The other file's job waits for the first one's.
  drm::SubmitTfu convert = {};
  convert.bo_handles[0] = handle;
  const FencePtr last = host_.jobs.back()->done;
  ASSERT_EQ(ioctl(*other_file, kSubmitTfu, convert), 0);
  EXPECT_TRUE(depends(host_.jobs.back(), last));
}

TEST_F(SubmitTest, WaitsAreTakenBeforeTheOutSyncIsReplaced) {
  const uint32_t syncobj = create_syncobj();
  const FencePtr before = make_pending(syncobj);
  drm::SubmitCl args = cl();
  args.in_sync_rcl = args.out_sync = syncobj;
  ASSERT_EQ(ioctl(kSubmitCl, args), 0);
  EXPECT_FALSE(depends(host_.jobs[0], before));
  EXPECT_TRUE(depends(host_.jobs[1], before));
  EXPECT_EQ(fence_of(syncobj), host_.jobs[1]->done);
}

TEST_F(SubmitTest, MultiSyncGatesOneStage) {
  const uint32_t in = create_syncobj(), out1 = create_syncobj(), out2 = create_syncobj(),
                 unused = create_syncobj();
  const FencePtr before = make_pending(in);
  for (const Queue stage : {Queue::kBin, Queue::kRender, Queue::kCacheClean, Queue::kCpu}) {
    drm::SubmitCl args = cl();
    args.flags = drm::kSubmitFlushCache | drm::kSubmitExtension;
    // The main struct's syncobjs do not count: `unused` has no fence.
    args.in_sync_bcl = args.in_sync_rcl = args.out_sync = unused;
    args.extensions = multi_sync(stage, {in, 0}, {out1, out2});
    ASSERT_EQ(ioctl(kSubmitCl, args), 0);
    ASSERT_EQ(host_.jobs.size(), 3u);
    EXPECT_EQ(depends(host_.jobs[0], before), stage == Queue::kBin);
    EXPECT_EQ(depends(host_.jobs[1], before), stage == Queue::kRender);
    EXPECT_FALSE(depends(host_.jobs[2], before));  // extensions do not reach the clean job
    EXPECT_EQ(fence_of(out1), host_.jobs[2]->done);
    EXPECT_EQ(fence_of(out2), host_.jobs[2]->done);
    EXPECT_EQ(fence_of(unused), nullptr);
    host_.jobs.clear();
  }
  drm::SubmitCl args = cl();
  args.bcl_end = args.bcl_start;
  args.flags = drm::kSubmitExtension;
  args.extensions = multi_sync(Queue::kBin, {in}, {out1});
  ASSERT_EQ(ioctl(kSubmitCl, args), 0);
  EXPECT_FALSE(depends(host_.jobs[0], before));  // no bin job: the waits are lost
}

TEST_F(SubmitTest, InAndOutOfOneMultiSyncMayBeTheSame) {
  const uint32_t syncobj = create_syncobj();
  const FencePtr before = make_pending(syncobj);
  drm::SubmitTfu args = tfu();
  args.flags = drm::kSubmitExtension;
  args.extensions = multi_sync(Queue::kTfu, {syncobj}, {syncobj});
  ASSERT_EQ(ioctl(kSubmitTfu, args), 0);
  EXPECT_TRUE(depends(host_.jobs[0], before));
  EXPECT_EQ(fence_of(syncobj), host_.jobs[0]->done);
}

TEST_F(SubmitTest, ExtensionErrors) {
  const uint32_t full = create_syncobj(true), empty = create_syncobj();
  const auto chain_of = [&](uint64_t address) {
    drm::SubmitCl args = cl();
    args.flags = drm::kSubmitExtension;
    args.extensions = address;
    return ioctl(kSubmitCl, args);
  };
  EXPECT_EQ(chain_of(multi_sync(Queue::kBin, {full}, {full})), 0);
  EXPECT_EQ(chain_of(multi_sync(Queue::kBin, {empty}, {full})), EINVAL);  // no fence
  EXPECT_EQ(chain_of(multi_sync(Queue::kTfu, {empty}, {full})), 0);       // never looked at
  EXPECT_EQ(chain_of(multi_sync(Queue::kBin, {}, {full, 99})), EINVAL);   // out syncs are not optional
  EXPECT_EQ(chain_of(multi_sync(Queue::kBin, {}, {})), EINVAL);
  EXPECT_EQ(chain_of(multi_sync(Queue::kBin, {}, {full}, multi_sync(Queue::kBin, {}, {full}))), EINVAL);
  EXPECT_EQ(chain_of(multi_sync(Queue::kBin, {}, {full}, 24)), EFAULT);
  drm::MultiSync bad = {};
  bad.base.id = drm::kExtMultiSync;
  bad.in_sync_count = 1;
  bad.in_syncs = 16;
  EXPECT_EQ(chain_of(memory_.place(bad)), EFAULT);
  bad.pad = 1;
  EXPECT_EQ(chain_of(memory_.place(bad)), EINVAL);
  bad = {};
  bad.base.id = drm::kExtMultiSync;
  bad.out_sync_count = 2;
  bad.out_syncs = memory_.place(sems({full}));
  EXPECT_EQ(chain_of(memory_.place(bad)), EFAULT);
  for (const uint32_t id : {0u, 8u, ~0u})
    EXPECT_EQ(chain_of(memory_.place(drm::Extension{0, id, 0})), EINVAL);
  // CPU extensions do not belong to GPU submits, whatever follows their header.
  for (uint32_t id = drm::kExtCpuIndirectCsd; id <= drm::kExtCpuCopyPerformanceQuery; ++id)
    EXPECT_EQ(chain_of(memory_.place(drm::Extension{0, id, 0})), EINVAL);
  // A struct that ends too early, and a chain that bites its tail.
  EXPECT_EQ(chain_of(memory_.place(drm::Extension{0, drm::kExtMultiSync, 0})), EFAULT);
}

TEST_F(SubmitTest, EndlessChainEnds) {
  // Room for a loop: 65 MULTI_SYNCs in a row would do, but a second one is refused. So the walk ends at once.
  drm::MultiSync loop = {};
  loop.base.id = drm::kExtMultiSync;
  loop.out_sync_count = 1;
  loop.out_syncs = memory_.place(sems({create_syncobj()}));
  const uint64_t address = memory_.place(loop);
  loop.base.next = address;
  ASSERT_TRUE(memory_.write(address, &loop, sizeof loop));
  drm::SubmitCl args = cl();
  args.flags = drm::kSubmitExtension;
  args.extensions = address;
  EXPECT_EQ(ioctl(kSubmitCl, args), EINVAL);
}

TEST_F(SubmitTest, TfuErrorsAndRegisters) {
  drm::SubmitTfu args = tfu();
  args.flags = 1;
  EXPECT_EQ(ioctl(kSubmitTfu, args), EINVAL);
  args = tfu();
  args.flags = 3;  // other bits beside the extension bit pass
  EXPECT_EQ(ioctl(kSubmitTfu, args), 0);
  args = tfu();
  args.bo_handles[1] = 99;
  EXPECT_EQ(ioctl(kSubmitTfu, args), ENOENT);
  args.bo_handles[1] = 0;
  args.bo_handles[2] = 99;  // beyond the end of the list
  EXPECT_EQ(ioctl(kSubmitTfu, args), 0);
  args = tfu();
  args.in_sync = create_syncobj();
  EXPECT_EQ(ioctl(kSubmitTfu, args), EINVAL);
  host_.jobs.clear();

  const uint32_t out = create_syncobj();
  args = {.icfg = 1,
          .iia = 2,
          .iis = 3,
          .ica = 4,
          .iua = 5,
          .ioa = 6,
          .ios = 7,
          .coef = {8, 9, 10, 11},
          .bo_handles = {},
          .in_sync = 0,
          .out_sync = out,
          .flags = 0,
          .extensions = 0,
          .ioc = 12,
          .pad = 0};
  EXPECT_EQ(ioctl(kSubmitTfu, args), 0);  // no BOs: no implicit sync
  EXPECT_EQ(fence_of(out), host_.jobs[0]->done);
  host_.run_all();
  EXPECT_EQ(gpu_.tfu.icfg, 1u);
  EXPECT_EQ(gpu_.tfu.iia, 2u);
  EXPECT_EQ(gpu_.tfu.iis, 3u);
  EXPECT_EQ(gpu_.tfu.ica, 4u);
  EXPECT_EQ(gpu_.tfu.iua, 5u);
  EXPECT_EQ(gpu_.tfu.ioa, 6u);
  EXPECT_EQ(gpu_.tfu.ios, 7u);
  EXPECT_EQ(gpu_.tfu.coef, (std::array<uint32_t, 4>{8, 9, 10, 11}));
  EXPECT_EQ(gpu_.tfu.ioc, 12u);
}

TEST_F(SubmitTest, TfuOfAnOldProgramHasNoIoc) {
  drm::SubmitTfu args = tfu();
  args.ioc = 12;
  std::vector<uint8_t> bytes(80);
  std::memcpy(bytes.data(), &args, bytes.size());
  EXPECT_EQ(raw_ioctl(*file_, 0x40506446, &bytes), 0);
  host_.run_all();
  EXPECT_EQ(gpu_.tfu.ioc, 0u);
}

TEST_F(SubmitTest, CsdErrors) {
  const uint32_t empty = create_syncobj();
  const std::vector<Spoilt<drm::SubmitCsd>> kCases = {
      {"pad", [](drm::SubmitCsd& a) { a.pad = 1; }, EINVAL},
      {"flags", [](drm::SubmitCsd& a) { a.flags = 1; }, EINVAL},
      {"no BOs", [](drm::SubmitCsd& a) { a.bo_handle_count = 0; }, EINVAL},
      {"BO array", [](drm::SubmitCsd& a) { a.bo_handles = 16; }, EFAULT},
      {"perfmon", [](drm::SubmitCsd& a) { a.perfmon_id = 3; }, ENOENT},
      {"chain", [](drm::SubmitCsd& a) { a.flags = 2, a.extensions = 16; }, EFAULT},
  };
  refuses(kSubmitCsd, csd(), kCases);
  drm::SubmitCsd args = csd();
  args.in_sync = empty;
  EXPECT_EQ(ioctl(kSubmitCsd, args), EINVAL);
  args = csd();
  args.bo_handles = memory_.place(std::vector<uint32_t>{99});
  EXPECT_EQ(ioctl(kSubmitCsd, args), ENOENT);
  EXPECT_TRUE(host_.jobs.empty());
}

TEST_F(SubmitTest, CsdJobs) {
  const uint32_t in = create_syncobj(), out = create_syncobj();
  const FencePtr before = make_pending(in);
  drm::SubmitCsd args = csd();
  for (uint32_t i = 0; i < 7; ++i) args.cfg[i] = (i + 1) << 16;
  args.in_sync = in;
  args.out_sync = out;
  ASSERT_EQ(ioctl(kSubmitCsd, args), 0);
  EXPECT_EQ(queues(), (Queues{Queue::kCsd, Queue::kCacheClean}));
  EXPECT_TRUE(depends(host_.jobs[0], before));
  EXPECT_FALSE(depends(host_.jobs[1], before));
  EXPECT_EQ(fence_of(out), host_.jobs[1]->done);
  host_.run_all();
  EXPECT_EQ(gpu_.csd.cfg,
            (std::array<uint32_t, 7>{1 << 16, 2 << 16, 3 << 16, 4 << 16, 5 << 16, 6 << 16, 7 << 16}));
  EXPECT_FALSE(gpu_.csd.indirect);
}

TEST_F(SubmitTest, DispatchWithZeroWorkgroupsIsSkipped) {
  for (int i = 0; i < 3; ++i) {
    drm::SubmitCsd args = csd();
    args.cfg[i] = 0xffff;
    ASSERT_EQ(ioctl(kSubmitCsd, args), 0);
  }
  host_.run_all();
  EXPECT_EQ(gpu_.csds, 0);
}

TEST_F(SubmitTest, DependenciesOfOneContextKeepTheLater) {
  Job job(Queue::kRender);
  const auto fence = [](uint64_t context, uint64_t seqno) {
    return std::make_shared<Fence>("test", "test", context, seqno);
  };
  const FencePtr a1 = fence(1000, 1), a2 = fence(1000, 2), b = fence(1001, 1);
  for (const FencePtr& f : {a2, b, a1}) job.add_dependency(f);
  EXPECT_EQ(job.dependencies, (std::vector{a2, b}));
}

// A few dependencies cost no more than their job. Of many each is charged until the job is gone.
TEST_F(SubmitTest, ManyDependenciesAreCharged) {
  ResourceLimits limits;
  limits[Resource::kJobBytes] = {.per_client = 20'000, .guaranteed = 0, .in_all = 10 << 20};
  const Limited few(*this, limits);
  const auto waits_for = [](size_t count) {
    auto job = std::make_shared<Job>(Queue::kCsd);
    for (size_t i = 0; i < count; ++i)
      job->add_dependency(std::make_shared<Fence>("test", "test", new_fence_context(), 1));
    return job;
  };
  auto job = waits_for(16);
  EXPECT_EQ(job->charge_dependencies(*few.account), 0);
  EXPECT_EQ(few.account->used(Resource::kJobBytes), 0u);
  job = waits_for(100);
  EXPECT_EQ(job->charge_dependencies(*few.account), 0);
  EXPECT_GE(few.account->used(Resource::kJobBytes), 100u * 64);
  EXPECT_EQ(waits_for(300)->charge_dependencies(*few.account), ENOMEM);
  job.reset();
  EXPECT_EQ(few.account->used(Resource::kJobBytes), 0u);
}

TEST_F(SubmitTest, ASubmitWithMoreDependenciesThanThereIsRoomForDoesNothing) {
  std::vector<drm::Sem> in;
  for (int i = 0; i < 400; ++i) {
    in.push_back({.handle = create_syncobj(), .flags = 0, .point = 0, .mbz = {}});
    file_->find_syncobj(in.back().handle)
        ->replace(std::make_shared<Fence>("test", "test", new_fence_context(), 1));
  }
  const uint32_t out = create_syncobj();
  const auto submit = [&](uint32_t count) {
    drm::MultiSync sync = {};
    sync.base.id = drm::kExtMultiSync;
    sync.in_syncs = memory_.place(in);
    sync.in_sync_count = count;
    sync.out_syncs = memory_.place(std::vector<drm::Sem>{{out, 0, 0, {}}});
    sync.out_sync_count = 1;
    sync.wait_stage = static_cast<uint32_t>(Queue::kRender);
    drm::SubmitCl args = cl();
    args.flags = drm::kSubmitExtension;
    args.extensions = memory_.place(sync);
    return ioctl(kSubmitCl, args);
  };
  // Other jobs have nearly all that there is.
  Charge others;
  const uint64_t all = kernel_.budget().limit(Resource::kJobBytes).per_client;
  ASSERT_EQ(account_->charge(Resource::kJobBytes, all - 30'000, &others), 0);
  EXPECT_EQ(submit(400), ENOMEM);
  EXPECT_TRUE(host_.jobs.empty());
  EXPECT_EQ(file_->find_syncobj(out)->fence(), nullptr);
  EXPECT_TRUE(file_->find_bo(bo_)->reservation().fences(true).empty());
  EXPECT_EQ(account_->used(Resource::kJobBytes), others.amount());
  EXPECT_EQ(account_->used(Resource::kJobs), 0u);
  EXPECT_EQ(submit(100), 0);
  EXPECT_EQ(host_.jobs.size(), 2u);
}

// The same where the fences stand in the BOs that the submit names.
TEST_F(SubmitTest, FencesOfBosAreChargedAsDependencies) {
  std::vector<FencePtr> fences;
  for (int i = 0; i < 400; ++i)
    fences.push_back(std::make_shared<Fence>("test", "test", new_fence_context(), 1));
  file_->find_bo(bo_)->reservation().add_all(fences, true, nullptr);
  drm::SubmitCl args = cl();
  Charge others;
  const uint64_t all = kernel_.budget().limit(Resource::kJobBytes).per_client;
  ASSERT_EQ(account_->charge(Resource::kJobBytes, all - 30'000, &others), 0);
  EXPECT_EQ(ioctl(kSubmitCl, args), ENOMEM);
  EXPECT_TRUE(host_.jobs.empty());
  EXPECT_EQ(file_->find_bo(bo_)->reservation().fences(true), fences);
  others.release();
  EXPECT_EQ(ioctl(kSubmitCl, args), 0);
  EXPECT_GE(account_->used(Resource::kJobBytes), 400u * 64);
}

TEST_F(SubmitTest, ManyDependenciesKeepTheLaterToo) {
  Job job(Queue::kRender);
  constexpr uint64_t kContexts = 100;
  const auto add = [&](uint64_t context, uint64_t seqno) {
    job.add_dependency(std::make_shared<Fence>("test", "test", context, seqno));
  };
  const auto expect_latest = [&](uint64_t count, uint64_t seqno) {
    ASSERT_EQ(job.dependencies.size(), count);
    for (uint64_t i = 0; i < count; ++i) {
      EXPECT_EQ(job.dependencies[i]->context(), kContexts - count + i);
      EXPECT_EQ(job.dependencies[i]->seqno(), seqno);
    }
  };
  for (uint64_t context = 0; context < kContexts; ++context) add(context, 2);
  for (uint64_t context = 0; context < kContexts; ++context) add(context, 1);
  expect_latest(kContexts, 2);
  for (uint64_t context = 0; context < kContexts; ++context) add(context, 3);
  expect_latest(kContexts, 3);
  // The places of the others have changed.
  job.drop_dependencies([](const FencePtr& f) { return f->context() < 40; });
  for (uint64_t context = 40; context < kContexts; ++context) add(context, 4);
  expect_latest(60, 4);
}

}  // namespace
}  // namespace v3d::ioctl::test
