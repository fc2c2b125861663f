/// @file Texture lookups of compiled programs: by the code of the plan that lookups at their place in the
/// program found last, if that is the plan, and has code.

#include <cstddef>
#include <cstdint>

#include "gpu/qpu/jit/code/program_emitter.h"
#include "gpu/qpu/jit/code/tmu_memory.h"
#include "gpu/tmu/lookup/plan.h"

namespace v3d::qpu::jit {

using tmu::Plan;
using tmu::PlanSlot;
using tmu::RecentPlans;
using tmu::TextureLookup;
using Xbyak::Ymm;

namespace {

constexpr size_t kConfigs = in_pending(offsetof(Pending, num_config));
constexpr size_t in_plan(size_t offset) { return offsetof(PlanSlot, plan) + offset; }
constexpr uint32_t kHalfTheSpace = 0x80000000;

const Xbyak::Reg64 kSlot(Xbyak::Operand::RSI);

constexpr uint32_t launcher_of(Effect effect) {
  return static_cast<uint32_t>(effect) - static_cast<uint32_t>(Effect::kTexture);
}
static_assert(launcher_of(Effect::kTextureCube) == static_cast<uint32_t>(tmu::Launcher::kSCm) &&
              launcher_of(Effect::kTextureFetch) == static_cast<uint32_t>(tmu::Launcher::kSF) &&
              launcher_of(Effect::kTextureLod) == static_cast<uint32_t>(tmu::Launcher::kSLod));

}  // namespace

/// Programs of draws that follow each other should not all begin with site 0.
void ProgramEmitter::call_lookup(Effect effect) {
  uses_lookups_ = true;
  const uint32_t site = (static_cast<uint32_t>(flow_.nodes.size()) + node_) % RecentPlans::kSites;
  mov(edx, launcher_of(effect) << 16 | site);
  call(lookup_);
  test(eax, eax);
}

void ProgramEmitter::emit_lookups() {
  if (!uses_lookups_) return;
  setDefaultJmpNEAR(true);
  Label refused;
  L(lookup_);
  mov(byte[kThread + kTexture + offsetof(TextureLookup, site)], dl);
  mov(rdi, qword[kThread + offsetof(Thread, tmu)]);
  test(rdi, rdi);
  jz(refused);
  mov(rdi, qword[rdi]);
  movzx(ecx, dl);
  xor_(edx, ecx);  // of the key: launcher, number of data words, parameters
  mov(kSlot, qword[rdi + rcx * 8 + offsetof(RecentPlans, at)]);
  compare_plan(refused);
  cmp(qword[kSlot + in_plan(offsetof(Plan, code_begin))], 0);
  je(refused);
  find_room_for_words(refused);
  find_lanes_of_lookup();
  mov(word[kThread + kTexture + offsetof(TextureLookup, exec)], r8w);
  lea(r8, ptr[kSlot + in_plan(offsetof(Plan, data))]);
  mov(r9d, kHalfTheSpace);
  add(r9, kMemory);
  call(ptr[kSlot + in_plan(offsetof(Plan, code_begin))]);
  end_lookup();
  L(refused);
  xor_(eax, eax);
  ret();
  setDefaultJmpNEAR(false);
}

/// Configuration words that were left out have their values, as those of the lookup before have been taken.
void ProgramEmitter::compare_plan(Label& other) {
  movzx(eax, byte[kThread + kWritten]);
  or_(edx, eax);
  movzx(eax, byte[kThread + kNumData]);
  shl(eax, 8);
  or_(edx, eax);
  cmp(edx, dword[kSlot + in_plan(offsetof(Plan, key.shape))]);
  jne(other);
  mov(eax, dword[kThread + kTexture + offsetof(TextureLookup, p0)]);
  cmp(eax, dword[kSlot + in_plan(offsetof(Plan, key.p0))]);
  jne(other);
  cmp(byte[kThread + kConfigs], 0);
  je(other);
  mov(eax, dword[kThread + kTexture + offsetof(TextureLookup, p1)]);
  cmp(eax, dword[kSlot + in_plan(offsetof(Plan, key.p1))]);
  jne(other);
  mov(eax, dword[kThread + kTexture + offsetof(TextureLookup, p2)]);
  cmp(eax, dword[kSlot + in_plan(offsetof(Plan, key.p2))]);
  jne(other);
}

/// One after the other, from r10 on; end_lookup() moves those beyond the end of the queue to its start.
void ProgramEmitter::find_room_for_words(Label& none) {
  mov(eax, dword[kThread + kTail]);
  mov(edx, eax);
  sub(edx, dword[kThread + kHead]);
  movzx(ecx, byte[kSlot + in_plan(offsetof(Plan, num_words))]);
  add(edx, ecx);
  cmp(edx, kTmuFifo);
  ja(none);
  and_(eax, kTmuFifo - 1);
  shl(eax, 6);
  lea(r10, ptr[kThread + rax + kFifo]);
}

/// Of those in r8d the ones that take part.
void ProgramEmitter::find_lanes_of_lookup() {
  Label all, some;
  cmp(dword[kFrame + offsetof(Frame, plain)], 0);
  jne(all);
  const Ymm zero(2), dead(3);
  vpxor(zero, zero, zero);
  vpcmpeqd(dead, zero, yword[kThread + offsetof(Thread, msf)]);
  vmovmskps(ecx, dead);
  vpcmpeqd(dead, zero, yword[kThread + offsetof(Thread, msf) + sizeof(Lanes) / 2]);
  vmovmskps(edx, dead);
  shl(edx, 8);
  or_(ecx, edx);
  xor_(ecx, kAllLanes);
  cmp(ecx, kAllLanes);
  je(all);
  cmp(byte[kSlot + in_plan(offsetof(Plan, per_pixel))], 0);
  jne(some);
  whole_quads_of_ecx();
  L(some);
  and_(r8d, ecx);
  L(all);
}

/// The lookup has taken place.
void ProgramEmitter::end_lookup() {
  static_assert(kMostWords - 1 <= kTmuFifoRoom);
  Label over, next;
  mov(eax, dword[kThread + kTail]);
  movzx(ecx, byte[kSlot + in_plan(offsetof(Plan, num_words))]);
  add(dword[kThread + kTail], ecx);
  mov(byte[kThread + kConfigs], 0);
  mov(dword[kThread + kTexture + offsetof(TextureLookup, p1)], tmu::kDefaultP1);
  mov(dword[kThread + kTexture + offsetof(TextureLookup, p2)], tmu::kDefaultP2);
  mov(word[kThread + kWritten], 0);
  and_(eax, kTmuFifo - 1);
  add(eax, ecx);
  sub(eax, kTmuFifo);
  jg(over);
  mov(eax, 1);
  ret();

  L(over);
  shl(eax, 6);
  L(next);
  sub(eax, sizeof(Lanes) / 2);
  vmovups(Ymm(2), yword[kThread + rax + (kFifo + kTmuFifo * sizeof(Lanes))]);
  vmovups(yword[kThread + rax + kFifo], Ymm(2));
  jnz(next);
  mov(eax, 1);
  ret();
}

}  // namespace v3d::qpu::jit
