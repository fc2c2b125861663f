/// These are the handlers of v3d's own ioctls. All return 0 or a positive errno.
#pragma once

#include "ioctl/abi/v3d.h"
#include "ioctl/core/call.h"

namespace v3d::ioctl {

// bo.cc
int create_bo(Call& call, drm::CreateBo& args);
int mmap_bo(Call& call, drm::MmapBo& args);
int get_bo_offset(Call& call, drm::GetBoOffset& args);
int wait_bo(Call& call, drm::WaitBo& args);

// param.cc
int get_param(Call& call, drm::GetParam& args);

// submit_*.cc
int submit_cl(Call& call, drm::SubmitCl& args);
int submit_tfu(Call& call, drm::SubmitTfu& args);
int submit_csd(Call& call, drm::SubmitCsd& args);
int submit_cpu(Call& call, drm::SubmitCpu& args);

// perfmon.cc
int perfmon_create(Call& call, drm::PerfmonCreate& args);
int perfmon_destroy(Call& call, drm::PerfmonDestroy& args);
int perfmon_get_values(Call& call, drm::PerfmonGetValues& args);
int perfmon_get_counter(Call& call, drm::PerfmonGetCounter& args);
int perfmon_set_global(Call& call, drm::PerfmonSetGlobal& args);

}  // namespace v3d::ioctl
