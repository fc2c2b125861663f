/// @file SUBMIT_CL: a bin job, a render job, and a cache clean when asked for (drm-abi.md 2.6).
#include <cerrno>
#include <utility>

#include "ioctl/v3d/handlers.h"
#include "ioctl/v3d/submit.h"

namespace v3d::ioctl {
namespace {

/// Bytes of both lists of a job that counts as small: one that draws nothing, and only signals.
constexpr uint32_t kSmallLists = 256;

/// What a bin job leaves for the render job, and who pays for it until that one has ended.
struct Binned {
  std::shared_ptr<const draw::BinResult> result;
  Charge charge;
};

}  // namespace

int submit_cl(Call& call, drm::SubmitCl& args) {
  if (args.pad) return EINVAL;
  if (args.flags & ~(drm::kSubmitFlushCache | drm::kSubmitExtension)) return EINVAL;
  Extensions extensions;
  if (const int error = get_gpu_extensions(call, args.flags, args.extensions, args.out_sync, &extensions))
    return error;

  JobPtr bin, render, clean;
  if (args.bcl_start != args.bcl_end)
    if (const int error = make_job(call, Queue::kBin, args.in_sync_bcl, &extensions, &bin)) return error;
  if (const int error = make_job(call, Queue::kRender, args.in_sync_rcl, &extensions, &render)) return error;
  if (args.flags & drm::kSubmitFlushCache)
    if (const int error = make_job(call, Queue::kCacheClean, 0, nullptr, &clean)) return error;

  // The job that has the BO list waits for the fences of the BOs.
  const Abi& abi = call.kernel.abi();
  Job& with_bos = clean && abi.clean_has_the_bos ? *clean : *render;
  if (const int error = look_up_bos(call, args.bo_handles, args.bo_handle_count, &with_bos)) return error;
  if (const int error = check_reservations(abi, with_bos)) return error;
  std::vector<JobPtr> jobs;
  for (JobPtr* job : {&bin, &render, &clean})
    if (*job) jobs.push_back(*job);
  if (const int error = attach_perfmon(call, args.perfmon_id, jobs)) return error;
  const std::shared_ptr<BoSpace> space = space_for_jobs(call);
  if (!space) return ENOMEM;

  const device::ClJob registers = {args.bcl_start, args.bcl_end, args.rcl_start, args.rcl_end,
                                   args.qma,       args.qms,     args.qts};
  // Tile lists pass from the bin job to the render job of the same submission only.
  const auto binned = std::make_shared<Binned>();
  if (bin) {
    bin->space = space;
    bin->run = [space, registers, binned, self = bin.get()](JobControl& control) {
      device::JobResult result = space->gpu().run_bin(registers, control, &binned->result);
      binned->charge = std::move(self->derived);
      return result;
    };
  }
  const bool small = args.bcl_end - args.bcl_start + (args.rcl_end - args.rcl_start) <= kSmallLists;
  if (bin) bin->small = small;
  render->small = small;
  render->space = space;
  render->run = [space, registers, binned](JobControl& control) {
    const Charge until_the_end = std::move(binned->charge);
    return space->gpu().run_render(registers, control, std::move(binned->result));
  };

  return commit(call, jobs, extensions);
}

}  // namespace v3d::ioctl
