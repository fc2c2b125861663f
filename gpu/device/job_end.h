/// This function tells how a job of any kind has ended.
#pragma once

#include "gpu/base/job_context.h"
#include "gpu/device/device.h"
#include "gpu/mmu/address_space.h"

namespace v3d::device {

/// Takes the faults of the address space with it.
JobResult result_of(const JobContext& job, mmu::AddressSpace& space);

}  // namespace v3d::device
