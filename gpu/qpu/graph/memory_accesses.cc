#include "gpu/qpu/graph/memory_accesses.h"

#include <algorithm>
#include <utility>

#include "gpu/tmu/lookup/general.h"

namespace v3d::qpu::graph {
namespace {

constexpr uint32_t kVector = 16;  // bytes

}  // namespace

std::vector<Value> MemoryAccesses::take_data() { return std::exchange(data_, {}); }

void MemoryAccesses::store(Value address, Value data, Value lanes, uint32_t offset) {
  graph_.make({.op = Op::kStoreMemory, .operands = {address.id, data.id, lanes.id}, .immediate = offset});
  has_stored_ = true;
}

Value MemoryAccesses::load_word(Value address, uint32_t offset) {
  const Value at = address + kHalfTheSpace;
  return {&graph_,
          graph_.make({.op = Op::kLoadWord, .operands = {at.id, kNoNode, kNoNode}, .immediate = offset})};
}

const char* MemoryAccesses::access(uint8_t configuration, Value address, Value lanes, Loaded& loaded) {
  const std::vector<Value> data = take_data();
  const tmu::GeneralType& type = tmu::kGeneralTypes[configuration & 7];
  const uint32_t operation = configuration >> tmu::kGeneralOpShift & tmu::kOpMask;
  if (operation != tmu::kRegular) return update(operation, address, data, lanes, loaded);
  if (type.bytes != sizeof(uint32_t)) return "bytes or halves in memory";
  address = address & ~3u;
  const auto place = [&](uint32_t k) -> std::pair<Value, uint32_t> {
    const auto offset = static_cast<uint32_t>(k * sizeof(uint32_t));
    if (!wraps_ || k == 0) return {address + kHalfTheSpace, offset};
    const Value inside = (address + offset) & (kVector - 1);
    return {((address & (0u - kVector)) | inside) + kHalfTheSpace, 0};
  };
  if (data.empty()) {
    for (; loaded.count < type.words; ++loaded.count) {
      const auto [at, offset] = place(static_cast<uint32_t>(loaded.count));
      loaded.words[loaded.count] = {
          &graph_, graph_.make({.op = Op::kLoadMemory, .operands = {at.id, lanes.id}, .immediate = offset})};
    }
    return nullptr;
  }
  for (uint32_t k = 0; k < std::min<size_t>(type.words, data.size()); ++k) {
    const auto [at, offset] = place(k);
    store(at, data[k], lanes, offset);
  }
  return nullptr;
}

/// What comes without data, and differences, are of others with data. What is none has no effect.
const char* MemoryAccesses::update(uint32_t operation, Value address, const std::vector<Value>& data,
                                   Value lanes, Loaded& loaded) {
  if (!tmu::is_atomic(operation, !data.empty())) return nullptr;
  if (operation == tmu::kCmpXchg) return "atomics that compare";
  Value with = data.empty() ? constant(graph_, operation == tmu::kXorOrNot ? ~0u : 1) : data[0];
  if (tmu::is_sum(operation, !data.empty())) {
    if (tmu::is_difference(operation)) with = -with;
    operation = tmu::kAdd;
  }
  address = address & ~3u;
  loaded.words[loaded.count++] = {
      &graph_,
      graph_.make({.op = Op::kAtomic, .operands = {address.id, with.id, lanes.id}, .immediate = operation})};
  has_stored_ = true;
  return nullptr;
}

}  // namespace v3d::qpu::graph
