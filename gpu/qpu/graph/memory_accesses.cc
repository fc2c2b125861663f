#include "gpu/qpu/graph/memory_accesses.h"

#include <algorithm>
#include <utility>

#include "gpu/tmu/lookup/general.h"

namespace v3d::qpu::graph {
namespace {

constexpr uint8_t kOperation = 0x78;  // of a configuration: all ones for loads and stores
constexpr uint32_t kVector = 16;      // bytes

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
  if ((configuration & kOperation) != kOperation) return "atomics or prefetches";
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

}  // namespace v3d::qpu::graph
