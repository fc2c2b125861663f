/// An Emitter makes a function for AArch64 of a graph: a value is four registers of NEON. What the function
/// is of, and what it reaches, its kinds say: runs of VideoCore IV's instructions (run_emitter.h), blocks of
/// fragments (block_emitter.h), batches of vertices (vertex_emitter.h) and of dispatches (batch_emitter.h),
/// parts of threads (thread_emitter.h) and texture lookups (lookup_emitter.h).
#pragma once

#include <aarch64/macro-assembler-aarch64.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <utility>
#include <vector>

#include "gpu/qpu/graph/graph.h"
#include "gpu/qpu/jit/graph/registers.h"
#include "gpu/qpu/jit/graph/stored.h"

namespace v3d::qpu::jit::neon {

/// Libvixl's, without constants and branches that it puts between: what a branch does not reach is refused.
/// (And GCC knows whose functions these are, which it takes for the library's else, where they have no
/// names.)
class Assembler final : public vixl::aarch64::MacroAssembler {
 private:
  void BlockPools() override {}
  void ReleasePools() override {}
  void EnsureEmitPoolsFor(size_t) override {}
};

class Emitter : protected RegisterScan {
 public:
  /// A function that can stand at any address that is a multiple of 16. Empty: it would be too large.
  std::vector<uint8_t> make();

 protected:
  using Op = graph::Op;
  using Node = graph::Node;
  using Masm = vixl::aarch64::MacroAssembler;  // whose functions they are
  using Label = vixl::aarch64::Label;
  using Register = vixl::aarch64::Register;
  using Vector = vixl::aarch64::VRegister;
  using MemOperand = vixl::aarch64::MemOperand;

  /// @param graph  of operations that have code
  explicit Emitter(const graph::Graph& graph);

  // ---- What the kinds do
  /// What the function needs before its body, when all else is made.
  virtual void begin(Label& body) = 0;
  /// At the begin of the body, before any node.
  virtual void before_nodes() {}
  /// What stands behind the nodes, to the return and beyond.
  virtual void end() = 0;
  /// Operations that are not of values alone.
  virtual void emit_own(const Node& node) = 0;
  struct Memory {
    Register base;
    int64_t offset;
  };
  /// Where a source stands that is_home().
  virtual Memory home_of(const Node& node) = 0;

  // ---- Registers and memory of values
  Vector part(int unit, int p);
  static Vector scratch(int n);  // 0 to 2
  static Vector zero();          // of runs; another scratch register of blocks
  Memory in_pool(int64_t offset);
  Memory memory_of(Id id, const Place& place);
  Memory memory_of(Id id) { return memory_of(id, places_[id]); }
  static MemOperand operand_of(const Memory& memory) { return MemOperand(memory.base, memory.offset); }
  enum class Way : uint8_t { kLoad, kStore };
  void move(Way way, const Vector& first, const Vector& second, const Memory& memory);
  void move(Way way, int unit, const Memory& memory);
  void move_all(Way way);  // all registers of vectors, in the frame
  /// A value as an instruction takes it: a unit, or one register with a word in all lanes.
  struct Operand {
    int unit;
    Vector spread;
  };
  Operand operand(Id id, int scratch_for_word);
  Vector at(const Operand& o, int p) { return o.unit >= 0 ? part(o.unit, p) : o.spread; }
  void store_parts(const Operand& from, const Memory& to);
  void store_to(Id id, const Place& place, const Memory& to);
  void mask_to(const Register& to, Id mask, const Place& place);
  /// What stands behind a node that leaves(), at its offsets from there. Changes w10.
  void store_behind(const Node& node, const Register& base);
  void spread_memory(int unit, const MemOperand& from);
  void load(int unit, Id id) override;
  void save(int unit, int slot) override;
  bool is_word(Id id) const;
  void spread(const Vector& to, uint32_t bits);
  void spread_word(const Vector& to, Id id);
  int64_t pooled(uint64_t low, uint64_t high);
  int64_t table(int64_t& at, uint32_t (*word_of)(uint32_t lane));
  int64_t lane_index();
  /// Of the pixels of a block. @param at  as of table()
  int64_t columns_of_block(int64_t& at);
  int64_t rows_of_block(int64_t& at);
  int64_t lane_bits();
  void mask_from(const Node& node, const MemOperand& bits);
  /// Two parts of a value, in registers.
  std::pair<Vector, Vector> pair_of(Id id, const Place& place, int p, int scratch_number);
  void bytes_of(const Vector& to, const Vector& other, Id mask, const Place& place);

