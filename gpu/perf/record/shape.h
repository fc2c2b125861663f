/// Lookups as the timing model sees them: which lines of memory the lanes touch.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/perf/timing/events.h"
#include "gpu/tmu/lookup/footprint.h"
#include "gpu/tmu/lookup/unit.h"

namespace v3d::timing {

/// @param results  words that the lookup returned
/// @param lines    replaced by the different lines, in the order of the lanes
Shape shape_of(const tmu::GeneralLookup& lookup, int results, std::vector<uint32_t>* lines);
/// @param footprint  of the lookup. Shape::texels: for each quad the most texels that one of its pixels
/// takes, of 32 bits or less; of 64 bits they count twice, and so on
Shape shape_of(const tmu::TextureLookup& lookup, const tmu::Footprint& footprint, int results,
               std::vector<uint32_t>* lines);

/// Adds a line unless it is among those from `begin` on.
void add_line(std::vector<uint32_t>* lines, size_t begin, uint32_t line);

}  // namespace v3d::timing
