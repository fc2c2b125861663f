// SUBMIT_CL and waits of vc4 (vc4-abi.md 2.3 to 2.5, 6.1).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "tests/ioctl/vc4/vc4_fixture.h"

namespace v3d::ioctl::vc4::test {
namespace {

using namespace drm::vc4;

class Vc4SubmitTest : public Vc4Test {
 protected:
  using Vc4Test::Vc4Test;
  /// How the first job ends.
  device::JobResult run_first() {
    JobControl control;
    return host_.jobs.at(0)->run(control);
  }
  static bool depends(const JobPtr& job, const FencePtr& fence) {
    return std::find(job->dependencies.begin(), job->dependencies.end(), fence) != job->dependencies.end();
  }
};

TEST_F(Vc4SubmitTest, QueuesAJobThatRendersTheFrame) {
  const uint32_t bo = create(), out = create_syncobj();
  auto args = clear({bo});
  args.out_sync = out;
  ASSERT_EQ(submit(args), 0);
  EXPECT_EQ(args.seqno, 1u);
  ASSERT_EQ(host_.jobs.size(), 1u);
  EXPECT_EQ(host_.jobs[0]->queue, Queue::kRender);
  EXPECT_EQ(fence_of(out), host_.jobs[0]->done);
  EXPECT_STREQ(host_.jobs[0]->done->driver_name(), "vc4");
  EXPECT_EQ(run_first().end, device::JobResult::End::kDone);
  EXPECT_EQ(gpu_.surfaces.width, 16);
  EXPECT_TRUE(gpu_.surfaces.color_write.present);
  EXPECT_EQ(gpu_.surfaces.list_start, gpu_.surfaces.list_end);
}

TEST_F(Vc4SubmitTest, FencesOfJobsThatHangCarryNoError) {
  auto args = clear({create()});
  ASSERT_EQ(submit(args), 0);
  gpu_.end = device::JobResult::End::kHang;
  EXPECT_EQ(run_first().end, device::JobResult::End::kHang);
  EXPECT_EQ(host_.jobs[0]->done->status(), 1);
  EXPECT_EQ(kernel_.resets, 1u);
}

TEST_F(Vc4SubmitTest, SeqnosAreOfTheDevice) {
  const auto other = open(kMinorVc4);
  auto args = clear({create()});
  ASSERT_EQ(submit(args), 0);
  auto theirs = clear({create(*other)});
  ASSERT_EQ(ioctl(*other, drm::vc4::kSubmitCl, theirs), 0);
  EXPECT_EQ(theirs.seqno, 2u);
  ASSERT_EQ(submit(args), 0);
  EXPECT_EQ(args.seqno, 3u);
}

TEST_F(Vc4SubmitTest, ChecksArgumentsInOrder) {
  const uint32_t bo = create();
  const auto error_of = [&](void (*spoil)(SubmitCl&)) {
    auto args = clear({bo});
    spoil(args);
    return submit(args);
  };
  EXPECT_EQ(error_of([](SubmitCl& a) { a.flags = 16; }), EINVAL);
  EXPECT_EQ(error_of([](SubmitCl& a) { a.pad2 = 1; }), EINVAL);
  EXPECT_EQ(error_of([](SubmitCl& a) { a.bo_handle_count = 0; }), EINVAL);
  EXPECT_EQ(error_of([](SubmitCl& a) { a.bo_handle_count = UINT32_MAX; }), ENOMEM);
  EXPECT_EQ(error_of([](SubmitCl& a) { a.bo_handles = 16; }), EFAULT);
  EXPECT_EQ(error_of([](SubmitCl& a) { a.perfmonid = 9; }), ENOENT);
  EXPECT_EQ(error_of([](SubmitCl& a) { a.in_sync = 9; }), ENOENT);
  EXPECT_EQ(error_of([](SubmitCl& a) { a.bin_cl_size = UINT32_MAX; }), EINVAL);
  EXPECT_EQ(error_of([](SubmitCl& a) { a.bin_cl_size = a.shader_rec_count = 1u << 29; }), EINVAL);
  EXPECT_EQ(error_of([](SubmitCl& a) { a.bin_cl_size = 1u << 30; }), ENOMEM);
  EXPECT_EQ(error_of([](SubmitCl& a) { a.bin_cl_size = 2; }), EFAULT);
  EXPECT_EQ(error_of([](SubmitCl& a) { a.color_write.hindex = 1; }), EINVAL);
  EXPECT_EQ(error_of([](SubmitCl& a) { a.out_sync = 9; }), EINVAL);
  EXPECT_TRUE(host_.jobs.empty());
  auto args = clear({bo});
  args.in_sync = create_syncobj();  // without a fence
  EXPECT_EQ(submit(args), EINVAL);
  args = clear({bo, bo});
  EXPECT_EQ(submit(args), EALREADY);
  args = clear({bo});
  EXPECT_EQ(submit(args), 0);
  EXPECT_EQ(args.seqno, 1u);  // none was used before
}

TEST_F(Vc4SubmitTest, AMissingBo) {
  auto args = clear({create(), 0xd0d0d0d0});
  EXPECT_EQ(submit(args), ENOENT);
}

class Vc4SubmitOn61 : public Vc4SubmitTest {
 protected:
  Vc4SubmitOn61() : Vc4SubmitTest(linux61()) {}
};

TEST_F(Vc4SubmitOn61, AMissingBo) {
  auto args = clear({create(), 0xd0d0d0d0});
  EXPECT_EQ(submit(args), EINVAL);
}

TEST_F(Vc4SubmitOn61, AnyNumberOfTiles) {
  const uint32_t bo = create();
  auto args = clear({bo});
  bin(start(255, 255).append(finish()), {}, {}, 0, &args);
  EXPECT_EQ(submit(args), 0);
}

TEST_F(Vc4SubmitTest, TooManyTiles) {
  auto args = clear({create()});
  bin(start(255, 255).append(finish()), {}, {}, 0, &args);
  EXPECT_EQ(submit(args), EINVAL);
}

TEST_F(Vc4SubmitTest, ChecksListAndRecords) {
  const uint32_t bo = create();
  uint32_t shader;
  ASSERT_EQ(create_shader(program({}), &shader), 0);
  const Record record{.fragment = 1, .vertex = 1, .coordinate = 1, .attributes = {{0, 0, 4, 4}}};
  auto args = clear({bo, shader});
  bin(list(shader_state(1).append(draw_arrays(3, 0))), record.bytes(), {}, 1, &args);
  EXPECT_EQ(submit(args), 0);
  bin(list(shader_state(1).append(draw_arrays(3000, 0))), record.bytes(), {}, 1, &args);
  EXPECT_EQ(submit(args), EINVAL);
  EXPECT_EQ(host_.jobs.size(), 1u);
}

TEST_F(Vc4SubmitTest, ShadersAreNoSurfaces) {
  uint32_t shader;
  ASSERT_EQ(create_shader(program({}), &shader), 0);
  auto args = clear({shader});
  EXPECT_EQ(submit(args), EINVAL);
}

TEST_F(Vc4SubmitTest, WaitsForSeqnos) {
  auto args = clear({create()});
  ASSERT_EQ(submit(args), 0);
  EXPECT_EQ(wait_seqno(0), 0);
  EXPECT_EQ(wait_seqno(1), ETIME);
  EXPECT_EQ(wait_seqno(1, 5'000'000), ETIME);
  host_.run_all();
  EXPECT_EQ(wait_seqno(1), 0);
  EXPECT_EQ(wait_seqno(1, UINT64_MAX), 0);
  EXPECT_EQ(wait_seqno(UINT64_MAX), ETIME);
  EXPECT_EQ(wait_seqno(2, 5'000'000), ETIME);
}

TEST_F(Vc4SubmitTest, OthersJobsHoldNobodyUp) {
  const auto other = open(kMinorVc4);
  auto theirs = clear({create(*other)});
  ASSERT_EQ(ioctl(*other, drm::vc4::kSubmitCl, theirs), 0);
  auto args = clear({create()});
  ASSERT_EQ(submit(args), 0);
  ioctl::test::FakeHost::run(host_.jobs[1]);
  EXPECT_EQ(wait_seqno(args.seqno), 0);
}

TEST_F(Vc4SubmitTest, WaitsForBos) {
  const uint32_t used = create(), unused = create();
  auto args = clear({used});
  ASSERT_EQ(submit(args), 0);
  EXPECT_EQ(wait_bo(unused), 0);
  EXPECT_EQ(wait_bo(used), ETIME);
  host_.run_all();
  EXPECT_EQ(wait_bo(used), 0);
  EXPECT_EQ(wait_bo(99), EINVAL);
  WaitBo bad = {used, 1, 0};
  EXPECT_EQ(ioctl(drm::vc4::kWaitBo, bad), EINVAL);
}

TEST_F(Vc4SubmitTest, TellsTheTimeLeft) {
  WaitBo args = {create(), 0, 1'000'000'000'000};
  ASSERT_EQ(ioctl(drm::vc4::kWaitBo, args), 0);
  EXPECT_LT(args.timeout_ns, 1'000'000'000'000u);
}

TEST_F(Vc4SubmitOn61, TellsNoTimeLeft) {
  WaitBo args = {create(), 0, 1'000'000'000'000};
  ASSERT_EQ(ioctl(drm::vc4::kWaitBo, args), 0);
  EXPECT_EQ(args.timeout_ns, 1'000'000'000'000u);
}

TEST_F(Vc4SubmitTest, WaitsForInSync) {
  const uint32_t in = create_syncobj();
  const FencePtr fence = make_pending(in);
  auto args = clear({create()});
  args.in_sync = in;
  ASSERT_EQ(submit(args), 0);
  EXPECT_TRUE(depends(host_.jobs[0], fence));
}

TEST_F(Vc4SubmitTest, WaitsForOtherFilesThatShareABo) {
  const auto other = open(kMinorV3dRender);
  const uint32_t bo = create(), target = create();
  const UniqueFd fd = export_bo(*file_, bo);
  uint32_t theirs = 0;
  ASSERT_EQ(import_bo(*other, fd.get(), &theirs), 0);
  auto write = clear({theirs});
  ASSERT_EQ(ioctl(*other, drm::vc4::kSubmitCl, write), 0);
  // Reads what the other file writes.
  auto read = clear({target, bo});
  ASSERT_EQ(submit(read), 0);
  EXPECT_TRUE(depends(host_.jobs[1], host_.jobs[0]->done));
  // The own jobs are in order already.
  ASSERT_EQ(submit(read), 0);
  EXPECT_FALSE(depends(host_.jobs[2], host_.jobs[1]->done));
  // The other file writes anew, when those have read.
  ASSERT_EQ(ioctl(*other, drm::vc4::kSubmitCl, write), 0);
  EXPECT_TRUE(depends(host_.jobs[3], host_.jobs[2]->done));
}

TEST_F(Vc4SubmitTest, ReadersDoNotWaitForReaders) {
  const auto other = open(kMinorV3dRender);
  const uint32_t bo = create();
  const UniqueFd fd = export_bo(*file_, bo);
  uint32_t theirs = 0;
  ASSERT_EQ(import_bo(*other, fd.get(), &theirs), 0);
  auto mine = clear({create(), bo});
  ASSERT_EQ(submit(mine), 0);
  auto reads = clear({create(*other), theirs});
  ASSERT_EQ(ioctl(*other, drm::vc4::kSubmitCl, reads), 0);
  EXPECT_FALSE(depends(host_.jobs[1], host_.jobs[0]->done));
}

}  // namespace
}  // namespace v3d::ioctl::vc4::test
