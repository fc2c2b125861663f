#include "gpu/qpu/graph/graph.h"

#include <algorithm>
#include <utility>

#include "gpu/qpu/graph/evaluate.h"

namespace v3d::qpu::graph {
namespace {

constexpr uint32_t kAllOnes = ~0u, kLowHalf = 0xffff, kHalfBits = 16;

size_t hash_of(const Node& node) {
  const uint64_t h = (node.head() * 0x9e3779b97f4a7c15u ^ node.immediate) * 0xff51afd7ed558ccdu;
  return static_cast<size_t>(h ^ h >> 32);
}

bool is_source(Op op) { return info(op).operands == 0; }

}  // namespace

Id Graph::append(const Node& node) {
  if (!is_full()) nodes_.push_back(node);
  return static_cast<Id>(nodes_.size() - 1);
}

Id Graph::find_or_append(const Node& node) {
  if (in_table_ * 2 >= table_.size()) {  // to twice the room, or the first
    std::vector<Id> old =
        std::exchange(table_, std::vector<Id>(std::max<size_t>(256, table_.size() * 2), kNoNode));
    for (const Id id : old) {
      if (id == kNoNode) continue;
      size_t at = hash_of(nodes_[id]) & (table_.size() - 1);
      while (table_[at] != kNoNode) at = (at + 1) & (table_.size() - 1);
      table_[at] = id;
    }
  }
  size_t at = hash_of(node) & (table_.size() - 1);
  for (; table_[at] != kNoNode; at = (at + 1) & (table_.size() - 1))
    if (nodes_[table_[at]] == node) return table_[at];
  if (!is_full()) {
    table_[at] = static_cast<Id>(nodes_.size());
    ++in_table_;
  }
  return append(node);
}

/// Equal nodes that come are others.
void Graph::forget_from(Id first) {
  const std::vector<Id> old = std::exchange(table_, std::vector<Id>(table_.size(), kNoNode));
  in_table_ = 0;
  for (const Id id : old) {
    if (id == kNoNode || id >= first) continue;
    size_t at = hash_of(nodes_[id]) & (table_.size() - 1);
    while (table_[at] != kNoNode) at = (at + 1) & (table_.size() - 1);
    table_[at] = id;
    ++in_table_;
  }
}

Id Graph::folded(const Node& node) {
  uint32_t values[3] = {};
  for (int n = 0; n < info(node.op).operands; ++n) {
    if (!is_constant(node.operands[n])) return kNoNode;
    values[n] = nodes_[node.operands[n]].immediate;
  }
  return constant(evaluate(node, values[0], values[1], values[2]));
}

/// Of two operands, the second one a constant if any is and they may change places.
Id Graph::simpler_words(const Node& node) {
  const Id a = node.operands[0], b = node.operands[1];
  switch (node.op) {
    case Op::kShr:
      if (is_constant(b, kHalfBits))
        if (const Id id = high_half(a); id != kNoNode) return id;
      [[fallthrough]];
    case Op::kAdd:
    case Op::kShl:
    case Op::kSar:
    case Op::kSub:
    case Op::kOr:
    case Op::kXor:
    case Op::kSubBytes:
    case Op::kAddHalves:
      if (is_constant(b, 0)) return a;
      if (a == b && (node.op == Op::kSub || node.op == Op::kXor || node.op == Op::kSubBytes))
        return constant(0);
      if (a == b && node.op == Op::kOr) return a;
      if (node.op == Op::kOr && is_constant(b, kAllOnes)) return b;
      // ~~v, as masks are inverted.
      if (node.op == Op::kXor && is_constant(b) && nodes_[a].op == Op::kXor &&
          is_constant(nodes_[a].operands[1]))
        return make({.op = Op::kXor,
                     .operands = {nodes_[a].operands[0],
                                  constant(nodes_[b].immediate ^ nodes_[nodes_[a].operands[1]].immediate)}});
      return kNoNode;
    case Op::kAnd:
      if (is_constant(b, 0) || a == b) return b;
      if (is_constant(b, kLowHalf)) return low_half(a);
      return is_constant(b, kAllOnes) ? a : kNoNode;
    case Op::kMul:
      if (is_constant(b, 0)) return b;
      return is_constant(b, 1) ? a : kNoNode;
    case Op::kMin:
    case Op::kMax:
    case Op::kMinUnsigned:
    case Op::kMinBytes:
    case Op::kMaxBytes:
      return a == b ? a : kNoNode;
    case Op::kEqual:
      return a == b ? constant(kAllOnes) : equal_of_choice(a, b);
    case Op::kAbove:
    case Op::kAboveUnsigned:
      return a == b ? constant(0) : kNoNode;
    default:
      return kNoNode;
  }
}

/// Whether one of two constants was chosen that is the one of a third: the mask, as compilers keep masks in
/// words.
Id Graph::equal_of_choice(Id choice, Id b) {
  const Node of = nodes_[choice];
  if (of.op != Op::kChoose || !is_constant(b) || !is_constant(of.operands[1]) || !is_constant(of.operands[2]))
    return kNoNode;
  const uint32_t word = nodes_[b].immediate;
  const bool first = is_constant(of.operands[1], word), second = is_constant(of.operands[2], word);
  if (first == second) return constant(first ? kAllOnes : 0);
  if (first) return of.operands[0];
  return make({.op = Op::kXor, .operands = {of.operands[0], constant(kAllOnes)}});
}

/// v & 0xffff where that is a node without the other half: halves are joined for a register and taken apart.
Id Graph::low_half(Id v) {
  const Node node = nodes_[v];
  switch (node.op) {
    case Op::kHalfOf:
      return v;
    case Op::kConst:
      return constant(node.immediate & kLowHalf);
    case Op::kShl:
      return is_constant(node.operands[1], kHalfBits) ? constant(0) : kNoNode;
    case Op::kOr:
      return joined(low_half(node.operands[0]), low_half(node.operands[1]));
    default:
      return kNoNode;
  }
}

/// The same of v >> 16.
Id Graph::high_half(Id v) {
  const Node node = nodes_[v];
  switch (node.op) {
    case Op::kHalfOf:
      return constant(0);
    case Op::kConst:
      return constant(node.immediate >> kHalfBits);
    case Op::kShl:
      return is_constant(node.operands[1], kHalfBits) ? low_half(node.operands[0]) : kNoNode;
    case Op::kOr:
      return joined(high_half(node.operands[0]), high_half(node.operands[1]));
    default:
      return kNoNode;
  }
}

Id Graph::joined(Id a, Id b) {
  if (a == kNoNode || b == kNoNode) return kNoNode;
  return make({.op = Op::kOr, .operands = {a, b, kNoNode}});
}

/// Of one operand.
Id Graph::simpler_conversion(const Node& node) {
  const Id a = node.operands[0];
  const Node of = nodes_[a];
  if (node.op == Op::kFloatOfHalf) {
    if (of.op == Op::kHalfOf)
      return make({.op = Op::kRoundToHalf, .operands = {of.operands[0], kNoNode, kNoNode}});
    if (of.op == Op::kAnd && is_constant(of.operands[1], kLowHalf))
      return make({.op = Op::kFloatOfHalf, .operands = {of.operands[0], kNoNode, kNoNode}});
    if (const Id low = low_half(a); low != kNoNode && low != a)
      return make({.op = Op::kFloatOfHalf, .operands = {low, kNoNode, kNoNode}});
  }
  return kNoNode;
}

Id Graph::simpler(const Node& node) {
  if (is_source(node.op) || has(node.op, kReads) || has(node.op, kMixesLanes)) return kNoNode;
  if (const Id id = folded(node); id != kNoNode) return id;
  if (node.op == Op::kChoose) {
    const auto [mask, a, b] = node.operands;
    if (a == b) return a;
    if (is_constant(mask)) return nodes_[mask].immediate != 0 ? a : b;
    // Of an inverted mask the other way round.
    if (nodes_[mask].op == Op::kXor && is_constant(nodes_[mask].operands[1], kAllOnes))
      return make({.op = Op::kChoose, .operands = {nodes_[mask].operands[0], b, a}});
    return kNoNode;
  }
  return info(node.op).operands == 1 ? simpler_conversion(node) : simpler_words(node);
}

Id Graph::make(Node node) {
  if (has(node.op, kStays)) {
    const Id id = append(node);
    if (node.op == Op::kWhen) first_of_region_ = id;
    if (node.op == Op::kResume) forget_from(std::exchange(first_of_region_, kNoNode));
    return id;
  }
  node.step = 0;
  if (has(node.op, kCommutes)) {
    Id &a = node.operands[0], &b = node.operands[1];
    if (is_constant(a) ? !is_constant(b) : !is_constant(b) && a > b) std::swap(a, b);
  }
  if (!has(node.op, kCalls))
    if (const Id id = simpler(node); id != kNoNode) return id;
  return find_or_append(node);
}

namespace {

Node with_operands(Node node, const std::vector<Id>& renamed) {
  for (int n = 0; n < info(node.op).operands; ++n) node.operands[n] = renamed[node.operands[n]];
  return node;
}

}  // namespace

Graph simplified(const Graph& graph) {
  Graph result;
  std::vector<Id> renamed;
  renamed.reserve(graph.nodes().size());
  for (const Node& node : graph.nodes()) renamed.push_back(result.make(with_operands(node, renamed)));
  return result;
}

namespace {

/// Finds what lives, where what is kept lives if its number is wanted, and tells which ones are.
class Liveness {
 public:
  explicit Liveness(const Graph& graph) : nodes_(graph.nodes()) {
    // In a region that is repeated, what is kept at its end may be wanted at its begin.
    do {
      is_more_wanted_ = false;
      walk();
    } while (is_more_wanted_);
  }
  bool lives(size_t n) const { return lives_[n]; }

