/// These are the texture lookups of a fragment program, as nodes: each is opened by the kind of its texture
/// and sampler, so that lookups with the same coordinates share what finds their texels.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "gpu/qpu/graph/lookup_nodes.h"
#include "gpu/qpu/graph/memory_accesses.h"
#include "gpu/qpu/graph/value.h"
#include "gpu/qpu/isa/isa.h"
#include "gpu/qpu/run/block_code.h"
#include "gpu/tmu/lookup/lookup_kind.h"

namespace v3d::qpu::graph {

/// The unit as a program sees it: parameters, and a queue of results.
class Lookups {
 public:
  /// @param kinds  of the lookups in their order, outlives this. Null: lookups are found only, and give 0
  /// @param memory  has the words that the next lookup stores
  /// @param picks_lanes  see Host of program_front_end.h
  Lookups(Graph& graph, const std::vector<tmu::LookupKind>* kinds, MemoryAccesses& memory, bool picks_lanes)
      : graph_(graph), kinds_(kinds), memory_(memory), picks_lanes_(picks_lanes) {}

  /// The lanes with samples, from here on. @param others_may_live  later
  void set_live(Value live, bool others_may_live) {
    live_ = live;
    others_may_live_ = others_may_live;
  }
  void configure(uint32_t uniform);
  /// A write to a port.
  /// @param why  set if it cannot be done
  /// @return  false: it is none of lookups
  bool write(Effect port, Value v, Value exec, const char** why);
  /// @return  no node: nothing waits
  Value take();
  /// The result of another access, behind those that wait. @return  false: there is no room
  bool add_result(Value v);
  bool has_parameters() const { return next_.written != 0; }
  bool is_configured() const { return num_config_ != 0; }
  /// Results that wait, in their order.
  const std::deque<Value>& results() const { return results_; }
  /// Those that take part in a lookup. @param per_pixel  lanes without a sample do not
  Value lanes(bool per_pixel) const;

  const std::vector<BlockLookup>& found() const { return found_; }

 private:
  const char* launch(tmu::Launcher launcher, Value s, Value exec);
  const char* refusal(const tmu::LookupKind& kind) const;
  LookupNodes::Point point(Value s) const;
  void look_up(const tmu::LookupKind& kind, Value s, Value exec);
  void store(const tmu::LookupKind& kind, Value s, Value exec, const std::vector<Value>& data);

  /// Words of parameters, which keep what was written last.
  struct Parameters {
    Value t, r, bias, reference, layer;
  };

  Graph& graph_;
  const std::vector<tmu::LookupKind>* const kinds_;
  MemoryAccesses& memory_;
  const bool picks_lanes_;
  Value live_;
  bool others_may_live_ = false;
  BlockLookup next_;
  size_t num_config_ = 0;
  uint32_t num_kept_ = 0;
  Parameters parameters_;
  std::deque<Value> results_;
  std::vector<BlockLookup> found_;
};

}  // namespace v3d::qpu::graph
