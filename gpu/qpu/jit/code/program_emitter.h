/// A ProgramEmitter writes host code for the nodes of a program. Here stands what does not depend on the
/// host's vectors: blocks, branches, entries, exits, the budget and the uniform stream. A back end (avx512/,
/// avx2/) says where QPU registers live and what an instruction is.
///
/// Host registers of all back ends: rbx the Thread, rbp the Frame, r12 + r13 the next uniform of the block
/// (r13d: its GPU address), r14 GPU memory, r15 what is left of the budget, r11d unifa. All others are
/// scratch.
#pragma once

#include <xbyak/xbyak.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "gpu/chip/generation.h"
#include "gpu/qpu/flow/flow.h"
#include "gpu/qpu/jit/code/frame.h"
#include "gpu/qpu/jit/code/program_code.h"

namespace v3d::qpu::jit {

struct Destination;

class ProgramEmitter : public Xbyak::CodeGenerator {
 public:
  using Reg32 = Xbyak::Reg32;
  using Reg64 = Xbyak::Reg64;
  using Label = Xbyak::Label;

  /// @param flow  outlives the emitter
  /// @param buffer  for the code, which does not depend on where it stands, nor on where the program does
  ProgramEmitter(const flow::Flow& flow, void* buffer, size_t bytes);

  /// Everything, to the buffer; getSize() bytes. Throws Xbyak::Error if it is too small.
  void emit(CodeTables& made);

  const Reg64 kThread{Xbyak::Operand::RBX}, kFrame{Xbyak::Operand::RBP}, kUniformBase{Xbyak::Operand::R12},
      kUniforms{Xbyak::Operand::R13}, kMemory{Xbyak::Operand::R14}, kLeft{Xbyak::Operand::R15};
  const Reg32 kUnifa{Xbyak::Operand::R11D};

 protected:
  // ---- What a back end says

  /// Where blocks expect QPU registers and flags, from where the Thread has them; and back.
  virtual void load_state() = 0;
  virtual void store_state() = 0;
  /// load_state() where the program begins: of registers, those that it reads need their values.
  virtual void load_first_state(const RegisterSet& live) = 0;
  /// Registers and flags are where blocks expect them, or where the only way to the block left them.
  virtual void begin_block_registers(uint32_t block) = 0;
  /// Brings them where blocks expect them.
  virtual void settle() = 0;
  /// Whether a block to which there is one way begins as that way leaves registers, without settle(); then
  /// the block's registers are as they are now.
  virtual bool passes_registers() const = 0;
  virtual void pass_registers(uint32_t block) = 0;
  /// Code for an entry at such a block: from where load_state() left registers to where it expects them.
  virtual void load_for_entry(uint32_t block) = 0;
  /// Code that brings them from where they are now to where store_state() expects them.
  virtual std::function<void()> settle_for_exit() = 0;
  /// An instruction that is no branch: node_ of block_.
  virtual void emit_alu_word(const Instruction& i) = 0;
  /// A register gets what stands at an address. Before the current instruction.
  virtual void land(Register to, const Xbyak::RegExp& from) = 0;
  /// Bit i of the register: flag A of lane i; whether lane i has a sample in the mask. After settle().
  virtual void flags_to(const Reg32& to) = 0;
  virtual void live_lanes_to(const Reg32& to) = 0;
  /// Routines that blocks call.
  virtual void emit_routines() = 0;

  // ---- What it uses

  /// The next word of the block's uniforms.
  Xbyak::Address next_uniform();
  /// The address in GPU memory of the next word of the second stream. Changes eax.
  Xbyak::Address next_unifa();
  /// Brings Thread::unifa up to date.
  void settle_unifa();
  void write_texture_config();
  /// Takes the next component of the varyings, which stands at rax + rcx until advance_varying(). Changes
  /// edx.
  void find_varying();
  void advance_varying();
  /// Room for one of the two results that may be under way to a register, to be used as kThread + rax + where
  /// they stand. @param oldest  offset of the number of the first
  /// @param in_flight  Thread::Pending::Events of them before the current instruction
  void coming_to_eax(size_t oldest, uint8_t in_flight);
  /// Before a call: what functions may look at. @param uniforms  they take some
  void prepare_call(bool uniforms);
  /// A C++ function. Arguments are set.
  template <typename Function>
  void call_function(Function* function) {
    call_address(reinterpret_cast<const void*>(function));
  }
  virtual void call_address(const void* function) = 0;
  /// A write to a port, with value and lanes in Frame::a and Frame::exec.
  void call_port(const Destination& to, bool takes_uniform);
  /// Leaves edx changed.
  void whole_quads_of_ecx();
  /// A texture lookup, for the lanes of r8d, whose S and other parameters stand where the thread has them.
  /// Changes the first half of the vectors of AVX2, or 2, 3, 4 and 6 of AVX-512. @return  the host's equal
  /// flag: it was refused, with nothing done; vectors behind the third are as they were then
  void call_lookup(Effect effect);
  /// Adds Frame::a to the words at Frame::addresses for the lanes of r8d, of which there is one at least. The
  /// words before go to Frame::b. Changes eax, ecx, edx, esi and r8d.
  void emit_lane_sums();

  /// Words of 32 bits in memory after the code: one, 16, or a double.
  Label& word_behind(uint32_t bits);
  Label& words_behind(const std::array<uint32_t, 16>& words);
  Label& double_behind(double value);

