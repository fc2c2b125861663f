/// @file Code of what reaches outside of the graph: the thread, streams, ports.

#include <cstddef>

#include "gpu/qpu/isa/vc4.h"
#include "gpu/qpu/jit/graph/calls.h"
#include "gpu/qpu/jit/graph/emitter.h"
#include "gpu/qpu/jit/graph/facts.h"
#include "gpu/qpu/jit/graph/frame.h"
#include "gpu/qpu/run/vc4_thread.h"

namespace v3d::qpu::jit {
namespace {

using vc4::Thread;

}  // namespace

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

void GraphEmitter::store(const Node& node) {
  keep_what_stands_at(node.immediate);
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
  const TmuParameter to = *tmu_parameter_of(node);
  const auto member = [&](size_t offset) { return kThread + offset_of(to.lookup + offset); };
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
  mov(byte[member(to.flag)], 1);
  const int from = in_register(node.operands[0]);
  for (int p = 0; p < parts_; ++p) vmovups(ptr[member(to.value) + 32 * p], vector(from, p));
  consume(node);
}

void GraphEmitter::write_port(const Node& node) {
  tmu_parameter_of(node) ? tmu_parameter(node) : call_interpreter(node);
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
  const bool is_tmu = is_write && reads_uniform(node);
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
    Place& place = places_[id_of(node)];
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

}  // namespace v3d::qpu::jit
