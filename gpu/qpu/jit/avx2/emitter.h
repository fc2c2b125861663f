/// The emitter writes code for hosts with AVX2. A QPU register is two parts of 8 lanes; the 16 host registers
/// are a cache of parts along ways that nothing joins, and where ways join all is in memory. The parts:
///   cache.h        what host registers hold
///   registers.cc   loads, stores, which register gives way, and what calls do to them
///   operations.cc  what an operation of an ALU is in host instructions, for 8 lanes
///   sfu.cc         those of the special function unit that are more than an instruction
///   words.cc       one instruction: both halves, signals, flags, writes
///   memory.cc      uniforms, varyings, ports
///   lanes.h        moves across all lanes
///   general_access.cc  loads and stores of the TMU by address
///
/// A flag of a lane is the highest bit of a word; the flags A and B are cached as QPU registers are, and
/// stand in the Frame while the Thread has them as bits.
#pragma once

#include <xbyak/xbyak.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "gpu/qpu/jit/avx2/cache.h"
#include "gpu/qpu/jit/code/destination.h"
#include "gpu/qpu/jit/code/program_emitter.h"
#include "gpu/qpu/jit/code/source.h"

namespace v3d::qpu::jit::avx2 {

using Source = SourceOf<Xbyak::Ymm>;

class Emitter final : public ProgramEmitter {
 public:
  using Ymm = Xbyak::Ymm;

  Emitter(const flow::Flow& flow, void* buffer, size_t bytes);

  // ---- What the emitters of operations use (operations.cc)

  /// Lanes 8 * part() and on are computed.
  int part() const { return part_; }
  /// A register until the operation ends.
  Ymm scratch() { return allocate(); }
  /// The value in a register: its own, or another until the operation ends.
  Ymm in_register(const Source& source);
  void move(const Ymm& to, const Source& from);
  /// An operand of the operation, unpacked, of either part. Only of operations across lanes.
  Source operand_of_part(int operand, int part);
  Xbyak::Address constant(uint32_t bits);
  Xbyak::Address constants(const std::array<uint32_t, 16>& words);  ///< the current part of them
  Xbyak::Address doubles(double value);                             ///< 4 times the same
  void fill(const Ymm& to, double value) { vmovapd(to, doubles(value)); }
  Xbyak::Address in_thread(size_t offset) const;  ///< the current part of what stands there
  Xbyak::Address in_frame(size_t offset) const;   ///< the same
  /// The current part of a flag, its highest bits.
  Source flag(bool of_b) { return read(of_b ? kCachedFlagB : kCachedFlagA); }
  Source rtop() { return read(kCachedRtop); }
  void write_rtop(const Ymm& value) { bind(kCachedRtop, value); }
  /// All bits of the lanes whose highest bit is set.
  void spread_sign(const Ymm& to, const Source& from);
  /// All bits of the lanes of the current part whose bit is set. The register is changed.
  void spread_bits(const Ymm& to, const Reg32& bits);
  void flags_to(const Reg32& to) override { bits_to(to, kCachedFlagA); }
  /// Lanes that take part, as highest bits; nothing: all.
  std::optional<Ymm> lanes_that_store();

 private:
  /// 16 lanes between their computation and their write: in host registers that stay locked, or in the Frame.
  struct Vector {
    int host[2] = {Cache::kNone, Cache::kNone};
    size_t frame = 0;
  };
  /// Lanes that take part. Flags change after all writes of a word, so that they need not be kept.
  struct Exec {
    bool masked = false, inverted = false, of_b = false;
    std::optional<size_t> mask;  ///< in Frame::masks, instead of a flag
  };

  // ---- registers.cc

  void load_state() override;
  void load_first_state(const RegisterSet&) override { load_state(); }  // registers are in the Thread
  void store_state() override;
  void begin_block_registers(uint32_t block) override;
  bool passes_registers() const override { return true; }
  void pass_registers(uint32_t block) override;
  void load_for_entry(uint32_t block) override { reload(passed_.at(block)); }
  void settle() override;
  std::function<void()> settle_for_exit() override;
  void live_lanes_to(const Reg32& to) override;
  Xbyak::Address home(Slot slot) const;
  /// The first node from the given one on that touches a QPU register and so on; and whether it reads.
  struct Use {
    uint32_t node;
    bool reads;
  };
  static void mark_uses(Use* uses, const Use& use, const flow::Resources& resources);
  void find_uses();
  const Use& next_use(uint32_t node, int cached) const {
    return uses_[(node - block_->first) * kNumCached + static_cast<uint32_t>(cached)];
  }
  bool is_dead(Slot slot) const;
  bool must_store(Slot slot) const { return cache_.dirty(slot) && !is_dead(slot); }
  /// How far away the next use of what a host register holds is.
  uint64_t distance(int host) const;
  int farthest() const;
  void evict(int host);
  void lock(int host) { locked_ |= 1u << host; }
  bool may_give_way(int host) const { return !((locked_ | held_) >> host & 1); }
  Ymm allocate();
  void vacate_lower_half();
  void reload(const Cache& cache);
  /// The current part of a register. @param into_register  not in memory
  Source read(int cached, bool into_register = false);
  /// A part of a register, in a host register.
  Ymm read_part(int cached, int part);
  /// The current part of a register is this from now on.
  void bind(int cached, const Ymm& value);
  void write(Register r, const Source& value, const Exec& exec);
  void bits_to(const Reg32& to, int cached);
  void store_dirty();
  void store_flag_bits();
  /// Registers that were taken end with it.
  class Scope {
   public:
    explicit Scope(Emitter& e) : e_(e), before_(e.locked_) {}
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() { e_.locked_ = before_; }

