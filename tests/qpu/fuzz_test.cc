/// Random programs in a real address space: no crash, no access outside the model, and never more
/// instructions than the budget.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <random>

#include "gpu/mmu/address_space.h"
#include "tests/qpu/fake_tmu.h"
#include "tests/qpu/machine.h"
#include "tests/qpu/stage_room.h"

namespace v3d::qpu {
namespace {

class Fuzz : public testing::TestWithParam<chip::Generation> {
 protected:
  static constexpr GpuAddr kCode = 0x10000, kData = 0x80000;
  static constexpr uint32_t kWords = 512;
  static constexpr uint64_t kBudget = 3000;

  void SetUp() override {
    auto created = mmu::AddressSpace::create();
    ASSERT_TRUE(created.ok());
    space = std::move(*created);
    ASSERT_TRUE(space->map_zeros(kCode, 1 << 13).ok());
    ASSERT_TRUE(space->map_zeros(kData, 1 << 13).ok());
    for (Lanes& v : room.vpm_in) v = splat(static_cast<uint32_t>(random()));
    for (Lanes& v : room.gs_in) v = splat(static_cast<uint32_t>(random()));
    for (Varying& v : room.components()) v = {splat(1u), splat(2u)};
  }

  void start(int round) {
    t.reset();
    t.memory = space->memory();
    t.pc = kCode;
    t.uniforms = kData;
    t.unifa = kData + 0x1000;
    t.msf = kLaneIndex & 15u;
    t.tmu = &unit;
    room.give_to(t, round & 1);
    t.stop_at_switch = round & 2;
    t.final_section = round & 4;
    t.budget = kBudget;
  }

  Stop finish() { return run_through(*cache.get(t.memory, kCode), t); }

  std::mt19937_64 random{99};
  std::unique_ptr<mmu::AddressSpace> space;
  tmu::Unit unit{Memory(), GetParam()};
  StageRoom room;
  std::unique_ptr<Thread> thread = std::make_unique<Thread>();
  Thread& t = *thread;
  ProgramCache cache{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Versions, Fuzz, testing::Values(chip::Generation::k71, chip::Generation::k42));

// A word that decodes, seldom one that is likely to end the program.
uint64_t lasting_word(std::mt19937_64& random, chip::Generation generation) {
  for (;;) {
    const uint64_t word = random();
    Instruction i;
    if (!decode(generation, word, i)) continue;
    if (i.is_branch) {
      i.branch.target = BranchTarget::kAbsolute;
      i.branch.offset = 0x10000 + static_cast<uint32_t>(random() % 500) * 8;
      i.branch.uniforms = random() % 16 == 0;
      return *encode(generation, i);
    }
    const auto launches = [](const AluHalf& h) { return h.magic && h.waddr >= kWaddrTmus; };
    const bool risky = (i.signals & (kLdtmu | kThrsw)) || launches(i.add) || launches(i.mul);
    if (!risky || random() % 64 == 0) return word;
  }
}

TEST_P(Fuzz, LastingPrograms) {
  uint64_t executed = 0;
  int ends = 0;
  for (int round = 0; round < 200; ++round) {
    for (uint32_t i = 0; i < kWords; ++i)
      space->memory().store<uint64_t>(kCode + i * 8, lasting_word(random, GetParam()));
    for (uint32_t i = 0; i < 0x2000; i += 4)
      space->memory().store<uint32_t>(kData + i, static_cast<uint32_t>(random()));
    fake_tmu() = {};
    fake_tmu().words = static_cast<int>(random() % 5);
    start(round);
    ends += finish() == Stop::kEnd;
    ASSERT_LE(t.instructions + t.budget, kBudget);
    executed += t.instructions;
  }
  EXPECT_GT(executed, 10'000u);
  EXPECT_GT(ends, 0);
}

// Any words, also branches to anywhere.
TEST_P(Fuzz, WildPrograms) {
  for (int round = 0; round < 200; ++round) {
    const uint64_t nop = *encode(GetParam(), Instruction());
    for (uint32_t i = 0; i < kWords; ++i) {
      uint64_t word = random();
      if (random() % 2) word = (word & 0xffff'ffff) | (nop & ~uint64_t{0xffff'ffff});
      if (random() % 16 == 0) word = (word & ~(uint64_t{0xff} << 56)) | uint64_t{2} << 56;  // a branch
      space->memory().store<uint64_t>(kCode + i * 8, word);
    }
    fake_tmu() = {};
    start(round);
    finish();
    ASSERT_LE(t.instructions + t.budget, kBudget);
  }
}

TEST_P(Fuzz, RandomWordsPrint) {
  for (int n = 0; n < 100'000; ++n) {
    const uint64_t word = random();
    Instruction i;
    if (!decode(GetParam(), word, i)) continue;
    const std::string text = disassemble(GetParam(), i);
    ASSERT_FALSE(text.empty());
    ASSERT_LT(text.size(), 200u);
  }
}

}  // namespace
}  // namespace v3d::qpu
