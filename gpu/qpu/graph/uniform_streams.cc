#include "gpu/qpu/graph/uniform_streams.h"

#include <algorithm>
#include <optional>

namespace v3d::qpu::graph {
namespace {

constexpr int32_t kWord = 4;

/// How far the stream moves in programs whose uniforms stand as drivers write them.
std::optional<int32_t> expected_distance(const flow::Flow& flow, uint32_t number) {
  const auto offset = static_cast<int32_t>(number) * kWord;
  const auto found = std::find_if(flow.uniform_jumps.begin(), flow.uniform_jumps.end(),
                                  [&](const flow::UniformJump& jump) { return jump.offset == offset; });
  if (found == flow.uniform_jumps.end()) return {};
  return found->distance;
}

}  // namespace

uint32_t UniformStreams::take() {
  const uint32_t number = position_++;
  count_ = std::max(count_, position_);
  return number;
}

const KnownUniform* UniformStreams::find(uint32_t number) const {
  if (known_ == nullptr) return nullptr;
  const auto found = std::find_if(known_->begin(), known_->end(),
                                  [&](const KnownUniform& known) { return known.number == number; });
  return found == known_->end() ? nullptr : &*found;
}

Value UniformStreams::word(uint32_t number) {
  if (const KnownUniform* const known = find(number)) return constant(graph_, known->word);
  return {&graph_, graph_.make({.op = Op::kUniformWord, .immediate = number})};
}

uint32_t UniformStreams::known_word(uint32_t number) {
  if (const KnownUniform* const known = find(number)) return known->word;
  const auto n = static_cast<uint16_t>(number);
  if (std::find(found_.begin(), found_.end(), n) == found_.end()) found_.push_back(n);
  return 0;
}

void UniformStreams::know_all_of(Value v) {
  if (known_ != nullptr) return;
  std::vector<bool> seen(v.id + size_t{1}, false);
  std::vector<Id> open = {v.id};
  while (!open.empty()) {
    const Id id = open.back();
    open.pop_back();
    if (seen[id]) continue;
    seen[id] = true;
    const Node& node = graph_[id];
    if (node.op == Op::kUniformWord && node.immediate < kMostUniforms) known_word(node.immediate);
    for (int n = 0; n < info(node.op).operands; ++n) open.push_back(node.operands[n]);
  }
}

const char* UniformStreams::branch(const Branch& branch, bool is_taken) {
  target_.reset();
  if (!branch.uniforms) return nullptr;
  if (branch.uniform_target != static_cast<uint8_t>(BranchTarget::kRelative))
    return "a branch to other uniforms";
  const uint32_t number = take();
  if (!is_taken) return nullptr;
  const uint32_t word = known_word(number);
  const std::optional<int32_t> distance =
      known_ != nullptr ? static_cast<int32_t>(word) : expected_distance(flow_, number);
  if (!distance || *distance % kWord != 0) return "a branch to unknown uniforms";
  const int64_t target = int64_t{position_} + *distance / kWord;
  if (is_far(target)) return "a branch to uniforms that are far away";
  target_ = static_cast<uint32_t>(target);
  return nullptr;
}

void UniformStreams::jump() {
  if (target_) position_ = *target_;
  target_.reset();
}

const char* UniformStreams::set_address(Value address) {
  const Node& node = graph_[address.id];
  const auto is_uniform = [&](Id id) {
    return graph_[id].op == Op::kUniformWord && graph_[id].immediate < kMostUniforms;
  };
  const auto set = [&](Id uniform, uint32_t first) {
    address_ = {static_cast<uint16_t>(graph_[uniform].immediate), first, 0};
    return nullptr;
  };
  if (is_uniform(address.id)) return set(address.id, 0);
  if (node.op == Op::kAdd && is_uniform(node.operands[0]) && graph_.is_constant(node.operands[1]))
    return set(node.operands[0], graph_[node.operands[1]].immediate);
  return "a computed address of uniforms";
}

Value UniformStreams::next_indirect() {
  if (!address_) return {};
  const auto found = std::find(indirect_.begin(), indirect_.end(), *address_);
  const auto number = static_cast<uint32_t>(found - indirect_.begin());
  if (found == indirect_.end()) indirect_.push_back(*address_);
  address_->offset += kWord;
  return {&graph_, graph_.make({.op = Op::kUniformWord, .immediate = kFirstIndirect + number})};
}

}  // namespace v3d::qpu::graph
