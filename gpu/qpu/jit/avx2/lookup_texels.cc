/// @file The last step of a lookup: texels to return words, or data words to texels.

#include <array>
#include <bit>

#include "gpu/qpu/jit/avx2/lookups.h"
#include "gpu/qpu/jit/code/frame.h"
#include "gpu/qpu/jit/code/tmu_memory.h"

namespace v3d::qpu::jit::avx2 {

using tmu::LookupSteps;
using tmu::Plan;

namespace {

constexpr size_t kPartBytes = sizeof(Lanes) / 2;
constexpr int kChannels = 4;

size_t at_part(int part) { return static_cast<size_t>(part) * kPartBytes; }

}  // namespace

/// The words of the texels of a part stand in ymm0 and on after this.
void Lookups::load_words(const Load& load, int part) {
  const Ymm address = part_of(kAddress, part);
  mov(edi, 0x80000000);  // indices have a sign
  add(rdi, kMemory);
  if (load.bytes() < 4) {
    vpand(kB, address, constant(3));
    left(kB, kB, 3);
    vpand(address, address, constant(~3u));
  }
  vpxor(address, address, constant(0x80000000));
  for (int n = 0; n < load.bytes(); n += 4) {
    if (n != 0) vpaddd(address, address, constant(4));
    expand_lanes(kA, ecx, part);
    clear(Ymm(n / 4));
    vpgatherdd(Ymm(n / 4), ptr[rdi + address], kA);
  }
  if (load.bytes() < 4) vpsrlvd(kX, kX, kB);
}

/// A decoded channel of the texels in ymm0 and on. May change ymm3 where these do not reach.
void Lookups::channel_to(const Ymm& to, const Load& load, int channel, int part) {
  if (channel < load.count()) return extract(to, load, channel, part);
  if (channel < 3) return clear(to);
  expand_lanes(to, ecx, part);
  vpbroadcastd(Ymm(3), dword[kSlot + in_plan(offsetof(Plan, one))]);
  vpand(to, to, Ymm(3));
}

/// The low halves of words side by side, in the lower 128 bits.
void Lookups::halves_of_words(const Ymm& y) {
  vpackusdw(y, y, y);
  vpermq(y, y, 0x08);
}

void Lookups::extract(const Ymm& to, const Load& load, int channel, int part) {
  if (load.fields())
    return load.blends ? blend_fields(kBlend, to, channel, part)
                       : decode_fields(to, kX, channel, kBlend.spare, part);
  if (load.blends) return blend_columns(kBlend, to, channel);
  const Ymm whole(channel * load.bytes_of_channel() / 4);
  const bool odd = channel & 1;
  switch (load.channels) {
    case Channels::kUnorm8:
    case Channels::kUint8:
      right(to, whole, 8 * channel);
      vpand(to, to, constant(0xff));
      if (load.channels == Channels::kUint8) return;
      // unorm8(), whose products are exact
      vcvtdq2ps(to, to);
      vmulps(Ymm(3), to, of_float(65793 * 0x1p-24f));
      vmulps(to, to, of_float(65793 * 0x1p-48f));
      vaddps(to, to, Ymm(3));
      return;
    case Channels::kSint8:
      left(to, whole, 24 - 8 * channel);
      vpsrad(to, to, 24);
      return;
    case Channels::kHalf:
      odd ? right(to, whole, 16) : static_cast<void>(vpand(to, whole, constant(0xffff)));
      halves_of_words(to);
      vcvtph2ps(to, Xmm(to.getIdx()));
      return;
    case Channels::kUint16:
      odd ? right(to, whole, 16) : static_cast<void>(vpand(to, whole, constant(0xffff)));
      return;
    case Channels::kSint16:
      if (!odd) left(to, whole, 16);
      vpsrad(to, odd ? whole : to, 16);
      return;
    case Channels::kDepth16:
    case Channels::kDepth24:
      return extract_depth(to, whole, load);
    case Channels::kFloat:
    case Channels::kWord:
    case Channels::kField:
    case Channels::kSrgb8:
      vmovaps(to, whole);
  }
}

/// depth_from_unorm(). Changes ymm1 to ymm3.
void Lookups::extract_depth(const Ymm& to, const Ymm& whole, const Load& load) {
  const auto largest = std::bit_cast<std::array<uint32_t, 2>>(static_cast<double>(load.largest()));
  constexpr uint32_t kInFloat = ~0u << 29;  // of the lower half of a double
  load.bytes() == 2 ? static_cast<void>(vpand(to, whole, constant(0xffff))) : right(to, whole, 8);
  vextracti128(Xmm(2), to, 1);
  vcvtdq2pd(Ymm(1), Xmm(to.getIdx()));
  vcvtdq2pd(Ymm(2), Xmm(2));
  for (const Ymm& half : {Ymm(1), Ymm(2)}) {
    vdivpd(half, half, constant(Quad{largest[0], largest[1], largest[0], largest[1]}));
    vandpd(half, half, constant(Quad{kInFloat, ~0u, kInFloat, ~0u}));
    vcvtpd2ps(Xmm(half.getIdx()), half);
  }
  vinsertf128(to, Ymm(1), Xmm(2), 1);
}

/// A word of 16-bit output, in `low`.
void Lookups::pack_halves(const Ymm& low, const Ymm& high, bool integers) {
  if (integers) {
    vpand(low, low, constant(0xffff));
  } else {
    for (const Ymm& y : {low, high}) {
      vcvtps2ph(Xmm(y.getIdx()), y, 0);
      vpmovzxwd(y, Xmm(y.getIdx()));
    }
  }
  left(high, high, 16);
  vpor(low, low, high);
}

void Lookups::return_words(const Load& load, int part) {
  Label done;
  for (int n = 0; n < (load.wide ? 4 : 2); ++n) {
    cmp(kWords, n);
    je(done);
    if (load.wide) {
      channel_to(kA, load, load.channel(n), part);
    } else {
      channel_to(kA, load, load.channel(2 * n), part);
      channel_to(kB, load, load.channel(2 * n + 1), part);
      pack_halves(kA, kB, load.integers());
    }
    vmovaps(yword[kOut + static_cast<size_t>(n) * sizeof(Lanes) + at_part(part)], kA);
  }
  L(done);
}

/// All channels to the frame, and from there what the plan says.
void Lookups::return_any_words(const Load& load, int part) {
  const auto channel = [&](int n) {
    return yword[kFrame + offsetof(Frame, channels) + static_cast<size_t>(n) * sizeof(Lanes) + at_part(part)];
  };
  for (int n = 0; n < kChannels; ++n) {
    channel_to(kA, load, n, part);
    vmovaps(channel(n), kA);
  }
  clear(kA);
  vmovaps(channel(tmu::kZeroSource), kA);
  expand_lanes(kA, r8d, part);
  vpbroadcastd(kB, dword[kSlot + in_plan(offsetof(Plan, one))]);
  vpand(kA, kA, kB);
  vmovaps(channel(tmu::kOneSource), kA);

  Label done;
  const auto of_word = [&](const Ymm& y, int n, int half) {
    movzx(eax, byte[kSlot + in_plan(offsetof(Plan, word_channel)) + static_cast<size_t>(2 * n + half)]);
    shl(eax, 6);
    vmovaps(y, yword[kFrame + rax + offsetof(Frame, channels) + at_part(part)]);
  };
  for (int n = 0; n < (load.wide ? 4 : 2); ++n) {
    cmp(kWords, n);
    je(done);
    of_word(kA, n, 0);
    if (!load.wide) {
      of_word(kB, n, 1);
      pack_halves(kA, kB, load.integers());
    }
    vmovaps(yword[kOut + static_cast<size_t>(n) * sizeof(Lanes) + at_part(part)], kA);
  }
  L(done);
}

/// Decoded channels in R, G, B, A order of the format.
void Lookups::return_channels(const Load& load, int part) {
  for (int n = 0; n < kChannels; ++n) {
    channel_to(kA, load, n, part);
    vmovaps(yword[kOut + static_cast<size_t>(n) * sizeof(Lanes) + at_part(part)], kA);
  }
}

void Lookups::return_part(const Load& load, int part) {
  if (load.to_channels)
    return_channels(load, part);
  else
    load.order == Order::kAny ? return_any_words(load, part) : return_words(load, part);
}

void Lookups::emit_load(const Load& load) {
  for (int part = 0; part < 2; ++part) {
    load_words(load, part);
    return_part(load, part);
  }
  load.to_channels ? ret() : jmp(finished_);
}

/// @see store_words. The lowest lane first.
void Lookups::emit_store() {
  Label next, stored;
  for (int part = 0; part < 2; ++part)
    vmovaps(yword[kFrame + offsetof(Frame, addresses) + at_part(part)], part_of(kAddress, part));
  movzx(edi, byte[kSlot + in_steps(offsetof(LookupSteps, stored_words))]);
  test(ecx, ecx);
  jz(finished_);
  L(next);
  bsf(eax, ecx);
  mov(edx, dword[kFrame + rax * 4 + offsetof(Frame, addresses)]);
  add(rdx, kMemory);
  for (uint32_t n = 0; n < kMostWords; ++n) {
    if (n != 0) {
      cmp(edi, n);
      je(stored);
    }
    mov(r9d, dword[kThread + rax * 4 + kData + n * sizeof(Lanes)]);
    mov(dword[rdx + 4 * n], r9d);
  }
  L(stored);
  lea(eax, ptr[rcx - 1]);
  and_(ecx, eax);
  jnz(next);
  xor_(kWords, kWords);
  jmp(finished_);
}

}  // namespace v3d::qpu::jit::avx2
