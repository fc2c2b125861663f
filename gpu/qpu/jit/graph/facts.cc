#include "gpu/qpu/jit/graph/facts.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

namespace v3d::qpu::jit {
namespace {

using graph::Node;
using graph::Op;

constexpr uint32_t kSign = 0x80000000, kQuietNan = 0x7fc00000;

/// What an operand is taken for: NaNs of floats differ in other bits than those of halves.
constexpr uint8_t kStrict = 0, kAsFloat = 1, kAsHalf = 2;

/// How a node takes an operand. @param result  how others take the node
uint8_t loose_operand(const graph::Graph& graph, const Node& node, int operand, uint8_t result) {
  const bool is_float = (result & kAsFloat) != 0;
  const auto constant = [&]() -> const Node* {
    return graph.is_constant(node.operands[1]) ? &graph[node.operands[1]] : nullptr;
  };
  switch (node.op) {
    case Op::kEqualFloats:
    case Op::kBelowFloats:
    case Op::kAtMostFloats:
      return kAsFloat;
    case Op::kMaxFloats:
    case Op::kMinFloats:
      return operand == 0 || is_float ? kAsFloat : kStrict;  // the first one is no NaN where it is the result
    case Op::kFloatSum:
    case Op::kFloatDifference:
    case Op::kFloatProduct:
    case Op::kFloatQuotient:
    case Op::kRound:
    case Op::kRoundToHalf:
    case Op::kOr:  // a NaN with more bits is one
      return is_float ? kAsFloat : kStrict;
    case Op::kAnd:
      return is_float && constant() && (constant()->immediate & kQuietNan) == kQuietNan ? kAsFloat : kStrict;
    case Op::kXor:
      return is_float && constant() && (constant()->immediate & ~kSign) == 0 ? kAsFloat : kStrict;
    case Op::kHalfOf:
      return (result & kAsHalf) != 0 ? kAsFloat : kStrict;
    case Op::kFloatOfHalf:
      return is_float ? kAsHalf : kStrict;
    case Op::kKeep:
      return result;
    case Op::kChoose:
      return operand == 0 ? kStrict : result;
    default:
      return kStrict;
  }
}

}  // namespace

std::vector<bool> loose_nans(const graph::Graph& graph) {
  const auto& nodes = graph.nodes();
  std::vector<uint8_t> loose(nodes.size(), kAsFloat | kAsHalf);
  std::map<uint32_t, uint8_t> kept;  // by number; strict where a region is repeated
  std::set<uint32_t> was_kept;
  for (const Node& node : nodes) {
    if (node.op == Op::kKept) was_kept.insert(node.immediate);
    if (node.op == Op::kKeep && was_kept.contains(node.immediate)) kept[node.immediate] = kStrict;
  }
  for (size_t n = nodes.size(); n-- > 0;) {
    if (nodes[n].op == Op::kKept) kept.try_emplace(nodes[n].immediate, loose[n]).first->second &= loose[n];
    if (nodes[n].op == Op::kKeep) loose[n] = kept.try_emplace(nodes[n].immediate, loose[n]).first->second;
    for (int i = 0; i < graph::info(nodes[n].op).operands; ++i)
      loose[nodes[n].operands[i]] &= loose_operand(graph, nodes[n], i, loose[n]);
  }
  std::vector<bool> is_loose(nodes.size());
  for (size_t n = 0; n < nodes.size(); ++n) is_loose[n] = (loose[n] & kAsFloat) != 0;
  return is_loose;
}

std::vector<bool> quiet_floats(const graph::Graph& graph) {
  const auto& nodes = graph.nodes();
  std::vector<bool> is_quiet(nodes.size(), false);
  for (size_t n = 0; n < nodes.size(); ++n) switch (nodes[n].op) {
      case Op::kConst:
        is_quiet[n] = (nodes[n].immediate & ~kSign) <= 0x7f800000 || (nodes[n].immediate & 0x400000) != 0;
        break;
      case Op::kMaxFloats:
      case Op::kMinFloats:
        is_quiet[n] = is_quiet[nodes[n].operands[1]];
        break;
      case Op::kPlane:
      case Op::kSrgbValue:
      case Op::kFloatSum:
      case Op::kFloatDifference:
      case Op::kFloatProduct:
      case Op::kFloatQuotient:
      case Op::kRound:
      case Op::kNearestFloat:
      case Op::kFloatOfHalf:
      case Op::kRoundToHalf:
        is_quiet[n] = true;
        break;
      default:
        break;
    }
  return is_quiet;
}

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
