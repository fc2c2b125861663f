/// The firmware's memory and the V3D's registers of boards with VideoCore IV. That programs run:
/// e2e.rpi3.user_programs.

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "gpu/base/job_control.h"
#include "gpu/chip/board.h"
#include "gpu/chip/profile.h"
#include "ioctl/firmware/heap.h"
#include "ioctl/firmware/user_program_gpu.h"
#include "ioctl/firmware/v3d.h"

namespace v3d::ioctl::firmware {
namespace {

TEST(FirmwareHeap, IsBelowWhatTheFirmwareHasItself) {
  const Heap small = Heap::of(chip::kRpi1, 64), large = Heap::of(chip::kRpi3, 76);
  EXPECT_EQ(small.begin(), 0x1c000000u);
  EXPECT_EQ(small.end(), 0x1f000000u);
  EXPECT_EQ(large.begin(), 0x3b400000u);
  EXPECT_EQ(large.end(), 0x3f000000u);  // the peripherals
  const Heap none = Heap::of(chip::kRpi3, 1);
  EXPECT_EQ(none.begin(), none.end());
}

TEST(FirmwareHeap, LiesAboveWhatLinuxShares) {
  const Heap firmware = Heap::of(chip::kRpi3, 76);
  const Heap shared = Heap::below(firmware, 256 << 20);
  EXPECT_EQ(shared.end(), firmware.begin());
  EXPECT_EQ(shared.end() - shared.begin(), 256u << 20);
  const Heap small = Heap::below(Heap(0x08000000, 0x0c000000), 1 << 30);  // however much is asked for
  EXPECT_EQ(small.begin(), 0x04000000u);
}

TEST(FirmwareHeap, GivesFromTheTopWithAlignment) {
  Heap heap(0x10000, 0x20000);
  EXPECT_EQ(heap.take(0x1000, 0x1000), 0x1f000u);
  EXPECT_EQ(heap.take(0x1000, 0x4000), 0x1c000u);
  EXPECT_EQ(heap.take(0x2000, 0x1000), 0x1d000u);  // between the two
  EXPECT_EQ(heap.take(0xd000, 0x1000), std::nullopt);
  EXPECT_EQ(heap.take(0xc000, 0x1000), 0x10000u);
  EXPECT_EQ(heap.take(0x1000, 0x1000), std::nullopt);
  heap.give_back(0x1c000);
  EXPECT_EQ(heap.take(0x1000, 0x1000), 0x1c000u);
}

/// Ends programs without running them; counts what it is asked for.
class Gpu : public GpuContext, public UserProgramGpu {
 public:
  mmu::AddressSpace& space() override { std::abort(); }
  device::JobResult run_bin(const device::ClJob&, JobControl&,
                            std::shared_ptr<const draw::BinResult>*) override {
    return {};
  }
  device::JobResult run_render(const device::ClJob&, JobControl&,
                               std::shared_ptr<const draw::BinResult>) override {
    return {};
  }
  device::JobResult run_csd(const device::CsdJob&, JobControl&) override { return {}; }
  device::JobResult run_tfu(const device::TfuJob&, JobControl&) override { return {}; }
  device::JobResult run_surfaces(const device::SurfaceJob&, JobControl&) override { return {}; }
  device::JobResult run_user_programs(csd::UserQpus&, csd::UserQueue& queue, bool, JobControl&) override {
    for (csd::UserProgram program; queue.take(&program); last = program) {
      queue.executed(20);
      if (looks) looks();
      queue.end(program, 2, true);
    }
    device::JobResult result;
    result.counts[perf::kQpuActive] = 25;
    perf::derive(&result.counts);
    return result;
  }
  csd::UserProgram last;
  std::function<void()> looks;  ///< before a program ends
};

class FirmwareV3d : public testing::Test {
 protected:
  FirmwareV3d() : v3d_(V3d::create(*chip::find_profile("rpi3"))) {
    page_ = static_cast<uint32_t*>(mmap(nullptr, kRegisterBytes, PROT_READ, MAP_SHARED, v3d_->memfd(), 0));
  }
  ~FirmwareV3d() override { munmap(page_, kRegisterBytes); }
  uint32_t get(uint32_t offset) const { return page_[offset / 4]; }
  device::JobResult run() { return v3d_->run(gpu_, false, control_); }

