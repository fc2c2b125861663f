/// @file SUBMIT_TFU (drm-abi.md 2.7).
#include <algorithm>
#include <cerrno>

#include "ioctl/v3d/handlers.h"
#include "ioctl/v3d/submit.h"

namespace v3d::ioctl {

int submit_tfu(Call& call, drm::SubmitTfu& args) {
  if (args.flags && !(args.flags & drm::kSubmitExtension)) return EINVAL;
  Extensions extensions;
  if (const int error = get_gpu_extensions(call, args.flags, args.extensions, args.out_sync, &extensions))
    return error;

  JobPtr job;
  if (const int error = make_job(call, Queue::kTfu, args.in_sync, &extensions, &job)) return error;
  for (const uint32_t handle : args.bo_handles) {
    if (handle == 0) break;
    std::shared_ptr<Bo> bo = call.file.find_bo(handle);
    if (!bo) return ENOENT;
    job->bos.push_back(std::move(bo));
  }
  if (const int error = check_reservations(call.kernel.abi(), *job)) return error;
  const std::shared_ptr<BoSpace> space = space_for_jobs(call);
  if (!space) return ENOMEM;

  device::TfuJob registers = {.icfg = args.icfg,
                              .iia = args.iia,
                              .iis = args.iis,
                              .ica = args.ica,
                              .iua = args.iua,
                              .ioa = args.ioa,
                              .ios = args.ios,
                              .ioc = args.ioc,
                              .coef = {}};
  std::copy(std::begin(args.coef), std::end(args.coef), registers.coef.begin());
  job->run = [space, registers](JobControl& control) { return space->gpu().run_tfu(registers, control); };
  return commit(call, {job}, extensions);
}

}  // namespace v3d::ioctl
