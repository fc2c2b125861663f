/// Where the values of a graph are while code is made of it: the linear scan, for emitters of any host.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "gpu/qpu/graph/graph.h"

namespace v3d::qpu::jit {

/// When values are needed: positions of nodes, in their order.
class Uses {
 public:
  static constexpr uint32_t kNever = ~0u;

  explicit Uses(const graph::Graph& graph);
  /// Of those that were not passed.
  uint32_t next(graph::Id id) const { return at_[id] < begin_[id + 1u] ? positions_[at_[id]] : kNever; }
  uint32_t after_next(graph::Id id) const {
    return at_[id] + 1 < begin_[id + 1u] ? positions_[at_[id] + 1] : kNever;
  }
  /// The next one is done.
  void pass(graph::Id id) { ++at_[id]; }

 private:
  std::vector<uint32_t> begin_, at_, positions_;
};

/// The places of one value. It may be in a register and in memory at a time.
struct Place {
  int16_t unit = -1;  ///< a register, two or four
  int16_t slot = -1;  ///< of the frame
  bool home = false;  ///< it stands in the thread or among the constants
};
using Places = std::vector<Place>;

/// Goes through the nodes of a graph, and knows where each value is. An emitter says how many units the host
/// has, moves values between them and memory, and makes the code of a node.
class RegisterScan {
 protected:
  using Id = graph::Id;
  static constexpr int kMostUnits = 30;

  RegisterScan(const graph::Graph& graph, int num_units);
  virtual ~RegisterScan() = default;

  /// Emits all nodes.
  void walk();
  virtual void emit(const graph::Node& node) = 0;
  /// From where it stands.
  virtual void load(int unit, Id id) = 0;
  virtual void save(int unit, int slot) = 0;

  Id id_of(const graph::Node& node) const { return static_cast<Id>(&node - graph_.nodes().data()); }
  /// Of a node that is emitted, each of these for its operands first, and then for its result.
  int in_register(Id id);
  int new_unit();
  /// The unit of the node's result, after its operands are in theirs. @param apart  it is none of theirs
  int result(const graph::Node& node, bool apart = false);
  /// The same of a later node, whose code is made with this one's; its operands are used when it comes.
  int result_beside(const graph::Node& later);
  /// The same: that of an operand that nothing needs any more.
  int result_in(const graph::Node& node, int unit);
  /// Its operands are used; units of those that are not needed any more are free.
  void consume(const graph::Node& node);
  /// Whether nothing but the node that is emitted needs it.
  bool is_last_use(Id id) const { return uses_.after_next(id) == Uses::kNever; }
  /// Whether all that registers hold is needed sooner than it is after this use: its register would be given
  /// up before.
  bool is_needed_late(Id id) const;
  /// Nothing is in registers then.
  void vacate_all();
  /// Around the code of a region, which may be left out (Op::kWhen): registers are the same behind it,
  /// whether it was or not. begin_region() and end_region() belong to its code.
  void begin_region();
  bool is_repeated(const graph::Node& when) const;
  /// Registers are as they were at the begin.
  void repeat_region();
  void end_region();
  /// Where what Op::kKeep has stands. Code of Op::kKept is all here.
  int slot_of_kept(const graph::Node& node);
  void take_kept(const graph::Node& node);

  const graph::Graph& graph_;
  Uses uses_;
  Places places_;
  std::array<Id, kMostUnits> held_;  // by unit
  uint32_t locked_ = 0;              // units of operands of the node
  const int num_units_;
  int num_used_ = 0;  // the first so many units held something
  int num_slots_ = 0;
  std::map<uint32_t, int> kept_;  // slots, by number

 private:
  void vacate(int unit);
  struct Held {
    int unit;
    Id id;
  };
  void hold_again(const std::vector<Held>& held);

  std::vector<Held> held_before_;  // the region
  bool is_in_region_ = false;
  std::vector<Id> saved_;  // which have a slot in the region alone

  bool is_in_memory(Id id) const { return places_[id].home || places_[id].slot >= 0; }
  void hold(int unit, const graph::Node& node);
};

}  // namespace v3d::qpu::jit
