#include "gpu/qpu/jit/neon/batch_emitter.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "gpu/qpu/graph/memory_accesses.h"
#include "gpu/qpu/graph/program_front_end.h"
#include "gpu/qpu/jit/graph/stored.h"
#include "gpu/qpu/jit/neon/frame.h"
#include "gpu/qpu/run/batch_code.h"
#include "gpu/tmu/lookup/general.h"

namespace v3d::qpu::jit::neon {
namespace {

using namespace vixl::aarch64;  // NOLINT(google-build-using-namespace): registers have their names
using graph::Op;

const Register kRun = x19, kUniformWords = x20, kBatchValues = x23;  // BatchRun::slots
/// LoopAddresses::lines() that are, a bit each.
const Register kLines = w24;
/// Of load_word: where the words stand.
const Register kWordAddresses[] = {x26, x27, x28, x15};

MemOperand of_run(size_t offset) { return MemOperand(kRun, static_cast<int64_t>(offset)); }

}  // namespace

BatchEmitter::BatchEmitter(const graph::Graph& graph)
    : Emitter(graph), loop_addresses_(graph), steps_(steps_of_loads(graph)) {
  uniforms_are_spread_ = true;
  word_addresses_.fill(graph::kNoNode);
}

bool BatchEmitter::has_code(const Node& node) {
  return lane_operation(node.op) || other_operation(node.op) || own_operation(node.op) ||
         node.op == Op::kLoad || node.op == Op::kPayload || node.op == Op::kStore;
}

BatchEmitter::EmitOwn BatchEmitter::own_operation(Op op) {
  switch (op) {
    case Op::kCovered:
      return &BatchEmitter::covered;
    case Op::kExpect:
      return &BatchEmitter::expect;
    case Op::kLead:
      return &BatchEmitter::lead;
    case Op::kLoadMemory:
      return &BatchEmitter::load_memory;
    case Op::kLoadWord:
      return &BatchEmitter::load_word;
    case Op::kStoreMemory:
      return &BatchEmitter::store_memory;
    case Op::kAtomic:
      return &BatchEmitter::update_memory;
    default:
      return nullptr;
  }
}

void BatchEmitter::begin(Label& body) {
  save_registers();
  masm_.Mov(kRun, x0);
  masm_.Ldr(kUniformWords, of_run(offsetof(BatchRun, uniforms)));
  masm_.Ldr(kTextures, of_run(offsetof(BatchRun, textures)));
  masm_.Ldr(kMiddleOfMemory, of_run(offsetof(BatchRun, middle_of_memory)));
  masm_.Ldr(kBatchValues, of_run(offsetof(BatchRun, slots)));
  masm_.B(&body);
}

void BatchEmitter::before_nodes() {
  masm_.Bind(&again_);
  look_at_lines();
}

void BatchEmitter::end() {
  if (!leads_) masm_.Mov(w0, 1);
  masm_.Bind(&leave_);
  restore_registers();
  masm_.Ret();
  unsure_results();
  partial_gathers();
  other_lines();
  if (!expects_) return;
  masm_.Bind(&other_way_);
  masm_.Mov(w0, 0);
  masm_.B(&leave_);
}

Emitter::Memory BatchEmitter::home_of(const Node& node) {
  const int64_t n = node.immediate;
  switch (node.op) {
    case Op::kTextureWord:
      return texture_word(node);
    case Op::kLoad:
      return {kBatchValues, n};
    case Op::kPayload:
      return {kRun, static_cast<int64_t>(offsetof(BatchRun, payload)) + n * kLaneBytes};
    default:
      return {kUniformWords, n * int64_t{sizeof(SpreadWord)}};
  }
}

/// Sums of loops have code of their own, and so have the addresses that they become.
void BatchEmitter::emit(const Node& node) {
  const Id id = id_of(node);
  if (loop_addresses_.is_step_to_line(id)) return;
  if (loop_addresses_.is_step_to_word(id)) {
    // The sum may be gone where the word is loaded.
    if (const Id sum = loop_addresses_.word_of(id); sum != graph::kNoNode) word_to_w9(sum);
    return consume(node);
  }
  if (lane_operation(node.op) || other_operation(node.op)) return Emitter::emit(node);
  if (own_operation(node.op)) emit_own(node);
}

void BatchEmitter::covered(const Node& node) { mask_from(node, of_run(offsetof(BatchRun, lanes))); }

void BatchEmitter::expect(const Node& node) {
  expects_ = true;
  any_of(node.operands[0]);
  consume(node);
  node.immediate == graph::kExpectSome ? masm_.Cbz(w9, &other_way_) : masm_.Cbnz(w9, &other_way_);
}

// ---- The end of a stretch

/// What is stored stands behind the node.
void BatchEmitter::lead(const Node& node) {
  leads_ = true;
  const Lead to = lead_of(graph_, node);
  if (!to.is_known()) {
    any_of(node.operands[0]);
    masm_.Mov(w11, w9);
  }
  store_behind(node, kBatchValues);
  go_on(to);
  consume(node);
}

/// By w11, if there are two ways.
void BatchEmitter::go_on(const Lead& to) {
  masm_.Mov(w0, to.some & ~kStretchAgain);
  if (!to.is_known()) {
    masm_.Mov(w10, to.none & ~kStretchAgain);
    masm_.Cmp(w11, 0);
    masm_.Csel(w0, w10, w0, eq);
  }
  if (((to.some | to.none) & kStretchAgain) == 0) return;
  const uint32_t own = (to.some & kStretchAgain) != 0 ? to.some : to.none;
  masm_.Ldr(w9, of_run(offsetof(BatchRun, turns)));
  masm_.Subs(w9, w9, 1);
  masm_.Str(w9, of_run(offsetof(BatchRun, turns)));
  masm_.B(&leave_, eq);
  masm_.Cmp(w0, own & ~kStretchAgain);
  masm_.B(&again_, eq);
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
      word_to_w9(sum);
      masm_.And(w9, w9, ~3u);
      masm_.Add(w9, w9, graph::kHalfTheSpace);
    } else {
      masm_.Umov(w9, part(in_register(address), 0), 0);
    }
    masm_.Add(kWordAddresses[n], kMiddleOfMemory, ::vixl::aarch64::Operand(w9, SXTW));
    word_addresses_[n] = address;
    if (!steps_.empty()) masm_.Prfm(PLDL1KEEP, MemOperand(kWordAddresses[n], kNextWords));
  }
  spread_memory(result(node), MemOperand(kWordAddresses[n], int64_t{node.immediate}));
}

