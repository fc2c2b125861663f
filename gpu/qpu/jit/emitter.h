/// Writes host code for the nodes of a program. One Emitter per compilation; its parts:
///   registers.cc   where QPU registers live, and what calls do to them
///   operations.cc  what an operation of an ALU is in host instructions
///   words.cc       one instruction: both halves, signals, flags, writes
///   memory.cc      uniforms, varyings, ports
///   general_access.cc  loads and stores of the TMU by address
///   compiler.cc    blocks, branches, entries and exits
///
/// Host registers: rbx the Thread, rbp the Frame, r12 + r13 the next uniform of the block (r13d: its GPU
/// address), r14 GPU memory, r15 what is left of the budget, r11d unifa; k1 and k2 the flags A and B;
/// zmm7..zmm31 the QPU registers that the program uses most. All others are scratch.
#pragma once

#include <xbyak/xbyak.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "gpu/qpu/flow/flow.h"
#include "gpu/qpu/jit/frame.h"
#include "gpu/qpu/jit/program_code.h"

namespace v3d::qpu::jit {

/// A source of a host instruction: a vector register, or 64 bytes or a broadcast word in memory.
class Source {
 public:
  explicit Source(const Xbyak::Zmm& reg)
      : in_register_(true), reg_(reg), memory_(Xbyak::util::zword[Xbyak::util::rax]) {}
  explicit Source(const Xbyak::Address& memory, std::optional<uint32_t> constant = {})
      : in_register_(false), reg_(0), memory_(memory), constant_(constant) {}

  bool in_register() const { return in_register_; }
  const Xbyak::Zmm& reg() const { return reg_; }
  const Xbyak::Operand& operand() const {
    return in_register_ ? static_cast<const Xbyak::Operand&>(reg_) : memory_;
  }
  bool is(const Xbyak::Zmm& reg) const { return in_register_ && reg_.getIdx() == reg.getIdx(); }
  /// The value of all lanes, if it is a small immediate.
  std::optional<uint32_t> constant() const { return constant_; }

 private:
  bool in_register_;
  Xbyak::Zmm reg_;
  Xbyak::Address memory_;
  std::optional<uint32_t> constant_;
};

class Emitter : public Xbyak::CodeGenerator {
 public:
  using Zmm = Xbyak::Zmm;
  using Opmask = Xbyak::Opmask;
  using Reg32 = Xbyak::Reg32;
  using Reg64 = Xbyak::Reg64;
  using Label = Xbyak::Label;

  /// @param flow  of 7.1; outlives the emitter
  /// @param entry  address of the program
  /// @param buffer  for the code, which does not depend on where it stands
  Emitter(const flow::Flow& flow, uint32_t entry, void* buffer, size_t bytes);

  /// Everything, to the buffer; getSize() bytes. Throws Xbyak::Error if it is too small.
  void emit(CodeTables& made);

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
  /// A word, the same in all lanes, or 16 words, in memory behind the code.
  Xbyak::Address constant(uint32_t bits, bool broadcast = true);
  Xbyak::Address constants(const std::array<uint32_t, 16>& words);
  Xbyak::Address doubles(double value);  ///< broadcast to 8
  Xbyak::Address at(size_t offset_in_thread) const;
  Xbyak::Address in_frame(size_t offset) const;

  /// Lanes that take part; nullptr: all.
  const Opmask* exec() const { return exec_; }

  // Scratch registers. An operation may use kTemp and kTemp2, and of its operands what was unpacked.
  const Zmm kResultAdd{0}, kResultMul{1}, kUnpackedA{2}, kUnpackedB{3}, kTemp{4}, kTemp2{5}, kTemp3{6};
  const Opmask kFlagA{1}, kFlagB{2}, kExecAdd{3}, kExecMul{4}, kXAdd{5}, kXMul{6}, kScratchMask{7};
  const Reg64 kThread{Xbyak::Operand::RBX}, kFrame{Xbyak::Operand::RBP}, kUniformBase{Xbyak::Operand::R12},
      kUniforms{Xbyak::Operand::R13}, kMemory{Xbyak::Operand::R14}, kLeft{Xbyak::Operand::R15};
  const Reg32 kUnifa{Xbyak::Operand::R11D};

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
  using Pins = std::array<Pin, kFirstAccumulator>;

  void pin_registers();
  void begin_block_registers();
  Source read(Register r);
  /// The host register that is about to get a new value; empty if it lives in the Thread.
  std::optional<Zmm> begin_write(Register r);
  Xbyak::Address home(Register r) const { return at(r * sizeof(Lanes)); }
  /// Writes all lanes, or those of a mask.
  void write(Register r, const Source& value, const Opmask* exec);
  /// Brings all registers to where blocks expect them.
  void settle();
  void load_pinned();
  void store_pinned();
  /// Stores what only host registers hold, and the flags.
  void spill();
  /// A C++ function. Arguments are set; scratch results and masks of the word survive. Pinned registers are
  /// at home afterwards.
  template <typename Function>
  void call_function(Function* function) {
    call_address(reinterpret_cast<const void*>(function));
  }
  void call_address(const void* function);
  /// Before it: what functions may look at. @param uniforms  they take some
  void prepare_call(bool uniforms);

  // ---- words.cc

  struct Place {
    enum class Target : uint8_t { kNone, kRegister, kQuad, kRep, kMsf, kPort } target = Target::kNone;
    Register reg = kNoRegister;
    Effect effect = Effect::kNothing;
    bool takes_uniform = false;
    uint8_t waddr = kWaddrNop;
  };
  static Place place_of(bool magic, uint8_t waddr);
  static Place place_of(const AluHalf& half);

