/// The submit ioctls have these steps in common: extension chain, dependencies, BO lists, and the one step
/// that makes a submission happen (Linux v3d_submit.c).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ioctl/abi/v3d.h"
#include "ioctl/core/call.h"
#include "ioctl/jobs/job.h"

namespace v3d::ioctl {

struct CpuSubmission;

/// The extensions of one submit.
struct Extensions {
  /// Set by a MULTI_SYNC extension; the in_sync and out_sync of the main struct are ignored then.
  bool multi_sync = false;
  uint64_t in_syncs = 0;
  uint32_t in_sync_count = 0;
  uint32_t wait_stage = 0;
  std::vector<std::shared_ptr<Syncobj>> out_syncs;
};

/// Walks the chain. @param cpu  receives the extension of a CPU job; null for GPU submits, which may have
/// none
int get_extensions(Call& call, uint64_t chain, Extensions* extensions, CpuSubmission* cpu);

/// Of a GPU submit: walks the chain if its flags say that there is one, and adds the out_sync of the main
/// struct, which MULTI_SYNC overrides.
int get_gpu_extensions(Call& call, uint32_t flags, uint64_t chain, uint32_t out_sync, Extensions* extensions);

/// The address space of the caller's jobs, in which what was closed before them is not mapped. Null: ENOMEM.
std::shared_ptr<BoSpace> space_for_jobs(Call& call);

/// A job of the caller that waits for what the submit names for its queue.
/// @param extensions  null for jobs that MULTI_SYNC does not reach
int make_job(Call& call, Queue queue, uint32_t in_sync, const Extensions* extensions, JobPtr* job);

/// Sets job->bos from an array of handles. EINVAL when empty, ENOMEM, EFAULT, ENOENT.
int look_up_bos(Call& call, uint64_t handles, uint32_t count, Job* job);

/// EALREADY when two BOs of the job share a reservation, in versions that would lock it twice.
int check_reservations(const Abi& abi, const Job& job);

/// Gives the jobs of one submission a perfmon; id 0 is none. EAGAIN while a global one is set, ENOENT.
int attach_perfmon(Call& call, uint32_t id, const std::vector<JobPtr>& jobs);

/// Queues the jobs, each dependent on the one before, as one step: implicit dependencies of each job's BO
/// list, fences, push, fences of the BO lists, out-syncs (of the last job). Then waits while the file is too
/// far ahead of the GPU (backlog.h).
/// @return ENOMEM, and nothing is queued, when the client may not have as many dependencies
int commit(Call& call, const std::vector<JobPtr>& jobs, const Extensions& extensions);

/// The CSD and CACHE_CLEAN jobs of a compute submit.
struct CsdSubmission {
  JobPtr csd, clean;
  std::shared_ptr<device::CsdJob> registers;  ///< read when the CSD job runs
};
int make_csd_jobs(Call& call, const drm::SubmitCsd& args, const Extensions* extensions, bool indirect,
                  CsdSubmission* jobs);

}  // namespace v3d::ioctl
