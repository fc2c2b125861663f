// The scheduler with programs written in C++: fake(thread, batch state) instead of QPU instructions.
#include "gpu/csd/batch_scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "gpu/chip/profile.h"
#include "gpu/csd/schedule.h"

namespace v3d::csd {
namespace {

constexpr uint32_t kTwoThreads = 0, kFourThreads = 1;

/// One dispatch of a program made of a C++ function. The function sees the thread's step (how often it ran
/// before) and stands for `cost` instructions per run.
class BatchSchedulerTest : public testing::TestWithParam<int> {
 protected:
  struct Step {
    qpu::Thread& thread;
    uint32_t batch;  ///< workgroup id X
    uint32_t slot;   ///< wg_in_mem
    uint32_t step;
  };
  using Fake = std::function<qpu::Stop(const Step&)>;

  static std::array<uint32_t, 7> one_batch_per_workgroup(uint32_t batches, uint32_t per_sg,
                                                         uint32_t threading) {
    return {batches << 16, 1 << 16,   1 << 16, 16u | (per_sg & 15) << 8 | (per_sg - 1) << 12,
            batches,       threading, 0};
  }

  /// As drivers dispatch: workgroups of 64 invocations, four batches.
  static std::array<uint32_t, 7> workgroups(uint32_t count) {
    return {count << 16, 1 << 16, 1 << 16, 64u | 1 << 8 | 3 << 12, 4 * count, kFourThreads, 0};
  }
  static uint32_t batch_in_workgroup(const Step& s) { return s.thread.rf[2][0] >> 30; }

  bool run(const std::array<uint32_t, 7>& cfg, const Fake& fake, bool serial = false, uint64_t cost = 10) {
    Engine engine;
    engine.prepare = [](qpu::Thread&) {};
    engine.start = [](qpu::Thread& thread, const Batch& batch, uint32_t tidx) {
      thread.rf[3] = batch.workgroup_xy;
      thread.rf[2] = batch.workgroup_z_lii;
      thread.rf[10] = Lanes{};
      thread.tidx = tidx;
      thread.instructions = 0;
    };
    engine.run = [&](qpu::Thread& thread, int) {
      const qpu::Stop stop =
          fake({thread, thread.rf[3][0], thread.rf[2][0] >> 16 & 0x3ff, thread.rf[10][0]++});
      thread.instructions += stop == qpu::Stop::kBudget ? thread.budget : cost;
      return stop;
    };
    if (slow_batch_ != kNoBatch) {
      engine.clocks = [&](const qpu::Thread& thread) {
        return kInstructionClocks * thread.instructions * (thread.rf[3][0] == slow_batch_ ? kSlowness : 1);
      };
    }
    const Outcome outcome = schedule(job_, decode(cfg, profile_), serial, engine);
    instructions_ = outcome.instructions;
    return outcome.complete;
  }

