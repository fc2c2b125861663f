/// This job of bounded length has its memory image from the input.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "gpu/base/job_context.h"
#include "gpu/base/thread_pool.h"
#include "gpu/chip/profile.h"
#include "gpu/mmu/address_space.h"
#include "gpu/perf/counters.h"
#include "gpu/qpu/run/program_cache.h"
#include "tests/fuzz/targets.h"

namespace v3d::fuzz {

/// The address space of all jobs of a target, made once: memory after the first page, as much as small
/// programs have.
class JobMemory {
 public:
  static constexpr GpuAddr kBase = 0x1000;
  static constexpr uint32_t kSize = (4 << 20) - kBase;

  JobMemory();
  /// Zeros, then the image at kBase.
  void reset(Bytes image);
  mmu::AddressSpace& space() { return *space_; }
  Memory memory() const { return space_->memory(); }

 private:
  std::unique_ptr<mmu::AddressSpace> space_;
};

/// A job that is cancelled after a tenth of a second, as the daemon cancels those of a client that died:
/// what then goes on runs into the time limit of the fuzzer.
class FuzzJob {
 public:
  FuzzJob(JobMemory& memory, chip::Generation generation);
  ~FuzzJob();
  FuzzJob(const FuzzJob&) = delete;
  FuzzJob& operator=(const FuzzJob&) = delete;
  JobContext& job() { return job_; }

 private:
  chip::Profile profile_;
  ThreadPool pool_{0};
  qpu::ProgramCache programs_;
  perf::JobCounts counts_;
  JobError error_;
  std::atomic<bool> cancel_{false};
  JobContext job_;
};

}  // namespace v3d::fuzz
