#include "tools/cli/captures/captures.h"

#include "absl/strings/str_cat.h"
#include "gpu/chip/board.h"
#include "gpu/draw/bin_result.h"
#include "gpu/perf/uncounted.h"

namespace v3d::tools {

using daemon::CapturedJob;

std::string why_not_timed(const daemon::CaptureReader& reader) {
  const chip::Generation generation = reader.profile().generation;
  if (!chip::has_driver_vc4(generation)) return {};
  return absl::StrCat("there is no model of the times of V3D ", chip::version_text(generation));
}

device::JobResult CapturedJobs::run(const CapturedJob& job, device::Context& context, uint32_t times) {
  const perf::Uncounted uncounted(!counted_);
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
