#include "gpu/qpu/jit/graph/emitter.h"

#include <algorithm>
#include <cstddef>

#include "gpu/qpu/isa/vc4.h"
#include "gpu/qpu/jit/graph/calls.h"
#include "gpu/qpu/jit/graph/frame.h"
#include "gpu/qpu/run/vc4_compiled.h"
#include "gpu/qpu/run/vc4_thread.h"

namespace v3d::qpu::jit {
namespace {

using graph::Id;
using graph::kNoNode;
using graph::Node;
using graph::Op;
using vc4::Thread;
using Xbyak::Reg64;

/// Denormals are zeros, as operands and as results; no exceptions. AVX2 rounds toward zero in this mode, and
/// to nearest in the host's; AVX-512 says in each instruction that does not round to nearest how it does.
constexpr uint32_t kFlushing = 0x1f80 | 1 << 15 | 1 << 6, kFlushingTowardZero = kFlushing | 3 << 13;
constexpr int kNotEqual = 4;               // of floats; what is no number is not equal
constexpr int kNotLess = 5, kGreater = 6;  // of integers
constexpr uint8_t kDown = 1 | 8;  // without exceptions
constexpr uint8_t kMaskOrOther = 0xca;     // vpternlogd: a ? b : c
constexpr uint32_t kLargest = 0x7f7fffff, kMagnitude = 0x7fffffff, kSign = 0x80000000;

constexpr Reg64 kThread(Xbyak::Operand::RBX);
constexpr Reg64 kUniforms(Xbyak::Operand::R12);  // the next uniform's address
constexpr Reg64 kVaryings(Xbyak::Operand::R13);
constexpr Reg64 kMemory(Xbyak::Operand::R14);  // the host's address of 0

int offset_of(size_t offset) { return static_cast<int>(offset); }

bool is_tmu_parameter(const Node& node) {
  switch (static_cast<vc4::WritePort>(node.immediate)) {
    case vc4::WritePort::kTmu0T:
    case vc4::WritePort::kTmu0R:
    case vc4::WritePort::kTmu0B:
    case vc4::WritePort::kTmu1T:
    case vc4::WritePort::kTmu1R:
    case vc4::WritePort::kTmu1B:
      return true;
    default:
      return false;
  }
}

}  // namespace

GraphEmitter::GraphEmitter(const graph::Graph& graph, Width width, GpuAddr code, void* buffer, size_t bytes)
    : Xbyak::CodeGenerator(bytes, buffer),
      graph_(graph),
      wide_(width == Width::kAvx512),
      parts_(wide_ ? 1 : 2),
      code_(code),
      uses_(graph),
      places_(graph.nodes().size()),
      num_units_(wide_ ? 30 : 7) {
  held_.fill(kNoNode);
  for (size_t n = 0; n < places_.size(); ++n) {
    const Op op = graph[static_cast<Id>(n)].op;
    if (op == Op::kLoad) loads_.push_back(static_cast<Id>(n));
    places_[n].home = op == Op::kConst || op == Op::kLoad || op == Op::kVarying || op == Op::kLaneIndex;
    rounds_ = rounds_ || graph::has(op, graph::kTowardZero) || graph::has(op, graph::kToNearest);
  }
  find_loose_zeros();
}

/// Of a value that only sums and products take, whose own zeros are positive whatever those of their operands
/// are.
void GraphEmitter::find_loose_zeros() {
  const auto& nodes = graph_.nodes();
  zero_is_loose_.assign(nodes.size(), true);
  for (size_t n = nodes.size(); n-- > 0;) {
    const Node& node = nodes[n];
    for (int i = 0; i < graph::info(node.op).operands; ++i) {
      const bool changes_sign = node.op == Op::kXor && graph_.is_constant(node.operands[1], kSign);
      const bool passes_on = changes_sign || (node.op == Op::kChoose && i != 0);
      const bool is_loose =
          node.op == Op::kSum || node.op == Op::kProduct || (passes_on && zero_is_loose_[n]);
      if (!is_loose) zero_is_loose_[node.operands[i]] = false;
    }
  }
}

// ---- Registers and memory of values

GraphEmitter::Vector GraphEmitter::vector(int unit, int part) const {
  return wide_ ? Vector(Xbyak::Operand::ZMM, unit) : Vector(Xbyak::Operand::YMM, 2 * unit + part);
}
GraphEmitter::Vector GraphEmitter::scratch(int n) const {
  return wide_ ? Vector(Xbyak::Operand::ZMM, 30 + n) : Vector(Xbyak::Operand::YMM, 14 + n);
}

Xbyak::Address GraphEmitter::slot(int n, int part) const {
  return ptr[rsp + kSlots + kLaneBytes * n + 32 * part];
}

/// A word that an instruction spreads over all lanes; of AVX2 it stands there eight times.
Xbyak::Address GraphEmitter::constant(uint32_t bits) {
  Xbyak::Label& label = constants_[bits];
  return wide_ ? ptr_b[rip + label] : ptr[rip + label];
}

bool GraphEmitter::is_in_memory(Id id) const { return places_[id].home || places_[id].slot >= 0; }

/// @param spreads  whether the instruction can spread a word
Xbyak::Address GraphEmitter::memory_of(Id id, int part, bool spreads) {
  const Node& node = graph_[id];
  const Place& place = places_[id];
  if (place.slot >= 0) return slot(place.slot, part);
  switch (node.op) {
    case Op::kConst:
      return spreads ? constant(node.immediate) : ptr[rip + constants_[node.immediate]];
    case Op::kLaneIndex:
      uses_lane_index_ = true;
      return ptr[rip + lane_index_ + 32 * part];
    case Op::kVarying:
      return ptr[kVaryings + static_cast<int>(node.immediate) * kLaneBytes + 32 * part];
    default:
      return ptr[kThread + static_cast<int>(node.immediate) + 32 * part];
  }
}

void GraphEmitter::load(int unit, Id id) {
  if (wide_ && graph_[id].op == Op::kConst && places_[id].slot < 0) {
    vpbroadcastd(vector(unit, 0), ptr[rip + constants_[graph_[id].immediate]]);
    return;
  }
  for (int p = 0; p < parts_; ++p) vmovups(vector(unit, p), memory_of(id, p, false));
}

/// What it holds is in memory then, or not needed any more.
void GraphEmitter::vacate(int unit) {
  const Id id = held_[static_cast<size_t>(unit)];
  if (id == kNoNode) return;
  Place& place = places_[id];
  if (uses_.next(id) != Uses::kNever && !is_in_memory(id)) {
    place.slot = static_cast<int16_t>(num_slots_++);
    for (int p = 0; p < parts_; ++p) vmovaps(slot(place.slot, p), vector(unit, p));
  }
  place.unit = -1;
  held_[static_cast<size_t>(unit)] = kNoNode;
}

void GraphEmitter::vacate_all() {
  for (int unit = 0; unit < num_units_; ++unit) vacate(unit);
}

/// A free one, or that of the value that is needed last.
int GraphEmitter::new_unit() {
  int best = -1;
  uint32_t latest = 0;
  for (int unit = 0; unit < num_units_; ++unit) {
    if (locked_ >> unit & 1) continue;
    const Id id = held_[static_cast<size_t>(unit)];
    if (id == kNoNode) return unit;
    const uint32_t next = uses_.next(id);
    if (best >= 0 && next <= latest) continue;
    best = unit;
    latest = next;
  }
  vacate(best);
  return best;
}

int GraphEmitter::in_register(Id id) {
  Place& place = places_[id];
  if (place.unit < 0) {
    const int unit = new_unit();
    load(unit, id);
    place.unit = static_cast<int16_t>(unit);
    held_[static_cast<size_t>(unit)] = id;
  }
  locked_ |= 1u << place.unit;
  return place.unit;
}

GraphEmitter::Last GraphEmitter::last_operand(Id id, bool spreads) {
  const Place& place = places_[id];
  const bool is_constant = graph_[id].op == Op::kConst;
  const bool may_stay = place.unit < 0 && (!is_constant || spreads || !wide_);
  if (may_stay && (is_constant || uses_.after_next(id) == Uses::kNever)) return {id, -1};
  return {id, in_register(id)};
}

template <typename Fn>
void GraphEmitter::with(const Last& last, int part, bool spreads, Fn fn) {
  if (last.unit >= 0)
    fn(vector(last.unit, part));
  else
    fn(memory_of(last.id, part, spreads));
}

/// Its operands are used; units of those that are not needed any more are free.
void GraphEmitter::consume(const Node& node) {
  for (int n = 0; n < graph::info(node.op).operands; ++n) {
    const Id id = node.operands[n];
    uses_.pass(id);
    Place& place = places_[id];
    if (place.unit < 0 || uses_.next(id) != Uses::kNever) continue;
    held_[static_cast<size_t>(place.unit)] = kNoNode;
    locked_ &= ~(1u << place.unit);
    place.unit = -1;
  }
}

/// The unit of the node's result, after its operands are in theirs.
/// @param apart  it is none of theirs
int GraphEmitter::result(const Node& node, bool apart) {
  if (!apart) consume(node);
  const int unit = new_unit();
  if (apart) {
    locked_ |= 1u << unit;
    consume(node);
  }
  const Id id = static_cast<Id>(&node - graph_.nodes().data());
  held_[static_cast<size_t>(unit)] = id;
  places_[id].unit = static_cast<int16_t>(unit);
  return unit;
}

// ---- Begin and end

void GraphEmitter::prologue() {
  uint32_t varyings = 0;
  for (const Node& node : graph_.nodes()) {
    if (node.op == Op::kVarying) varyings = std::max(varyings, node.immediate / 2 + 1);
    if (node.op == Op::kEndVaryings) varyings = std::max(varyings, node.immediate);
  }
  if (varyings != 0) {
    mov(eax, dword[rdi + offset_of(offsetof(Thread, pending.next_varying))]);
    lea(ecx, ptr[rax + static_cast<int>(varyings)]);
    cmp(ecx, dword[rdi + offset_of(offsetof(Thread, num_varyings))]);
    ja(declined_, T_NEAR);
  }
  push(rbp);
  mov(rbp, rsp);
  for (const Reg64& r : {rbx, r12, r13, r14}) push(r);
  sub(rsp, 0x7fffffff);
  frame_at_ = getSize() - 4;
  and_(rsp, -kLaneBytes);
  mov(kThread, rdi);
  mov(kMemory, ptr[kThread + offset_of(offsetof(Thread, memory))]);
  mov(kUniforms.cvt32(), dword[kThread + offset_of(offsetof(Thread, uniforms))]);
  if (varyings != 0) {
    static_assert(sizeof(vc4::Varying) == 2 * kLaneBytes);
    shl(rax, 7);
    add(rax, ptr[kThread + offset_of(offsetof(Thread, varyings))]);
    mov(kVaryings, rax);
  }
  if (rounds_) stmxcsr(ptr[rsp + kHostMode]);
}

void GraphEmitter::epilogue() {
  set_mode(Mode::kHost);
  if (uniform_bytes_ != 0)
    add(dword[kThread + offset_of(offsetof(Thread, uniforms))], static_cast<int>(uniform_bytes_));
  xor_(eax, eax);
  L(leave_);
  lea(rsp, ptr[rbp - 4 * 8]);
  for (const Reg64& r : {r14, r13, r12, rbx}) pop(r);
  pop(rbp);
  vzeroupper();
  ret();
  L(declined_);
  mov(rax, reinterpret_cast<size_t>(vc4::kDeclined));
  ret();
}

void GraphEmitter::emit() {
  prologue();
  for (const Node& node : graph_.nodes()) {
    locked_ = 0;
    emit(node);
  }
  epilogue();
  unsure_results();
  failures();
  pool();
  rewrite(frame_at_, static_cast<uint64_t>(kSlots + kLaneBytes * num_slots_), 4);
}

void GraphEmitter::pool() {
  const auto table = [&](Xbyak::Label& label, auto word_of) {
    align(kLaneBytes);
    L(label);
    for (uint32_t lane = 0; lane < kLanes; ++lane) dd(word_of(lane));
  };
  align(kLaneBytes);
  for (auto& [bits, label] : constants_) {
    L(label);
    for (int n = 0; n < (wide_ ? 1 : 8); ++n) dd(bits);
  }
  for (auto& [bits, label] : doubles_) {
    L(label);
    for (int n = 0; n < (wide_ ? 1 : 4); ++n) dq(bits);
  }
  L(mode_);
  dd(wide_ ? kFlushing : kFlushingTowardZero);
  if (uses_lane_index_) table(lane_index_, [](uint32_t lane) { return lane; });
  if (uses_lane_bits_) table(lane_bits_, [](uint32_t lane) { return 1u << lane; });
}

void GraphEmitter::set_mode(Mode mode) {
  if (current_mode_ == mode) return;
  current_mode_ = mode;
  ldmxcsr(mode == Mode::kOwn ? ptr[rip + mode_] : ptr[rsp + kHostMode]);
}

// ---- Operations

template <typename Fn>
void GraphEmitter::binary(const Node& node, Fn fn, bool spreads) {
  Id a = node.operands[0], b = node.operands[1];
  if (graph::has(node.op, graph::kCommutes) && places_[a].unit < 0 && places_[b].unit >= 0) std::swap(a, b);
  const int first = in_register(a);
  const Last last = last_operand(b, spreads);
  const int to = result(node);
  for (int p = 0; p < parts_; ++p)
    with(last, p, spreads, [&](const Xbyak::Operand& o) { fn(vector(to, p), vector(first, p), o); });
}

template <typename Fn>
void GraphEmitter::unary(const Node& node, Fn fn) {
  const Last last = last_operand(node.operands[0]);
  const int to = result(node);
  for (int p = 0; p < parts_; ++p)
    with(last, p, true, [&](const Xbyak::Operand& o) { fn(vector(to, p), o); });
}

/// @param Fn  the instruction for two registers and an operand of any kind
#define V3D_BINARY(op, instruction, spreads)                                                            \
  case Op::op:                                                                                          \
    binary(                                                                                             \
        node, [&](const Vector& d, const Vector& a, const Xbyak::Operand& b) { instruction(d, a, b); }, \
        spreads);                                                                                       \
    return true;
#define V3D_BITWISE(op, narrow, wide)                                             \
  case Op::op:                                                                    \
    binary(node, [&](const Vector& d, const Vector& a, const Xbyak::Operand& b) { \
      wide_ ? wide(d, a, b) : narrow(d, a, b);                                    \
    });                                                                           \
    return true;

bool GraphEmitter::emit_words(const Node& node) {
  switch (node.op) {
    V3D_BINARY(kAdd, vpaddd, true)
    V3D_BINARY(kSub, vpsubd, true)
    V3D_BINARY(kMul, vpmulld, true)
    V3D_BINARY(kMin, vpminsd, true)
    V3D_BINARY(kMax, vpmaxsd, true)
    V3D_BITWISE(kAnd, vpand, vpandd)
    V3D_BITWISE(kAndNot, vpandn, vpandnd)
    V3D_BITWISE(kOr, vpor, vpord)
    V3D_BITWISE(kXor, vpxor, vpxord)
    case Op::kShl:
    case Op::kShr:
    case Op::kSar:
      shift(node);
      return true;
    case Op::kEqual:
    case Op::kAbove:
    case Op::kAboveUnsigned:
      compare(node);
      return true;
    case Op::kChoose:
      choose(node);
      return true;
    case Op::kLeadingZeros:
      leading_zeros(node);
      return true;
    default:
      return false;
  }
}

bool GraphEmitter::emit_parts(const Node& node) {
  switch (node.op) {
    V3D_BINARY(kMulHalves, vpmullw, false)
    V3D_BINARY(kAddHalves, vpaddw, false)
    V3D_BINARY(kMinBytes, vpminub, false)
    V3D_BINARY(kMaxBytes, vpmaxub, false)
    V3D_BINARY(kAddBytes, vpaddusb, false)
    V3D_BINARY(kSubBytes, vpsubusb, false)
    case Op::kUpperBytes: {
      const int a = in_register(node.operands[0]), to = result(node);
      for (int p = 0; p < parts_; ++p) vpsrlw(vector(to, p), vector(a, p), 8);
      return true;
    }
    default:
      return false;
  }
}

bool GraphEmitter::emit_floats(const Node& node) {
  switch (node.op) {
    V3D_BINARY(kMulExact, vmulps, true)
    case Op::kSum:
    case Op::kProduct:
      toward_zero(node);
      return true;
    case Op::kFloatOf:
      float_of(node);
      return true;
    case Op::kAddNearest:
    case Op::kMulNearest:
      to_nearest(node);
      return true;
    case Op::kReciprocal:
      reciprocal(node);
      return true;
    case Op::kReciprocalRoot:
    case Op::kExp2:
    case Op::kLog2:
      special(node);
      return true;
    case Op::kFloor:
      unary(node, [&](const Vector& d, const Xbyak::Operand& a) {
        wide_ ? vrndscaleps(d, a, kDown) : vroundps(d, a, kDown);
      });
      return true;
    case Op::kTruncate:
      unary(node, [&](const Vector& d, const Xbyak::Operand& a) { vcvttps2dq(d, a); });
      return true;
    default:
      return false;
  }
}
#undef V3D_BINARY
#undef V3D_BITWISE

void GraphEmitter::shift(const Node& node) {
  const Id count = node.operands[1];
  if (!graph_.is_constant(count)) {
    binary(node, [&](const Vector& d, const Vector& a, const Xbyak::Operand& b) {
      node.op == Op::kShl ? vpsllvd(d, a, b) : node.op == Op::kShr ? vpsrlvd(d, a, b) : vpsravd(d, a, b);
    });
    return;
  }
  const auto bits = static_cast<uint8_t>(std::min(graph_[count].immediate, 32u));
  const int a = in_register(node.operands[0]), to = result(node);
  for (int p = 0; p < parts_; ++p) {
    const Vector d = vector(to, p), from = vector(a, p);
    node.op == Op::kShl   ? vpslld(d, from, bits)
    : node.op == Op::kShr ? vpsrld(d, from, bits)
                          : vpsrad(d, from, bits);
  }
}

void GraphEmitter::compare(const Node& node) {
  const bool is_unsigned = node.op == Op::kAboveUnsigned;
  binary(node, [&](const Vector& d, const Vector& a, const Xbyak::Operand& b) {
    if (wide_) {
      if (node.op == Op::kEqual)
        vpcmpeqd(k1, a, b);
      else if (is_unsigned)
        vpcmpud(k1, a, b, kGreater);
      else
        vpcmpgtd(k1, a, b);
      vpmovm2d(d, k1);
    } else if (node.op == Op::kEqual) {
      vpcmpeqd(d, a, b);
    } else if (is_unsigned) {  // their order is that of signed numbers with the sign changed
      vmovdqa(scratch(1), ptr[rip + constants_[kSign]]);
      vpxor(scratch(0), scratch(1), b);
      vpxor(scratch(1), scratch(1), a);
      vpcmpgtd(d, scratch(1), scratch(0));
    } else {
      vpcmpgtd(d, a, b);
    }
  });
}

void GraphEmitter::choose(const Node& node) {
  const auto [mask, a, b] = node.operands;
  const int of_mask = in_register(mask);
  if (!wide_) {
    const int of_b = in_register(b);
    const Last last = last_operand(a);
    const int to = result(node);
    for (int p = 0; p < parts_; ++p)
      with(last, p, true, [&](const Xbyak::Operand& o) {
        vblendvps(vector(to, p), vector(of_b, p), o, vector(of_mask, p));
      });
    return;
  }
  const int of_a = in_register(a);
  const Last last = last_operand(b);
  // The mask's own register where that is free behind it.
  const bool takes_mask = uses_.after_next(mask) == Uses::kNever && mask != a && mask != b;
  int to = of_mask;
  if (takes_mask) {
    consume(node);
    const Id id = static_cast<Id>(&node - graph_.nodes().data());
    held_[static_cast<size_t>(to)] = id;
    places_[id].unit = static_cast<int16_t>(to);
  } else {
    to = result(node, true);
    vmovdqa32(vector(to, 0), vector(of_mask, 0));
  }
  with(last, 0, true,
       [&](const Xbyak::Operand& o) { vpternlogd(vector(to, 0), vector(of_a, 0), o, kMaskOrOther); });
}

void GraphEmitter::leading_zeros(const Node& node) {
  if (wide_) return unary(node, [&](const Vector& d, const Xbyak::Operand& a) { vplzcntd(d, a); });
  const int a = in_register(node.operands[0]), to = result(node, true);
  for (int p = 0; p < parts_; ++p) {
    // The exponent of the first bit that is set, without bits after it that would round it up.
    const Vector d = vector(to, p), t = scratch(0);
    vpsrld(t, vector(a, p), 1);
    vpandn(t, t, vector(a, p));
    vcvtdq2ps(t, t);
    vpsrld(t, t, 23);
    vmovdqa(d, constant(127 + 31));
    vpsubd(d, d, t);
    vpminsd(d, d, constant(32));
    vpmaxsd(d, d, constant(0));
  }
}

/// Sums and products: as the host rounds them toward zero, but for results that are very large, or none,
/// which a function of the interpreter computes.
void GraphEmitter::toward_zero(const Node& node) {
  set_mode(Mode::kOwn);
  Id a = node.operands[0], b = node.operands[1];
  if (places_[a].unit < 0 && places_[b].unit >= 0 && node.op == Op::kProduct) std::swap(a, b);
  const int first = in_register(a);
  const Last last = wide_ ? Last{b, in_register(b)} : last_operand(b);
  unsure_.emplace_back();
  Unsure& unsure = unsure_.back();
  for (int p = 0; p < parts_; ++p)
    if (last.unit < 0) unsure.memory.push_back(memory_of(b, p, true));
  const int to = result(node, true);
  unsure.op = node.op;
  unsure.to = to;
  unsure.operands[0] = {a, first};
  unsure.operands[1] = last;
  for (int p = 0; p < parts_; ++p) {
    const Vector d = vector(to, p);
    const auto apply = [&](const Xbyak::Operand& o) {
      node.op == Op::kSum ? vaddps(d, vector(first, p), o) : vmulps(d, vector(first, p), o);
    };
    if (wide_)
      apply(Xbyak::Zmm(last.unit) | T_rz_sae);
    else
      with(last, p, true, apply);
    if (zero_is_loose_[static_cast<size_t>(&node - graph_.nodes().data())]) continue;
    if (wide_) {  // zeros are positive
      vptestmd(k1, d, constant(kMagnitude));
      vmovdqa32(d | k1 | T_z, d);
    } else {
      vcmpps(scratch(0), d, constant(0), kNotEqual);
      vandps(d, d, scratch(0));
    }
  }
  if (wide_) {
    vpaddd(scratch(0), vector(to, 0), vector(to, 0));
    vpcmpud(k1, scratch(0), constant(2 * kLargest), kNotLess);
    kortestw(k1, k1);
  } else {
    for (int p = 0; p < 2; ++p) vpand(scratch(p), vector(to, p), constant(kMagnitude));
    vpmaxsd(scratch(0), scratch(0), scratch(1));
    vpcmpgtd(scratch(0), scratch(0), constant(kLargest - 1));
    vtestps(scratch(0), scratch(0));
  }
  jnz(unsure.entry, T_NEAR);
  L(unsure.back);
}

void GraphEmitter::to_nearest(const Node& node) {
  const auto apply = [&](const Vector& d, const Vector& a, const Xbyak::Operand& b) {
    node.op == Op::kAddNearest ? vaddps(d, a, b) : vmulps(d, a, b);
  };
  if (!wide_) set_mode(Mode::kHost);
  binary(node, apply);
}

void GraphEmitter::float_of(const Node& node) {
  if (!wide_) {
    set_mode(Mode::kOwn);
    return unary(node, [&](const Vector& d, const Xbyak::Operand& a) { vcvtdq2ps(d, a); });
  }
  const int a = in_register(node.operands[0]), to = result(node);
  vcvtdq2ps(vector(to, 0), Xbyak::Zmm(a) | T_rz_sae);
}

void GraphEmitter::load_mask(const Node& node) {
  const int to = result(node);
  const Xbyak::Address from = word[kThread + static_cast<int>(node.immediate)];
  if (wide_) {
    kmovw(k1, from);
    vpmovm2d(vector(to, 0), k1);
    return;
  }
  movzx(eax, from);
  vmovd(Xbyak::Xmm(scratch(0).getIdx()), eax);
  vpbroadcastd(scratch(0), Xbyak::Xmm(scratch(0).getIdx()));
  uses_lane_bits_ = true;
  for (int p = 0; p < parts_; ++p) {
    vmovdqa(scratch(1), ptr[rip + lane_bits_ + 32 * p]);
    vpand(vector(to, p), scratch(0), scratch(1));
    vpcmpeqd(vector(to, p), vector(to, p), scratch(1));
  }
}

/// For who finds that there is no memory, or that the thread hangs.
void GraphEmitter::note_place(const Node& node) {
  mov(dword[kThread + offset_of(offsetof(Thread, pc))], code_ + node.step * 8u);
}

void GraphEmitter::uniform(const Node& node) {
  const int to = result(node);
  note_place(node);
  vpbroadcastd(vector(to, 0), ptr[kMemory + kUniforms + static_cast<int>(uniform_bytes_)]);
  if (!wide_) vmovdqa(vector(to, 1), vector(to, 0));
  uniform_bytes_ += 4;
}

void GraphEmitter::fetch(const Node& node) {
  const int to = result(node);
  for (int p = 0; p < parts_; ++p)
    vmovups(vector(to, p), ptr[kThread + static_cast<int>(node.immediate) + 32 * p]);
}

/// Values that stand in the register until now, and are still needed, stand elsewhere then.
void GraphEmitter::store(const Node& node) {
  for (const Id id : loads_) {
    if (graph_[id].immediate != node.immediate) continue;
    if (places_[id].slot < 0 && uses_.next(id) != Uses::kNever) in_register(id);
    places_[id].home = false;
  }
  const int from = in_register(node.operands[0]);
  for (int p = 0; p < parts_; ++p)
    vmovaps(ptr[kThread + static_cast<int>(node.immediate) + 32 * p], vector(from, p));
  consume(node);
}

void GraphEmitter::mask_to(const Xbyak::Reg32& to, Id mask) {
  if (graph_.is_constant(mask)) {
    mov(to, graph_[mask].immediate & kAllLanes);
    return;
  }
  const int from = in_register(mask);
  if (wide_) {
    vpmovd2m(k1, vector(from, 0));
    kmovw(to, k1);
    return;
  }
  vmovmskps(to, vector(from, 0));
  vmovmskps(eax, vector(from, 1));
  shl(eax, 8);
  or_(to, eax);
}

void GraphEmitter::store_mask(const Node& node) {
  mask_to(edx, node.operands[0]);
  mov(word[kThread + static_cast<int>(node.immediate)], dx);
  consume(node);
}

/// T, R or B of a lookup, with the uniform that comes with each.
void GraphEmitter::tmu_parameter(const Node& node) {
  using vc4::WritePort;
  const auto port = static_cast<WritePort>(node.immediate);
  const size_t unit = port >= WritePort::kTmu1S;
  const size_t lookup = offsetof(Thread, pending.tmu) + unit * sizeof(Thread::Pending::Unit) +
                        offsetof(Thread::Pending::Unit, lookup);
  const auto member = [&](size_t offset) { return kThread + offset_of(lookup + offset); };
  size_t value = offsetof(vc4::Lookup, t), flag = offsetof(vc4::Lookup, has_t);
  if (port == WritePort::kTmu0R || port == WritePort::kTmu1R) {
    value = offsetof(vc4::Lookup, r);
    flag = offsetof(vc4::Lookup, has_r);
  } else if (port == WritePort::kTmu0B || port == WritePort::kTmu1B) {
    value = offsetof(vc4::Lookup, b);
    flag = offsetof(vc4::Lookup, has_b);
  }
  failures_.emplace_back();
  failures_.back().node = &node;
  movzx(eax, byte[member(offsetof(vc4::Lookup, parameters))]);
  cmp(eax, 4);
  je(failures_.back().entry, T_NEAR);
  note_place(node);
  mov(ecx, dword[kMemory + kUniforms + static_cast<int>(uniform_bytes_)]);
  uniform_bytes_ += 4;
  mov(dword[member(offsetof(vc4::Lookup, p)) + rax * 4], ecx);
  inc(eax);
  mov(byte[member(offsetof(vc4::Lookup, parameters))], al);
  mov(byte[member(flag)], 1);
  const int from = in_register(node.operands[0]);
  for (int p = 0; p < parts_; ++p) vmovups(ptr[member(value) + 32 * p], vector(from, p));
  consume(node);
}

void GraphEmitter::load_tmu(const Node& node) {
  using Unit = Thread::Pending::Unit;
  const size_t unit = offsetof(Thread, pending.tmu) + node.immediate * sizeof(Unit);
  const auto member = [&](size_t offset) { return kThread + offset_of(unit + offset); };
  static_assert(vc4::kTmuResults == 16);
  failures_.emplace_back();
  failures_.back().node = &node;
  mov(eax, dword[member(offsetof(Unit, head))]);
  cmp(eax, dword[member(offsetof(Unit, tail))]);
  je(failures_.back().entry, T_NEAR);
  inc(dword[member(offsetof(Unit, head))]);
  and_(eax, vc4::kTmuResults - 1);
  shl(eax, 6);
  const int to = result(node);
  for (int p = 0; p < parts_; ++p)
    vmovups(vector(to, p), ptr[member(offsetof(Unit, results)) + rax + 32 * p]);
}

void GraphEmitter::failures() {
  for (Failure& f : failures_) {
    L(f.entry);
    note_place(*f.node);
    if (rounds_) ldmxcsr(ptr[rsp + kHostMode]);
    lea(rsi, ptr[rsp + kOperands]);
    mov(edx, kAllLanes);
    lea(r8, ptr[rsp + kOperands]);
    mov(ecx, f.node->immediate);
    mov(rdi, kThread);
    mov(rax, reinterpret_cast<size_t>(find_call(f.node->op)));
    vzeroupper();
    call(rax);
    jmp(leave_, T_NEAR);
  }
}

/// A function of the interpreter does it: nothing is in registers behind it.
void GraphEmitter::call_interpreter(const Node& node) {
  const int operands = graph::info(node.op).operands;
  const bool is_write = node.op == Op::kWritePort;
  const bool is_tmu = is_write && node.immediate >= static_cast<uint32_t>(vc4::WritePort::kTmu0S) &&
                      node.immediate <= static_cast<uint32_t>(vc4::WritePort::kTmu1B);
  set_mode(Mode::kHost);
  if (is_write) mask_to(edx, node.operands[1]);
  if (operands != 0) {
    const Id id = node.operands[0];
    const Op op = graph_[id].op;
    if (places_[id].slot >= 0 || (places_[id].home && (op == Op::kLoad || op == Op::kVarying))) {
      lea(rsi, memory_of(id, 0, false));
    } else {
      const int from = in_register(id);
      for (int p = 0; p < parts_; ++p) vmovaps(ptr[rsp + kOperands + 32 * p], vector(from, p));
      lea(rsi, ptr[rsp + kOperands]);
    }
  }
  consume(node);
  vacate_all();
  if (!is_write) {
    Place& place = places_[static_cast<size_t>(&node - graph_.nodes().data())];
    place.slot = static_cast<int16_t>(num_slots_++);
    lea(r8, slot(place.slot, 0));
  }
  if (graph::has(node.op, graph::kStays)) note_place(node);
  if (is_tmu && uniform_bytes_ != 0)
    add(dword[kThread + offset_of(offsetof(Thread, uniforms))], static_cast<int>(uniform_bytes_));
  mov(ecx, node.immediate);
  mov(rdi, kThread);
  mov(rax, reinterpret_cast<size_t>(find_call(node.op)));
  vzeroupper();
  call(rax);
  if (graph::has(node.op, graph::kStays)) {
    test(rax, rax);
    jnz(leave_, T_NEAR);
  }
  if (is_tmu) {
    mov(kUniforms.cvt32(), dword[kThread + offset_of(offsetof(Thread, uniforms))]);
    uniform_bytes_ = 0;
  }
}

void GraphEmitter::emit(const Node& node) {
  if (emit_words(node) || emit_parts(node) || emit_floats(node)) return;
  switch (node.op) {
    case Op::kLoadMask:
      return load_mask(node);
    case Op::kUniform:
      return uniform(node);
    case Op::kFetch:
      return fetch(node);
    case Op::kStore:
      return store(node);
    case Op::kStoreMask:
      return store_mask(node);
    case Op::kEndVaryings:
      add(dword[kThread + offset_of(offsetof(Thread, pending.next_varying))],
          static_cast<int>(node.immediate));
      return;
    case Op::kLoadTmu:
      return load_tmu(node);
    case Op::kWritePort:
      return is_tmu_parameter(node) ? tmu_parameter(node) : call_interpreter(node);
    case Op::kReadPort:
    case Op::kLoadColor:
      return call_interpreter(node);
    default:  // sources, which are loaded where they are needed
      return;
  }
}

// ---- Results that a function computes

void GraphEmitter::unsure_results() {
  Xbyak::Label routines[2];
  bool has[2] = {};
  for (Unsure& u : unsure_) {
    const int which = u.op == Op::kProduct;
    has[which] = true;
    L(u.entry);
    for (int n = 0; n < 2; ++n) {
      for (int p = 0; p < parts_; ++p) {
        Vector from = u.operands[n].unit >= 0 ? vector(u.operands[n].unit, p) : vector(u.to, p);
        if (u.operands[n].unit < 0) {
          const Xbyak::Address& memory = u.memory[static_cast<size_t>(p)];
          if (memory.isBroadcast())
            vpbroadcastd(from, ptr[rip + constants_[graph_[u.operands[n].id].immediate]]);
          else
            vmovups(from, memory);
        }
        vmovaps(ptr[rsp + kOperands + kLaneBytes * n + 32 * p], from);
      }
    }
    call(routines[which]);
    for (int p = 0; p < parts_; ++p) vmovaps(vector(u.to, p), ptr[rsp + kOperands + 32 * p]);
    jmp(u.back, T_NEAR);
  }
  for (int which = 0; which < 2; ++which)
    if (has[which]) unsure_routine(which ? Op::kProduct : Op::kSum, routines[which]);
}

/// Leaves all vector registers as they are.
void GraphEmitter::unsure_routine(Op op, Xbyak::Label& label) {
  constexpr int kReturn = 8;
  const auto for_each = [&](auto fn) {
    for (int n = 0; n < (wide_ ? 32 : 16); ++n)
      fn(Vector(wide_ ? Xbyak::Operand::ZMM : Xbyak::Operand::YMM, n),
         ptr[rsp + 2 * kReturn + kSaved + (wide_ ? 64 : 32) * n]);
  };
  L(label);
  sub(rsp, kReturn);
  for_each([&](const Vector& v, const Xbyak::Address& to) { vmovups(to, v); });
  ldmxcsr(ptr[rsp + 2 * kReturn + kHostMode]);
  lea(rdi, ptr[rsp + 2 * kReturn + kOperands]);
  lea(rsi, ptr[rsp + 2 * kReturn + kOperands + kLaneBytes]);
  mov(rax, reinterpret_cast<size_t>(find_exact(op)));
  vzeroupper();
  call(rax);
  ldmxcsr(ptr[rip + mode_]);
  for_each([&](const Vector& v, const Xbyak::Address& from) { vmovups(v, from); });
  add(rsp, kReturn);
  ret();
}

}  // namespace v3d::qpu::jit
