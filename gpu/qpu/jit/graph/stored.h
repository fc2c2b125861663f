/// What is stored where code of a graph is left, at a guard or the finish, for emitters of any host.
#pragma once

#include <functional>
#include <vector>

#include "gpu/qpu/graph/graph.h"
#include "gpu/qpu/jit/graph/registers.h"

namespace v3d::qpu::jit {

/// A value that others find in the thread, and where it is.
struct Stored {
  const graph::Node* node;  ///< kStore or what follows it
  Place place;
};

/// Of a node that leaves().
/// @param places  of all values, as they are there
std::vector<Stored> stored_at(const graph::Graph& graph, const graph::Node& node, const Places& places);

/// Registers of the thread that values still stand in, and into which others come, are copied.
/// @param copy  of what is given: to a new slot, which it returns
void copy_replaced(const graph::Graph& graph, std::vector<Stored>& values,
                   const std::function<int16_t(const Stored& what)>& copy);

}  // namespace v3d::qpu::jit
