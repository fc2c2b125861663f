/// A StaticPath is one way through a program that the timing model can be asked about without running it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpu/chip/profile.h"
#include "gpu/perf/timing/prediction.h"
#include "gpu/qpu/flow/flow.h"

namespace v3d::tools::explain {

/// Each loop once, and no conditional branch taken: so what they lead around is on the way.
/// @return  nodes of the flow
std::vector<uint32_t> static_path(const qpu::flow::Flow& flow);

/// What batches that go that way cost on a board that does nothing else: as a dispatch of many of them, whose
/// lookups take a line that the TMU has, all lanes the same.
/// @param threads_per_qpu  1, 2 or 4
timing::Prediction predict_path(const qpu::flow::Flow& flow, std::span<const uint32_t> path,
                                const chip::Profile& profile, uint32_t threads_per_qpu);

}  // namespace v3d::tools::explain
