/// User programs of VideoCore IV as one job.
#pragma once

#include "gpu/base/job_control.h"
#include "gpu/csd/user_programs.h"
#include "gpu/device/device.h"

namespace v3d::device {

/// csd::UserQpus::run(). Jobs of one UserQpus come one after the other, in one context.
/// @param patience  as of Device
JobResult run_user_programs(const chip::Profile& profile, Context& context, csd::UserQpus& qpus,
                            csd::UserQueue& queue, bool alone, double patience, JobControl& control);

}  // namespace v3d::device
