/// Scratch is memory in which a thread keeps values that registers have no room for, and arrays (Mesa's
/// v3d_setup_spill_base): lane e of thread t has the word at `base + t * K + e * 4 + c`, where c says which.
/// What it stored there is what it loads, so that a graph needs no memory.
///
/// That counts on nobody else who looks: threads have parts of their own, as long as K holds all that one
/// reaches, each c is a line of 64 bytes, and what a thread finds there it has stored itself, and loads
/// again. What does not keep to this, is refused.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "gpu/qpu/graph/value.h"

namespace v3d::qpu::graph {

class Scratch {
 public:
  explicit Scratch(Graph& graph) : graph_(graph) {}

  /// Words that the next access stores.
  void add_data(Value v) { data_.push_back(v); }
  bool has_data() const { return !data_.empty(); }
  /// An access of which no more is wanted.
  void skip() { data_.clear(); }

  // ---- Configuration: a byte for each access, then ones

  void configure(uint32_t word) { config_ = word; }
  bool is_configured() const { return config_ != ~0u; }
  /// Of the access that follows.
  uint8_t take_configuration();

  /// @param exec   lanes that write the address
  /// @param loaded  set, or no node: it was a store
  /// @return  null, or why it is none
  const char* access(uint8_t configuration, Value address, Value exec, Value* loaded);
  /// Else somebody may want what was stored.
  bool is_all_loaded() const;

 private:
  /// `constant + t * of_thread + e * of_lane`.
  struct Affine {
    bool is = false;
    uint32_t constant = 0, of_thread = 0, of_lane = 0;
  };
  const Affine& affine(Id id);
  Affine affine_of(const Node& node);
  const char* check(const Affine& address);

  Graph& graph_;
  std::vector<Value> data_;
  uint32_t config_ = ~0u;
  std::map<Id, Affine> known_;
  struct Line {
    Value value;
    bool is_loaded = false;
  };
  std::map<uint32_t, Line> stored_;                // by the constant part of its address
  uint32_t first_ = 0, last_ = 0, of_thread_ = 0;  // of all accesses; the last one is 0 where there are none
};

}  // namespace v3d::qpu::graph
