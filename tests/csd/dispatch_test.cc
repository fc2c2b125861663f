// Dispatches of QPU programs in GPU memory. The words come from tests/e2e/qpu_programs/qpu_asm.py.
#include "gpu/csd/dispatch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "gpu/base/work_meter.h"
#include "gpu/chip/profile.h"
#include "gpu/mmu/address_space.h"
#include "gpu/mmu/fault_place.h"
#include "gpu/perf/counters.h"
#include "gpu/qpu/run/program_cache.h"
#include "tests/base/counting_control.h"
#include "tests/qpu/engine.h"

namespace v3d::csd {
namespace {

using testing::HasSubstr;

/// The words of a program and the eight that end it; the last nop is never executed.
std::vector<uint64_t> program(std::vector<uint64_t> words) {
  constexpr uint64_t kNop = 0x38003186bb03f000, kThrsw = 0x38203186bb03f000;
  for (uint64_t word : {kThrsw, kThrsw, kNop, kNop, kThrsw, kNop, kNop, kNop}) words.push_back(word);
  return words;
}
constexpr uint64_t kExecutedAtEnd = 7;

// Stores {TIDX, payload word 0, payload word 1, 1} at base + (TIDX * 16 + lane) * 16. Uniforms: base,
// 0xfffffffc.
const std::vector<uint64_t> kStoreThread = program({
    0x38002185bb03f001,  // tidx rf5
    0x39e021867c03f144,  // shl rf6, rf5, 4
    0x38002187bb03f002,  // eidx rf7
    0x380021863803f187,  // add rf6, rf6, rf7
    0x39e021867c03f184,  // shl rf6, rf6, 4
    0x39823186bb03f000,  // ldunifrf.rf8
    0x380021863803f188,  // add rf6, rf6, rf8
    0x3800318bf903f143,  // mov tmud, rf5
    0x3800318bf903f0c3,  // mov tmud, rf3
    0x3800318bf903f083,  // mov tmud, rf2
    0x39c0318bf903f043,  // mov tmud, 1
    0x3800318df903f183,  // mov tmuau, rf6
    0x38003186bb03f00f,  // tmuwt -
});

// Increments a word once per lane. Uniforms: address, 0xffffffc7.
const std::vector<uint64_t> kIncrement = program({
    0x39817186bb03f000,  // ldunifrf.rf5
    0x3820318df903f143,  // mov tmuau, rf5 ; thrsw
    0x38003186bb03f000,  // nop
    0x38003186bb03f000,  // nop
    0x3881b186bb03f000,  // ldtmu.rf6
});

// Increments a word, meets at a barrier, and increments it again unless it has the value of the second
// uniform. Uniforms: address, value, 0xffffffc7, 0xffffffc7.
const std::vector<uint64_t> kBarrier = program({
    0x39817186bb03f000,  // ldunifrf.rf5
    0x3981b186bb03f000,  // ldunifrf.rf6
    0x3820318df903f143,  // mov tmuau, rf5 ; thrsw
    0x38003186bb03f000,  // nop
    0x38003186bb03f000,  // nop
    0x38813186bb03f000,  // ldtmu.rf4
    0x38203192bb03f00e,  // barrierid syncb ; thrsw
    0x38003186bb03f000,  // nop
    0x38003186bb03f000,  // nop
    0x3820318cf903f143,  // mov tmua, rf5 ; thrsw
    0x38003186bb03f000,  // nop
    0x38003186bb03f000,  // nop
    0x38813186bb03f000,  // ldtmu.rf4
    0x38007186b703f106,  // xor.pushz -, rf4, rf6
    0x382a318df903f143,  // mov.ifna tmuau, rf5 ; thrsw
    0x38003186bb03f000,  // nop
    0x38003186bb03f000,  // nop
    0x38813186bb03f000,  // ldtmu.rf4
});

// Stores 5 at the first address, then the third uniform at the second address.
const std::vector<uint64_t> kOwnUniform = program({
    0x3980b186bb03f000,  // ldunifrf.rf2
    0x3980f186bb03f000,  // ldunifrf.rf3
    0x39c0318bf903f143,  // mov tmud, 5
    0x3800318cf903f083,  // mov tmua, rf2
    0x38003186bb03f00f,  // tmuwt -
    0x39813186bb03f000,  // ldunifrf.rf4
    0x3800318bf903f103,  // mov tmud, rf4
    0x3800318cf903f0c3,  // mov tmua, rf3
    0x38003186bb03f00f,  // tmuwt -
});

// Stores 5 at the first address, moves the uniform stream to the third, and stores the word it finds there at
// the second address.
const std::vector<uint64_t> kUniformBefore = program({
    0x3980b186bb03f000,  // ldunifrf.rf2
    0x3980f186bb03f000,  // ldunifrf.rf3
    0x39c0318bf903f143,  // mov tmud, 5
    0x3800318cf903f083,  // mov tmua, rf2
    0x38003186bb03f00f,  // tmuwt -
    0x0200000000005000,  // bu 0, a:unif
    0x38003186bb03f000,  // nop
    0x38003186bb03f000,  // nop
    0x38003186bb03f000,  // nop
    0x39813186bb03f000,  // ldunifrf.rf4
    0x3800318bf903f103,  // mov tmud, rf4
    0x3800318cf903f0c3,  // mov tmua, rf3
    0x38003186bb03f00f,  // tmuwt -
});

// Loads a word per lane, stores it plus 1, loads it again and stores that times 16. Uniform: address.
const std::vector<uint64_t> kLoadStoreLoad = program({
    0x38002181bb03f002,  // eidx rf1
    0x39e021817c03f042,  // shl rf1, rf1, 2
    0x3980b186bb03f000,  // ldunifrf.rf2
    0x380021813803f042,  // add rf1, rf1, rf2
    0x3820318cf903f043,  // mov tmua, rf1 ; thrsw
    0x38003186bb03f000,  // nop
    0x38003186bb03f000,  // nop
    0x3880f186bb03f000,  // ldtmu.rf3
    0x39e0318b3803f0c1,  // add tmud, rf3, 1
    0x3800318cf903f043,  // mov tmua, rf1
    0x38003186bb03f00f,  // tmuwt -
    0x3820318cf903f043,  // mov tmua, rf1 ; thrsw
    0x38003186bb03f000,  // nop
    0x38003186bb03f000,  // nop
    0x38813186bb03f000,  // ldtmu.rf4
    0x39e0318b7c03f104,  // shl tmud, rf4, 4
    0x3800318cf903f043,  // mov tmua, rf1
    0x38003186bb03f00f,  // tmuwt -
});

// Loads the 4x4 words of a rectangle with a stride of 64 bytes, as a vec4 per row, into one register: word x
// of row y in lane 4y + x. Stores the register. Uniforms: rectangle, 0xfffffffc, destination.
const std::vector<uint64_t> kRectangle = program({
    0x38002181bb03f002,  // eidx rf1
    0x3980b186bb03f000,  // ldunifrf.rf2
    0x39e021837c03f046,  // shl rf3, rf1, 6
    0x3820318d3803f083,  // add tmuau, rf2, rf3 ; thrsw
    0x39e021847d03f042,  // shr rf4, rf1, 2
    0x38003186bb03f000,  // nop
    0x38817186bb03f000,  // ldtmu.rf5
    0x3881b186bb03f000,  // ldtmu.rf6
    0x3881f186bb03f000,  // ldtmu.rf7
    0x38823186bb03f000,  // ldtmu.rf8
    0x38002189f903f143,  // mov rf9, rf5
    0x39e07186b703f101,  // xor.pushz -, rf4, 1
    0x39e0218afd03f19c,  // rot rf10, rf6, -4
    0x38082189f903f283,  // mov.ifa rf9, rf10
    0x39e07186b703f102,  // xor.pushz -, rf4, 2
    0x39e0218afd03f1d8,  // rot rf10, rf7, -8
    0x38082189f903f283,  // mov.ifa rf9, rf10
    0x39e07186b703f103,  // xor.pushz -, rf4, 3
    0x39e0218afd03f214,  // rot rf10, rf8, -12
    0x38082189f903f283,  // mov.ifa rf9, rf10
    0x39e0218bb503f043,  // and rf11, rf1, 3
    0x39e0218b7c03f2c2,  // shl rf11, rf11, 2
    0x3800218b3803f2c4,  // add rf11, rf11, rf4
    0x3800218cfe03f24b,  // shuffle rf12, rf9, rf11
    0x3800318bf903f303,  // mov tmud, rf12
    0x3980b186bb03f000,  // ldunifrf.rf2
    0x39e021837c03f042,  // shl rf3, rf1, 2
    0x3800318c3803f083,  // add tmua, rf2, rf3
    0x38003186bb03f00f,  // tmuwt -
});

const std::vector<uint64_t> kEndless = {
    0x02ffffe0ff001000,  // b -32
    0x38003186bb03f000,  // nop
    0x38003186bb03f000,  // nop
    0x38003186bb03f000,  // nop
};

class DispatchTest : public testing::TestWithParam<int> {
 protected:
  static constexpr GpuAddr kCode = 0x10000, kUniforms = 0x11000, kData = 0x20000;
  static constexpr uint32_t kBytes = 0x20000;  // mapped from kCode on

