#include "gpu/qpu/jit/graph/registers.h"

namespace v3d::qpu::jit {

Uses::Uses(const graph::Graph& graph) {
  const auto& nodes = graph.nodes();
  begin_.assign(nodes.size() + 1, 0);
  const auto for_each = [&](auto fn) {
    for (size_t n = 0; n < nodes.size(); ++n)
      for (int i = 0; i < graph::info(nodes[n].op).operands; ++i) fn(nodes[n].operands[i], n);
  };
  for_each([&](graph::Id id, size_t) { ++begin_[id + 1u]; });
  for (size_t n = 0; n < nodes.size(); ++n) begin_[n + 1] += begin_[n];
  positions_.resize(begin_.back());
  at_.assign(begin_.begin(), begin_.end() - 1);
  for_each([&](graph::Id id, size_t n) { positions_[at_[id]++] = static_cast<uint32_t>(n); });
  at_.assign(begin_.begin(), begin_.end() - 1);
}

}  // namespace v3d::qpu::jit
