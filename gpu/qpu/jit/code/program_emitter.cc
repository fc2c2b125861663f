/// @file Entries, blocks, branches and exits. A block begins with all QPU registers where the back end
/// expects them and has paid for all of its instructions; who leaves in the middle gets the rest back.

#include "gpu/qpu/jit/code/program_emitter.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <utility>

#include "gpu/qpu/jit/code/destination.h"
#include "gpu/qpu/jit/code/helpers.h"
#include "gpu/qpu/jit/code/tmu_memory.h"

namespace v3d::qpu::jit {

using Kind = flow::Exit::Kind;
using Why = CodeExit::Why;

namespace {

constexpr int32_t kDelaySlots = 3;
constexpr size_t kPending = offsetof(Thread, pending);

uint32_t uniform_words(const flow::Access& access) {
  uint32_t words = 0;
  for (const flow::Event& event : access.events()) words += event.stream == Stream::kMain;
  return words;
}

/// Tests against depth narrow the mask, too: sequences of the TLB that a uniform configures may be such.
bool changes_mask(const Instruction& i, const flow::Access& access) {
  if (!i.is_branch && ((info(i.add.op).traits | info(i.mul.op).traits) & kWritesMsf)) return true;
  const auto events = access.events();
  return std::any_of(events.begin(), events.end(), [](const flow::Event& event) {
    const bool of_tlb = event.effect == Effect::kTlb || event.kind == flow::Event::Kind::kLdtlb;
    return of_tlb && event.stream == Stream::kMain;
  });
}
bool changes_mask(const flow::Flow& flow) {
  for (size_t n = 0; n < flow.instructions.size(); ++n)
    if (changes_mask(flow.instructions[n], flow.accesses[n])) return true;
  return false;
}

/// Fragments: what they load and store is an array of theirs, mostly, and no stream.
bool uses_tlb(const flow::Flow& flow) {
  return std::any_of(flow.accesses.begin(), flow.accesses.end(), [](const flow::Access& access) {
    const auto events = access.events();
    return std::any_of(events.begin(), events.end(), [](const flow::Event& event) {
      return event.effect == Effect::kTlb || event.kind == flow::Event::Kind::kLdtlb;
    });
  });
}

bool is_static(const Branch& b) {
  const auto known = [](BranchTarget t) {
    return t == BranchTarget::kAbsolute || t == BranchTarget::kRelative;
  };
  return known(b.target) && (!b.uniforms || known(static_cast<BranchTarget>(b.uniform_target)));
}

}  // namespace

ProgramEmitter::ProgramEmitter(const flow::Flow& flow, void* buffer, size_t bytes)
    : CodeGenerator(bytes, buffer),
      flow_(flow),
      block_labels_(flow.blocks.size()),
      ways_to_(flow.blocks.size()),
      passed_to_(flow.blocks.size()),
      mask_stays_(!changes_mask(flow)),
      prefetches_(!uses_tlb(flow)) {
  setDefaultJmpNEAR(true);
  const auto count_way = [this](uint32_t block) {
    if (block != flow::kNowhere) ways_to_[block] = ways_to_[block] == 0 ? 1 : 2;
  };
  for (const flow::Block& block : flow.blocks) {
    count_way(block.exit.next);
    count_way(block.exit.taken);
  }
  for (const flow::Node& node : flow.nodes)
    if (const Instruction* i = flow.instruction(node); i && i->is_branch)
      branches_.emplace(node.index, &i->branch);
}

void ProgramEmitter::emit(CodeTables& made) {
  made_ = &made;
  emit_entry();
  for (uint32_t b = 0; b < flow_.blocks.size(); ++b) emit_block(b);
  made_->marks.push_back({getSize(), flow::kNowhere});
  emit_start();
  for (size_t n = 0; n < later_.size(); ++n) {
    const Later now = std::move(later_[n]);  // may add more
    node_ = now.node;
    made_->marks.push_back({getSize(), node_, true});
    now.emit();
  }
  if (!later_.empty()) made_->marks.push_back({getSize(), flow::kNowhere});
  emit_routines();
  emit_lookups();
  emit_constants();
}

/// uint32_t function(Thread*, Frame*, const uint8_t* where): runs from there to an exit, and gives its
/// number.
void ProgramEmitter::emit_entry() {
  begin_function();
  load_state();
  jmp(rdx);

  Label ended;
  L(end_);
  cmp(dword[kFrame + offsetof(Frame, forgets_registers)], 0);
  jne(ended);
  L(exit_);
  store_state();
  L(ended);
  mov(dword[kThread + offsetof(Thread, uniforms)], kUniforms.cvt32());
  mov(qword[kFrame + offsetof(Frame, left)], kLeft);
  vzeroupper();
  add(rsp, 8);
  for (size_t n = saved_.size(); n-- > 0;) pop(saved_[n]);
  ret();
}

void ProgramEmitter::begin_function() {
  for (const Reg64& reg : saved_) push(reg);
  sub(rsp, 8);
  mov(kThread, rdi);
  mov(kFrame, rsi);
  mov(qword[kFrame + offsetof(Frame, stack)], rsp);
  mov(kUniformBase, qword[kFrame + offsetof(Frame, uniform_base)]);
  mov(kUniforms.cvt32(), dword[kThread + offsetof(Thread, uniforms)]);
  static_assert(sizeof(Memory) == sizeof(uint8_t*));
  mov(kMemory, qword[kThread + offsetof(Thread, memory)]);
  mov(kLeft, qword[kFrame + offsetof(Frame, left)]);
}

/// The same function from the first instruction on.
void ProgramEmitter::emit_start() {
  if (flow_.entry == flow::kNowhere || passed_to_[flow_.entry]) return;
  made_->start = getSize();
  begin_function();
  load_first_state(flow_.blocks[flow_.entry].live.registers);
  jmp(block_labels_[flow_.entry], T_NEAR);
}

bool ProgramEmitter::leaves_before(uint32_t node) const {
  const flow::Node& n = flow_.nodes[node];
  if (n.instruction == flow::kNowhere) return true;
  const Instruction& i = flow_.instructions[n.instruction];
  if (i.is_branch && !is_static(i.branch)) return true;
  if (!flow_.is_last(node)) return false;
  const Kind kind = flow_.blocks[n.block].exit.kind;
  const bool branches = i.is_branch || n.in_flight.branch_in == 1;
  return kind == Kind::kGap || (kind == Kind::kEnd && branches);  // nobody relies on a branch at the end
}

const Branch& ProgramEmitter::branch_at(int32_t index) const { return *branches_.at(index); }

// Nothing may leave the code, read rtop or change an operand between the two.
bool ProgramEmitter::begins_product(const AluHalf& multop) const {
  if (multop.op != Op::kMultop || multop.flags != FlagWrite::kNone) return false;
  if (destination_of(generation(), multop).target != Destination::Target::kNone) return false;
  if (flow_.is_last(node_) || flow_.is_last(node_ + 1)) return false;
  const flow::Node &node = flow_.nodes[node_], &next = flow_.nodes[node_ + 1];
  const Instruction& i = *flow_.instruction(next);
  if (i.is_branch || (i.signals & kLdtmu) || i.mul.op != Op::kUmul24) return false;
  if ((flow_.instruction(node)->signals | i.signals) & kRotate) return false;
  const auto stays = [&](const Operand& o) {
    if (o.unpack != Unpack::kNone) return false;
    const bool lands = ((next.in_flight.vary & 1) && o.reg() == implicit()) ||
                       ((next.in_flight.sfu & 1) && o.reg() == kSfuResult);
    return o.reg() == kNoRegister || (!lands && !flow_.access(node).writes.registers.has(o.reg()));
  };
  const AluHalf& umul = i.mul;
  const bool same = (umul.a == multop.a && umul.b == multop.b) || (umul.a == multop.b && umul.b == multop.a);
  return same && stays(multop.a) && stays(multop.b);
}

// ---- Accesses by address, in place

void ProgramEmitter::set_plain() {
  if (!mask_stays_) return mov(dword[kFrame + offsetof(Frame, plain)], 0);
  sete(cl);
  movzx(ecx, cl);
  cmp(qword[kThread + offsetof(Thread, tmu)], 0);
  setne(al);
  movzx(eax, al);
  and_(eax, ecx);
  mov(dword[kFrame + offsetof(Frame, plain)], eax);
}

void ProgramEmitter::check_access(bool configured, Label& otherwise) {
  cmp(dword[kFrame + offsetof(Frame, plain)], 0);
  je(otherwise, T_NEAR);
  if (!configured) {
    cmp(dword[kThread + offsetof(Thread, tmu_config)], kConfigAtStart);
    jne(otherwise, T_NEAR);
  }
  if (!data_.known || data_.words > 1) {
    // Byte by byte, as they were written: both at once would wait for those stores to leave the processor.
    cmp(byte[kThread + kWritten], 0);
    jne(otherwise, T_NEAR);
    cmp(byte[kThread + kNumData], access_stores());
    jne(otherwise, T_NEAR);
  }
  if (access_stores()) return;
  mov(eax, dword[kThread + kTail]);
  sub(eax, dword[kThread + kHead]);
  cmp(eax, kTmuFifo - kMostWords);
  ja(otherwise, T_NEAR);
}

void ProgramEmitter::check_address(Label& otherwise) {
  mov(ecx, esi);
  ror(ecx, 2);  // what is no multiple of 4 becomes large
  cmp(ecx, (kHighAddress - sizeof(Lanes)) >> 2);
  jae(otherwise, T_NEAR);
  add(rsi, kMemory);
}

void ProgramEmitter::finish_access() {
  if (access_stores()) {
    xor_(eax, eax);
    mov(word[kThread + kWritten], ax);
    return;
  }
  mov(edx, dword[kThread + kTail]);
  lea(eax, ptr[rdx + 1]);
  mov(dword[kThread + kTail], eax);
  and_(edx, kTmuFifo - 1);
  shl(edx, 6);
}

void ProgramEmitter::prefetch_next(bool for_store) {
  if (!prefetches_) return;
  constexpr int kStepsLog2 = 5;  // so many steps ahead
  const size_t stream = for_store ? offsetof(Frame, stores) : offsetof(Frame, loads);
  const Xbyak::Address last = ptr[kFrame + stream + offsetof(Frame::Stream, last)],
                       step = ptr[kFrame + stream + offsetof(Frame::Stream, step)];
  Label other_step, done;
  mov(rcx, rsi);
  sub(rcx, last);
  mov(last, rsi);
  cmp(rcx, step);
  mov(step, rcx);
  jne(other_step);
  shl(rcx, kStepsLog2);
  if (for_store) {
    prefetchw(ptr[rsi + rcx]);
    L(other_step);
  } else {
    prefetcht0(ptr[rsi + rcx]);
    jmp(done);
    L(other_step);
    prefetcht0(ptr[rsi + sizeof(Lanes)]);  // which the next batch is likely to load
    L(done);
  }
}

void ProgramEmitter::emit_block(uint32_t number) {
  const flow::Block& block = flow_.blocks[number];
  block_ = &block;
  node_ = block.first;
  words_ = node_words_ = 0;
  unifa_ = node_unifa_ = {};
  data_ = configs_ = {};
  begin_block_registers(number);
  const uint32_t last = block.first + block.count - 1;
  const bool leaves = leaves_before(last);

  L(block_labels_[number]);
  const flow::Node& first = flow_.nodes[block.first];
  made_->entries.push_back({first.index, first.in_flight, getSize()});
  if (passed_to_[number])
    later([this, number, entry = made_->entries.size() - 1] {
      made_->entries[entry].offset = getSize();
      load_for_entry(number);
      jmp(block_labels_[number], T_NEAR);
    });
  made_->marks.push_back({getSize(), block.first});
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
    if (last != block.first) made_->marks.push_back({getSize(), last});
    const bool branch =
        flow_.instruction(flow_.nodes[last]) && flow_.instruction(flow_.nodes[last])->is_branch;
    jmp(exit_before_node(branch ? Why::kComputed : Why::kGap), T_NEAR);
    return;
  }
  emit_block_exit(block, number);
}

