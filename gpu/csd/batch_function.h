/// A BatchFunction executes a compute program for batches of a dispatch by functions of the host
/// (gpu/qpu/run/batch_code.h), without QPU threads: by one for all of a program that goes one way and does
/// not wait for others, else by one for each of its stretches.
///
/// Who counts or watches sees threads: then there is none.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/base/job_context.h"
#include "gpu/base/work_meter.h"
#include "gpu/csd/batch_generator.h"
#include "gpu/csd/configuration.h"
#include "gpu/csd/resident.h"
#include "gpu/csd/uniform_snapshot.h"
#include "gpu/qpu/run/batch_code.h"
#include "gpu/qpu/run/known_textures.h"
#include "gpu/qpu/run/program.h"
#include "gpu/qpu/run/thread.h"

namespace v3d::csd {

/// Of one worker.
class BatchFunction {
 public:
  /// All outlive it.
  BatchFunction(const JobContext& job, const Configuration& configuration, const qpu::Program& program,
                const UniformSnapshot& snapshot);

  /// Whether batches may come here; looks for a function now and then, as long as there is none.
  /// @param thread  for who finds that there is no memory
  bool is_ready(qpu::Thread& thread, tmu::Unit& unit) {
    if (code_ != nullptr) [[likely]]
      return true;
    return ++asked_ == next_look_ && look(thread, unit);
  }
  /// Executes the next batches of a supergroup.
  /// @param thread  as above
  /// @param count   of those that it has
  /// @param slot    its
  /// @return  how many were: if not all, `batch` is the next one, for a thread
  uint32_t run(qpu::Thread& thread, BatchGenerator& generator, uint32_t count, uint32_t slot, Batch& batch);
  /// Of a batch.
  uint32_t instructions() const { return instructions_; }
  /// Null, or what has stretches: then batches are for run_stretches().
  const qpu::BatchCode* cut() const {
    return code_ != nullptr && !code_->stretches().empty() ? code_ : nullptr;
  }
  /// Executes a batch up to a barrier, its end, or so many instructions, but for one stretch at least.
  /// @param resident  has code of this program, which another worker may have found
  qpu::Stop run_stretches(Resident& resident, uint64_t budget);

  /// Executed so far, of all batches.
  uint64_t executed() const { return executed_; }

 private:
  bool look(qpu::Thread& thread, tmu::Unit& unit);
  const qpu::BatchCode* find(qpu::Thread& thread, tmu::Unit& unit);
  void use(const qpu::BatchCode& code);
  void read_uniforms();
  void read_memory();
  bool run(const Batch& batch);
  uint32_t uniform(uint32_t number) const {
    return snapshot_.word(configuration_.uniforms + static_cast<uint32_t>(number * sizeof(uint32_t)));
  }

  const JobContext& job_;
  const Configuration& configuration_;
  const qpu::Program& program_;
  const UniformSnapshot& snapshot_;
  WorkMeter meter_;
  const qpu::BatchCode* code_ = nullptr;
  qpu::BatchFn function_ = nullptr;  // code_'s
  uint32_t instructions_ = 0;
  uint32_t asked_ = 0, next_look_ = 1;  // times
  uint32_t runs_ = 0, missed_ = 0;      // batches
  uint64_t executed_ = 0;
  qpu::BatchKey key_;
  qpu::KnownTextures textures_;
  std::vector<qpu::SpreadWord> uniforms_;
  std::vector<const uint8_t*> indirect_;  // where words stand in the host's memory that others may change
  qpu::BatchRun run_;
};

}  // namespace v3d::csd
