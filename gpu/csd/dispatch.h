/// The unit of compute shader dispatch makes batches and supergroups with their payloads, and has barriers
/// (compute-and-timing.md 1 to 6).
#pragma once

#include <array>
#include <cstdint>

#include "gpu/base/job_context.h"

namespace v3d::mmu {
class AddressSpace;
}

namespace v3d::csd {

/// Runs a dispatch to its end or until job.stopped(). Compute owns all TIDX values: job.first_tidx is not
/// used.
/// @param cfg  CFG0..CFG6 as in SUBMIT_CSD; no field is trusted
/// @param one_supergroup_at_a_time  jobs that came through CPU_INDIRECT_CSD
/// @param space  of job.memory; says which pages the copy of the uniforms may read (compute-and-timing.md 7).
///               nullptr: no copy, uniforms are read from live memory
/// @return true when all batches ended. false: one hung or exceeded job.instruction_limit, and the message is
/// in
///         job.error; or the job was stopped from outside
bool dispatch(const JobContext& job, const std::array<uint32_t, 7>& cfg, bool one_supergroup_at_a_time,
              const mmu::AddressSpace* space = nullptr);

}  // namespace v3d::csd
