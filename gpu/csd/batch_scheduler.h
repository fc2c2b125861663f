/// A BatchScheduler keeps the QPUs busy with the batches of one dispatch: residency, barriers, forward
/// progress, the end.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "gpu/base/job_context.h"
#include "gpu/base/short_mutex.h"
#include "gpu/csd/batch_generator.h"
#include "gpu/csd/change.h"
#include "gpu/csd/qpu_slots.h"
#include "gpu/csd/resident.h"

namespace v3d::csd {

/// Thread switches after a barrier at which the batches of a supergroup wait for each other again. On
/// hardware they leave a barrier together and stay close for a while: py-videocore7 test_barrier reads its
/// neighbour's line and then overwrites its own, with two switches before the store.
inline constexpr uint32_t kLockstep = 4;

class BatchScheduler {
 public:
  /// @param serial  one supergroup at a time, all in slot 0
  BatchScheduler(const JobContext& job, const Configuration& configuration, bool serial,
                 const Engine& engine);
  /// Goes on with a dispatch.
  BatchScheduler(const JobContext& job, const Configuration& configuration, const Engine& engine,
                 Leftover leftover);

  /// Runs the dispatch on job.pool. @return true when all batches ended
  bool run();

  uint64_t instructions() const { return instructions_; }

 private:
  /// At the index of its slot.
  struct Supergroup {
    uint32_t live = 0;                       // batches that did not end yet, launched or not
    uint32_t at_barrier = 0, at_switch = 0;  // of those
    uint32_t lockstep = 0;                   // thread switches that the batches still take together
  };

  /// Batches that one worker runs without the lock, a turn each, and again.
  struct Gang {
    struct Member {
      uint32_t tidx = 0;
      bool lockstep = false;  // the supergroup's
      bool goes_on = true;    // nobody has to look at how it stopped
      qpu::Stop stop = qpu::Stop::kBudget;
      uint64_t clock = 0;         // at which it goes on
      uint64_t instructions = 0;  // of its turns
    };
    std::array<Member, QpuSlots::kMaxThreads> members;
    uint32_t count = 0;
    bool alone = false;  // no other batch can run meanwhile
  };

  void worker(int pool_slot);
  void run_batches(std::unique_lock<std::mutex>& lock, int pool_slot);
  void run_gang(Gang& gang, int pool_slot);
  void run_member(Gang::Member& member, int pool_slot);
  bool leaves(std::chrono::steady_clock::time_point begin) const;
  bool next(std::unique_lock<std::mutex>& lock, Gang* gang);
  bool choose(Gang* gang);
  void take(Gang* gang, uint32_t tidx);
  bool is_ahead(uint32_t tidx, uint64_t clock, uint64_t begin) const;
  void settle(const Gang& gang);
  uint64_t turn_of(const Resident& resident) const;
  uint64_t expected_turn(uint32_t tidx) const;
  void adopt(Leftover::Group& group);
  void launch();
  bool has_batch();
  bool open_supergroup(uint32_t batches);
  void settle(uint32_t tidx, qpu::Stop stop);
  void retire(uint32_t tidx);
  void wait(uint32_t tidx, Wait wait);
  void meet(uint32_t tidx);
  template <typename Chosen>
  uint32_t release_all(const Chosen& chosen);
  void advance(uint32_t slot);
  void release(uint32_t slot, Wait wait);
  void release_deadlocked();
  void make_ready(uint32_t tidx);
  void fail(uint32_t tidx, std::string_view what);
  bool makes_progress(uint64_t instructions);

  const JobContext& job_;
  const Configuration configuration_;
  const Engine& engine_;

  uint64_t workers_ = 1;

  ShortMutex mutex_;  // protects everything below but the Residents whose batch runs
  Change change_;
  BatchGenerator generator_;
  std::vector<SupergroupRange> ranges_;  // of leftovers, that follow
  QpuSlots qpus_;
  const bool starts_together_;                            // all batches of a program that is written by hand
  uint32_t used_up_ = 0;                                  // QPU threads
  std::array<Resident, QpuSlots::kMaxThreads> resident_;  // by TIDX
  std::array<Supergroup, QpuSlots::kMaxThreads> supergroups_;
  uint64_t free_slots_;
  uint32_t launching_slot_ = 0;                       // of the supergroup that the generator is in
  std::array<uint8_t, QpuSlots::kMaxThreads> ready_;  // TIDX values in the order in which they came
  uint32_t ready_count_ = 0;
  uint64_t running_ = 0;  // bit n: the batch of TIDX n
  // Of the GPU: now, of the last launch, and, by TIDX, when a batch goes on, or its thread got free.
  uint64_t now_ = 0, launch_clock_ = 0;
  std::array<uint64_t, QpuSlots::kMaxThreads> clocks_{};
  std::vector<std::unique_ptr<qpu::Thread>> spare_threads_;
  bool stop_ = false, complete_ = false, deadlock_logged_ = false, meeting_logged_ = false;
  uint64_t instructions_ = 0;
  double without_progress_ = 0;  // seconds of GPU time since a batch ended
};

}  // namespace v3d::csd
