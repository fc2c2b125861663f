/// gpu/cle/surface_job.h for whoever makes such jobs and may not look behind the device.
#pragma once

#include "gpu/cle/surface_job.h"

namespace v3d::device {

using SurfaceJob = cle::SurfaceJob;

}  // namespace v3d::device
