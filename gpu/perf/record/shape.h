/// Lookups as the timing model sees them: which lines of memory the lanes touch.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/perf/timing/events.h"
#include "gpu/tmu/lookup/unit.h"

namespace v3d::timing {

/// @param results  words that the lookup returned
/// @param lines    replaced by the different lines, in the order of the lanes
Shape shape_of(const tmu::GeneralLookup& lookup, int results, std::vector<uint32_t>* lines);

}  // namespace v3d::timing
