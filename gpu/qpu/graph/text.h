/// The text of a graph: a line for each node, as docs/graph.md shows it.
#pragma once

#include <string>
#include <string_view>

#include "gpu/qpu/graph/graph.h"

namespace v3d::qpu::graph {

/// "%0 = load 64": the node's number, operation, operands and immediate, and of those that may fail the
/// instruction ("@3").
std::string to_text(const Graph& graph);

struct Parsed {
  Graph graph;
  std::string error;  ///< empty, or "line 3: what is wrong"
};
/// Nodes as they stand; numbers may be any names. Empty lines and what follows "#" are nothing.
Parsed parse(std::string_view text);

}  // namespace v3d::qpu::graph
