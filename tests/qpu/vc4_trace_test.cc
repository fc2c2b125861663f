#include "gpu/qpu/trace/vc4_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "gpu/qpu/trace/watch.h"
#include "tests/qpu/vc4_machine.h"

namespace v3d::qpu::vc4 {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

Lanes each_lane() {
  Lanes v = {};
  for (uint32_t n = 0; n < kLanes; ++n) v[n] = n;
  return v;
}

class Vc4TraceTest : public testing::Test {
 protected:
  /// Runs the thread of m_ and returns the trace that `selection` chooses.
  std::string trace(std::string_view program, const std::string& selection = "",
                    const char* stage = "fragment") {
    m_.load(program, Machine::kCode, Machine::kUniforms);
    std::string text, error;
    WatchOptions options;
    options.trace = TraceSelection::parse(selection, &error);
    EXPECT_TRUE(options.trace) << error;
    options.trace_sink = [&](std::string_view part) { text += part; };
    Watch watch(chip::Generation::k21, std::move(options));
    const auto job = watch.begin_job(3);
    job->start_vc4(stage, *m_.thread);
    m_.run();
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120u) << line;
    return text;
  }

  Machine m_;
};

TEST_F(Vc4TraceTest, ShowsInputsAndResults) {
  m_.thread->ra(2) = each_lane();
  m_.thread->pixel_x = each_lane() + 100u;
  m_.thread->pixel_y = splat(7u);
  m_.thread->ms_flags = splat(15u);
  const std::string text = trace("add rb1, ra2, 3 ; fmul r1, r2, r3\nmov.zs ra4.16a, rb1\nend");
  EXPECT_THAT(
      text,
      StartsWith("==== job 3, fragment program at 0x00001000, batch 0, quads at 100:7 104:7 108:7 112:7\n"));
  EXPECT_THAT(text, HasSubstr("\n   0  0x00001000  sig_small_imm add rb1, ra2, 3 ; fmul r1, r2, r3\n"));
  EXPECT_THAT(text, HasSubstr("    state                  Z 0000  N 0000  C 0000  pixels ffff\n"));
  EXPECT_THAT(text, HasSubstr("    add ra2           0..7  00000000 00000001 00000002 00000003 00000004"));
  EXPECT_THAT(text, HasSubstr("      -> rb1          0..7  00000003 00000004"));
  EXPECT_THAT(text, HasSubstr("    mul r2                 all  00000000 = 0\n"));
  EXPECT_THAT(text, HasSubstr("      -> ra4.16a           no lane\n"));  // Z is nowhere set
  EXPECT_THAT(text, HasSubstr("    the thread ends\n"));
}

TEST_F(Vc4TraceTest, ShowsFlags) {
  m_.thread->ra(2) = each_lane() & 1u;
  const std::string text = trace("nop\nmov.sf nop, ra2\nmov.zc r1, 7\nend");
  EXPECT_THAT(text, HasSubstr("flags                  Z 0000 -> 5555  N 0000 -> 0000  C 0000 -> 0000"));
  EXPECT_THAT(text, HasSubstr("-> r1           0..7         . 00000007        . 00000007"));
}

TEST_F(Vc4TraceTest, ShowsUniformsAndMemory) {
  m_.memory().store(Machine::kData, 0x12345678u);
  const std::string text =
      trace(".uniform 0xa000\nmov tmu0_s, uni\nload_tmu0 nop\nmov r0, r4\nend", "lanes=0-3");
  EXPECT_THAT(text, HasSubstr("    add uni                all  0000a000\n"));
  EXPECT_THAT(text, HasSubstr("      -> tmu0_s            all  0000a000\n"));
  EXPECT_THAT(text, HasSubstr("    uniform                0x00008000: 0000a000\n"));
  EXPECT_THAT(text, HasSubstr("    tmu                    TMU 0 loads words\n"));
  EXPECT_THAT(text, HasSubstr("      returns word 0       all  12345678"));
  EXPECT_THAT(text, HasSubstr("    load_tmu0 -> r4        all  12345678"));
}

TEST_F(Vc4TraceTest, ShowsBranchesAndHangs) {
  const std::string text =
      trace("mov.sf nop, 1\nbranch.any_zs 8\nnop\nnop\nnop\nbranch 8\nnop\nnop\nnop\nnop\nload_tmu0 nop");
  EXPECT_THAT(text, HasSubstr("    branch                 not taken\n"));
  EXPECT_THAT(text,
              HasSubstr("    branch                 taken, to 0x00001050 after three more instructions\n"));
  EXPECT_THAT(text, HasSubstr("    continues at           0x00001050\n"));
  EXPECT_THAT(text,
              HasSubstr("    hangs                  a load from a TMU without an outstanding lookup\n"));
}

TEST_F(Vc4TraceTest, SelectsThreadsAndInstructions) {
  m_.thread->pixel_x = splat(5u);
  m_.thread->pixel_y = splat(6u);
  m_.thread->ms_flags = splat(1u);
  const auto traced = [&](const char* selection) {
    m_.thread->pc = Machine::kCode;
    return !trace("mov r0, 1\nmov r1, 2\nend", selection).empty();
  };
  EXPECT_TRUE(traced("pixel=5:6"));
  EXPECT_FALSE(traced("pixel=6:6"));
  EXPECT_TRUE(traced("job=3,stage=fragment"));
  EXPECT_FALSE(traced("job=2"));
  EXPECT_FALSE(traced("stage=vertex"));
  EXPECT_FALSE(traced("workgroup=0:0:0"));
  m_.thread->pc = Machine::kCode;
  const std::string text = trace("mov r0, 1\nmov r1, 2\nend", "instructions=1-1");
  EXPECT_THAT(text, Not(HasSubstr("mov r0, 1")));
  EXPECT_THAT(text, HasSubstr("mov r1, 2"));
  EXPECT_THAT(text, HasSubstr("(the selection ends here)"));
}

// A program that breaks rules is told once, and again when other words stand there.
TEST_F(Vc4TraceTest, TellsBrokenRules) {
  std::vector<std::string> lines;
  WatchOptions options;
  options.hazard_sink = [&](std::string_view line) { lines.emplace_back(line); };
  Watch watch(chip::Generation::k21, std::move(options));
  const auto run = [&](std::string_view text) {
    m_.load(text, Machine::kCode, Machine::kUniforms);
    lines.clear();
    const auto job = watch.begin_job(1);
    for (int n = 0; n < 2; ++n) {
      m_.thread->pc = Machine::kCode;
      job->start_vc4("vertex", *m_.thread);
      EXPECT_EQ(m_.thread->observer, nullptr);
    }
  };
  run("mov ra1, r0\nmov r1, ra1\nend");
  EXPECT_THAT(lines, ElementsAre(StartsWith("vertex program at 0x00001000: undefined: file-early: "
                                            "instruction 1, \"mov r1, ra1 ; nop nop, r0, r0\": ")));
  run("mov ra1, r0\nmov r1, ra1\nend");
  EXPECT_THAT(lines, IsEmpty());
  run("mov ra1, r0\nmov r2, ra1\nend");
  EXPECT_THAT(lines, ElementsAre(HasSubstr("mov r2, ra1")));
}

}  // namespace
}  // namespace v3d::qpu::vc4
