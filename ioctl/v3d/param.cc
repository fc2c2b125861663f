/// @file GET_PARAM (Linux v3d_drv.c, v3d_get_param_ioctl).
#include <cerrno>

#include "gpu/perf/counter_table.h"
#include "ioctl/v3d/handlers.h"

namespace v3d::ioctl {

int get_param(Call& call, drm::GetParam& args) {
  if (args.pad != 0 || args.param >= call.kernel.abi().num_params) return EINVAL;
  const chip::Profile& profile = call.kernel.gpu().profile();
  const uint32_t registers[] = {profile.uifcfg,     profile.hub_ident1,  profile.hub_ident2,
                                profile.hub_ident3, profile.core_ident0, profile.core_ident1,
                                profile.core_ident2};
  if (args.param < std::size(registers)) {
    if (args.value != 0) return EINVAL;
    args.value = registers[args.param];
    return 0;
  }
  switch (args.param) {
    case drm::kParamSupportsTfu:
    case drm::kParamSupportsCsd:
    case drm::kParamSupportsCacheFlush:
    case drm::kParamSupportsPerfmon:
    case drm::kParamSupportsMultisyncExt:
    case drm::kParamSupportsCpuQueue:
    case drm::kParamSupportsSuperPages:
      args.value = 1;
      return 0;
    case drm::kParamMaxPerfCounters:
      args.value = perf::counter_table(profile.generation).size();
      return 0;
    case drm::kParamGlobalResetCounter:
      args.value = call.kernel.resets;
      return 0;
    case drm::kParamContextResetCounter:
      args.value = call.file.client()->resets;
      return 0;
  }
  return EINVAL;
}

}  // namespace v3d::ioctl