   private:
    Emitter& e_;
    const uint32_t before_;
  };
  /// Afterwards all is in memory.
  void call_address(const void* function) override;

  // ---- words.cc

  /// A half between its computation and its write.
  struct Half {
    const AluHalf* in = nullptr;           ///< nullptr: nothing to do
    const Instruction* rotated = nullptr;  ///< the instruction, if that rotates the half's operands
    size_t number = 0;                     ///< 0 of add, 1 of mul
    Destination to;
    Vector result, x;
    Exec exec;
  };

  void emit_alu_word(const Instruction& i) override;
  void emit_parts(Half& add, Half& mul);
  void emit_whole(const Instruction& i, Half& add, Half& mul, bool ports);
  bool has_own_code(const AluHalf& half) const;
  bool is_across(const Half& half) const;
  static Exec exec_of(const AluHalf& half);
  void compute(Half& half);
  void compute_own(Half& half);
  void compute_by_call(Half& half);
  void multiply(const Ymm& to, const Source& a, const Source& b);
  void keep(Vector& vector, const Source& value);
  Source part_of(const Vector& vector);
  Source operand(const Half& half, const Operand& o, bool into_register);
  Source rotated(const Operand& o, const Rotation& rotation);
  Source unpacked(Unpack unpack, const Source& v);
  Source half_to_float(const Source& v, bool high);
  Ymm float_to_half(const Ymm& from);
  Ymm flag_of(const Half& half, const Source& result, const Source& a, const Source& b);
  Ymm carry_of(Carry carry, const Source& result, const Source& a, const Source& b);
  Ymm compare(const Source& a, const Source& b, uint8_t predicate);
  Ymm is_below(const Source& a, const Source& b);
  void write_flags(const Half& half);
  Ymm exec_lanes(const Exec& exec);
  void commit_part(const Destination& to, Pack pack, const Vector& value, const Exec& exec);
  void commit(const Destination& to, Pack pack, const Vector& value, const Exec& exec);
  void commit_rep(const Destination& to, Pack pack, const Vector& value, const Exec& exec);
  void blend(const Ymm& to, const Source& old, const Source& value, const Exec& exec);
  Ymm packed(Pack pack, const Source& value, const Source& old);
  void fetch_signals(const Instruction& i);
  void commit_signals(const Instruction& i, bool kept);

  // ---- memory.cc

  void load_uniform(Vector& to);
  void load_unifa(Vector& to);
  void pop_tmu(Vector& to);
  void load_varying(Vector& to);
  void load_tlb_word(Vector& to, bool with_config);
  void start_sfu(Op op, const Vector& value);
  void land(Register to, const Xbyak::RegExp& from) override;
  void exec_to(const Reg32& to, const Exec& exec);
  void commit_port(const Destination& to, const Vector& value, const Exec& exec);
  void write_port_by_call(const Destination& to, const Vector& value, const Exec& exec);
  void write_unifa(const Vector& value, const Exec& exec);
  void push_data(const Vector& value);
  void set_parameter(Effect effect, const Vector& value);
  void launch_general(const Destination& to, const Vector& value, const Exec& exec);
  void launch_in_place(const Destination& to, const Vector& value);
  void launch_texture(const Destination& to, const Vector& value, const Exec& exec);
  void call_later(const Destination& to, const Xbyak::RegExp& value, Xbyak::Label& from, Xbyak::Label& back);
  void copy_to(const Vector& value, const Reg64& base, size_t offset);

  // ---- general_access.cc

  void emit_access_in_place(const Ymm (&addresses)[2], const Ymm (&temps)[3], Label& otherwise);
  void emit_routines() override;
  void emit_general_access();
  void emit_begin_access();
  void emit_word_access();
  void emit_active_lanes(Label& refused, Label& atomics);
  void emit_atomics(Label& refused);
  void emit_common_sum(Label& differ, Label& done);
  void emit_loads();
  void emit_vector_load(Label& gather);
  void emit_gathers();
  void emit_stores();
  void emit_vector_store(Label& scatter);
  void emit_scatters();
  void test_stride(uint32_t bytes);
  void lanes_to(const Reg32& to, const Ymm& low, const Ymm& high);
  void take_words();
  void queue_slot(uint32_t behind_tail);
  void push_word(const Ymm& low, const Ymm& high);

  Cache cache_;
  std::map<uint32_t, Cache> passed_;  // what blocks begin with
  uint32_t locked_ = 0, held_ = 0;    // bits of host registers: until a Scope ends, or the word
  int part_ = 0;
  std::vector<Use> uses_;
  std::vector<uint32_t> next_exit_;  // of each node of the block, the first one from it on that may leave
  const Half* half_ = nullptr;       // whose operation is emitted
  bool in_frame_ = false;            // values in flight are in the Frame: the word calls something
  Label general_access_;
  bool uses_general_access_ = false;
};

/// Code of an operation for the current part, from unpacked operands. `to` is none of theirs.
struct OperationEmitter {
  void (*emit)(Emitter& e, const Xbyak::Ymm& to, const Source& a, const Source& b) = nullptr;
  bool across = false;  ///< looks at more than the current part
};
/// Without emit: it calls the interpreter's function.
OperationEmitter emitter_of(Op op);

}  // namespace v3d::qpu::jit::avx2
