/// @file Entries, blocks, branches and exits. A block begins with all pinned QPU registers in their host
/// registers and has paid for all of its instructions; who leaves in the middle gets the rest back.

#include <bit>
#include <memory>
#include <utility>

#include "gpu/qpu/jit/emitter.h"

namespace v3d::qpu::jit {

using Kind = flow::Exit::Kind;
using Why = CodeExit::Why;

namespace {

constexpr int32_t kDelaySlots = 3;

uint32_t uniform_words(const flow::Access& access) {
  uint32_t words = 0;
  for (const flow::Event& event : access.events()) words += event.stream == Stream::kMain;
  return words;
}

bool is_static(const Branch& b) {
  const auto known = [](BranchTarget t) {
    return t == BranchTarget::kAbsolute || t == BranchTarget::kRelative;
  };
  return known(b.target) && (!b.uniforms || known(static_cast<BranchTarget>(b.uniform_target)));
}

}  // namespace

Emitter::Emitter(const flow::Flow& flow, uint32_t entry, void* buffer, size_t bytes)
    : CodeGenerator(bytes, buffer), flow_(flow), entry_(entry), block_labels_(flow.blocks.size()) {
  setDefaultJmpNEAR(true);
  for (const flow::Node& node : flow.nodes)
    if (node.instruction != flow::kNowhere) instruction_at_.emplace(node.index, node.instruction);
  pin_registers();
}

void Emitter::emit(CodeTables& made) {
  made_ = &made;
  emit_entry();
  for (uint32_t b = 0; b < flow_.blocks.size(); ++b) emit_block(b);
  for (size_t n = 0; n < later_.size(); ++n) later_[n]();  // may add more
  if (uses_general_access_) emit_general_access();
  emit_constants();
}

/// uint32_t function(Thread*, Frame*, const uint8_t* where): runs from there to an exit, and gives its
/// number.
void Emitter::emit_entry() {
  const Reg64 saved[] = {rbx, rbp, r12, r13, r14, r15};
  for (const Reg64& reg : saved) push(reg);
  sub(rsp, 8);
  mov(kThread, rdi);
  mov(kFrame, rsi);
  mov(kUniformBase, qword[kFrame + offsetof(Frame, uniform_base)]);
  mov(kUniforms.cvt32(), dword[kThread + offsetof(Thread, uniforms)]);
  static_assert(sizeof(Memory) == sizeof(uint8_t*));
  mov(kMemory, qword[kThread + offsetof(Thread, memory)]);
  mov(kLeft, qword[kFrame + offsetof(Frame, left)]);
  kmovw(kFlagA, word[kThread + offsetof(Thread, flag_a)]);
  kmovw(kFlagB, word[kThread + offsetof(Thread, flag_b)]);
  load_pinned();
  jmp(rdx);

  L(exit_);
  store_pinned();
  kmovw(word[kThread + offsetof(Thread, flag_a)], kFlagA);
  kmovw(word[kThread + offsetof(Thread, flag_b)], kFlagB);
  mov(dword[kThread + offsetof(Thread, uniforms)], kUniforms.cvt32());
  mov(qword[kFrame + offsetof(Frame, left)], kLeft);
  vzeroupper();
  add(rsp, 8);
  for (size_t n = std::size(saved); n-- > 0;) pop(saved[n]);
  ret();
}

bool Emitter::leaves_before(uint32_t node) const {
  const flow::Node& n = flow_.nodes[node];
  if (n.instruction == flow::kNowhere) return true;
  const Instruction& i = flow_.instructions[n.instruction];
  if (i.is_branch && !is_static(i.branch)) return true;
  if (!flow_.is_last(node)) return false;
  const Kind kind = flow_.blocks[n.block].exit.kind;
  const bool branches = i.is_branch || n.in_flight.branch_in == 1;
  return kind == Kind::kGap || (kind == Kind::kEnd && branches);  // nobody relies on a branch at the end
}

const Branch& Emitter::branch_at(int32_t index) const {
  return flow_.instructions[instruction_at_.at(index)].branch;
}

void Emitter::emit_block(uint32_t number) {
  const flow::Block& block = flow_.blocks[number];
  block_ = &block;
  node_ = block.first;
  words_ = node_words_ = 0;
  unifa_ = node_unifa_ = {};
  begin_block_registers();
  const uint32_t last = block.first + block.count - 1;
  const bool leaves = leaves_before(last);

  L(block_labels_[number]);
  const flow::Node& first = flow_.nodes[block.first];
  made_->entries.push_back({first.index, first.in_flight, getSize()});
  paid_ = block.count - leaves;
  check_uniforms(block);
  if (paid_ != 0) {
    sub(kLeft, paid_);
    jb(exit_before_node(Why::kBudget), T_NEAR);
  }
  for (uint32_t n = block.first; n < block.first + paid_; ++n) emit_node(n);
  if (leaves) {
    node_ = last;
    node_words_ = words_;
    node_unifa_ = unifa_;
    const bool branch =
        flow_.instruction(flow_.nodes[last]) && flow_.instruction(flow_.nodes[last])->is_branch;
    jmp(exit_before_node(branch ? Why::kComputed : Why::kGap), T_NEAR);
    return;
  }
  emit_block_exit(block, number);
}

/// The uniforms of the block must stand where kUniformBase leads to.
void Emitter::check_uniforms(const flow::Block& block) {
  uint32_t words = 0;
  for (uint32_t n = block.first; n < block.first + paid_; ++n)
    words += uniform_words(flow_.access(flow_.nodes[n]));
  if (words == 0) return;
  const uint32_t paid = std::exchange(paid_, 0);  // nothing yet
  Label& elsewhere = exit_before_node(Why::kUniforms);
  paid_ = paid;
  mov(eax, kUniforms.cvt32());
  sub(eax, dword[kFrame + offsetof(Frame, uniform_low)]);
  mov(ecx, dword[kFrame + offsetof(Frame, uniform_span)]);
  sub(ecx, eax);
  jb(elsewhere, T_NEAR);
  cmp(ecx, 4 * words);
  jb(elsewhere, T_NEAR);
}

void Emitter::advance_uniforms() {
  if (words_ != 0) add(kUniforms.cvt32(), 4 * words_);
}

void Emitter::emit_block_exit(const flow::Block& block, uint32_t number) {
  if (block.exit.kind == Kind::kBranch) return emit_branch(block, number);
  settle();
  settle_unifa();
  advance_uniforms();
  if (block.exit.kind != Kind::kEnd) return emit_jump_to(block.exit.next, true, number + 1);
  const flow::Node& last = flow_.nodes[node_];
  const auto after = flow::advance(last.in_flight, *flow_.instruction(last), flow_.access(last));
  CodeExit exit{Why::kEnd, last.index + 1, after.in_flight};
  made_->exits.push_back(exit);
  leave(static_cast<uint32_t>(made_->exits.size() - 1));
}

/// To the first node of a block. @param lands  a branch that is under way may take effect
/// @param behind  the block whose code follows here
void Emitter::emit_jump_to(uint32_t block, bool lands, uint32_t behind) {
  const flow::Exit& exit = block_->exit;
  const flow::Node& last = flow_.nodes[block_->first + block_->count - 1];
  if (lands && last.in_flight.branch_in == 1 && branch_at(last.in_flight.branch).uniforms)
    mov(kUniforms.cvt32(), dword[kThread + offsetof(Thread, pending.branch_uniforms)]);
  if (exit.switches) {
    Label* const stops = labels_.emplace_back(std::make_unique<Label>()).get();
    cmp(byte[kThread + offsetof(Thread, stop_at_switch)], 0);
    jne(*stops, T_NEAR);
    if (exit.may_wait) {
      cmp(byte[kThread + offsetof(Thread, pending.sync)], 0);
      jne(*stops, T_NEAR);
    }
    const uint32_t number = add_exit(Why::kSwitch, flow_.blocks[block].first, 0, 0, 0);
    later([this, stops, number] {
      L(*stops);
      leave(number);
    });
  }
  if (block != behind) jmp(block_labels_[block], T_NEAR);
}

void Emitter::emit_branch(const flow::Block& block, uint32_t number) {
  const Branch& b = flow_.instruction(flow_.nodes[node_])->branch;
  if (b.uniforms) {
    mov(r8d, next_uniform());
    if (static_cast<BranchTarget>(b.uniform_target) == BranchTarget::kRelative)
      lea(r8d, ptr[r8 + kUniforms + 4 * words_]);
  }
  settle();
  settle_unifa();
  advance_uniforms();
  Label* const other = labels_.emplace_back(std::make_unique<Label>()).get();
  const bool always = block.exit.next == flow::kNowhere;
  if (!always) jump_unless_taken(b, *other);
  if (b.uniforms) mov(dword[kThread + offsetof(Thread, pending.branch_uniforms)], r8d);
  if (b.set_link)
    mov(dword[kThread + offsetof(Thread, link)],
        entry_ + static_cast<uint32_t>(flow_.nodes[node_].index + 1 + kDelaySlots) * 8);
  emit_jump_to(block.exit.taken, false, always ? number + 1 : flow::kNowhere);
  if (always) return;
  L(*other);
  emit_jump_to(block.exit.next, true, number + 1);
}

/// branch_taken() of the interpreter.
void Emitter::jump_unless_taken(const Branch& b, Label& other) {
  kmovw(eax, kFlagA);
  if (b.cond == BranchCond::kA0 || b.cond == BranchCond::kNa0) {
    test(eax, 1);
    return b.cond == BranchCond::kA0 ? jz(other, T_NEAR) : jnz(other, T_NEAR);
  }
  mov(ecx, kAllLanes);
  if (b.msfign != Msfign::kNone) {
    vmovdqa64(kTemp, at(offsetof(Thread, msf)));
    vptestmd(kScratchMask, kTemp, kTemp);
    kmovw(ecx, kScratchMask);
  }
  if (b.msfign == Msfign::kQ) whole_quads_of_ecx();
  if (b.cond == BranchCond::kAlla || b.cond == BranchCond::kAnyna) not_(eax);
  test(eax, ecx);
  const bool taken_if_any = b.cond == BranchCond::kAnyna || b.cond == BranchCond::kAnya;
  return taken_if_any ? jz(other, T_NEAR) : jnz(other, T_NEAR);
}

void Emitter::whole_quads_of_ecx() {
  for (const int distance : {1, 2}) {
    mov(edx, ecx);
    shr(edx, distance);
    or_(ecx, edx);
  }
  and_(ecx, 0x1111);
  imul(ecx, ecx, 15);
}

// ---- Exits

uint32_t Emitter::add_exit(Why why, uint32_t node, uint32_t left_back, uint32_t uniforms, uint32_t unifa) {
  const flow::Node& n = flow_.nodes[node];
  CodeExit exit{why, n.index, n.in_flight, left_back, 4 * uniforms, 4 * unifa};
  if (n.in_flight.branch_in != 0) {
    const Branch& b = branch_at(n.in_flight.branch);
    const uint32_t behind = entry_ + static_cast<uint32_t>(n.in_flight.branch + 1 + kDelaySlots) * 8;
    exit.branch_target = ((b.target == BranchTarget::kRelative ? behind : 0) + b.offset) & ~7u;
    exit.branch_moves_uniforms = b.uniforms;
  }
  made_->exits.push_back(exit);
  return static_cast<uint32_t>(made_->exits.size() - 1);
}

void Emitter::leave(uint32_t exit) {
  mov(eax, exit);
  jmp(exit_, T_NEAR);
}

Emitter::Label& Emitter::exit_from(uint32_t exit) {
  Label* const label = labels_.emplace_back(std::make_unique<Label>()).get();
  later([this, label, exit, pins = pins_] {
    L(*label);
    for (Register r = 0; r < kFirstAccumulator; ++r)
      if (pins[r].zmm >= 0 && pins[r].written && !pins[r].in_register) vmovdqa64(Zmm(pins[r].zmm), home(r));
    leave(exit);
  });
  return *label;
}

Emitter::Label& Emitter::exit_before_node(Why why) {
  const uint32_t done = node_ - block_->first;
  return exit_from(add_exit(why, node_, paid_ > done ? paid_ - done : 0, node_words_, node_unifa_.words));
}

// The instruction that hangs counts as executed.
Emitter::Label& Emitter::exit_with_hang() {
  return exit_from(add_exit(Why::kHang, node_, paid_ - (node_ + 1 - block_->first), words_, unifa_.words));
}

// ---- Constants

Xbyak::Address Emitter::constant(uint32_t bits, bool broadcast) {
  auto& label = words4_[bits];
  if (!label) label = std::make_unique<Label>();
  return broadcast ? ptr_b[rip + *label] : ptr[rip + *label];
}

Xbyak::Address Emitter::constants(const std::array<uint32_t, 16>& words) {
  auto& label = vectors_[words];
  if (!label) label = std::make_unique<Label>();
  return zword[rip + *label];
}

Xbyak::Address Emitter::doubles(double value) {
  auto& label = words8_[std::bit_cast<uint64_t>(value)];
  if (!label) label = std::make_unique<Label>();
  return ptr[rip + *label];
}

void Emitter::emit_constants() {
  align(64);
  for (auto& [words, label] : vectors_) {
    L(*label);
    for (const uint32_t bits : words) dd(bits);
  }
  for (auto& [bits, label] : words8_) {
    L(*label);
    dq(bits);
  }
  for (auto& [bits, label] : words4_) {
    L(*label);
    dd(bits);
  }
}

}  // namespace v3d::qpu::jit
