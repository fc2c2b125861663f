/// This header hands gpu/cle/surface_job.h on to code that makes such jobs and may not look into the device.
#pragma once

#include "gpu/cle/surface_job.h"

namespace v3d::device {

using SurfaceJob = cle::SurfaceJob;

}  // namespace v3d::device
