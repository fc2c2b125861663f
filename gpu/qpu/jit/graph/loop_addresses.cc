#include "gpu/qpu/jit/graph/loop_addresses.h"

#include <algorithm>
#include <cstddef>

#include "gpu/qpu/graph/memory_accesses.h"
#include "gpu/qpu/run/batch_code.h"

namespace v3d::qpu::jit {

using graph::kNoNode;

namespace {

constexpr uint32_t kWords = ~3u;
/// Bits of a register.
constexpr size_t kMostLines = 16;

}  // namespace

bool leads_to_itself(const graph::Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const graph::Node& node) {
    return node.op == graph::Op::kLead && ((node.immediate | node.immediate >> 16) & kStretchAgain) != 0;
  });
}

Lead lead_of(const graph::Graph& graph, const graph::Node& node) {
  const Lead lead = {node.immediate & 0xffff, node.immediate >> 16};
  const graph::Id mask = node.operands[0];
  if (!graph.is_constant(mask)) return lead;
  const uint32_t known = graph.is_constant(mask, 0) ? lead.none : lead.some;
  return {known, known};
}

namespace {

/// What the address is made of (MemoryAccesses::access).
graph::Id base_of(const graph::Graph& graph, graph::Id address) {
  for (const graph::Op op : {graph::Op::kAdd, graph::Op::kAnd})
    if (graph[address].op == op && graph.is_constant(graph[address].operands[1]))
      address = graph[address].operands[0];
  return address;
}

}  // namespace

size_t loads_of_one_address(const graph::Graph& graph, const graph::Node& load, size_t most) {
  const auto left = static_cast<size_t>(graph.nodes().data() + graph.nodes().size() - &load);
  const graph::Node* const end = &load + std::min(left, most);
  const graph::Node* const other = std::find_if(&load, end, [&](const graph::Node& node) {
    return node.op != load.op || node.operands[0] != load.operands[0] || node.operands[1] != load.operands[1];
  });
  return static_cast<size_t>(other - &load);
}

std::map<graph::Id, graph::Id> steps_of_loads(const graph::Graph& graph) {
  std::map<graph::Id, graph::Id> steps;
  if (!leads_to_itself(graph)) return steps;
  std::set<graph::Id> bases;
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    const graph::Node& node = graph.nodes()[n];
    if (node.op != graph::Op::kLoadMemory) continue;
    const graph::Id base = base_of(graph, node.operands[0]);
    bases.insert(base);
    const graph::Node& sum = graph[base];
    if (sum.op != graph::Op::kAdd) continue;
    for (const int i : {0, 1})
      if (graph[sum.operands[i]].op == graph::Op::kUniformWord && bases.contains(sum.operands[1 - i]))
        steps[static_cast<graph::Id>(n)] = sum.operands[i];
  }
  return steps;
}

LoopAddresses::LoopAddresses(const graph::Graph& graph) : graph_(graph) {
  if (!leads_to_itself(graph)) return;
  find_sums();
  find_addresses();
}

LoopAddresses::Id LoopAddresses::goes_on(Id sum) const {
  const Node& node = graph_[sum];
  const bool second_is_added =
      stands_as_word(graph_[node.operands[1]].op) && !graph_.is_constant(node.operands[0]);
  return node.operands[second_is_added ? 0 : 1];
}

bool LoopAddresses::is_same_everywhere(Id id) const {
  return graph_[id].op == Op::kUniformWord || graph_[id].op == Op::kConst;
}

void LoopAddresses::find_sums() {
  const auto& nodes = graph_.nodes();
  is_word_sum_.resize(nodes.size());
  roots_.resize(nodes.size(), kNoNode);
  users_.resize(nodes.size());
  for (size_t n = 0; n < nodes.size(); ++n) {
    const Node& node = nodes[n];
    const auto id = static_cast<Id>(n);
    for (int i = 0; i < graph::info(node.op).operands; ++i) users_[node.operands[i]].push_back(id);
    if (node.op == Op::kLoad) {
      is_word_sum_[n] = true;
      roots_[n] = id;
    }
    if (node.op != Op::kAdd) continue;
    for (const int i : {0, 1}) {
      const Id of = node.operands[i], added = node.operands[1 - i];
      is_word_sum_[n] = is_word_sum_[n] || (is_word_sum_[of] && stands_as_word(graph_[added].op));
      if (roots_[of] != kNoNode && is_same_everywhere(added)) roots_[n] = roots_[of];
    }
  }
}

/// As MemoryAccesses makes them of a sum.
void LoopAddresses::find_addresses() {
  const auto& nodes = graph_.nodes();
  for (size_t n = 0; n < nodes.size(); ++n) {
    const Node& node = nodes[n];
    if (node.op != Op::kAdd || !graph_.is_constant(node.operands[1], graph::kHalfTheSpace)) continue;
    const Id step = node.operands[0];
    if (graph_[step].op != Op::kAnd || !graph_.is_constant(graph_[step].operands[1], kWords)) continue;
    if (users_[step].size() != 1) continue;
    const auto address = static_cast<Id>(n);
    const Id sum = graph_[step].operands[0];
    if (!take_word(address, step, sum)) take_line(address, step, sum);
  }
}

bool LoopAddresses::take_word(Id address, Id step, Id sum) {
  const bool are_words = std::all_of(users_[address].begin(), users_[address].end(),
                                     [&](Id user) { return graph_[user].op == Op::kLoadWord; });
  if (!is_word_sum_[sum] || !are_words) return false;
  words_[address] = sum;
  steps_to_words_.insert({address, step});
  return true;
}

bool LoopAddresses::take_line(Id address, Id step, Id sum) {
  if (roots_[sum] == kNoNode || users_[address].size() != 1) return false;
  const Node& user = graph_[users_[address][0]];
  if (user.op != Op::kLoadMemory || !graph_.is_constant(user.operands[1], ~0u)) return false;
  const uint32_t number = line_with(roots_[sum]);
  if (number == kMostLines) return false;
  for (Id id = sum; graph_[id].op == Op::kAdd;) {
    const Node& node = graph_[id];
    const int at = roots_[node.operands[0]] != kNoNode ? 0 : 1;
    const Id added = node.operands[1 - at];
    if (graph_.is_constant(added))
      lines_[number].constants |= graph_[added].immediate;
    else
      lines_[number].uniforms.insert(added);
    id = node.operands[at];
  }
  sums_[address] = sum;
  line_of_[sum] = number;
  steps_to_lines_.insert({address, step});
  return true;
}

uint32_t LoopAddresses::line_with(Id root) {
  const auto at =
      std::find_if(lines_.begin(), lines_.end(), [&](const Line& line) { return line.root == root; });
  const auto number = static_cast<uint32_t>(at - lines_.begin());
  if (at == lines_.end() && number < kMostLines) lines_.push_back({.root = root, .uniforms = {}});
  return number;
}

}  // namespace v3d::qpu::jit
