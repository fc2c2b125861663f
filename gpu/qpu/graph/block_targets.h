/// These nodes end the graph of a block of fragments: they take the colours of its pixels into the render
/// target.
#pragma once

#include <array>
#include <cstdint>

#include "gpu/qpu/graph/value.h"
#include "gpu/qpu/run/block_target.h"

namespace v3d::qpu::graph {

/// What a program wrote of a render target.
struct BlockColors {
  std::array<Value, 2> halves;  ///< four channels
  Value written;                ///< a mask: the pixels that it did that of
};

/// @param first_constant  the number of the uniform that is the first constant of blending
void store_colors(Graph& graph, const BlockTarget& target, const BlockColors& colors,
                  uint32_t first_constant);

}  // namespace v3d::qpu::graph
