/// What V3D 2.1's interpreter executes as actions gives what its instructions give one by one: a thread that
/// is watched executes these.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "gpu/base/qpu_place.h"
#include "gpu/qpu/isa/vc4_assembler.h"
#include "tests/qpu/vc4_random.h"

namespace v3d::qpu::vc4 {
namespace {

class Vc4Actions : public RandomPrograms {};

TEST_F(Vc4Actions, GiveWhatInstructionsGive) {
  const auto begin = std::make_unique<Thread>();
  std::array<Varying, 4> varyings;
  const Assembly end = assemble("end");
  uint64_t executed = 0, ended = 0;
  for (int round = 0; round < 700 && !HasFailure(); ++round) {
    SCOPED_TRACE(round);
    std::array<uint64_t, kWords> words;
    const bool touches_units = round % 2 != 0;
    for (uint64_t& w : words) w = any_instruction(touches_units);
    std::copy_n(end.words.begin(), end.words.size(), words.end() - static_cast<ptrdiff_t>(end.words.size()));
    begin->reset();
    for (Lanes& v : begin->registers) v = any_lanes();
    for (Varying& v : varyings) v = {any_lanes(), any_lanes()};
    begin->varyings = varyings.data();
    begin->num_varyings = static_cast<uint32_t>(varyings.size());
    begin->ms_flags = any_lanes() & 15u;
    begin->budget = touches_units ? UINT64_MAX : 1 + word() % 400;
    Watcher watcher;
    Side as_actions, one_by_one;
    run_side(as_actions, words, *begin, nullptr);
    run_side(one_by_one, words, *begin, &watcher);
    expect_equal(as_actions, one_by_one);
    executed += one_by_one.thread->instructions;
    ended += one_by_one.stop == Stop::kEnd;
  }
  EXPECT_GT(executed, 8000u);
  EXPECT_GT(ended, 50u);
}

// Accesses that go wrong use the budget up, and are no instructions; whoever executes them.
TEST_F(Vc4Actions, FaultsAreNoInstructions) {
  constexpr uint64_t kBudget = 100'000;
  const Assembly text = assemble(
      "mov r0, uni\n"  // an address without memory
      "mov tmu0_s, r0\n"
      "load_tmu0 nop\n"
      "end\n");
  ASSERT_TRUE(text.errors.empty()) << to_string(text.errors[0]);
  const auto begin = std::make_unique<Thread>();
  begin->reset();
  begin->budget = kBudget;
  Watcher watcher;
  for (Observer* observer : {static_cast<Observer*>(nullptr), static_cast<Observer*>(&watcher)}) {
    t_fault_cost = 0;
    Side side;
    run_side(side, text.words, *begin, observer);
    EXPECT_EQ(side.stop, Stop::kEnd);
    EXPECT_EQ(side.thread->instructions, text.words.size());
    EXPECT_LE(side.thread->budget, kBudget - text.words.size() - kFaultCost);
    t_fault_cost = 0;
    Side by_turns;
    run_side(by_turns, text.words, *begin, observer, true);
    EXPECT_EQ(by_turns.stop, Stop::kEnd);
    EXPECT_EQ(by_turns.thread->instructions, text.words.size());
    EXPECT_LE(by_turns.thread->budget, kBudget - 256) << "the rest of the turn at least";
  }
}

}  // namespace
}  // namespace v3d::qpu::vc4
