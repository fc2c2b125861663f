/// @file SUBMIT_CSD: a compute job and its cache clean (drm-abi.md 2.7).
#include <algorithm>
#include <cerrno>

#include "ioctl/v3d/handlers.h"
#include "ioctl/v3d/submit.h"

namespace v3d::ioctl {
namespace {

device::JobResult run_csd(BoSpace& space, const device::CsdJob& registers, JobControl& control) {
  // Hardware reads a count of 0 as 65536; the kernel skips such dispatches (v3d_sched.c, v3d_csd_job_run).
  for (int i = 0; i < 3; ++i)
    if (registers.cfg[static_cast<size_t>(i)] >> 16 == 0) return {};
  return space.gpu().run_csd(registers, control);
}

}  // namespace

int make_csd_jobs(Call& call, const drm::SubmitCsd& args, const Extensions* extensions, bool indirect,
                  CsdSubmission* jobs) {
  if (const int error = make_job(call, Queue::kCsd, args.in_sync, extensions, &jobs->csd)) return error;
  if (const int error = make_job(call, Queue::kCacheClean, 0, nullptr, &jobs->clean)) return error;
  const Abi& abi = call.kernel.abi();
  Job& with_bos = abi.clean_has_the_bos ? *jobs->clean : *jobs->csd;
  if (const int error = look_up_bos(call, args.bo_handles, args.bo_handle_count, &with_bos)) return error;
  if (const int error = check_reservations(abi, with_bos)) return error;
  const std::shared_ptr<BoSpace> space = space_for_jobs(call);
  if (!space) return ENOMEM;

  const auto registers = std::make_shared<device::CsdJob>();
  std::copy(std::begin(args.cfg), std::end(args.cfg), registers->cfg.begin());
  registers->indirect = indirect;
  jobs->registers = registers;
  jobs->csd->space = space;
  // Of an indirect one the registers say nothing yet.
  jobs->csd->small = !indirect && space->gpu().is_brief(*registers);
  jobs->csd->run = [space, registers](JobControl& control) { return run_csd(*space, *registers, control); };
  return 0;
}

int submit_csd(Call& call, drm::SubmitCsd& args) {
  if (args.pad) return EINVAL;
  if (args.flags && !(args.flags & drm::kSubmitExtension)) return EINVAL;
  Extensions extensions;
  if (const int error = get_gpu_extensions(call, args.flags, args.extensions, args.out_sync, &extensions))
    return error;
  CsdSubmission jobs;
  if (const int error = make_csd_jobs(call, args, &extensions, false, &jobs)) return error;
  if (const int error = attach_perfmon(call, args.perfmon_id, {jobs.csd, jobs.clean})) return error;
  return commit(call, {jobs.csd, jobs.clean}, extensions);
}

}  // namespace v3d::ioctl
