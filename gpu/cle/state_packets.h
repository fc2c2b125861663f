/// State packets set the state of the draws that follow (cle-and-tiles.md 1.3).
#pragma once

#include "gpu/chip/generation.h"
#include "gpu/cle/packet.h"
#include "gpu/draw/state.h"

namespace v3d::cle {

/// Applies a state packet. @return  false if the packet is not one
bool apply_state(const Packet& packet, chip::Generation generation, draw::DrawState* state);

/// Initial state of a bin job: features off, masks open (cle-and-tiles.md 7).
draw::DrawState initial_state();

}  // namespace v3d::cle
