/// Loads and stores of the tile buffer go between planes and images in GPU memory (cle-and-tiles.md 6). They
/// are internal to the TLB.
#pragma once

#include <string>

#include "gpu/tlb/tile.h"

namespace v3d::tlb {

/// Both work on the part of the tile that lies inside the frame and touch no byte of memory outside it.
/// @return  false, with a message in *error naming the field, for what the packet cannot mean here; then
///          nothing happened.
bool load_tile(Memory memory, Tile& tile, const LoadStore& packet, std::string* error);
bool store_tile(Memory memory, Tile& tile, const LoadStore& packet, std::string* error);

}  // namespace v3d::tlb
