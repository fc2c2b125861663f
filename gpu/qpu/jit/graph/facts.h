/// What emitters of all hosts ask about a graph and its nodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "gpu/qpu/graph/graph.h"

namespace v3d::qpu::jit {

/// Of each node, whether nobody sees the sign of its zeros: only sums and products take it, whose own zeros
/// are positive whatever those of their operands are.
std::vector<bool> loose_zeros(const graph::Graph& graph);

/// Whether a host computes in a mode of its own for some nodes.
bool changes_rounding(const graph::Graph& graph);

/// How many varyings the thread must have after those that were read before.
uint32_t varyings_of(const graph::Graph& graph);

/// Of a `write_port`, the place of T, R or B of a lookup, with which a uniform comes: offsets of the lookup
/// in the thread, and of the value and the flag that it is there in the lookup. Empty: it is none of these.
struct TmuParameter {
  size_t lookup, value, flag;
};
std::optional<TmuParameter> tmu_parameter_of(const graph::Node& node);
/// Whether a `write_port` takes a uniform from the stream itself: any parameter of a lookup.
bool reads_uniform(const graph::Node& node);

}  // namespace v3d::qpu::jit
