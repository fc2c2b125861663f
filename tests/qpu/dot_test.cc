/// V8DOT and its mode, which is state of the thread.

#include <gtest/gtest.h>

#include <random>

#include "tests/qpu/machine.h"

namespace v3d::qpu {
namespace {

using namespace assembly;

constexpr Op kSetters[] = {Op::kSetnnmodeUu, Op::kSetnnmodeSu, Op::kSetnnmodeUs, Op::kSetnnmodeSs};

Instruction set(NnMode mode) { return I().add(kSetters[static_cast<int>(mode)]); }
Instruction dot(int destination) { return I().mul(Op::kV8dot, to(destination), rf(1), rf(2)); }

uint32_t scalar_dot(uint32_t a, uint32_t b, bool signed_a, bool signed_b) {
  const auto byte = [](uint32_t v, int n, bool is_signed) {
    const int value = static_cast<int>(v >> (8 * n) & 255);
    return is_signed && value > 127 ? value - 256 : value;
  };
  int sum = 0;
  for (int n = 0; n < 4; ++n) sum += byte(a, n, signed_a) * byte(b, n, signed_b);
  return static_cast<uint32_t>(sum);
}

class DotTest : public testing::Test {
 protected:
  DotTest() { start(); }
  void start() {
    m.reset();
    for (int n = 0; n < kLanes; ++n) {
      t.rf[1][n] = n < 4 ? kCorners[n & 1] : random();
      t.rf[2][n] = n < 4 ? kCorners[n >> 1] : random();
    }
  }
  std::vector<uint32_t> expected(NnMode mode) {
    const bool signed_a = mode == NnMode::kSu || mode == NnMode::kSs;
    const bool signed_b = mode == NnMode::kUs || mode == NnMode::kSs;
    std::vector<uint32_t> result;
    for (int n = 0; n < kLanes; ++n) result.push_back(scalar_dot(t.rf[1][n], t.rf[2][n], signed_a, signed_b));
    return result;
  }