  /// A half between its computation and its write.
  struct Half {
    const AluHalf* in = nullptr;  ///< nullptr: nothing to do
    Place to;
    Zmm result{0};
    Opmask exec{3}, x{5};
    bool masked = false;     ///< exec counts
    bool committed = false;  ///< the result is where it belongs
  };

  void emit_node(uint32_t node);
  void emit_alu_word(const Instruction& i);
  void compute(Half& half, bool may_write_directly);
  void compute_own(Half& half, bool may_write_directly);
  void compute_by_call(Half& half);
  bool has_own_code(const AluHalf& half) const;
  void set_exec(Half& half);
  Source operand(const Operand& o);
  Source unpacked(Unpack unpack, const Source& v, const Zmm& to);
  Source half_to_float(const Source& v, bool high, const Zmm& to);
  void float_to_half(const Zmm& to, const Zmm& from);
  void compute_flag(const Half& half, const Source& a, const Source& b);
  void compare_floats(const Opmask& x, const Source& a, const Source& b, uint8_t predicate);
  void write_flags(const Half& half);
  void commit(Half& half);
  void commit(const Place& to, Pack pack, const Zmm& value, const Opmask* exec);
  Source packed(Pack pack, const Zmm& value, const Source& old);
  void fetch_signals(const Instruction& i, bool keep);
  void commit_signals(const Instruction& i, bool kept);

  // ---- memory.cc

  /// The next word of the block's uniforms.
  Xbyak::Address next_uniform();
  static bool writes_by_call(const Place& to);
  void load_unifa(const Zmm& to);
  /// Brings Thread::unifa up to date.
  void settle_unifa();
  void pop_tmu(const Zmm& to);
  void load_varying(const Zmm& to);
  void land_varying();
  void write_texture_config();
  void load_tlb_word(const Zmm& to, bool with_config);
  void commit_port(const Place& to, const Zmm& value, const Opmask* exec);
  void write_port_by_call(const Place& to, const Zmm& value, const Opmask* exec, bool takes_uniform);
  void write_unifa(const Zmm& value, const Opmask* exec);
  void push_data(const Zmm& value);
  void set_parameter(Effect effect, const Zmm& value);
  void launch_general(const Place& to, const Zmm& value, const Opmask* exec);
  void exec_to(const Reg32& to, const Opmask* exec);

  // ---- general_access.cc

  void emit_general_access();
  void emit_active_lanes(Label& refused);
  void emit_loads();
  void emit_vector_load(Label& gather);
  void emit_gathers();
  void emit_stores();
  void emit_vector_store(Label& scatter);
  void emit_scatters();
  void transpose();
  void push_word(const Zmm& value);
  /// Compares addresses in kTemp2 with ones that lie `bytes` apart; `carry` if they all agree.
  void test_stride(uint32_t bytes);

  // ---- compiler.cc

  void emit_entry();
  void emit_block(uint32_t number);
  void emit_block_exit(const flow::Block& block, uint32_t number);
  void emit_branch(const flow::Block& block, uint32_t number);
  void emit_jump_to(uint32_t block, bool lands, uint32_t behind);
  void jump_unless_taken(const Branch& b, Label& other);
  /// Leaves edx changed.
  void whole_quads_of_ecx();
  void check_uniforms(const flow::Block& block);
  void advance_uniforms();
  bool leaves_before(uint32_t node) const;
  const Branch& branch_at(int32_t index) const;

  /// Code out of the way that is emitted behind the blocks.
  void later(std::function<void()> emit) { later_.push_back(std::move(emit)); }
  /// Jumps there to leave before the current node, as if it and those behind had not been.
  Label& exit_before_node(CodeExit::Why why);
  Label& exit_with_hang();
  Label& exit_from(uint32_t exit);
  uint32_t add_exit(CodeExit::Why why, uint32_t node, uint32_t left_back, uint32_t uniform_words,
                    uint32_t unifa_words);
  void leave(uint32_t exit);
  void emit_constants();

  const flow::Flow& flow_;
  const uint32_t entry_;
  CodeTables* made_ = nullptr;
  Pins pins_;
  std::vector<Label> block_labels_;
  std::map<int32_t, uint32_t> instruction_at_;  // by index
  std::vector<std::function<void()>> later_;
  std::vector<std::unique_ptr<Label>> labels_;
  Label exit_, general_access_;
  bool uses_general_access_ = false;

  // The current node
  const flow::Block* block_ = nullptr;
  uint32_t node_ = 0;
  uint32_t paid_ = 0;        // instructions of the block, taken from the budget at its start
  uint32_t words_ = 0;       // uniforms of the block that were taken so far
  uint32_t node_words_ = 0;  // ... before the node
  /// The second uniform stream: words that were taken since Thread::unifa was brought up to date, and whether
  /// kUnifa holds that.
  struct Unifa {
    uint32_t words = 0;
    bool in_register = false;
  } unifa_, node_unifa_;  // ... before the node
  const Opmask* exec_ = nullptr;
  bool may_borrow_ = false;  // results may stay in pinned registers: the word calls nothing

  std::map<std::array<uint32_t, 16>, std::unique_ptr<Label>> vectors_;
  std::map<uint64_t, std::unique_ptr<Label>> words8_;
  std::map<uint32_t, std::unique_ptr<Label>> words4_;
};

/// Code of an operation, from unpacked operands. `to` may be the register of an operand, and is written last.
using OperationEmitter = void (*)(Emitter& e, const Xbyak::Zmm& to, const Source& a, const Source& b);
/// nullptr: it calls the interpreter's function.
OperationEmitter emitter_of(Op op);

}  // namespace v3d::qpu::jit