 private:
  void walk() {
    lives_.assign(nodes_.size(), false);
    size_t resume = 0;       // of the region under way
    bool is_region = false;  // something in it lives
    for (size_t n = nodes_.size(); n-- > 0;) {
      const Node& node = nodes_[n];
      if (node.op == Op::kResume) {
        resume = n;
        is_region = false;
        continue;
      }
      if (node.op == Op::kKeep)
        lives_[n] = is_wanted(node.immediate);
      else if (node.op == Op::kWhen)
        lives_[n] = lives_[resume] = is_region;
      else
        lives_[n] = lives_[n] || has(node.op, kStays);
      if (!lives_[n]) continue;
      is_region = true;
      if (node.op == Op::kKept) want(node.immediate);
      for (int i = 0; i < info(node.op).operands; ++i) lives_[node.operands[i]] = true;
    }
  }
  bool is_wanted(uint32_t number) const { return number < is_wanted_.size() && is_wanted_[number]; }
  void want(uint32_t number) {
    if (is_wanted(number)) return;
    is_wanted_.resize(std::max<size_t>(is_wanted_.size(), number + 1));
    is_wanted_[number] = is_more_wanted_ = true;
  }

  const std::vector<Node>& nodes_;
  std::vector<bool> lives_, is_wanted_;
  bool is_more_wanted_ = false;
};

}  // namespace

Graph without_dead(const Graph& graph) {
  const std::vector<Node>& nodes = graph.nodes();
  const Liveness liveness(graph);
  Graph result;
  result.reserve(nodes.size());
  std::vector<Id> renamed(nodes.size(), kNoNode);
  for (size_t n = 0; n < nodes.size(); ++n)
    if (liveness.lives(n)) renamed[n] = result.append(with_operands(nodes[n], renamed));
  return result;
}

Graph by_rounding(const Graph& graph) {
  const std::vector<Node>& nodes = graph.nodes();
  Graph result;
  result.reserve(nodes.size());
  std::vector<Id> renamed(nodes.size(), kNoNode), waiting;
  const auto append = [&](size_t n) { renamed[n] = result.append(with_operands(nodes[n], renamed)); };
  const auto waits = [&](size_t n) {
    const auto* const operands = nodes[n].operands;
    return std::any_of(operands, operands + info(nodes[n].op).operands,
                       [&](Id id) { return renamed[id] == kNoNode; });
  };
  for (size_t n = 0; n < nodes.size(); ++n) {
    bool needs_waiting = waits(n);
    // What is stored where code is left is there before.
    for (size_t of = n + 1; leaves(nodes[n].op) && of < nodes.size() && is_stored(nodes[of].op); ++of)
      needs_waiting = needs_waiting || waits(of);
    const bool may_wait = !has(nodes[n].op, kStays) && !has(nodes[n].op, kTowardZero);
    if (may_wait && (needs_waiting || has(nodes[n].op, kToNearest))) {
      waiting.push_back(static_cast<Id>(n));
      continue;
    }
    if (needs_waiting || nodes[n].op == Op::kWhen || nodes[n].op == Op::kResume) {
      for (const Id id : waiting) append(id);
      waiting.clear();
    }
    append(n);
  }
  return result;
}

}  // namespace v3d::qpu::graph