  const chip::Profile& profile_ = *chip::find_profile("rpi5");
  ThreadPool pool_{GetParam()};
  JobError error_;
  std::atomic<bool> cancel_{false};
  JobContext job_{.memory = Memory(),
                  .profile = &profile_,
                  .pool = &pool_,
                  .programs = nullptr,
                  .counts = nullptr,
                  .error = &error_,
                  .cancel = &cancel_,
                  .instruction_limit = kNoInstructionLimit};  // instructions of the fakes take no time
  uint64_t instructions_ = 0;
  static constexpr uint32_t kNoBatch = ~0u, kSlowness = 8;
  uint32_t slow_batch_ = kNoBatch;  // takes so many times as many clocks
};

INSTANTIATE_TEST_SUITE_P(Workers, BatchSchedulerTest, testing::Values(0, 3));

TEST_P(BatchSchedulerTest, RunsEveryBatchOnceAndCountsInstructions) {
  std::mutex mutex;
  std::map<uint32_t, int> seen;
  EXPECT_TRUE(run(one_batch_per_workgroup(1000, 4, kFourThreads), [&](const Step& s) {
    const std::lock_guard lock(mutex);
    ++seen[s.batch];
    return qpu::Stop::kEnd;
  }));
  EXPECT_EQ(seen.size(), 1000u);
  for (const auto& [batch, times] : seen) EXPECT_EQ(times, 1) << batch;
  EXPECT_EQ(instructions_, 10000u);
}

// py-videocore7 test_parallel (12), test_barrier (24), test_parallel_full (48).
TEST_P(BatchSchedulerTest, ThreadIndexIsDenseForBatchesThatFit) {
  const std::tuple<uint32_t, uint32_t, uint32_t> cases[] = {
      {12, kTwoThreads, 4}, {24, kTwoThreads, 2}, {48, kFourThreads, 1}};
  for (const auto& [batches, threading, stride] : cases) {
    std::mutex mutex;
    std::set<uint32_t> seen, expected;
    for (uint32_t i = 0; i < batches; ++i) expected.insert(i * stride);
    EXPECT_TRUE(run(one_batch_per_workgroup(batches, batches, threading), [&](const Step& s) {
      const std::lock_guard lock(mutex);
      seen.insert(s.thread.tidx);
      return qpu::Stop::kEnd;
    }));
    EXPECT_EQ(seen, expected) << batches;
  }
}

TEST_P(BatchSchedulerTest, ThreadIndexIsUniqueAmongLiveBatches) {
  std::array<std::atomic<int>, 64> live{};
  EXPECT_TRUE(run(one_batch_per_workgroup(3000, 5, kFourThreads), [&](const Step& s) {
    EXPECT_LT(s.thread.tidx, 48u);
    if (s.step == 0) {
      EXPECT_EQ(live[s.thread.tidx].fetch_add(1), 0);
    }
    if (s.step < s.batch % 3) return qpu::Stop::kBudget;
    EXPECT_EQ(live[s.thread.tidx].fetch_sub(1), 1);
    return qpu::Stop::kEnd;
  }));
}

TEST_P(BatchSchedulerTest, BarriersHoldAllBatchesOfASupergroup) {
  std::array<std::array<std::atomic<uint32_t>, 4>, 20> arrived{};  // supergroup, barrier
  EXPECT_TRUE(run(one_batch_per_workgroup(20 * 8 - 3, 8, kTwoThreads), [&](const Step& s) {
    const uint32_t group = s.batch / 8, members = group == 19 ? 5 : 8;  // the last supergroup is short
    if (s.step > 0) {
      EXPECT_EQ(arrived[group][s.step - 1], members);
    }
    if (s.step == 4) return qpu::Stop::kEnd;
    ++arrived[group][s.step];
    return qpu::Stop::kBarrier;
  }));
}

// py-videocore7 test_barrier: after the barrier, read the neighbour's line, then overwrite one's own.
TEST_P(BatchSchedulerTest, BatchesLeaveABarrierTogether) {
  for (int round = 0; round < 50; ++round) {
    std::array<std::atomic<uint32_t>, 24> line{};
    std::array<uint32_t, 24> read{};
    EXPECT_TRUE(run(one_batch_per_workgroup(24, 24, kTwoThreads), [&](const Step& s) {
      const uint32_t neighbour = (s.batch + 1) % 24;
      switch (s.step) {
        case 0:
          line[s.batch] = s.batch + 100;
          return qpu::Stop::kBarrier;
        case 1:
          EXPECT_TRUE(s.thread.stop_at_switch);
          return qpu::Stop::kSwitch;
        case 2:
          read[s.batch] = line[neighbour];
          return qpu::Stop::kSwitch;
        default:
          line[s.batch] = 0;
          return qpu::Stop::kEnd;
      }
    }));
    for (uint32_t i = 0; i < 24; ++i) ASSERT_EQ(read[i], (i + 1) % 24 + 100);
  }
}

TEST_P(BatchSchedulerTest, LockstepEndsSoonAndYieldsToSpinningBatches) {
  std::atomic<uint32_t> switches{0}, turn{7};
  EXPECT_TRUE(run(one_batch_per_workgroup(8, 8, kTwoThreads), [&](const Step& s) {
    if (s.step == 0) return qpu::Stop::kBarrier;
    if (s.thread.stop_at_switch) return ++switches, qpu::Stop::kSwitch;
    if (s.step < 100) return qpu::Stop::kBudget;
    return qpu::Stop::kEnd;
  }));
  EXPECT_EQ(switches, 8 * kLockstep);
  EXPECT_TRUE(run(one_batch_per_workgroup(8, 8, kTwoThreads), [&](const Step& s) {
    if (s.step == 0) return qpu::Stop::kBarrier;
    if (s.batch == turn) return --turn, qpu::Stop::kEnd;
    return s.batch == 0 || !s.thread.stop_at_switch ? qpu::Stop::kBudget : qpu::Stop::kSwitch;
  }));
}

TEST_P(BatchSchedulerTest, EndedBatchesLeaveTheBarrier) {
  std::atomic<uint32_t> passed{0};
  EXPECT_TRUE(run(one_batch_per_workgroup(12, 12, kTwoThreads), [&](const Step& s) {
    if (s.step == s.batch) {  // batch n executes n barriers
      ++passed;
      return qpu::Stop::kEnd;
    }
    return qpu::Stop::kBarrier;
  }));
  EXPECT_EQ(passed, 12u);
}

// As many as the quorum go on together, whatever supergroups they are of; each object has its own.
TEST_P(BatchSchedulerTest, BatchesMeetAtObjects) {
  std::array<std::array<std::atomic<uint32_t>, 5>, 6> arrived{};  // object, meeting
  EXPECT_TRUE(run(one_batch_per_workgroup(24, 2, kTwoThreads), [&](const Step& s) {
    const uint32_t object = s.batch % 6;
    if (s.step > 0) {
      EXPECT_EQ(arrived[object][s.step - 1], 4u);
    }
    if (s.step == 5) return qpu::Stop::kEnd;
    ++arrived[object][s.step];
    s.thread.meeting = {4, static_cast<uint8_t>(object)};
    return qpu::Stop::kMeeting;
  }));
}

// After a barrier, batches wait for each other at thread switches, but not for one at a meeting.
TEST_P(BatchSchedulerTest, AMeetingEndsLockstep) {
  std::atomic<uint32_t> ended{0};
  testing::internal::CaptureStderr();
  EXPECT_TRUE(run(one_batch_per_workgroup(2, 2, kTwoThreads), [&](const Step& s) {
    s.thread.meeting = {2, 9};
    if (s.step == 0) return qpu::Stop::kBarrier;
    if (s.batch == 1 && s.step == 1) return s.thread.stop_at_switch ? qpu::Stop::kSwitch : qpu::Stop::kBudget;
    if (s.step == 1 + s.batch) return qpu::Stop::kMeeting;
    ++ended;
    return qpu::Stop::kEnd;
  }));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");  // nothing had to be released
  EXPECT_EQ(ended, 2u);
}

TEST_P(BatchSchedulerTest, AQuorumThatNobodyReachesDoesNotDeadlock) {
  std::atomic<uint32_t> ended{0};
  EXPECT_TRUE(run(one_batch_per_workgroup(3, 3, kTwoThreads), [&](const Step& s) {
    s.thread.meeting = {~0u, 0};
    if (s.step < 2) return s.batch == 2 ? qpu::Stop::kBarrier : qpu::Stop::kMeeting;
    ++ended;
    return qpu::Stop::kEnd;
  }));
  EXPECT_EQ(ended, 3u);
}

TEST_P(BatchSchedulerTest, ASupergroupLargerThanTheMachineDoesNotDeadlock) {
  std::atomic<uint32_t> ended{0};
  std::array<uint32_t, 7> cfg = one_batch_per_workgroup(200, 100, kTwoThreads);
  cfg[3] &= ~0xf00u;  // 16 workgroups per supergroup, 100 batches
  EXPECT_TRUE(run(cfg, [&](const Step& s) {
    if (s.step < 2) return qpu::Stop::kBarrier;
    ++ended;
    return qpu::Stop::kEnd;
  }));
  EXPECT_EQ(ended, 200u);
}

TEST_P(BatchSchedulerTest, ASpinningBatchDoesNotStarveTheOthers) {
  std::atomic<uint32_t> turn{23};  // each batch waits for the one started after it
  EXPECT_TRUE(run(one_batch_per_workgroup(24, 1, kTwoThreads), [&](const Step& s) {
    if (turn != s.batch) return qpu::Stop::kBudget;
    --turn;
    return qpu::Stop::kEnd;
  }));
}

// As many as the chip holds, of a driver's shape and of another, and of those that follow when some end.
TEST_P(BatchSchedulerTest, BatchesStayWithinTenThousandInstructions) {
  constexpr uint32_t kBatches = 60, kResident = 48;
  for (const uint32_t per_supergroup : {1u, 12u}) {
    std::array<std::atomic<uint64_t>, kBatches> executed{};
    std::array<std::atomic<bool>, kBatches> ended{};
    EXPECT_TRUE(run(one_batch_per_workgroup(kBatches, per_supergroup, kFourThreads), [&](const Step& s) {
      if (s.batch < kResident) {
        const uint64_t own = executed[s.batch] += s.thread.budget;
        for (uint32_t other = 0; other < kResident; ++other) {
          EXPECT_TRUE(ended[other] || own <= executed[other] + 10'000) << s.batch << " and " << other;
        }
      }
      if (executed[s.batch] < 300'000 && s.batch < kResident) return qpu::Stop::kBudget;
      ended[s.batch] = true;
      return qpu::Stop::kEnd;
    }));
  }
}

// Where all start together turns grow with what was executed, whoever runs how many of the batches.
TEST_P(BatchSchedulerTest, BatchesThatStartTogetherStayCloseAtFirst) {
  constexpr uint32_t kBatches = 24;
  std::array<std::atomic<uint64_t>, kBatches> executed{};
  std::array<std::atomic<bool>, kBatches> ended{};
  EXPECT_TRUE(run(one_batch_per_workgroup(kBatches, 12, kTwoThreads), [&](const Step& s) {
    const uint64_t own = executed[s.batch] += s.thread.budget;
    for (uint32_t other = 0; other < kBatches; ++other) {
      EXPECT_TRUE(ended[other] || own <= executed[other] + 2 * std::max<uint64_t>(64, own / 32))
          << s.batch << " and " << other;
    }
    if (executed[s.batch] < 20'000 + 100 * s.batch) return qpu::Stop::kBudget;
    ended[s.batch] = true;
    return qpu::Stop::kEnd;
  }));
}

// Where clocks are told, those of batches that wait for memory count, too.
TEST_P(BatchSchedulerTest, BatchesGoOnByTheClocksThatTheyTake) {
  slow_batch_ = 0;
  for (const uint32_t per_supergroup : {1u, 4u}) {
    std::array<std::atomic<uint64_t>, 4> executed{};
    std::atomic<uint64_t> others{0};
    EXPECT_TRUE(run(one_batch_per_workgroup(4, per_supergroup, kTwoThreads), [&](const Step& s) {
      executed[s.batch] += s.thread.budget;
      if (executed[s.batch] < 400'000) return qpu::Stop::kBudget;
      if (s.batch == 3) others = executed[0].load();
      return qpu::Stop::kEnd;
    }));
    EXPECT_NEAR(static_cast<double>(others), 400'000.0 / kSlowness, 10'000);
  }
}

TEST_P(BatchSchedulerTest, SupergroupsInFlightHaveSlotsOfTheirOwn) {
  std::array<std::atomic<uint32_t>, 1024> owner{};
  std::atomic<uint32_t> highest{0};
  EXPECT_TRUE(run(one_batch_per_workgroup(500, 1, kFourThreads), [&](const Step& s) {
    if (s.step == 0) {
      EXPECT_EQ(owner[s.slot].exchange(s.batch + 1), 0u);
    }
    if (s.slot > highest) highest = s.slot;
    if (s.step < s.batch % 4) return qpu::Stop::kBudget;
    EXPECT_EQ(owner[s.slot].exchange(0), s.batch + 1);
    return qpu::Stop::kEnd;
  }));
  EXPECT_LT(highest, 48u);
}

TEST_P(BatchSchedulerTest, SerialDispatchesUseSlotZeroOnly) {
  std::atomic<uint32_t> open{0xffffffff}, left{0};
  std::array<uint32_t, 7> cfg = one_batch_per_workgroup(60, 4, kTwoThreads);
  cfg[3] = (cfg[3] & ~0xf00u) | 1 << 8;
  EXPECT_TRUE(run(
      cfg,
      [&](const Step& s) {
        EXPECT_EQ(s.slot, 0u);
        if (s.step == 0) {
          if (left == 0) open = s.batch / 4;
          ++left;
          EXPECT_EQ(open, s.batch / 4);
        }
        if (s.step < 3) return s.step == 0 ? qpu::Stop::kBarrier : qpu::Stop::kBudget;
        --left;
        return qpu::Stop::kEnd;
      },
      true));
}

TEST_P(BatchSchedulerTest, CancelEndsAnEndlessDispatch) {
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    cancel_ = true;
  });
  EXPECT_FALSE(
      run(one_batch_per_workgroup(24, 1, kTwoThreads), [&](const Step&) { return qpu::Stop::kBudget; }));
  later.join();
  EXPECT_FALSE(error_.failed());
}

TEST_P(BatchSchedulerTest, ADispatchInWhichNoBatchEndsForASecondHangs) {
  job_.instruction_limit = kNoInstructionLimit - 1;
  EXPECT_FALSE(
      run(one_batch_per_workgroup(24, 1, kTwoThreads), [&](const Step&) { return qpu::Stop::kBudget; }));
  EXPECT_NE(error_.message().find("makes no progress"), std::string::npos) << error_.message();
}

TEST_P(BatchSchedulerTest, ALoneBatchDoesNotKeepThePoolFromOtherJobs) {
  std::atomic<int> elsewhere{0};
  std::thread other;
  EXPECT_TRUE(run(one_batch_per_workgroup(4, 4, kTwoThreads), [&](const Step& s) {
    if (s.step == 0) return qpu::Stop::kBarrier;  // all workers join in
    if (s.batch != 0) return qpu::Stop::kEnd;
    if (s.step == 1) {
      other = std::thread([&] {
        // Needs as many threads at once as the pool has workers, besides this one and the busy one.
        pool_.parallel_for(GetParam(), [&](int, int) {
          ++elsewhere;
          while (elsewhere < GetParam()) std::this_thread::yield();
        });
      });
    }
    if (elsewhere < GetParam()) return qpu::Stop::kBudget;
    return qpu::Stop::kEnd;
  }));
  other.join();
}

TEST_P(BatchSchedulerTest, TheInstructionLimitNamesTheThread) {
  job_.instruction_limit = 1'000'000;
  EXPECT_FALSE(run(one_batch_per_workgroup(3, 1, kTwoThreads),
                   [&](const Step& s) { return s.batch == 1 ? qpu::Stop::kBudget : qpu::Stop::kEnd; }));
  EXPECT_NE(error_.message().find(" after 1000000 instructions (workgroup 1, 0, 0, TIDX "), std::string::npos)
      << error_.message();
}

TEST_P(BatchSchedulerTest, EndlessBarriersAreFoundByTheLimit) {
  job_.instruction_limit = 10'000;
  EXPECT_FALSE(
      run(one_batch_per_workgroup(4, 4, kTwoThreads), [&](const Step&) { return qpu::Stop::kBarrier; }));
  EXPECT_TRUE(error_.failed());
}

TEST_P(BatchSchedulerTest, AHangEndsTheDispatch) {
  EXPECT_FALSE(run({0, 0, 0, 0, 0xffffffff, 0, 0}, [&](const Step&) { return qpu::Stop::kHang; }));
  EXPECT_NE(error_.message().find("compute program at 0x00000000 cannot go on: "), std::string::npos)
      << error_.message();
}

TEST_P(BatchSchedulerTest, HugeBatchCountsAreStreamed) {
  std::atomic<uint64_t> ended{0};
  EXPECT_FALSE(run({0, 0, 0, 0xff000, 0xffffffff, 0, 0}, [&](const Step&) {
    if (++ended == 100'000) cancel_ = true;
    return qpu::Stop::kEnd;
  }));
  EXPECT_LT(ended, 101'000u);
}

TEST_P(BatchSchedulerTest, EveryBatchOfAWorkgroupRunsOnce) {
  std::vector<std::array<std::atomic<int>, 4>> seen(5000);
  EXPECT_TRUE(run(workgroups(5000), [&](const Step& s) {
    ++seen[s.batch][batch_in_workgroup(s)];
    return qpu::Stop::kEnd;
  }));
  for (const auto& workgroup : seen)
    for (const std::atomic<int>& times : workgroup) ASSERT_EQ(times, 1);
  EXPECT_EQ(instructions_, 200'000u);
}

TEST_P(BatchSchedulerTest, BarriersHoldAWorkgroup) {
  std::vector<std::array<std::atomic<uint32_t>, 4>> arrived(500);  // workgroup, barrier
  EXPECT_TRUE(run(workgroups(500), [&](const Step& s) {
    const uint32_t leaves = s.batch % 3 == 0 ? 2 : 4;  // batch 0 of some workgroups ends early
    const bool early = batch_in_workgroup(s) == 0;
    if (s.step > 0) {
      EXPECT_EQ(arrived[s.batch][s.step - 1], early || s.step <= leaves ? 4u : 3u);
    }
    if (s.step == (early ? leaves : 4)) return qpu::Stop::kEnd;
    ++arrived[s.batch][s.step];
    return qpu::Stop::kBarrier;
  }));
}

TEST_P(BatchSchedulerTest, WorkgroupsInFlightHaveSlotsAndThreadsOfTheirOwn) {
  std::mutex mutex;
  std::map<uint32_t, std::multiset<uint32_t>> workgroups_of_slots;
  std::set<uint32_t> threads;
  EXPECT_TRUE(run(workgroups(800), [&](const Step& s) {
    const std::lock_guard lock(mutex);
    std::multiset<uint32_t>& in_slot = workgroups_of_slots[s.slot];
    if (s.step == 0) {
      EXPECT_TRUE(threads.insert(s.thread.tidx).second);
      EXPECT_EQ(in_slot.count(s.batch), in_slot.size());
      in_slot.insert(s.batch);
      return qpu::Stop::kBarrier;
    }
    if (s.step < s.batch % 4) return qpu::Stop::kBudget;
    threads.erase(s.thread.tidx);
    in_slot.erase(in_slot.find(s.batch));
    return qpu::Stop::kEnd;
  }));
}

// What one worker cannot end alone goes on among all batches.
// What they leave in shared memory is the same then, as replays compare it.
TEST_P(BatchSchedulerTest, OnOneWorkerWorkgroupsHaveTheSameSlotsEachTime) {
  ThreadPool alone(0);
  job_.pool = &alone;
  const auto slots = [&](std::chrono::microseconds time) {
    std::vector<uint32_t> slot_of(60);
    EXPECT_TRUE(run(workgroups(60), [&](const Step& s) {
      slot_of[s.batch] = s.slot;
      std::this_thread::sleep_for(time);
      return s.step < s.batch % 5 ? qpu::Stop::kBudget : qpu::Stop::kEnd;
    }));
    return slot_of;
  };
  const std::vector<uint32_t> quick = slots(std::chrono::microseconds(0));
  EXPECT_EQ(slots(std::chrono::microseconds(30)), quick);
  EXPECT_NE(quick, std::vector<uint32_t>(60));
}

TEST_P(BatchSchedulerTest, AWorkgroupMayWaitForALaterOne) {
  std::atomic<bool> ended{false};
  std::atomic<uint32_t> count{0};
  EXPECT_TRUE(run(workgroups(300), [&](const Step& s) {
    if (s.batch == 0 && !ended) return qpu::Stop::kBudget;
    if (s.batch == 5) ended = true;
    ++count;
    return qpu::Stop::kEnd;
  }));
  EXPECT_EQ(count, 1200u);
}

TEST_P(BatchSchedulerTest, BatchesThatFitAndWaitForEachOtherHaveDenseThreadIndices) {
  for (const uint32_t spinner : {0u, 1u, 11u}) {
    std::mutex mutex;
    std::map<uint32_t, int> times;
    std::atomic<uint32_t> begun{0};
    EXPECT_TRUE(run(one_batch_per_workgroup(12, 1, kTwoThreads), [&](const Step& s) {
      if (s.step == 0) {
        const std::lock_guard lock(mutex);
        ++times[s.thread.tidx];
        ++begun;
      }
      return s.batch == spinner && begun < 12 ? qpu::Stop::kBudget : qpu::Stop::kEnd;
    }));
    EXPECT_EQ(times.size(), 12u);
    for (const auto& [tidx, count] : times) EXPECT_TRUE(tidx % 4 == 0 && tidx < 48 && count == 1) << tidx;
  }
}

TEST_P(BatchSchedulerTest, WorkgroupsMeetAtObjects) {
  std::array<std::atomic<uint32_t>, 6> arrived{};
  std::atomic<uint32_t> ended{0};
  EXPECT_TRUE(run(one_batch_per_workgroup(24, 1, kTwoThreads), [&](const Step& s) {
    const uint32_t object = s.batch % 6;
    s.thread.meeting = {4, static_cast<uint8_t>(object)};
    if (s.step == 0) return ++arrived[object], qpu::Stop::kMeeting;
    EXPECT_EQ(arrived[object], 4u);
    ++ended;
    return qpu::Stop::kEnd;
  }));
  EXPECT_EQ(ended, 24u);
}

TEST_P(BatchSchedulerTest, AWorkgroupWhoseBarriersNeverEndHangs) {
  job_.instruction_limit = kNoInstructionLimit - 1;
  EXPECT_FALSE(run(
      workgroups(100), [&](const Step& s) { return s.batch == 7 ? qpu::Stop::kBarrier : qpu::Stop::kEnd; },
      false, 1'000'000));
  EXPECT_NE(error_.message().find("makes no progress"), std::string::npos) << error_.message();
  EXPECT_NE(error_.message().find("workgroup 7, 0, 0"), std::string::npos) << error_.message();
}

TEST_P(BatchSchedulerTest, AHangInAWorkgroupEndsTheDispatch) {
  std::atomic<uint32_t> count{0};
  EXPECT_FALSE(run(workgroups(60'000), [&](const Step& s) {
    ++count;
    return s.batch == 5 ? qpu::Stop::kHang : qpu::Stop::kEnd;
  }));
  EXPECT_NE(error_.message().find("workgroup 5, 0, 0"), std::string::npos) << error_.message();
  EXPECT_LT(count, 240'000u);
}

TEST_P(BatchSchedulerTest, CancelEndsWorkgroupsThatSpin) {
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    cancel_ = true;
  });
  EXPECT_FALSE(run(workgroups(1000),
                   [&](const Step& s) { return s.batch % 7 ? qpu::Stop::kEnd : qpu::Stop::kBarrier; }));
  later.join();
  EXPECT_FALSE(error_.failed());
}

TEST_P(BatchSchedulerTest, NoBatchesNoWork) {
  EXPECT_TRUE(run({0, 0, 0, 0, 0, 0, 0}, [&](const Step&) {
    ADD_FAILURE() << "a batch ran";
    return qpu::Stop::kEnd;
  }));
}

}  // namespace
}  // namespace v3d::csd
