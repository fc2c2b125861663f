/// A BatchEmitter makes a BatchFn of the graph of a batch of a dispatch, or of a stretch of it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <vector>

#include "gpu/qpu/jit/graph/loop_addresses.h"
#include "gpu/qpu/jit/neon/emitter.h"

namespace v3d::qpu::jit::neon {

class BatchEmitter final : public Emitter {
 public:
  static bool has_code(const graph::Node& node);

  /// @param graph  of operations that have code
  explicit BatchEmitter(const graph::Graph& graph);

 private:
  /// At a time: words of a vector.
  static constexpr size_t kMostLoads = 4;

  void begin(Label& body) override;
  void before_nodes() override;
  void end() override;
  void emit(const Node& node) override;
  void emit_own(const Node& node) override { (this->*own_operation(node.op))(node); }
  Memory home_of(const Node& node) override;
  using EmitOwn = void (BatchEmitter::*)(const Node& node);
  static EmitOwn own_operation(Op op);

  void covered(const Node& node);
  void expect(const Node& node);
  void lead(const Node& node);
  void go_on(const Lead& to);

  // ---- Memory
  void load_word(const Node& node);
  void load_memory(const Node& node);
  void load_words(const Node& node, int address, int lanes, const std::array<int, kMostLoads>& to,
                  size_t count);
  void store_memory(const Node& node);
  void update_memory(const Node& node);
  template <typename Fn>
  void expect_addresses(int address, int lanes, Fn expected, Label& other);
  void is_line(int address, int lanes, Label& other);
  void is_one(int address, int lanes, Label& other);
  void first_address(int address, uint32_t offset);
  void gather_words(const Node& node, int address, int lanes, int to);
  void fetch_ahead(const Node& load);

  // ---- Words of loops
  MemOperand word_at(Id id);
  MemOperand first_lane(Id sum);
  void word_to_w9(Id sum);
  void look_at_lines();
  void load_line(const Node& node, Id sum);
  void other_lines();

  Label other_way_;  // for a thread
  Label again_, leave_;
  int64_t distances_ = -1;  // of words side by side, in the pool
  const LoopAddresses loop_addresses_;
  const std::map<Id, Id> steps_;   // steps_of_loads()
  std::map<Id, int> first_lanes_;  // of sums, words in the frame
  std::vector<int> slots_of_words_;
  /// Where words do not stand side by side, beside the code.
  struct OtherLine {
    Label entry, back;
    const Node* load;
    int sum, to;  // units
  };
  std::list<OtherLine> other_lines_;
  const Node* loaded_until_ = nullptr;  // what comes before is done
  bool expects_ = false, leads_ = false;
  std::array<Id, 4> word_addresses_;  // whose places are in registers
  size_t next_word_address_ = 0;
};

}  // namespace v3d::qpu::jit::neon
