/// What emitters of all hosts ask about a graph and its nodes.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/qpu/graph/graph.h"

namespace v3d::qpu::jit {

/// Of each node, whether nobody sees the sign of its zeros: only those take it that do not tell one zero from
/// the other.
std::vector<bool> loose_zeros(const graph::Graph& graph);

/// Whether a host computes in a mode of its own for some nodes.
bool changes_rounding(const graph::Graph& graph);

/// How many varyings the thread must have after those that were read before.
uint32_t varyings_of(const graph::Graph& graph);

}  // namespace v3d::qpu::jit
