#include "gpu/qpu/graph/stretches.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

#include "gpu/base/lanes.h"

namespace v3d::qpu::graph {
namespace {

/// Instructions that are executed on nodes in all, again and again where more is known of what comes before.
constexpr uint32_t kMostTraced = 16384;
/// Instructions of all stretches.
constexpr uint32_t kMostInstructions = 2048;
constexpr size_t kMostStretches = 256;

/// What is live where a stretch begins, in the order of items.
std::vector<uint16_t> items_at(const flow::Flow& flow, const StretchPoint& point) {
  const flow::Block& block = flow.blocks[point.block];
  std::vector<uint16_t> items;
  block.live.registers.for_each([&](Register r) { items.push_back(r); });
  if (block.live.state & flow::kFlagA) items.push_back(kItemFlagA);
  if (block.live.state & flow::kFlagB) items.push_back(kItemFlagB);
  if (block.live.state & flow::kRtop) items.push_back(kItemRtop);
  const int in_flight = std::popcount(uint32_t{flow.nodes[block.first].in_flight.sfu});
  for (int n = 0; n < in_flight; ++n) items.push_back(static_cast<uint16_t>(kItemSfu + n));
  if (point.has_address) items.push_back(kItemAddress);
  for (uint32_t n = 0; n < point.results; ++n) items.push_back(static_cast<uint16_t>(kItemResults + n));
  return items;
}

/// Finds the stretches of a program, what each finds when it begins, and makes their graphs.
class Cutter {
 public:
  Cutter(const flow::Flow& flow, const BatchKey& key, BlockLookups* found)
      : flow_(flow),
        key_{.lookups = key.lookups, .known = key.known},
        is_whole_(key.is_whole),
        found_(found) {}

  /// @return  false: why()
  bool find() {
    if (flow_.complete && flow_.entry != flow::kNowhere)
      stretches_.push_back({.begin = {.is_first = true, .point = {.block = flow_.entry}, .items = {}}});
    else
      return refuse("unknown code");
    for (size_t n = 0; n < stretches_.size(); n = next_open()) {
      stretches_[n].is_open = false;
      const std::optional<TracedStretch> traced = trace(n);
      if (!traced) return false;
      for (const TracedStretch::Exit& exit : exits_of(*traced))
        if (!exit.ends && !reach(exit.point, *traced)) return false;
    }
    return true;
  }
  std::optional<StretchGraphs> graphs() {
    StretchGraphs made;
    for (size_t n = 0; n < stretches_.size(); ++n) {
      std::optional<TracedStretch> traced = trace(n);
      bool has_turns = false;
      if (!traced || !end(*traced, n, has_turns)) return {};
      made.uniforms = std::max(made.uniforms, traced->uniforms);
      made.instructions += traced->instructions;
      const uint32_t block = stretches_[n].begin.point.block;
      made.parts.push_back({without_dead(traced->graph), traced->instructions,
                            flow_.nodes[flow_.blocks[block].first].index, has_turns});
    }
    made.slots = static_cast<uint32_t>(slots_.size());
    if (made.instructions > kMostInstructions && !refuse(kTooManyInstructions)) return {};
    return made;
  }
  const char* why() const { return why_; }

 private:
  struct Stretch {
    StretchBegin begin;
    bool is_open = true;
  };

  static std::vector<TracedStretch::Exit> exits_of(const TracedStretch& traced) {
    if (traced.condition == kNoNode) return {traced.exits[0]};
    return {traced.exits[0], traced.exits[1]};
  }
  bool refuse(const char* why) {
    why_ = why;
    return false;
  }
  size_t next_open() const {
    return static_cast<size_t>(
        std::find_if(stretches_.begin(), stretches_.end(), [](const Stretch& s) { return s.is_open; }) -
        stretches_.begin());
  }

  std::optional<TracedStretch> trace(size_t n) {
    StretchBegin& begin = stretches_[n].begin;
    const char* why = nullptr;
    std::optional<TracedStretch> traced = trace_stretch(flow_, key_, is_whole_, begin, found_, &why);
    if (!traced && why == kTooManyInstructions && !begin.stops_at_loops) {
      begin.stops_at_loops = true;
      return trace(n);
    }
    if (!traced) refuse(why);
    traced_ += traced ? traced->instructions : 0;
    if (traced_ <= kMostTraced) return traced;
    refuse(kTooManyInstructions);
    return {};
  }

