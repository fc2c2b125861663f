// What differs between the Linux versions: newer-mesa.md "New kernel interface".
#include <cerrno>

#include "ioctl/abi/channel_requests.h"
#include "tests/ioctl/cpu_job_fixture.h"
#include "tests/ioctl/submit_fixture.h"

namespace v3d::ioctl::test {
namespace {

TEST(Abi, IsFoundByItsName) {
  EXPECT_EQ(find_abi("7.3"), &default_abi());
  ASSERT_NE(find_abi("6.12"), nullptr);
  EXPECT_NE(find_abi("6.12"), &default_abi());
  for (const char* name : {"", "6", "6.13", "7.3 "}) EXPECT_EQ(find_abi(name), nullptr) << name;
}

// What one driver's numbers mean says nothing of another's.
TEST(ChannelRequests, OfADriverAreThoseOfV3d) {
  namespace request = drm::request;
  using drm::goes_through_channel, drm::request_nr;
  for (const uint32_t of_all : {request::kGemClose, request::kSyncobjCreate, request::kSyncobjSignal})
    for (const bool of_v3d : {false, true}) EXPECT_TRUE(goes_through_channel(of_v3d, request_nr(of_all)));
  for (const uint32_t of_v3d :
       {request::kSubmitCl, request::kSubmitTfu, request::kSubmitCsd, request::kWaitBo, request::kCreateBo,
        request::kMmapBo, request::kGetBoOffset}) {
    EXPECT_TRUE(goes_through_channel(true, request_nr(of_v3d)));
    EXPECT_FALSE(goes_through_channel(false, request_nr(of_v3d)));
  }
  // These may wait, or come seldom.
  for (const uint32_t other :
       {request::kSubmitCpu, request::kSyncobjWait, request::kVersion, request::kGetParam})
    EXPECT_FALSE(goes_through_channel(true, request_nr(other)));
}

/// Tests of both generations say what the newer does by this.
template <typename Base>
class OnEach : public Base, public ::testing::WithParamInterface<const Abi*> {
 protected:
  OnEach() : Base(*GetParam()) {}
  bool is_new() const { return GetParam() == &default_abi(); }
  int new_error(int error) const { return is_new() ? error : 0; }
};

class AbiTest : public OnEach<IoctlTest> {
 protected:
  static constexpr uint32_t kSetGlobal = 0x4008644d, kSetClientName = 0xc01064d1, kChangeHandle = 0xc00864d2;

