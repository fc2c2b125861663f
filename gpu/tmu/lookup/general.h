/// These functions load, store and do atomic operations by address (texture.md 8).
#pragma once

#include "gpu/base/vector.h"
#include "gpu/tmu/lookup/atomic.h"
#include "gpu/tmu/lookup/unit.h"

namespace v3d::tmu {

/// What a lane of a general access loads or stores.
struct GeneralType {
  uint8_t bytes, words;
  bool is_signed;
};
/// Bits 2:0 of the configuration byte (texture.md 2.4).
inline constexpr GeneralType kGeneralTypes[8] = {{1, 1, true},  {2, 1, true},  {4, 2, false}, {4, 3, false},
                                                 {4, 4, false}, {1, 1, false}, {2, 1, false}, {4, 1, false}};

/// Lanes that take part; bit 7 of the configuration: helpers do not.
inline LaneMask general_lanes(const GeneralLookup& lookup) {
  const bool per_pixel = (lookup.config & 0x80) != 0;
  return lookup.exec & (per_pixel ? lookup.live : whole_quads(lookup.live));
}

/// An atomic operation on words with data, lane after lane.
/// @param memory  the host's address of 0
/// @param old     what stood there; 0 in lanes that are not active
using AtomicFn = void (*)(uint8_t* memory, const Lanes* address, const Lanes* data, uint32_t active,
                          Lanes* old);
/// @return  null: of two words of data, or none
AtomicFn find_atomic(uint32_t op);

/// @param wrap16  4.2: a vector stays inside its 16-byte block
/// @return words written to out
int general_lookup(Memory memory, bool wrap16, const GeneralLookup& lookup, Lanes* out);

}  // namespace v3d::tmu
