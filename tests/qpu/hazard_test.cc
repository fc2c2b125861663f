#include "gpu/qpu/check/hazard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "gpu/qpu/check/paths.h"
#include "gpu/qpu/isa/assembler.h"
#include "gpu/qpu/trace/watch.h"
#include "tests/qpu/known_words.h"
#include "tests/qpu/machine.h"
#include "tests/qpu/random_words.h"
#include "tests/qpu/stage_room.h"

namespace v3d::qpu {
namespace {

using enum chip::Generation;

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::vector<uint64_t> words_of(chip::Generation generation, const std::string& text) {
  const Assembly assembly = assemble(generation, text);
  for (const AssemblyError& error : assembly.errors) ADD_FAILURE() << to_string(error) << "\n" << text;
  return assembly.words;
}

// "index tag" of every report.
std::vector<std::string> names(const std::vector<HazardReport>& reports) {
  std::vector<std::string> result;
  for (const HazardReport& r : reports) result.push_back(std::to_string(r.index) + " " + tag(r.hazard));
  return result;
}

// A program that breaks one rule, and the instruction that does.
struct Case {
  Hazard hazard;
  chip::Generation generation;
  const char* program;  ///< without the end of the thread, which follows
  size_t index;
  bool four_threads = false;
  bool whole = false;  ///< the end is there already
};

// A last section, so that ends and TLB accesses are in order; five words. 4.2 has the same text.
#define LAST "thrsw\nthrsw\nnop\nnop\n"

#define LOADS2 "mov tmua, rf5\nmov tmua, rf5\n"
#define LOADS4 LOADS2 LOADS2
#define POPS4 "ldtmu.rf1\nldtmu.rf1\nldtmu.rf1\nldtmu.rf1\n"

constexpr Case kCases[] = {
    {Hazard::kLdvaryCEarly, k71, "ldvary.rf1\nadd rf2, rf0, rf3", 1},
    {Hazard::kLdvaryCEarly, k42, "ldvary.rf1\nadd rf2, r5, rf3", 1},
    {Hazard::kLdvaryCEarly, k71, "ldvary.rf1\nadd rf2, rf0, rf3\nldvary.rf4\nadd rf5, rf0, rf3", 1},
    {Hazard::kLdvaryCEarly, k71, "ldvary.rf1\nadd rf2, rf0, rf3\nnop\nldunif\nadd rf5, rf0, rf3", 1},
    {Hazard::kLdvaryCEarly, k71, "ldvary.rf1\nadd rf2, rf0, rf3\nldvary.rf4\nnop\nadd rf5, rf0, rf3", 1},
    {Hazard::kLdvaryCClash, k71, "ldvary.rf1\nmov rf0, rf3", 1},
    {Hazard::kLdvaryCClash, k71, "ldvary.rf1\nmov rep, rf3", 1},
    {Hazard::kLdvaryCClash, k71, "ldvary.rf1\nldunifrf.rf0", 1},
    {Hazard::kLdunifAfterLdvary, k71, "ldvary.rf1\nldunif", 1},
    {Hazard::kLdunifAfterLdvary, k42, "ldvary.rf1\nldunifa", 1},
    {Hazard::kSfuR4, k42, "mov recip, rf1\nmov rf2, r4", 1},
    {Hazard::kSfuR4, k42, "mov recip, rf1\nmov r4, rf2", 1},
    {Hazard::kSfuR4, k42, "mov recip, rf1\nmov exp, rf2", 1},
    {Hazard::kSfuDst, k42, "recip r1, rf2", 0},
    {Hazard::kPeriph, k71, "mov tmud, rf1 ; mov tmua, rf2", 0},
    {Hazard::kPeriph, k71, "recip rf1, rf2 ; mov tmua, rf2\nldtmu.rf1", 0},
    {Hazard::kPeriph, k71, "stvpmv rf1, rf2 ; mov tmua, rf2\nldtmu.rf1", 0},
    {Hazard::kPeriph, k71, "mov tmuc, rf1 ; nop ; wrtmuc\nmov tmus, rf1\nldtmu.rf1", 0},
    {Hazard::kPeriph, k42, "mov tmua, rf2\nrecip rf1, rf2 ; nop ; ldtmu.r0", 1},
    {Hazard::kTmuWriteLoad, k42, "mov tmua, rf2\nldtmu.r0 ; mov tmud, rf2\nmov tmua, rf2", 1},
    {Hazard::kNoAddress, k71, "mov r0, rf2", 0},
    {Hazard::kNoAddress, k71, "nop ; mov r4, rf2", 0},
    {Hazard::kNoAddress, k71, "mov recip, rf2", 0},
    {Hazard::kNoAddress, k71, "ldunifrf.rsqrt2", 0},
    {Hazard::kNoAddress, k71, "mov vpm, rf2", 0},
    {Hazard::kNoAddress, k71, "mov vpmu, rf2", 0},
    {Hazard::kNoAddress, k71, "mov sync, rf2", 0},
    {Hazard::kNoAddress, k71, "mov syncu, rf2", 0},
    {Hazard::kNoAddress, k42, "mov tmul, rf2", 0},
    {Hazard::kTwoUnif, k71, "mov tmuau, rf1 ; nop ; ldunif\nldtmu.rf1", 0},
    {Hazard::kTwoUnif, k71, "mov tmuau, rf1 ; nop ; ldunifa\nldtmu.rf1", 0},
    {Hazard::kUnifaEarly, k71, "mov unifa, rf1\nnop\nnop\nldunifa", 3},
    {Hazard::kUnifaSwitch, k71, "thrsw\nmov unifa, rf1\nnop", 2},
    {Hazard::kUnifaJump, k71, "b 0\nnop\nmov unifa, rf1\nnop", 3},
    {Hazard::kBranchInSlot, k71, "b 0\nnop\nb.anya 0\nnop\nnop\nnop\nnop", 2},
    {Hazard::kBranchInSlot, k71, "thrsw\nb 0\nnop\nnop\nnop", 1},
    {Hazard::kBranchAfterUnifa, k71, "mov unifa, rf1\nnop\nnop\nb 0\nnop\nnop\nnop", 3},
    {Hazard::kThrswInSlot, k71, "b 0\nthrsw\nnop\nnop\nnop", 1},
    {Hazard::kThrswClose, k71, "thrsw\nnop\nthrsw\nnop\nnop", 2},
    {Hazard::kTwoLast, k71, LAST "thrsw\nthrsw\nnop", 5, false, true},
    {Hazard::kNoLast, k71, "thrsw\nnop\nnop\nthrsw\nnop\nnop", 5, false, true},
    {Hazard::kUnifInSlot, k71, "b 0\nldunif\nnop\nnop", 1},
    {Hazard::kSfuOpInSlot, k71, "thrsw\nrecip rf1, rf2\nnop", 1},
    {Hazard::kSfuInSlot, k42, "thrsw\nmov recip, rf2\nnop", 1},
    {Hazard::kLdvaryInSlot, k71, "thrsw\nnop\nldvary.rf1", 2},
    {Hazard::kLdvaryInSlot, k42, "thrsw\nldvary.rf1\nnop", 1},
    {Hazard::kAccAfterThrsw, k42, "mov r1, rf1\nthrsw\nnop\nnop\nmov rf1, r1", 4},
    {Hazard::kAccAfterThrsw, k42,  // one cause: told where it is seen first
     "mov r1, rf1\nthrsw\nnop\nnop\nmov rf1, r1\nmov rf2, r1\nthrsw\nnop\nnop\nmov rf3, r1", 4},
    {Hazard::kRtopAfterThrsw, k71, "multop rf2, rf1, rf1\nthrsw\nnop\nnop\numul24 rf1, rf1, rf1", 4},
    {Hazard::kRfAtEnd, k71, LAST "mov rf1, rf4 ; nop ; thrsw\nnop\nnop", 4, false, true},
    {Hazard::kRfAtEnd, k71, LAST "thrsw\nmov rf2, rf4\nnop", 5, false, true},
    {Hazard::kRfAtEnd, k71, LAST "mov tmua, rf5\nthrsw\nldtmu.rf3\nnop", 6, false, true},
    {Hazard::kRfAtEnd, k42, LAST "thrsw\nnop\nmov rf9, rf4", 6, false, true},
    {Hazard::kRfReadAtEnd, k71, LAST "thrsw\nmov rf9, rf3\nnop", 5, false, true},
    {Hazard::kRfReadAtEnd, k42, LAST "thrsw\nmov r1, rf0\nnop", 5, false, true},
    {Hazard::kUnifAtEnd, k71, LAST "thrsw\nldunif\nnop", 5, false, true},
    {Hazard::kTlbzAtEnd, k71, LAST "ldvary.rf5 ; thrsw\nnop\nnop", 4, false, true},
    {Hazard::kTmuwtAtEnd, k42, LAST "thrsw\nnop\ntmuwt -", 6, false, true},
    {Hazard::kVpmwtAtEnd, k42, LAST "thrsw\nvpmwt -\nnop", 5, false, true},
    {Hazard::kNoVpmwt, k42, "stvpmv r0, rf5", 7},
    {Hazard::kRf0Flops, k71, LOADS2 "ldtmu.rf5 ; ldunif\nthrsw\nnop\nldtmu.rf6", 5},
    {Hazard::kRf0Flops, k71, "mov tmua, rf5\nthrsw\nldvary.rf4\nldtmu.rf6", 3},
    {Hazard::kSetmsfBranch, k42, "setmsf -, r0\nb.anyap 0\nnop\nnop\nnop", 1},
    {Hazard::kTlbEarly, k71, "mov tlb, rf4", 0},
    {Hazard::kTlbEarly, k71, "thrsw\nnop\nldtlb.rf4", 2},
    {Hazard::kTmuLeftover, k71, LAST "mov tmud, rf5\nthrsw\nnop\nnop", 7, false, true},
    {Hazard::kMsfTmu, k71, "mov tmud, rf5\nsetmsf -, 0\nmov tmua, rf5", 1},
    {Hazard::kRfRange, k71, "mov rf32, rf5", 0, true},
    {Hazard::kRotEarly, k42, "mov r1, rf5\nmov r2, r1 ; rot.1", 1},
    {Hazard::kRotLoaded, k42, "mov tmua, rf5\nldtmu.r1\nmov r2, r1 ; rot.1", 2},
    {Hazard::kRotLoaded, k42, "ldunif\nmov r2, r5 ; rot.1", 1},
    {Hazard::kRotCount, k42, "mov r5, rf5\nmov r2, r1 ; rot", 1},
    {Hazard::kRotDst, k71, "rot rep, rf5, 1", 0},
    {Hazard::kRotDst, k71, "rotq quad, rf5, 1", 0},
    {Hazard::kSmimm, k71, ".word 0x39c03186bb03f000", 0},
    {Hazard::kRunOff, k71, "nop\nnop", 1, false, true},
    {Hazard::kRunOff, k71, "b -80\nnop\nnop\nnop", 3, false, true},
    {Hazard::kTmuUnderflow, k71, "ldtmu.rf5", 0},
    {Hazard::kTmuUnderflow, k42, "mov tmua, rf5\nldtmu.r1\nldtmu.r1", 2},
    {Hazard::kTmuUnderflow, k71, "mov tmud, rf5\nmov tmua, rf4\nldtmu.rf5", 2},  // a store
    {Hazard::kTmuUnderflow, k71, "mov tmuau, rf5\nldtmu.rf1\nldtmu.rf1\nldtmu.rf1\nldtmu.rf1\nldtmu.rf1", 5},
    {Hazard::kTmuUnderflow, k71, "ldtmu.rf5 ; nop ; wrtmuc\nmov tmus, rf4\nldtmu.rf5", 0},
    {Hazard::kTmuLeftover, k71, "mov tmua, rf5", 7},
    {Hazard::kTmuLeftover, k42, "loop: mov tmua, rf5\nb.anyna loop\nnop\nnop\nnop", 11},
    {Hazard::kTmuLeftover, k71, "wrtmuc\nmov tmut, rf5\nmov tmus, rf5", 9},
    {Hazard::kTmuOverflow, k71, LOADS4 "mov tmua, rf5\n" POPS4 "ldtmu.rf1", 4, true},
    {Hazard::kTmuOverflow, k42, LOADS4 LOADS4 "mov tmua, rf5\n" POPS4 POPS4 "ldtmu.rf1", 8},
    {Hazard::kTmuInFifo, k71,
     "mov tmut, rf5\nmov tmut, rf5\nmov tmut, rf5\nmov tmut, rf5\nmov tmua, rf5\nldtmu.rf5", 4, true},
    {Hazard::kTmuData, k71,
     "mov tmud, rf5\nmov tmud, rf5\nmov tmud, rf5\nmov tmud, rf5\nmov tmud, rf5\nmov tmua, rf5", 4},
    {Hazard::kTmuConfig, k71, "wrtmuc\nwrtmuc\nwrtmuc\nwrtmuc\nmov tmus, rf5\nldtmu.rf5", 3},
    {Hazard::kTmuOpen, k71, "mov tmud, rf5\nthrsw\nnop\nnop\nmov tmua, rf5", 3},
    {Hazard::kTsyNoThrsw, k71, LAST "thrsw\nbarrierid syncb\nnop", 6, false, true},
    {Hazard::kNnModePair, k71, "setnnmode_uu\nsetnnmode_ss ; v8dot rf3, rf4, rf5", 1},
    {Hazard::kNnModePair, k71, "setnnmode_uu ; v8dot rf3, rf4, rf5", 0},
    {Hazard::kNnModeStart, k71, "v8dot rf3, rf4, rf5\nsetnnmode_ss", 0},
    {Hazard::kNnModeStart, k71, "b.anya 8\nnop\nnop\nnop\nsetnnmode_ss\nv8dot rf3, rf4, rf5", 5},
    {Hazard::kNnModeCond, k71, "setnnmode_ss.ifa\nv8dot rf3, rf4, rf5", 0},
    {Hazard::kHalfSums, k71, "vfadd rf3, rf4, rf5", 0},
    {Hazard::kHalfSums, k71, "vfsub tmud, rf4, rf5\nmov tmua, rf4", 0},
    {Hazard::kHalfSums, k71, "vfcmp rf3, rf4, rf5", 0},
    {Hazard::kHalfFlags, k71, "vfcmp.pushn -, rf4, rf5", 0},
    {Hazard::kHalfFlags, k71, "vfneg.pushz rf3, rf4", 0},
    {Hazard::kHalfFlags, k42, "vfmin.pushz rf3, rf4, rf5", 0},
    {Hazard::kHalfUnpack, k71, "vfcmp -, rf4.u6, rf5", 0},
};

// Rules that only execution can see, and those that imply another one; tests below.
constexpr Hazard kDynamic[] = {Hazard::kVpmOrder, Hazard::kMsfAfterZ, Hazard::kTsyTmu,   Hazard::kVaryCount,
                               Hazard::kTlbStage, Hazard::kTmuLost,   Hazard::kUnwritten};  // strict_test.cc

constexpr const char* kEnd = "\nthrsw\nthrsw\nnop\nnop\nthrsw\nnop\nnop\n";

TEST(Hazard, EachRule) {
  for (const Case& c : kCases) {
    const std::string program = std::string(c.program) + (c.whole ? "" : kEnd);
    const auto words = words_of(c.generation, program);
    const std::string expected = std::to_string(c.index) + " " + tag(c.hazard);
    EXPECT_THAT(names(check_program(c.generation, c.four_threads, words)), ElementsAre(expected))
        << version_text(c.generation) << "\n"
        << program;
  }
}

TEST(Hazard, EveryRuleHasACase) {
  std::set<Hazard> covered(std::begin(kDynamic), std::end(kDynamic));
  for (const Case& c : kCases) covered.insert(c.hazard);
  for (int n = 0; n < kNumHazards; ++n)
    EXPECT_TRUE(covered.contains(static_cast<Hazard>(n))) << tag(static_cast<Hazard>(n));
}

// asm --check finds nothing of what only runs show, and all of the rest.
TEST(Hazard, WhatCodeShows) {
  for (const Case& c : kCases) EXPECT_NE(shown_by(c.hazard), ShownBy::kRun) << tag(c.hazard);
  for (const Hazard hazard : kDynamic) EXPECT_NE(shown_by(hazard), ShownBy::kCode) << tag(hazard);
}

TEST(Hazard, Text) {
  const auto words = words_of(k71, "ldvary.rf1\nadd rf2, rf0, rf3");
  EXPECT_EQ(to_string(k71, {1, Hazard::kLdvaryCEarly}, words[1]),
            "hardly-meant: ldvary-c-early: instruction 1, \"add rf2, rf0, rf3 ; nop\": reads rf0 (4.2: r5) "
            "right after "
            "ldvary; C "
            "arrives one instruction later");
}

// What is allowed, close to what is not.
TEST(Hazard, Silent) {
  static constexpr std::pair<chip::Generation, const char*> kGood[] = {
      {k71, "nop"},
      {k71,
       "ldvary.rf4\nfmul rf5, rf4, rf3 ; ldvary.rf7\nfadd rf6, rf0, rf5 ; fmul rf8, rf7, rf3 ; ldvary.rf10"},
      {k71, "ldvary.rf4\nnop\nldvary.rf5\nadd rf6, rf0, rf7\nadd rf8, rf0, rf7"},
      {k71, "ldunif\nadd rf6, rf0, rf7\nldvary.rf5\nadd rf6, rf0, rf7\nadd rf8, rf0, rf7"},
      {k71, "mov tmus, rf1 ; nop ; wrtmuc\nldtmu.rf1"},
      {k71, "wrtmuc\nsetmsf -, 0\nmov tmut, rf1\nmov tmus, rf1\nldtmu.rf1"},
      {k71, "mov tmua, rf3\nldtmu.rf1 ; mov tmud, rf2\nmov tmua, rf3"},
      {k71, "mov unifa, rf1\nnop\nnop\nnop\nldunifa"},
      {k71, "mov unifa, rf1\nthrsw\nnop\nnop"},
      {k71, "thrsw\nldvary.rf1\nnop"},
      {k71, "thrsw\nnop\nnop\nthrsw\nnop\nnop"},
      {k71, "loop: mov.pushz -, rf1\nb.anyna loop\nnop\nnop\nnop"},
      {k71, "multop rf2, rf1, rf1\numul24 rf1, rf1, rf1\nthrsw\nnop\nnop\numul24 rf1, rf1, rf1"},
      {k71, LOADS2 "ldtmu.rf5 ; ldunif\nmov rf0, rf1\nthrsw\nnop\nldtmu.rf6"},
      {k71, "barrierid syncb ; nop ; thrsw\nnop\nnop"},
      {k71, LAST "mov tlb, rf5"},
      {k71, "setnnmode_ss\nv8dot rf3, rf4, rf5\nthrsw\nnop\nnop\nsetnnmode_ss ; v8dot rf3, rf4, rf5"},
      {k71, "setnnmode_ss\nloop: v8dot rf3, rf4, rf5\nb.anyna loop\nnop\nnop\nnop"},
      {k71, "vfabs rf3, rf4\nvfmin rf5, rf3.swp, rf4\nvfcmp -, rf3, rf4"},
      {k42, "mov recip, rf1\nnop\nmov rf2, r4"},
      {k42, "thrsw\nnop\nnop\nmov r1, rf5\nmov rf1, r1"},
      {k42, "stvpmv r0, rf5\nvpmwt -"},
      {k42, "mov tmua, rf1\nldtmu.r0 ; ldvpmv_in rf3, r1"},
      {k42, "mov r0, rf1\nmov r4, rf1\nmov recip, rf1"},
      {k42, "mov r1, rf5\nthrsw\nmov r1, rf4\nnop\nmov r2, rf4\nmov rf1, r2"},
      {k42, LOADS4 LOADS4 POPS4 POPS4},
      // What the code does not tell: words of a configuration in a uniform, of a data word on some way, of
      // loops.
      {k71, "mov tmuau, rf1\nldtmu.rf2\nldtmu.rf2\nldtmu.rf2\nldtmu.rf2"},
      {k71, "mov tmuau, rf1\nldtmu.rf2\nmov tmuau, rf1\nldtmu.rf2\nldtmu.rf2"},
      {k71, "mov tmud, rf1\nmov tmuau, rf1\nldtmu.rf2"},  // an atomic
      {k71, "mov tmud, rf1\nmov tmuau, rf1"},
      {k71, "mov tmud, rf1\nwrtmuc\nmov tmus, rf1"},  // an image store
      {k71, "mov.pushz -, rf1\nb.anya skip\nnop\nnop\nnop\nmov tmud, rf1\nskip: mov tmua, rf1"},
      {k71, "loop: mov tmua, rf1\nb.anya loop\nnop\nnop\nnop\npop: ldtmu.rf2\nb.anya pop\nnop\nnop\nnop"},
      {k71, "mov tmua, rf1\nloop: mov tmua, rf1\nldtmu.rf2\nb.anya loop\nnop\nnop\nnop\nldtmu.rf2"},
      {k42, "mov r1, rf5\nnop\nmov r2, r1 ; rot.1"},
  };
  for (const auto& [generation, program] : kGood) {
    const bool last = std::string(program).starts_with("thrsw\nthrsw");
    const auto words = words_of(generation, std::string(program) + (last ? "\nthrsw\nnop\nnop\n" : kEnd));
    EXPECT_THAT(names(check_program(generation, false, words)), IsEmpty()) << program;
  }
}

// asm --check and disasm --check fail for what is undefined or hardly meant, and tell the rest only.
TEST(Hazard, WhatBreaksRules) {
  static constexpr std::pair<Hazard, bool> kHazards[] = {{Hazard::kPeriph, true},
                                                         {Hazard::kLdvaryCEarly, true},
                                                         {Hazard::kThrswClose, false},
                                                         {Hazard::kHalfSums, false}};
  for (const auto& [hazard, wrong] : kHazards) EXPECT_EQ(is_wrong(kind(hazard)), wrong) << tag(hazard);
}

// What programs that boards run do, as the tests and examples of py-videocore7 and py-videocore6, and qmkl6:
// nothing of it is called undefined.
TEST(Hazard, WhatBoardsRunIsNotUndefined) {
  static constexpr std::pair<chip::Generation, const char*> kPrograms[] = {
      {k71, "thrsw\nnop\nthrsw\nnop\nnop"},         // test_alu, test_condition_codes, test_parallel
      {k71, "thrsw\nnop\nrot rf1, rf2, 1"},         // sgemm
      {k71, "mov unifa, rf1\nb 0\nnop\nnop\nnop"},  // test_unifa
      {k71, "b 0\nmov unifa, rf1\nnop\nnop"},       // test_unifa
      {k42, "mov r1, rf1\nnop ; mov tmua, r1 ; thrsw\nnop\nnop\nmov tmua, r1\nldtmu.r0\nldtmu.r0"},  // sgemm
      {k42, "mov tmua, rf1\nldtmu.r0 ; mov tmua, rf1\nldtmu.r0"},                                    // scopy
      {k42, "mov r2, rf1\nnop ; mov tmud, r2 ; rot.1\nmov tmua, rf1"},                               // fft2
      {k42, LOADS4 LOADS4 LOADS2 POPS4 POPS4 "ldtmu.r0\nldtmu.r0"},                                  // fft8
  };
  for (const auto& [generation, program] : kPrograms) {
    const auto reports = check_program(generation, false, words_of(generation, std::string(program) + kEnd));
    EXPECT_FALSE(reports.empty()) << program;
    for (const HazardReport& r : reports)
      EXPECT_EQ(kind(r.hazard), HazardKind::kNeverEmitted) << tag(r.hazard);
  }
}

TEST(Hazard, KindsAreSelected) {
  std::string error;
  EXPECT_EQ(parse_hazard_kinds("", &error), kAllHazardKinds);
  EXPECT_EQ(parse_hazard_kinds("all", &error), kAllHazardKinds);
  HazardSet all = 0;
  for (int n = 0; n < kNumHazardKinds; ++n) {
    const auto wanted = static_cast<HazardKind>(n);
    EXPECT_EQ(parse_hazard_kinds(name(wanted), &error), bit(wanted));
    const HazardSet set = hazards_of(bit(wanted));
    EXPECT_EQ(all & set, 0u);
    all |= set;
    for (int h = 0; h < kNumHazards; ++h)
      EXPECT_EQ((set & bit(static_cast<Hazard>(h))) != 0, kind(static_cast<Hazard>(h)) == wanted);
  }
  EXPECT_EQ(all, kAllHazards);
  EXPECT_EQ(parse_hazard_kinds("undefined,assumed", &error),
            bit(HazardKind::kUndefined) | bit(HazardKind::kAssumed));
  EXPECT_FALSE(parse_hazard_kinds("undefined,odd", &error));
  EXPECT_THAT(error, HasSubstr("\"odd\" is no kind of hazard"));

  const auto words = words_of(k71, std::string("vfadd rf3, rf4, rf5\nmov tmud, rf1 ; mov tmua, rf2") + kEnd);
  EXPECT_THAT(names(check_program(k71, false, words)), ElementsAre("0 half-sums", "1 periph"));
  EXPECT_THAT(names(check_program(k71, false, words, hazards_of(bit(HazardKind::kAssumed)))),
              ElementsAre("0 half-sums"));
}

// The ends of fragment and vertex programs that Mesa compiled (qpu.md 11.4).
TEST(Hazard, SilentOnMesasEnds) {
  const std::vector<uint64_t> compute_42 = {0x3c403186bb800000, 0x3db032c6bbf40000, 0x3db07186bb800000,
                                            0x3c00318d38801000, 0x3c203182bb815000, 0x3c003186bb800000,
                                            0x3c003186bb800000};
  EXPECT_THAT(names(check_program(k42, false, compute_42)), IsEmpty());
  const std::vector<uint64_t> vertex_71 = {0x38602180be03f00a, 0x38002180be03f01b, 0x38003186bb03f000};
  EXPECT_THAT(names(check_program(k71, false, vertex_71)), IsEmpty());
}

// Both ways of a branch are followed, and what lies beyond an unconditional one is not.
TEST(Hazard, Paths) {
  const auto words = words_of(k71, std::string(R"(
    b.anya skip
    nop
    nop
    ldvary.rf1
    nop
    b out
    nop
    nop
    nop
    ldvary.rf1
  skip:
    add rf2, rf0, rf3
  out:
    nop)") + kEnd);
  EXPECT_THAT(names(check_program(k71, false, words)), ElementsAre("10 ldvary-c-early"));
}

// Whatever the words are, it ends.
TEST(Hazard, RandomPrograms) {
  std::mt19937_64 random(3);
  for (const chip::Generation generation : {k71, k42}) {
    RandomWords words(generation);
    for (int n = 0; n < 200; ++n) {
      std::vector<uint64_t> program;
      while (program.size() < 300) {
        Instruction i;
        uint64_t word = words.next();
        if (!decode(generation, word, i)) continue;
        if (i.is_branch) {  // most of them far away otherwise
          i.branch.offset = static_cast<uint32_t>(static_cast<int32_t>(random() % 200) - 100) * 8;
          word = encode(generation, i).value_or(word);
        }
        program.push_back(word);
      }
      for (const HazardReport& r : check_program(generation, false, program))
        EXPECT_LT(r.index, program.size());
    }
  }
  EXPECT_THAT(check_program(k71, false, {}), IsEmpty());
}

// ---- While a program runs

std::vector<std::string> run_watched(Machine& m, const std::string& text, Stop expected = Stop::kEnd,
                                     int times = 1, HazardKinds wanted = kAllHazardKinds) {
  const auto words = words_of(k71, text);
  std::memcpy(m.memory().host(Machine::kCode), words.data(), words.size() * 8);
  std::vector<std::string> lines;
  WatchOptions options;
  options.hazard_sink = [&](std::string_view line) { lines.emplace_back(line); };
  options.hazards = wanted;
  Watch watch(k71, std::move(options));
  const auto job = watch.begin_job(1);
  const Thread start = m.t();
  for (int n = 0; n < times; ++n) {
    m.t() = start;
    job->start("compute", m.t());
    EXPECT_EQ(m.resume(), expected);
  }
  return lines;
}

TEST(HazardWatch, ReportsOncePerProgram) {
  Machine m(k71);
  m.t().final_section = false;
  const auto lines = run_watched(m,
                                 std::string("mov rf4, 3\nloop: ldvary.rf1\nadd rf2, rf0, rf3\n"
                                             "sub.pushz rf4, rf4, 1\nb.anyna loop\nnop\nnop\nnop") +
                                     kEnd,
                                 Stop::kEnd, 3);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(
      lines[0],
      HasSubstr(
          "compute program at 0x00001000: hardly-meant: ldvary-c-early: instruction 2, \"add rf2, rf0"));
}

// Places that were checked are not checked again; ways that threads take later are.
TEST(HazardWatch, ChecksEachWay) {
  Machine m(k71);
  m.t().final_section = false;
  const auto words = words_of(k71, std::string("mov.pushz -, rf1\nb.anya skip\nnop\nnop\nldvary.rf4\n"
                                               "nop\nskip: add rf2, rf0, rf3") +
                                       kEnd);
  std::memcpy(m.memory().host(Machine::kCode), words.data(), words.size() * 8);
  std::vector<std::string> lines;
  WatchOptions options;
  options.hazard_sink = [&](std::string_view line) { lines.emplace_back(line); };
  Watch watch(k71, std::move(options));
  const Thread start = m.t();
  for (const auto& [value, reports] : {std::pair(1u, 0u), {1u, 0u}, {0u, 1u}, {0u, 1u}, {1u, 1u}}) {
    const auto job = watch.begin_job(1);
    m.t() = start;
    m.t().rf[1] = splat(value);
    job->start("compute", m.t());
    EXPECT_EQ(m.resume(), Stop::kEnd);
    EXPECT_EQ(lines.size(), reports);
  }
  EXPECT_THAT(lines[0], HasSubstr("ldvary-c-early: instruction 6"));
}

// When 64 threads came to nothing new only the first of each job is checked, until that comes to something.
TEST(HazardWatch, ChecksLessOfWhatIsKnown) {
  Machine m(k71);
  WatchOptions options;
  options.hazard_sink = [](std::string_view) {};
  Watch watch(k71, std::move(options));
  const Thread start = m.t();
  const auto checked = [&](const char* program) {
    const auto words = words_of(k71, program);
    std::memcpy(m.memory().host(Machine::kCode), words.data(), words.size() * 8);
    const auto job = watch.begin_job(1);
    int count = 0;
    for (int n = 0; n < 100; ++n) {
      m.t() = start;
      job->start("compute", m.t());
      count += m.t().observer != nullptr;
      EXPECT_EQ(m.resume(), Stop::kEnd);
    }
    return count;
  };
  const char* const kOne = "nop\nthrsw\nnop\nnop";
  const char* const kOther = "mov rf1, rf2\nthrsw\nnop\nnop";
  EXPECT_EQ(checked(kOne), 64);
  EXPECT_EQ(checked(kOne), 1);
  EXPECT_EQ(checked(kOther), 64);
  EXPECT_EQ(checked(kOther), 1);
}

// What is kept of the ways of all programs has one bound. Where more programs come, the former ones are
// forgotten, and checked anew when they come again.
TEST(HazardWatch, ForgetsWaysOfProgramsBeyondItsBound) {
  Machine m(k71);
  std::vector<std::string> lines;
  WatchOptions options;
  options.hazard_sink = [&](std::string_view line) { lines.emplace_back(line); };
  Watch watch(k71, std::move(options));
  const auto nop = words_of(k71, "nop")[0], ldvary = words_of(k71, "ldvary.rf4")[0],
             reads_early = words_of(k71, "add rf2, rf0, rf3")[0];
  const auto end = words_of(k71, "thrsw\nnop\nnop");
  constexpr size_t kNops = 9000, kPrograms = 10;
  std::vector<uint64_t> words(kNops + 2, nop);
  words.insert(words.end(), end.begin(), end.end());
  const Thread start = m.t();
  const auto run_at = [&](size_t program) {
    const GpuAddr code = Machine::kCode + static_cast<GpuAddr>(8 * program);
    words[kNops] = ldvary, words[kNops + 1] = reads_early;
    std::memcpy(m.memory().host(code), words.data(), words.size() * 8);
    m.t() = start;
    m.t().pc = code;
    const auto job = watch.begin_job(1);
    job->start("compute", m.t());
    EXPECT_EQ(m.resume(), Stop::kEnd);
    EXPECT_LE(watch.places(), PlaceCount::kLimit);
  };
  for (size_t program = 0; program < kPrograms; ++program) run_at(program);
  EXPECT_THAT(lines, SizeIs(kPrograms));
  EXPECT_THAT(lines.back(), HasSubstr("ldvary-c-early"));
  EXPECT_LT(watch.places(), kPrograms * kNops);
  run_at(0);
  EXPECT_THAT(lines, SizeIs(kPrograms));  // told once
}

TEST(HazardWatch, ForgetsPlacesButNotWhatWasTold) {
  Machine m(k71);
  std::vector<std::string> lines;
  WatchOptions options;
  options.hazard_sink = [&](std::string_view line) { lines.emplace_back(line); };
  Watch watch(k71, std::move(options));
  const auto words = words_of(k71, "ldvary.rf4\nadd rf2, rf0, rf3\nthrsw\nnop\nnop");
  std::memcpy(m.memory().host(Machine::kCode), words.data(), words.size() * 8);
  m.t().pc = Machine::kCode;
  const Thread start = m.t();
  const auto run = [&] {
    m.t() = start;
    const auto job = watch.begin_job(1);
    job->start("compute", m.t());
    EXPECT_EQ(m.resume(), Stop::kEnd);
  };
  run();
  const size_t places = watch.places();
  EXPECT_GT(places, 0);
  EXPECT_THAT(lines, SizeIs(1));
  watch.forget_places();
  EXPECT_EQ(watch.places(), 0);
  run();
  EXPECT_EQ(watch.places(), places);
  EXPECT_THAT(lines, SizeIs(1));
}

// Of threads under way nothing can be forgotten.
TEST(HazardWatch, GivesUpByNameWhereThreadsUnderWayKeepAllPlaces) {
  Machine m(k71);
  std::vector<std::string> lines;
  WatchOptions options;
  options.hazard_sink = [&](std::string_view line) { lines.emplace_back(line); };
  Watch watch(k71, std::move(options));
  const auto nop = words_of(k71, "nop")[0];
  const auto end = words_of(k71, "ldvary.rf4\nadd rf2, rf0, rf3\nthrsw\nnop\nnop");
  constexpr size_t kNops = 10000, kThreads = 8;
  std::vector<uint64_t> words(kNops, nop);
  words.insert(words.end(), end.begin(), end.end());
  const Thread start = m.t();
  std::vector<Thread> threads;
  const auto job = watch.begin_job(1);
  for (size_t n = 0; n < kThreads; ++n) {
    const GpuAddr code = Machine::kCode + static_cast<GpuAddr>(8 * n);
    std::memcpy(m.memory().host(code), words.data(), words.size() * 8);
    m.t() = start;
    m.t().pc = code;
    m.t().budget = kNops - 100;
    job->start("compute", m.t());
    EXPECT_EQ(m.resume(), Stop::kBudget);
    threads.push_back(m.t());
    EXPECT_LE(watch.places(), PlaceCount::kLimit);
  }
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_THAT(lines[0], HasSubstr("compute program at 0x00001030: not checked to the end"));
  EXPECT_THAT(lines[1], HasSubstr("compute program at 0x00001038: not checked to the end"));
  for (Thread& thread : threads) {
    m.t() = thread;
    m.t().budget = 1000;
    EXPECT_EQ(m.resume(), Stop::kEnd);
  }
  ASSERT_THAT(lines, SizeIs(kThreads));  // the others are checked to their ends
  for (size_t n = 2; n < kThreads; ++n) EXPECT_THAT(lines[n], HasSubstr("ldvary-c-early"));
}

TEST(HazardWatch, ReportsWhatIsSelected) {
  for (const auto& [kind, reports] :
       {std::pair(HazardKind::kAssumed, 1u), std::pair(HazardKind::kUndefined, 0u)}) {
    Machine m(k71);
    m.t().rf[1] = splat(0x3c01u);
    m.t().rf[2] = splat(0x6400u);
    EXPECT_EQ(run_watched(m, "vfadd rf3, rf1, rf2\nthrsw\nnop\nnop", Stop::kEnd, 1, bit(kind)).size(),
              reports);
  }
}

TEST(HazardWatch, Silent) {
  Machine m(k71);
  EXPECT_THAT(run_watched(m, "mov rf1, 2\neidx rf2\nthrsw\nnop\nnop"), IsEmpty());
}

// A sum of halves that comes out the same by any rule is no report.
TEST(HazardWatch, SumsOfHalves) {
  const struct {
    uint32_t a, b;
    const char* program;
    bool depends;
  } cases[] = {
      {0x3c004000, 0x3c003c00, "vfadd rf3, rf1, rf2", false},
      {0x3c003c01, 0x3c006400, "vfadd rf3, rf1, rf2", true},       // 1024 + 1.001
      {0x3c010000, 0x64000000, "vfsub rf3, rf1, rf2", true},       // in the high half
      {0x00003c01, 0x3c016400, "vfadd rf3, rf1.swp, rf2", false},  // 1.001 + 1.001, 0 + 1024
      {0x3c003c01, 0x3c006400, "vfadd -, rf1, rf2", false},        // the result goes nowhere
      {0x00000001, 0x00003c00, "vfsub rf3, rf1, rf2", true},       // a denormal source
      {0x00000401, 0x00000400, "vfcmp rf3, rf1, rf2", true},       // a denormal result
      {0x7bff7c00, 0x00003c00, "vfadd rf3, rf1, rf2", false},      // infinities and NaN
      {0x00007bff, 0x00007bff, "vfadd rf3, rf1, rf2", true},       // overflow
  };
  for (const auto& c : cases) {
    Machine m(k71);
    m.t().rf[1] = splat(c.a);
    m.t().rf[2] = splat(c.b);
    const auto lines = run_watched(m, std::string(c.program) + "\nthrsw\nnop\nnop");
    ASSERT_EQ(lines.size(), c.depends ? 1u : 0u) << c.program << std::hex << " " << c.a << " " << c.b;
    for (const std::string& line : lines) EXPECT_THAT(line, HasSubstr("assumed: half-sums: instruction 0"));
  }
  Machine m(k71);  // lanes that do not live, or are not written
  m.t().rf[1] = splat(0x3c01u);
  m.t().rf[2] = splat(0x6400u);
  m.t().msf = kLaneIndex & 1u;
  m.t().flag_a = 0x5555;
  EXPECT_THAT(run_watched(m, "vfadd.ifa rf3, rf1, rf2\nthrsw\nnop\nnop"), IsEmpty());
}

TEST(HazardWatch, VpmRows) {
  Machine m(k71);
  AlignedLanes rows[4] = {};
  m.t().vpm_in = m.t().vpm_out = rows;
  m.t().vpm_in_rows = m.t().vpm_out_rows = 4;
  const auto lines = run_watched(m,
                                 "ldvpmv_in rf4, 2\nstvpmv 2, rf4\nldvpmv_in rf4, 1\nldvpmv_in rf4, 2\n"
                                 "thrsw\nnop\nnop");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("vpm-order: instruction 3"));
}

TEST(HazardWatch, StageWithoutTlb) {
  Machine m(k71);
  const auto lines = run_watched(m, "mov tlb, rf4\nthrsw\nnop\nnop");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("tlb-stage: instruction 0"));
}

TEST(HazardWatch, RunsOff) {
  Machine m(k71);
  m.t().final_section = false;
  const auto lines = run_watched(m, "thrsw\nnop\nnop\nthrsw\nnop\nnop\n.word 0", Stop::kHang);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("no-last: instruction 6, \"invalid instruction\""));
}

