/// Control flow, timing and streams of the interpreter: qpu.md 3.3, 3.4, 4, 5, 7.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "gpu/base/log.h"
#include "tests/qpu/machine.h"

namespace v3d::qpu {
namespace {

using namespace assembly;
using testing::StartsWith;

constexpr Dst kNowhere = {kWaddrNop, true};

// rfN += 1 as a marker of what was executed.
Instruction count(int n) { return I().add(Op::kAdd, to(n), rf(n), imm(1)); }

class RunTest : public testing::TestWithParam<chip::Generation> {
 protected:
  chip::Generation generation() const { return GetParam(); }
  // Where ldunif, ldunifa and the C coefficients land.
  Lanes& implicit() { return generation() == chip::Generation::k42 ? m.t().acc[5] : m.t().rf[0]; }
  Operand implicit_operand() const { return generation() == chip::Generation::k42 ? acc(5) : rf(0); }
  uint32_t r(int n) { return m.t().rf[n][0]; }
  Machine m{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Versions, RunTest, testing::Values(chip::Generation::k71, chip::Generation::k42));

// ---- Thread end and switches

TEST_P(RunTest, EndSlotsExecute) {
  m.load({count(1), thrsw(), count(2), count(3), count(4), count(5)});
  EXPECT_EQ(m.resume(), Stop::kEnd);
  EXPECT_EQ(r(1), 1u);
  EXPECT_EQ(r(2), 1u);
  EXPECT_EQ(r(3), 1u);
  EXPECT_EQ(r(4), 0u);
  EXPECT_EQ(m.t().instructions, 4u);
}

// Outside the final section a thrsw is a switch; a pair says that the next one is the end.
TEST_P(RunTest, LastSwitchMarker) {
  m.load({thrsw(), count(1), count(2), count(3),  // a switch
          thrsw(), thrsw(), count(4), count(5),   // the last one
          thrsw(), count(6), count(7), count(8)});
  m.t().final_section = false;
  EXPECT_EQ(m.resume(), Stop::kEnd);
  for (int n = 1; n <= 7; ++n) EXPECT_EQ(r(n), 1u) << n;
  EXPECT_EQ(r(8), 0u);
}

TEST_P(RunTest, StopsAtSwitches) {
  m.load({thrsw(), count(1), count(2), count(3),  //
          thrsw(), thrsw(), count(4), count(5),   //
          thrsw(), count(6), count(7), count(8)});
  m.t().final_section = false;
  m.t().stop_at_switch = true;
  EXPECT_EQ(m.resume(), Stop::kSwitch);  // after the two slots
  EXPECT_EQ(m.t().pc, Machine::kCode + 3 * 8);
  EXPECT_EQ(r(2), 1u);
  EXPECT_EQ(r(3), 0u);
  EXPECT_EQ(m.resume(), Stop::kSwitch);  // the pair is one switch, counted from its first
  EXPECT_EQ(m.t().pc, Machine::kCode + 7 * 8);
  EXPECT_EQ(m.resume(), Stop::kEnd);
  EXPECT_EQ(r(7), 1u);
  EXPECT_EQ(r(8), 0u);
}

// py-videocore7 test_alu: thrsw at t and t + 2 is two switches, not a pair.
TEST_P(RunTest, SwitchesTwoApart) {
  m.load({thrsw(), nop(), thrsw(), nop(), nop(), count(1),  //
          thrsw(), thrsw(), nop(), nop(), thrsw(), nop(), nop(), count(2)});
  m.t().final_section = false;
  m.t().stop_at_switch = true;
  EXPECT_EQ(m.resume(), Stop::kSwitch);
  EXPECT_EQ(m.t().pc, Machine::kCode + 3 * 8);
  EXPECT_EQ(m.resume(), Stop::kSwitch);
  EXPECT_EQ(m.t().pc, Machine::kCode + 5 * 8);
  EXPECT_EQ(m.resume(), Stop::kSwitch);
  EXPECT_EQ(m.resume(), Stop::kEnd);
  EXPECT_EQ(r(1), 1u);
  EXPECT_EQ(r(2), 0u);
}

// The end sequence of every hand-written program.
TEST_P(RunTest, UsualEndSequence) {
  m.load({count(1), thrsw(), thrsw(), nop(), nop(), thrsw(), nop(), nop(), nop()});
  m.t().final_section = false;
  EXPECT_EQ(m.resume(), Stop::kEnd);
  EXPECT_EQ(m.t().instructions, 8u);
}

TEST_P(RunTest, FlagsSurviveSwitches) {
  m.load({I().add(Op::kAdd, kNowhere, rf(1), rf(1)).add_flags(FlagWrite::kPushz), thrsw(), nop(), nop(),
          nop(), I().add(Op::kAdd, to(2), rf(2), imm(5)).add_if(Cond::kIfa), thrsw(), thrsw(), nop(), nop(),
          thrsw(), nop(), nop()});
  m.t().final_section = false;
  EXPECT_EQ(m.resume(), Stop::kEnd);
  EXPECT_EQ(r(2), 5u);
}

TEST_P(RunTest, BudgetEndsAnEndlessLoop) {
  m.load({jump(-4), count(1), nop(), nop()});
  m.t().budget = 1001;
  EXPECT_EQ(m.resume(), Stop::kBudget);
  EXPECT_EQ(m.t().instructions, 1001u);
  EXPECT_EQ(m.t().budget, 0u);
  EXPECT_EQ(r(1), 250u);
  EXPECT_EQ(m.resume(), Stop::kBudget);
  EXPECT_EQ(m.t().instructions, 1001u);
}

// Interrupting a program after every instruction must not change what it does.
TEST_P(RunTest, BudgetMayBeGivenInPieces) {
  std::vector<Instruction> program = {
      I().sig(kLdunif),
      count(1),
      I().add(Op::kSub, to(5), rf(5), imm(1)).add_flags(FlagWrite::kPushz),
      jump(-7, BranchCond::kAllna),
      count(2),
      count(3),
      count(4),
      thrsw(),
      count(6),
      count(7),
      thrsw(),
      thrsw(),
      count(8),
      thrsw(),
      count(9),
      count(10),
  };
  m.load(program);
  m.t().rf[5] = splat(10u);
  m.t().final_section = false;
  EXPECT_EQ(m.resume(), Stop::kEnd);
  const std::vector<Lanes> expected(m.t().rf, m.t().rf + 64);
  const uint64_t instructions = m.t().instructions;
  EXPECT_EQ(r(1), 10u);
  EXPECT_EQ(r(4), 10u);
  m.reset();
  m.t().rf[5] = splat(10u);
  m.t().final_section = false;
  Stop stop;
  do {
    m.t().budget = 1;
    stop = m.resume();
  } while (stop == Stop::kBudget);
  EXPECT_EQ(stop, Stop::kEnd);
  EXPECT_EQ(m.t().instructions, instructions);
  for (int n = 0; n < 64; ++n) EXPECT_EQ(lanes(m.t().rf[n]), lanes(expected[static_cast<size_t>(n)])) << n;
}

TEST_P(RunTest, HangsAreReported) {
  m.load({count(1)});  // zeros after it
  EXPECT_EQ(m.resume(), Stop::kHang);
  EXPECT_EQ(m.t().pc, Machine::kCode + 8);
  EXPECT_EQ(m.hang_text(), "invalid instruction at pc 0x00001008, word 0x0000000000000000");
  EXPECT_EQ(r(1), 1u);
  m.reset();
  m.load({nop(), I().sig(kLdtmu, to(1))});
  EXPECT_EQ(m.resume(), Stop::kHang);
  EXPECT_EQ(m.t().pc, Machine::kCode + 8);
  EXPECT_EQ(m.hang_text(), "ldtmu without an outstanding lookup at pc 0x00001008 (nop ; nop ; ldtmu.rf1)");
  m.reset();
  m.load({jump(2), I().sig(kLdtmu, to(kWaddrNop))});
  EXPECT_EQ(m.resume(), Stop::kHang);
  EXPECT_EQ(m.t().pc, Machine::kCode + 8);
}

// ---- Branches

TEST_P(RunTest, BranchSlotsAndTarget) {
  m.load({jump(1), count(1), count(2), count(3), count(4), count(5), thrsw(), nop(), nop()});
  EXPECT_EQ(m.resume(), Stop::kEnd);
  EXPECT_EQ(r(3), 1u);
  EXPECT_EQ(r(4), 0u);  // jumped over
  EXPECT_EQ(r(5), 1u);
}

TEST_P(RunTest, BranchConditions) {
  struct Case {
    LaneMask a;
    uint32_t live;
    bool alla[3], anyna[3], anya[3], allna[3];  // msfign none, P, Q
  };
  const Case cases[] = {
      {0xffff, 0xffff, {true, true, true}, {false, false, false}, {true, true, true}, {false, false, false}},
      {0x0000, 0xffff, {false, false, false}, {true, true, true}, {false, false, false}, {true, true, true}},
      {0x0001, 0x0001, {false, true, false}, {true, false, true}, {true, true, true}, {false, false, false}},
      {0x000e, 0x0001, {false, false, false}, {true, true, true}, {true, false, true}, {false, true, false}},
      {0x000f, 0x0002, {false, true, true}, {true, false, false}, {true, true, true}, {false, false, false}},
      {0xfff0, 0x0002, {false, false, false}, {true, true, true}, {true, false, false}, {false, true, true}},
      // No lane at all: "all" holds, "any" does not.
      {0x00ff, 0x0000, {false, true, true}, {true, false, false}, {true, false, false}, {false, true, true}},
  };
  const auto taken = [&](const Case& c, BranchCond cond, Msfign msfign) {
    m.reset();
    m.t().flag_a = c.a;
    m.t().msf = select(static_cast<LaneMask>(c.live), splat(1u), Lanes{});
    m.load({jump(1, cond, msfign), nop(), nop(), nop(), count(1), thrsw(), nop(), nop()});
    EXPECT_EQ(m.resume(), Stop::kEnd);
    return r(1) == 0;
  };
  for (const Case& c : cases) {
    for (int ign = 0; ign < 3; ++ign) {
      const Msfign msfign = static_cast<Msfign>(ign);
      EXPECT_EQ(taken(c, BranchCond::kAlla, msfign), c.alla[ign]) << c.a << " " << c.live << " " << ign;
      EXPECT_EQ(taken(c, BranchCond::kAnyna, msfign), c.anyna[ign]) << c.a << " " << c.live << " " << ign;
      EXPECT_EQ(taken(c, BranchCond::kAnya, msfign), c.anya[ign]) << c.a << " " << c.live << " " << ign;
      EXPECT_EQ(taken(c, BranchCond::kAllna, msfign), c.allna[ign]) << c.a << " " << c.live << " " << ign;
      EXPECT_EQ(taken(c, BranchCond::kA0, msfign), (c.a & 1) != 0);
      EXPECT_EQ(taken(c, BranchCond::kNa0, msfign), (c.a & 1) == 0);
      EXPECT_TRUE(taken(c, BranchCond::kAlways, msfign));
    }
  }
}

// The condition sees the flags of the instruction before.
TEST_P(RunTest, BranchSeesFreshFlags) {
  m.load({I().add(Op::kAdd, kNowhere, rf(9), rf(9)).add_flags(FlagWrite::kPushz), jump(1, BranchCond::kAlla),
          nop(), nop(), nop(), count(1), thrsw(), nop(), nop()});
  EXPECT_EQ(m.resume(), Stop::kEnd);
  EXPECT_EQ(r(1), 0u);
}

TEST_P(RunTest, BranchTargets) {
  Instruction absolute = jump(0);
  absolute.branch.target = BranchTarget::kAbsolute;
  absolute.branch.offset = Machine::kCode + 8 * 8;
  Instruction by_register = jump(0);
  by_register.branch.target = BranchTarget::kRegister;
  by_register.branch.raddr = 9;
  for (const Instruction& branch : {absolute, by_register}) {
    m.reset();
    m.t().rf[9] = Lanes{} + 0x7777u;
    m.t().rf[9][0] = Machine::kCode + 8 * 8 + 5;  // the low bits do not count
    m.load({branch, nop(), nop(), nop(), count(1), thrsw(), nop(), nop(), count(2), thrsw(), nop(), nop()});
    EXPECT_EQ(m.resume(), Stop::kEnd);
    EXPECT_EQ(r(1), 0u);
    EXPECT_EQ(r(2), 1u);
  }
}

// py-videocore7 test_branch_link_reg.
TEST_P(RunTest, LinkRegister) {
  Instruction call = jump(9), ret = jump(0), plain_call = jump(1);
  call.branch.set_link = true;
  ret.branch.target = BranchTarget::kLink;
  m.load({call, nop(), nop(), nop(),                  // 0: after it: 4
          I().add(Op::kLr, to(1)), count(2),          // 4
          plain_call, nop(), nop(), nop(), count(3),  // 6: jumps over 10
          I().add(Op::kLr, to(4)), thrsw(),           // 11
          count(5), ret, nop(), nop(), nop()});       // 13: called; also the first end slot
  EXPECT_EQ(m.resume(), Stop::kEnd);
  EXPECT_EQ(r(1), Machine::kCode + 32);
  EXPECT_EQ(r(2), 1u);
  EXPECT_EQ(r(3), 0u);
  EXPECT_EQ(r(4), Machine::kCode + 32);  // branches without the bit keep it
}

TEST_P(RunTest, LinkIsNotWrittenByANotTakenBranch) {
  Instruction call = jump(0, BranchCond::kAlla);
  call.branch.set_link = true;
  m.t().link = 0x40;
  EXPECT_EQ(m.run_program({call, nop(), nop(), nop()}), Stop::kEnd);
  EXPECT_EQ(m.t().link, 0x40u);
}

Instruction uniform_branch(BranchTarget uniforms, BranchCond cond = BranchCond::kAlways) {
  Instruction i = jump(0, cond);
  i.branch.uniforms = true;
  i.branch.uniform_target = static_cast<uint8_t>(uniforms);
  i.branch.raddr = 9;
  return i;
}

TEST_P(RunTest, BranchMovesUniforms) {
  m.uniforms({1, 8, 2, 3, 4});
  const auto program = [&](const Instruction& branch) {
    return std::vector<Instruction>{
        I().sig(kLdunifrf, to(1)), branch, nop(), nop(), nop(), I().sig(kLdunifrf, to(2)),
        I().sig(kLdunifrf, to(3))};
  };
  // Relative to the word after the distance.
  EXPECT_EQ(m.run_program(program(uniform_branch(BranchTarget::kRelative))), Stop::kEnd);
  EXPECT_EQ(r(1), 1u);
  EXPECT_EQ(r(2), 4u);
  // The word is consumed although the branch is not taken.
  m.reset();
  EXPECT_EQ(m.run_program(program(uniform_branch(BranchTarget::kRelative, BranchCond::kAlla))), Stop::kEnd);
  EXPECT_EQ(r(2), 2u);
  EXPECT_EQ(r(3), 3u);
  m.reset();
  m.uniforms({1, Machine::kUniforms + 12});
  EXPECT_EQ(m.run_program(program(uniform_branch(BranchTarget::kAbsolute))), Stop::kEnd);
  EXPECT_EQ(r(2), 3u);
  // From a register: lane 1, low three bits clear; no word is consumed.
  m.reset();
  m.uniforms({1, 8, 2, 3, 4});
  m.t().rf[9][1] = Machine::kUniforms + 8 + 4;
  EXPECT_EQ(m.run_program(program(uniform_branch(BranchTarget::kRegister))), Stop::kEnd);
  EXPECT_EQ(r(2), 2u);
}

// The move takes effect after the slots; a word fetched in one of them comes from the old stream.
TEST_P(RunTest, SlotsReadTheOldUniforms) {
  m.uniforms({8, 20, 21, 22, 23});
  EXPECT_EQ(m.run_program({uniform_branch(BranchTarget::kRelative), nop(), I().sig(kLdunifrf, to(1)), nop(),
                           I().sig(kLdunifrf, to(2))}),
            Stop::kEnd);
  EXPECT_EQ(r(1), 20u);
  EXPECT_EQ(r(2), 22u);
}

// Chunks are 64 instructions: straight lines and branches must cross their borders.
TEST_P(RunTest, LongPrograms) {
  std::vector<Instruction> program;
  for (int i = 0; i < 300; ++i) program.push_back(count(1));
  program.push_back(jump(200));
  for (int i = 0; i < 203; ++i) program.push_back(count(2));
  program.push_back(count(3));
  EXPECT_EQ(m.run_program(program), Stop::kEnd);
  EXPECT_EQ(r(1), 300u);
  EXPECT_EQ(r(2), 3u);
  EXPECT_EQ(r(3), 1u);
}

// ---- Uniform streams

TEST_P(RunTest, Uniforms) {
  m.uniforms({10, 11, 12, 13, 14});
  EXPECT_EQ(m.run_program({I().sig(kLdunif), I().add(Op::kOr, to(1), implicit_operand(), implicit_operand()),
                           I().sig(kLdunifrf, to(2)),
                           I().add(Op::kOr, to(3), implicit_operand(), implicit_operand()).sig(kLdunif),
                           I().sig(kLdunifrf, to(kWaddrNop)), I().sig(kLdunifrf, to(4))}),
            Stop::kEnd);
  EXPECT_EQ(lanes(m.t().rf[1]), same(10));
  EXPECT_EQ(lanes(m.t().rf[2]), same(11));
  EXPECT_EQ(lanes(m.t().rf[3]), same(10));  // the load replaces what the ALU still reads
  EXPECT_EQ(lanes(implicit()), same(12));
  EXPECT_EQ(lanes(m.t().rf[4]), same(14));
  EXPECT_EQ(m.t().uniforms, Machine::kUniforms + 20);
}

// Compute jobs read the main stream from a snapshot, ldunifa from memory.
TEST_P(RunTest, Snapshot) {
  m.uniforms({1, 2, 3, 4});
  const uint32_t snapshot[2] = {100, 101};
  m.t().snapshot = reinterpret_cast<const uint8_t*>(snapshot);
  m.t().snapshot_address = Machine::kUniforms + 4;
  m.t().snapshot_bytes = 8;
  m.t().unifa = Machine::kUniforms + 4;
  EXPECT_EQ(m.run_program({I().sig(kLdunifrf, to(1)), I().sig(kLdunifrf, to(2)), I().sig(kLdunifrf, to(3)),
                           I().sig(kLdunifrf, to(4)), I().sig(kLdunifarf, to(5))}),
            Stop::kEnd);
  EXPECT_EQ(r(1), 1u);
  EXPECT_EQ(r(2), 100u);
  EXPECT_EQ(r(3), 101u);
  EXPECT_EQ(r(4), 4u);
  EXPECT_EQ(r(5), 2u);
}

TEST_P(RunTest, Unifa) {
  constexpr GpuAddr kData = 0x24000;
  m.uniforms({kData + 16, 77});
  m.uniforms({50, 51, 52, 53, 54, 55}, kData);
  m.t().rf[1] = kLaneIndex * 4u + kData;  // lane 0 counts
  EXPECT_EQ(m.run_program({
                I().mul(Op::kMov, to(kWaddrUnifa), rf(1)),
                nop(),
                nop(),
                nop(),
                I().sig(kLdunifarf, to(2)),
                I().sig(kLdunifa),
                I().add(Op::kOr, to(3), implicit_operand(), implicit_operand()),
                I().sig(kLdunifrf, to(kWaddrUnifa)),
                nop(),
                nop(),
                nop(),
                I().sig(kLdunifarf, to(4)),
                // In one word: the load still uses the old stream.
                I().mul(Op::kMov, to(kWaddrUnifa), rf(1)).sig(kLdunifarf, to(5)),
                nop(),
                nop(),
                nop(),
                I().sig(kLdunifarf, to(6)),
                I().sig(kLdunifrf, to(7)),
            }),
            Stop::kEnd);
  EXPECT_EQ(r(2), 50u);
  EXPECT_EQ(r(3), 51u);
  EXPECT_EQ(r(4), 54u);
  EXPECT_EQ(r(5), 55u);
  EXPECT_EQ(r(6), 50u);
  EXPECT_EQ(r(7), 77u);
}

// ---- ldvary

TEST_P(RunTest, VaryingTiming) {
  Varying varyings[3 + kVaryingsBehind] = {};
  for (uint32_t i = 0; i < 3; ++i) varyings[i] = {kLaneIndex + 100u * (i + 1), splat(1000u * (i + 1))};
  m.t().set_varyings(varyings, 3);
  implicit() = splat(5u);
  const auto vary = [](int n) { return I().sig(kLdvary, to(n)); };
  const auto read_c = [&](int n) { return I().add(Op::kOr, to(n), implicit_operand(), implicit_operand()); };
  const auto both = [&](int c, int vp) {
    I i = read_c(c);
    return i.sig(kLdvary, to(vp));
  };
  EXPECT_EQ(m.run_program({vary(10), both(20, 11), both(21, 12), read_c(22), read_c(23), read_c(24),
                           vary(13),  // after the last component
                           read_c(25), read_c(26), both(27, 14), both(28, 15), both(29, 16), read_c(30)}),
            Stop::kEnd);
  EXPECT_EQ(lanes(m.t().rf[10]), lanes(varyings[0].vp));
  EXPECT_EQ(lanes(m.t().rf[11]), lanes(varyings[1].vp));
  EXPECT_EQ(lanes(m.t().rf[12]), lanes(varyings[2].vp));
  EXPECT_EQ(r(20), 5u);  // one later: the old value
  EXPECT_EQ(r(21), 1000u);
  EXPECT_EQ(r(22), 2000u);
  EXPECT_EQ(r(23), 3000u);
  EXPECT_EQ(r(24), 3000u);
  EXPECT_EQ(r(13), 0u);
  EXPECT_EQ(r(25), 3000u);
  for (const uint32_t zero : {26, 14, 27, 15, 28, 16, 29, 30}) EXPECT_EQ(r(zero), 0u) << zero;
}

// The delay counts instructions of the thread, also across a switch, a branch and an interruption.
TEST_P(RunTest, VaryingAcrossSwitch) {
  const Varying varying[1 + kVaryingsBehind] = {{splat(1u), splat(2u)}};
  m.t().set_varyings(varying, 1);
  m.t().final_section = false;
  m.t().stop_at_switch = true;
  m.load({thrsw(), nop(), I().sig(kLdvary, to(1)),
          I().add(Op::kOr, to(2), implicit_operand(), implicit_operand()),
          I().add(Op::kOr, to(3), implicit_operand(), implicit_operand()), thrsw(), thrsw(), nop(), thrsw(),
          nop(), nop()});
  implicit() = splat(9u);
  EXPECT_EQ(m.resume(), Stop::kSwitch);
  EXPECT_EQ(r(1), 1u);
  EXPECT_EQ(m.resume(), Stop::kSwitch);
  EXPECT_EQ(r(2), 9u);
  EXPECT_EQ(r(3), 2u);
}

// ldvary with a load of the other kind: both arrive, the uniform at once and C two later.
TEST_P(RunTest, VaryingWithUniform) {
  const Varying varying[1 + kVaryingsBehind] = {{splat(1u), splat(2u)}};
  m.t().set_varyings(varying, 1);
  m.uniforms({30});
  EXPECT_EQ(m.run_program({I().sig(kLdvary | kLdunif, to(1)),
                           I().add(Op::kOr, to(2), implicit_operand(), implicit_operand()),
                           I().add(Op::kOr, to(3), implicit_operand(), implicit_operand())}),
            Stop::kEnd);
  EXPECT_EQ(r(1), 1u);
  EXPECT_EQ(r(2), 30u);
  EXPECT_EQ(r(3), 2u);
}

// ---- VPM

TEST_P(RunTest, VertexMemory) {
  AlignedLanes in[3], out[4] = {};
  for (uint32_t i = 0; i < 3; ++i) in[i] = kLaneIndex + 100u * i;
  m.t().vpm_in = in;
  m.t().vpm_in_rows = 3;
  m.t().vpm_out = out;
  m.t().vpm_out_rows = 4;
  m.t().rf[9] = kLaneIndex & 3u;
  m.t().flag_a = 0x00ff;
  const Dst none = kNowhere;
  EXPECT_EQ(m.run_program({I().add(Op::kLdvpmvIn, to(1), imm(2)), I().add(Op::kLdvpmvIn, to(2), imm(3)),
                           I().add(Op::kLdvpmvIn, to(3), imm(-1)), I().add(Op::kLdvpmdIn, to(4), rf(9)),
                           I().add(Op::kStvpmv, none, imm(1), rf(1)),
                           I().add(Op::kStvpmv, none, imm(2), rf(1)).add_if(Cond::kIfa),
                           I().add(Op::kStvpmv, none, imm(4), rf(1)), I().add(Op::kLdvpmvOut, to(5), imm(1)),
                           I().add(Op::kLdvpmdOut, to(6), rf(9))}),
            Stop::kEnd);
  EXPECT_EQ(lanes(m.t().rf[1]), lanes(in[2]));
  EXPECT_EQ(lanes(m.t().rf[2]), same(0));
  EXPECT_EQ(lanes(m.t().rf[3]), same(0));
  for (int lane = 0; lane < kLanes; ++lane) {
    const uint32_t row = lane & 3;
    EXPECT_EQ(m.t().rf[4][lane], row < 3 ? static_cast<uint32_t>(lane) + 100 * row : 0u);
    EXPECT_EQ(m.t().rf[6][lane], uint32_t{out[row][lane]});
  }
  EXPECT_EQ(lanes(out[0]), same(0));
  EXPECT_EQ(lanes(out[1]), lanes(in[2]));
  EXPECT_EQ(lanes(out[2]), lanes(select(0x00ff, in[2], Lanes{})));
  EXPECT_EQ(lanes(m.t().rf[5]), lanes(in[2]));
}

TEST_P(RunTest, GeometryMemory) {
  AlignedLanes in[6], out[8] = {};
  for (uint32_t i = 0; i < 6; ++i) in[i] = kLaneIndex + 100u * i;
  m.t().gs_in = in;
  m.t().gs_in_rows = 2;
  m.t().gs_in_vertices = 3;
  m.t().vpm_out = out;
  m.t().vpm_out_rows = 8;
  m.t().rf[1] = kLaneIndex & 3u;  // vertex
  m.t().rf[2] = kLaneIndex >> 1;  // row of the output: 0..7
  m.t().rf[3] = kLaneIndex + 1000u;
  m.t().flag_a = 0x7fff;
  EXPECT_EQ(m.run_program({I().add(Op::kLdvpmgIn, to(4), imm(1), rf(1)),
                           I().add(Op::kLdvpmgIn, to(5), imm(2), rf(1)),
                           I().add(Op::kStvpmd, kNowhere, rf(2), rf(3)).add_if(Cond::kIfa)}),
            Stop::kEnd);
  for (int lane = 0; lane < kLanes; ++lane) {
    const uint32_t vertex = lane & 3;
    EXPECT_EQ(m.t().rf[4][lane], vertex < 3 ? uint32_t{in[vertex * 2 + 1][lane]} : 0u);
    EXPECT_EQ(m.t().rf[5][lane], 0u);
    for (int row = 0; row < 8; ++row)
      EXPECT_EQ(out[row][lane], row == lane / 2 && lane < 15 ? static_cast<uint32_t>(lane) + 1000 : 0u);
  }
}

// ---- Programs

TEST_P(RunTest, RewrittenCodeIsDecodedAgain) {
  EXPECT_EQ(m.run_program({count(1)}), Stop::kEnd);
  m.reset();
  EXPECT_EQ(m.run_program({count(2)}), Stop::kEnd);
  EXPECT_EQ(r(1), 0u);
  EXPECT_EQ(r(2), 1u);
}

TEST(ProgramCache, ReturnsTheSameProgram) {
  std::vector<uint8_t> memory(1 << 16);
  ProgramCache cache(chip::Generation::k71);
  const auto words = assemble(chip::Generation::k71, {thrsw(), nop(), nop()});
  std::memcpy(memory.data() + 0x1000, words.data(), 24);
  const auto thread = std::make_unique<Thread>();
  const auto run_once = [&] {
    auto program = cache.get(Memory(memory.data()), 0x1000);
    thread->reset();
    thread->memory = Memory(memory.data());
    thread->pc = 0x1000;
    thread->final_section = true;
    EXPECT_EQ(run(*program, *thread), Stop::kEnd);
    return program;
  };
  const auto first = run_once(), second = run_once();
  EXPECT_EQ(first, second);
  memory[0x1008] ^= 1;
  EXPECT_NE(run_once(), first);
}

// One program, many threads: decoding on demand must not race (run under TSan).
TEST(ProgramCache, ConcurrentThreads) {
  std::vector<uint8_t> memory(1 << 18);
  std::vector<Instruction> code;
  for (int i = 0; i < 1000; ++i) code.push_back(count(1));
  append_end(code);
  const auto words = assemble(chip::Generation::k71, code);
  std::memcpy(memory.data() + 0x1000, words.data(), words.size() * 8);
  ProgramCache cache(chip::Generation::k71);
  std::vector<std::thread> workers;
  for (int w = 0; w < 4; ++w) {
    workers.emplace_back([&] {
      const auto thread = std::make_unique<Thread>();
      thread->reset();
      thread->memory = Memory(memory.data());
      thread->pc = 0x1000;
      thread->final_section = true;
      EXPECT_EQ(run(*cache.get(Memory(memory.data()), 0x1000), *thread), Stop::kEnd);
      EXPECT_EQ(thread->rf[1][7], 1000u);
    });
  }
  for (std::thread& w : workers) w.join();
}

// A client can choose any number of entry points; the cache must stay bounded and correct.
TEST(ProgramCache, ManyEntryPoints) {
  std::vector<uint8_t> memory(1 << 18);
  const std::vector<uint64_t> words(3000, *encode(chip::Generation::k71, thrsw()));
  std::memcpy(memory.data() + 0x1000, words.data(), words.size() * 8);
  ProgramCache cache(chip::Generation::k71);
  const auto thread = std::make_unique<Thread>();
  for (int round = 0; round < 2; ++round) {
    for (GpuAddr entry = 0x1000; entry < 0x1000 + 2000 * 8; entry += 8) {
      thread->reset();
      thread->memory = Memory(memory.data());
      thread->pc = entry;
      thread->final_section = true;
      ASSERT_EQ(run(*cache.get(Memory(memory.data()), entry), *thread), Stop::kEnd);
      ASSERT_EQ(thread->pc, entry + 24);
    }
  }
}

// A program that walks through more than 64 Ki instructions ends as a hang instead of taking memory.
TEST(ProgramCache, LargeProgramsHang) {
  std::vector<uint8_t> memory(1 << 20);
  const std::vector<uint64_t> words(memory.size() / 8, *encode(chip::Generation::k71, nop()));
  std::memcpy(memory.data(), words.data(), memory.size());
  ProgramCache cache(chip::Generation::k71);
  const auto thread = std::make_unique<Thread>();
  thread->reset();
  thread->memory = Memory(memory.data());
  thread->pc = 0;
  EXPECT_EQ(run(*cache.get(Memory(memory.data()), 0), *thread), Stop::kHang);
  EXPECT_EQ(thread->instructions, 65536u);
}

}  // namespace
}  // namespace v3d::qpu