  Label& new_label() { return *labels_.emplace_back(std::make_unique<Label>()); }
  /// Code out of the way that is emitted after the blocks.
  void later(std::function<void()> emit) { later_.push_back({node_, std::move(emit)}); }
  /// ... of the current node.
  void later_in_node(std::function<void()> emit);
  /// Whether the current block is the only one that leads to another, which begins as it ends.
  bool passes_to(uint32_t block) const;
  /// Jumps there to leave before the current node, as if it and those after had not been.
  Label& exit_before_node(CodeExit::Why why);
  Label& exit_with_hang();

  /// Whether the UMUL24 of the next node makes a product of 32 bits of this MULTOP, which then is not needed.
  bool begins_product(const AluHalf& multop) const;

  /// Whether a write that starts an access by address may have code of its own, for a word of each lane, all
  /// next to each other. All else goes to the routine of all accesses.
  bool accesses_in_place(bool all_lanes) const { return all_lanes && mask_stays_; }
  /// For it, at the entry, where ecx and the host's equal flag say whether a lane has no sample:
  /// Frame::plain.
  void set_plain();
  /// Goes on there unless it is such an access, as far as the Thread tells.
  /// @param configured  as at the start of a thread, as is known
  void check_access(bool configured, Label& otherwise);
  /// The address of the first lane, in esi, to that of the host in rsi. Changes ecx.
  void check_address(Label& otherwise);
  /// Takes what was written of it; of a load, the place in the queue is kThread + kFifo + rdx.
  void finish_access();
  bool access_stores() const { return data_.words != 0; }
  /// After a load or store of a word for each lane at rsi: fetches what one of the next will be at, unless
  /// the program is one of fragments. Changes rcx.
  void prefetch_next(bool for_store);

  chip::Generation generation() const { return flow_.setting.generation; }
  /// Where ldunif, ldunifa and the C of ldvary arrive.
  Register implicit() const { return isa(generation()).implicit; }

  const flow::Flow& flow_;

  // The current node
  const flow::Block* block_ = nullptr;
  uint32_t node_ = 0;
  uint32_t words_ = 0;  // uniforms of the block that were taken so far
  /// The second uniform stream: words that were taken since Thread::unifa was brought up to date, and whether
  /// kUnifa holds that.
  struct Unifa {
    uint32_t words = 0;
    bool in_register = false;
  } unifa_;
  uint32_t product_ = flow::kNowhere;  ///< the node of a UMUL24 that begins_product() found
  /// Data words that the block has written for the next access; whether it is known that there are no others,
  /// nor parameters.
  struct Data {
    uint32_t words = 0;
    bool known = false;
  } data_;
  /// The same of words of configuration, which go to the next lookup.
  Data configs_;

 private:
  void emit_entry();
  void begin_function();
  void emit_start();
  void emit_block(uint32_t number);
  void emit_node(uint32_t node);
  void land_varying(uint8_t in_flight);
  void land_sfu_result();
  void emit_block_exit(const flow::Block& block, uint32_t number);
  void emit_branch(const flow::Block& block, uint32_t number);
  // lookup_entry.cc
  void emit_lookups();
  void compare_plan(Label& other);
  void find_room_for_words(Label& none);
  void find_lanes_of_lookup();
  void end_lookup();

  void emit_jump_to(uint32_t block, bool lands, uint32_t behind);
  void jump_unless_taken(const Branch& b, Label& other);
  void check_uniforms(const flow::Block& block);
  void advance_uniforms();
  bool leaves_before(uint32_t node) const;
  void emit_block_end(const flow::Exit& exit);
  const Branch& branch_at(int32_t index) const;

  Label& exit_from(uint32_t exit);
  uint32_t add_exit(CodeExit::Why why, uint32_t node, uint32_t left_back, uint32_t uniform_words,
                    uint32_t unifa_words);
  void leave(uint32_t exit);
  void emit_constants();
  void address_to_eax(int32_t index);
  void emit_sums_in_transaction(Label& locked, Label& done);

  const std::array<Reg64, 6> saved_{rbx, rbp, r12, r13, r14, r15};  // of the caller
  CodeTables* made_ = nullptr;
  std::vector<Label> block_labels_;
  std::vector<uint8_t> ways_to_;  // a block: 0, 1, or 2 for more
  std::vector<bool> passed_to_;   // a block, by pass_registers()
  bool mask_stays_;               // nothing in the program changes the sample mask
  bool prefetches_;
  std::map<int32_t, const Branch*> branches_;  // by index
  struct Later {
    uint32_t node;
    std::function<void()> emit;
  };
  std::vector<Later> later_;
  std::vector<std::unique_ptr<Label>> labels_;
  Label exit_, end_, lookup_;
  bool uses_lookups_ = false;

  // The current node
  uint32_t paid_ = 0;        // instructions of the block, taken from the budget at its start
  uint32_t node_words_ = 0;  // words_ before the node
  Unifa node_unifa_;         // unifa_ before the node

  std::map<std::array<uint32_t, 16>, std::unique_ptr<Label>> vectors_;
  std::map<uint64_t, std::unique_ptr<Label>> words8_;
  std::map<uint32_t, std::unique_ptr<Label>> words4_;
};

}  // namespace v3d::qpu::jit