void ProgramEmitter::emit_node(uint32_t node) {
  node_ = node;
  node_words_ = words_;
  node_unifa_ = unifa_;
  if (node != block_->first) made_->marks.push_back({getSize(), node});
  const Instruction& i = *flow_.instruction(flow_.nodes[node]);
  if (!i.is_branch && (i.signals & kLdtmu)) {
    mov(eax, dword[kThread + offsetof(Thread, pending.fifo_head)]);
    cmp(eax, dword[kThread + offsetof(Thread, pending.fifo_tail)]);
    je(exit_before_node(CodeExit::Why::kQueue), T_NEAR);
  }
  const flow::InFlight& in_flight = flow_.nodes[node].in_flight;
  if (in_flight.vary & 1) land_varying(in_flight.vary);
  if (in_flight.sfu & 1) land_sfu_result();
  if (!i.is_branch) emit_alu_word(i);
}

/// C of the component that was taken two instructions ago, of which one more may have been since.
void ProgramEmitter::land_varying(uint8_t in_flight) {
  const auto taken = static_cast<int>(std::popcount(in_flight) * sizeof(Varying));
  mov(ecx, dword[kThread + kPending + offsetof(Pending, next_varying)]);
  mov(rax, qword[kThread + offsetof(Thread, varyings)]);
  land(implicit(), rax + rcx + (static_cast<int>(offsetof(Varying, c)) - taken));
}

