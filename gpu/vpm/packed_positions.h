/// These functions bring shaded vertices of VideoCore IV (vc4-graphics.md 2.2), whose Xs and Ys share a row,
/// into the form of the others' (cle-and-tiles.md 3.3), which is the one that all later blocks know.
#pragma once

#include <cstdint>

#include "gpu/base/lanes.h"
#include "gpu/draw/state.h"

namespace v3d::vpm {

/// Rows that a program can address: more than it may have outputs.
inline constexpr uint32_t kVpmWindowRows = 64;

/// Rows of a vertex in the common form. @param coordinate  of the coordinate program
uint32_t rows_with_positions(const draw::ShaderRecord& record, bool coordinate);

/// @param packed  kVpmWindowRows rows as the program wrote them
/// @param rows    room for rows_with_positions()
void unpack_positions(const draw::ShaderRecord& record, bool coordinate, const Lanes* packed, Lanes* rows);

}  // namespace v3d::vpm