  Held held_as(const Graph& graph, uint16_t item, Id id) {
    const Node none = {.op = Op::kConst};
    const Node& node = id == kNoNode ? none : graph[id];
    if (node.op == Op::kConst) return {Held::Where::kConst, node.immediate};
    if (node.op == Op::kUniformWord) return {Held::Where::kUniform, node.immediate};
    return slot_of(item);
  }
  Held slot_of(uint16_t item) {
    const auto number = static_cast<uint32_t>(slots_.size());
    return {Held::Where::kSlot, slots_.try_emplace(item, number).first->second};
  }

  /// Of the stretch that begins at a point, or else the next one; none leads to the first.
  size_t number_of(const StretchPoint& point) const {
    return static_cast<size_t>(std::find_if(stretches_.begin() + 1, stretches_.end(),
                                            [&](const Stretch& s) { return s.begin.point == point; }) -
                               stretches_.begin());
  }

  /// One way to a point is known. What differs from what others have there stands in its slot.
  bool reach(const StretchPoint& point, const TracedStretch& traced) {
    const size_t number = number_of(point);
    if (number == kMostStretches) return refuse("many stretches");
    if (number == stretches_.size()) stretches_.emplace_back();
    Stretch& to = stretches_[number];
    to.begin.point = point;
    for (const uint16_t item : items_at(flow_, point)) {
      const auto value = traced.values.find(item);
      const Held held = held_as(traced.graph, item, value == traced.values.end() ? kNoNode : value->second);
      const auto [entry, was_none] = to.begin.items.try_emplace(item, held);
      if (was_none || entry->second == held || entry->second.where == Held::Where::kSlot) continue;
      entry->second = slot_of(item);
      to.is_open = true;
    }
    return slots_.size() <= kBatchSlots || refuse("many values behind a cut");
  }

  uint32_t lead_to(const TracedStretch::Exit& exit) const {
    if (exit.ends) return kStretchEnds;
    return static_cast<uint32_t>(number_of(exit.point)) | (exit.waits ? kStretchWaits : 0);
  }

  /// Where it leads to, and what is stored for that.
  bool end(TracedStretch& traced, size_t number, bool& has_turns) {
    Graph& graph = traced.graph;
    const bool is_sure = traced.condition == kNoNode;
    const auto lead = [&](const TracedStretch::Exit& exit) {
      const uint32_t to = lead_to(exit);
      has_turns |= to == number;
      return to == number ? to | kStretchAgain : to;
    };
    const uint32_t first = lead(traced.exits[0]), second = is_sure ? first : lead(traced.exits[1]);
    const Id condition = is_sure ? graph.constant(~0u) : traced.condition;
    std::map<uint16_t, Id> stored;
    for (const TracedStretch::Exit& exit : exits_of(traced)) {
      if (exit.ends) continue;
      const uint32_t to = lead_to(exit) & (kStretchWaits - 1);
      for (const auto& [item, held] : stretches_[to].begin.items) {
        if (held.where != Held::Where::kSlot) continue;
        const auto value = traced.values.find(item);
        const bool has_value = value != traced.values.end() && value->second != kNoNode;
        stored[item] = has_value ? value->second : graph.constant(0);
      }
    }
    graph.append(
        {.op = Op::kLead, .operands = {condition, kNoNode, kNoNode}, .immediate = first | second << 16});
    for (const auto& [item, id] : stored) {
      const uint32_t offset = slot_of(item).number * static_cast<uint32_t>(sizeof(Lanes));
      if (graph[id].op == Op::kLoad && graph[id].immediate == offset) continue;
      graph.append({.op = Op::kStore, .operands = {id, kNoNode, kNoNode}, .immediate = offset});
    }
    return !graph.is_full() || refuse("too many operations");
  }

  const flow::Flow& flow_;
  const BlockKey key_;
  const bool is_whole_;
  BlockLookups* const found_;
  std::vector<Stretch> stretches_;
  std::map<uint16_t, uint32_t> slots_;  // by item
  uint32_t traced_ = 0;
  const char* why_ = nullptr;
};

}  // namespace

std::optional<StretchGraphs> stretch_graphs(const flow::Flow& flow, const BatchKey& key, const char** why) {
  Cutter cutter(flow, key, nullptr);
  std::optional<StretchGraphs> made;
  if (cutter.find()) made = cutter.graphs();
  *why = cutter.why();
  return made;
}

std::optional<BlockLookups> find_stretch_lookups(const flow::Flow& flow, const char** why) {
  BlockLookups found;
  Cutter cutter(flow, {}, &found);
  const bool is_found = cutter.find();
  *why = cutter.why();
  if (!is_found) return {};
  return found;
}

}  // namespace v3d::qpu::graph
