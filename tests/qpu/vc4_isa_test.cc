#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>
#include <string>

#include "gpu/qpu/isa/vc4.h"
#include "tests/qpu/vc4_words.h"
#if V3DEMU_HAVE_MESA
#include "tests/qpu/mesa_vc4.h"
#endif

namespace v3d::qpu::vc4 {
namespace {

// What Mesa prints for the short form of the table.
std::string full(std::string text) {
  const auto replace = [&](const std::string& from, const std::string& to) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  };
  replace("; ", " ; ");
  replace("·", "nop nop, r0, r0");
  return text;
}

TEST(Vc4Isa, KnownWords) {
  for (const KnownWord& known : kKnownWords) {
    EXPECT_EQ(disassemble(known.word), full(known.text)) << std::hex << known.word;
    EXPECT_EQ(encode(decode(known.word)), known.word);
    EXPECT_EQ(flaw(decode(known.word)), nullptr) << known.text;
  }
}

TEST(Vc4Isa, EveryWordComesBack) {
  std::mt19937_64 random(0x5eed);
  for (int n = 0; n < 100000; ++n) {
    const uint64_t word = random();
    ASSERT_EQ(encode(decode(word)), word) << std::hex << word << " " << disassemble(word);
  }
}

TEST(Vc4Isa, FieldsOfWords) {
  const Instruction fmul = decode(0x100049e0203e303e);  // fmul r0, vary, ra15
  EXPECT_EQ(fmul.form(), Form::kAlu);
  EXPECT_EQ(mul_op(fmul.op_mul), Op::kFmul);
  EXPECT_EQ(fmul.waddr_mul, 32);
  EXPECT_EQ(fmul.raddr_a, 15);
  EXPECT_EQ(read_address(kFileB, fmul.raddr_b).port, ReadPort::kVarying);

  const Instruction branch = decode(0xf0fd09e700000000);
  EXPECT_EQ(branch.form(), Form::kBranch);
  EXPECT_EQ(branch.branch_cond, BranchCond::kAlways);
  EXPECT_TRUE(branch.relative && branch.with_register);
  EXPECT_EQ(branch.raddr_a, 8);

  EXPECT_EQ(decode(0xe80249e700000015).form(), Form::kSemaphore);
  EXPECT_EQ(decode(0xe2024867ccccaaaa).unpack, kImmediateSigned);
}

// One code of each kind that is reserved, or of which no public source has a meaning.
TEST(Vc4Isa, Flaws) {
  Instruction i = decode(0x100009e7009e7000);
  EXPECT_EQ(flaw(i), nullptr);
  const auto with = [&](auto change) {
    Instruction changed = i;
    change(changed);
    return flaw(changed) != nullptr;
  };
  EXPECT_TRUE(with([](Instruction& c) { c.op_add = 9; }));
  EXPECT_TRUE(with([](Instruction& c) { c.op_add = 29; }));
  EXPECT_TRUE(with([](Instruction& c) { c.signal = Signal::kBreakpoint; }));
  EXPECT_TRUE(with([](Instruction& c) { c.signal = Signal::kCoverageLoad; }));
  EXPECT_TRUE(with([](Instruction& c) { c.pm = true, c.pack = 1; }));
  EXPECT_FALSE(with([](Instruction& c) { c.pack = 1; }));
  EXPECT_TRUE(with([](Instruction& c) { c.waddr_add = 47; }));
  EXPECT_TRUE(with([](Instruction& c) { c.waddr_mul = 40; }));
  EXPECT_FALSE(with([](Instruction& c) { c.waddr_add = 40; }));
  EXPECT_TRUE(with([](Instruction& c) { c.signal = Signal::kLoadImmediate, c.unpack = 2; }));
  i.signal = Signal::kBranch;
  EXPECT_TRUE(with([](Instruction& c) { c.branch_cond = static_cast<BranchCond>(13); }));
}

TEST(Vc4Isa, SmallImmediates) {
  EXPECT_EQ(small_immediate(15), 15u);
  EXPECT_EQ(small_immediate(16), 0xfffffff0u);
  EXPECT_EQ(small_immediate(31), 0xffffffffu);
  EXPECT_EQ(small_immediate(32), 0x3f800000u);
  EXPECT_EQ(small_immediate(39), 0x43000000u);
  EXPECT_EQ(small_immediate(40), 0x3b800000u);
  EXPECT_EQ(small_immediate(47), 0x3f000000u);
  EXPECT_EQ(small_immediate(48), 0xfffffff0u);
}

#if V3DEMU_HAVE_MESA
TEST(Vc4Isa, RandomWordsPrintAsMesaPrintsThem) {
  std::mt19937_64 random(0xf00d);
  std::set<Signal> signals;
  for (int n = 0; n < 200000; ++n) {
    const uint64_t word = random();
    signals.insert(decode(word).signal);
    ASSERT_EQ(disassemble(word), mesa_vc4_disassemble(word)) << std::hex << word;
  }
  EXPECT_EQ(signals.size(), 16u);
}
#endif

}  // namespace
}  // namespace v3d::qpu::vc4
