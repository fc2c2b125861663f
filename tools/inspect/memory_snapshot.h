/// A MemorySnapshot keeps what memory holds when a job starts, so that the job can be run again and again.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "gpu/mmu/address_space.h"

namespace v3d::inspect {

class MemorySnapshot {
 public:
  /// @param space  outlives the object, and keeps its mappings
  explicit MemorySnapshot(mmu::AddressSpace& space);
  /// Memory as it was; faults since then are forgotten.
  void restore();

 private:
  mmu::AddressSpace& space_;
  std::vector<GpuAddr> addresses_;  // of the pages that are not zero, in ascending order
  std::vector<std::array<uint8_t, mmu::kPageSize>> pages_;
};

}  // namespace v3d::inspect
