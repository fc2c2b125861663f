/// These functions run the batches of a dispatch on the pool of its job.
#pragma once

#include <cstdint>

#include "gpu/base/job_context.h"
#include "gpu/csd/configuration.h"
#include "gpu/csd/resident.h"

namespace v3d::csd {

struct Outcome {
  bool complete;          ///< all batches ended
  uint64_t instructions;  ///< executed
};

/// @param serial  one supergroup at a time, all in slot 0
Outcome schedule(const JobContext& job, const Configuration& configuration, bool serial,
                 const Engine& engine);

}  // namespace v3d::csd
