/// A BatchEmitter makes a function of the host of the graph of a batch of a dispatch, or of a stretch of it:
/// a BatchFn.
#pragma once

#include <array>
#include <cstddef>
#include <list>
#include <map>
#include <vector>

#include "gpu/qpu/jit/graph/emitter.h"
#include "gpu/qpu/jit/graph/loop_addresses.h"

namespace v3d::qpu::jit {

class BatchEmitter final : public GraphEmitter {
 public:
  BatchEmitter(const graph::Graph& graph, Width width, void* buffer, size_t bytes);
  using GraphEmitter::emit;

 private:
  /// At a time: words of a vector.
  static constexpr size_t kMostLoads = 4;

  void begin() override;
  void end() override;
  void emit(const Node& node) override;
  void emit_own(const Node& node) override;
  Xbyak::Address home_of(const Node& node, int part, bool spreads) override;
  bool has_own_mode() const override { return false; }

  void own_data() override;

  void expect(const Node& node);
  void lead(const Node& node);
  void load_word(const Node& node);
  void load_memory(const Node& node);
  void load_words(const Node& node, int address, int lanes, const std::array<int, kMostLoads>& to,
                  size_t count);
  void load_line(const Node& node, Id sum);
  void look_at_lines();
  void other_lines();
  void store_memory(const Node& node);
  void update_memory(const Node& node);
  void load_bases();
  int unit_of_lanes(Id mask);
  void expect_addresses(int address, int lanes, const Vector& second, Xbyak::Label& other);
  void is_line(int address, int lanes, Xbyak::Label& other);
  Xbyak::Address word_at(Id id);
  Xbyak::Address first_lane(Id sum);
  void word_to_eax(Id sum);
  void fetch_ahead(const Node& load);
  void is_one(int address, int lanes, Xbyak::Label& other);
  void first_address(int address, uint32_t offset);
  std::vector<Xbyak::Reg64> saved() const;
  void gather_words(const Node& node, int address, int lanes, int to);

  Xbyak::Label other_way_;  // for a thread
  Xbyak::Label again_, leave_;
  Xbyak::Label distances_;  // of words side by side
  bool uses_distances_ = false;
  const LoopAddresses loop_addresses_;
  const std::map<Id, Id> steps_;   // steps_of_loads()
  std::map<Id, int> first_lanes_;  // of sums, words in the frame
  std::vector<int> slots_of_words_;
  /// Where words do not stand side by side, beside the code.
  struct OtherLine {
    Xbyak::Label entry, back;
    const Node* load;
    int sum, to;  // units
  };
  std::list<OtherLine> other_lines_;
  const Node* loaded_until_ = nullptr;  // what comes before is done
  bool expects_ = false, leads_ = false;
  bool loads_words_ = false;
  std::array<Id, 4> word_addresses_;  // whose distances are in registers
  size_t next_word_address_ = 0;
};

}  // namespace v3d::qpu::jit
