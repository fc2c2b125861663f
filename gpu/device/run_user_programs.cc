#include "gpu/device/run_user_programs.h"

#include <new>

#include "gpu/base/host_time.h"
#include "gpu/base/job_context.h"
#include "gpu/device/job_end.h"
#include "gpu/perf/counters.h"

namespace v3d::device {
JobResult run_user_programs(const chip::Profile& profile, Context& context, csd::UserQpus& qpus,
                            csd::UserQueue& queue, bool alone, double patience, JobControl& control) {
  const host_time::JobScope host(host_time::Job::kCompute, host_time::Block::kDispatches);
  JobError error;
  perf::JobCounts counts;
  JobContext job{.memory = context.space().memory(),
                 .profile = &profile,
                 .pool = nullptr,
                 .programs = &context.programs(),
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
