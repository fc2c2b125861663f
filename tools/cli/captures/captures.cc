#include "tools/cli/captures/captures.h"

#include <cstddef>
#include <vector>

#include "daemon/captured_programs.h"
#include "gpu/draw/bin_result.h"

namespace v3d::tools {

using daemon::CapturedJob;

namespace {

class CapturedQueue : public csd::UserQueue {
 public:
  explicit CapturedQueue(const daemon::CapturedPrograms& job) : job_(job) {}

  bool take(csd::UserProgram* program) override {
    if (taken_ == job_.programs.size()) return false;
    *program = job_.programs[taken_++];
    return true;
  }
  void executed(uint64_t) override {}
  void end(const csd::UserProgram&, int, bool) override {}
  uint32_t reserved_qpus() const override { return job_.reserved_qpus; }
  std::vector<csd::UserProgram> queued() const override {
    return {job_.programs.begin() + static_cast<std::ptrdiff_t>(taken_), job_.programs.end()};
  }

 private:
  const daemon::CapturedPrograms& job_;
  size_t taken_ = 0;
};

}  // namespace

timing::JobKind kind_of(const CapturedJob& job) {
  return job.kind == CapturedJob::kUser ? timing::JobKind::kCompute : static_cast<timing::JobKind>(job.kind);
}

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
    case CapturedJob::kUser:
      return run_programs(job, context);
    default:
      return device_.run_tfu(context, job.tfu(), control_);
  }
}

device::JobResult CapturedJobs::run_programs(const CapturedJob& job, device::Context& context) {
  csd::UserQpus& qpus = qpus_.try_emplace(job.context, device_.profile().qpu_count()).first->second;
  if (job.programs->fresh) qpus.reset();
  CapturedQueue queue(*job.programs);
  return device_.run_user_programs(context, qpus, queue, job.programs->alone, control_);
}

}  // namespace v3d::tools
