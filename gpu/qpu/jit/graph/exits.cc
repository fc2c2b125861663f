/// @file Where code is left, with what others find in the thread then.

#include <cstddef>

#include "gpu/qpu/jit/graph/frame.h"
#include "gpu/qpu/jit/graph/run_emitter.h"
#include "gpu/qpu/run/vc4_compiled.h"
#include "gpu/qpu/run/vc4_thread.h"

namespace v3d::qpu::jit {
namespace {

using graph::Op;
using vc4::Thread;
using Unit = Thread::Pending::Unit;

constexpr uint32_t kLargest = 0x7f7fffff;
constexpr int kNotLess = 5;  // of integers

}  // namespace

void RunEmitter::check_sure() {
  if (!notes_unsure_ || !has_noted_) return;
  leave_unsure();
  has_noted_ = false;
}

void RunEmitter::leave_unsure() {
  vpcmpud(k1, Xbyak::Zmm(kUnsureUnit), constant(2 * kLargest), kNotLess);
  kortestw(k1, k1);
  jnz(unsure_exit_, T_NEAR);
}

void RunEmitter::be_sure() {
  check_sure();
  notes_unsure_ = false;
}

/// A guard or the finish. What is stored stands behind it, and its values are where they are now.
void RunEmitter::leave(const Node& node) {
  Exit exit;
  exit.node = &node;
  exit.values = stored_at(graph_, node, places_);
  if (node.op == Op::kFinish) {
    be_sure();
    store_all(exit);
    set_mode(Mode::kHost);
  } else {
    exit.mode = current_mode_;
    exit.notes_unsure = notes_unsure_ && has_noted_;
    guards_.push_back(exit);
    cmp(dword[kThread + offset_of(offsetof(Thread, pending.met_no_memory))], 0);
    jne(guards_.back().entry, T_NEAR);
  }
  for (const Stored& what : exit.values) consume(*what.node);
}

void RunEmitter::guards() {
  for (Exit& exit : guards_) {
    L(exit.entry);
    if (exit.notes_unsure) leave_unsure();
    store_all(exit);
    if (exit.mode != Mode::kHost) ldmxcsr(ptr[rip + host_mode_]);
    note_place(*exit.node);
    mov(rax, reinterpret_cast<size_t>(vc4::kLeft));
    jmp(leave_, T_NEAR);
  }
}

void RunEmitter::store_all(Exit& exit) {
  copy_replaced(graph_, exit.values, [&](const Stored& what) {
    const auto copy = static_cast<int16_t>(num_slots_++);
    for (int p = 0; p < parts_; ++p) {
      load_stored(scratch(0), what, p);
      vmovaps(slot(copy, p), scratch(0));
    }
    return copy;
  });
  for (const Stored& what : exit.values) store(what);
  const uint32_t varyings = exit.node->immediate & 0xffff, uniforms = exit.node->immediate >> 16;
  if (varyings != 0)
    add(dword[kThread + offset_of(offsetof(Thread, pending.next_varying))], static_cast<int>(varyings));
  if (uniforms != 0)
    add(dword[kThread + offset_of(offsetof(Thread, uniforms))], 4 * static_cast<int>(uniforms));
}

/// Changes eax, ecx, edx and a scratch register.
void RunEmitter::store(const Stored& what) {
  const Node& node = *what.node;
  const auto member = [&](size_t offset) { return kThread + offset_of(offset); };
  if (node.op == Op::kStoreMask) return store_mask(what, word[member(node.immediate)]);
  size_t to = node.immediate;
  if (node.op == Op::kStoreResult) {
    static_assert(vc4::kTmuResults == 16);
    const size_t unit = offsetof(Thread, pending.tmu) + node.immediate * sizeof(Unit);
    mov(eax, dword[member(unit + offsetof(Unit, tail))]);
    inc(dword[member(unit + offsetof(Unit, tail))]);
    and_(eax, vc4::kTmuResults - 1);
    shl(eax, 6);
    to = unit + offsetof(Unit, results);
  } else if (node.op == Op::kStoreSfu) {
    mov(byte[member(offsetof(Thread, pending.events.sfu_in))], static_cast<int>(node.immediate));
    to = offsetof(Thread, pending.sfu_result);
  }
  for (int p = 0; p < parts_; ++p) {
    load_stored(scratch(0), what, p);
    const Xbyak::RegExp at = member(to + 32 * static_cast<size_t>(p));
    vmovups(node.op == Op::kStoreResult ? ptr[at + rax] : ptr[at], scratch(0));
  }
}

}  // namespace v3d::qpu::jit
