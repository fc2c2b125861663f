/// What emitters of all hosts ask about a graph and its nodes.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/qpu/graph/graph.h"

namespace v3d::qpu::jit {

/// Of each node, whether nobody sees the sign of its zeros: only those take it that do not tell one zero from
/// the other.
std::vector<bool> loose_zeros(const graph::Graph& graph);

/// Of each node, whether nobody sees which NaN a NaN among its floats is, by sign and payload: only those
/// take it that give the same for all quiet ones, or another one.
std::vector<bool> loose_nans(const graph::Graph& graph);

/// Of each node, whether its floats are no signaling NaNs.
std::vector<bool> quiet_floats(const graph::Graph& graph);

/// Whether a host computes in a mode of its own for some nodes.
bool changes_rounding(const graph::Graph& graph);

/// What a thread must have for the function of the graph, which declines others.
struct Needs {
  uint32_t varyings = 0;               ///< after those that were read before
  bool units[2] = {};                  ///< TMUs with no results, and no lookup begun
  uint32_t rows_in = 0, rows_out = 0;  ///< of the VPM
};
Needs needs_of(const graph::Graph& graph);

}  // namespace v3d::qpu::jit
