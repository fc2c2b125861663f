/// These functions run a job of any driver on the GPU.
#pragma once

#include <functional>

#include "gpu/device/device.h"
#include "ioctl/core/kernel.h"
#include "ioctl/jobs/job.h"

namespace v3d::ioctl {

/// Runs a GPU job as the device does: its perfmon counts, and a job that fails resets the GPU. The kernel
/// would find that a list or shader that the GPU refuses makes no progress.
device::JobResult run_on_gpu(Kernel& kernel, const Job& job,
                             const std::function<device::JobResult(JobControl&)>& run, JobControl& control);

}  // namespace v3d::ioctl