TEST(HazardWatch, MaskAfterZ) {
  Machine m(k71);
  NoTlb tlb;
  m.t().tlb = &tlb;
  m.uniforms({0xffffff84});
  const auto lines = run_watched(m, "mov tlbu, rf1\nmsf rf4\nthrsw\nnop\nnop");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("msf-after-z: instruction 1"));
}

TEST(HazardWatch, ZInTheLastInstruction) {
  Machine m(k71);
  NoTlb tlb;
  m.t().tlb = &tlb;
  m.t().tlb_config = 0xffffff84;
  const auto lines = run_watched(m, "thrsw\nnop\nmov tlb, rf1");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("tlbz-at-end: instruction 2"));
}

TEST(HazardWatch, Varyings) {
  Machine m(k71);
  NoTlb tlb;
  const Varying varying[1 + kVaryingsBehind] = {};
  m.t().tlb = &tlb;
  m.t().set_varyings(varying, 1);
  const auto lines = run_watched(m, "ldvary.rf4\nldvary.rf5\nnop\nthrsw\nnop\nnop");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("vary-count: instruction 1"));
}

// fake_tmu.cc returns as many words as a lookup asks for.
TEST(HazardWatch, TmuQueue) {
  Machine m(k71);
  tmu::Unit unit(m.memory(), k71);
  m.t().tmu = &unit;
  m.t().four_threads = true;
  std::string loads, pops;
  for (int n = 0; n < 5; ++n) loads += "mov tmua, rf4\n", pops += "ldtmu.rf5\n";
  auto lines = run_watched(m, loads + pops + "thrsw\nnop\nnop");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("tmu-overflow: instruction 4"));
  loads.clear(), pops.clear();
  for (int n = 0; n < 17; ++n) loads += "mov tmua, rf4\n", pops += "ldtmu.rf5\n";
  m.reset();
  m.t().tmu = &unit;
  lines = run_watched(m, loads + pops + "thrsw\nnop\nnop");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_THAT(lines[0], HasSubstr("never-emitted: tmu-overflow: instruction 8"));
  EXPECT_THAT(lines[1], HasSubstr("undefined: tmu-lost: instruction 16"));
  m.reset();
  m.t().tmu = &unit;
  lines = run_watched(m, "ldtmu.rf5\nthrsw\nnop\nnop", Stop::kHang);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("tmu-underflow: instruction 0"));
  m.reset();
  m.t().tmu = &unit;
  lines = run_watched(m, "mov tmua, rf4\nthrsw\nnop\nnop");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("tmu-leftover: instruction 3"));
  m.reset();
  m.t().tmu = &unit;
  m.t().final_section = false;
  lines =
      run_watched(m, std::string("mov tmua, rf4\nbarrierid syncb ; nop ; thrsw\nnop\nnop\nldtmu.rf4") + kEnd,
                  Stop::kBarrier);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("tsy-tmu: instruction 3"));
}

}  // namespace
}  // namespace v3d::qpu
