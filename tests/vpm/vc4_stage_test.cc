/// @file Vertex programs of VideoCore IV: rows in, rows out, textures, and programs that do not end.
#include "gpu/vpm/vc4_stage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "gpu/base/qpu_place.h"
#include "gpu/base/work_meter.h"
#include "gpu/qpu/isa/vc4_assembler.h"
#include "gpu/vpm/packed_positions.h"
#include "tests/vpm/test_job.h"

namespace v3d::vpm {
namespace {

using testing::HasSubstr;

class Vc4Stages : public testing::Test {
 protected:
  const Lanes* run(std::string_view text) {
    const qpu::Assembly assembly = qpu::vc4::assemble(text);
    EXPECT_TRUE(assembly.errors.empty());
    const GpuAddr code = test_.put(assembly.words), uniforms = test_.put(assembly.uniforms);
    program_ = std::make_unique<qpu::vc4::Program>(code, std::make_shared<qpu::ProgramRoom>(16));
    const Vc4Stage stage{"vertex", program_.get(), {.code = code, .uniforms = uniforms}};
    return runner_.run(test_.job(), stage, in_, 2);
  }

  TestJob test_;
  tmu::Unit tmu_{test_.memory(), test_.job().profile->generation};
  Vc4StageRunner runner_{tmu_};
  std::unique_ptr<qpu::vc4::Program> program_;
  alignas(64) Lanes in_[2] = {kLaneIndex, kLaneIndex * 100u};
};

TEST_F(Vc4Stages, RowsGoInAndOut) {
  const Lanes* const out = run(R"(
      load_imm vr_setup, nop, 0x00201a00
      load_imm vw_setup, nop, 0x00001a00
      mov r0, vpm_read
      mov r1, vpm_read
      add vpm, r0, r1
      mov vpm, uni
      end
      .uniform 7)");
  EXPECT_EQ(test_.error(), "");
  EXPECT_EQ(uint32_t{out[0][3]}, 303u);
  EXPECT_EQ(uint32_t{out[1][15]}, 7u);
  EXPECT_EQ(uint32_t{out[2][0]}, 0u);
  EXPECT_GT(runner_.instructions, 5u);
}

// A signal and a mapping of the host for each page, which take the time of hundreds of instructions.
TEST_F(Vc4Stages, AccessesToUnmappedPagesCostInstructions) {
  constexpr uint64_t kReads = 10, kPages = kLanes;
  std::string text =
      "load_imm r1, nop, 0x40000000\nload_imm r2, nop, 0x10000\nmov r0, elem\nload_imm r3, nop, 12\n"
      "shl r0, r0, r3\nadd r0, r0, r1\n";
  for (uint64_t n = 0; n < kReads; ++n) text += "add r0, r0, r2\nmov tmu0_s, r0\nload_tmu0\n";
  static_assert(kPages * kFaultCost > kInstructionSlice);
  // Each ends what runs between two looks at the job, and uses up as much of what it may execute.
  test_.job().instruction_limit = kReads / 2 * kInstructionSlice;
  run(text + "end\n");
  EXPECT_THAT(test_.error(), HasSubstr("does not end"));
  EXPECT_EQ(test_.space().take_faults().count, kReads / 2 * kPages);
  EXPECT_LT(runner_.instructions, 3 * kReads) << "they are no instructions";
}

TEST_F(Vc4Stages, WhatDoesNotEndIsAHang) {
  test_.job().instruction_limit = 1000;
  run(R"(
    again:
      branch again
      nop
      nop
      nop)");
  EXPECT_TRUE(test_.hangs());
  EXPECT_THAT(test_.error(), HasSubstr("vertex program"));
  EXPECT_THAT(test_.error(), HasSubstr("does not end"));
}

}  // namespace
}  // namespace v3d::vpm