  std::shared_ptr<V3d> v3d_;
  uint32_t* page_;
  Gpu gpu_;
  JobControl control_;
};

constexpr uint32_t kIdent0 = 0, kSrqpc = 0x430, kSrqua = 0x434, kSrqcs = 0x43c, kSqrsv1 = 0x414,
                   kPctre = 0x674, kPctr1 = 0x688, kPctrs1 = 0x68c, kDbqite = 0xe2c, kDbqitc = 0xe30;

TEST_F(FirmwareV3d, ShowsNothingWithoutPower) {
  EXPECT_EQ(get(kIdent0), 0xdeadbeefu);
  EXPECT_EQ(v3d_->write(kSrqpc, 0x1000), V3d::After::kNothing);
  v3d_->set_power(true);
  v3d_->set_power(true);
  EXPECT_EQ(get(kIdent0), 0x02443356u);
  EXPECT_EQ(get(kSrqcs), 0u);
  v3d_->set_power(false);
  EXPECT_TRUE(v3d_->has_power());
  v3d_->set_power(false);
  EXPECT_EQ(get(kSrqcs), 0xdeadbeefu);
}

TEST_F(FirmwareV3d, QueuesAProgramWithEachStore) {
  v3d_->set_power(true);
  EXPECT_EQ(v3d_->write(kSrqua, 0x2000), V3d::After::kNothing);
  EXPECT_EQ(v3d_->write(kSrqpc, 0x1000), V3d::After::kRun);
  EXPECT_EQ(v3d_->write(kSrqpc, 0x1000), V3d::After::kNothing);  // for the same job
  EXPECT_EQ(get(kSrqcs), 0x00000202u);
  EXPECT_EQ(run().end, device::JobResult::End::kDone);
  EXPECT_EQ(get(kSrqcs), 0x00020200u);
  EXPECT_EQ(gpu_.last.code, 0x1000u);
  EXPECT_EQ(gpu_.last.uniforms, 0x2000u);
  v3d_->write(kSrqcs, 1 << 8 | 1 << 16);
  EXPECT_EQ(get(kSrqcs), 0u);
  EXPECT_EQ(v3d_->write(kSrqpc, 0x1000), V3d::After::kRun);  // for another one
}

TEST_F(FirmwareV3d, SaysThatTheQueueIsFull) {
  v3d_->set_power(true);
  for (int n = 0; n < 12 + 16; ++n) v3d_->write(kSrqpc, 0x1000);
  EXPECT_EQ(get(kSrqcs) & 0x80, 0u);
  v3d_->write(kSrqpc, 0x1000);
  EXPECT_EQ(get(kSrqcs), 0x1c00u | 0x80u | 28u);
  v3d_->write(kSrqcs, 1 | 1 << 7);
  EXPECT_EQ(get(kSrqcs), 0x1c00u);
}

TEST_F(FirmwareV3d, CountsAndInterrupts) {
  v3d_->set_power(true);
  v3d_->write(kPctrs1, 16);
  v3d_->write(kPctre, 0x80000002);
  v3d_->write(kDbqite, 1 << 2);
  v3d_->write(kSrqpc, 0x1000);
  run();
  EXPECT_EQ(get(kPctr1), 100u);
  EXPECT_EQ(get(kDbqitc), 1u << 2);
  v3d_->write(kDbqitc, 1 << 2);
  EXPECT_EQ(get(kDbqitc), 0u);
}

TEST_F(FirmwareV3d, CountsWhileProgramsRun) {
  v3d_->set_power(true);
  v3d_->write(kPctrs1, 16);
  v3d_->write(kPctre, 0x80000002);
  std::vector<uint32_t> seen;
  gpu_.looks = [&] { seen.push_back(get(kPctr1)); };
  v3d_->write(kSrqpc, 0x1000);
  run();
  EXPECT_EQ(seen, std::vector<uint32_t>{80});
  EXPECT_EQ(get(kPctr1), 100u);  // with what the job tells in its end: nothing is counted twice
  v3d_->write(kPctre, 0);
  v3d_->write(kSrqpc, 0x1000);
  gpu_.looks = [&] { v3d_->write(kPctre, 0x80000002); };
  run();
  EXPECT_EQ(get(kPctr1), 120u);  // and nothing of before it was asked for
}

TEST_F(FirmwareV3d, KeepsQpusFromUserPrograms) {
  v3d_->set_power(true);
  EXPECT_EQ(v3d_->reserved_qpus(), 0u);
  v3d_->write(kSqrsv1, 0x00001010);
  EXPECT_EQ(v3d_->reserved_qpus(), 1u << 9 | 1u << 11);
}

TEST_F(FirmwareV3d, KnowsWhatIsNotThere) {
  v3d_->set_power(true);
  EXPECT_EQ(v3d_->write(0x110, 0x1000), V3d::After::kUnknown);  // CT0CA
  EXPECT_EQ(v3d_->write(kIdent0, 1), V3d::After::kNothing);
  EXPECT_EQ(get(kIdent0), 0x02443356u);
}

TEST_F(FirmwareV3d, TellsBatchesApart) {
  v3d_->set_power(true);
  csd::UserProgram programs[] = {{0x1000, 0, 10, 0}, {0x2000, 0, 10, 0}};
  uint64_t first, second;
  ASSERT_TRUE(v3d_->enqueue(programs, &first));
  run();
  ASSERT_TRUE(v3d_->enqueue(programs, &second));
  EXPECT_TRUE(v3d_->finish(first));
  EXPECT_FALSE(v3d_->finish(second));
  EXPECT_EQ(get(kSrqcs) & 0x3f, 0u);  // what was not started never is
}

}  // namespace
}  // namespace v3d::ioctl::firmware
