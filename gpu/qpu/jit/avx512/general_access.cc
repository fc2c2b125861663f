/// @file Loads and stores by address. The commonest ones have code in place; all others share one routine per
/// program, for words of 32 bits and vectors of them. It takes addresses in kTemp2 and the lanes in r8d,
/// changes kUnpackedA to kTemp3, kScratchMask and general registers. Gives 0 in eax, with nothing done and
/// the addresses kept, for what is not here: small types, most atomics, errors, addresses at the end of the
/// window.
///
/// Each must leave what general_lookup() of the TMU leaves, and touch the same pages.

#include <utility>

#include "gpu/qpu/jit/avx512/emitter.h"
#include "gpu/qpu/jit/code/tmu_memory.h"
#include "gpu/tmu/lookup/plan.h"

namespace v3d::qpu::jit::avx512 {

using Xbyak::Xmm;

namespace {

constexpr uint8_t kNotBelow = 5, kAbove = 6;

}  // namespace

/// A word of each lane, all next to each other, at kTemp2, which stays as it is. Goes on at `otherwise`, with
/// nothing done, for all else. @param configured  as at the start of a thread, by a uniform
void Emitter::emit_access_in_place(bool configured, Label& otherwise) {
  check_access(configured, otherwise);
  test_stride(4);
  jnc(otherwise, T_NEAR);
  vmovd(esi, Xmm(kTemp2.getIdx()));
  check_address(otherwise);
  if (access_stores()) {
    vmovdqa64(kTemp, at(kData));
    vmovdqu32(zword[rsi], kTemp);
    finish_access();
  } else {
    vmovdqu32(kTemp, zword[rsi]);
    finish_access();
    vmovdqa64(zword[kThread + rdx + kFifo], kTemp);
  }
  if (configured) mov(dword[kThread + offsetof(Thread, tmu_config)], kConfigAtStart);
  prefetch_next(access_stores());
}

void Emitter::emit_routines() {
  if (uses_general_access_) emit_general_access();
}

void Emitter::emit_general_access() {
  Label refused, general, stores, atomics;
  L(general_access_);
  cmp(qword[kThread + offsetof(Thread, tmu)], 0);
  je(refused, T_NEAR);
  test(byte[kThread + kWritten], tmu::kDref | tmu::kOff);
  jnz(refused, T_NEAR);
  mov(eax, dword[kThread + kTail]);
  sub(eax, dword[kThread + kHead]);
  cmp(eax, kTmuFifo - kMostWords);
  ja(refused, T_NEAR);
  vmovd(ecx, Xmm(kTemp2.getIdx()));
  cmp(ecx, kHighAddress - 64);
  jae(refused, T_NEAR);
  vmovdqa64(kTemp, at(offsetof(Thread, msf)));
  vptestmd(kScratchMask, kTemp, kTemp);
  kmovw(ecx, kScratchMask);
  cmp(dword[kThread + offsetof(Thread, tmu_config)], kConfigAtStart);
  jne(general, T_NEAR);
  emit_word_access();

  L(general);
  emit_active_lanes(refused, atomics);
  // From here on the access takes place.
  emit_begin_access();
  test(ecx, ecx);
  jnz(stores, T_NEAR);
  emit_loads();
  L(stores);
  emit_stores();
  L(atomics);
  emit_atomics(refused);
  L(refused);
  xor_(eax, eax);
  ret();
}

/// Takes the configuration and the data words, whose number goes to ecx.
void Emitter::emit_begin_access() {
  mov(ecx, dword[kThread + offsetof(Thread, tmu_config)]);
  shr(ecx, 8);
  or_(ecx, 0xff000000);
  mov(dword[kThread + offsetof(Thread, tmu_config)], ecx);
  movzx(ecx, byte[kThread + kNumData]);
  mov(word[kThread + kWritten], 0);
  vpandd(kTemp2, kTemp2, constant(~3u));
}

/// The commonest access, of one word for each lane (of ecx) with the configuration of thread start, which
/// stays as it is.
void Emitter::emit_word_access() {
  Label load, some, other_addresses;
  and_(r8d, ecx);
  movzx(ecx, byte[kThread + kNumData]);
  mov(word[kThread + kWritten], 0);
  mov(eax, 1);
  vpandd(kTemp2, kTemp2, constant(~3u));
  vmovd(edx, Xmm(kTemp2.getIdx()));
  test(ecx, ecx);
  jz(load, T_NEAR);

  Label scatter;
  cmp(r8d, kAllLanes);
  jne(scatter, T_NEAR);
  test_stride(4);
  jnc(scatter, T_NEAR);
  vmovdqa64(kTemp, at(kData));
  lea(rsi, ptr[kMemory + rdx]);
  vmovdqu32(zword[rsi], kTemp);
  prefetch_next(true);
  ret();
  L(scatter);
  emit_scatters();
  mov(eax, 1);
  ret();

  L(load);
  cmp(r8d, kAllLanes);
  jne(some, T_NEAR);
  lea(rsi, ptr[kMemory + rdx]);
  test_stride(4);
  jnc(other_addresses, T_NEAR);
  vmovdqu32(kTemp, zword[rsi]);
  prefetch_next(false);
  push_word(kTemp);
  ret();
  L(other_addresses);
  test_stride(0);
  jnc(some, T_NEAR);
  vpbroadcastd(kTemp, dword[rsi]);
  push_word(kTemp);
  ret();
  L(some);
  emit_gathers();
  mov(eax, 1);
  ret();
}

/// Words of the type to eax; r8d becomes the lanes that take part, of the live ones in ecx.
void Emitter::emit_active_lanes(Label& refused, Label& atomics) {
  Label per_pixel;
  test(byte[kThread + offsetof(Thread, tmu_config)], kPerPixel);
  jnz(per_pixel);
  whole_quads_of_ecx();
  L(per_pixel);
  mov(esi, r8d);
  and_(esi, ecx);

  movzx(ecx, byte[kThread + offsetof(Thread, tmu_config)]);
  mov(edx, ecx);
  and_(edx, kOperation);
  cmp(edx, kRegularAccess);
  jne(atomics, T_NEAR);  // or a prefetch
  and_(ecx, 7);
  shl(ecx, 2);
  mov(eax, kWordsOfTypes);
  shr(eax, cl);
  and_(eax, 15);
  jz(refused, T_NEAR);
  if (tmu::lookup_properties(generation()).wrap16) {
    // Vectors that go on at the start of their 16 bytes are left to the function.
    mov(ecx, kMostWords);
    sub(ecx, eax);
    shl(ecx, 2);
    vpbroadcastd(kTemp, ecx);
    vpandd(kUnpackedA, kTemp2, constant(12));
    vpcmpud(kScratchMask, kUnpackedA, kTemp, kAbove);
    kmovw(ecx, kScratchMask);
    test(ecx, esi);
    jnz(refused, T_NEAR);
  }
  mov(r8d, esi);
}

/// Sums and counts, which are what most programs ask for. edx is the operation, esi the lanes.
void Emitter::emit_atomics(Label& refused) {
  Label count, prepared, next, done;
  movzx(ecx, byte[kThread + kNumData]);
  cmp(edx, kCount);
  je(count);
  cmp(edx, kAdd);
  jne(refused, T_NEAR);
  test(ecx, ecx);
  jz(refused, T_NEAR);
  mov(r8d, esi);
  vmovdqa64(kTemp3, at(kData));
  jmp(prepared);
  L(count);
  test(ecx, ecx);
  jnz(refused, T_NEAR);
  mov(r8d, esi);
  vpbroadcastd(kTemp3, constant(1, false));
  L(prepared);
  emit_begin_access();
  vmovdqa64(in_frame(offsetof(Frame, addresses)), kTemp2);
  vmovdqa64(in_frame(offsetof(Frame, a)), kTemp3);
  vpxord(kTemp, kTemp, kTemp);
  vmovdqa64(in_frame(offsetof(Frame, b)), kTemp);
  test(r8d, r8d);
  jz(done, T_NEAR);
  emit_common_sum(next);
  L(next);
  emit_lane_sums();
  L(done);
  vmovdqa64(kTemp, in_frame(offsetof(Frame, b)));
  push_word(kTemp);
  mov(eax, 1);
  ret();
}

void Emitter::test_stride(uint32_t bytes) {
  std::array<uint32_t, 16> distances;
  for (uint32_t i = 0; i < 16; ++i) distances[i] = i * bytes;
  if (bytes != 0)
    vpsubd(kTemp, kTemp2, constants(distances));
  else
    vmovdqa64(kTemp, kTemp2);
  vpbroadcastd(kUnpackedA, Xmm(kTemp2.getIdx()));
  vpcmpeqd(kScratchMask, kTemp, kUnpackedA);
  kortestw(kScratchMask, kScratchMask);
}

void Emitter::push_word(const Zmm& value) {
  mov(edx, dword[kThread + kTail]);
  inc(dword[kThread + kTail]);
  and_(edx, kTmuFifo - 1);
  shl(edx, 6);
  vmovdqa64(zword[kThread + rdx + kFifo], value);
}

/// eax words, 1 to 4.
void Emitter::emit_loads() {
  Label gather, not_consecutive, not_equal, done;
  cmp(r8d, kAllLanes);
  jne(gather, T_NEAR);
  vmovd(ecx, Xmm(kTemp2.getIdx()));
  lea(rsi, ptr[kMemory + rcx]);
  const auto push_words = [&](const auto& load) {
    for (uint32_t k = 0; k < kMostWords; ++k) {
      load(4 * k);
      push_word(kTemp);
      dec(eax);
      jz(done, T_NEAR);
    }
  };
  test_stride(4);
  jnc(not_consecutive, T_NEAR);
  push_words([&](uint32_t at) { vmovdqu32(kTemp, zword[rsi + at]); });
  L(not_consecutive);
  test_stride(0);
  jnc(not_equal, T_NEAR);
  push_words([&](uint32_t at) { vpbroadcastd(kTemp, dword[rsi + at]); });
  L(not_equal);
  cmp(eax, 4);
  jne(gather, T_NEAR);
  emit_vector_load(gather);
  L(gather);
  emit_gathers();
  L(done);
  mov(eax, 1);
  ret();
}

/// Indices of gathers have a sign.
void Emitter::index_from_middle() {
  mov(r9d, 0x80000000);
  add(r9, kMemory);
}

void Emitter::emit_gathers() {
  Label next;
  index_from_middle();
  L(next);
  kmovw(kScratchMask, r8d);
  vpxord(kTemp, kTemp, kTemp);
  vpxord(kTemp3, kTemp2, constant(0x80000000));
  vpgatherdd(kTemp | kScratchMask, ptr[r9 + kTemp3]);
  push_word(kTemp);
  vpaddd(kTemp2, kTemp2, constant(4));
  dec(eax);
  jnz(next);
}

/// Four words of each lane, wherever they are.
void Emitter::emit_vector_load(Label& gather) {
  vpcmpud(kScratchMask, kTemp2, constant(kHighAddress), kNotBelow);
  kortestw(kScratchMask, kScratchMask);
  jnz(gather, T_NEAR);
  vmovdqa64(in_frame(offsetof(Frame, addresses)), kTemp2);
  const Zmm rows[4] = {kUnpackedA, kUnpackedB, kTemp, kTemp3};
  for (int row = 0; row < 4; ++row) {
    for (int quad = 0; quad < 4; ++quad) {
      const size_t lane = 4 * static_cast<size_t>(quad) + static_cast<size_t>(row);
      mov(ecx, dword[kFrame + offsetof(Frame, addresses) + 4 * lane]);
      if (quad == 0)
        vmovdqu32(Xmm(rows[row].getIdx()), xword[kMemory + rcx]);
      else
        vinserti32x4(rows[row], rows[row], xword[kMemory + rcx], static_cast<uint8_t>(quad));
    }
  }
  transpose(*this, rows, kTemp2);
  for (const Zmm& value : rows) push_word(value);
  mov(eax, 1);
  ret();
}

/// ecx data words, 1 to 4, of which eax at most are stored.
void Emitter::emit_stores() {
  Label scatter, not_consecutive, done;
  cmp(ecx, eax);
  cmovb(eax, ecx);
  cmp(r8d, kAllLanes);
  jne(scatter, T_NEAR);
  vmovd(ecx, Xmm(kTemp2.getIdx()));
  lea(rsi, ptr[kMemory + rcx]);
  test_stride(4);
  jnc(not_consecutive, T_NEAR);
  for (uint32_t k = 0; k < kMostWords; ++k) {
    vmovdqa64(kTemp, at(kData + k * sizeof(Lanes)));
    vmovdqu32(zword[rsi + 4 * k], kTemp);
    dec(eax);
    jz(done, T_NEAR);
  }
  L(not_consecutive);
  cmp(eax, 4);
  jne(scatter, T_NEAR);
  emit_vector_store(scatter);
  L(scatter);
  emit_scatters();
  L(done);
  mov(eax, 1);
  ret();
}

/// One sum for all lanes of r8d that add the same value at the same address, else on to `differ`.
void Emitter::emit_common_sum(Label& differ) {
  tzcnt(ecx, r8d);
  mov(edx, dword[kFrame + rcx * 4 + offsetof(Frame, addresses)]);
  mov(edi, dword[kFrame + rcx * 4 + offsetof(Frame, a)]);
  for (const auto& [values, first] : {std::pair(kTemp2, edx), std::pair(kTemp3, edi)}) {
    vpbroadcastd(kUnpackedA, first);
    vpcmpeqd(kScratchMask, values, kUnpackedA);
    kmovw(esi, kScratchMask);
    not_(esi);
    test(esi, r8d);
    jnz(differ, T_NEAR);
  }
  kmovw(kScratchMask, r8d);
  popcnt(eax, r8d);
  imul(eax, edi);
  lock();
  xadd(dword[kMemory + rdx], eax);
  std::array<uint32_t, 16> ranks;
  for (uint32_t i = 0; i < 16; ++i) ranks[i] = i;
  vmovdqu32(kTemp, constants(ranks));
  vpexpandd(kTemp | kScratchMask | T_z, kTemp);
  vpmulld(kTemp, kTemp, kTemp3);
  vpbroadcastd(kUnpackedA, eax);
  vpaddd(kTemp | kScratchMask | T_z, kTemp, kUnpackedA);
  push_word(kTemp);
  mov(eax, 1);
  ret();
}

/// In the order of lanes where addresses are equal, as the instruction does.
void Emitter::emit_scatters() {
  Label next;
  index_from_middle();
  lea(rdi, ptr[kThread + kData]);
  L(next);
  kmovw(kScratchMask, r8d);
  vmovdqa64(kTemp, zword[rdi]);
  vpxord(kTemp3, kTemp2, constant(0x80000000));
  vpscatterdd(ptr[r9 + kTemp3] | kScratchMask, kTemp);
  vpaddd(kTemp2, kTemp2, constant(4));
  add(rdi, sizeof(Lanes));
  dec(eax);
  jnz(next);
}

/// Four words of each lane, the lanes side by side.
void Emitter::emit_vector_store(Label& scatter) {
  test_stride(16);
  jnc(scatter, T_NEAR);
  cmp(ecx, 0xffffff00);
  jae(scatter, T_NEAR);
  const Zmm rows[4] = {kUnpackedA, kUnpackedB, kTemp, kTemp3};
  for (size_t k = 0; k < 4; ++k) vmovdqa64(rows[k], at(kData + k * sizeof(Lanes)));
  transpose(*this, rows, kTemp2);
  // Now register r has lane 4q + r in its 128 bits q.
  for (int row = 0; row < 4; ++row)
    for (int quad = 0; quad < 4; ++quad)
      vextracti32x4(xword[rsi + 16 * (4 * quad + row)], rows[row], static_cast<uint8_t>(quad));
  mov(eax, 1);
  ret();
}

}  // namespace v3d::qpu::jit::avx512