/// What was started two instructions ago.
void ProgramEmitter::land_sfu_result() {
  constexpr size_t kOldest = kPending + offsetof(Pending, sfu_oldest);
  coming_to_eax(kOldest, 0);
  xor_(byte[kThread + kOldest], 1);
  land(kSfuResult, kThread + rax + (kPending + offsetof(Pending, sfu_result)));
}

/// next_varying() of the interpreter.
void ProgramEmitter::find_varying() {
  mov(ecx, dword[kThread + kPending + offsetof(Pending, next_varying)]);
  mov(edx, dword[kThread + offsetof(Thread, last_varying)]);
  cmp(ecx, edx);
  cmova(ecx, edx);
  mov(rax, qword[kThread + offsetof(Thread, varyings)]);
}

void ProgramEmitter::advance_varying() {
  add(ecx, static_cast<uint32_t>(sizeof(Varying)));
  mov(dword[kThread + kPending + offsetof(Pending, next_varying)], ecx);
}

/// The uniforms of the block must stand where kUniformBase leads to.
void ProgramEmitter::check_uniforms(const flow::Block& block) {
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

void ProgramEmitter::advance_uniforms() {
  if (words_ != 0) add(kUniforms.cvt32(), 4 * words_);
}

void ProgramEmitter::emit_block_exit(const flow::Block& block, uint32_t number) {
  if (block.exit.kind == Kind::kBranch) return emit_branch(block, number);
  emit_block_end(block.exit);
  if (block.exit.kind != Kind::kEnd) return emit_jump_to(block.exit.next, true, number + 1);
  const flow::Node& last = flow_.nodes[node_];
  const auto after = flow::advance(last.in_flight, *flow_.instruction(last), flow_.access(last));
  CodeExit exit{Why::kEnd, last.index + 1, after.in_flight};
  made_->exits.push_back(exit);
  mov(eax, static_cast<uint32_t>(made_->exits.size() - 1));
  jmp(end_, T_NEAR);
}

void ProgramEmitter::emit_block_end(const flow::Exit& exit) {
  const auto settled = [this](uint32_t block) { return block != flow::kNowhere && !passes_to(block); };
  if (exit.kind == Kind::kEnd || settled(exit.next) || settled(exit.taken)) settle();
  settle_unifa();
  advance_uniforms();
}

// Blocks are emitted in their order.
bool ProgramEmitter::passes_to(uint32_t block) const {
  return passes_registers() && ways_to_[block] == 1 && &flow_.blocks[block] > block_;
}

/// To the first node of a block. @param lands  a branch that is under way may take effect
/// @param behind  the block whose code follows here
void ProgramEmitter::emit_jump_to(uint32_t block, bool lands, uint32_t behind) {
  const flow::Exit& exit = block_->exit;
  const flow::Node& last = flow_.nodes[block_->first + block_->count - 1];
  if (lands && last.in_flight.branch_in == 1 && branch_at(last.in_flight.branch).uniforms)
    mov(kUniforms.cvt32(), dword[kThread + offsetof(Thread, pending.branch_uniforms)]);
  if (exit.switches) {
    Label& stops = new_label();
    cmp(byte[kThread + offsetof(Thread, stop_at_switch)], 0);
    jne(stops, T_NEAR);
    if (exit.may_wait) {
      cmp(byte[kThread + offsetof(Thread, pending.sync)], 0);
      jne(stops, T_NEAR);
    }
    const uint32_t number = add_exit(Why::kSwitch, flow_.blocks[block].first, 0, 0, 0);
    later([this, &stops, number, settle_now = settle_for_exit()] {
      L(stops);
      settle_now();
      leave(number);
    });
  }
  if (passes_to(block)) {
    pass_registers(block);
    passed_to_[block] = true;
  }
  if (block != behind) jmp(block_labels_[block], T_NEAR);
}

void ProgramEmitter::emit_branch(const flow::Block& block, uint32_t number) {
  const Branch& b = flow_.instruction(flow_.nodes[node_])->branch;
  if (b.uniforms) {
    mov(r8d, next_uniform());
    if (static_cast<BranchTarget>(b.uniform_target) == BranchTarget::kRelative)
      lea(r8d, ptr[r8 + kUniforms + 4 * words_]);
  }
  emit_block_end(block.exit);
  Label& other = new_label();
  const bool always = block.exit.next == flow::kNowhere;
  if (!always) jump_unless_taken(b, other);
  if (b.uniforms) mov(dword[kThread + offsetof(Thread, pending.branch_uniforms)], r8d);
  if (b.set_link) {
    address_to_eax(flow_.nodes[node_].index + 1 + kDelaySlots);
    mov(dword[kThread + offsetof(Thread, link)], eax);
  }
  emit_jump_to(block.exit.taken, false, always ? number + 1 : flow::kNowhere);
  if (always) return;
  L(other);
  emit_jump_to(block.exit.next, true, number + 1);
}

/// branch_taken() of the interpreter.
void ProgramEmitter::jump_unless_taken(const Branch& b, Label& other) {
  flags_to(eax);
  if (b.cond == BranchCond::kA0 || b.cond == BranchCond::kNa0) {
    test(eax, 1);
    return b.cond == BranchCond::kA0 ? jz(other, T_NEAR) : jnz(other, T_NEAR);
  }
  if (b.msfign == Msfign::kNone)
    mov(ecx, kAllLanes);
  else
    live_lanes_to(ecx);
  if (b.msfign == Msfign::kQ) whole_quads_of_ecx();
  if (b.cond == BranchCond::kAlla || b.cond == BranchCond::kAnyna) not_(eax);
  test(eax, ecx);
  const bool taken_if_any = b.cond == BranchCond::kAnyna || b.cond == BranchCond::kAnya;
  return taken_if_any ? jz(other, T_NEAR) : jnz(other, T_NEAR);
}

void ProgramEmitter::whole_quads_of_ecx() {
  for (const int distance : {1, 2}) {
    mov(edx, ecx);
    shr(edx, distance);
    or_(ecx, edx);
  }
  and_(ecx, 0x1111);
  imul(ecx, ecx, 15);
}

// ---- Streams

Xbyak::Address ProgramEmitter::next_uniform() { return dword[kUniformBase + kUniforms + 4 * words_++]; }

Xbyak::Address ProgramEmitter::next_unifa() {
  if (!std::exchange(unifa_.in_register, true)) mov(kUnifa, dword[kThread + offsetof(Thread, unifa)]);
  lea(eax, ptr[kUnifa.cvt64() + 4 * unifa_.words++]);
  return dword[kMemory + rax];
}

void ProgramEmitter::settle_unifa() {
  if (unifa_.words != 0) add(dword[kThread + offsetof(Thread, unifa)], 4 * unifa_.words);
  unifa_ = {};
}

void ProgramEmitter::write_texture_config() {
  static_assert(offsetof(tmu::TextureLookup, p1) == offsetof(tmu::TextureLookup, p0) + 4 &&
                offsetof(tmu::TextureLookup, p2) == offsetof(tmu::TextureLookup, p0) + 8);
  constexpr uint32_t kMost = 3;
  const auto count = byte[kThread + kPending + offsetof(Thread::Pending, num_config)];
  const auto words =
      kThread + kPending + offsetof(Thread::Pending, texture) + offsetof(tmu::TextureLookup, p0);
  mov(ecx, next_uniform());
  if (const uint32_t n = configs_.words++; configs_.known) {
    if (n >= kMost) return;
    mov(dword[words + n * sizeof(uint32_t)], ecx);
    mov(count, n + 1);
    return;
  }
  Label full;
  movzx(eax, count);
  cmp(eax, kMost);
  jae(full);
  mov(dword[words + rax * 4], ecx);
  inc(count);
  L(full);
}

void ProgramEmitter::coming_to_eax(size_t oldest, uint8_t in_flight) {
  movzx(eax, byte[kThread + oldest]);
  if (in_flight >> 1) xor_(eax, 1);  // the first has landed
  shl(eax, 6);
}

/// Of an instruction.
void ProgramEmitter::address_to_eax(int32_t index) {
  mov(eax, dword[kFrame + offsetof(Frame, entry)]);
  if (index != 0) add(eax, static_cast<uint32_t>(index) * 8);
}

void ProgramEmitter::prepare_call(bool uniforms) {
  address_to_eax(flow_.nodes[node_].index);
  mov(dword[kThread + offsetof(Thread, pc)], eax);
  if (!uniforms) return;
  lea(eax, ptr[kUniforms + 4 * words_]);
  mov(dword[kThread + offsetof(Thread, uniforms)], eax);
}

void ProgramEmitter::call_port(const Destination& to, bool takes_uniform) {
  prepare_call(takes_uniform);
  if (to.effect == Effect::kTlb) {
    mov(esi, takes_uniform);
    call_function(write_to_tlb);
  } else {
    mov(esi, static_cast<uint32_t>(to.effect));
    mov(edx, takes_uniform);
    mov(ecx, to.waddr);
    starts_texture(to.effect) ? call_function(start_lookup) : call_function(write_to_port);
  }
  words_ += takes_uniform;
  test(eax, eax);
  jnz(exit_with_hang(), T_NEAR);
}

// ---- Exits

uint32_t ProgramEmitter::add_exit(Why why, uint32_t node, uint32_t left_back, uint32_t uniforms,
                                  uint32_t unifa) {
  const flow::Node& n = flow_.nodes[node];
  CodeExit exit{why, n.index, n.in_flight, left_back, 4 * uniforms, 4 * unifa};
  if (n.in_flight.branch_in != 0) {
    const Branch& b = branch_at(n.in_flight.branch);
    const uint32_t behind = static_cast<uint32_t>(n.in_flight.branch + 1 + kDelaySlots) * 8;
    exit.branch_is_relative = b.target == BranchTarget::kRelative;
    exit.branch_target = (exit.branch_is_relative ? behind : 0) + b.offset;
    exit.branch_moves_uniforms = b.uniforms;
  }
  made_->exits.push_back(exit);
  return static_cast<uint32_t>(made_->exits.size() - 1);
}

void ProgramEmitter::leave(uint32_t exit) {
  mov(eax, exit);
  jmp(exit_, T_NEAR);
}

ProgramEmitter::Label& ProgramEmitter::exit_from(uint32_t exit) {
  Label& label = new_label();
  later([this, &label, exit, settle_now = settle_for_exit()] {
    L(label);
    settle_now();
    leave(exit);
  });
  return label;
}

void ProgramEmitter::later_in_node(std::function<void()> emit) {
  later([this, emit = std::move(emit), block = block_, node = node_, paid = paid_, words = words_,
         unifa = unifa_] {
    block_ = block, node_ = node, paid_ = paid, words_ = words, unifa_ = unifa;
    emit();
  });
}

ProgramEmitter::Label& ProgramEmitter::exit_before_node(Why why) {
  const uint32_t done = node_ - block_->first;
  return exit_from(add_exit(why, node_, paid_ > done ? paid_ - done : 0, node_words_, node_unifa_.words));
}

// The instruction that hangs counts as executed.
ProgramEmitter::Label& ProgramEmitter::exit_with_hang() {
  return exit_from(add_exit(Why::kHang, node_, paid_ - (node_ + 1 - block_->first), words_, unifa_.words));
}

// ---- Constants

namespace {

template <typename Key>
Xbyak::Label& label_of(std::map<Key, std::unique_ptr<Xbyak::Label>>& labels, const Key& key) {
  auto& label = labels[key];
  if (!label) label = std::make_unique<Xbyak::Label>();
  return *label;
}

}  // namespace

ProgramEmitter::Label& ProgramEmitter::word_behind(uint32_t bits) { return label_of(words4_, bits); }
ProgramEmitter::Label& ProgramEmitter::words_behind(const std::array<uint32_t, 16>& words) {
  return label_of(vectors_, words);
}
ProgramEmitter::Label& ProgramEmitter::double_behind(double value) {
  return label_of(words8_, std::bit_cast<uint64_t>(value));
}

void ProgramEmitter::emit_constants() {
  while (getSize() % sizeof(Lanes) != 0) db(0xcc);  // the code will stand at the start of a page
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
