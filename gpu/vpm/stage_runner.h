/// These functions run one program of a vertex stage over batches of 16 lanes, on any slot of the job's pool.
#pragma once

#include <cstdint>
#include <memory>

#include "gpu/base/host_time.h"
#include "gpu/base/job_context.h"
#include "gpu/base/lanes.h"
#include "gpu/base/raw_vector.h"
#include "gpu/draw/state.h"
#include "gpu/qpu/run/interpreter.h"
#include "gpu/qpu/run/program_cache.h"
#include "gpu/qpu/run/thread.h"
#include "gpu/tmu/lookup/unit.h"
#include "gpu/vpm/vc4_stage.h"

namespace v3d::vpm {

/// What one slot of the pool needs of its own.
struct Worker {
  qpu::Thread thread;
  std::unique_ptr<tmu::Unit> tmu;
  RawVector<Lanes> input, output;
  std::unique_ptr<Vc4StageRunner> vc4;  ///< of programs of VideoCore IV
  uint64_t instructions = 0;
  uint64_t in_functions = 0;  ///< that a VertexFunction executed for the draw
  /// What the thread was reset for: batches of the same program restart it.
  const char* stage = nullptr;
  GpuAddr code = 0;
  /// Batches since then, or since end_series().
  qpu::Series series;
  bool in_series = false;

  void end_series() {
    if (in_series) series.end();
    in_series = false;
  }
};

/// A program with everything that is the same for all batches of a draw.
struct StageProgram {
  const char* stage;  ///< for messages
  std::shared_ptr<const qpu::Program> program;
  draw::ShaderCode code;
};

/// Sets the thread of a worker to the start of a program, with `live` lanes existing.
void start_thread(const JobContext& job, const StageProgram& program, int slot, LaneMask live,
                  Worker* worker);

/// Between two slices of instructions of a thread: gives it the next one, unless the job has ended or the
/// thread executed all that it may.
bool may_go_on(const JobContext& job, qpu::Thread& thread);

/// Runs the thread to its end. A hang is reported to job.error. @return  false when it did not end
bool finish_thread(const JobContext& job, const StageProgram& program, Worker* worker);

/// Lanes of batch `batch` that exist when there are `count` items.
inline LaneMask batch_lanes(uint32_t batch, uint32_t count) {
  const uint32_t left = count - batch * kLanes;
  return left >= kLanes ? kAllLanes : static_cast<LaneMask>((1u << left) - 1);
}

/// Calls fn(batch, slot) for all batches, on the pool when there are enough of them to pay for it and nobody
/// keeps them in their order.
template <typename Fn>
void for_each_batch(const JobContext& job, uint32_t batches, const Fn& fn) {
  constexpr uint32_t kGrain = 8;  // batches per piece of work
  if (batches <= kGrain || job.pool->concurrency() == 1 || job.work != nullptr) {
    for (uint32_t b = 0; b < batches && !job.stopped(); ++b) fn(b, 0);
    return;
  }
  const uint32_t pieces = (batches + kGrain - 1) / kGrain;
  const auto run_piece = [&](int piece, int slot) {
    const host_time::Scope host(host_time::Block::kVertices);
    const uint32_t begin = static_cast<uint32_t>(piece) * kGrain;
    const uint32_t end = begin + kGrain < batches ? begin + kGrain : batches;
    for (uint32_t b = begin; b < end && !job.stopped(); ++b) fn(b, slot);
  };
  job.pool->parallel_for(static_cast<int>(pieces), run_piece, job.control, ThreadPool::Next::kSoon);
}

}  // namespace v3d::vpm
