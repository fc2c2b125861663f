/// Random programs of V3D 2.1 in a real address space: no crash, no access outside the model, and never more
/// instructions than the budget.

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <utility>

#include "gpu/mmu/address_space.h"
#include "gpu/qpu/check/vc4_hazard.h"
#include "gpu/qpu/isa/vc4.h"
#include "gpu/qpu/run/program_room.h"
#include "gpu/qpu/run/vc4_interpreter.h"
#include "gpu/qpu/run/vc4_program.h"

namespace v3d::qpu::vc4 {
namespace {

class AnyTlb : public Tlb {
 public:
  Lanes load_color(Thread&) override { return splat(0x40302010u); }
  void write_color(Thread&, const Lanes&, LaneMask, bool) override {}
  void write_z(Thread&, const Lanes&, LaneMask) override {}
  void set_stencil(Thread&, uint32_t) override {}
};
class AnyTmu : public Tmu {
 public:
  Lanes texture(Thread&, const Lookup& lookup) override { return lookup.s ^ lookup.t; }
};

class Vc4Fuzz : public testing::Test {
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
  }

  Stop run_words(const std::array<uint64_t, kWords>& words, int round) {
    const Memory memory = space->memory();
    memory.write(kCode, words.data(), sizeof(words));
    Program program(kCode, std::make_shared<ProgramRoom>(Program::kMaxChunks));
    thread->reset();
    for (Lanes& v : thread->registers) v = splat(static_cast<uint32_t>(random()));
    thread->memory = memory;
    thread->pc = kCode;
    thread->uniforms = kData;
    thread->tlb = round & 1 ? &tlb : nullptr;
    thread->tmu = round & 2 ? &tmu : nullptr;
    thread->shared = round & 4 ? &shared : nullptr;
    if (round & 8) thread->vpm_in = thread->vpm_out = {rows, kVpmRows};
    thread->varyings = varyings;
    thread->num_varyings = 4;
    thread->budget = kBudget;
    const Stop stop = run(program, *thread);
    EXPECT_LE(thread->instructions, kBudget);
    return stop;
  }

  std::mt19937_64 random{99};
  std::unique_ptr<mmu::AddressSpace> space;
  AnyTlb tlb;
  AnyTmu tmu;
  Shared shared;
  AlignedLanes rows[kVpmRows] = {};
  Varying varyings[4] = {};
  std::unique_ptr<Thread> thread = std::make_unique<Thread>();
};

TEST_F(Vc4Fuzz, RandomWords) {
  std::array<uint64_t, kWords> words;
  for (int round = 0; round < 200; ++round) {
    for (uint64_t& word : words) word = random();
    run_words(words, round);
    check_program(words);
  }
}

// Words without what soon ends a program or waits, and branches that stay in it.
TEST_F(Vc4Fuzz, LastingPrograms) {
  std::array<uint64_t, kWords> words;
  uint64_t executed = 0;
  for (int round = 0; round < 200; ++round) {
    for (uint64_t& word : words) {
      Instruction i;
      do {
        word = random();
        i = decode(word);
      } while (flaw(i) || i.signal == Signal::kEnd || i.signal == Signal::kColorLoadEnd ||
               i.signal == Signal::kLoadTmu0 || i.signal == Signal::kLoadTmu1 ||
               i.form() == Form::kSemaphore || i.waddr_add >= 56 || i.waddr_mul >= 56);
      if (i.form() != Form::kBranch) continue;
      if (random() % 8 != 0) {
        word = 0x100009e7009e7000;
        continue;
      }
      i.relative = i.with_register = false;
      i.immediate = kCode + static_cast<uint32_t>(random() % kWords) * 8;
      word = encode(i);
    }
    run_words(words, round | 1);
    executed += thread->instructions;
  }
  EXPECT_GT(executed, 20000u);
}

}  // namespace
}  // namespace v3d::qpu::vc4
