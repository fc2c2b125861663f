/// Addresses of loads in a stretch that leads to itself: sums of what stood in a slot and of uniforms, turn
/// for turn. Of those the first lane is enough, a word that instructions for words compute beside those for
/// vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "gpu/qpu/graph/graph.h"

namespace v3d::qpu::jit {

bool leads_to_itself(const graph::Graph& graph);

/// Where a stretch leads to (Op::kLead): by whether its mask holds in some lane, or in none.
struct Lead {
  uint32_t some, none;
  bool is_known() const { return some == none; }
};
Lead lead_of(const graph::Graph& graph, const graph::Node& node);

/// How many load_memory stand side by side with the address and the mask of the first. @param most  at most
size_t loads_of_one_address(const graph::Graph& graph, const graph::Node& load, size_t most);

/// Of loads in a loop, the uniform by which their address is that of one before: down a column of a matrix,
/// say, whose lines are so far apart that the host does not fetch them on its own.
std::map<graph::Id, graph::Id> steps_of_loads(const graph::Graph& graph);
/// They are fetched so many steps ahead.
inline constexpr int kStepsAheadLog2 = 5;
/// Where the words probably stand that the next turn of a loop reads by an address, in bytes from those of
/// this one.
inline constexpr int kNextWords = 128;

class LoopAddresses {
 public:
  using Id = graph::Id;

  /// Empty unless it leads_to_itself().
  explicit LoopAddresses(const graph::Graph& graph);

  /// What all lanes of a load add the same to, from turn to turn. If its words stand side by side, at
  /// multiples of four, and what is added are such multiples, then so do all that it becomes.
  struct Line {
    Id root;                 ///< Op::kLoad
    std::set<Id> uniforms;   ///< that are added
    uint32_t constants = 0;  ///< all bits of those that are added
  };
  const std::vector<Line>& lines() const { return lines_; }

  /// The sum whose first lane load_word needs, without its lowest two bits and half of the address space.
  /// @return  kNoNode: the address is what the graph has
  Id word_of(Id address) const { return found(words_, address); }
  /// The same of load_memory, of which all lanes may be needed.
  Id sum_of_line(Id address) const { return found(sums_, address); }
  /// Of lines(), of such a sum.
  uint32_t line_of(Id sum) const { return line_of_.at(sum); }
  /// Of a sum of words the operand that is one itself, if either is; the other one is added to it.
  Id goes_on(Id sum) const;
  /// Steps to such addresses, which have no code.
  bool is_step_to_word(Id id) const { return steps_to_words_.contains(id); }
  bool is_step_to_line(Id id) const { return steps_to_lines_.contains(id); }

 private:
  using Op = graph::Op;
  using Node = graph::Node;

  static Id found(const std::map<Id, Id>& map, Id id) {
    const auto at = map.find(id);
    return at == map.end() ? graph::kNoNode : at->second;
  }
  bool is_same_everywhere(Id id) const;
  void find_sums();
  void find_addresses();
  bool take_word(Id address, Id step, Id sum);
  bool take_line(Id address, Id step, Id sum);
  uint32_t line_with(Id root);

  const graph::Graph& graph_;
  std::vector<bool> is_word_sum_;       // by node
  std::vector<Id> roots_;               // of sums that are lines, by node; kNoNode: it is none
  std::vector<std::vector<Id>> users_;  // by node
  std::map<Id, Id> words_, sums_;       // by address
  std::map<Id, uint32_t> line_of_;      // by sum
  std::set<Id> steps_to_words_, steps_to_lines_;
  std::vector<Line> lines_;
};

/// A word that is added: where it stands in memory, or a constant.
inline bool stands_as_word(graph::Op op) {
  return op == graph::Op::kLoad || op == graph::Op::kUniformWord || op == graph::Op::kConst;
}

}  // namespace v3d::qpu::jit
