/// Compute shader dispatch: batches, supergroups, payloads, barriers (compute-and-timing.md 1 to 6).
#pragma once

#include <array>
#include <cstdint>

#include "gpu/base/job.h"

namespace v3d::csd {

/// Runs a dispatch to its end. @param cfg  CFG0..CFG6 as in SUBMIT_CSD; no field is trusted
/// @param one_supergroup_at_a_time  jobs that came through CPU_INDIRECT_CSD
/// @return false when a thread hung or ran out of budget; the message is in job.error
bool dispatch(const Job& job, const std::array<uint32_t, 7>& cfg, bool one_supergroup_at_a_time);

}  // namespace v3d::csd
