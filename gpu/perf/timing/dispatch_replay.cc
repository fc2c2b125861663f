/// @file Compute jobs: the CSD launches batches wherever there is room, of so many supergroups at a time.
#include <algorithm>
#include <utility>
#include <vector>

#include "gpu/perf/timing/job_replay.h"
#include "gpu/perf/timing/qpu_array.h"
#include "gpu/perf/timing/replayer.h"

namespace v3d::timing {
namespace {

class DispatchReplay : JobReplay {
 public:
  DispatchReplay(const Dispatch& job, const chip::Profile& profile, const Parameters& parameters)
      : JobReplay(JobKind::kCompute, profile, parameters),
        job_(job),
        batches_(job.trace.batches),
        per_group_(std::max(job.batches_per_supergroup, 1u)),
        qpus_(job.trace, profile, p_, memory_, &result_) {
    left_.resize((batches_.size() + per_group_ - 1) / per_group_);
    for (size_t i = 0; i < batches_.size(); ++i) ++left_[i / per_group_];
    qpus_.set_groups(left_);
  }

  Prediction run() {
    launch(0);
    uint64_t end = 0;
    while (const auto ended = qpus_.run()) {
      end = std::max(end, ended->done);
      if (--left_[ended->tag / per_group_] == 0) --in_flight_;
      launch(ended->clock);
    }
    Prediction result = finish(end);
    result.recorded = batches_.size();
    result.whole = std::max<uint64_t>(job_.batches, result.recorded);
    return result.instructions != 0 && result.instructions < job_.instructions ? whole(std::move(result))
                                                                               : result;
  }

 private:
  struct Mark {
    uint64_t clock = 0, instructions = 0;
  };

  void launch(uint64_t clock) {
    for (; next_ < batches_.size() && qpus_.has_room(batches_[next_]); ++next_) {
      if (next_ % per_group_ == 0) {
        if (in_flight_ == p_.supergroups) break;
        ++in_flight_;
      }
      next_launch_ = std::max(next_launch_, clock);
      qpus_.start(batches_[next_], next_launch_, next_, next_ / per_group_);
      next_launch_ += p_.batch_launch;
    }
    if (next_ == batches_.size() && full_until_.instructions != 0) return;
    Mark& mark = full_from_.instructions == 0 ? full_from_ : full_until_;
    mark = {clock, result_.instructions};
  }

  /// What was not recorded goes as fast as the rest while there was no room for more batches, but no faster
  /// than the memory: nobody waits for stores, so those of a begin may all be still to do at its end.
  Prediction whole(Prediction result) const {
    const uint64_t recorded = result.instructions, others = job_.instructions - recorded;
    Mark taken = {result.clocks - result.clean_clocks, recorded};
    if (full_until_.instructions > full_from_.instructions + recorded / kLeastFull)
      taken = {full_until_.clock - full_from_.clock, full_until_.instructions - full_from_.instructions};
    const uint64_t clocks = result.clocks + scaled(taken.clock, others, taken.instructions);
    scale(&result, job_.instructions, recorded);
    result.clocks = std::max(clocks, result.dram_busy);
    fit(&result);
    return result;
  }

  /// Part of the recorded instructions by which the rate can be told.
  static constexpr uint64_t kLeastFull = 4;

  const Dispatch& job_;
  const std::vector<Batch>& batches_;
  const uint32_t per_group_;
  QpuArray qpus_;
  std::vector<uint32_t> left_;  // batches of a supergroup that did not end
  uint64_t in_flight_ = 0;      // supergroups
  size_t next_ = 0;
  uint64_t next_launch_ = 0;
  Mark full_from_, full_until_;  // batches wait for room
};

}  // namespace

Prediction replay(const Dispatch& job, const chip::Profile& profile, const Parameters& parameters) {
  return DispatchReplay(job, profile, parameters).run();
}

}  // namespace v3d::timing
