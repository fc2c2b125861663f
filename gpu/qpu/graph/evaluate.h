/// This is what operations of graphs give: the definition that code is tested against, and by which constants
/// are folded.
#pragma once

#include <cstdint>

#include "gpu/qpu/graph/graph.h"

namespace v3d::qpu::graph {

/// Of lanes that hold these operands. @param node  without kStays and kCalls, and no source
uint32_t evaluate(const Node& node, uint32_t a, uint32_t b, uint32_t c);

}  // namespace v3d::qpu::graph
