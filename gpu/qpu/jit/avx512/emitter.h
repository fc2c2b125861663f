/// The emitter writes code for hosts with AVX-512; its parts:
///   registers.cc   where QPU registers live, and what calls do to them
///   operations.cc  what an operation of an ALU is in host instructions
///   sfu.cc         those of the special function unit that are more than an instruction
///   words.cc       one instruction: both halves, signals, flags, writes
///   memory.cc      uniforms, varyings, ports
///   general_access.cc  loads and stores of the TMU by address
///
/// Host registers beside those of ProgramEmitter: k1 and k2 the flags A and B; zmm7..zmm31 the QPU registers
/// that the program uses most. All other vector and mask registers are scratch.
#pragma once

#include <xbyak/xbyak.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "gpu/qpu/flow/flow.h"
#include "gpu/qpu/jit/code/destination.h"
#include "gpu/qpu/jit/code/program_emitter.h"
#include "gpu/qpu/jit/code/source.h"

namespace v3d::qpu::jit::avx512 {

using Source = SourceOf<Xbyak::Zmm>;

class Emitter final : public ProgramEmitter {
 public:
  using Zmm = Xbyak::Zmm;
  using Opmask = Xbyak::Opmask;

  Emitter(const flow::Flow& flow, void* buffer, size_t bytes);

  // ---- What the emitters of operations use (operations.cc)

  /// One host instruction.
  using Binary = void (*)(Emitter& e, const Zmm& to, const Zmm& a, const Xbyak::Operand& b);
  /// `to` = a op b, in this order.
  void ordered(Binary op, const Zmm& to, const Source& a, const Source& b);
  /// ... in either order.
  void commutative(Binary op, const Zmm& to, const Source& a, const Source& b);
  /// The value in a register: its own, or `scratch`.
  Zmm in_register(const Source& source, const Zmm& scratch);
  void move(const Zmm& to, const Source& from);
  /// A word, the same in all lanes, or 16 words, in memory after the code.
  Xbyak::Address constant(uint32_t bits, bool broadcast = true);
  Xbyak::Address constants(const std::array<uint32_t, 16>& words);
  Xbyak::Address doubles(double value);
  void fill(const Zmm& to, double value) { vbroadcastsd(to, ptr[rip + double_behind(value)]); }
  Xbyak::Address at(size_t offset_in_thread) const;
  Xbyak::Address in_frame(size_t offset) const;

  /// Lanes that take part; nullptr: all.
  const Opmask* exec() const { return exec_; }

  // Scratch registers. An operation may use kTemp and kTemp2, and of its operands what was unpacked.
  const Zmm kResultAdd{0}, kResultMul{1}, kUnpackedA{2}, kUnpackedB{3}, kTemp{4}, kTemp2{5}, kTemp3{6};
  const Opmask kFlagA{1}, kFlagB{2}, kExecAdd{3}, kExecMul{4}, kXAdd{5}, kXMul{6}, kScratchMask{7};

 private:
  static constexpr int kFirstPinned = 7, kNumPinned = 25;

  // ---- registers.cc

  /// Of a QPU register that has a host register, at a place in the code.
  struct Pin {
    int zmm = -1;             ///< -1: the register lives in the Thread
    bool in_register = true;  ///< the host register holds its value
    bool at_home = false;     ///< the Thread does
    bool written = false;     ///< somewhere in the program
  };
  using Pins = std::array<Pin, kNumRegisters>;

  void pin_registers();
  void load_state() override;
  void load_first_state(const RegisterSet& live) override;
  void load_registers(const RegisterSet& live);
  void test_mask();
  void store_state() override;
  void begin_block_registers(uint32_t block) override;
  bool passes_registers() const override { return false; }  // all blocks begin with the same ones
  void pass_registers(uint32_t) override {}
  void load_for_entry(uint32_t) override {}
  /// Brings all registers to where blocks expect them.
  void settle() override;
  std::function<void()> settle_for_exit() override;
  void flags_to(const Reg32& to) override { kmovw(to, kFlagA); }
  void live_lanes_to(const Reg32& to) override;
  Source read(Register r);
  /// The host register that is about to get a new value; empty if it lives in the Thread.
  std::optional<Zmm> begin_write(Register r);
  Xbyak::Address home(Register r) const { return at(r * sizeof(Lanes)); }
  /// Writes all lanes, or those of a mask.
  void write(Register r, const Source& value, const Opmask* exec);
  /// Stores what only host registers hold, and the flags.
  void spill();
  void keep_at_home(Register r);
  /// Scratch results and masks of the word survive. Pinned registers are at home afterwards.
  void call_address(const void* function) override;

  // ---- words.cc

