#include "gpu/qpu/jit/graph/registers.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace v3d::qpu::jit {

using graph::kNoNode;
using graph::Node;
using graph::Op;

namespace {

/// Its value stands in memory, or among the constants.
bool is_home(Op op) {
  switch (op) {
    case Op::kConst:
    case Op::kLoad:
    case Op::kVarying:
    case Op::kLaneIndex:
    case Op::kVaryingC:
    case Op::kUniformWord:
    case Op::kTextureWord:
    case Op::kPayload:
      return true;
    default:
      return false;
  }
}

}  // namespace

Uses::Uses(const graph::Graph& graph) {
  const auto& nodes = graph.nodes();
  begin_.assign(nodes.size() + 1, 0);
  const auto for_each = [&](auto fn) {
    for (size_t n = 0; n < nodes.size(); ++n)
      for (int i = 0; i < graph::info(nodes[n].op).operands; ++i) fn(nodes[n].operands[i], n);
  };
  for_each([&](graph::Id id, size_t) { ++begin_[id + 1u]; });
  for (size_t n = 0; n < nodes.size(); ++n) begin_[n + 1] += begin_[n];
  positions_.resize(begin_.back());
  at_.assign(begin_.begin(), begin_.end() - 1);
  for_each([&](graph::Id id, size_t n) { positions_[at_[id]++] = static_cast<uint32_t>(n); });
  at_.assign(begin_.begin(), begin_.end() - 1);
}

RegisterScan::RegisterScan(const graph::Graph& graph, int num_units)
    : graph_(graph), uses_(graph), places_(graph.nodes().size()), num_units_(num_units) {
  held_.fill(kNoNode);
  for (size_t n = 0; n < places_.size(); ++n) {
    const Op op = graph[static_cast<Id>(n)].op;
    places_[n].home = is_home(op);
  }
}

void RegisterScan::walk() {
  for (const Node& node : graph_.nodes()) {
    locked_ = 0;
    emit(node);
  }
}

/// What it holds is in memory then, or not needed any more.
void RegisterScan::vacate(int unit) {
  const Id id = held_[static_cast<size_t>(unit)];
  if (id == kNoNode) return;
  Place& place = places_[id];
  if (uses_.next(id) != Uses::kNever && !is_in_memory(id)) {
    place.slot = static_cast<int16_t>(num_slots_++);
    save(unit, place.slot);
  }
  place.unit = -1;
  held_[static_cast<size_t>(unit)] = kNoNode;
}

void RegisterScan::vacate_all() {
  for (int unit = 0; unit < num_units_; ++unit) vacate(unit);
}

void RegisterScan::begin_region() {
  is_in_region_ = true;
  held_before_.clear();
  saved_.clear();
  for (int unit = 0; unit < num_units_; ++unit) {
    const Id id = held_[static_cast<size_t>(unit)];
    if (id == kNoNode || uses_.next(id) == Uses::kNever) continue;
    held_before_.push_back({unit, id});
    if (is_in_memory(id)) continue;
    places_[id].slot = static_cast<int16_t>(num_slots_++);
    save(unit, places_[id].slot);
    saved_.push_back(id);
  }
}

bool RegisterScan::is_repeated(const Node& when) const {
  for (const Node* node = &when; node->op != Op::kResume; ++node)
    if (node->op == Op::kAgain) return true;
  return false;
}

/// All of them are in memory.
void RegisterScan::hold_again(const std::vector<Held>& held) {
  for (const Id id : held_)
    if (id != kNoNode) places_[id].unit = -1;
  held_.fill(kNoNode);
  for (const auto& [unit, id] : held) {
    load(unit, id);
    places_[id].unit = static_cast<int16_t>(unit);
    held_[static_cast<size_t>(unit)] = id;
  }
}

void RegisterScan::repeat_region() { hold_again(held_before_); }

void RegisterScan::end_region() {
  std::erase_if(held_before_, [&](const Held& held) { return uses_.next(held.id) == Uses::kNever; });
  hold_again(held_before_);
  for (const Id id : saved_) places_[id].slot = -1;
  is_in_region_ = false;
}

int RegisterScan::slot_of_kept(const Node& node) {
  const auto [entry, is_new] = kept_.try_emplace(node.immediate, num_slots_);
  num_slots_ += is_new;
  return entry->second;
}

/// In a region it may change while the value is needed.
void RegisterScan::take_kept(const Node& node) {
  const auto slot = static_cast<int16_t>(slot_of_kept(node));
  if (!is_in_region_) {
    places_[id_of(node)].slot = slot;
    return;
  }
  const int unit = result(node);
  places_[id_of(node)].slot = slot;
  load(unit, id_of(node));
  places_[id_of(node)].slot = -1;
}

/// A free one, or that of the value that is needed last.
int RegisterScan::new_unit() {
  int best = -1;
  uint32_t latest = 0;
  for (int unit = 0; unit < num_units_; ++unit) {
    if (locked_ >> unit & 1) continue;
    const Id id = held_[static_cast<size_t>(unit)];
    if (id == kNoNode) {
      num_used_ = std::max(num_used_, unit + 1);
      return unit;
    }
    const uint32_t next = uses_.next(id);
    if (best >= 0 && next <= latest) continue;
    best = unit;
    latest = next;
  }
  vacate(best);
  return best;
}

bool RegisterScan::is_needed_late(Id id) const {
  const uint32_t needed = uses_.after_next(id);
  for (int unit = 0; unit < num_units_; ++unit) {
    if (locked_ >> unit & 1) continue;
    const Id held = held_[static_cast<size_t>(unit)];
    if (held == kNoNode || uses_.next(held) > needed) return false;
  }
  return true;
}

int RegisterScan::in_register(Id id) {
  Place& place = places_[id];
  if (place.unit < 0) {
    const int unit = new_unit();
    load(unit, id);
    place.unit = static_cast<int16_t>(unit);
    held_[static_cast<size_t>(unit)] = id;
  }
  locked_ |= 1u << place.unit;
  return place.unit;
}

void RegisterScan::consume(const Node& node) {
  for (int n = 0; n < graph::info(node.op).operands; ++n) {
    const Id id = node.operands[n];
    uses_.pass(id);
    Place& place = places_[id];
    if (place.unit < 0 || uses_.next(id) != Uses::kNever) continue;
    held_[static_cast<size_t>(place.unit)] = kNoNode;
    locked_ &= ~(1u << place.unit);
    place.unit = -1;
  }
}

void RegisterScan::hold(int unit, const Node& node) {
  held_[static_cast<size_t>(unit)] = id_of(node);
  places_[id_of(node)].unit = static_cast<int16_t>(unit);
}

int RegisterScan::result(const Node& node, bool apart) {
  if (!apart) consume(node);
  const int unit = new_unit();
  if (apart) {
    locked_ |= 1u << unit;
    consume(node);
  }
  hold(unit, node);
  return unit;
}

int RegisterScan::result_beside(const Node& later) {
  const int unit = new_unit();
  locked_ |= 1u << unit;
  hold(unit, later);
  return unit;
}

int RegisterScan::result_in(const Node& node, int unit) {
  consume(node);
  hold(unit, node);
  return unit;
}

}  // namespace v3d::qpu::jit
