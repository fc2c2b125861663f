/// A BatchRow is what a worker begins next of a dispatch: batch after batch on one QPU thread, supergroup
/// after supergroup in one slot, for as long as each ends within its turn. Nothing of a batch is kept but the
/// thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gpu/base/job_context.h"
#include "gpu/csd/batch_generator.h"
#include "gpu/csd/resident.h"

namespace v3d::csd {

struct BatchRow {
  BatchGenerator& generator;   ///< where it goes on a supergroup begins
  uint64_t supergroups;        ///< that may begin, 1 or more
  uint32_t slot;               ///< of each
  const uint8_t* tidx;         ///< of its batches
  uint64_t instruction_limit;  ///< of a batch

  // What was done
  uint64_t ended = 0;             ///< supergroups
  uint32_t count = 0, begun = 0;  ///< batches of the one after those, if it began: all, and those that did
  Batch last = {};
  qpu::Stop stop = qpu::Stop::kEnd;  ///< of the last batch; the others ended
  uint64_t instructions = 0;         ///< of all
  uint64_t batches = 0;              ///< the same
  uint64_t last_turn = 0;            ///< of the last batch

  /// Runs batches until one does not end in its turn, or a supergroup ended and all took a turn together, or
  /// the job is over.
  /// @param start  (thread, batch, tidx) makes the thread ready for a batch
  /// @param run  (thread) runs it until thread.budget is used up
  template <typename Start, typename Run>
  void begin(const JobContext& job, qpu::Thread& thread, const Start& start, const Run& run) {
    const uint64_t turn = std::min(kTurn, instruction_limit);
    do {
      count = generator.opens_supergroup();
      for (begun = 0; begun < count;) {
        if (begun != 0 && job.stopped()) return;
        generator.next(slot, &last);
        start(thread, last, uint32_t{tidx[begun++]});
        thread.stop_at_block = true;
        thread.budget = turn;
        stop = run(thread);
        last_turn = thread.instructions;
        instructions += last_turn;
        ++batches;
        if (stop != qpu::Stop::kEnd) return;
      }
      count = begun = 0;
      ++ended;
    } while (--supergroups != 0 && instructions < kTurn && !job.stopped());
  }
};

}  // namespace v3d::csd
