/// A Graph is what a stretch of a program computes and does, as nodes that refer to earlier ones:
/// docs/graph.md. A value is 16 lanes of 32 bits; of masks each lane is all ones or 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

namespace v3d::qpu::graph {

enum class Op : uint8_t {
#define V3D_GRAPH_OP(name, text, operands, immediate, traits) k##name,
#include "gpu/qpu/graph/operations.def"
};
inline constexpr int kNumOps = static_cast<int>(Op::kStoreSfu) + 1;

/// What Node::immediate is.
enum Immediate : uint8_t {
  kNoImmediate,
  kBits,    ///< a word of every lane
  kOffset,  ///< bytes from the begin of the thread
  kNumber,  ///< of a port, say
};

enum Traits : uint8_t {
  kNoTraits = 0,
  kCommutes = 1,
  kStays = 2,  ///< it is neither left out nor moved beyond another that stays
  kCalls = 4,  ///< a function of the interpreter does it
  kTowardZero = 8,
  kToNearest = 16,
  kReads = 32,       ///< memory
  kMixesLanes = 64,  ///< of equal lanes it does not give equal ones
};

struct OpInfo {
  const char* text;
  uint8_t operands;
  Immediate immediate;
  uint8_t traits;  ///< Traits
};
inline constexpr OpInfo kOpInfos[kNumOps] = {
#define V3D_GRAPH_OP(name, text, operands, immediate, traits) \
  {text, operands, immediate, static_cast<uint8_t>(traits)},
#include "gpu/qpu/graph/operations.def"
};
constexpr const OpInfo& info(Op op) { return kOpInfos[static_cast<size_t>(op)]; }
constexpr bool has(Op op, Traits trait) { return (info(op).traits & trait) != 0; }

using Id = uint16_t;
inline constexpr Id kNoNode = std::numeric_limits<Id>::max();

struct Node {
  Op op;
  uint8_t step = 0;  ///< the instruction, for those that may fail
  Id operands[3] = {kNoNode, kNoNode, kNoNode};
  uint32_t immediate = 0;
  /// All but the immediate, as one word.
  uint64_t head() const {
    uint64_t word;
    std::memcpy(&word, this, sizeof(word));
    return word;
  }
  bool operator==(const Node& other) const { return head() == other.head() && immediate == other.immediate; }
};
static_assert(std::has_unique_object_representations_v<Node> &&
              offsetof(Node, immediate) == sizeof(uint64_t));

/// Whether it is stored at the guard or the finish before it.
inline bool is_stored(Op op) { return op >= Op::kStore; }
inline bool leaves(Op op) { return op == Op::kGuard || op == Op::kFinish || op == Op::kLead; }

class Graph {
 public:
  /// A graph with more is of no use.
  static constexpr size_t kMaxNodes = 16384;

  const std::vector<Node>& nodes() const { return nodes_; }
  const Node& operator[](Id id) const { return nodes_[id]; }
  bool is_full() const { return nodes_.size() >= kMaxNodes; }

  /// As it is. Of a full graph the result is its last node.
  Id append(const Node& node);
  /// A node with this meaning: an earlier one, a constant, or one of its operands, where that is the same.
  Id make(Node node);
  Id constant(uint32_t bits) { return make({.op = Op::kConst, .immediate = bits}); }
  bool is_constant(Id id) const { return nodes_[id].op == Op::kConst; }
  bool is_constant(Id id, uint32_t bits) const { return is_constant(id) && nodes_[id].immediate == bits; }

  void reserve(size_t nodes) { nodes_.reserve(nodes); }

 private:
  Id find_or_append(const Node& node);
  /// What a node is that needs none of its own; kNoNode if it does.
  Id simpler(const Node& node);
  Id simpler_words(const Node& node);
  Id simpler_conversion(const Node& node);
  Id equal_of_choice(Id choice, Id b);
  Id low_half(Id v);
  Id high_half(Id v);
  Id joined(Id a, Id b);
  Id folded(const Node& node);
  void forget_from(Id first);

  std::vector<Node> nodes_;
  std::vector<Id> table_;  // of those that make() made, by hash
  size_t in_table_ = 0;
  Id first_of_region_ = kNoNode;  // behind Op::kWhen: what is there need not be done
};

// ---- Passes: graph to graph

/// Every node made again: equal ones are one, and what is known is a constant.
Graph simplified(const Graph& graph);
/// Without the nodes that nothing needs.
Graph without_dead(const Graph& graph);
/// What is rounded to nearest, and what only needs such values, as late as possible and then together: hosts
/// that change their rounding for it change it seldom.
Graph by_rounding(const Graph& graph);

}  // namespace v3d::qpu::graph
