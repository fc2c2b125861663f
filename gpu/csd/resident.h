/// A batch on a QPU thread, who runs it, and a dispatch under way as one scheduler leaves it to the other.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "gpu/csd/batch_generator.h"
#include "gpu/qpu/run/thread.h"

namespace v3d::csd {

/// Instructions that a batch runs before the next one has its turn. Small enough for a cancelled job to end
/// promptly and for a batch that spins to wait for another; large enough to cost nothing.
inline constexpr uint64_t kSlice = 100'000;

/// How a scheduler runs a QPU thread.
struct Engine {
  /// Makes a new thread ready for any batch of the dispatch.
  std::function<void(qpu::Thread& thread)> prepare;
  /// Makes it ready for the first run() of a batch; others may have ended on it.
  std::function<void(qpu::Thread& thread, const Batch& batch, uint32_t tidx)> start;
  /// Runs until thread.budget is used up or something else stops it. @param worker  pool slot
  std::function<qpu::Stop(qpu::Thread& thread, int worker)> run;
};

/// What a batch waits for all others of its supergroup to do, or, at a meeting, as many as it told.
enum class Wait : uint8_t { kNone, kBarrier, kSwitch, kMeeting };

struct Resident {
  Batch batch;
  uint32_t slot = 0;  // of its supergroup
  uint32_t tidx = 0;
  bool started = false;
  Wait wait = Wait::kNone;
  std::unique_ptr<qpu::Thread> thread;  // from the first run to the end
  uint64_t last_slice = 0;              // instructions

  bool ended() const { return started && !thread; }
};

/// Runs a batch for a slice at most, or to the next thread switch. @param instruction_limit  of a batch
inline qpu::Stop run_slice(Resident& resident, const Engine& engine, uint64_t instruction_limit,
                           bool stop_at_switch, int pool_slot) {
  qpu::Thread& thread = *resident.thread;
  if (!resident.started) {
    engine.start(thread, resident.batch, resident.tidx);
    resident.started = true;
  }
  thread.stop_at_switch = stop_at_switch;
  thread.budget = instruction_limit - thread.instructions;
  if (thread.budget > kSlice) thread.budget = kSlice;
  const uint64_t before = thread.instructions;
  const qpu::Stop stop = engine.run(thread, pool_slot);
  resident.last_slice = thread.instructions - before;
  return stop;
}

struct Leftover {
  struct Group {
    uint32_t slot = 0;
    std::vector<Resident> batches;  ///< those that did not end
    /// The last of them that ran, by its index, stopped in a way that nobody looked at yet.
    size_t unsettled = 0;
    qpu::Stop stop = qpu::Stop::kBudget;
    bool is_unsettled = false;
  };
  std::vector<Group> groups;
  std::vector<SupergroupRange> ranges;  ///< that did not begin
  std::vector<uint32_t> used_up;        ///< TIDX values that no further batch may have
};

}  // namespace v3d::csd
