#include "gpu/qpu/graph/alone.h"

#include <cstddef>
#include <cstdint>
#include <set>

#include "gpu/qpu/run/batch_code.h"

namespace v3d::qpu::graph {
namespace {

bool loads(Op op) {
  return op == Op::kLoadMemory || op == Op::kLoadWord || op == Op::kAtomic || op == Op::kLookup ||
         has(op, kReads);
}
bool decides(Op op) { return op == Op::kLead || op == Op::kExpect || op == Op::kWhen || op == Op::kAgain; }

class Parts {
 public:
  explicit Parts(const std::vector<const Graph*>& parts) : parts_(parts), stored_before_(parts.size()) {}

  bool go_alone() {
    // Each pass adds a slot, or a part, or is the last.
    for (is_new_ = true; is_new_;) {
      is_new_ = false;
      for (size_t n = 0; n < parts_.size(); ++n)
        if (!looks_at_own_alone(n) || !loads_first(n)) return false;
    }
    return true;
  }

 private:
  /// What comes from memory decides nothing; slots that have it are noted.
  bool looks_at_own_alone(size_t part) {
    const std::vector<Node>& nodes = parts_[part]->nodes();
    std::vector<bool> is_loaded(nodes.size());
    for (size_t n = 0; n < nodes.size(); ++n) {
      const Node& node = nodes[n];
      bool any = loads(node.op) || (node.op == Op::kLoad && loaded_slots_.contains(node.immediate));
      for (int i = 0; i < info(node.op).operands; ++i) any |= is_loaded[node.operands[i]];
      is_loaded[n] = any;
      if (!any) continue;
      if (decides(node.op)) return false;
      if (node.op == Op::kStore) is_new_ |= loaded_slots_.insert(node.immediate).second;
    }
    return true;
  }
  bool loads_first(size_t part) {
    bool has_stored = stored_before_[part];
    for (const Node& node : parts_[part]->nodes()) {
      if (has_stored && loads(node.op)) return false;
      has_stored |= node.op == Op::kStoreMemory || node.op == Op::kAtomic;
      if (node.op != Op::kLead || !has_stored) continue;
      for (const uint32_t to : {node.immediate & 0xffff, node.immediate >> 16}) {
        const uint32_t number = to & ~(kStretchWaits | kStretchAgain);
        if ((to & kStretchEnds) != 0 || stored_before_[number]) continue;
        stored_before_[number] = is_new_ = true;
      }
    }
    return true;
  }

  const std::vector<const Graph*>& parts_;
  std::vector<bool> stored_before_;
  std::set<uint32_t> loaded_slots_;
  bool is_new_ = false;
};

}  // namespace

bool go_alone(const std::vector<const Graph*>& parts) { return Parts(parts).go_alone(); }

}  // namespace v3d::qpu::graph
