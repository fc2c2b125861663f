#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "gpu/qpu/isa/assembler.h"
#include "gpu/qpu/trace/watch.h"
#include "tests/qpu/machine.h"

namespace v3d::qpu {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Runs a text of 7.1 as a compute thread and returns the trace that `selection` chooses.
class TraceTest : public testing::Test {
 protected:
  TraceSelection parse(const std::string& text) {
    std::string error;
    const auto selection = TraceSelection::parse(text, &error);
    EXPECT_TRUE(selection) << error;
    return selection.value_or(TraceSelection{});
  }
  std::string trace(const std::string& program, const std::string& selection = "") {
    const Assembly assembly = assemble(chip::Generation::k71, program + "\nthrsw\nnop\nnop\n");
    EXPECT_TRUE(assembly.errors.empty());
    std::memcpy(m_.memory().host(Machine::kCode), assembly.words.data(), assembly.words.size() * 8);
    std::string text;
    WatchOptions options;
    options.trace = parse(selection);
    options.trace_sink = [&](std::string_view part) { text += part; };
    Watch watch(chip::Generation::k71, std::move(options));
    const auto job = watch.begin_job(3);
    job->start(stage_, m_.t());
    stop_ = m_.resume();
    return text;
  }

  Machine m_{chip::Generation::k71};
  const char* stage_ = "compute";
  Stop stop_ = Stop::kEnd;
};

TEST_F(TraceTest, ShowsInputsAndResults) {
  for (uint32_t n = 0; n < 16; ++n) m_.t().rf[2][n] = n;
  m_.t().rf[3] = splat(0x00020001u);
  const std::string text = trace("add rf1, rf2, 3 ; fmul rf5, rf6, rf6");
  EXPECT_EQ(stop_, Stop::kEnd);
  EXPECT_THAT(text,
              StartsWith("==== job 3, compute program at 0x00001000, batch 0, TIDX 0, workgroup 1:2:0\n"));
  EXPECT_THAT(text, HasSubstr("\n   0  0x00001000  add rf1, rf2, 3               ; fmul rf5, rf6, rf6\n"));
  EXPECT_THAT(text, HasSubstr("    add rf2           0..7  00000000 00000001 00000002 00000003 00000004"));
  EXPECT_THAT(text, HasSubstr("                      8..15 0000000b 0000000c 0000000d"));
  EXPECT_THAT(text, HasSubstr("    mul rf6                all  00000000 = 0\n"));
  EXPECT_THAT(text, HasSubstr("the thread ends"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120u) << line;
}

TEST_F(TraceTest, ShowsFlagsAndConditions) {
  for (uint32_t n = 0; n < 16; ++n) m_.t().rf[2][n] = n & 1;
  const std::string text = trace("mov.pushz -, rf2\nmov.ifa rf1, 7");
  EXPECT_THAT(text, HasSubstr("flags                  A 0000 -> 5555  B 0000 -> 0000"));
  EXPECT_THAT(text, HasSubstr("-> rf1          0..7  00000007        . 00000007        ."));
}

TEST_F(TraceTest, ShowsUniformsAndMemory) {
  m_.uniforms({0x3f800000, 42});
  const std::string text = trace("nop ; nop ; ldunif\nldunifrf.rf5\nmov unifa, rf0", "values=both");
  EXPECT_THAT(text, HasSubstr("ldunif -> rf0          all  3f800000 = 1\n"));
  EXPECT_THAT(text, HasSubstr("uniform                0x00020000: 3f800000 = 1\n"));
  EXPECT_THAT(text, HasSubstr("ldunifrf -> rf5        all  0000002a = 5.88545e-44\n"));
  EXPECT_THAT(text, HasSubstr("-> unifa             all  3f800000 = 1\n"));
}

TEST_F(TraceTest, ShowsBranches) {
  const std::string text = trace("mov.pushz -, 1\nb.anya 8\nnop\nnop\nnop\nb.anyna 8\nnop\nnop\nnop\nnop");
  EXPECT_THAT(text, HasSubstr("branch                 not taken; A 0000 of lanes ffff"));
  EXPECT_THAT(text, HasSubstr("branch                 taken, to 0x00001050 after three more instructions"));
  EXPECT_THAT(text, HasSubstr("continues at           0x00001050"));
}

TEST_F(TraceTest, ShowsHangs) {
  const std::string text = trace("ldtmu.rf1");
  EXPECT_EQ(stop_, Stop::kHang);
  EXPECT_THAT(text, HasSubstr("hangs                  ldtmu without an outstanding lookup"));
  EXPECT_THAT(trace(".word 0"), HasSubstr(".word 0x0000000000000000  (no instruction)"));
}

TEST_F(TraceTest, ValuesAndLanes) {
  for (uint32_t n = 0; n < 16; ++n) m_.t().rf[2][n] = ~n;
  const std::string program = "mov rf1, rf2";
  EXPECT_THAT(trace(program, "values=int,lanes=1-2"),
              HasSubstr("add rf2           1..2           -2          -3\n"));
  m_.reset();
  m_.t().rf[2] = as_uint(splat(1.5f));
  EXPECT_THAT(trace(program, "values=float"), HasSubstr("add rf2                all  1.5\n"));
  m_.reset();
  EXPECT_THAT(trace(program, "values=hex"), HasSubstr("add rf2                all  00000000\n"));
}

TEST_F(TraceTest, Instructions) {
  const std::string program = "mov rf1, 1\nmov rf1, 2\nmov rf1, 3";
  const std::string text = trace(program, "instructions=1-1");
  EXPECT_THAT(text, HasSubstr("mov rf1, 2"));
  EXPECT_THAT(text, Not(HasSubstr("mov rf1, 1")));
  EXPECT_THAT(text, Not(HasSubstr("mov rf1, 3")));
  m_.reset();
  EXPECT_THAT(trace(program, "instructions=1"), Not(HasSubstr("mov rf1, 2")));
}

// Which threads the selections choose.
TEST_F(TraceTest, Selection) {
  const auto chosen = [&](const std::string& selection) {
    m_.reset();
    m_.t().rf[3] = splat(0x00020001u);
    m_.t().rf[2] = splat(5u);
    m_.t().tidx = 7;
    m_.t().pixel_x = kLaneIndex;
    return !trace("nop", selection).empty();
  };
  EXPECT_TRUE(chosen(""));
  EXPECT_TRUE(chosen("job=3"));
  EXPECT_TRUE(chosen("job=1-4,stage=compute"));
  EXPECT_FALSE(chosen("job=4"));
  EXPECT_TRUE(chosen("stage=csd"));
  EXPECT_FALSE(chosen("stage=fragment"));
  EXPECT_TRUE(chosen("program=0x1000"));
  EXPECT_FALSE(chosen("program=0x1008"));
  EXPECT_FALSE(chosen("batch=1"));
  EXPECT_TRUE(chosen("batch=all"));
  EXPECT_TRUE(chosen("workgroup=1:2:5"));
  EXPECT_FALSE(chosen("workgroup=1:2:6"));
  EXPECT_TRUE(chosen("tidx=7"));
  EXPECT_FALSE(chosen("tidx=6"));
  EXPECT_FALSE(chosen("pixel=3:0"));
  stage_ = "fragment";
  EXPECT_TRUE(chosen("pixel=3:0"));
  EXPECT_FALSE(chosen("pixel=3:1"));
}

TEST_F(TraceTest, CountsBatches) {
  WatchOptions options;
  std::string text;
  options.trace = parse("batch=1-2");
  options.trace_sink = [&](std::string_view part) { text += part; };
  Watch watch(chip::Generation::k71, std::move(options));
  const auto job = watch.begin_job(1);
  for (int n = 0; n < 4; ++n) {
    m_.reset();
    job->start("compute", m_.t());
    EXPECT_EQ(m_.t().observer != nullptr, n == 1 || n == 2);
    EXPECT_EQ(m_.run_program({}), Stop::kEnd);
  }
  EXPECT_THAT(text, HasSubstr("batch 1,"));
  EXPECT_THAT(text, HasSubstr("batch 2,"));
}

TEST_F(TraceTest, BadSelections) {
  for (const char* text :
       {"job", "job=", "job=x", "job=5-3", "stage=pixel", "lanes=0-16", "pixel=3", "pixel=1:2:3",
        "workgroup=1:2", "values=octal", "colour=red", "tidx=1:2", "program=0xfffffffff"}) {
    std::string error;
    EXPECT_FALSE(TraceSelection::parse(text, &error)) << text;
    EXPECT_THAT(error,
                StartsWith(std::string("trace selection: \"") + text + "\" is not understood. Comma-"));
  }
}

// An observer changes nothing.
TEST_F(TraceTest, SameResults) {
  const std::string program = R"(
    mov rf1, 5
  loop:
    sub.pushz rf1, rf1, 1 ; fmul rf3, rf3, rf3
    b.anyna loop
    add rf2, rf2, rf1
    mov.ifa rf4, 7
    eidx rf5 ; mov rf6, rf5
    shl rf5, rf5, 3 ; umul24 rf7, rf5, rf1
  )";
  m_.t().rf[3] = as_uint(splat(0.1f));
  trace(program);
  Thread watched = m_.t();
  m_.reset();
  m_.t().rf[3] = as_uint(splat(0.1f));
  m_.resume();
  for (int r = 0; r < 64; ++r) EXPECT_EQ(lanes(watched.rf[r]), lanes(m_.t().rf[r])) << r;
  EXPECT_EQ(watched.flag_a, m_.t().flag_a);
  EXPECT_EQ(watched.instructions, m_.t().instructions);
}

TEST_F(TraceTest, ShowsTheModeOfDots) {
  m_.t().rf[1] = m_.t().rf[2] = splat(0xffu);
  const auto text = trace("setnnmode_su\nv8dot rf3, rf1, rf2\nsetnnmode_ss ; v8dot tmud, rf1, rf2");
  EXPECT_THAT(text, HasSubstr("nn mode                uu -> su\n"));
  EXPECT_THAT(text, HasSubstr("nn mode                su\n"));
  EXPECT_THAT(text, HasSubstr("-> rf3               all  ffffff01"));
  EXPECT_THAT(text, HasSubstr("nn mode                su -> ss\n"));
  EXPECT_THAT(text, HasSubstr("-> tmud              all  00000001"));
}

}  // namespace
}  // namespace v3d::qpu
