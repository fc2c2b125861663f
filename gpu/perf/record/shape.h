/// A shape is what the timing model sees of a lookup: which lines of memory the lanes touch.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/perf/timing/events.h"
#include "gpu/tmu/lookup/footprint.h"
#include "gpu/tmu/lookup/unit.h"

namespace v3d::timing {

/// @param results  words that the lookup returned
/// @param shape    replaced
/// @param lines    replaced by the different lines, in the order of the lanes
void set_shape(const tmu::GeneralLookup& lookup, int results, Shape* shape, std::vector<uint32_t>* lines);
/// @param footprint  of the lookup. Shape::texels: for each quad how often one of its pixels, that of the
/// most texels, takes four of 32 bits or less; of 64 bits they count twice, and so on
void set_shape(const tmu::TextureLookup& lookup, const tmu::Footprint& footprint, int results, Shape* shape,
               std::vector<uint32_t>* lines);

/// Adds the lines in which so many bytes, kLineBytes at most, begin and end, unless they are there.
void add_lines(std::vector<uint32_t>* lines, uint32_t address, uint32_t bytes);
/// The same of VideoCore IV, whose lanes come to the cache one after the other.
/// @param unit  Shape::unit
void set_direct_shape(uint8_t unit, const Lanes& addresses, Shape* shape, std::vector<uint32_t>* lines);
void set_packed_shape(uint8_t unit, int inputs, const tmu::Footprint& footprint, Shape* shape,
                      std::vector<uint32_t>* lines);
/// Quads with a lane among these.
uint32_t num_quads(LaneMask lanes);

}  // namespace v3d::timing
