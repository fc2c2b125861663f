/// @file Loads and stores by address. The commonest ones have code in place; all others share one routine per
/// program, for words of 32 bits and vectors of them. It takes addresses in Frame::addresses and the lanes in
/// r8d, changes ymm0 to ymm7 and general registers. Gives 0 in eax, with nothing done, for what is not here:
/// small types, most atomics, errors, addresses at the end of the window.
///
/// Each must leave what general_lookup() of the TMU leaves, and touch the same pages.

#include "gpu/qpu/jit/avx2/emitter.h"
#include "gpu/qpu/jit/code/tmu_memory.h"
#include "gpu/tmu/lookup/plan.h"

namespace v3d::qpu::jit::avx2 {

using Xbyak::Xmm;
using Xbyak::Ymm;

namespace {

constexpr size_t kAddresses = offsetof(Frame, addresses);
constexpr size_t kPartBytes = sizeof(Lanes) / 2;

const Ymm kLow(0), kHigh(1);  // addresses of the two parts
const Ymm& address_of(int part) { return part == 0 ? kLow : kHigh; }

}  // namespace

/// A word of each lane, all next to each other. Goes on at `otherwise`, with nothing done, for all else.
void Emitter::emit_access_in_place(const Ymm (&addresses)[2], const Ymm (&temps)[3], Label& otherwise) {
  check_access(false, otherwise);
  std::array<uint32_t, 16> distances;
  for (uint32_t i = 0; i < 16; ++i) distances[i] = i * 4;
  vpbroadcastd(temps[2], Xmm(addresses[0].getIdx()));
  for (part_ = 0; part_ < 2; ++part_) {
    vpsubd(temps[part_], addresses[part_], constants(distances));
    vpcmpeqd(temps[part_], temps[part_], temps[2]);
  }
  vpand(temps[0], temps[0], temps[1]);
  vpmovmskb(edx, temps[0]);
  cmp(edx, ~0u);
  jne(otherwise, T_NEAR);
  vmovd(esi, Xmm(addresses[0].getIdx()));
  check_address(otherwise);
  const bool stores = access_stores();
  for (part_ = 0; part_ < 2; ++part_) {
    const Xbyak::Address there = yword[rsi + static_cast<size_t>(part_) * kPartBytes];
    if (stores) vmovaps(temps[part_], in_thread(kData));
    stores ? vmovups(there, temps[part_]) : vmovups(temps[part_], there);
  }
  finish_access();
  for (part_ = 0; part_ < 2 && !stores; ++part_)
    vmovaps(yword[kThread + rdx + (kFifo + static_cast<size_t>(part_) * kPartBytes)], temps[part_]);
  prefetch_next(stores);
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
  cmp(dword[kFrame + kAddresses], kHighAddress - 64);
  jae(refused, T_NEAR);
  vpxor(Ymm(2), Ymm(2), Ymm(2));
  for (part_ = 0; part_ < 2; ++part_) vpcmpeqd(Ymm(3 + part_), Ymm(2), in_thread(offsetof(Thread, msf)));
  lanes_to(ecx, Ymm(3), Ymm(4));
  xor_(ecx, kAllLanes);
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

/// A bit for each lane. Changes edx.
void Emitter::lanes_to(const Reg32& to, const Ymm& low, const Ymm& high) {
  vmovmskps(to, low);
  vmovmskps(edx, high);
  shl(edx, 8);
  or_(to, edx);
}

/// The data words, whose number goes to ecx, and addresses of words.
void Emitter::take_words() {
  movzx(ecx, byte[kThread + kNumData]);
  mov(word[kThread + kWritten], 0);
  for (part_ = 0; part_ < 2; ++part_) {
    vmovaps(address_of(part_), in_frame(kAddresses));
    vpand(address_of(part_), address_of(part_), constant(~3u));
  }
}

/// Takes the configuration, too.
void Emitter::emit_begin_access() {
  mov(ecx, dword[kThread + offsetof(Thread, tmu_config)]);
  shr(ecx, 8);
  or_(ecx, 0xff000000);
  mov(dword[kThread + offsetof(Thread, tmu_config)], ecx);
  take_words();
}

/// The commonest access, of one word for each lane (of ecx) with the configuration of thread start, which
/// stays as it is.
void Emitter::emit_word_access() {
  Label load, scatter, some, other_addresses;
  and_(r8d, ecx);
  take_words();
  mov(eax, 1);
  vmovd(esi, Xmm(kLow.getIdx()));
  add(rsi, kMemory);
  test(ecx, ecx);
  jz(load, T_NEAR);

  cmp(r8d, kAllLanes);
  jne(scatter, T_NEAR);
  test_stride(4);
  jne(scatter, T_NEAR);
  for (part_ = 0; part_ < 2; ++part_) {
    vmovaps(Ymm(2), in_thread(kData));
    vmovups(yword[rsi + static_cast<size_t>(part_) * kPartBytes], Ymm(2));
  }
  prefetch_next(true);
  ret();
  L(scatter);
  emit_scatters();
  mov(eax, 1);
  ret();

  L(load);
  cmp(r8d, kAllLanes);
  jne(some, T_NEAR);
  test_stride(4);
  jne(other_addresses, T_NEAR);
  vmovups(Ymm(2), yword[rsi]);
  vmovups(Ymm(3), yword[rsi + kPartBytes]);
  prefetch_next(false);
  push_word(Ymm(2), Ymm(3));
  ret();
  L(other_addresses);
  test_stride(0);
  jne(some, T_NEAR);
  vpbroadcastd(Ymm(2), dword[rsi]);
  push_word(Ymm(2), Ymm(2));
  ret();
  L(some);
  emit_gathers();
  mov(eax, 1);
  ret();
}

/// Words of the type to eax; r8d becomes the lanes that take part, of the live ones in ecx. On to `atomics`
/// with those in esi and the operation in r9d.
void Emitter::emit_active_lanes(Label& refused, Label& atomics) {
  Label per_pixel;
  test(byte[kThread + offsetof(Thread, tmu_config)], kPerPixel);
  jnz(per_pixel);
  whole_quads_of_ecx();
  L(per_pixel);
  mov(esi, r8d);
  and_(esi, ecx);

  movzx(ecx, byte[kThread + offsetof(Thread, tmu_config)]);
  mov(r9d, ecx);
  and_(r9d, kOperation);
  cmp(r9d, kRegularAccess);
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
    vmovd(Xmm(2), ecx);
    vpbroadcastd(Ymm(2), Xmm(2));
    for (part_ = 0; part_ < 2; ++part_) {
      vmovaps(Ymm(3 + part_), in_frame(kAddresses));
      vpand(Ymm(3 + part_), Ymm(3 + part_), constant(12));
      vpcmpgtd(Ymm(3 + part_), Ymm(3 + part_), Ymm(2));
    }
    lanes_to(ecx, Ymm(3), Ymm(4));
    test(ecx, esi);
    jnz(refused, T_NEAR);
  }
  mov(r8d, esi);
}

/// Sums and counts, which are what most programs ask for. r9d is the operation, esi the lanes.
void Emitter::emit_atomics(Label& refused) {
  Label count, prepared, differ, done;
  movzx(ecx, byte[kThread + kNumData]);
  cmp(r9d, kCount);
  je(count);
  cmp(r9d, kAdd);
  jne(refused, T_NEAR);
  test(ecx, ecx);
  jz(refused, T_NEAR);
  for (part_ = 0; part_ < 2; ++part_) vmovaps(Ymm(2 + part_), in_thread(kData));
  jmp(prepared);
  L(count);
  test(ecx, ecx);
  jnz(refused, T_NEAR);
  for (part_ = 0; part_ < 2; ++part_) vmovaps(Ymm(2 + part_), constant(1));
  L(prepared);
  mov(r8d, esi);
  emit_begin_access();
  vpxor(Ymm(4), Ymm(4), Ymm(4));
  for (part_ = 0; part_ < 2; ++part_) {
    vmovaps(in_frame(kAddresses), address_of(part_));
    vmovaps(in_frame(offsetof(Frame, a)), Ymm(2 + part_));
    vmovaps(in_frame(offsetof(Frame, b)), Ymm(4));
  }
  test(r8d, r8d);
  jz(done, T_NEAR);
  emit_common_sum(differ, done);
  L(differ);
  emit_lane_sums();
  L(done);
  for (part_ = 0; part_ < 2; ++part_) vmovaps(Ymm(2 + part_), in_frame(offsetof(Frame, b)));
  push_word(Ymm(2), Ymm(3));
  mov(eax, 1);
  ret();
}

/// One sum for all lanes of r8d that add the same value at the same address, else on to `differ`. The values
/// are in ymm2 and ymm3.
void Emitter::emit_common_sum(Label& differ, Label& done) {
  Label next;
  tzcnt(ecx, r8d);
  mov(r9d, dword[kFrame + rcx * 4 + kAddresses]);
  mov(edi, dword[kFrame + rcx * 4 + offsetof(Frame, a)]);
  vmovd(Xmm(4), r9d);
  vmovd(Xmm(5), edi);
  vpbroadcastd(Ymm(4), Xmm(4));
  vpbroadcastd(Ymm(5), Xmm(5));
  for (part_ = 0; part_ < 2; ++part_) {
    vpcmpeqd(address_of(part_), address_of(part_), Ymm(4));
    vpcmpeqd(Ymm(2 + part_), Ymm(2 + part_), Ymm(5));
    vpand(Ymm(2 + part_), Ymm(2 + part_), address_of(part_));
  }
  lanes_to(ecx, Ymm(2), Ymm(3));
  not_(ecx);
  test(ecx, r8d);
  jnz(differ, T_NEAR);
  popcnt(eax, r8d);
  imul(eax, edi);
  CodeGenerator::lock();
  xadd(dword[kMemory + r9], eax);
  L(next);  // the lowest lane first
  tzcnt(ecx, r8d);
  mov(dword[kFrame + rcx * 4 + offsetof(Frame, b)], eax);
  add(eax, edi);
  lea(ecx, ptr[r8 - 1]);
  and_(r8d, ecx);
  jnz(next);
  jmp(done, T_NEAR);
}

/// Compares addresses with ones that lie `bytes` apart; equal in the host's flags if they all agree.
void Emitter::test_stride(uint32_t bytes) {
  std::array<uint32_t, 16> distances;
  for (uint32_t i = 0; i < 16; ++i) distances[i] = i * bytes;
  vpbroadcastd(Ymm(2), Xmm(kLow.getIdx()));
  for (part_ = 0; part_ < 2; ++part_) {
    if (bytes != 0)
      vpsubd(Ymm(3 + part_), address_of(part_), constants(distances));
    else
      vmovaps(Ymm(3 + part_), address_of(part_));
    vpcmpeqd(Ymm(3 + part_), Ymm(3 + part_), Ymm(2));
  }
  vpand(Ymm(3), Ymm(3), Ymm(4));
  vpmovmskb(edx, Ymm(3));
  cmp(edx, ~0u);
}

void Emitter::push_word(const Ymm& low, const Ymm& high) {
  queue_slot(0);
  inc(dword[kThread + kTail]);
  vmovaps(yword[kThread + rdx + kFifo], low);
  vmovaps(yword[kThread + rdx + (kFifo + kPartBytes)], high);
}

/// To rdx, from the Thread.
void Emitter::queue_slot(uint32_t behind_tail) {
  mov(edx, dword[kThread + kTail]);
  if (behind_tail != 0) add(edx, behind_tail);
  and_(edx, kTmuFifo - 1);
  shl(edx, 6);
}

/// eax words, 1 to 4.
void Emitter::emit_loads() {
  Label gather, not_consecutive, not_equal, done;
  cmp(r8d, kAllLanes);
  jne(gather, T_NEAR);
  vmovd(ecx, Xmm(kLow.getIdx()));
  lea(rsi, ptr[kMemory + rcx]);
  const auto push_words = [&](const auto& load) {
    for (uint32_t k = 0; k < kMostWords; ++k) {
      queue_slot(0);
      inc(dword[kThread + kTail]);
      for (size_t part = 0; part < 2; ++part) {
        load(k * sizeof(uint32_t), part);
        vmovaps(yword[kThread + rdx + (kFifo + part * kPartBytes)], Ymm(2));
      }
      dec(eax);
      jz(done, T_NEAR);
    }
  };
  test_stride(4);
  jne(not_consecutive, T_NEAR);
  push_words([&](size_t at, size_t part) { vmovups(Ymm(2), yword[rsi + (at + part * kPartBytes)]); });
  L(not_consecutive);
  test_stride(0);
  jne(not_equal, T_NEAR);
  push_words([&](size_t at, size_t part) {
    if (part == 0) vpbroadcastd(Ymm(2), dword[rsi + at]);
  });
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

void Emitter::emit_gathers() {
  Label next;
  mov(r9d, 0x80000000);
  add(r9, kMemory);  // indices have a sign: they count from the middle
  L(next);
  queue_slot(0);
  inc(dword[kThread + kTail]);
  for (part_ = 0; part_ < 2; ++part_) {
    const Ymm value(2), mask(3), index(4);
    spread_bits(mask, r8d);
    vpxor(value, value, value);
    vpxor(index, address_of(part_), constant(0x80000000));
    vpgatherdd(value, ptr[r9 + index], mask);
    vmovaps(yword[kThread + rdx + (kFifo + static_cast<size_t>(part_) * kPartBytes)], value);
    vpaddd(address_of(part_), address_of(part_), constant(4));
  }
  dec(eax);
  jnz(next);
}

/// Four words of each lane, wherever they are.
void Emitter::emit_vector_load(Label& gather) {
  for (part_ = 0; part_ < 2; ++part_) {
    vpmaxud(Ymm(3 + part_), address_of(part_), constant(kHighAddress));
    vpcmpeqd(Ymm(3 + part_), Ymm(3 + part_), address_of(part_));
    vmovaps(in_frame(kAddresses), address_of(part_));
  }
  vpor(Ymm(3), Ymm(3), Ymm(4));
  vptest(Ymm(3), Ymm(3));
  jnz(gather, T_NEAR);
  const Ymm rows[4] = {Ymm(2), Ymm(3), Ymm(4), Ymm(5)};
  for (size_t part = 0; part < 2; ++part) {
    for (size_t row = 0; row < 4; ++row) {
      const size_t lane = 8 * part + row;
      mov(ecx, dword[kFrame + (kAddresses + 4 * lane)]);
      mov(esi, dword[kFrame + (kAddresses + 4 * (lane + 4))]);
      vmovups(Xmm(rows[row].getIdx()), xword[kMemory + rcx]);
      vinserti128(rows[row], rows[row], xword[kMemory + rsi], 1);
    }
    transpose(*this, rows, Ymm(6));
    for (uint32_t k = 0; k < 4; ++k) {
      queue_slot(k);
      vmovaps(yword[kThread + rdx + (kFifo + part * kPartBytes)], rows[k]);
    }
  }
  add(dword[kThread + kTail], 4);
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
  vmovd(ecx, Xmm(kLow.getIdx()));
  lea(rsi, ptr[kMemory + rcx]);
  test_stride(4);
  jne(not_consecutive, T_NEAR);
  for (size_t k = 0; k < kMostWords; ++k) {
    for (part_ = 0; part_ < 2; ++part_) {
      vmovaps(Ymm(2), in_thread(kData + k * sizeof(Lanes)));
      vmovups(yword[rsi + (4 * k + static_cast<size_t>(part_) * kPartBytes)], Ymm(2));
    }
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

/// Word by word, in the order of lanes where addresses are equal.
void Emitter::emit_scatters() {
  Label next_word, next_lane, none;
  for (part_ = 0; part_ < 2; ++part_) vmovaps(in_frame(kAddresses), address_of(part_));
  lea(rdi, ptr[kThread + kData]);
  xor_(esi, esi);  // bytes of the words before
  L(next_word);
  mov(r9d, r8d);
  test(r9d, r9d);
  jz(none);
  L(next_lane);
  bsf(ecx, r9d);
  mov(edx, dword[kFrame + rcx * 4 + kAddresses]);
  add(edx, esi);
  mov(ecx, dword[rdi + rcx * 4]);
  mov(dword[kMemory + rdx], ecx);
  lea(ecx, ptr[r9 - 1]);
  and_(r9d, ecx);
  jnz(next_lane);
  L(none);
  add(rdi, sizeof(Lanes));
  add(esi, 4);
  dec(eax);
  jnz(next_word);
}

/// Four words of each lane, the lanes side by side.
void Emitter::emit_vector_store(Label& scatter) {
  test_stride(16);
  jne(scatter, T_NEAR);
  cmp(ecx, 0xffffff00);
  jae(scatter, T_NEAR);
  const Ymm rows[4] = {Ymm(2), Ymm(3), Ymm(4), Ymm(5)};
  for (part_ = 0; part_ < 2; ++part_) {
    for (size_t k = 0; k < 4; ++k) vmovaps(rows[k], in_thread(kData + k * sizeof(Lanes)));
    transpose(*this, rows, Ymm(6));
    // Now register r has lane 4q + r of the part in its 128 bits q.
    for (size_t row = 0; row < 4; ++row)
      for (size_t quad = 0; quad < 2; ++quad)
        vextracti128(xword[rsi + 16 * (8 * static_cast<size_t>(part_) + 4 * quad + row)], rows[row],
                     static_cast<uint8_t>(quad));
  }
  mov(eax, 1);
  ret();
}

}  // namespace v3d::qpu::jit::avx2
