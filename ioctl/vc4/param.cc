/// @file GET_PARAM and GET_HANG_STATE (vc4-abi.md 1.4, 2.7; Linux vc4_drv.c, vc4_gem.c).
#include <cerrno>

#include "ioctl/vc4/handlers.h"

namespace v3d::ioctl::vc4 {

int get_param(Call& call, drm::vc4::GetParam& args) {
  if (args.pad != 0) return EINVAL;
  const Vc4Board& board = *call.kernel.gpu().vc4_board();
  switch (args.param) {
    case drm::vc4::kParamIdent0:
    case drm::vc4::kParamIdent1:
    case drm::vc4::kParamIdent2:
      args.value = board.ident[args.param - drm::vc4::kParamIdent0];
      return 0;
    case drm::vc4::kParamSupportsBranches:
    case drm::vc4::kParamSupportsEtc1:
    case drm::vc4::kParamSupportsThreadedFs:
    case drm::vc4::kParamSupportsFixedRclOrder:
    case drm::vc4::kParamSupportsMadvise:
    case drm::vc4::kParamSupportsPerfmon:
      args.value = 1;
      return 0;
  }
  return EINVAL;
}

/// No state of a hang is ever saved: what a job did that could not end is in the log.
int get_hang_state(Call&, drm::vc4::GetHangState&) { return ENOENT; }

}  // namespace v3d::ioctl::vc4
