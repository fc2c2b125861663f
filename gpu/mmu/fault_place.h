/// A FaultPlace says where the first fault of a job happened.
#pragma once

#include <cstdint>

#include "gpu/mmu/address_space.h"

namespace v3d::mmu {

struct FaultPlace {
  const char* stage = nullptr;  ///< a literal; null: that was no QPU program
  GpuAddr program = 0;          ///< its first instruction
  GpuAddr instruction = 0;
};
/// What ran when the first of the faults came that AddressSpace::take_faults() gave last or would give now.
/// Forgets it.
FaultPlace take_fault_place(const AddressSpace& space);

}  // namespace v3d::mmu