  void SetUp() override {
    absl::StatusOr<std::unique_ptr<mmu::AddressSpace>> space = mmu::AddressSpace::create();
    ASSERT_TRUE(space.ok()) << space.status();
    space_ = *std::move(space);
    ASSERT_TRUE(space_->map_zeros(kCode, kBytes).ok());
    job_.memory = space_->memory();
  }

  bool run(const std::vector<uint64_t>& code, const std::vector<uint32_t>& uniforms,
           const std::array<uint32_t, 4>& size, uint32_t batches, uint32_t mode = 0, bool serial = false) {
    job_.memory.write(kCode, code.data(), code.size() * sizeof(uint64_t));
    for (uint32_t i = 0; i < uniforms.size(); ++i) job_.memory.store(uniforms_ + 4 * i, uniforms[i]);
    return dispatch(job_,
                    {size[0] << 16, size[1] << 16, size[2] << 16, size[3], batches, kCode | mode, uniforms_},
                    serial, space_.get());
  }
  static uint32_t cfg3(uint32_t wg_size, uint32_t wgs, uint32_t batches) {
    return (wg_size & 255) | (wgs & 15) << 8 | (batches - 1) << 12;
  }
  uint32_t word(GpuAddr address) const { return job_.memory.load<uint32_t>(address); }

