/// Where the first fault of a job happened.
#pragma once

#include "gpu/base/qpu_place.h"
#include "gpu/mmu/address_space.h"

namespace v3d::mmu {

/// What ran when the first of the faults came that AddressSpace::take_faults() gave last or would give now;
/// with stage null if that was no QPU program. Forgets it.
QpuPlace take_fault_place(const AddressSpace& space);

}  // namespace v3d::mmu
