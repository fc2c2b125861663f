#include "gpu/qpu/jit/graph/facts.h"

#include <algorithm>

namespace v3d::qpu::jit {
namespace {

using graph::Node;
using graph::Op;

constexpr uint32_t kSign = 0x80000000;

}  // namespace

std::vector<bool> loose_zeros(const graph::Graph& graph) {
  const auto& nodes = graph.nodes();
  std::vector<bool> is_loose(nodes.size(), true);
  for (size_t n = nodes.size(); n-- > 0;) {
    const Node& node = nodes[n];
    const bool with_constant = graph::info(node.op).operands == 2 && graph.is_constant(node.operands[1]);
    const uint32_t constant = with_constant ? graph[node.operands[1]].immediate : 0;
    bool takes_any = node.op == Op::kSum || node.op == Op::kProduct || node.op == Op::kIntegerOf;
    if (with_constant) {
      takes_any |= node.op == Op::kAnd && (constant & kSign) == 0;
      takes_any |= node.op == Op::kMax && constant == 0;
    }
    for (int i = 0; i < graph::info(node.op).operands; ++i) {
      const bool changes_sign = with_constant && node.op == Op::kXor && constant == kSign;
      const bool is_limited =
          with_constant && node.op == Op::kMin && (constant & kSign) == 0 && constant != 0;
      const bool passes_on = changes_sign || is_limited || (node.op == Op::kChoose && i != 0);
      if (!takes_any && !(passes_on && is_loose[n])) is_loose[node.operands[i]] = false;
    }
  }
  return is_loose;
}

bool changes_rounding(const graph::Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const Node& node) {
    return graph::has(node.op, graph::kTowardZero) || graph::has(node.op, graph::kToNearest);
  });
}

Needs needs_of(const graph::Graph& graph) {
  Needs needs;
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::kVarying) needs.varyings = std::max(needs.varyings, node.immediate / 2 + 1);
    if (graph::leaves(node.op)) needs.varyings = std::max(needs.varyings, node.immediate & 0xffff);
    if (node.op == Op::kLookup) needs.units[node.immediate & 1] = true;
    if (node.op == Op::kLoadRow) needs.rows_in = std::max(needs.rows_in, node.immediate + 1);
    if (node.op == Op::kStoreRow) needs.rows_out = std::max(needs.rows_out, node.immediate + 1);
  }
  return needs;
}

}  // namespace v3d::qpu::jit
