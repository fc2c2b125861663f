/// @file Stretches of compute programs.

#include <algorithm>
#include <utility>

#include "gpu/base/lanes.h"
#include "gpu/qpu/graph/front_end.h"
#include "gpu/qpu/run/alu.h"

namespace v3d::qpu::graph {

std::optional<TracedStretch> FrontEnd::trace(const StretchBegin& begin, bool is_whole, BlockLookups* found,
                                             const char** why) {
  is_cut_ = true;
  begin_batch(is_whole);
  if (!begin.is_first) take_up(begin);
  TracedStretch made;
  follow(begin, made);
  check_limits();
  *why = why_;
  if (why_ != nullptr) return {};
  made.uniforms = uniforms_.count();
  made.instructions = instructions_;
  made.values = values_behind();
  made.graph = std::move(graph_);
  if (found == nullptr) return made;
  for (const uint16_t number : uniforms_.found())
    if (std::find(found->known.begin(), found->known.end(), number) == found->known.end())
      found->known.push_back(number);
  return made;
}

void FrontEnd::take_up(const StretchBegin& begin) {
  registers_ = {};
  const StretchPoint& point = begin.point;
  uniforms_.go_on_at(point.position, point.target == StretchPoint::kNoTarget
                                         ? std::nullopt
                                         : std::optional<uint32_t>(point.target));
  // Results come last, in their order.
  for (const auto& [item, held] : begin.items) place_of(item) = value_of(held);
  at_barrier_ = flow_.nodes[flow_.blocks[point.block].first].in_flight.barrier;
  for (const Value& result : taken_up_)
    if (!lookups_.add_result(result)) refuse("many results of lookups");
}

Value FrontEnd::value_of(const Held& held) {
  if (held.where == Held::Where::kConst) return bits(held.number);
  if (held.where == Held::Where::kUniform) return source(Op::kUniformWord, held.number);
  return source(Op::kLoad, held.number * static_cast<uint32_t>(sizeof(Lanes)));
}

Value& FrontEnd::place_of(uint16_t item) {
  if (item < kNumRegisters) return registers_[item];
  switch (item) {
    case kItemFlagA:
      return flag_a_;
    case kItemFlagB:
      return flag_b_;
    case kItemRtop:
      return rtop_;
    case kItemSfu:
    case kItemSfu + 1:
      return sfu_results_[item - kItemSfu];
    case kItemAddress:
      return address_;
    default:
      return taken_up_.emplace_back();
  }
}

void FrontEnd::follow(const StretchBegin& begin, TracedStretch& made) {
  using Kind = flow::Exit::Kind;
  for (uint32_t block = begin.point.block;;) {
    const flow::Block& b = flow_.blocks[block];
    for (uint32_t n = b.first; n < b.first + b.count && why_ == nullptr; ++n) execute(flow_.nodes[n]);
    if (why_ != nullptr) return;
    if (b.exit.kind == Kind::kEnd) {
      made.exits[0].ends = true;
      return;
    }
    const bool waits = b.exit.switches && std::exchange(at_barrier_, false);
    if (b.exit.kind == Kind::kJump) uniforms_.jump();
    const bool is_branch = b.exit.kind == Kind::kBranch;
    if (is_branch && condition_.id != kNoNode) return fork(b.exit, waits, made);
    const uint32_t next = is_branch && branches_ ? b.exit.taken : b.exit.next;
    if (next == flow::kNowhere) return refuse("a branch");
    const auto place = [&](uint32_t of) { return flow_.nodes[flow_.blocks[of].first].index; };
    const bool is_cut = waits || (begin.stops_at_loops && place(next) <= place(block));
    if (is_cut) {
      made.exits[0] = {.waits = waits, .point = point_at(next, uniforms_.target())};
      return;
    }
    block = next;
  }
}

void FrontEnd::fork(const flow::Exit& exit, bool waits, TracedStretch& made) {
  if (exit.taken == flow::kNowhere || exit.next == flow::kNowhere) return refuse("a branch");
  const StretchPoint taken = point_at(exit.taken, uniforms_.target()), next = point_at(exit.next, {});
  made.condition = condition_.id;
  made.exits[0] = {.waits = waits, .point = some_take_ ? taken : next};
  made.exits[1] = {.waits = waits, .point = some_take_ ? next : taken};
}

StretchPoint FrontEnd::point_at(uint32_t block, std::optional<uint32_t> target) {
  if (accesses_.has_data() || lookups_.has_parameters() || lookups_.is_configured() ||
      (!finds_ && scratch_.is_configured()))
    refuse("a cut between what sets an access up and the access");
  return {.block = block,
          .position = uniforms_.position(),
          .target = target.value_or(StretchPoint::kNoTarget),
          .results = static_cast<uint32_t>(lookups_.results().size()),
          .has_address = address_.id != kNoNode};
}

std::map<uint16_t, Id> FrontEnd::values_behind() {
  std::map<uint16_t, Id> values;
  for (uint16_t r = 0; r < kNumRegisters; ++r) values[r] = registers_[r].id;
  values[kItemFlagA] = flag_a_.id;
  values[kItemFlagB] = flag_b_.id;
  values[kItemRtop] = rtop_.id;
  values[kItemSfu] = sfu_results_[0].id;
  values[kItemSfu + 1] = sfu_results_[1].id;
  if (address_.id != kNoNode) values[kItemAddress] = (address_ + address_offset_).id;
  uint16_t item = kItemResults;
  for (const Value& result : lookups_.results()) values[item++] = result.id;
  return values;
}

void FrontEnd::decide(const Branch& branch) {
  branches_ = true;
  switch (branch.cond) {
    case BranchCond::kA0:
    case BranchCond::kNa0:
      condition_ = flag_a_ & equal_words(source(Op::kLaneIndex), bits(0));
      some_take_ = branch.cond == BranchCond::kA0;
      return;
    case BranchCond::kAnya:
    case BranchCond::kAllna:
      condition_ = flag_a_;
      some_take_ = branch.cond == BranchCond::kAnya;
      break;
    case BranchCond::kAnyna:
    case BranchCond::kAlla:
      condition_ = ~flag_a_;
      some_take_ = branch.cond == BranchCond::kAnyna;
      break;
    default:
      return refuse("a branch");
  }
  if (branch.msfign != Msfign::kNone) condition_ = condition_ & lookups_.lanes(branch.msfign == Msfign::kP);
}

void FrontEnd::wait(Value token, Value exec) {
  if (!graph_.is_constant(token.id, kBarrierToken) || !graph_.is_constant(exec.id, ~0u))
    return refuse("a meeting");
  at_barrier_ = true;
}

std::optional<TracedStretch> trace_stretch(const flow::Flow& flow, const BlockKey& key, bool is_whole,
                                           const StretchBegin& begin, BlockLookups* found, const char** why) {
  return FrontEnd(flow, key, found != nullptr).trace(begin, is_whole, found, why);
}

}  // namespace v3d::qpu::graph
