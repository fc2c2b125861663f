/// What the uniform cache of hardware keeps during a dispatch: the 256-byte block of CFG6 and 1 KiB after it.
/// Programs that overwrite their own uniforms see the old words (compute-and-timing.md 7).
#pragma once

#include <cstdint>
#include <cstring>

#include "gpu/base/job_context.h"
#include "gpu/base/memory.h"
#include "gpu/mmu/address_space.h"

namespace v3d::csd {

struct UniformSnapshot {
  static constexpr uint32_t kBlock = 256, kBytes = kBlock + 1024;

  /// @param space  null: there is none
  UniformSnapshot(const JobContext& job, GpuAddr uniforms, const mmu::AddressSpace* space)
      : address(uniforms & ~(kBlock - 1)) {
    if (!space) return;
    for (; size < kBytes; size += kBlock) {
      if (address + size < address || !space->is_mapped(address + size)) break;
      job.memory.read(address + size, bytes + size, kBlock);
    }
  }

  /// Whether `count` words from an address on are in it.
  bool has(GpuAddr at, uint32_t count) const {
    return at >= address && uint64_t{at} - address + uint64_t{count} * sizeof(uint32_t) <= size;
  }
  uint32_t word(GpuAddr at) const {
    uint32_t value;
    std::memcpy(&value, bytes + (at - address), sizeof(value));
    return value;
  }

  GpuAddr address;
  uint32_t size = 0;
  uint8_t bytes[kBytes];
};

}  // namespace v3d::csd
