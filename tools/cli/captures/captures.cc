#include "tools/cli/captures/captures.h"

#include "gpu/draw/bin_result.h"

namespace v3d::tools {

using daemon::CapturedJob;

device::JobResult CapturedJobs::run(const CapturedJob& job, device::Context& context, uint32_t times) {
  device::JobResult result;
  for (uint32_t i = 0; i < times; ++i) result = run_once(job, context);
  if (job.kind == CapturedJob::kRender) binned_.erase({job.context, job.submission});
  return result;
}

device::JobResult CapturedJobs::run_once(const CapturedJob& job, device::Context& context) {
  const std::pair submission(job.context, job.submission);
  switch (job.kind) {
    case CapturedJob::kBin:
      return device_.run_bin(context, job.cl(), control_, &binned_[submission]);
    case CapturedJob::kRender:
      return device_.run_render(context, job.cl(), control_, job.submission ? binned_[submission] : nullptr);
    case CapturedJob::kCsd:
      return device_.run_csd(context, job.csd(), control_);
    default:
      return device_.run_tfu(context, job.tfu(), control_);
  }
}

}  // namespace v3d::tools
