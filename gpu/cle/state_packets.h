/// State packets set the state of the draws that follow (cle-and-tiles.md 1.3).
#pragma once

#include <optional>
#include <string>

#include "gpu/chip/generation.h"
#include "gpu/cle/packet.h"
#include "gpu/draw/state.h"

namespace v3d::cle {

/// Applies a state packet. @param error  null, or set where the packet asks for what is not modelled
/// @return  false if the packet is not one
bool apply_state(const Packet& packet, chip::Generation generation, draw::DrawState* state,
                 std::string* error = nullptr);

/// The draw of a generation whose draw packets say all of it; nothing where other packets have a share in it.
std::optional<draw::DrawCall> complete_draw_call(const Packet& packet, chip::Generation generation);

/// Initial state of a bin job: features off, masks open (cle-and-tiles.md 7).
draw::DrawState initial_state();

}  // namespace v3d::cle
