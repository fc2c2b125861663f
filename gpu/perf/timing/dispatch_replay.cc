/// @file Compute jobs: the CSD launches batches wherever there is room.
#include <algorithm>

#include "gpu/perf/timing/job_replay.h"
#include "gpu/perf/timing/qpu_array.h"
#include "gpu/perf/timing/replayer.h"

namespace v3d::timing {
namespace {

class DispatchReplay : JobReplay {
 public:
  DispatchReplay(const Dispatch& job, const chip::Profile& profile, const Parameters& parameters)
      : JobReplay(JobKind::kCompute, profile, parameters),
        batches_(job.trace.batches),
        per_group_(std::max(job.batches_per_supergroup, 1u)),
        qpus_(job.trace, profile, p_, memory_, &result_) {
    std::vector<uint32_t> live((batches_.size() + per_group_ - 1) / per_group_);
    for (size_t i = 0; i < batches_.size(); ++i) ++live[i / per_group_];
    qpus_.set_groups(live);
  }

  Prediction run() {
    launch(0);
    uint64_t end = 0;
    while (const auto ended = qpus_.run()) {
      end = std::max(end, ended->done);
      launch(ended->clock);
    }
    return finish(end);
  }

 private:
  void launch(uint64_t clock) {
    for (; next_ < batches_.size() && qpus_.has_room(batches_[next_]); ++next_) {
      next_launch_ = std::max(next_launch_, clock);
      qpus_.start(batches_[next_], next_launch_, next_, next_ / per_group_);
      next_launch_ += p_.batch_launch;
    }
  }

  const std::vector<Batch>& batches_;
  const uint32_t per_group_;
  QpuArray qpus_;
  size_t next_ = 0;
  uint64_t next_launch_ = 0;
};

}  // namespace

Prediction replay(const Dispatch& job, const chip::Profile& profile, const Parameters& parameters) {
  return DispatchReplay(job, profile, parameters).run();
}

}  // namespace v3d::timing
