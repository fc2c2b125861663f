/// The GPUs that the daemon can stand in for.
#pragma once

#include <memory>

#include "gpu/device/profile.h"
#include "ioctl/gpu.h"

namespace v3d::daemon {

/// The GPU model (device::Device) on all cores. @param workers  threads besides those of the queues
std::unique_ptr<ioctl::Gpu> make_device_gpu(const device::Profile& profile, int workers);

/// Accepts every job and executes nothing (--no-execute): for measuring drivers and this daemon alone.
std::unique_ptr<ioctl::Gpu> make_idle_gpu(const device::Profile& profile);

}  // namespace v3d::daemon
