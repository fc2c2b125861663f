/// An Emitter makes a function of the host of a graph: for AVX-512, where a value is one register, or for
/// AVX2, where it is two.
#pragma once

#include <xbyak/xbyak.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <vector>

#include "gpu/base/memory.h"
#include "gpu/qpu/graph/graph.h"
#include "gpu/qpu/jit/graph/registers.h"

namespace v3d::qpu::jit {

enum class Width : uint8_t { kAvx512, kAvx2 };

class GraphEmitter : public Xbyak::CodeGenerator {
 public:
  /// @param code  address of the first of the graph's instructions
  /// @param is_sure  see vc4::RunCode; code for AVX2 always is
  GraphEmitter(const graph::Graph& graph, Width width, GpuAddr code, bool is_sure, void* buffer,
               size_t bytes);
  /// Throws Xbyak::Error where the buffer is too small.
  void emit();

  // For the steps of special functions (sfu_steps.h).
  Xbyak::Address doubles(double value);
  void fill(const Xbyak::Xmm& to, double value);

 private:
  using Id = graph::Id;
  using Op = graph::Op;
  using Node = graph::Node;
  using Vector = Xbyak::Xmm;

  // ---- Registers and memory of values
  Vector vector(int unit, int part) const;
  Vector scratch(int n) const;  // 0 or 1
  Xbyak::Address memory_of(Id id, int part, bool spreads);
  Xbyak::Address home_of(Id id, int part, bool spreads);
  Xbyak::Address constant(uint32_t bits);
  Xbyak::Address whole_constant(uint32_t bits);
  Xbyak::Address slot(int n, int part) const;
  int in_register(Id id);
  int new_unit();
  int result(const Node& node, bool apart = false);
  void vacate(int unit);
  void vacate_all();
  void consume(const Node& node);
  bool is_in_memory(Id id) const;

  /// The last operand of an instruction: where it is.
  struct Last {
    Id id;
    int unit;  // below 0: in memory
  };
  Last last_operand(Id id, bool spreads = true);
  template <typename Fn>
  void with(const Last& last, int part, bool spreads, Fn fn);

  // ---- Code
  void prologue();
  void decline_rows(uint32_t in, uint32_t out);
  void epilogue();
  void emit(const Node& node);
  bool emit_words(const Node& node);
  bool emit_parts(const Node& node);
  bool emit_floats(const Node& node);
  template <typename Fn>
  void binary(const Node& node, Fn fn, bool spreads = true);
  template <typename Fn>
  void unary(const Node& node, Fn fn);
  void shift(const Node& node);
  void compare(const Node& node);
  void choose(const Node& node);
  void leading_zeros(const Node& node);
  void toward_zero(const Node& node);
  void to_nearest(const Node& node);
  void float_of(const Node& node);
  void integer_of(const Node& node);
  void load_mask(const Node& node);
  void uniform(const Node& node);
  void fetch(const Node& node);
  void call_interpreter(const Node& node);
  void load_row(const Node& node);
  void store_row(const Node& node);
  void look_up(const Node& node);
  void parameter(const Node& node);
  void copy_uniform(uint32_t index, uint32_t unit, uint32_t parameter);
  void note_place(const Node& node);
  /// Nothing was done if a result so far is unsure.
  void check_sure();
  void leave_unsure();
  /// Before what cannot be done a second time.
  void be_sure();
  void mask_to(const Xbyak::Reg32& to, Id mask);
  void load(int unit, Id id);
  /// How the host computes with floats: as its program does, or as a kind of operations needs it.
  enum class Mode : uint8_t { kHost, kOwn };
  void set_mode(Mode mode);
  void reciprocal(const Node& node);
  void special(const Node& node);
  template <typename Fn>
  void on_doubles(const Node& node, int argument, Fn fn);
  void reciprocal_root(const Vector& d, const std::array<Vector, 6>& temporary);
  void find_loose_zeros();
  void unsure_results();
  void unsure_routine(Op op, Xbyak::Label& label);
  void pool();

  // ---- Where code is left
  struct Stored;
  struct Exit;
  void leave(const Node& node);
  void guards();
  void store_all(Exit& exit);
  Xbyak::Address memory_of(const Stored& what, int part);
  void load_stored(const Vector& to, const Stored& what, int part);
  void store(const Stored& what);

  const graph::Graph& graph_;
  const bool wide_;
  const int parts_;
  const GpuAddr code_;
  Uses uses_;
  Places places_;
  std::array<Id, 30> held_;  // by unit
  uint32_t locked_ = 0;      // units of operands of the node
  int num_units_;
  int num_slots_ = 0;
  Mode current_mode_ = Mode::kHost;
  /// Until something cannot be done a second time: who is unsure of a result notes it, and the function does
  /// nothing in the end.
  bool notes_unsure_;
  bool has_noted_ = false;
  size_t frame_at_ = 0;
  std::map<uint32_t, Xbyak::Label> constants_;
  std::map<uint64_t, Xbyak::Label> doubles_;
  Xbyak::Label lane_index_, lane_bits_, mode_, host_mode_, leave_, declined_, unsure_exit_;
  bool uses_lane_index_ = false, uses_lane_bits_ = false;

  struct Unsure {
    Xbyak::Label entry, back;
    Op op;
    int to;
    Last operands[2];
    std::vector<Xbyak::Address> memory;  // of the second one, by part
  };
  std::list<Unsure> unsure_;
  /// A value that others find in the thread, and where it is.
  struct Stored {
    const Node* node;
    Place place;
  };
  struct Exit {
    Xbyak::Label entry;
    const Node* node;  // kGuard or kFinish
    Mode mode;
    bool notes_unsure;
    std::vector<Stored> values;
  };
  std::list<Exit> guards_;
  std::vector<bool> zero_is_loose_;  ///< of a node: nobody sees the sign of its zeros
};

}  // namespace v3d::qpu::jit