/// Goes on where all lanes take part, with the addresses that are expected of them.
/// @param lanes     the unit of the mask, or kAll
/// @param expected  (part): those, in scratch(0) or scratch(1)
template <typename Fn>
void BatchEmitter::expect_addresses(int address, int lanes, Fn expected, Label& other) {
  const Vector all = scratch(2);
  for (int p = 0; p < kParts; ++p) {
    const Vector equal = p == 0 ? all : zero();
    masm_.Cmeq(equal, part(address, p), expected(p));
    if (lanes != kAll) masm_.And(equal.V16B(), equal.V16B(), part(lanes, p).V16B());
    if (p != 0) masm_.And(all.V16B(), all.V16B(), equal.V16B());
  }
  masm_.Uminv(all.S(), all);
  masm_.Fmov(w9, all.S());
  masm_.Cbz(w9, &other);
}

/// Goes on where all lanes take part, and their words stand side by side, in their order.
void BatchEmitter::is_line(int address, int lanes, Label& other) {
  const int64_t distances =
      table(distances_, [](uint32_t lane) { return static_cast<uint32_t>(lane * sizeof(uint32_t)); });
  masm_.Dup(scratch(0), part(address, 0), 0);
  const auto expected = [&](int p) {
    masm_.Ldr(scratch(1).Q(), operand_of(in_pool(distances + p * kPartBytes)));
    masm_.Add(scratch(1), scratch(1), scratch(0));
    return scratch(1);
  };
  expect_addresses(address, lanes, expected, other);
}

/// Goes on where all lanes take part, with one address.
void BatchEmitter::is_one(int address, int lanes, Label& other) {
  masm_.Dup(scratch(0), part(address, 0), 0);
  expect_addresses(
      address, lanes, [](int) { return scratch(0); }, other);
}

