/// A GraphEmitter makes a function of the host of a graph: for AVX-512, where a value is one register, or for
/// AVX2, where it is two, or one of half a value, of functions that do both halves one after the other. Of
/// AVX-512 it may be two as well, of two instances of the graph side by side. What the function is of, and
/// what it reaches, its kinds say: runs of VideoCore IV's instructions (run_emitter.h), blocks of fragments
/// (block_emitter.h), batches of vertices (vertex_emitter.h) and of dispatches (batch_emitter.h), texture
/// lookups (lookup_emitter.h).
#pragma once

#include <xbyak/xbyak.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <vector>

#include "gpu/base/lanes.h"
#include "gpu/qpu/graph/graph.h"
#include "gpu/qpu/jit/graph/registers.h"
#include "gpu/qpu/jit/graph/stored.h"

namespace v3d::qpu::jit {

/// Halves: without operations that pick lanes of others than their quads.
enum class Width : uint8_t { kAvx512, kAvx512Pairs, kAvx2, kAvx2Halves };

/// Whether the processor's gathers of AVX2 take longer than a load for each lane.
bool gathers_are_slow();

class GraphEmitter : public Xbyak::CodeGenerator, protected RegisterScan {
 public:
  /// Throws Xbyak::Error where the buffer is too small.
  void emit();

  // For the steps of special functions (sfu_steps.h).
  Xbyak::Address doubles(double value);
  void fill(const Xbyak::Xmm& to, double value);

 protected:
  using Op = graph::Op;
  using Node = graph::Node;
  using Vector = Xbyak::Xmm;

  /// @param units  registers, or pairs of them, that hold values
  GraphEmitter(const graph::Graph& graph, Width width, int units, void* buffer, size_t bytes);

  // ---- What the kinds do
  virtual void begin() = 0;
  virtual void end() = 0;
  /// Operations that are not of values alone.
  virtual void emit_own(const Node& node) = 0;
  /// Where a source stands that is_home(). @param spreads  of a word: as what an instruction spreads
  virtual Xbyak::Address home_of(const Node& node, int part, bool spreads) = 0;
  /// Data behind the code.
  virtual void own_data() {}
  /// Whether operations of V3D 2.1 may be among the nodes: only they need another mode of the host's floats.
  virtual bool has_own_mode() const = 0;

  // ---- Registers and memory of values
  Vector vector(int unit, int part) const;
  Vector scratch(int n) const;  // 0 or 1
  Xbyak::Address memory_of(Id id, int part, bool spreads);
  Xbyak::Address stands_at(Id id, int part, bool spreads);
  Xbyak::Address constant(uint32_t bits);
  Xbyak::Address slot(int n, int part) const;
  bool is_word(Id id) const;
  bool is_everywhere(Id id) const;
  bool are_halves() const { return !wide_ && parts_ == 1; }
  void load(int unit, Id id) override;
  void save(int unit, int n) override;
  /// All of them, around a call, in the frame. @param pushed  bytes since the frame was made
  void save_vectors(int pushed);
  void restore_vectors(int pushed);
  template <typename Fn>
  void for_each_vector(int pushed, Fn fn);
  /// Of pairs those of the second one stand above.
  void mask_to(const Xbyak::Reg32& to, Id mask);
  void mask_from(const Node& node, const Xbyak::Address& bits) { mask_from(node, bits, bits); }
  /// @param second  of pairs
  void mask_from(const Node& node, const Xbyak::Address& bits, const Xbyak::Address& second);
  /// A word for each lane, behind the code.
  template <typename WordOf>
  void table(Xbyak::Label& label, WordOf word_of) {
    constexpr size_t kBytes = kLanes * sizeof(uint32_t);
    align(kBytes);
    L(label);
    for (uint32_t lane = 0; lane < kLanes; ++lane) dd(word_of(lane));
  }

  /// The last operand of an instruction: where it is.
  struct Last {
    Id id;
    int unit;  // below 0: in memory
  };
  Last last_operand(Id id, bool spreads = true);
  template <typename Fn>
  void with(const Last& last, int part, bool spreads, Fn fn);

  /// What stands behind a node that leaves(), at its offsets from there. Changes eax, ecx and edx.
  void store_behind(const Node& node, const Xbyak::Reg64& base);
  void store_mask(const Stored& what, const Xbyak::Address& to);
  void load_stored(const Vector& to, const Stored& what, int part);

  // ---- Code
  void emit(const Node& node) override;
  bool emit_words(const Node& node);
  bool emit_parts(const Node& node);
  bool emit_floats(const Node& node);
  bool emit_nearest_floats(const Node& node);
  template <typename Fn>
  void binary(const Node& node, Fn fn, bool spreads = true);
  template <typename Fn>
  void unary(const Node& node, Fn fn);
  void multiply_halves(const Node& node);
  void pack_bytes(const Node& node);
  void shift(const Node& node);
  void compare(const Node& node);
  void compare_floats(const Node& node, uint8_t predicate);
  void choose(const Node& node);
  void leading_zeros(const Node& node);
  void toward_zero(const Node& node);
  void to_nearest(const Node& node);
  void float_of(const Node& node);
  void nearest_integer(const Node& node);
  void convert_half(const Node& node);
  const Node* upper_half_behind(const Node& node) const;
  void both_halves(const Node& lower, const Node& upper);
  void integer_of(const Node& node);

