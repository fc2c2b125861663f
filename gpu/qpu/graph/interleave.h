/// Sums of many terms wait for themselves: a pass that has several of them done side by side.
#pragma once

#include "gpu/qpu/graph/graph.h"

namespace v3d::qpu::graph {

/// Nodes between two that stay, other than loads, in an order in which as many long chains of float sums as
/// `count` go on by turns; what they need comes right before. Where there are none, or one, nothing changes.
Graph interleaved(const Graph& graph, size_t count);

}  // namespace v3d::qpu::graph