/// To x10: the host's, of the first lane's word.
void BatchEmitter::first_address(int address, uint32_t offset) {
  lane_address(address, 0, 0, offset);
  masm_.Add(x10, kMiddleOfMemory, ::vixl::aarch64::Operand(w10, SXTW));
}

/// The host's address is in x10.
void BatchEmitter::fetch_ahead(const Node& load) {
  const auto step = steps_.find(id_of(load));
  if (step == steps_.end()) return;
  masm_.Ldrsw(x9, word_at(step->second));
  masm_.Add(x9, x10, ::vixl::aarch64::Operand(x9, LSL, kStepsAheadLog2));
  masm_.Prfm(PLDL1KEEP, MemOperand(x9));
}

/// Those that follow with the same address are done with it: how their words stand is found out once.
void BatchEmitter::load_memory(const Node& node) {
  if (&node < loaded_until_) return;
  if (const Id sum = loop_addresses_.sum_of_line(node.operands[0]); sum != graph::kNoNode)
    return load_line(node, sum);
  const int address = in_register(node.operands[0]), lanes = unit_of_lanes(node.operands[1]);
  const size_t count = loads_of_one_address(graph_, node, kMostLoads);
  std::array<int, kMostLoads> to{};
  for (size_t n = 0; n < count; ++n) to[n] = result((&node)[n], true);
  loaded_until_ = &node + count;
  load_words(node, address, lanes, to, count);
}

/// Of loads that follow each other. @param to  their units
void BatchEmitter::load_words(const Node& node, int address, int lanes, const std::array<int, kMostLoads>& to,
                              size_t count) {
  const auto behind = [&](size_t n) { return static_cast<int32_t>((&node)[n].immediate - node.immediate); };
  Label other, different, done;
  is_line(address, lanes, other);
  first_address(address, node.immediate);
  for (size_t n = 0; n < count; ++n) move(Way::kLoad, to[n], {x10, behind(n)});
  fetch_ahead(node);
  masm_.B(&done);
  masm_.Bind(&other);
  is_one(address, lanes, different);
  first_address(address, node.immediate);
  for (size_t n = 0; n < count; ++n) spread_memory(to[n], MemOperand(x10, behind(n)));
  masm_.B(&done);
  masm_.Bind(&different);
  for (size_t n = 0; n < count; ++n) gather_words((&node)[n], address, lanes, to[n]);
  masm_.Bind(&done);
}

/// Lanes that take no part get 0. @param to  may be the address, if all do
void BatchEmitter::gather_words(const Node& node, int address, int lanes, int to) {
  for (int p = 0; p < kParts && lanes != kAll; ++p) masm_.Movi(part(to, p), 0);
  gather_lanes_of(lanes, address, to, node.immediate);
}

void BatchEmitter::store_memory(const Node& node) {
  const int address = in_register(node.operands[0]), data = in_register(node.operands[1]),
            lanes = unit_of_lanes(node.operands[2]);
  Label other, done;
  is_line(address, lanes, other);
  first_address(address, node.immediate);
  move(Way::kStore, data, {x10, 0});
  masm_.B(&done);
  masm_.Bind(&other);
  scatter_words(node, address, data, lanes);
  masm_.Bind(&done);
  consume(node);
}

/// A function does it: nothing is in registers behind it.
void BatchEmitter::update_memory(const Node& node) {
  const Id mask = node.operands[2];
  in_register(mask);
  mask_to(w3, mask, places_[mask]);
  for (int n = 0; n < 2; ++n)
    move(Way::kStore, in_register(node.operands[n]), {sp, kOperands + int64_t{n} * kLaneBytes});
  consume(node);
  vacate_all();
  word_addresses_.fill(graph::kNoNode);
  Place& place = places_[id_of(node)];
  place.slot = static_cast<int16_t>(num_slots_++);
  masm_.Sub(x0, kMiddleOfMemory, graph::kHalfTheSpace);
  masm_.Add(x1, sp, kOperands);
  masm_.Add(x2, x1, kLaneBytes);
  masm_.Add(x4, sp, kSlots + int64_t{place.slot} * kLaneBytes);
  call(reinterpret_cast<const void*>(tmu::find_atomic(node.immediate)));
}

// ---- Words of loops

/// Of what stands in memory.
Emitter::MemOperand BatchEmitter::word_at(Id id) { return operand_of(home_of(graph_[id])); }

