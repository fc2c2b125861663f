/// The report of a job is what the log, the list of GPU errors and its fence say of its end.
#pragma once

#include "daemon/gpu_errors.h"
#include "gpu/device/device.h"
#include "ioctl/jobs/job.h"

namespace v3d::daemon {

/// Counts faults and failures of the job's client and logs them on behalf of its user (LogScope), whose lines
/// are limited. @param errors  where they are remembered, too; null: nowhere
/// @return  the errno that the job's fence carries, or 0
int settle(const ioctl::Job& job, const ioctl::User& user, const device::JobResult& result,
           GpuErrors* errors);

}  // namespace v3d::daemon
