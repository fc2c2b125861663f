/// A JobReplay is what the replays of all kinds of jobs share.
#pragma once

#include <cstdint>

#include "gpu/chip/profile.h"
#include "gpu/perf/timing/memory_system.h"
#include "gpu/perf/timing/parameters.h"
#include "gpu/perf/timing/prediction.h"

namespace v3d::timing {

class JobReplay {
 protected:
  JobReplay(JobKind kind, const chip::Profile& profile, const Parameters& parameters);

  /// Writes back what the L2T has, and completes the prediction. @param clock  when all else is done
  Prediction finish(uint64_t clock);

  const Parameters p_;
  MemorySystem memory_;
  Prediction result_;
};

}  // namespace v3d::timing
