#include "gpu/perf/timing/job_replay.h"

#include <algorithm>
#include <utility>

#include "gpu/perf/timing/replayer.h"

namespace v3d::timing {
namespace {

class TransferReplay : JobReplay {
 public:
  TransferReplay(const chip::Profile& profile, const Parameters& parameters)
      : JobReplay(JobKind::kTransfer, profile, parameters) {}
  Prediction run(const Transfer& job) {
    return finish(memory_.transfer(job.read_bytes, job.written_bytes, 0));
  }
};

}  // namespace

JobReplay::JobReplay(JobKind kind, const chip::Profile& profile, const Parameters& parameters)
    : p_(parameters), memory_(parameters, profile.slices, profile.clock_mhz) {
  result_.kind = kind;
  result_.clock_mhz = profile.clock_mhz;
  result_.tmus = profile.slices * static_cast<int>(p_.tmus);
  result_.qpus = profile.qpu_count();
  if (kind != JobKind::kBin) result_.submit_ns = p_.submit * 1000;  // the render job of the submission has it
}

Prediction JobReplay::finish(uint64_t clock) {
  result_.clocks = std::max(memory_.clean(clock), clock);
  result_.clean_clocks = result_.clocks - clock;
  result_.memory = memory_.counts();
  result_.dram_busy = memory_.dram_busy();
  fit(&result_);
  return std::move(result_);
}

Prediction replay(const Transfer& job, const chip::Profile& profile, const Parameters& parameters) {
  return TransferReplay(profile, parameters).run(job);
}

}  // namespace v3d::timing
