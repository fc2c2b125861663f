/// Loads, stores and atomics by address (texture.md 8).
#pragma once

#include "gpu/tmu/lookup/unit.h"

namespace v3d::tmu {

/// @param wrap16  4.2: a vector stays inside its 16-byte block
/// @return words written to out
int general_lookup(Memory memory, bool wrap16, const GeneralLookup& lookup, Lanes* out);

}  // namespace v3d::tmu
