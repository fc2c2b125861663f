#include "gpu/qpu/jit/graph/stored.h"

#include <algorithm>
#include <cstdint>

namespace v3d::qpu::jit {

using graph::Node;
using graph::Op;

std::vector<Stored> stored_at(const graph::Graph& graph, const Node& node, const Places& places) {
  std::vector<Stored> values;
  const Node* const end = graph.nodes().data() + graph.nodes().size();
  for (const Node* n = &node + 1; n != end && graph::is_stored(n->op); ++n)
    values.push_back({n, places[n->operands[0]]});
  return values;
}

void copy_replaced(const graph::Graph& graph, std::vector<Stored>& values,
                   const std::function<int16_t(const Stored& what)>& copy) {
  const auto is_replaced = [&](uint32_t offset) {
    return std::any_of(values.begin(), values.end(), [&](const Stored& what) {
      return what.node->op == Op::kStore && what.node->immediate == offset;
    });
  };
  for (Stored& what : values) {
    const Node& value = graph[what.node->operands[0]];
    const bool stands_there = what.place.unit < 0 && what.place.slot < 0 && value.op == Op::kLoad;
    if (stands_there && is_replaced(value.immediate)) what.place.slot = copy(what);
  }
}

}  // namespace v3d::qpu::jit
