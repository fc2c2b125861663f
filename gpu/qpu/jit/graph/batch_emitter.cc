#include "gpu/qpu/jit/graph/batch_emitter.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "gpu/qpu/graph/memory_accesses.h"
#include "gpu/qpu/graph/program_front_end.h"
#include "gpu/qpu/jit/graph/frame.h"
#include "gpu/qpu/jit/graph/stored.h"
#include "gpu/qpu/run/batch_code.h"
#include "gpu/tmu/lookup/general.h"

namespace v3d::qpu::jit {
namespace {

using Xbyak::Reg64;
using Xbyak::Xmm;
using Xbyak::Ymm;
using Xbyak::Zmm;

constexpr int kUnitsOfAvx512 = 30, kUnitsOfAvx2 = 7;

const Reg64 kRun(Xbyak::Operand::RDI), kUniformWords(Xbyak::Operand::RSI),
    kBatchValues(Xbyak::Operand::R11);  // BatchRun::slots
/// Of load_word: distances of addresses from the middle of memory.
const std::array<Reg64, 4> kWordAddresses = {Reg64(Xbyak::Operand::RBX), Reg64(Xbyak::Operand::R12),
                                             Reg64(Xbyak::Operand::R13), Reg64(Xbyak::Operand::R14)};
/// LoopAddresses::lines() that are, a bit each.
const Reg64 kLines(Xbyak::Operand::R15);

}  // namespace

#define V3D_MEMBER(member) (kRun + offset_of(offsetof(BatchRun, member)))

BatchEmitter::BatchEmitter(const graph::Graph& graph, Width width, void* buffer, size_t bytes)
    : GraphEmitter(graph, width, width == Width::kAvx512 ? kUnitsOfAvx512 : kUnitsOfAvx2, buffer, bytes),
      loop_addresses_(graph),
      steps_(steps_of_loads(graph)) {
  avoids_gathers_ = gathers_are_slow();
  uniforms_are_spread_ = true;
  word_addresses_.fill(graph::kNoNode);
}

void BatchEmitter::begin() {
  push(rbp);
  mov(rbp, rsp);
  const auto& nodes = graph_.nodes();
  loads_words_ = std::any_of(nodes.begin(), nodes.end(), [](const Node& n) { return n.op == Op::kLoadWord; });
  for (const Reg64& r : saved()) push(r);
  sub(rsp, 0x7fffffff);
  frame_at_ = getSize() - 4;
  and_(rsp, -kLaneBytes);
  load_bases();
  L(again_);
  look_at_lines();
}

void BatchEmitter::load_bases() {
  mov(kUniformWords, ptr[V3D_MEMBER(uniforms)]);
  mov(kTextures, ptr[V3D_MEMBER(textures)]);
  mov(kMiddleOfMemory, ptr[V3D_MEMBER(middle_of_memory)]);
  mov(kBatchValues, ptr[V3D_MEMBER(slots)]);
}

std::vector<Reg64> BatchEmitter::saved() const {
  std::vector<Reg64> registers;
  if (loads_words_) registers.assign(kWordAddresses.begin(), kWordAddresses.end());
  if (!loop_addresses_.lines().empty()) registers.push_back(kLines);
  return registers;
}

void BatchEmitter::end() {
  if (!leads_) mov(eax, 1);
  L(leave_);
  const std::vector<Reg64> registers = saved();
  lea(rsp, ptr[rbp - static_cast<int>(registers.size() * sizeof(uint64_t))]);
  for (size_t n = registers.size(); n-- > 0;) pop(registers[n]);
  pop(rbp);
  vzeroupper();
  ret();
  other_lines();
  if (!expects_) return;
  L(other_way_);
  xor_(eax, eax);
  jmp(leave_, T_NEAR);
}

Xbyak::Address BatchEmitter::home_of(const Node& node, int part, bool spreads) {
  if (node.op == Op::kTextureWord) return texture_word(node, spreads);
  if (node.op == Op::kLoad) return ptr[kBatchValues + static_cast<int>(node.immediate) + 32 * part];
  if (node.op == Op::kPayload)
    return ptr[V3D_MEMBER(payload) + static_cast<int>(node.immediate) * kLaneBytes + 32 * part];
  const Xbyak::RegExp at =
      kUniformWords + static_cast<int>(node.immediate) * static_cast<int>(sizeof(SpreadWord));
  return spreads && wide_ ? ptr_b[at] : ptr[at];
}

void BatchEmitter::expect(const Node& node) {
  expects_ = true;
  mask_to(edx, node.operands[0]);
  consume(node);
  test(edx, edx);
  node.immediate == graph::kExpectSome ? jz(other_way_, T_NEAR) : jnz(other_way_, T_NEAR);
}

// ---- The end of a stretch

/// Where the stretch leads to is in eax then. What is stored stands behind the node.
void BatchEmitter::lead(const Node& node) {
  leads_ = true;
  const Lead to = lead_of(graph_, node);
  const auto [some, none] = to;
  if (!to.is_known()) mask_to(edx, node.operands[0]);
  store_behind(node, kBatchValues);
  mov(eax, some & ~kStretchAgain);
  if (!to.is_known()) {
    mov(ecx, none & ~kStretchAgain);
    test(edx, edx);
    cmovz(eax, ecx);
  }
  if (((some | none) & kStretchAgain) != 0) {
    const uint32_t own = (some & kStretchAgain) != 0 ? some : none;
    dec(dword[V3D_MEMBER(turns)]);
    jz(leave_, T_NEAR);
    cmp(eax, own & ~kStretchAgain);
    je(again_, T_NEAR);
  }
  consume(node);
}

// ---- Memory

/// The word at lane 0's address, in all lanes.
void BatchEmitter::load_word(const Node& node) {
  const Id address = node.operands[0];
  auto n = static_cast<size_t>(std::find(word_addresses_.begin(), word_addresses_.end(), address) -
                               word_addresses_.begin());
  if (n == word_addresses_.size()) {
    n = next_word_address_++ % word_addresses_.size();
    if (const Id sum = loop_addresses_.word_of(address); sum != graph::kNoNode) {
      word_to_eax(sum);
      and_(eax, ~3u);
      add(eax, graph::kHalfTheSpace);
      movsxd(kWordAddresses[n], eax);
    } else {
      vmovd(kWordAddresses[n].cvt32(), Xmm(vector(in_register(address), 0).getIdx()));
      movsxd(kWordAddresses[n], kWordAddresses[n].cvt32());
    }
    word_addresses_[n] = address;
    if (!steps_.empty()) prefetcht0(ptr[kMiddleOfMemory + kWordAddresses[n] + kNextWords]);
  }
  const int to = result(node);
  vbroadcastss(vector(to, 0), ptr[kMiddleOfMemory + kWordAddresses[n] + static_cast<int>(node.immediate)]);
  if (!wide_) vmovaps(vector(to, 1), vector(to, 0));
}

/// Goes on where all lanes take part, with the addresses that are expected of them: those of the first part
/// in the first scratch register.
/// @param lanes   the unit of the mask; below 0: all
/// @param second  has those of the second part, of AVX2; a scratch register
void BatchEmitter::expect_addresses(int address, int lanes, const Vector& second, Xbyak::Label& other) {
  const Vector first = vector(address, 0);
  if (wide_) {
    if (lanes >= 0) {
      vpmovd2m(k1, vector(lanes, 0));
      vpcmpeqd(k1 | k1, scratch(0), first);
    } else {
      vpcmpeqd(k1, scratch(0), first);
    }
    kortestw(k1, k1);
    jnc(other, T_NEAR);
    return;
  }
  vpcmpeqd(scratch(1), second, vector(address, 1));
  vpcmpeqd(scratch(0), scratch(0), first);
  vpand(scratch(0), scratch(0), scratch(1));
  for (int p = 0; p < parts_ && lanes >= 0; ++p) vpand(scratch(0), scratch(0), vector(lanes, p));
  vpmovmskb(eax, Ymm(scratch(0).getIdx()));
  cmp(eax, -1);
  jne(other, T_NEAR);
}

/// Goes on where all lanes take part, and their words stand side by side, in their order. @param lanes  as
/// above
void BatchEmitter::is_line(int address, int lanes, Xbyak::Label& other) {
  uses_distances_ = true;
  vpbroadcastd(scratch(0), Xmm(vector(address, 0).getIdx()));
  if (!wide_) vpaddd(scratch(1), scratch(0), ptr[rip + distances_ + 32]);
  vpaddd(scratch(0), scratch(0), ptr[rip + distances_]);
  expect_addresses(address, lanes, scratch(1), other);
}

/// Goes on where all lanes take part, with one address. @param lanes  as above
void BatchEmitter::is_one(int address, int lanes, Xbyak::Label& other) {
  vpbroadcastd(scratch(0), Xmm(vector(address, 0).getIdx()));
  expect_addresses(address, lanes, scratch(0), other);
}

/// The distance of the first lane's word from the middle of memory to rax.
void BatchEmitter::first_address(int address, uint32_t offset) {
  vmovd(eax, Xmm(vector(address, 0).getIdx()));
  if (offset != 0) add(eax, offset);
  movsxd(rax, eax);
}

/// The unit of a mask. @return  below 0: it holds in all lanes
int BatchEmitter::unit_of_lanes(Id mask) { return graph_.is_constant(mask, ~0u) ? -1 : in_register(mask); }

/// The distance from the middle of memory is in rax.
void BatchEmitter::fetch_ahead(const Node& load) {
  const auto step = steps_.find(id_of(load));
  if (step == steps_.end()) return;
  movsxd(rcx, word_at(step->second));
  shl(rcx, kStepsAheadLog2);
  add(rcx, kMiddleOfMemory);
  prefetcht0(ptr[rcx + rax]);
}

/// Those that follow with the same address are done with it: how their words stand is found out once.
void BatchEmitter::load_memory(const Node& node) {
  if (&node < loaded_until_) return;
  if (const Id sum = loop_addresses_.sum_of_line(node.operands[0]); sum != graph::kNoNode)
    return load_line(node, sum);
  const int address = in_register(node.operands[0]), lanes = unit_of_lanes(node.operands[1]);
  const size_t count = loads_of_one_address(graph_, node, kMostLoads);
  std::array<int, kMostLoads> to;
  for (size_t n = 0; n < count; ++n) to[n] = result((&node)[n], true);
  loaded_until_ = &node + count;
  load_words(node, address, lanes, to, count);
}

/// Of loads that follow each other. @param to  their units
void BatchEmitter::load_words(const Node& node, int address, int lanes, const std::array<int, kMostLoads>& to,
                              size_t count) {
  const auto place = [&](size_t n) {
    return kMiddleOfMemory + rax + static_cast<int>((&node)[n].immediate - node.immediate);
  };
  Xbyak::Label other, different, done;
  is_line(address, lanes, other);
  first_address(address, node.immediate);
  for (size_t n = 0; n < count; ++n)
    for (int p = 0; p < parts_; ++p) vmovups(vector(to[n], p), ptr[place(n) + 32 * p]);
  fetch_ahead(node);
  jmp(done, T_NEAR);
  L(other);
  is_one(address, lanes, different);
  first_address(address, node.immediate);
  for (size_t n = 0; n < count; ++n) {
    vbroadcastss(vector(to[n], 0), ptr[place(n)]);
    if (!wide_) vmovaps(vector(to[n], 1), vector(to[n], 0));
  }
  jmp(done, T_NEAR);
  L(different);
  for (size_t n = 0; n < count; ++n) gather_words((&node)[n], address, lanes, to[n]);
  L(done);
}

// ---- Words of loops

/// Of what stands in memory.
Xbyak::Address BatchEmitter::word_at(Id id) {
  const auto n = static_cast<int>(graph_[id].immediate);
  return graph_[id].op == Op::kLoad ? dword[kBatchValues + n]
                                    : dword[kUniformWords + n * static_cast<int>(sizeof(SpreadWord))];
}

/// Of a sum; there is room for it then.
Xbyak::Address BatchEmitter::first_lane(Id sum) {
  constexpr int kWordsOfSlot = kLaneBytes / static_cast<int>(sizeof(uint32_t));
  const auto [entry, is_new] = first_lanes_.try_emplace(sum, static_cast<int>(first_lanes_.size()));
  const int in_slot = entry->second % kWordsOfSlot;
  if (is_new && in_slot == 0) slots_of_words_.push_back(num_slots_++);
  const int n = slots_of_words_[static_cast<size_t>(entry->second / kWordsOfSlot)];
  return dword[rsp + kSlots + n * kLaneBytes + in_slot * static_cast<int>(sizeof(uint32_t))];
}

/// The first lane of a sum. What it is the sum of is known from before, or found out on the way.
void BatchEmitter::word_to_eax(Id sum) {
  std::vector<Id> open;
  while (graph_[sum].op == Op::kAdd && !first_lanes_.contains(sum)) {
    open.push_back(sum);
    sum = loop_addresses_.goes_on(sum);
  }
  mov(eax, graph_[sum].op == Op::kAdd ? first_lane(sum) : word_at(sum));
  for (; !open.empty(); sum = open.back(), open.pop_back()) {
    const Node& node = graph_[open.back()];
    const Id added = node.operands[0] == sum ? node.operands[1] : node.operands[0];
    graph_.is_constant(added) ? add(eax, graph_[added].immediate) : add(eax, word_at(added));
    mov(first_lane(open.back()), eax);
  }
}

/// Which lines are, at the begin of a turn, when nothing is in registers.
void BatchEmitter::look_at_lines() {
  constexpr uint32_t kInWord = 3;
  const std::vector<LoopAddresses::Line>& lines = loop_addresses_.lines();
  if (!lines.empty()) xor_(kLines.cvt32(), kLines.cvt32());
  for (size_t n = 0; n < lines.size(); ++n) {
    const LoopAddresses::Line& line = lines[n];
    if ((line.constants & kInWord) != 0) continue;
    Xbyak::Label no;
    for (int p = 0; p < parts_; ++p) vmovups(vector(0, p), home_of(graph_[line.root], p, false));
    is_line(0, -1, no);
    mov(eax, word_at(line.root));
    for (const Id uniform : line.uniforms) or_(eax, word_at(uniform));
    test(al, kInWord);
    jnz(no);
    or_(kLines.cvt32(), 1u << n);
    L(no);
  }
}

void BatchEmitter::load_line(const Node& node, Id sum) {
  const int address = in_register(sum);
  const int to = result(node, true);
  for (const Id step : {graph_[node.operands[0]].operands[0], node.operands[0]}) consume(graph_[step]);
  word_to_eax(sum);
  add(eax, graph::kHalfTheSpace + node.immediate);
  movsxd(rax, eax);
  OtherLine& other = other_lines_.emplace_back();
  other.load = &node;
  other.sum = address;
  other.to = to;
  test(kLines.cvt32(), 1u << loop_addresses_.line_of(sum));
  jz(other.entry, T_NEAR);
  for (int p = 0; p < parts_; ++p) vmovups(vector(to, p), ptr[kMiddleOfMemory + rax + 32 * p]);
  fetch_ahead(node);
  L(other.back);
}

void BatchEmitter::other_lines() {
  for (OtherLine& other : other_lines_) {
    L(other.entry);
    for (int p = 0; p < parts_; ++p) {
      const Vector d = vector(other.to, p);
      wide_ ? vpandd(d, vector(other.sum, p), constant(~3u)) : vpand(d, vector(other.sum, p), constant(~3u));
      vpaddd(d, d, constant(graph::kHalfTheSpace));
    }
    load_words(*other.load, other.to, -1, {other.to}, 1);
    jmp(other.back, T_NEAR);
  }
}

/// Lanes that take no part get 0. @param lanes  below 0: all
void BatchEmitter::gather_words(const Node& node, int address, int lanes, int to) {
  const bool all = lanes < 0;
  for (int p = 0; p < parts_; ++p) {
    moved(p, address, node.immediate);
    const Vector d = vector(to, p);
    if (wide_) {
      all ? kxnorw(kLanesLeft, kLanesLeft, kLanesLeft) : vpmovd2m(kLanesLeft, vector(lanes, 0));
      vpxord(d, d, d);
      vpgatherdd(Zmm(to) | kLanesLeft, ptr[kMiddleOfMemory + Zmm(scratch(0).getIdx())]);
      continue;
    }
    all ? vpcmpeqd(scratch(1), scratch(1), scratch(1)) : vmovaps(scratch(1), vector(lanes, p));
    vpxor(d, d, d);
    vpgatherdd(d, ptr[kMiddleOfMemory + Ymm(scratch(0).getIdx())], scratch(1));
  }
}

void BatchEmitter::store_memory(const Node& node) {
  const int address = in_register(node.operands[0]), data = in_register(node.operands[1]),
            lanes = unit_of_lanes(node.operands[2]);
  Xbyak::Label other, done;
  is_line(address, lanes, other);
  first_address(address, node.immediate);
  for (int p = 0; p < parts_; ++p) vmovups(ptr[kMiddleOfMemory + rax + 32 * p], vector(data, p));
  jmp(done, T_NEAR);
  L(other);
  scatter_words(node, address, data);
  L(done);
  consume(node);
}

/// A function does it: nothing is in registers behind it.
void BatchEmitter::update_memory(const Node& node) {
  constexpr int kPushed = 2 * sizeof(uint64_t);  // as calls want the frame
  mask_to(ecx, node.operands[2]);
  for (int n = 0; n < 2; ++n) {
    const int from = in_register(node.operands[n]);
    for (int p = 0; p < parts_; ++p) vmovaps(ptr[rsp + kOperands + n * kLaneBytes + 32 * p], vector(from, p));
  }
  consume(node);
  vacate_all();
  lanes_of_gather_ = graph::kNoNode;
  Place& place = places_[id_of(node)];
  place.slot = static_cast<int16_t>(num_slots_++);
  push(kRun);
  push(kRun);
  lea(rdi, ptr[kMiddleOfMemory - graph::kHalfTheSpace]);
  lea(rsi, ptr[rsp + kPushed + kOperands]);
  lea(rdx, ptr[rsi + kLaneBytes]);
  lea(r8, ptr[rsp + kPushed + kSlots + place.slot * kLaneBytes]);
  mov(rax, reinterpret_cast<size_t>(tmu::find_atomic(node.immediate)));
  vzeroupper();
  call(rax);
  pop(kRun);
  pop(kRun);
  load_bases();
}

void BatchEmitter::own_data() {
  if (uses_distances_)
    table(distances_, [](uint32_t lane) { return static_cast<uint32_t>(lane * sizeof(uint32_t)); });
}

void BatchEmitter::emit(const Node& node) {
  if (loop_addresses_.is_step_to_line(id_of(node))) return;
  if (!loop_addresses_.is_step_to_word(id_of(node))) return GraphEmitter::emit(node);
  // The sum may be gone where the word is loaded.
  if (const Id sum = loop_addresses_.word_of(id_of(node)); sum != graph::kNoNode) word_to_eax(sum);
  consume(node);
}

void BatchEmitter::emit_own(const Node& node) {
  switch (node.op) {
    case Op::kCovered:
      return mask_from(node, word[V3D_MEMBER(lanes)]);
    case Op::kExpect:
      return expect(node);
    case Op::kLoadMemory:
      return load_memory(node);
    case Op::kLoadWord:
      return load_word(node);
    case Op::kStoreMemory:
      return store_memory(node);
    case Op::kAtomic:
      return update_memory(node);
    case Op::kLead:
      return lead(node);
    default:  // sources, which are loaded where they are needed
      return;
  }
}

}  // namespace v3d::qpu::jit
