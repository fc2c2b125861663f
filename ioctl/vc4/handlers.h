/// These are the handlers of vc4's own ioctls. All return 0 or a positive errno.
#pragma once

#include "ioctl/abi/mode.h"
#include "ioctl/abi/vc4.h"
#include "ioctl/core/call.h"

namespace v3d::ioctl::vc4 {

// submit_cl.cc
int submit_cl(Call& call, drm::vc4::SubmitCl& args);

// wait.cc
int wait_seqno(Call& call, drm::vc4::WaitSeqno& args);
int wait_bo(Call& call, drm::vc4::WaitBo& args);

// bo.cc
int create_bo(Call& call, drm::vc4::CreateBo& args);
int mmap_bo(Call& call, drm::vc4::MmapBo& args);
int create_shader_bo(Call& call, drm::vc4::CreateShaderBo& args);
int set_tiling(Call& call, drm::vc4::Tiling& args);
int get_tiling(Call& call, drm::vc4::Tiling& args);
int label_bo(Call& call, drm::vc4::LabelBo& args);
int gem_madvise(Call& call, drm::vc4::GemMadvise& args);
/// MODE_CREATE_DUMB.
int create_dumb(Call& call, drm::CreateDumb& args);
/// MODE_ADDFB and MODE_ADDFB2.
int add_fb(Call& call, drm::FbCmd& args);
int add_fb2(Call& call, drm::FbCmd2& args);

// param.cc
int get_param(Call& call, drm::vc4::GetParam& args);
int get_hang_state(Call& call, drm::vc4::GetHangState& args);

// perfmon.cc
int perfmon_create(Call& call, drm::vc4::PerfmonCreate& args);
int perfmon_destroy(Call& call, drm::vc4::PerfmonDestroy& args);
int perfmon_get_values(Call& call, drm::vc4::PerfmonGetValues& args);

}  // namespace v3d::ioctl::vc4
