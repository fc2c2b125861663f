#include "gpu/qpu/jit/graph/facts.h"

#include <algorithm>

#include "gpu/qpu/isa/vc4.h"
#include "gpu/qpu/run/vc4_thread.h"

namespace v3d::qpu::jit {
namespace {

using graph::Node;
using graph::Op;
using vc4::Thread;
using vc4::WritePort;

constexpr uint32_t kSign = 0x80000000;

}  // namespace

std::vector<bool> loose_zeros(const graph::Graph& graph) {
  const auto& nodes = graph.nodes();
  std::vector<bool> is_loose(nodes.size(), true);
  for (size_t n = nodes.size(); n-- > 0;) {
    const Node& node = nodes[n];
    for (int i = 0; i < graph::info(node.op).operands; ++i) {
      const bool changes_sign = node.op == Op::kXor && graph.is_constant(node.operands[1], kSign);
      const bool passes_on = changes_sign || (node.op == Op::kChoose && i != 0);
      const bool stays_loose = node.op == Op::kSum || node.op == Op::kProduct || (passes_on && is_loose[n]);
      if (!stays_loose) is_loose[node.operands[i]] = false;
    }
  }
  return is_loose;
}

bool changes_rounding(const graph::Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const Node& node) {
    return graph::has(node.op, graph::kTowardZero) || graph::has(node.op, graph::kToNearest);
  });
}

uint32_t varyings_of(const graph::Graph& graph) {
  uint32_t varyings = 0;
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::kVarying) varyings = std::max(varyings, node.immediate / 2 + 1);
    if (node.op == Op::kEndVaryings) varyings = std::max(varyings, node.immediate);
  }
  return varyings;
}

std::optional<TmuParameter> tmu_parameter_of(const Node& node) {
  const auto port = static_cast<WritePort>(node.immediate);
  const auto of = [&](size_t value, size_t flag) -> TmuParameter {
    const size_t unit = port >= WritePort::kTmu1S;
    return {offsetof(Thread, pending.tmu) + unit * sizeof(Thread::Pending::Unit) +
                offsetof(Thread::Pending::Unit, lookup),
            value, flag};
  };
  switch (port) {
    case WritePort::kTmu0T:
    case WritePort::kTmu1T:
      return of(offsetof(vc4::Lookup, t), offsetof(vc4::Lookup, has_t));
    case WritePort::kTmu0R:
    case WritePort::kTmu1R:
      return of(offsetof(vc4::Lookup, r), offsetof(vc4::Lookup, has_r));
    case WritePort::kTmu0B:
    case WritePort::kTmu1B:
      return of(offsetof(vc4::Lookup, b), offsetof(vc4::Lookup, has_b));
    default:
      return {};
  }
}

bool reads_uniform(const Node& node) {
  return node.immediate >= static_cast<uint32_t>(WritePort::kTmu0S) &&
         node.immediate <= static_cast<uint32_t>(WritePort::kTmu1B);
}

}  // namespace v3d::qpu::jit
