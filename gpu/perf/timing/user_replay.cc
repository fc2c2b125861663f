/// @file User programs of VideoCore IV: one after the other, as QPUs become free.
#include <algorithm>

#include "gpu/perf/timing/job_replay.h"
#include "gpu/perf/timing/qpu_array.h"
#include "gpu/perf/timing/replayer.h"

namespace v3d::timing {
namespace {

class UserReplay : JobReplay {
 public:
  UserReplay(const UserPrograms& job, const chip::Profile& profile, const Parameters& parameters)
      : JobReplay(JobKind::kCompute, profile, parameters),
        batches_(job.trace.batches),
        qpus_(job.trace, profile, p_, memory_, &result_) {
    qpus_.set_semaphores(job.semaphores);
    result_.submit_ns = (job.by_mailbox ? p_.mailbox : p_.user_start) * 1000;
  }

  Prediction run() {
    launch(0);
    uint64_t end = 0;
    while (const auto ended = qpus_.run()) {
      end = std::max(end, ended->done);
      launch(ended->clock);
    }
    Prediction result = finish(end);
    result.recorded = result.whole = batches_.size();
    return result;
  }

 private:
  void launch(uint64_t clock) {
    for (; next_ < batches_.size() && qpus_.has_room(batches_[next_]); ++next_) {
      next_launch_ = std::max(next_launch_, clock);
      qpus_.start(batches_[next_], next_launch_, next_);
      next_launch_ += p_.batch_launch;
    }
  }

  const std::vector<Batch>& batches_;
  QpuArray qpus_;
  size_t next_ = 0;
  uint64_t next_launch_ = 0;
};

}  // namespace

Prediction replay(const UserPrograms& job, const chip::Profile& profile, const Parameters& parameters) {
  return UserReplay(job, profile, parameters).run();
}

}  // namespace v3d::timing