  // ---- Code
  void save_registers();
  void restore_registers();
  void call(const void* function);
  void emit(const Node& node) override;
  using Emit = void (Emitter::*)(const Node& node);
  struct LaneOperation;
  static const LaneOperation* lane_operation(Op op);
  static Emit other_operation(Op op);
  void lanes(const Node& node, const LaneOperation& operation);
  void nothing(const Node&) {}
  void shift(const Node& node);
  void shift_by(const Node& node, uint32_t bits);
  /// In place of which operand a result comes of which each lane is one of two.
  enum class Instead : uint8_t { kNone, kMask, kA, kB };
  struct Chosen {
    int to;
    Instead instead;
  };
  Chosen result_of_two(const Node& node, Id a, const Operand& x, Id b, const Operand& y, Id mask);
  void choose(const Node& node);
  void toward_zero(const Node& node);
  void check(int unit, uint32_t limit, Label* unsure);
  void reciprocal(const Node& node);
  class Doubles;
  void special(const Node& node);
  void integer_of(const Node& node);
  bool gives_other_nans(const Node& node) const;
  void check_nans(const Node& node, int to, const Operand& a, const Operand& b);
  void limit(const Node& node);
  void round(const Node& node);
  void convert_half(const Node& node);
  void shuffle_quads(const Node& node);
  template <typename NumberOf>
  void select_bytes(const Node& node, NumberOf number_of);
  void one_byte(const Node& node);
  void srgb_value(const Node& node);
  void deposit(const Node& node);
  void deposit_runs(const Vector& to, const Vector& from, uint32_t mask);
  void byte_products(const Node& node);
  void half_products(const Node& node);

  // ---- lookups.cc
  struct PartialGather {
    Label entry, back;
    int from, to;
    uint32_t offset;
  };
  Memory texture_word(const Node& node);
  void level_word(const Node& node);
  void gather(const Node& node);
  void lanes_of_gather(Id mask);
  void bits_of_lanes(Id mask, const Place& place);
  Register base_of_gather(uint32_t offset);
  void gather_whole(int from, int to, uint32_t offset);
  void gather_lanes(PartialGather& partial);
  void partial_gathers();
  void any_of(Id mask);
  void pick_lanes(const Node& node);
  void least_of_lanes(const Node& node);
  void bytes_of_lanes(const Vector& d, const Vector& lanes);
  /// For all lanes, or those of a mask in a unit.
  static constexpr int kAll = -1;
  int unit_of_lanes(Id mask);
  template <typename Fn>
  void for_each_lane(int lanes, Fn fn);
  void lane_address(int address, int p, int lane, uint32_t offset);
  void gather_lanes_of(int lanes, int from, int to, uint32_t offset);
  void scatter_words(const Node& node, int address, int data, int lanes);
  void keep(const Node& node);
  void kept(const Node& node) { take_kept(node); }
  void when(const Node& node);
  void again(const Node& node);
  void resume(const Node& node);

  /// How the host computes with floats: as its program does, or toward zero and without denormals.
  enum class Mode : uint8_t { kAny, kHost, kOwn };
  void set_mode(Mode mode);

  // ---- Results that the host does not give
  struct Unsure {
    Label entry, back;
    Op op;
    int to;
    struct {
      int unit;  // below 0: a word
      Id id;
    } operands[2];
  };
  Unsure& unsure_of(const Node& node, int to, const Operand& a, const Operand& b);
  void unsure_results();
  void unsure_routine(Op op, Label& label);
  void first_nans(const Unsure& unsure);

  Assembler masm_;
  const std::vector<bool> zero_is_loose_, nan_is_loose_, is_quiet_;
  bool uniforms_are_spread_ = false;  // each stands there at least four times
  uint32_t used_ = 0;                 // units
  bool has_zero_ = false;             // in zero()
  Mode current_mode_ = Mode::kHost;
  Label pool_label_;
  std::vector<uint64_t> pool_;

 private:
  std::map<std::pair<uint64_t, uint64_t>, int64_t> pooled_;
  int64_t lane_index_ = -1, lane_bits_ = -1;
  std::list<Unsure> unsure_;
  Id gathered_ = graph::kNoNode;  // the mask whose lanes are in the frame
  Id gathered_before_region_ = graph::kNoNode;
  std::list<Label> repeated_, resumed_;       // begins and ends of regions
  std::list<PartialGather> partial_gathers_;  // where not all lanes are gathered
};

}  // namespace v3d::qpu::jit::neon
