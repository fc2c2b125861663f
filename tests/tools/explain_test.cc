#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gpu/qpu/isa/assembler.h"
#include "tools/cli/explain/explanation.h"
#include "tools/cli/explain/mending.h"

namespace v3d::tools::explain {
namespace {

using enum chip::Generation;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::Not;

const chip::Profile& rpi5() { return *chip::find_profile("rpi5"); }
const chip::Profile& rpi4() { return *chip::find_profile("rpi4"); }

std::vector<uint64_t> words_of(chip::Generation generation, const std::string& text) {
  const qpu::Assembly assembly = qpu::assemble(generation, text);
  for (const qpu::AssemblyError& error : assembly.errors) ADD_FAILURE() << to_string(error) << "\n" << text;
  return assembly.words;
}

Explanation explained(const std::string& text, const chip::Profile& profile = rpi5(),
                      bool four_threads = false) {
  auto explanation = explain(profile, words_of(profile.generation, text + "\nend\n"), four_threads);
  EXPECT_TRUE(explanation.ok()) << explanation.status();
  return *std::move(explanation);
}

TEST(Explain, StallsAreTheTimingModels) {
  const Explanation e =
      explained("mov rf1, 1\nrecip rf3, rf1\nfmul rf4, rf3, rf3\nrecip rf5, rf1\nnop\nfmul rf6, rf5, rf5");
  EXPECT_EQ(e.instructions[2].alone_stalled, 4);  // sfu_stall
  EXPECT_THAT(e.instructions[2].notes, Contains(HasSubstr("uses the SFU's result at once")));
  EXPECT_EQ(e.instructions[5].alone_stalled, 0);
  EXPECT_EQ(e.path_instructions, e.instructions.size() - 1);  // the last one of the end is not executed
  EXPECT_GE(e.alone_clocks, e.path_instructions * 4 + 4);
}

TEST(Explain, OtherThreadsHideLookups) {
  const std::string lookup =
      "mov rf1, 1\nmov tmua, rf1 ; nop ; thrsw\nnop\nnop\nldtmu.rf2\nadd rf3, rf2, rf2";
  const Explanation two = explained(lookup), four = explained(lookup, rpi5(), true);
  EXPECT_EQ(two.lookups, 1u);
  EXPECT_EQ(two.words, 1u);
  EXPECT_LT(four.clocks, four.alone_clocks);
  EXPECT_LE(four.clocks, two.clocks);
  EXPECT_THAT(two.advice, Each(Not(HasSubstr("no thrsw stands"))));
  EXPECT_THAT(explained("mov rf1, 1\nmov tmua, rf1\nldtmu.rf2").advice,
              Contains(HasSubstr("no thrsw stands")));
  EXPECT_THAT(two.advice, Contains(HasSubstr("--four-threads")));
  EXPECT_THAT(four.advice, Each(Not(HasSubstr("--four-threads"))));
}

TEST(Explain, MissingNopsAreCounted) {
  const Explanation e = explained("mov rf1, 1\nmov unifa, rf1\nnop\nldunifarf.rf5");
  ASSERT_THAT(e.instructions[3].notes, Contains(HasSubstr("undefined: unifa-early: ")));
  EXPECT_THAT(e.instructions[3].notes, Contains(testing::AllOf(HasSubstr("[Mesa qpu_schedule.c, "),
                                                               HasSubstr("; 2 nops in front of it"))));
  EXPECT_THAT(e.advice, Contains(HasSubstr("1 rule is broken")));
  const Explanation old = explained("mov rf1, 1\nmov recip, rf1\nmov rf2, r4", rpi4());
  EXPECT_THAT(old.instructions[2].notes, Contains(HasSubstr("sfu-r4")));
  EXPECT_THAT(old.instructions[2].notes, Contains(HasSubstr("; 1 nop in front of it would keep the rule")));
}

// Branches over the place lead where they did.
TEST(Explain, NopsInLoopsAreCounted) {
  const auto words = words_of(k71,
                              "loop:\nmov unifa, rf1\nnop\nnop\nldunifarf.rf5\nsub.pushz rf4, rf4, 1\n"
                              "b.anyna loop\nnop\nnop\nnop\nend\n");
  EXPECT_EQ(nops_that_mend(k71, false, words, {3, qpu::Hazard::kUnifaEarly}), 1);
  // What no nop mends.
  const auto lost = words_of(k71, "mov recip, rf1\nend\n");
  EXPECT_EQ(nops_that_mend(k71, false, lost, {0, qpu::Hazard::kNoAddress}), 0);
}

TEST(Explain, RegistersRowsAndBranchesAreCounted) {
  const Explanation e = explained(
      "mov rf1, 1\nmov rf40, 2\nadd rf2, rf1, rf40\nmov.pushz -, rf2\nb.anya over\nnop\nnop\nnop\n"
      "mov rf3, rf2\nnop\nover:\nstvpmv 4, rf2\nstvpmv 5, rf1");
  EXPECT_EQ(e.registers_used, 41u);
  EXPECT_GE(e.registers_alive, 2u);
  EXPECT_LT(e.registers_alive, 8u);
  EXPECT_THAT(e.advice, Contains(HasSubstr("with other names it fits")));
  EXPECT_EQ(e.branches, 1u);
  EXPECT_EQ(e.lane_branches, 1u);
  EXPECT_EQ(e.led_around, 2u);
  EXPECT_EQ(e.vpm_rows, 6u);
  EXPECT_TRUE(e.instructions[8].on_path);  // what the branch would lead around
}

TEST(Explain, SpillsGoToMemoryOfTheThread) {
  const Explanation e = explained(
      "tidx rf1\nshl rf2, rf1, 8\nmov tmud, rf3\nmov tmua, rf2\nmov tmua, rf2\nldtmu.rf4\nmov rf5, 1\nmov "
      "tmua, rf5\nldtmu.rf6");
  EXPECT_EQ(e.lookups, 3u);
  EXPECT_EQ(e.tidx_lookups, 2u);
}

TEST(Explain, RefusesWhatItDoesNotKnow) {
  const std::vector<uint64_t> words(1, 0);
  const auto old = explain(*chip::find_profile("rpi3"), words, false);
  EXPECT_EQ(old.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_FALSE(explain(rpi5(), {}, false).ok());
  EXPECT_FALSE(explain(rpi5(), std::vector<uint64_t>(5000), false).ok());
  // Words that are no instructions are told, not refused.
  EXPECT_TRUE(explain(rpi5(), std::vector<uint64_t>(3, ~uint64_t{0}), false).ok());
}

TEST(Explain, TextNamesTheBoard) {
  const std::string text = to_text(rpi5(), explained("mov rf1, 1"));
  EXPECT_THAT(text, HasSubstr("rpi5: 9 instructions, 2 threads a QPU: 24 of 16 lanes on 12 QPUs\n"));
  EXPECT_THAT(text, HasSubstr("  mov rf1, 1 "));
  EXPECT_THAT(text, HasSubstr("\n   3                nop "));  // it does not stall
  EXPECT_THAT(text, HasSubstr("\n   8      ?      ?  nop "));
}

}  // namespace
}  // namespace v3d::tools::explain