  /// A half between its computation and its write.
  struct Half {
    const AluHalf* in = nullptr;           ///< nullptr: nothing to do
    const Instruction* rotated = nullptr;  ///< the instruction, if that rotates the half's operands
    Destination to;
    Zmm result{0};
    Opmask exec{3}, x{5};
    bool masked = false;     ///< exec counts
    bool committed = false;  ///< the result is where it belongs
  };

  void emit_alu_word(const Instruction& i) override;
  void compute(Half& half, bool may_write_directly);
  void compute_own(Half& half, bool may_write_directly);
  void compute_by_call(Half& half);
  void multiply(const Zmm& to, const Source& a, const Source& b);
  bool has_own_code(const AluHalf& half) const;
  void set_exec(Half& half);
  std::optional<Rotation> rotation_of(const Half& half, const Operand& o) const;
  /// @param to  for what is rotated
  Source operand(const Half& half, const Operand& o, const Zmm& to);
  void rotate(const Zmm& to, const Operand& o, const Rotation& rotation);
  Source unpacked(Unpack unpack, const Source& v, const Zmm& to);
  Source half_to_float(const Source& v, bool high, const Zmm& to);
  void float_to_half(const Zmm& to, const Zmm& from);
  void compute_flag(const Half& half, const Source& a, const Source& b);
  void compare_floats(const Opmask& x, const Source& a, const Source& b, uint8_t predicate);
  void write_flags(const Half& half);
  void commit(Half& half);
  void commit(const Destination& to, Pack pack, const Zmm& value, const Opmask* exec);
  Source packed(Pack pack, const Zmm& value, const Source& old);
  void fetch_signals(const Instruction& i, bool keep);
  void commit_signals(const Instruction& i, bool kept);

  // ---- memory.cc

  void load_unifa(const Zmm& to);
  void pop_tmu(const Zmm& to);
  void load_varying(const Zmm& to);
  void start_sfu(Op op, const Zmm& value);
  void land(Register to, const Xbyak::RegExp& from) override;
  void load_tlb_word(const Zmm& to, bool with_config);
  /// Whether writing there calls a function that leaves no register.
  bool calls(const Destination& to) const;
  void commit_port(const Destination& to, const Zmm& value, const Opmask* exec);
  void write_port_by_call(const Destination& to, const Zmm& value, const Opmask* exec, bool takes_uniform);
  void write_unifa(const Zmm& value, const Opmask* exec);
  void push_data(const Zmm& value);
  void set_parameter(Effect effect, const Zmm& value);
  void find_color_writes();
  void begin_color(const Destination& to, const Zmm& value, const Opmask* exec, bool surely);
  void halves_to_pixels(const Zmm& value);
  void end_color(const Destination& to, const Zmm& value);
  void store_pixels(bool masked);
  void count_quads();
  void pass_depth(const Destination& to, const Zmm& value, const Opmask* exec);
  void call_later(const Destination& to, const Zmm& value, const Opmask* exec, Label& from, Label& back);
  void launch_general(const Destination& to, const Zmm& value, const Opmask* exec);
  void launch_texture(const Destination& to, const Zmm& value, const Opmask* exec);
  void exec_to(const Reg32& to, const Opmask* exec);

  // ---- general_access.cc

  void emit_access_in_place(bool configured, Label& otherwise);
  void emit_routines() override;
  void emit_general_access();
  void emit_begin_access();
  void emit_word_access();
  void emit_active_lanes(Label& refused, Label& atomics);
  void emit_atomics(Label& refused);
  void emit_common_sum(Label& differ);
  void index_from_middle();
  void emit_loads();
  void emit_vector_load(Label& gather);
  void emit_gathers();
  void emit_stores();
  void emit_vector_store(Label& scatter);
  void emit_scatters();
  void push_word(const Zmm& value);
  /// Compares addresses in kTemp2 with ones that lie `bytes` apart; `carry` if they all agree.
  void test_stride(uint32_t bytes);

  Pins pins_;
  Label general_access_;
  bool uses_general_access_ = false;
  uint32_t num_lookups_ = 0;  // in the code of the program
  const Opmask* exec_ = nullptr;
  /// Nodes that write the first of two words of the default access, surely (true) or perhaps.
  std::map<uint32_t, bool> color_begins_;
  bool may_borrow_ = false;  // results may stay in pinned registers: the word calls nothing
};

/// Code of an operation, from unpacked operands. `to` may be the register of an operand, and is written last.
using OperationEmitter = void (*)(Emitter& e, const Xbyak::Zmm& to, const Source& a, const Source& b);
/// nullptr: it calls the interpreter's function.
OperationEmitter emitter_of(Op op);

}  // namespace v3d::qpu::jit::avx512
