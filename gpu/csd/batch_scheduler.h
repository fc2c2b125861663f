/// Keeps the QPUs busy with the batches of one dispatch: residency, barriers, forward progress, the end.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "gpu/base/job_context.h"
#include "gpu/csd/batch_generator.h"
#include "gpu/csd/qpu_slots.h"
#include "gpu/qpu/run/thread.h"

namespace v3d::csd {

/// Instructions that a batch runs before the next one has its turn. Small enough for a cancelled job to end
/// promptly and for a batch that spins to wait for another; large enough to cost nothing.
inline constexpr uint64_t kSlice = 100'000;

/// Thread switches after a barrier at which the batches of a supergroup wait for each other again. On
/// hardware they leave a barrier together and stay close for a while: py-videocore7 test_barrier reads its
/// neighbour's line and then overwrites its own, with two switches before the store.
inline constexpr uint32_t kLockstep = 4;

/// How the scheduler runs a QPU thread.
struct Engine {
  /// Makes a thread ready for its first run().
  std::function<void(qpu::Thread& thread, const Batch& batch, uint32_t tidx)> start;
  /// Runs until thread.budget is used up or something else stops it. @param worker  pool slot
  std::function<qpu::Stop(qpu::Thread& thread, int worker)> run;
};

class BatchScheduler {
 public:
  /// @param serial  one supergroup at a time, all in slot 0
  BatchScheduler(const JobContext& job, const Configuration& configuration, bool serial, Engine engine);

  /// Runs the dispatch on job.pool. @return true when all batches ended
  bool run();

  uint64_t instructions() const { return instructions_; }

 private:
  /// What a batch waits for all others of its supergroup to do, or, at a meeting, as many as it told.
  enum class Wait : uint8_t { kNone, kBarrier, kSwitch, kMeeting };

  /// A batch on a QPU thread; at the index of its TIDX.
  struct Resident {
    Batch batch;
    uint32_t slot = 0;  // of its supergroup
    bool started = false;
    Wait wait = Wait::kNone;
    std::unique_ptr<qpu::Thread> thread;  // from the first run on
    uint64_t last_slice = 0;              // instructions
  };
  /// At the index of its slot.
  struct Supergroup {
    uint32_t live = 0;                       // batches that did not end yet, launched or not
    uint32_t at_barrier = 0, at_switch = 0;  // of those
    uint32_t lockstep = 0;                   // thread switches that the batches still take together
  };

  void worker(int pool_slot);
  void run_batches(std::unique_lock<std::mutex>& lock, int pool_slot);
  bool leaves(std::chrono::steady_clock::time_point begin) const;
  bool next(std::unique_lock<std::mutex>& lock, uint32_t* tidx);
  void launch();
  bool open_supergroup(uint32_t batches);
  qpu::Stop run_slice(Resident& resident, uint32_t tidx, bool lockstep, int pool_slot);
  void settle(uint32_t tidx, qpu::Stop stop);
  void retire(uint32_t tidx);
  void wait(uint32_t tidx, Wait wait);
  void meet(uint32_t tidx);
  template <typename Chosen>
  uint32_t release_meeting(const Chosen& chosen);
  void advance(uint32_t slot);
  void release(uint32_t slot, Wait wait);
  void release_deadlocked();
  void make_ready(uint32_t tidx);
  void fail(uint32_t tidx, std::string_view what);
  bool makes_progress(uint64_t instructions);

  const JobContext& job_;
  const Configuration configuration_;
  const Engine engine_;

  std::mutex mutex_;  // protects everything below but the Residents whose batch runs
  std::condition_variable wake_;
  BatchGenerator generator_;
  QpuSlots qpus_;
  std::array<Resident, QpuSlots::kMaxThreads> resident_;
  std::array<Supergroup, QpuSlots::kMaxThreads> supergroups_;
  uint64_t free_slots_;
  uint32_t launching_slot_ = 0;                       // of the supergroup that the generator is in
  std::array<uint8_t, QpuSlots::kMaxThreads> ready_;  // ring of TIDX values
  uint32_t ready_head_ = 0, ready_count_ = 0;
  std::vector<std::unique_ptr<qpu::Thread>> spare_threads_;
  uint32_t running_ = 0, idle_ = 0;  // workers
  bool stop_ = false, complete_ = false, deadlock_logged_ = false, meeting_logged_ = false;
  uint64_t instructions_ = 0;
  double without_progress_ = 0;  // seconds of GPU time since a batch ended
};

}  // namespace v3d::csd
