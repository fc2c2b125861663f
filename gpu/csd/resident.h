/// A resident batch has a QPU thread; this header says who runs it, and how one scheduler leaves a dispatch
/// under way to the other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "gpu/csd/batch_generator.h"
#include "gpu/qpu/run/batch_code.h"
#include "gpu/qpu/run/thread.h"

namespace v3d::csd {

/// Instructions that a batch runs before the others that are resident have their turn, and how far it may be
/// ahead of one that another worker runs. QPUs run side by side: what one stores another finds, and programs
/// without a barrier count on that. Together they keep batches within 10,000 instructions of each other;
/// shorter turns would cost compiled code more than a few per cent.
inline constexpr uint64_t kTurn = 4000, kLead = 4000;
/// A turn where nobody can tell (qpu::BatchCode::goes_alone); others are looked for each kTurn.
inline constexpr uint64_t kTurnAlone = 32'000;
/// Clocks that an instruction takes at least.
inline constexpr uint64_t kInstructionClocks = 4;

class BatchFunction;

struct Resident;

/// How a scheduler runs a QPU thread.
struct Engine {
  /// Makes a new thread ready for any batch of the dispatch.
  std::function<void(qpu::Thread& thread)> prepare;
  /// Makes it ready for the first run() of a batch; others may have ended on it.
  std::function<void(qpu::Thread& thread, const Batch& batch, uint32_t tidx)> start;
  /// Runs until thread.budget is used up or something else stops it. @param worker  pool slot
  std::function<qpu::Stop(qpu::Thread& thread, int worker)> run;
  /// What executes batches in place of threads, as far as it can; it stays until the worker asks again. Null:
  /// nothing does, or not yet. @param thread  none that runs
  std::function<BatchFunction*(qpu::Thread& thread, int worker)> function;
  /// As run(), of a batch with Resident::code, for so many instructions, but for one stretch at least.
  std::function<qpu::Stop(Resident& resident, uint64_t budget, int worker)> run_stretches;
  /// So many batches were started for threads, where function() was asked.
  std::function<void(uint32_t batches)> went_without;
  /// Where a thread stopped, for messages. Null: its pc alone.
  std::function<std::string(const qpu::Thread& thread)> place;
  /// GPU clocks that the batch took so far. Null: as many as its instructions alone.
  std::function<uint64_t(const qpu::Thread& thread)> clocks;
};

/// What a batch waits for all others of its supergroup to do, or, at a meeting, as many as it told.
enum class Wait : uint8_t { kNone, kBarrier, kSwitch, kMeeting };

struct Resident {
  /// Of stretches: a value behind a cut.
  struct Slot {
    AlignedLanes lanes;
  };

  Batch batch;
  uint32_t slot = 0;  // of its supergroup
  uint32_t tidx = 0;
  bool started = false, ended = false;
  Wait wait = Wait::kNone;
  std::unique_ptr<qpu::Thread> thread;  // from the first run to the end
  /// Whose stretches execute the batch in place of the thread, of which only the count of instructions is
  /// used; which one comes next, and their slots.
  const qpu::BatchCode* code = nullptr;
  uint32_t stretch = 0;
  std::vector<Slot> slots;
  uint64_t last_turn = 0;    // instructions
  uint64_t last_clocks = 0;  // of that
};

/// Runs a thread that was started for a turn at most, or to the next thread switch. A turn ends where
/// compiled code can be left and entered. @param turn  instructions  @param instruction_limit  of a batch
inline qpu::Stop run_turn(qpu::Thread& thread, const Engine& engine, uint64_t turn,
                          uint64_t instruction_limit, bool stop_at_switch, int pool_slot) {
  thread.stop_at_switch = stop_at_switch;
  thread.stop_at_block = true;
  thread.budget = std::min(instruction_limit - thread.instructions, turn);
  return engine.run(thread, pool_slot);
}

/// The same of a batch that goes by stretches: it stops at thread switches where a barrier is.
inline qpu::Stop run_stretches_for_turn(Resident& resident, const Engine& engine, uint64_t turn,
                                        int pool_slot) {
  qpu::Thread& thread = *resident.thread;
  if (!resident.started) thread.instructions = 0;
  resident.started = true;
  const uint64_t before = thread.instructions;
  const qpu::Stop stop = engine.run_stretches(resident, turn, pool_slot);
  resident.last_turn = thread.instructions - before;
  resident.last_clocks = kInstructionClocks * resident.last_turn;
  return stop;
}

/// The same of a batch, which it starts if that is new.
inline qpu::Stop run_turn(Resident& resident, const Engine& engine, uint64_t turn, uint64_t instruction_limit,
                          bool stop_at_switch, int pool_slot) {
  qpu::Thread& thread = *resident.thread;
  if (resident.code != nullptr) return run_stretches_for_turn(resident, engine, turn, pool_slot);
  if (!resident.started) {
    engine.start(thread, resident.batch, resident.tidx);
    resident.started = true;
  }
  const uint64_t before = thread.instructions;
  const uint64_t clocks_before = engine.clocks ? engine.clocks(thread) : 0;
  const qpu::Stop stop = run_turn(thread, engine, turn, instruction_limit, stop_at_switch, pool_slot);
  resident.last_turn = thread.instructions - before;
  resident.last_clocks = kInstructionClocks * resident.last_turn;
  if (engine.clocks)  // who told them may have stopped to watch the batch
    resident.last_clocks = std::max(resident.last_clocks,
                                    engine.clocks(thread) - std::min(engine.clocks(thread), clocks_before));
  return stop;
}

struct Leftover {
  struct Group {
    uint32_t slot = 0;
    uint64_t clock = 0;             ///< of the GPU, at which they go on
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
