#include "gpu/device/run_surfaces.h"

#include <memory>
#include <utility>

#include "gpu/perf/counters.h"
#include "gpu/perf/timing/prediction.h"

namespace v3d::device {
namespace {

/// Of the parts of a frame, one after the other: the prediction of both, or why there is none.
void join_predictions(const JobResult& first, JobResult* second) {
  if (!first.prediction || !second->prediction) {
    if (second->prediction) second->no_prediction = first.why_not_predicted();
    second->prediction = nullptr;
    return;
  }
  auto joined = std::make_shared<timing::Prediction>(*second->prediction);
  timing::put_before(*first.prediction, joined.get());
  second->prediction = std::move(joined);
}

/// The same of predictions that are still to be made.
void join_later(JobResult* first, JobResult* second) {
  if (!first->later || !second->later) return;
  second->recorded_bytes += first->recorded_bytes;
  second->later = [of_first = std::move(first->later), of_second = std::move(second->later)](JobResult& r) {
    JobResult before;
    of_first(before);
    of_second(r);
    r.counts.add(before.counts);
    join_predictions(before, &r);
  };
}

/// Of two jobs, one after the other, as of one: the end of the first that did not end well.
JobResult both(JobResult first, JobResult second) {
  join_predictions(first, &second);
  join_later(&first, &second);
  second.counts.add(first.counts);
  if (first.faults.count != 0) {
    second.faults.first_address = first.faults.first_address;
    second.faults.count += first.faults.count;
    second.fault_place = std::move(first.fault_place);
  }
  if (first.end != JobResult::End::kDone) {
    second.end = first.end;
    second.message = std::move(first.message);
  }
  return second;
}

}  // namespace

JobResult run_surfaces(Device& device, Context& context, const SurfaceJob& job, JobControl& control) {
  ClJob cl{.bcl_start = job.list_start, .bcl_end = job.list_end};
  cl.surfaces = std::shared_ptr<const SurfaceJob>(std::shared_ptr<const SurfaceJob>(), &job);
  std::shared_ptr<const draw::BinResult> bin;
  JobResult binned;
  if (job.list_start != job.list_end) binned = device.run_bin(context, cl, control, &bin);
  if (binned.end == JobResult::End::kCancelled) return binned;
  // What was binned before an error is rendered all the same (vc4-abi.md 6.3).
  return both(std::move(binned), device.run_render(context, cl, control, bin));
}

}  // namespace v3d::device
