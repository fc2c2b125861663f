/// @file Atomic sums of lanes. Sixteen locked instructions take most of the time of programs that count, as
/// each waits for the one before. Where the host has transactions (RTM) one of them does for all lanes, and
/// nobody can tell: others see either nothing of it or all.

#include <xbyak/xbyak_util.h>

#include "gpu/qpu/jit/code/program_emitter.h"

namespace v3d::qpu::jit {
namespace {

/// With fewer lanes locks are cheaper.
constexpr uint32_t kFewLanes = 4;
/// Accesses that use locks after a transaction failed: somebody else writes there, or a page is missing.
constexpr uint32_t kLockedAfterFailure = 8;

constexpr size_t kLockedAccesses = offsetof(Frame, locked_accesses);

bool host_has_transactions() {
  static const bool kHas = Xbyak::util::Cpu().has(Xbyak::util::Cpu::tRTM);
  return kHas;
}

}  // namespace

void ProgramEmitter::emit_lane_sums() {
  Label locked, next, done;
  if (host_has_transactions()) emit_sums_in_transaction(locked, done);
  L(locked);
  L(next);  // the lowest lane first
  tzcnt(ecx, r8d);
  mov(edx, dword[kFrame + rcx * 4 + offsetof(Frame, addresses)]);
  mov(eax, dword[kFrame + rcx * 4 + offsetof(Frame, a)]);
  lock();
  xadd(dword[kMemory + rdx], eax);
  mov(dword[kFrame + rcx * 4 + offsetof(Frame, b)], eax);
  lea(ecx, ptr[r8 - 1]);
  and_(r8d, ecx);
  jnz(next);
  L(done);
}

/// ... or on to `locked`, with nothing done.
void ProgramEmitter::emit_sums_in_transaction(Label& locked, Label& done) {
  Label tries, failed, some, next;
  cmp(dword[kFrame + kLockedAccesses], 0);
  je(tries);
  dec(dword[kFrame + kLockedAccesses]);
  jmp(locked, T_NEAR);
  L(tries);
  popcnt(eax, r8d);
  cmp(eax, kFewLanes);
  jb(locked, T_NEAR);
  const auto begin_transaction = {0xc7, 0xf8, 0, 0, 0, 0}, end_transaction = {0x0f, 0x01, 0xd5};
  mov(eax, ~0u);
  for (const int code : begin_transaction) db(code);  // XBEGIN: failures go on after it, with another eax
  cmp(eax, ~0u);
  jne(failed, T_NEAR);
  cmp(r8d, kAllLanes);
  jne(some, T_NEAR);
  for (size_t at = 0; at < sizeof(Lanes); at += sizeof(uint32_t)) {
    mov(ecx, dword[kFrame + (offsetof(Frame, addresses) + at)]);
    mov(edx, dword[kFrame + (offsetof(Frame, a) + at)]);
    mov(eax, dword[kMemory + rcx]);
    mov(dword[kFrame + (offsetof(Frame, b) + at)], eax);
    add(edx, eax);
    mov(dword[kMemory + rcx], edx);
  }
  for (const int code : end_transaction) db(code);
  jmp(done, T_NEAR);

  L(some);
  mov(esi, r8d);
  L(next);
  tzcnt(ecx, esi);
  mov(edx, dword[kFrame + rcx * 4 + offsetof(Frame, addresses)]);
  mov(eax, dword[kMemory + rdx]);
  mov(dword[kFrame + rcx * 4 + offsetof(Frame, b)], eax);
  add(eax, dword[kFrame + rcx * 4 + offsetof(Frame, a)]);
  mov(dword[kMemory + rdx], eax);
  lea(ecx, ptr[rsi - 1]);
  and_(esi, ecx);
  jnz(next);
  for (const int code : end_transaction) db(code);
  jmp(done, T_NEAR);

  L(failed);
  mov(dword[kFrame + kLockedAccesses], kLockedAfterFailure);
  jmp(locked, T_NEAR);
}

}  // namespace v3d::qpu::jit
