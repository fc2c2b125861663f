/// Sums of lanes in memory that others write to, too.

#include <array>
#include <barrier>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gpu/qpu/isa/assembler.h"
#include "tests/qpu/jit/twins.h"

namespace v3d::qpu {
namespace {

class JitAtomics : public TwinsOfTargets {
 protected:
  /// rf1 addresses, rf2 what is added, rf3 not 0: the lane takes part. The words before go to rf10 and on.
  void load_sums(int count) {
    std::string text = "mov.pushz -, rf3\nldunifrf.rf5\n";
    for (int n = 0; n < count; ++n)
      text +=
          "mov tmud, rf2\nmov tmuc, rf5\nmov.ifna tmua, rf1\nldtmu.rf" + std::to_string(kBefore + n) + "\n";
    const Assembly assembly = assemble(chip::Generation::k71, text + "end");
    ASSERT_TRUE(assembly.errors.empty()) << to_string(assembly.errors.at(0));
    load(assembly.words);
  }
  static void prepare(Twin& twin) {
    twin.start();
    twin.t().final_section = true;
    twin.t().msf = splat(1u);
    twin.memory().store<uint32_t>(Twin::kUniforms, 0xffffff87);  // sums of words, pixel by pixel
  }
  void SetUp() override {
    Twins::SetUp();
    both([](Twin& twin) { twin.t().reset(); });
  }
  static constexpr int kBefore = 10;
};

INSTANTIATE_TEST_SUITE_P(Targets, JitAtomics, kTargets, kNameOfTarget);

// Lanes that meet at a word add in their order.
TEST_P(JitAtomics, GiveTheWordsBefore) {
  load_sums(1);
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const uint32_t many = 1u << random() % 9;
    Lanes address, value, part;
    for (int i = 0; i < kLanes; ++i) {
      address[i] = Twin::kData + static_cast<uint32_t>(random() % many * 4);
      value[i] = static_cast<uint32_t>(random());
      part[i] = round % 2 == 0 || random() % 4 == 0;
    }
    both([&](Twin& twin) {
      prepare(twin);
      twin.t().rf[1] = address;
      twin.t().rf[2] = value;
      twin.t().rf[3] = part;
    });
    EXPECT_EQ(run_both(), Stop::kEnd);
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
}

TEST_P(JitAtomics, OfMissingPagesAreCounted) {
  load_sums(1);
  for (int round = 0; round < 3; ++round) {
    both([&](Twin& twin) {
      prepare(twin);
      twin.t().rf[1] = Twin::kData + kLaneIndex * 0x1000u;  // most lie beyond what is mapped
      twin.t().rf[2] = kLaneIndex + 1u;
      twin.t().rf[3] = splat(1u);
    });
    EXPECT_EQ(run_both(), Stop::kEnd);
  }
}

// Two threads add at the same words at one time. Nothing is lost, and no two get the same word.
TEST_P(JitAtomics, LoseNothingAgainstOthers) {
  constexpr int kSums = 32;
  constexpr uint32_t kTurns = 100'000, kWords = 24;
  load_sums(kSums);
  ProgramCache cache(generation, &compiler);
  const auto program = cache.get(compiled.memory(), Twin::kCode);
  compiled.memory().store<uint32_t>(Twin::kUniforms, 0xffffff87);
  std::array<std::vector<uint32_t>, 2> seen;  // by thread: what it found in word 0
  std::barrier begin(2);
  const auto work = [&](size_t number) {
    const auto thread = std::make_unique<Thread>();
    tmu::Unit unit(compiled.memory(), generation);
    std::mt19937 random(static_cast<uint32_t>(number));
    thread->reset();
    begin.arrive_and_wait();
    for (uint32_t turn = 0; turn < kTurns; ++turn) {
      thread->restart();
      thread->memory = compiled.memory();
      thread->tmu = &unit;
      thread->pc = Twin::kCode;
      thread->uniforms = Twin::kUniforms;
      thread->final_section = true;
      thread->msf = splat(1u);
      thread->rf[2] = thread->rf[3] = splat(1u);
      for (int i = 0; i < kLanes; ++i) {
        thread->rf[1][i] = Twin::kData + static_cast<uint32_t>(random() % kWords * 4);
        thread->rf[3][i] = turn % 4 != 0 || random() % 2 == 0;
      }
      if (qpu::run(*program, *thread) != Stop::kEnd) std::abort();
      for (int i = 0; i < kLanes; ++i)
        for (int n = 0; n < kSums && thread->rf[3][i] && thread->rf[1][i] == Twin::kData; ++n)
          seen[number].push_back(thread->rf[kBefore + n][i]);
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  EXPECT_GT(compiler.statistics().executed.compiled, kTurns);

  std::vector<bool> known(seen[0].size() + seen[1].size());
  for (const auto& values : seen)
    for (const uint32_t value : values) {
      ASSERT_LT(value, known.size());
      EXPECT_FALSE(known[value]);
      known[value] = true;
    }
  EXPECT_EQ(compiled.memory().load<uint32_t>(Twin::kData), known.size());
}

}  // namespace
}  // namespace v3d::qpu
