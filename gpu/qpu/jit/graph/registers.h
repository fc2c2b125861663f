/// Where the values of a graph are while code is made of it: the linear scan.
#pragma once

#include <cstddef>
#include <cstdint>
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
  int16_t unit = -1;  ///< a register, or two
  int16_t slot = -1;  ///< of the frame
  bool home = false;  ///< it stands in the thread or among the constants
};
using Places = std::vector<Place>;

}  // namespace v3d::qpu::jit