  static constexpr uint32_t kCorners[] = {0xffffffff, 0x80808080};  // 255 or -1, and -128
  std::mt19937 random{5};
  Machine m{chip::Generation::k71};
  Thread& t = m.t();
};

TEST_F(DotTest, Modes) {
  for (const NnMode mode : {NnMode::kUu, NnMode::kSu, NnMode::kUs, NnMode::kSs}) {
    for (int round = 0; round < 50; ++round) {
      start();
      ASSERT_EQ(m.run_program({set(mode), dot(3)}), Stop::kEnd);
      ASSERT_EQ(lanes(t.rf[3]), expected(mode)) << name(mode);
    }
  }
}

// An immediate is four bytes too: 5 is 5, 0, 0, 0 and -1 is four times -1.
TEST_F(DotTest, Immediates) {
  t.rf[1] = splat(0x01020304u);
  m.run_program({set(NnMode::kSs), I().mul(Op::kV8dot, to(3), rf(1), imm(5)),
                 I().mul(Op::kV8dot, to(4), imm(-1), rf(1))});
  EXPECT_EQ(lanes(t.rf[3]), same(20));
  EXPECT_EQ(lanes(t.rf[4]), same(static_cast<uint32_t>(-10)));
}

// One mode for the instructions after it, until the next.
TEST_F(DotTest, ModeLasts) {
  m.run_program({set(NnMode::kSu), dot(3), nop(), dot(4), set(NnMode::kUu), dot(5)});
  EXPECT_EQ(lanes(t.rf[3]), expected(NnMode::kSu));
  EXPECT_EQ(lanes(t.rf[4]), expected(NnMode::kSu));
  EXPECT_EQ(lanes(t.rf[5]), expected(NnMode::kUu));
}

TEST_F(DotTest, ModeLastsAcrossSwitchesAndBranches) {
  m.load({set(NnMode::kSs), thrsw(), nop(), nop(), jump(1), nop(), nop(), nop(), set(NnMode::kUu), dot(3),  //
          thrsw(), thrsw(), nop(), nop(), thrsw(), nop(), nop()});
  t.final_section = false;
  t.stop_at_switch = true;
  EXPECT_EQ(m.resume(), Stop::kSwitch);
  EXPECT_EQ(t.nn_mode, NnMode::kSs);
  EXPECT_EQ(m.resume(), Stop::kSwitch);
  EXPECT_EQ(lanes(t.rf[3]), expected(NnMode::kSs));
  EXPECT_EQ(m.resume(), Stop::kEnd);
}

// Between two threads of one QPU that take turns.
TEST_F(DotTest, ModeBelongsToTheThread) {
  Machine other(chip::Generation::k71);
  for (Machine* machine : {&m, &other}) {
    machine->load({set(machine == &m ? NnMode::kSs : NnMode::kUu), thrsw(), nop(), nop(), dot(3),  //
                   thrsw(), thrsw(), nop(), nop(), thrsw(), nop(), nop()});
    machine->t().final_section = false;
    machine->t().stop_at_switch = true;
    machine->t().rf[1] = machine->t().rf[2] = splat(0xffu);
    EXPECT_EQ(machine->resume(), Stop::kSwitch);
  }
  m.resume();
  other.resume();
  EXPECT_EQ(lanes(m.t().rf[3]), same(1));
  EXPECT_EQ(lanes(other.t().rf[3]), same(255 * 255));
}

// Assumed: unsigned; a thread sees nothing of the one before it.
TEST_F(DotTest, ModeAtStart) {
  m.run_program({dot(3)});
  EXPECT_EQ(lanes(t.rf[3]), expected(NnMode::kUu));
  t.nn_mode = NnMode::kSs;
  t.restart();
  EXPECT_EQ(t.nn_mode, NnMode::kUu);
}

// Assumed: the mode of the same word counts, in every kind of word.
TEST_F(DotTest, ModeOfTheSameWord) {
  const auto pair = [](NnMode mode, int destination) -> I {
    return I().add(kSetters[static_cast<int>(mode)]).mul(Op::kV8dot, to(destination), rf(1), rf(2));
  };
  auto packed = pair(NnMode::kSu, 4);
  packed.mul_if(Cond::kIfna);
  m.uniforms({7});
  m.run_program({pair(NnMode::kSs, 3), packed, pair(NnMode::kUu, 5).sig(kLdunif),
                 I().add(Op::kSetnnmodeUs).mul(Op::kV8dot, to(kWaddrRep), rf(1), rf(2))});
  EXPECT_EQ(lanes(t.rf[3]), expected(NnMode::kSs));
  EXPECT_EQ(lanes(t.rf[4]), expected(NnMode::kSu));
  EXPECT_EQ(lanes(t.rf[5]), expected(NnMode::kUu));
  EXPECT_EQ(lanes(t.rf[0]), same(expected(NnMode::kUs)[0]));
}

// Assumed: some lane's condition sets the mode of all.
TEST_F(DotTest, ConditionalMode) {
  I conditional;
  conditional.add(Op::kSetnnmodeSs).add_if(Cond::kIfa);
  t.flag_a = 0;
  m.run_program({conditional, dot(3)});
  EXPECT_EQ(lanes(t.rf[3]), expected(NnMode::kUu));
  start();
  t.flag_a = 0x0010;
  m.run_program({conditional, dot(3)});
  EXPECT_EQ(lanes(t.rf[3]), expected(NnMode::kSs));
}

// The result is there for the next instruction, and at magic addresses.
TEST_F(DotTest, Destinations) {
  t.rf[1] = splat(0x00000003u);
  t.rf[2] = splat(0x01010104u);
  m.run_program(
      {dot(3), I().add(Op::kAdd, to(4), rf(3), imm(1)).mul(Op::kV8dot, to(kWaddrRep), rf(1), rf(2))});
  EXPECT_EQ(lanes(t.rf[4]), same(13));
  EXPECT_EQ(lanes(t.rf[0]), same(12));
}

}  // namespace
}  // namespace v3d::qpu