/// Of a sum; there is room for it then.
Emitter::MemOperand BatchEmitter::first_lane(Id sum) {
  constexpr int kWordBytes = sizeof(uint32_t), kWordsOfSlot = kLaneBytes / kWordBytes;
  const auto [entry, is_new] = first_lanes_.try_emplace(sum, static_cast<int>(first_lanes_.size()));
  const int in_slot = entry->second % kWordsOfSlot;
  if (is_new && in_slot == 0) slots_of_words_.push_back(num_slots_++);
  const int n = slots_of_words_[static_cast<size_t>(entry->second / kWordsOfSlot)];
  return MemOperand(sp, kSlots + n * kLaneBytes + in_slot * kWordBytes);
}

/// The first lane of a sum. What it is the sum of is known from before, or found out on the way.
void BatchEmitter::word_to_w9(Id sum) {
  std::vector<Id> open;
  while (graph_[sum].op == Op::kAdd && !first_lanes_.contains(sum)) {
    open.push_back(sum);
    sum = loop_addresses_.goes_on(sum);
  }
  masm_.Ldr(w9, graph_[sum].op == Op::kAdd ? first_lane(sum) : word_at(sum));
  for (; !open.empty(); sum = open.back(), open.pop_back()) {
    const Node& node = graph_[open.back()];
    const Id added = node.operands[0] == sum ? node.operands[1] : node.operands[0];
    if (graph_.is_constant(added)) {
      masm_.Add(w9, w9, graph_[added].immediate);
    } else {
      masm_.Ldr(w10, word_at(added));
      masm_.Add(w9, w9, w10);
    }
    masm_.Str(w9, first_lane(open.back()));
  }
}

/// Which lines are, at the begin of a turn, when nothing is in registers.
void BatchEmitter::look_at_lines() {
  constexpr uint32_t kInWord = 3;
  const std::vector<LoopAddresses::Line>& lines = loop_addresses_.lines();
  if (!lines.empty()) masm_.Mov(kLines, 0);
  for (size_t n = 0; n < lines.size(); ++n) {
    const LoopAddresses::Line& line = lines[n];
    if ((line.constants & kInWord) != 0) continue;
    Label no;
    move(Way::kLoad, 0, home_of(graph_[line.root]));
    is_line(0, kAll, no);
    masm_.Ldr(w9, word_at(line.root));
    for (const Id uniform : line.uniforms) {
      masm_.Ldr(w10, word_at(uniform));
      masm_.Orr(w9, w9, w10);
    }
    masm_.Tst(w9, kInWord);
    masm_.B(&no, ne);
    masm_.Orr(kLines, kLines, 1u << n);
    masm_.Bind(&no);
  }
}

void BatchEmitter::load_line(const Node& node, Id sum) {
  const int address = in_register(sum);
  const int to = result(node, true);
  for (const Id step : {graph_[node.operands[0]].operands[0], node.operands[0]}) consume(graph_[step]);
  word_to_w9(sum);
  masm_.Add(w9, w9, graph::kHalfTheSpace + node.immediate);
  masm_.Add(x10, kMiddleOfMemory, ::vixl::aarch64::Operand(w9, SXTW));
  OtherLine& other = other_lines_.emplace_back();
  other.load = &node;
  other.sum = address;
  other.to = to;
  masm_.Tst(kLines, 1u << loop_addresses_.line_of(sum));
  masm_.B(&other.entry, eq);
  move(Way::kLoad, to, {x10, 0});
  fetch_ahead(node);
  masm_.Bind(&other.back);
}

void BatchEmitter::other_lines() {
  constexpr uint32_t kInWord = 3;
  for (OtherLine& other : other_lines_) {
    masm_.Bind(&other.entry);
    spread(scratch(0), ~kInWord);
    spread(scratch(1), graph::kHalfTheSpace);
    for (int p = 0; p < kParts; ++p) {
      const Vector d = part(other.to, p);
      masm_.And(d.V16B(), part(other.sum, p).V16B(), scratch(0).V16B());
      masm_.Add(d, d, scratch(1));
    }
    load_words(*other.load, other.to, kAll, {other.to}, 1);
    masm_.B(&other.back);
  }
}

}  // namespace v3d::qpu::jit::neon
