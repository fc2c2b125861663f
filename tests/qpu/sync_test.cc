/// Barriers and the other operations of the sync unit: qpu.md 9.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/qpu/machine.h"

namespace v3d::qpu {
namespace {

using namespace assembly;

// rfN += 1 as a marker of what was executed.
Instruction count(int n) { return I().add(Op::kAdd, to(n), rf(n), imm(1)); }

class SyncTest : public testing::TestWithParam<chip::Generation> {
 protected:
  uint32_t r(int n) { return m.t().rf[n][0]; }
  // Writes the configuration to syncb.
  void start(Lanes configuration) {
    m.reset();
    m.t().final_section = false;
    m.t().rf[1] = configuration;
    m.load({I().mul(Op::kMov, to(kWaddrSyncb), rf(1)).sig(kThrsw), nop(), count(2), count(3),  //
            thrsw(), thrsw(), nop(), nop(), thrsw(), nop(), nop()});
  }
  Machine m{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Versions, SyncTest, testing::Values(chip::Generation::k71, chip::Generation::k42));

TEST_P(SyncTest, Barrier) {
  m.load({count(1), I().add(Op::kBarrierid, to(kWaddrSyncb)).sig(kThrsw), count(2), count(3), count(4),  //
          thrsw(), thrsw(), nop(), nop(), thrsw(), nop(), nop()});
  m.t().final_section = false;
  EXPECT_EQ(m.resume(), Stop::kBarrier);
  EXPECT_EQ(r(3), 1u);
  EXPECT_EQ(r(4), 0u);
  EXPECT_EQ(m.resume(), Stop::kEnd);
  EXPECT_EQ(r(4), 1u);
}

// The token may go through a register, and the switch may come later; the write itself does not block.
TEST_P(SyncTest, BarrierThroughRegister) {
  m.load({I().add(Op::kBarrierid, to(1)), I().mul(Op::kMov, to(kWaddrSyncb), rf(1)), count(2), count(2),
          count(2), thrsw(), count(3), count(4), count(5),  //
          thrsw(), thrsw(), nop(), nop(), thrsw(), nop(), nop()});
  m.t().final_section = false;
  EXPECT_EQ(m.resume(), Stop::kBarrier);
  EXPECT_EQ(r(2), 3u);
  EXPECT_EQ(r(4), 1u);
  EXPECT_EQ(r(5), 0u);
  EXPECT_EQ(m.resume(), Stop::kEnd);
}

// Mesa's fragment barrier: quorum 1, operation 16. And a barrier before the program end does not wait.
TEST_P(SyncTest, OtherSyncsDoNotWait) {
  m.t().rf[1] = Lanes{1, 0, 5, 16};
  m.t().final_section = false;
  m.load({I().mul(Op::kMov, to(kWaddrSyncb), rf(1)).sig(kThrsw), nop(), nop(),  //
          thrsw(), thrsw(), nop(), nop(),                                       //
          I().add(Op::kBarrierid, to(kWaddrSyncb)).sig(kThrsw), nop(), nop()});
  EXPECT_EQ(m.resume(), Stop::kEnd);
}

// A quorum of several threads meets at an object.
TEST_P(SyncTest, Meeting) {
  start(Lanes{4, 0, 64 + 5, 16});
  EXPECT_EQ(m.resume(), Stop::kMeeting);
  EXPECT_EQ(m.t().meeting.threads, 4u);
  EXPECT_EQ(m.t().meeting.object, 5);
  EXPECT_EQ(r(2), 1u);  // after the delay slots
  EXPECT_EQ(r(3), 0u);
  EXPECT_EQ(m.resume(), Stop::kEnd);
  EXPECT_EQ(r(3), 1u);
}

// Where nobody would let the thread go, and when the operation is not known.
TEST_P(SyncTest, UnknownOperationsDoNotWait) {
  start(Lanes{4, 0, 5, 16});
  AlignedLanes vpm[1];
  m.t().vpm_out = vpm;
  EXPECT_EQ(m.resume(), Stop::kEnd);
  for (const uint32_t operation : {0u, 11u, 15u, 17u, ~0u}) {
    start(Lanes{4, 0, 5, operation});
    EXPECT_EQ(m.resume(), Stop::kEnd);
  }
}

// In a process of its own: each is named once.
TEST_P(SyncTest, UnknownOperationsAreNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run = [&](uint32_t operation) {
    start(Lanes{4, 0, 5, operation});
    m.resume();
    m.t().pc = Machine::kCode;
    m.resume();
    std::exit(0);
  };
  const auto once = [](const std::string& text) {
    return testing::ResultOf(
        [=](const std::string& log) {
          return log.find(text) != log.npos && log.find(text) == log.rfind(text);
        },
        true);
  };
  EXPECT_EXIT(run(12), testing::ExitedWithCode(0), once("TSY operation 12 (wait_cv) with quorum 4 at"));
  EXPECT_EXIT(run(17), testing::ExitedWithCode(0), once("TSY operation 17 (reserved) with quorum 4 at"));
}

}  // namespace
}  // namespace v3d::qpu
