/// Mappings of small BOs that the program has unmapped stay for a while (parked), since Mesa's Vulkan drivers
/// map the same BOs anew whenever they begin a command buffer. A mapping that is found again costs no system
/// call, no page faults, and no interrupt of the processors that have seen it. Its memory is the BO's, or
/// what the daemon gives to no other BO (ioctl/memory/slab.h).
///
/// All functions are thread safe, and in signal handlers; none blocks.
#pragma once

#include <cstddef>
#include <cstdint>

namespace v3d::shim {

/// What is mapped, readable and writable, of a slab.
struct SlabRange {
  uint64_t inode;   ///< of the slab
  uint64_t offset;  ///< in it
  uint64_t bytes;   ///< whole pages
  uint32_t epoch;   ///< mappings_epoch() before it was mapped
};

/// At most that many are parked; more are unmapped, the oldest first.
inline constexpr uint32_t kMaxParked = 24;

/// The program has the mapping now. It may be that nothing is remembered of it: too many are.
void note_mapping(uint64_t address, const SlabRange& range);
/// The program's munmap. False: the memory has to be unmapped.
bool park_mapping(uint64_t address, size_t length);
/// The address of a parked mapping of the range, which the program has from now on; 0: there is none.
uint64_t take_parked(const SlabRange& range);
/// Something else is about to be mapped there, or the program changes what is: what is parked there is
/// unmapped.
void forget_mappings(uint64_t address, size_t length);

}  // namespace v3d::shim