  int set_global(File& file, uint32_t flags, uint32_t id) {
    drm::PerfmonSetGlobal args = {.flags = flags, .id = id};
    return ioctl(file, kSetGlobal, args);
  }
  uint32_t create_perfmon(File& file) {
    drm::PerfmonCreate create = {.id = 0, .ncounters = 1, .counters = {83}};  // QPU-active
    EXPECT_EQ(ioctl(file, kPerfmonCreate, create), 0);
    return create.id;
  }
  uint64_t value(File& file, uint32_t perfmon) {
    drm::PerfmonGetValues args = {.id = perfmon, .pad = 0, .values_ptr = memory_.place(uint64_t{0})};
    EXPECT_EQ(ioctl(file, kPerfmonGetValues, args), 0);
    return memory_.at<uint64_t>(args.values_ptr);
  }
  int submit_csd(File& file, uint32_t perfmon) {
    drm::SubmitCsd args = {};
    args.cfg[0] = args.cfg[1] = args.cfg[2] = 1 << 16;
    args.bo_handles = memory_.place(create_bo(file));
    args.bo_handle_count = 1;
    args.perfmon_id = perfmon;
    return ioctl(file, kSubmitCsd, args);
  }
  uint64_t param(File& file, uint32_t number) {
    drm::GetParam args = {.param = number, .pad = 0, .value = 0};
    EXPECT_EQ(ioctl(file, kGetParam, args), 0);
    return args.value;
  }
  int set_name(const std::string& name, uint64_t address = 0) {
    drm::SetClientName args = {.name_len = name.size(), .name = address};
    if (!address) args.name = memory_.place(name.data(), name.size());
    return ioctl(kSetClientName, args);
  }
};
INSTANTIATE_TEST_SUITE_P(Kernels, AbiTest, ::testing::ValuesIn(kernels()), kernel_name);

/// What only the newer knows.
class NewAbiTest : public AbiTest {};
INSTANTIATE_TEST_SUITE_P(Kernels, NewAbiTest, ::testing::Values(&default_abi()), kernel_name);

TEST_P(AbiTest, Parameters) {
  for (const uint32_t number : {14u, 15u, 16u, 17u}) {
    drm::GetParam args = {.param = number, .pad = 0, .value = 7};
    EXPECT_EQ(ioctl(kGetParam, args), is_new() && number < 17 ? 0 : EINVAL) << number;
    EXPECT_EQ(args.value, is_new() && number < 17 ? number == 14 : 7u) << number;
  }
}

TEST_P(NewAbiTest, ResetsAreCountedForTheDeviceAndTheFile) {
  const auto other = open(kMinorV3dRender);
  using End = device::JobResult::End;
  // A job that the GPU refuses makes no progress on hardware. One whose client died is no reason for a reset.
  uint64_t resets = 0;
  for (const End end : {End::kDone, End::kHang, End::kError, End::kCancelled}) {
    gpu_.end = end;
    resets += end == End::kHang || end == End::kError;
    ASSERT_EQ(submit_csd(*file_, 0), 0);
    host_.run_all();
    EXPECT_EQ(param(*file_, drm::kParamGlobalResetCounter), resets);
    EXPECT_EQ(param(*file_, drm::kParamContextResetCounter), resets);
    EXPECT_EQ(param(*other, drm::kParamContextResetCounter), 0u);
    EXPECT_EQ(param(*other, drm::kParamGlobalResetCounter), resets);
  }
  // Over all queues of the file, and before the fence tells of the end.
  gpu_.end = End::kHang;
  drm::SubmitTfu tfu = {};
  ASSERT_EQ(ioctl(*other, kSubmitTfu, tfu), 0);
  drm::SubmitCl cl = {};
  cl.bcl_end = 16;
  cl.bo_handles = memory_.place(create_bo(*other));
  cl.bo_handle_count = 1;
  ASSERT_EQ(ioctl(*other, kSubmitCl, cl), 0);
  host_.run_all();
  EXPECT_EQ(param(*other, drm::kParamContextResetCounter), 3u);  // TFU, bin, render
  EXPECT_EQ(param(*file_, drm::kParamGlobalResetCounter), resets + 3);
  EXPECT_EQ(param(*file_, drm::kParamContextResetCounter), resets);
}

TEST_P(AbiTest, UnknownRequests) {
  std::vector<uint8_t> arg(16);
  for (const auto& file : {file_, open(kMinorV3d), open(kMinorVc4)}) {
    EXPECT_EQ(raw_ioctl(*file, kChangeHandle, &(arg = std::vector<uint8_t>(8))), EINVAL);
    EXPECT_EQ(raw_ioctl(*file, kSetClientName, &(arg = std::vector<uint8_t>(16))), is_new() ? 0 : EINVAL);
  }
}

TEST_P(NewAbiTest, ClientNames) {
  EXPECT_EQ(set_name("firefox-gpu:3"), 0);
  EXPECT_EQ(file_->client_name(), "firefox-gpu:3");
  for (const char* bad : {"two words", "new\nline", "caf\xc3\xa9", "\x7f"}) EXPECT_EQ(set_name(bad), EINVAL);
  EXPECT_EQ(set_name(std::string("a\0b", 3)), EINVAL);
  EXPECT_EQ(set_name(std::string(65, 'x')), EINVAL);
  EXPECT_EQ(set_name("x", 16), EFAULT);
  EXPECT_EQ(file_->client_name(), "firefox-gpu:3");
  EXPECT_EQ(set_name(std::string(64, 'x')), 0);
  EXPECT_EQ(set_name("", 16), 0);  // no name
  EXPECT_EQ(file_->client_name(), "");
}

TEST_P(AbiTest, PlaneColorPipelines) {
  const auto vc4 = open(kMinorVc4);
  const auto ask = [&](uint64_t capability, uint64_t value) {
    drm::SetClientCap args = {.capability = capability, .value = value};
    return ioctl(*vc4, 0x4010640d, args);
  };
  EXPECT_EQ(ask(drm::kClientCapPlaneColorPipeline, 1), EINVAL);  // ATOMIC first
  ASSERT_EQ(ask(drm::kClientCapAtomic, 1), 0);
  EXPECT_EQ(ask(drm::kClientCapPlaneColorPipeline, 1), is_new() ? EOPNOTSUPP : EINVAL);
  EXPECT_EQ(ask(drm::kClientCapPlaneColorPipeline, 2), EINVAL);
}

TEST_P(AbiTest, GlobalPerfmonErrors) {
  const uint32_t id = create_perfmon(*file_);
  if (!is_new()) {
    EXPECT_EQ(set_global(*file_, 0, id), EINVAL);
    return;
  }
  EXPECT_EQ(set_global(*file_, 2, id), EINVAL);
  EXPECT_EQ(set_global(*file_, 0, 9), EINVAL);
  EXPECT_EQ(set_global(*file_, drm::kPerfmonClearGlobal, id), EINVAL);  // none is set
  EXPECT_EQ(set_global(*file_, 0, id), 0);
  EXPECT_EQ(set_global(*file_, 0, id), EBUSY);
  EXPECT_EQ(set_global(*file_, drm::kPerfmonClearGlobal, 9), EINVAL);
  const auto other = open(kMinorV3dRender);
  EXPECT_EQ(set_global(*other, drm::kPerfmonClearGlobal, create_perfmon(*other)), 0);  // any id will do
  EXPECT_EQ(set_global(*file_, 0, id), 0);
  // Its end is the end of the global one.
  drm::PerfmonDestroy destroy = {.id = id};
  EXPECT_EQ(ioctl(kPerfmonDestroy, destroy), 0);
  EXPECT_EQ(set_global(*other, 0, 1), 0);
  other->release();
  EXPECT_EQ(set_global(*file_, 0, create_perfmon(*file_)), 0);
}

TEST_P(NewAbiTest, NoGlobalPerfmonWhileAnotherCounts) {
  const uint32_t id = create_perfmon(*file_);
  ASSERT_EQ(submit_csd(*file_, id), 0);
  const ActivePerfmons::Run running = kernel_.perfmons().begin(file_->find_perfmon(id));
  EXPECT_EQ(set_global(*file_, 0, id), EBUSY);
  kernel_.perfmons().end(running, nullptr);
  EXPECT_EQ(set_global(*file_, 0, id), 0);
}

TEST_P(NewAbiTest, GlobalPerfmonCountsTheJobsOfAll) {
  const auto other = open(kMinorV3dRender);
  const uint32_t id = create_perfmon(*file_), own = create_perfmon(*other);
  gpu_.counts[perf::kQpuActive] = 10;
  ASSERT_EQ(set_global(*file_, 0, id), 0);
  EXPECT_EQ(submit_csd(*other, own), EAGAIN);
  EXPECT_EQ(submit_csd(*other, 99), EAGAIN);  // before it is looked up
  EXPECT_TRUE(host_.jobs.empty());
  ASSERT_EQ(submit_csd(*other, 0), 0);
  ASSERT_EQ(submit_csd(*file_, 0), 0);
  EXPECT_TRUE(host_.jobs[2]->dependencies.empty());  // jobs overlap as without it
  host_.run_all();
  EXPECT_EQ(value(*file_, id), 20u);
  ASSERT_EQ(submit_csd(*file_, 0), 0);
  host_.run_all();
  EXPECT_EQ(value(*file_, id), 30u);  // reading did not stop it
  ASSERT_EQ(set_global(*file_, drm::kPerfmonClearGlobal, id), 0);
  ASSERT_EQ(submit_csd(*file_, 0), 0);
  EXPECT_EQ(submit_csd(*other, 99), ENOENT);
  host_.run_all();
  EXPECT_EQ(value(*file_, id), 30u);
}

TEST_P(AbiTest, ResetDropsPerfmonsWithoutAReading) {
  const uint32_t id = create_perfmon(*file_);
  gpu_.counts[perf::kQpuActive] = 10;
  gpu_.end = device::JobResult::End::kHang;
  ASSERT_EQ(submit_csd(*file_, id), 0);
  host_.run_all();
  EXPECT_EQ(value(*file_, id), 0u);
  gpu_.end = device::JobResult::End::kDone;
  ASSERT_EQ(submit_csd(*file_, id), 0);
  host_.run_all();
  EXPECT_EQ(value(*file_, id), 10u);
}

TEST_P(AbiTest, ReadingAPerfmonMayStopIt) {
  const uint32_t id = create_perfmon(*file_);
  perf::Counts counts;
  counts[perf::kQpuActive] = 10;
  const ActivePerfmons::Run running = kernel_.perfmons().begin(file_->find_perfmon(id));
  EXPECT_EQ(value(*file_, id), 0u);
  kernel_.perfmons().end(running, &counts);
  EXPECT_EQ(value(*file_, id), is_new() ? 10u : 0u);
  // The next job starts it again.
  kernel_.perfmons().end(kernel_.perfmons().begin(file_->find_perfmon(id)), &counts);
  EXPECT_EQ(value(*file_, id), is_new() ? 20u : 10u);
}

TEST_P(AbiTest, JobsWithAPerfmonRunAloneInTheirFile) {
  const auto stranger = open(kMinorV3dRender);
  const uint32_t id = create_perfmon(*file_);
  drm::SubmitTfu tfu = {};
  const auto submit_tfu = [&](File& file) { ASSERT_EQ(ioctl(file, kSubmitTfu, tfu), 0); };
  enum { kBefore, kStranger, kCounted, kClean, kBehind, kStrangerBehind };
  submit_tfu(*file_);
  submit_tfu(*stranger);
  ASSERT_EQ(submit_csd(*file_, id), 0);
  submit_tfu(*file_);
  submit_tfu(*stranger);
  const auto depends = [&](size_t job, size_t on) {
    const auto& all = host_.jobs[job]->dependencies;
    return std::find(all.begin(), all.end(), host_.jobs[on]->done) != all.end();
  };
  EXPECT_EQ(depends(kCounted, kBefore), is_new());
  EXPECT_EQ(depends(kClean, kBefore), is_new());
  EXPECT_TRUE(depends(kClean, kCounted));
  EXPECT_EQ(depends(kBehind, kClean), is_new());
  for (const size_t job : {kCounted, kClean, kBehind}) EXPECT_FALSE(depends(job, kStranger));
  EXPECT_TRUE(host_.jobs[kStrangerBehind]->dependencies.empty());
  host_.run_all();
  submit_tfu(*file_);
  EXPECT_TRUE(host_.jobs[kBefore]->dependencies.empty());  // it has ended
}

TEST_P(AbiTest, BoAddresses) {
  const auto address = [&](uint32_t size) { return file_->find_bo(create_bo(size))->address(); };
  EXPECT_EQ(address(4096), is_new() ? 0x1000u : 0x20000u);
  EXPECT_EQ(address(0xf000), is_new() ? 0x2000u : 0x40000u);
  EXPECT_EQ(address(0x10000), is_new() ? 0x20000u : 0x60000u);
  // Larger ones lie above what is set aside for small ones.
  EXPECT_EQ(address(0x20001), 0x100000u);
  EXPECT_EQ(address(0x100000), is_new() ? 0x200000u : 0x140000u);
  EXPECT_EQ(address(1), is_new() ? 0x11000u : 0x80000u);  // the lowest hole
}

TEST_P(AbiTest, PointsOfSyncobjFds) {
  const uint32_t handle = create_syncobj(), source = create_syncobj();
  const FencePtr first = make_pending(source);
  const auto call = [&](uint32_t request, uint32_t of, uint32_t flags, uint64_t point, int fd = -1) {
    drm::SyncobjHandle args = {.handle = of, .flags = flags, .fd = fd, .pad = 0, .point = point};
    return ioctl(request, args);
  };
  constexpr uint32_t kFile = drm::kSyncobjSyncFile, kTimeline = drm::kSyncobjTimeline;
  ASSERT_EQ(call(kSyncobjHandleToFd, source, kFile, 0), 0);
  const UniqueFd one = std::move(fds_.given);

  // Without the flag the point of a sync_file is not looked at, that of an opaque descriptor must be 0.
  EXPECT_EQ(call(kSyncobjHandleToFd, source, kFile, 5), 0);
  EXPECT_EQ(call(kSyncobjHandleToFd, source, 0, 5), new_error(EINVAL));
  EXPECT_EQ(call(kSyncobjHandleToFd, source, kTimeline, 5), EINVAL);
  EXPECT_EQ(call(kSyncobjHandleToFd, source, kTimeline, 0), is_new() ? 0 : EINVAL);
  const UniqueFd opaque = std::move(fds_.given);
  EXPECT_EQ(call(kSyncobjHandleToFd, source, 4, 0), EINVAL);
  EXPECT_EQ(call(kSyncobjFdToHandle, handle, kTimeline, 5, opaque.get()), EINVAL);
  EXPECT_EQ(call(kSyncobjFdToHandle, handle, 8, 0, one.get()), EINVAL);
  EXPECT_EQ(call(kSyncobjHandleToFd, source, kFile | kTimeline, 5), EINVAL);  // no such point
  if (!is_new()) return;

  // Points, though the node has no timeline ioctls.
  ASSERT_EQ(call(kSyncobjFdToHandle, handle, kFile | kTimeline, 3, one.get()), 0);
  const FencePtr second = make_pending(source);
  ASSERT_EQ(call(kSyncobjHandleToFd, source, kFile, 0), 0);
  const UniqueFd two = std::move(fds_.given);
  ASSERT_EQ(call(kSyncobjFdToHandle, handle, kFile | kTimeline, 7, two.get()), 0);
  const auto exported = [&](uint64_t point) {
    EXPECT_EQ(call(kSyncobjHandleToFd, handle, kFile | kTimeline, point), 0);
    return kernel_.find_sync_file(fds_.given.get())->fence;
  };
  EXPECT_EQ(call(kSyncobjHandleToFd, handle, kFile | kTimeline, 8), EINVAL);
  const FencePtr at2 = exported(2), at3 = exported(3), at4 = exported(4), all = exported(0);
  EXPECT_EQ(at2, first);
  EXPECT_EQ(at3, first);
  second->signal();
  EXPECT_FALSE(at4->is_signalled());  // the earlier point is still to come
  EXPECT_FALSE(all->is_signalled());
  first->signal();
  EXPECT_TRUE(at4->is_signalled());
  EXPECT_TRUE(fence_of(handle)->is_signalled());
  // A binary fence replaces the points.
  ASSERT_EQ(call(kSyncobjFdToHandle, handle, kFile, 0, one.get()), 0);
  EXPECT_EQ(call(kSyncobjHandleToFd, handle, kFile | kTimeline, 1), EINVAL);
}

TEST_P(AbiTest, OldCallersHaveNoPoint) {
  const uint32_t handle = create_syncobj(true);
  drm::SyncobjHandle args = {.handle = handle, .flags = drm::kSyncobjSyncFile, .fd = -1, .pad = 0};
  EXPECT_EQ(ioctl(0xc01064c1, args), 0);
  EXPECT_TRUE(fds_.given);
}

class SubmitAbiTest : public OnEach<SubmitTest> {};
INSTANTIATE_TEST_SUITE_P(Kernels, SubmitAbiTest, ::testing::ValuesIn(kernels()), kernel_name);

TEST_P(SubmitAbiTest, SyncsThatDoNotExist) {
  const auto refuses = [&](uint32_t request, auto args, auto field) {
    args.*field = 77;
    EXPECT_EQ(ioctl(request, args), new_error(ENOENT));
  };
  refuses(kSubmitCl, cl(), &drm::SubmitCl::in_sync_bcl);
  refuses(kSubmitCl, cl(), &drm::SubmitCl::in_sync_rcl);
  refuses(kSubmitCl, cl(), &drm::SubmitCl::out_sync);
  refuses(kSubmitTfu, tfu(), &drm::SubmitTfu::in_sync);
  refuses(kSubmitTfu, tfu(), &drm::SubmitTfu::out_sync);
  refuses(kSubmitCsd, csd(), &drm::SubmitCsd::in_sync);
  refuses(kSubmitCsd, csd(), &drm::SubmitCsd::out_sync);
  // An out_sync is looked up before anything of the jobs is.
  drm::SubmitCsd compute = csd();
  compute.out_sync = 77;
  compute.bo_handles = 16;
  EXPECT_EQ(ioctl(kSubmitCsd, compute), is_new() ? ENOENT : EFAULT);

  const uint32_t out = create_syncobj();
  drm::SubmitCl args = cl();
  args.flags = drm::kSubmitExtension;
  args.out_sync = 77;  // does not count beside MULTI_SYNC
  args.extensions = multi_sync(Queue::kRender, {0}, {out});
  EXPECT_EQ(ioctl(kSubmitCl, args), 0);
  args.extensions = multi_sync(Queue::kRender, {77}, {out});
  EXPECT_EQ(ioctl(kSubmitCl, args), new_error(ENOENT));
  args.extensions = multi_sync(Queue::kTfu, {77}, {out});  // never looked at
  EXPECT_EQ(ioctl(kSubmitCl, args), 0);
  args.extensions = multi_sync(Queue::kRender, {}, {77});
  EXPECT_EQ(ioctl(kSubmitCl, args), EINVAL);
}

TEST_P(SubmitAbiTest, BosNamedTwice) {
  const int error = is_new() ? 0 : EALREADY;
  const uint64_t twice = memory_.place(std::vector<uint32_t>{bo_, bo_});
  drm::SubmitCl args = cl();
  args.bo_handles = twice;
  args.bo_handle_count = 2;
  EXPECT_EQ(ioctl(kSubmitCl, args), error);
  drm::SubmitCsd compute = csd();
  compute.bo_handles = twice;
  compute.bo_handle_count = 2;
  EXPECT_EQ(ioctl(kSubmitCsd, compute), error);
  drm::SubmitTfu convert = tfu();
  convert.bo_handles[1] = bo_;
  EXPECT_EQ(ioctl(kSubmitTfu, convert), error);
}

TEST_P(SubmitAbiTest, WhoWaitsForTheFencesOfBos) {
  drm::SubmitTfu first = tfu();
  ASSERT_EQ(ioctl(kSubmitTfu, first), 0);
  const FencePtr busy = host_.jobs[0]->done;
  drm::SubmitCl args = cl();
  ASSERT_EQ(ioctl(kSubmitCl, args), 0);
  EXPECT_FALSE(depends(host_.jobs[1], busy));  // bin
  EXPECT_TRUE(depends(host_.jobs[2], busy));   // render
  args.flags = drm::kSubmitFlushCache;
  ASSERT_EQ(ioctl(kSubmitCl, args), 0);
  EXPECT_FALSE(depends(host_.jobs[3], busy));
  EXPECT_EQ(depends(host_.jobs[4], busy), is_new());   // else render runs early
  EXPECT_EQ(depends(host_.jobs[5], busy), !is_new());  // clean
  EXPECT_TRUE(depends(host_.jobs[5], host_.jobs[4]->done));
  drm::SubmitCsd compute = csd();
  ASSERT_EQ(ioctl(kSubmitCsd, compute), 0);
  const JobPtr dispatch = host_.jobs[6], clean = host_.jobs[7];
  EXPECT_EQ(dispatch->bos.size(), is_new() ? 1u : 0u);
  EXPECT_EQ(clean->bos.size(), is_new() ? 0u : 1u);
  EXPECT_EQ(depends(dispatch, host_.jobs[2]->done), is_new());
  EXPECT_EQ(depends(clean, host_.jobs[2]->done), !is_new());
  EXPECT_TRUE(depends(clean, dispatch->done));
  EXPECT_FALSE(depends(clean, host_.jobs[5]->done));  // same queue and file: in order anyway
}

TEST_P(SubmitAbiTest, FencesOfBosAreTheLastJobs) {
  drm::SubmitCl args = cl();
  args.flags = drm::kSubmitFlushCache;
  ASSERT_EQ(ioctl(kSubmitCl, args), 0);
  EXPECT_EQ(file_->find_bo(bo_)->reservation().fences(false), std::vector{host_.jobs[2]->done});
  drm::SubmitCsd compute = csd();
  ASSERT_EQ(ioctl(kSubmitCsd, compute), 0);
  EXPECT_EQ(file_->find_bo(bo_)->reservation().fences(false), std::vector{host_.jobs[4]->done});
}

class CpuAbiTest : public OnEach<CpuJobTest> {
 protected:
  int error_outside() const { return new_error(EINVAL); }
};
INSTANTIATE_TEST_SUITE_P(Kernels, CpuAbiTest, ::testing::ValuesIn(kernels()), kernel_name);

TEST_P(CpuAbiTest, OffsetsOutsideTheBo) {
  const uint32_t sync = create_syncobj();
  EXPECT_EQ(submit(timestamp({4088}, {sync}), {pool_}), 0);
  EXPECT_EQ(submit(timestamp({0, 4089}, {sync, sync}), {pool_}), error_outside());
  EXPECT_EQ(submit(timestamp({0xffffffff}, {sync}), {pool_}), error_outside());
  EXPECT_EQ(submit(reset_timestamp(4080, {sync, sync}), {pool_}), 0);
  EXPECT_EQ(submit(reset_timestamp(4088, {sync, sync}), {pool_}), error_outside());
  EXPECT_EQ(submit(reset_timestamp(0xfffffffc, {sync}), {pool_}), error_outside());

  drm::IndirectCsd indirect = indirect_csd();
  indirect.offset = 4084;
  indirect.wg_uniform_offsets[0] = 1023;
  EXPECT_EQ(submit(memory_.place(indirect), {pool_}), 0);
  indirect.wg_uniform_offsets[0] = 1024;
  EXPECT_EQ(submit(memory_.place(indirect), {pool_}), error_outside());
  indirect.wg_uniform_offsets[0] = 0xfffffffe;
  EXPECT_EQ(submit(memory_.place(indirect), {pool_}), error_outside());
  indirect = indirect_csd();
  indirect.offset = 4085;
  EXPECT_EQ(submit(memory_.place(indirect), {pool_}), error_outside());
  // What was let through does nothing out there.
  for (const size_t at : {0, 4, 8}) write<uint32_t>(pool_, at, 1);
  host_.run_all();
  EXPECT_EQ(file_->bo_space(*account_)->gpu().space().take_faults().count, 0u);
}

TEST_P(CpuAbiTest, CopiesOutsideTheBo) {
  const uint32_t sync = create_syncobj();
  const struct {
    const char* what;
    uint32_t source, offset, stride;
    uint8_t do_64bit, availability;
    bool inside;
  } kCases[] = {
      {"two records at the end", 0, 4096 - 24 - 16, 24, 1, 1, true},
      {"one byte more", 0, 4096 - 24 - 15, 24, 1, 1, false},
      {"no availability", 0, 4096 - 24 - 8, 24, 1, 0, true},
      {"no availability, one byte more", 0, 4096 - 24 - 7, 24, 1, 0, false},
      {"32 bits", 0, 4096 - 24 - 8, 24, 0, 1, true},
      {"32 bits, one byte more", 0, 4096 - 24 - 7, 24, 0, 1, false},
      {"stride", 0, 0, 0xffffffff, 1, 1, false},
      {"offset", 0, 0xffffffff, 0, 1, 1, false},
      {"source", 4089, 0, 8, 1, 1, false},
      {"end of the source", 4088, 0, 8, 1, 1, true},
  };
  for (const auto& c : kCases) {
    drm::CopyTimestampQuery copy = copy_timestamp({c.source, 0}, {sync, sync});
    copy.offset = c.offset;
    copy.stride = c.stride;
    copy.do_64bit = c.do_64bit;
    copy.availability_bit = c.availability;
    copy.do_partial = 1;
    EXPECT_EQ(submit(memory_.place(copy), {bo_, pool_}), c.inside ? 0 : error_outside()) << c.what;
  }
  drm::CopyTimestampQuery none = copy_timestamp({}, {});
  none.offset = 0xffffffff;
  EXPECT_EQ(submit(memory_.place(none), {bo_, pool_}), 0);
  host_.run_all();
  EXPECT_EQ(file_->bo_space(*account_)->gpu().space().take_faults().count, 0u);
}

TEST_P(CpuAbiTest, PerformanceCopiesOutsideTheBo) {
  const uint32_t sync = create_syncobj();
  const uint64_t ids = memory_.place(std::vector<uint32_t>{1, 2});
  const struct {
    uint32_t offset, nperfmons, ncounters;
    uint8_t availability;
    bool inside;
  } kCases[] = {
      // Each perfmon has 32 slots, however few it uses.
      {4096 - 512, 2, 1, 0, true},   {4096 - 511, 2, 1, 0, false}, {4096 - 512, 2, 63, 1, true},
      {4096 - 512, 2, 64, 1, false}, {0, 2, ~0u, 1, false},        {0, 2, ~0u, 0, true},
  };
  for (const auto& c : kCases) {
    drm::CopyPerformanceQuery copy = {};
    copy.base.id = drm::kExtCpuCopyPerformanceQuery;
    copy.do_64bit = 1;
    copy.availability_bit = c.availability;
    copy.offset = c.offset;
    copy.nperfmons = c.nperfmons;
    copy.ncounters = c.ncounters;
    copy.count = 1;
    copy.syncs = memory_.place(sync);
    copy.kperfmon_ids = memory_.place(ids);
    EXPECT_EQ(submit(memory_.place(copy), {bo_}), c.inside ? 0 : error_outside()) << c.offset << c.ncounters;
  }
}

TEST_P(CpuAbiTest, OrderOfErrorsOfIndirectDispatches) {
  drm::IndirectCsd args = indirect_csd();
  args.submit.bo_handles = memory_.place(uint32_t{99});
  EXPECT_EQ(submit(memory_.place(args), {}), is_new() ? EINVAL : ENOENT);  // number of BOs, dispatch's BOs
  args = indirect_csd();
  args.submit.in_sync = create_syncobj();  // no fence
  EXPECT_EQ(submit(memory_.place(args), {99}), is_new() ? ENOENT : EINVAL);
  args.offset = 4096;
  EXPECT_EQ(submit(memory_.place(args), {pool_}), EINVAL);
  args = indirect_csd();
  args.submit.bo_handle_count = 0;
  EXPECT_EQ(submit(memory_.place(args), {pool_}), EINVAL);
  EXPECT_TRUE(host_.jobs.empty());
}

TEST_P(CpuAbiTest, BosOfIndirectDispatches) {
  const drm::IndirectCsd args = indirect_csd();
  ASSERT_EQ(submit(memory_.place(args), {pool_}), 0);
  const auto fences = [&](uint32_t bo) { return file_->find_bo(bo)->reservation().fences(false); };
  EXPECT_EQ(fences(pool_), std::vector{host_.jobs[is_new() ? 2 : 0]->done});
  EXPECT_EQ(fences(bo_), std::vector{host_.jobs[2]->done});
  drm::CopyTimestampQuery copy = copy_timestamp({}, {});
  EXPECT_EQ(submit(memory_.place(copy), {bo_, bo_}), is_new() ? 0 : EALREADY);
}

}  // namespace
}  // namespace v3d::ioctl::test
