/// @file SUBMIT_TFU (drm-abi.md 2.7).
#include <algorithm>
#include <cerrno>

#include "ioctl/handlers.h"
#include "ioctl/submit.h"

namespace v3d::ioctl {

int submit_tfu(Call& call, drm::SubmitTfu& args) {
  if (args.flags && !(args.flags & drm::kSubmitExtension)) return EINVAL;
  Extensions extensions;
  if (args.flags & drm::kSubmitExtension)
    if (const int error = get_extensions(call, args.extensions, &extensions, nullptr)) return error;
  if (const int error = get_out_sync(call, args.out_sync, &extensions)) return error;

  JobPtr job;
  if (const int error = make_job(call, Queue::kTfu, args.in_sync, &extensions, &job)) return error;
  for (const uint32_t handle : args.bo_handles) {
    if (handle == 0) break;
    std::shared_ptr<Bo> bo = call.file.find_bo(handle);
    if (!bo) return ENOENT;
    job->bos.push_back(std::move(bo));
  }
  if (const int error = check_reservations(call.kernel.abi(), *job)) return error;
  const std::shared_ptr<AddressRoom> room = call.file.room(call.account);
  if (!room) return ENOMEM;

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
  job->run = [room, registers](Turn& turn) { return room->gpu().run_tfu(registers, turn); };
  commit(call, {job}, extensions);
  return 0;
}

}  // namespace v3d::ioctl
