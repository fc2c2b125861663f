/// This function runs a frame of VideoCore IV as one job.
#pragma once

#include "gpu/base/job_control.h"
#include "gpu/device/device.h"
#include "gpu/device/surface_job.h"

namespace v3d::device {

/// Runs the binning list, where the frame has one, and then its tiles.
JobResult run_surfaces(Device& device, Context& context, const SurfaceJob& job, JobControl& control);

}  // namespace v3d::device
