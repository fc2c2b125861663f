/// A brief dispatch is one that surely ends soon.
#pragma once

#include <array>
#include <cstdint>

namespace v3d::chip {
struct Profile;
}
namespace v3d::mmu {
class AddressSpace;
}

namespace v3d::csd {

/// Batches, and instructions of the program, that a brief dispatch has at most.
inline constexpr uint32_t kBriefBatches = 16, kBriefInstructions = 256;

/// Few batches of a short program in which all ways lead on, none back. The program may change before it
/// runs: what is decided by this must be right, if slow, for any other. Reads only mapped pages.
/// @param cfg  as for dispatch()
bool is_brief(const mmu::AddressSpace& space, const chip::Profile& profile,
              const std::array<uint32_t, 7>& cfg);

}  // namespace v3d::csd
