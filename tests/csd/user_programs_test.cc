#include "gpu/csd/user_programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "gpu/base/job_context.h"
#include "gpu/base/thread_pool.h"
#include "gpu/chip/profile.h"
#include "gpu/perf/counters.h"
#include "gpu/qpu/isa/vc4_assembler.h"
#include "gpu/qpu/run/program_cache.h"
#include "tests/csd/user_queue.h"

namespace v3d::csd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class UserProgramsTest : public testing::Test {
 protected:
  static constexpr GpuAddr kUniforms = 0x8000, kData = 0xa000;

  UserProgramsTest() : bytes_(0x10000), pool_(0), qpus_(12) {}

  void add(GpuAddr code, std::string_view text, uint64_t most = 100'000) {
    const qpu::Assembly assembly = qpu::vc4::assemble(text);
    for (const qpu::AssemblyError& error : assembly.errors) ADD_FAILURE() << to_string(error);
    memory().write(code, assembly.words.data(), assembly.words.size() * sizeof(uint64_t));
    queue_.waiting.push_back({code, kUniforms, most, 0});
  }
  /// Of a job of its own. @return  its message
  std::string run(bool alone) {
    JobError error;
    perf::JobCounts counts;
    JobControl control;
    JobContext job{.memory = memory(),
                   .profile = chip::find_profile("rpi3"),
                   .pool = &pool_,
                   .programs = &programs_,
                   .counts = &counts,
                   .error = &error,
                   .cancel = &control.cancelled(),
                   .control = &control};
    if (cancelled_) control.cancel();
    qpus_.run(job, queue_, alone);
    instructions_ = counts.total().values[perf::kQpuActive];
    return error.message();
  }
  Memory memory() { return Memory(bytes_.data()); }
  uint32_t word(GpuAddr address) { return memory().load<uint32_t>(address); }

  std::vector<uint8_t> bytes_;
  ThreadPool pool_;
  qpu::ProgramCache programs_{chip::Generation::k21};
  UserQpus qpus_;
  TestQueue queue_;
  bool cancelled_ = false;
  uint64_t instructions_ = 0;
};

TEST_F(UserProgramsTest, DecodesWhatItRunsAgainOnce) {
  for (int job = 0; job < 3; ++job) {
    add(0x1000, "nop\nend");
    EXPECT_EQ(run(true), "");
    EXPECT_EQ(programs_.chunks(), 1u);
  }
}

constexpr char kStoreQpu[] =  // the QPU's number, at 0xa000 and 64 bytes for each
    "load_imm r3, nop, 0xa000\n"
    "mov r0, qpu\n"
    "shl r1, r0, 6\n"
    "load_imm vw_setup, nop, 0x1a00\n"
    "mov vpm, r0\n"
    "load_imm vw_setup, nop, 0x80904000\n"
    "add vw_addr, r3, r1\n"
    "mov nop, vpm_st_wait\n"
    "end\n";

TEST_F(UserProgramsTest, RunsEachOnAQpuThatIsFree) {
  queue_.reserved = 0b101;
  add(0x1000, kStoreQpu);
  queue_.waiting.push_back(queue_.waiting.front());
  EXPECT_EQ(run(true), "");
  EXPECT_THAT(queue_.ended, ElementsAre(0x1000, 0x1000));
  EXPECT_THAT(queue_.qpus, ElementsAre(1, 3));
  EXPECT_EQ(word(kData + 64), 1u);
  EXPECT_EQ(word(kData + 192), 3u);
  EXPECT_GT(instructions_, 20u);
}

TEST_F(UserProgramsTest, TellsWhatHasBeenExecutedBeforeAProgramEnds) {
  add(0x1000, "nop\nnop\nend\n");
  add(0x2000, "load_imm r0, nop, 2000\nloop:\nsub.setf r0, r0, 1\nbranch.any_zc loop\nnop\nnop\nnop\nend\n");
  EXPECT_EQ(run(true), "");
  ASSERT_EQ(queue_.told_at_end.size(), 2u);
  EXPECT_LT(queue_.told_at_end[0], 600u);
  EXPECT_GT(queue_.told_at_end[1], 8000u);
  EXPECT_EQ(queue_.told_at_end[1], instructions_);
}

TEST_F(UserProgramsTest, RunsMoreThanThereAreQpus) {
  add(0x1000, "end\n");
  for (int n = 0; n < 30; ++n) queue_.waiting.push_back(queue_.waiting.front());
  EXPECT_EQ(run(true), "");
  EXPECT_EQ(queue_.ended.size(), 31u);
}

TEST_F(UserProgramsTest, LetsProgramsWaitForOthersOfTheSameJob) {
  add(0x1000, "sacq 3\nmov host_int, 1\nend\n");
  add(0x2000, "srel 3\nend\n");
  EXPECT_EQ(run(true), "");
  EXPECT_THAT(queue_.ended, ElementsAre(0x2000, 0x1000));
  EXPECT_TRUE(queue_.interrupted);
}

TEST_F(UserProgramsTest, KeepsWhatWaitsForProgramsThatAreStillToCome) {
  add(0x1000, "sacq 3\nend\n");
  EXPECT_EQ(run(false), "");
  EXPECT_THAT(queue_.ended, ElementsAre());
  add(0x2000, "srel 3\nend\n");
  EXPECT_EQ(run(false), "");
  EXPECT_THAT(queue_.ended, ElementsAre(0x2000, 0x1000));
}

TEST_F(UserProgramsTest, SaysWhatWaitsForEver) {
  add(0x1000, "sacq 3\nend\n");
  EXPECT_EQ(
      run(true),
      "the user program at 0x00001000 on QPU 0 waits for a semaphore or the mutex at 0x00001000, and nothing "
      "else runs");
  // The QPUs are free again.
  add(0x2000, "end\n");
  EXPECT_EQ(run(true), "");
  EXPECT_THAT(queue_.ended, ElementsAre(0x2000));
}

TEST_F(UserProgramsTest, EndsWhatTakesTooLong) {
  add(0x1000, "loop:\nbranch loop\nnop\nnop\nnop\n", 1000);
  EXPECT_THAT(run(true), HasSubstr("does not end in its time (1000 instructions)"));
  EXPECT_EQ(instructions_, 1000u);
}

TEST_F(UserProgramsTest, SaysWhyAProgramHangs) {
  add(0x1000, "load_tmu0\nend\n");
  EXPECT_EQ(
      run(true),
      "the user program at 0x00001000 on QPU 0 cannot go on at 0x00001000: a load from a TMU without an "
      "outstanding lookup");
}

TEST_F(UserProgramsTest, StartsWhatHasBeenChangedInMemory) {
  add(0x1000, "load_tmu0\nend\n");
  EXPECT_NE(run(true), "");
  add(0x1000, "end\n");
  EXPECT_EQ(run(true), "");
}

TEST_F(UserProgramsTest, RunsNothingOnceItIsCancelled) {
  add(0x1000, "end\n");
  cancelled_ = true;
  EXPECT_EQ(run(true), "");
  EXPECT_THAT(queue_.ended, ElementsAre());
}

}  // namespace
}  // namespace v3d::csd
