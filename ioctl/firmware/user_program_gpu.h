/// A GpuContext that can run user programs of VideoCore IV is this as well.
#pragma once

#include "gpu/csd/user_programs.h"
#include "gpu/device/device.h"

namespace v3d::ioctl {

class UserProgramGpu {
 public:
  virtual ~UserProgramGpu() = default;
  /// csd::UserQpus::run(), as a job in the context's address space.
  virtual device::JobResult run_user_programs(csd::UserQpus& qpus, csd::UserQueue& queue, bool alone,
                                              JobControl& control) = 0;
};

}  // namespace v3d::ioctl
