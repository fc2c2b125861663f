#include "gpu/qpu/graph/interleave.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace v3d::qpu::graph {
namespace {

/// Shorter ones overlap anyway.
constexpr size_t kLong = 8;

bool stands(Op op) { return has(op, kStays) && op != Op::kLoadWord && op != Op::kLoadMemory; }

class Interleaver {
 public:
  Interleaver(const Graph& graph, size_t count)
      : nodes_(graph.nodes()), count_(count), users_(nodes_.size(), 0), renamed_(nodes_.size(), kNoNode) {
    for (const Node& node : nodes_)
      for (int n = 0; n < info(node.op).operands; ++n) ++users_[node.operands[n]];
  }

  Graph run() {
    for (size_t n = 0; n < nodes_.size();) {
      size_t end = n;
      while (end < nodes_.size() && !stands(nodes_[end].op)) ++end;
      order(n, end);
      for (; n < end; ++n) emit(static_cast<Id>(n));
      if (n < nodes_.size()) emit(static_cast<Id>(n++));
    }
    return std::move(made_);
  }

 private:
  using Chain = std::vector<Id>;

  /// The sum of which this one is the only one to go on. @return  none
  Id sum_before(Id id, size_t first) const {
    for (const Id of : {nodes_[id].operands[0], nodes_[id].operands[1]})
      if (of >= first && nodes_[of].op == Op::kFloatSum && users_[of] == 1) return of;
    return kNoNode;
  }

  /// Those that end in [first, end), in the order of their begins.
  std::vector<Chain> chains(size_t first, size_t end) const {
    std::vector<bool> goes_on(end - first, false);
    std::vector<Chain> found;
    for (size_t n = end; n-- > first;) {
      if (nodes_[n].op != Op::kFloatSum || goes_on[n - first]) continue;
      Chain chain;
      for (auto id = static_cast<Id>(n); id != kNoNode; id = sum_before(id, first)) {
        chain.push_back(id);
        goes_on[id - first] = true;
      }
      std::reverse(chain.begin(), chain.end());
      if (chain.size() >= kLong) found.push_back(std::move(chain));
    }
    std::sort(found.begin(), found.end(), [](const Chain& a, const Chain& b) { return a[0] < b[0]; });
    return found;
  }

  void order(size_t first, size_t end) {
    const std::vector<Chain> found = chains(first, end);
    if (found.size() < 2) return;
    // Loads for what comes later are spread among them.
    std::vector<Id> loads;
    for (size_t n = first; n < end; ++n)
      if (nodes_[n].op == Op::kLoadMemory) loads.push_back(static_cast<Id>(n));
    size_t links = 0, done = 0;
    for (const Chain& chain : found) links += chain.size();
    for (size_t begin = 0; begin < found.size(); begin += count_) {
      const size_t behind = std::min(begin + count_, found.size());
      size_t longest = 0;
      for (size_t c = begin; c < behind; ++c) longest = std::max(longest, found[c].size());
      for (size_t link = 0; link < longest; ++link)
        for (size_t c = begin; c < behind; ++c)
          if (link < found[c].size()) {
            emit(found[c][link]);
            if (size_t to = ++done * loads.size() / links; to != 0) emit(loads[to - 1]);
          }
    }
  }

  /// The node, behind those that it needs.
  void emit(Id id) {
    std::vector<Id> open = {id};
    while (!open.empty()) {
      const Id next = open.back();
      if (renamed_[next] != kNoNode) {
        open.pop_back();
        continue;
      }
      Node node = nodes_[next];
      const size_t before = open.size();
      for (int n = info(node.op).operands; n-- > 0;)
        if (renamed_[node.operands[n]] == kNoNode) open.push_back(node.operands[n]);
      if (open.size() != before) continue;
      for (int n = 0; n < info(node.op).operands; ++n) node.operands[n] = renamed_[node.operands[n]];
      renamed_[next] = made_.append(node);
      open.pop_back();
    }
  }

  const std::vector<Node>& nodes_;
  const size_t count_;
  std::vector<uint32_t> users_;
  std::vector<Id> renamed_;
  Graph made_;
};

}  // namespace

Graph interleaved(const Graph& graph, size_t count) { return Interleaver(graph, count).run(); }

}  // namespace v3d::qpu::graph
