/// These are the loads, stores and atomic operations by address of a compute program, as nodes: of words and
/// vectors of words, in the order of the program.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "gpu/qpu/graph/value.h"

namespace v3d::qpu::graph {

/// Is added to the addresses of all accesses: hosts' indices have a sign.
inline constexpr uint32_t kHalfTheSpace = 0x80000000;

class MemoryAccesses {
 public:
  static constexpr size_t kMostWords = 4;

  /// @param wraps  as tmu::LookupProperties::wrap16
  MemoryAccesses(Graph& graph, bool wraps) : graph_(graph), wraps_(wraps) {}

  /// Words that the next access, or lookup, stores.
  void add_data(Value v) {
    if (data_.size() < kMostWords) data_.push_back(v);
  }
  std::vector<Value> take_data();
  bool has_data() const { return !data_.empty(); }

  struct Loaded {
    std::array<Value, kMostWords> words;
    size_t count = 0;  ///< 0: it was a store
  };
  /// @param lanes  that take part
  /// @return  null, or why there is no code
  const char* access(uint8_t configuration, Value address, Value lanes, Loaded& loaded);
  /// @param address  and half the address space, as of `gather`
  void store(Value address, Value data, Value lanes, uint32_t offset);
  bool has_stored() const { return has_stored_; }
  /// The word at an address that is the same for all lanes, or lane 0's: and `offset`.
  Value load_word(Value address, uint32_t offset);

 private:
  const char* update(uint32_t operation, Value address, const std::vector<Value>& data, Value lanes,
                     Loaded& loaded);

  Graph& graph_;
  const bool wraps_;
  bool has_stored_ = false;
  std::vector<Value> data_;
};

}  // namespace v3d::qpu::graph