  const chip::Profile& profile_ = *chip::find_profile("rpi5");
  ThreadPool pool_{GetParam()};
  qpu::ProgramCache programs_{chip::Generation::k71, qpu::compiler_of_tests()};
  perf::JobCounts counts_;
  JobError error_;
  std::atomic<bool> cancel_{false};
  std::unique_ptr<mmu::AddressSpace> space_;
  GpuAddr uniforms_ = kUniforms;
  JobContext job_{.memory = Memory(),
                  .profile = &profile_,
                  .pool = &pool_,
                  .programs = &programs_,
                  .counts = &counts_,
                  .error = &error_,
                  .cancel = &cancel_};
};

INSTANTIATE_TEST_SUITE_P(Workers, DispatchTest, testing::Values(0, 2));

TEST_P(DispatchTest, ThreadsGetTheirPayload) {
  EXPECT_TRUE(run(kStoreThread, {kData, 0xfffffffc}, {6, 4, 1, cfg3(32, 1, 2)}, 48, 1)) << error_.message();
  std::map<uint32_t, int> seen;  // workgroup and first local index
  for (uint32_t tidx = 0; tidx < 48; ++tidx) {
    const GpuAddr thread = kData + tidx * 256;
    const uint32_t workgroup = word(thread + 4), local = word(thread + 8) >> 26;
    ++seen[workgroup << 8 | local];
    for (uint32_t lane = 0; lane < 16; ++lane) {
      EXPECT_EQ(word(thread + lane * 16), tidx);
      EXPECT_EQ(word(thread + lane * 16 + 4), workgroup);
      EXPECT_EQ(word(thread + lane * 16 + 8) >> 26, local + lane);
      EXPECT_EQ(word(thread + lane * 16 + 12), 1u);
    }
  }
  EXPECT_EQ(seen.size(), 48u);
  for (uint32_t y = 0; y < 4; ++y)
    for (uint32_t x = 0; x < 6; ++x)
      for (uint32_t local : {0u, 16u}) EXPECT_EQ(seen.count((y << 16 | x) << 8 | local), 1u) << x << "," << y;
}

TEST_P(DispatchTest, PaddingLanesDoNotReachMemory) {
  EXPECT_TRUE(run(kIncrement, {kData, 0xffffffc7}, {17, 1, 1, cfg3(1, 16, 1)}, 2));
  EXPECT_EQ(word(kData), 17u);
  EXPECT_TRUE(run(kIncrement, {kData + 4, 0xffffffc7}, {10, 1, 1, cfg3(18, 3, 4)}, 3 * 4 + 2));
  EXPECT_EQ(word(kData + 4), 180u);
}

TEST_P(DispatchTest, CountsInstructions) {
  EXPECT_TRUE(run(kIncrement, {kData, 0xffffffc7}, {100, 1, 1, cfg3(16, 1, 1)}, 100));
  EXPECT_EQ(word(kData), 1600u);
  EXPECT_EQ(counts_.total()[perf::kQpuActive], 100 * (5 + kExecutedAtEnd));
}

TEST_P(DispatchTest, BarriersSpanTheSupergroup) {
  EXPECT_TRUE(run(kBarrier, {kData, 24 * 16, 0xffffffc7, 0xffffffc7}, {24, 1, 1, cfg3(16, 8, 24)}, 24));
  EXPECT_EQ(word(kData), 24u * 16);
}

TEST_P(DispatchTest, UniformsAreThoseOfTheStart) {
  EXPECT_TRUE(run(kOwnUniform, {kUniforms + 8, kData, 77}, {1, 1, 1, cfg3(16, 1, 1)}, 1));
  EXPECT_EQ(word(kUniforms + 8), 5u);
  EXPECT_EQ(word(kData), 77u);
}

TEST_P(DispatchTest, LoadsSeeTheStoresBeforeThem) {
  for (uint32_t i = 0; i < 16; ++i) job_.memory.store(kData + 4 * i, i);
  EXPECT_TRUE(run(kLoadStoreLoad, {kData}, {1, 1, 1, cfg3(16, 1, 1)}, 1));
  for (uint32_t i = 0; i < 16; ++i) EXPECT_EQ(word(kData + 4 * i), (i + 1) * 16);
}

// py-videocore7 test_tmu_read_tmu_write_uniform_read: also for a word 128 bytes before the uniforms.
TEST_P(DispatchTest, WordsBeforeTheUniformsAreThoseOfTheStart) {
  uniforms_ = kUniforms + 128;
  job_.memory.store<uint32_t>(kUniforms, 33);
  EXPECT_TRUE(run(kUniformBefore, {kUniforms, kData, kUniforms}, {1, 1, 1, cfg3(16, 1, 1)}, 1));
  EXPECT_EQ(word(kUniforms), 5u);
  EXPECT_EQ(word(kData), 33u);
}

TEST_P(DispatchTest, StridedRectangle) {
  for (uint32_t i = 0; i < 256; ++i) job_.memory.store(kData + 4 * i, i);
  const GpuAddr packed = kData + 0x1000;
  EXPECT_TRUE(run(kRectangle, {kData, 0xfffffffc, packed}, {1, 1, 1, cfg3(16, 1, 1)}, 1));
  for (uint32_t i = 0; i < 16; ++i) EXPECT_EQ(word(packed + 4 * i), i / 4 * 16 + i % 4) << i;
}

TEST_P(DispatchTest, TheSnapshotEndsAtUnmappedPages) {
  uniforms_ = kCode + kBytes - 12;
  EXPECT_TRUE(run(kOwnUniform, {uniforms_ + 8, kData, 78}, {1, 1, 1, cfg3(16, 1, 1)}, 1));
  EXPECT_EQ(word(kData), 78u);
  EXPECT_EQ(space_->take_faults().count, 0u);
}

TEST_P(DispatchTest, WithoutUniformsNothingFaults) {
  EXPECT_TRUE(dispatch(job_, {1 << 16, 1 << 16, 1 << 16, 16, 0, 0, 0}, false, space_.get()));
  const std::vector<uint64_t> nothing = program({});
  job_.memory.write(kCode, nothing.data(), nothing.size() * 8);
  EXPECT_TRUE(dispatch(job_, {1 << 16, 1 << 16, 1 << 16, 16, 3, kCode, 0}, false, space_.get()));
  EXPECT_EQ(space_->take_faults().count, 0u);
}

TEST_P(DispatchTest, SingleSegmentProgramsEndAtTheirFirstThreadSwitch) {
  EXPECT_TRUE(run({0x38203186bb03f000, 0x38003186bb03f000, 0x38003186bb03f000}, {}, {1, 1, 1, 16}, 5, 2));
  EXPECT_EQ(counts_.total()[perf::kQpuActive], 15u);
}

TEST_P(DispatchTest, UnmappedCodeHangs) {
  EXPECT_FALSE(dispatch(job_, {0, 0, 0, 0, 0xffffffff, 0x40000000, 0}, false, space_.get()));
  EXPECT_EQ(error_.kind(), JobError::Kind::kHang);
}

TEST_P(DispatchTest, EndlessProgramsHitTheLimit) {
  job_.instruction_limit = 200'000;
  EXPECT_FALSE(run(kEndless, {}, {100, 1, 1, cfg3(16, 1, 1)}, 100));
  EXPECT_THAT(error_.message(), HasSubstr("compute program at 0x00010000 does not end at pc 0x000100"));
}

// Supergroups of eight batches, whose turns are one after the other: each has its look.
TEST_P(DispatchTest, EndlessProgramsLookAtTheJob) {
  CountingControl control;
  job_.control = &control;
  job_.instruction_limit = 100'000;
  EXPECT_FALSE(run(kEndless, {}, {8, 1, 1, cfg3(128, 1, 8)}, 64));
  EXPECT_GE(control.looks(), counts_.total()[perf::kQpuActive] / (2 * kInstructionSlice));
  EXPECT_GE(control.looks(), 100'000 / kInstructionSlice);
}

TEST_P(DispatchTest, FaultsNameTheInstruction) {
  EXPECT_TRUE(run(kIncrement, {0x40000000, 0xffffffc7}, {64, 1, 1, cfg3(32, 1, 2)}, 128)) << error_.message();
  EXPECT_NE(space_->take_faults().count, 0u);
  const mmu::FaultPlace place = mmu::take_fault_place(*space_);
  EXPECT_STREQ(place.stage, "compute");
  EXPECT_EQ(place.program, kCode);
  EXPECT_EQ(place.instruction, kCode + 8);
}

TEST_P(DispatchTest, AnyRegisterValuesAreSafe) {
  const std::vector<uint64_t> nothing = program({});
  job_.memory.write(kCode, nothing.data(), nothing.size() * sizeof(uint64_t));
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::array<uint32_t, 7> cfg;
    for (uint32_t& word : cfg) word = random();
    cfg[4] %= 1000;
    cfg[5] = kCode | (cfg[5] & 5);
    EXPECT_TRUE(dispatch(job_, cfg, round % 4 == 0, space_.get())) << error_.message();
  }
}

TEST_P(DispatchTest, EndlessProgramsCanBeCancelled) {
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    cancel_ = true;
  });
  EXPECT_FALSE(run(kEndless, {}, {100, 1, 1, cfg3(16, 1, 1)}, 100));
  later.join();
  EXPECT_FALSE(error_.failed());
}

TEST_P(DispatchTest, IsNotOfVideoCoreIv) {
  job_.profile = chip::find_profile("rpi3");
  EXPECT_FALSE(dispatch(job_, {}, false, space_.get()));
  EXPECT_EQ(error_.message(), "V3D 2.1 has no compute jobs");
}

}  // namespace
}  // namespace v3d::csd
