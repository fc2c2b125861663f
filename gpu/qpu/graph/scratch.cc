#include "gpu/qpu/graph/scratch.h"

#include <algorithm>
#include <utility>

#include "gpu/base/lanes.h"
#include "gpu/tmu/lookup/general.h"

namespace v3d::qpu::graph {
namespace {

/// No chip has so many threads, nor threads that reach so many bytes.
constexpr uint32_t kMostThreads = 256, kMostBytes = 1 << 24;
/// All lanes of a word.
constexpr uint32_t kLine = kLanes * sizeof(uint32_t);

constexpr char kOther[] = "memory other than scratch";

}  // namespace

uint8_t Scratch::take_configuration() {
  const auto byte = static_cast<uint8_t>(config_);
  config_ = config_ >> 8 | 0xff000000u;
  return byte;
}

const Scratch::Affine& Scratch::affine(Id id) {
  // Operands come before.
  if (const auto found = known_.find(id); found != known_.end()) return found->second;
  const Affine result = affine_of(graph_[id]);
  return known_[id] = result;
}

Scratch::Affine Scratch::affine_of(const Node& node) {
  switch (node.op) {
    case Op::kConst:
      return {true, node.immediate, 0, 0};
    case Op::kThreadIndex:
      return {true, 0, 1, 0};
    case Op::kLaneIndex:
      return {true, 0, 0, 1};
    default:
      break;
  }
  if (info(node.op).operands != 2) return {};
  const Affine a = affine(node.operands[0]), b = affine(node.operands[1]);
  if (!a.is || !b.is) return {};
  if (node.op == Op::kAdd)
    return {true, a.constant + b.constant, a.of_thread + b.of_thread, a.of_lane + b.of_lane};
  if (b.of_thread != 0 || b.of_lane != 0) return {};
  const uint32_t n = b.constant;
  // No product here is too large for a word.
  const uint64_t most =
      uint64_t{a.constant} + uint64_t{a.of_thread} * (kMostThreads - 1) + uint64_t{a.of_lane} * (kLanes - 1);
  switch (node.op) {
    case Op::kMul:
      return {true, a.constant * n, a.of_thread * n, a.of_lane * n};
    case Op::kShl:
      if (n >= 32) return {};
      return {true, a.constant << n, a.of_thread << n, a.of_lane << n};
    case Op::kShr:  // to nothing
      if (n < 32 && most >> n == 0) return {true, 0, 0, 0};
      return {};
    case Op::kAnd:  // that takes nothing away
      if ((n & (n + 1)) == 0 && most <= n) return a;
      return {};
    default:
      return {};
  }
}

const char* Scratch::check(const Affine& address) {
  if (!address.is || address.of_lane != sizeof(uint32_t)) return kOther;
  if (address.of_thread == 0 || address.of_thread > kMostBytes) return kOther;
  if (of_thread_ == 0) {
    first_ = last_ = address.constant;
    of_thread_ = address.of_thread;
  }
  first_ = std::min(first_, address.constant);
  last_ = std::max(last_, address.constant);
  const bool is_line = (address.constant - first_) % kLine == 0 && (last_ - first_) % kLine == 0;
  const bool is_own = address.of_thread == of_thread_ && last_ - first_ + kLine <= of_thread_;
  return is_line && is_own ? nullptr : kOther;
}

const char* Scratch::access(uint8_t configuration, Value address, Value exec, Value* loaded) {
  constexpr uint8_t kOperationAndType = 0x7f;  // a word, loaded or stored
  const std::vector<Value> data = std::exchange(data_, {});
  if ((configuration & kOperationAndType) != kOperationAndType || data.size() > 1) return kOther;
  const Affine& of = affine(address.id);
  if (const char* const why = check(of); why != nullptr) return why;
  const auto found = stored_.find(of.constant);
  if (data.empty()) {
    if (found == stored_.end()) return "scratch that was not stored";
    *loaded = found->second.value;
    found->second.is_loaded = true;
    return nullptr;
  }
  // In other lanes stands what nobody knows, or what was stored before.
  if (found == stored_.end())
    stored_[of.constant] = {data[0]};
  else
    found->second.value = choose(exec, data[0], found->second.value);
  return nullptr;
}

bool Scratch::is_all_loaded() const {
  return std::all_of(stored_.begin(), stored_.end(), [](const auto& line) { return line.second.is_loaded; });
}

}  // namespace v3d::qpu::graph
