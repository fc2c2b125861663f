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

class GraphEmitter : public Xbyak::CodeGenerator, private RegisterScan {
 public:
  /// @param code  address of the chunk that the graph's instructions are of
  GraphEmitter(const graph::Graph& graph, Width width, GpuAddr code, void* buffer, size_t bytes);
  /// Throws Xbyak::Error where the buffer is too small.
  void emit();

  // For the steps of special functions (sfu_steps.h).
  Xbyak::Address doubles(double value);
  void fill(const Xbyak::Xmm& to, double value);

 private:
  using Op = graph::Op;
  using Node = graph::Node;
  using Vector = Xbyak::Xmm;

  // ---- Registers and memory of values
  Vector vector(int unit, int part) const;
  Vector scratch(int n) const;  // 0 or 1
  Xbyak::Address memory_of(Id id, int part, bool spreads);
  Xbyak::Address constant(uint32_t bits);
  Xbyak::Address whole_constant(uint32_t bits);
  Xbyak::Address slot(int n, int part) const;
  void load(int unit, Id id) override;
  void save(int unit, int n) override;

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
  void epilogue();
  void emit(const Node& node) override;
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
  void load_mask(const Node& node);
  void uniform(const Node& node);
  void fetch(const Node& node);
  void store(const Node& node);
  void store_mask(const Node& node);
  void call_interpreter(const Node& node);
  void write_port(const Node& node);
  void tmu_parameter(const Node& node);
  void load_tmu(const Node& node);
  void note_place(const Node& node);
  void mask_to(const Xbyak::Reg32& to, Id mask);
  /// How the host computes with floats: as its program does, or as a kind of operations needs it.
  enum class Mode : uint8_t { kHost, kOwn };
  void set_mode(Mode mode);
  void reciprocal(const Node& node);
  void special(const Node& node);
  template <typename Fn>
  void on_doubles(const Node& node, int argument, Fn fn);
  void reciprocal_root(const Vector& d, const std::array<Vector, 6>& temporary);
  void unsure_results();
  void failures();
  void unsure_routine(Op op, Xbyak::Label& label);
  void pool();

  const bool wide_;
  const int parts_;
  const GpuAddr code_;
  uint32_t uniform_bytes_ = 0;  // that were read since r12 was right
  Mode current_mode_ = Mode::kHost;
  const bool rounds_;
  size_t frame_at_ = 0;
  std::map<uint32_t, Xbyak::Label> constants_;
  std::map<uint64_t, Xbyak::Label> doubles_;
  Xbyak::Label lane_index_, lane_bits_, mode_, leave_, declined_;
  bool uses_lane_index_ = false, uses_lane_bits_ = false;

  struct Unsure {
    Xbyak::Label entry, back;
    Op op;
    int to;
    Last operands[2];
    std::vector<Xbyak::Address> memory;  // of the second one, by part
  };
  std::list<Unsure> unsure_;
  /// Where a thread hangs, which the interpreter finds once more.
  struct Failure {
    Xbyak::Label entry;
    const Node* node;
  };
  std::list<Failure> failures_;
  const std::vector<bool> zero_is_loose_;
};

}  // namespace v3d::qpu::jit
