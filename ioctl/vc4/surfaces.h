/// The surfaces of a submit say what is loaded, cleared and stored (vc4-abi.md 5.1; Linux vc4_render_cl.c).
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "gpu/device/surface_job.h"
#include "ioctl/abi/vc4.h"
#include "ioctl/vc4/job_bo.h"

namespace v3d::ioctl::vc4 {

struct Surfaces {
  device::SurfaceJob job;  ///< without its list
  /// BOs that are stored to.
  std::vector<uint32_t> written;
};

/// @param tiles_x,tiles_y  that are binned; 0: there is no binning list
/// @return InvalidArgument where the kernel returns EINVAL
///
/// Stricter than the kernel where surfaces of raw samples end: it lets the last tile lie beyond the BO.
absl::StatusOr<Surfaces> check_surfaces(const drm::vc4::SubmitCl& args, JobBos bos, uint8_t tiles_x,
                                        uint8_t tiles_y);

}  // namespace v3d::ioctl::vc4
