/// These are the steps of analyse(); each fills its part of a Flow from those before it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "gpu/qpu/flow/tmu.h"

namespace v3d::qpu::flow {

/// Instructions, nodes, blocks without `loops` and `live`, and what stands beside them.
void walk(const CodeReader& reader, Flow& flow);
/// Block::loops.
void count_loops(Flow& flow);
/// Block::live and Flow::registers.
void find_live(Flow& flow);
/// Flow::uniforms and Flow::uniform_jumps.
void place_uniforms(Flow& flow);

/// Blocks that may follow a block.
template <typename Fn>
void for_each_successor(const Block& block, const Fn& fn) {
  if (block.exit.next != kNowhere) fn(block.exit.next);
  if (block.exit.taken != kNowhere) fn(block.exit.taken);
}

/// Blocks that are to be looked at, the last that was added first.
class OpenBlocks {
 public:
  /// @param blocks  of the flow; none is open yet
  explicit OpenBlocks(size_t blocks) : open_(blocks) {}

  bool empty() const { return list_.empty(); }
  /// Nothing changes when it is open already.
  void add(uint32_t block) {
    if (open_[block]) return;
    open_[block] = true;
    list_.push_back(block);
  }
  uint32_t take() {
    const uint32_t block = list_.back();
    list_.pop_back();
    open_[block] = false;
    return block;
  }

 private:
  std::vector<bool> open_;
  std::vector<uint32_t> list_;
};

/// Follows a State along all ways from the entry, which there is and before which a default one stands. Where
/// ways meet, State::join() takes in another's and says whether anything changed.
/// @param pass  called with a block, the state before it, which it makes the one after, and false until the
///              states have settled; then once for each block that is reached, in their order, with true
template <typename State, typename Pass>
void follow_states(const Flow& flow, const Pass& pass) {
  std::vector<std::optional<State>> before(flow.blocks.size());
  OpenBlocks open(flow.blocks.size());
  before[flow.entry].emplace();
  open.add(flow.entry);
  while (!open.empty()) {
    const uint32_t b = open.take();
    State state = *before[b];
    pass(flow.blocks[b], state, false);
    for_each_successor(flow.blocks[b], [&](uint32_t next) {
      const bool changed = !before[next] || before[next]->join(state);
      if (!before[next]) before[next] = state;
      if (changed) open.add(next);
    });
  }
  for (uint32_t b = 0; b < before.size(); ++b)
    if (before[b]) pass(flow.blocks[b], *before[b], true);
}

/// As follow_states(), event by event.
/// @param apply  called with an event, where it is, the state before it, and whether states have settled
template <typename State, typename Apply>
void follow_events(const Flow& flow, const Apply& apply) {
  follow_states<State>(flow, [&](const Block& block, State& state, bool settled) {
    for (uint32_t n = block.first; n < block.first + block.count; ++n) {
      const auto events = flow.access(flow.nodes[n]).events();
      for (size_t e = 0; e < events.size(); ++e)
        apply(events[e], EventOf{n, static_cast<uint8_t>(e)}, state, settled);
    }
  });
}

/// Where the one with this event stands in a list that is sorted by its events.
template <typename T>
uint32_t index_of(const std::vector<T>& list, EventOf T::*event, EventOf wanted) {
  const auto found = std::lower_bound(list.begin(), list.end(), wanted,
                                      [event](const T& item, EventOf e) { return item.*event < e; });
  return static_cast<uint32_t>(found - list.begin());
}

}  // namespace v3d::qpu::flow