  // ---- lookup_operations.cc
  bool emit_lookups(const Node& node);
  void one_byte(const Node& node);
  void one_byte(const Vector& to, const Vector& from, uint32_t number);
  void srgb_value(const Node& node);
  void permuted_srgb_value(const Node& node);
  void deposit(const Node& node);
  void deposit_wide(const Node& node);
  void deposit_by_runs(const Vector& to, const Vector& from, uint32_t mask);
  Xbyak::Address texture_word(const Node& node, bool spreads);
  void level_word(const Node& node);
  void pick_lanes(const Node& node);
  void pick_lanes(int to, int part, int index, const Xbyak::Operand& low, const Xbyak::Operand& high);
  void least_of_lanes(const Node& node);

  // ---- gathers.cc
  void gather(const Node& node);
  void lanes_of_gather(Id mask);
  void gather_wide(const Node& node);
  void gather_narrow(const Node& node);
  /// Of AVX2.
  struct Gather {
    int from = -1, to = -1;
    int second = -1;                          // where the words behind those go, if somebody wants them
    int offset = 0;                           // in bytes
    int lanes = -1;                           // where the mask is; below 0: in memory
    std::vector<Xbyak::Address> memory = {};  // then, by part
  };
  struct PartialGather {
    Xbyak::Label entry, back;
    Gather gather;
  };
  const Node* gather_behind(const Node& node) const;
  void gather_by_host(const Gather& of);
  void load_lanes(const Gather& of);
  template <typename Fn>
  void for_each_lane(const Xbyak::Xmm& indices, bool are_signed, Fn load);
  template <typename Fn>
  void load_words(const Vector& to, const Vector& indices, bool are_signed, Fn address_of);
  void load_words(const Vector& to, const Vector& from, int offset);
  void load_from_table(const Vector& to, const Vector& indices, const Xbyak::Reg64& table);
  void load_pairs(const Vector& first, const Vector& second, const Vector& from, int offset);
  void partial_gathers();
  void moved(int part, int address, uint32_t offset);
  void scatter_words(const Node& node, int address, int data);

  // ---- lookup_operations.cc
  void lookup_data();
  bool emit_regions(const Node& node);
  void keep(const Node& node);
  void when(const Node& node);
  void again(const Node& node);
  void resume();

  /// How the host computes with floats: as its program does, or as a kind of operations needs it.
  enum class Mode : uint8_t { kHost, kOwn };
  void set_mode(Mode mode);
  void reciprocal(const Node& node);
  void special(const Node& node);
  template <typename Fn>
  void on_doubles(const Node& node, int argument, Fn fn);
  void reciprocal_root(const Vector& d, const std::array<Vector, 6>& temporary);
  void note_unsure();
  void unsure_results();
  void unsure_routine(Op op, Xbyak::Label& label);
  void pool();

  const bool wide_;
  const bool are_pairs_;
  const int parts_;  // of a value: registers
  const int bytes_of_part_;
  /// Instead of gathers: of AVX2 loads, where all lanes take part; of AVX-512 permutations, of small tables.
  bool avoids_gathers_ = false;
  bool uniforms_are_spread_ = false;  // each stands there as often as a vector of AVX2 wants it
  Mode current_mode_ = Mode::kHost;
  /// Until something cannot be done a second time: who is unsure of a result notes it, and the function does
  /// nothing in the end.
  bool notes_unsure_ = false;
  bool has_noted_ = false;
  size_t frame_at_ = 0;
  std::map<uint32_t, Xbyak::Label> constants_;
  std::map<uint64_t, Xbyak::Label> doubles_;
  std::map<uint32_t, Xbyak::Label> deposits_;   // by mask: 32 halves
  Xbyak::Label second_byte_, third_byte_;       // of words, for shuffles of bytes
  Xbyak::Label bytes_of_lanes_;                 // the same, of four lanes with a channel after the other
  Xbyak::Label halves_of_lanes_;                // of four words, the lower halves and then the upper ones
  Id left_out_ = graph::kNoNode;                // a shift: what needs it is done without it
  Id lanes_of_gather_ = graph::kNoNode;         // of AVX-512: whose bits are in k2, and k4; of AVX2 in r10d
  std::list<Xbyak::Label> repeated_, resumed_;  // begins and ends of regions
  Id lanes_before_region_ = graph::kNoNode;
  Xbyak::Label lane_index_, lane_bits_, mode_, host_mode_;
  bool uses_lane_index_ = false, uses_lane_bits_ = false, uses_bytes_ = false, packs_bytes_ = false,
       uses_halves_ = false;

  struct Unsure {
    Xbyak::Label entry, back;
    Op op;
    int to;
    Last operands[2];
    std::vector<Xbyak::Address> memory;  // of the second one, by part
  };
  std::list<Unsure> unsure_;
  std::list<PartialGather> partial_gathers_;
  const std::vector<bool> zero_is_loose_;
};

}  // namespace v3d::qpu::jit
