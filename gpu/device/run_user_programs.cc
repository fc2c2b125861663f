#include "gpu/device/run_user_programs.h"

#include <new>
#include <optional>

#include "absl/strings/str_format.h"
#include "gpu/base/host_time.h"
#include "gpu/base/job_context.h"
#include "gpu/mmu/fault_place.h"
#include "gpu/perf/counters.h"
#include "gpu/qpu/run/place_text.h"

namespace v3d::device {
namespace {

JobResult result_of(const JobContext& job, mmu::AddressSpace& space) {
  JobResult r;
  if (job.error->failed()) {
    r.message = job.error->message();
    r.end = job.error->kind() == JobError::Kind::kHang ? JobResult::End::kHang : JobResult::End::kError;
  } else if (job.cancel->load(std::memory_order_relaxed)) {
    r.end = JobResult::End::kCancelled;
  }
  r.faults = space.take_faults();
  const mmu::FaultPlace place = mmu::take_fault_place(space);
  if (r.faults.count && place.stage) {
    std::optional<uint64_t> word;  // of a program that may have been its own victim
    if (space.is_mapped(place.instruction)) word = job.memory.load<uint64_t>(place.instruction & ~7u);
    r.fault_place = absl::StrFormat("in the %s program at 0x%08x, at %s", place.stage, place.program,
                                    qpu::pc_text(job.profile->generation, place.instruction, word));
  }
  r.counts = job.counts->total();
  perf::derive(&r.counts);
  return r;
}

}  // namespace

JobResult run_user_programs(const chip::Profile& profile, Context& context, csd::UserQpus& qpus,
                            csd::UserQueue& queue, bool alone, double patience, JobControl& control) {
  const host_time::JobScope host(host_time::Job::kCompute, host_time::Block::kDispatches);
  JobError error;
  perf::JobCounts counts;
  JobContext job{.memory = context.space().memory(),
                 .profile = &profile,
                 .pool = nullptr,
                 .programs = nullptr,
                 .counts = &counts,
                 .error = &error,
                 .cancel = &control.cancelled(),
                 .patience = patience,
                 .control = &control};
  job.instruction_limit = static_cast<uint64_t>(static_cast<double>(job.instruction_limit) * patience);
  try {
    qpus.run(job, queue, alone);
  } catch (const std::bad_alloc&) {
    error.set("out of memory");
  }
  return result_of(job, context.space());
}

}  // namespace v3d::device
