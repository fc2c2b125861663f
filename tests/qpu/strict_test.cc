#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "gpu/qpu/check/poison.h"
#include "gpu/qpu/isa/assembler.h"
#include "gpu/qpu/trace/watch.h"
#include "tests/qpu/machine.h"
#include "tests/qpu/stage_room.h"

namespace v3d::qpu {
namespace {

using enum chip::Generation;

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kEnd = "\nthrsw\nnop\nnop\n";

/// Runs texts strictly, and keeps what the thread holds at the end.
class StrictTest : public testing::Test {
 protected:
  std::vector<std::string> run(const std::string& text, chip::Generation generation = k71, int jobs = 1) {
    const Assembly assembly = assemble(generation, text + kEnd);
    for (const AssemblyError& error : assembly.errors) ADD_FAILURE() << to_string(error) << "\n" << text;
    Machine m(generation);
    std::memcpy(m.memory().host(Machine::kCode), assembly.words.data(), assembly.words.size() * 8);
    m.uniforms({1, 2, 3, 4});
    tmu::Unit unit(m.memory(), generation);
    WatchOptions options;
    options.hazard_sink = [](std::string_view) {};
    options.hazards = kWrongHazardKinds;
    options.strict = true;
    Watch watch(generation, std::move(options));
    std::vector<std::string> broken;
    for (int n = 0; n < jobs; ++n) {
      m.reset();
      m.t().rf[2] = m.t().rf[3] = splat(7u);  // payload of 7.1
      m.t().tmu = &unit;
      if (tlb_) {
        room_.give_to(m.t(), true);
        for (Varying& v : room_.components()) v.vp = v.c = splat(5u);
      }
      const auto job = watch.begin_job(1);
      job->start(stage_, m.t());
      EXPECT_EQ(m.resume(), Stop::kEnd);
      for (std::string& rule : job->take_broken_rules()) broken.push_back(std::move(rule));
    }
    for (int r = 0; r < kNumRegisters; ++r) at_end_[r] = m.t().at(static_cast<Register>(r))[0];
    return broken;
  }

  const char* stage_ = "compute";
  bool tlb_ = false;
  StageRoom room_;
  uint32_t at_end_[kNumRegisters] = {};
};

TEST_F(StrictTest, RegistersBeginWithPoison) {
  EXPECT_THAT(run("add rf5, rf2, rf3\nmov rf6, 1\nadd rf7, rf6, rf5"), IsEmpty());
  EXPECT_EQ(at_end_[5], 14u);
  EXPECT_EQ(at_end_[7], 15u);
  EXPECT_EQ(at_end_[20], kPoison);
  EXPECT_THAT(run("mov rf5, rf20"),
              ElementsAre(HasSubstr("undefined: unwritten: instruction 0, \"mov rf5, rf20")));
  EXPECT_EQ(at_end_[5], kPoison);
  // Nothing of a stage without a payload.
  stage_ = "vertex";
  EXPECT_THAT(run("mov rf5, rf3"),
              ElementsAre(HasSubstr("vertex program at 0x00001000: undefined: unwritten")));
  EXPECT_EQ(at_end_[5], kPoison);
}

TEST_F(StrictTest, WhatIsWrittenMayBeRead) {
  EXPECT_THAT(run("ldunif\nmov rf5, rf0"), IsEmpty());
  EXPECT_EQ(at_end_[5], 1u);
  EXPECT_THAT(run("mov recip, rf0\nnop\nmov rf5, r4\nldunif\nmov rf6, r5", k42), IsEmpty());
  tlb_ = true;
  stage_ = "fragment";
  EXPECT_THAT(run("ldvary.rf5\nnop\nmov rf6, rf0"), IsEmpty());
  EXPECT_EQ(at_end_[6], 5u);
}

TEST_F(StrictTest, TheTileBufferTakesAnyWord) {
  tlb_ = true;
  stage_ = "fragment";
  EXPECT_THAT(run("mov tlb, rf20"), IsEmpty());
}

TEST_F(StrictTest, ResultsThatAreReadTooEarlyArePoison) {
  EXPECT_THAT(run("mov recip, rf0\nmov rf5, r4", k42),
              ElementsAre(HasSubstr("undefined: sfu-r4: instruction 1")));
  EXPECT_EQ(at_end_[5], kPoison);
  EXPECT_THAT(run("mov unifa, rf2\nnop\nldunifarf.rf5\nnop"),
              ElementsAre(HasSubstr("unifa-early: instruction 2")));
  EXPECT_EQ(at_end_[5], kPoison);
}

// C lands in rf0 after the instruction that writes there, too.
TEST_F(StrictTest, PoisonStaysWhereSomethingLandsLater) {
  tlb_ = true;
  stage_ = "fragment";
  EXPECT_THAT(run("ldvary.rf5\nmov rf0, rf3\nmov rf6, rf0"), ElementsAre(HasSubstr("ldvary-c-clash")));
  EXPECT_EQ(at_end_[6], kPoison);
}

TEST_F(StrictTest, WordsBeyondTheQueueArePoison) {
  std::string loads, pops;
  for (int n = 0; n < 17; ++n) loads += "mov tmua, rf2\n", pops += "ldtmu.rf5\n";
  EXPECT_THAT(run(loads + pops), ElementsAre(HasSubstr("undefined: tmu-lost: instruction 16")));
  EXPECT_EQ(at_end_[5], kPoison);
}

// A job that a daemon has seen before is no better than the first one.
TEST_F(StrictTest, EachJobReportsItsRules) {
  const auto broken = run("mov rf5, rf20\nmov unifa, rf2\nnop\nldunifarf.rf6\nnop", k71, 3);
  ASSERT_EQ(broken.size(), 6u);
  EXPECT_THAT(broken[5], HasSubstr("unifa-early: instruction 3"));
}

}  // namespace
}  // namespace v3d::qpu
