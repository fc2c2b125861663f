/// replay() predicts what a job would take on a board: it runs the job's events again, with clocks
/// (compute-and-timing.md 18).
#pragma once

#include "gpu/perf/timing/events.h"
#include "gpu/perf/timing/parameters.h"
#include "gpu/perf/timing/prediction.h"

namespace v3d::timing {

/// @param job  well formed: numbers in range, paths that end with kEnd
Prediction replay(const Dispatch& job, const chip::Profile& profile, const Parameters& parameters);
Prediction replay(const BinJob& job, const chip::Profile& profile, const Parameters& parameters);
Prediction replay(const RenderJob& job, const chip::Profile& profile, const Parameters& parameters);
Prediction replay(const UserPrograms& job, const chip::Profile& profile, const Parameters& parameters);
Prediction replay(const Transfer& job, const chip::Profile& profile, const Parameters& parameters);

}  // namespace v3d::timing
