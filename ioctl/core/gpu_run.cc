#include "ioctl/core/gpu_run.h"

#include <new>

namespace v3d::ioctl {

device::JobResult run_on_gpu(Kernel& kernel, const Job& job,
                             const std::function<device::JobResult(JobControl&)>& run, JobControl& control) {
  using End = device::JobResult::End;
  const ActivePerfmons::Run counting = kernel.perfmons().begin(job.perfmon);
  device::JobResult result;
  try {
    control.set_counted(counting.perfmon != nullptr);
    result = run(control);
  } catch (const std::bad_alloc&) {
    result.end = End::kError;
    result.message = "out of memory";
  }
  if (result.end == End::kHang || result.end == End::kError) {
    kernel.perfmons().reset();
    ++kernel.resets;
    ++job.client->resets;
  }
  if (counting.perfmon) result.predict();
  kernel.perfmons().end(counting, result.end == End::kDone ? &result.counts : nullptr);
  return result;
}

}  // namespace v3d::ioctl
