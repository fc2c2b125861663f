/// Rows of loads and stores of the TMU by address, as loops over memory have them.

#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "tests/qpu/assembly.h"
#include "tests/qpu/jit/twins.h"

namespace v3d::qpu {
namespace {

using namespace assembly;

using TargetAndGeneration = std::tuple<jit::Target, chip::Generation>;

class JitAccesses : public Twins, public testing::WithParamInterface<TargetAndGeneration> {
 protected:
  JitAccesses() : Twins(std::get<0>(GetParam()), std::get<1>(GetParam())) {}

  /// Registers with addresses, what is added to them, and all others.
  static constexpr int kConsecutive = 1, kOthers = 4, kAddresses = 8, kStep = 9, kValues = 10, kEnd = 42;

  bool one_in(uint32_t n) { return random() % n == 0; }
  int value() { return kValues + static_cast<int>(random() % (kEnd - kValues)); }
  int address() {
    return one_in(4) ? kOthers + static_cast<int>(random() % (kAddresses + 1 - kOthers))
                     : kConsecutive + static_cast<int>(random() % (kOthers - kConsecutive));
  }

  /// A write to a port beside which the add half does something.
  I write(Waddr port, int from) {
    I word;
    word.mul(Op::kMov, to(port), rf(from));
    const int other = one_in(2) ? kStep : value();
    if (one_in(4)) return word;
    word.add(one_in(2) ? Op::kFadd : Op::kAdd, to(value()), rf(from), rf(other));
    if (one_in(8)) word.add_flags(one_in(2) ? FlagWrite::kPushz : FlagWrite::kPushn);
    return word;
  }
  I launch() {
    const int from = address();
    I word = write(one_in(12) ? kWaddrTmuau : kWaddrTmua, from);
    if (one_in(2)) word.add(Op::kAdd, to(from), rf(from), rf(kStep));
    if (one_in(12)) word.mul_if(static_cast<Cond>(random() % 5));
    return word;
  }
  std::vector<Instruction> accesses() {
    std::vector<Instruction> program;
    const int count = one_in(12) ? 80 : 1 + static_cast<int>(random() % 24);
    const bool takes_words = !one_in(12), other_config = one_in(4);
    int waiting = 0;
    for (int n = 0; n < count; ++n) {
      const bool stores = one_in(2);
      for (uint32_t words = !stores ? 0 : one_in(12) ? 2 : 1; words > 0; --words)
        program.push_back(write(kWaddrTmud, value()));
      if (other_config && one_in(6)) program.push_back(write(kWaddrTmuc, value()));
      if (one_in(40)) program.push_back(write(kWaddrTmut, value()));
      if (one_in(3)) program.push_back(I().add(Op::kFadd, to(value()), rf(value()), rf(kStep)));
      I word = launch();
      const bool takes = takes_words && waiting > 0 && one_in(2);
      const Instruction take = I().sig(kLdtmu, to(value()));
      I both = word;
      both.sig(kLdtmu, to(take.signal_waddr));
      const bool beside = takes && generation == chip::Generation::k71 &&
                          encode(generation, both);  // some words have no room
      program.push_back(beside ? both : word);
      if (takes && !beside) program.push_back(take);
      waiting += !stores - takes;
    }
    for (; takes_words && waiting > 0; --waiting) program.push_back(I().sig(kLdtmu, to(value())));
    append_end(program);
    return program;
  }

  void start() {
    const uint64_t seed = random();
    both([&](Twin& twin) {
      random.seed(static_cast<uint32_t>(seed));
      Thread& t = twin.t();
      t.reset();
      twin.start();
      t.final_section = true;
      t.budget = 3000;
      for (Lanes& r : t.rf) r = any_lanes();
      const auto base = [&] { return Twin::kData + static_cast<uint32_t>(random() % 0x200) * 4; };
      for (int n = kConsecutive; n < kOthers; ++n) t.rf[n] = base() + kLaneIndex * 4u;
      t.rf[kOthers] = splat(base());
      t.rf[kOthers + 1] = base() + kLaneIndex * 4u + static_cast<uint32_t>(random() % 4);
      t.rf[kOthers + 2] = base() + kLaneIndex * 16u;
      t.rf[kOthers + 3] = base() + (any_lanes() & 0x1fcu);
      t.rf[kAddresses] = static_cast<uint32_t>(0 - random() % 40 * 4) + kLaneIndex * 4u;
      t.rf[kStep] = splat(one_in(4) ? 4u : 64u);
      t.msf = splat(1u);
      if (one_in(6)) t.msf = kLaneIndex & 3u;
      for (uint32_t n = 0; n < Twin::kBytes; n += 4) {
        const auto config = static_cast<uint32_t>(0xffffff00 | random() % 11 * 8 | 0x87);
        twin.memory().store<uint32_t>(Twin::kUniforms + n, config);
        twin.memory().store<uint32_t>(Twin::kData + n, static_cast<uint32_t>(random()));
      }
    });
  }
  Lanes any_lanes() {
    Lanes v;
    for (int i = 0; i < kLanes; ++i) v[i] = static_cast<uint32_t>(random());
    return v;
  }

  std::mt19937 random{7};
};

INSTANTIATE_TEST_SUITE_P(Targets, JitAccesses,
                         testing::Combine(kTargets,
                                          testing::Values(chip::Generation::k71, chip::Generation::k42)),
                         [](const auto& p) {
                           return std::string(jit::name(std::get<0>(p.param))) + "_" +
                                  std::to_string(version_number(std::get<1>(p.param)));
                         });

TEST_P(JitAccesses, InRows) {
  for (int round = 0; round < 600; ++round) {
    load(assemble(generation, accesses()));
    start();
    run_both();
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
  EXPECT_GT(compiler.statistics().executed.compiled, 5'000u);
}

TEST_P(JitAccesses, InSlices) {
  for (int round = 0; round < 200; ++round) {
    load(assemble(generation, accesses()));
    start();
    const uint64_t slice = 1 + random() % 40;
    Stop stop = Stop::kBudget;
    for (int n = 0; n < 1000 && stop == Stop::kBudget; ++n) {
      both([&](Twin& twin) { twin.t().budget = slice; });
      stop = run_both();
      ASSERT_FALSE(HasFailure()) << "round " << round << " slice " << slice;
    }
  }
}

// A program that changes which lanes have samples.
TEST_P(JitAccesses, BehindAMaskThatChanges) {
  for (int round = 0; round < 200; ++round) {
    std::vector<Instruction> program = accesses();
    I change;
    change.add(Op::kSetmsf, {kWaddrNop, true}, rf(value()));
    if (one_in(2)) change.add_if(static_cast<Cond>(random() % 5));
    program.insert(program.begin() + static_cast<int>(random() % (program.size() - 2)), change);
    load(assemble(generation, program));
    start();
    if (one_in(2)) both([&](Twin& twin) { twin.t().rf[kValues] = splat(0u); });
    run_both();
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
}

TEST_P(JitAccesses, WithoutATmu) {
  load(assemble(generation, accesses()));
  start();
  both([](Twin& twin) { twin.t().tmu = nullptr; });
  run_both();
}

}  // namespace
}  // namespace v3d::qpu
