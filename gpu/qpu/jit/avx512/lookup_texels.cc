/// @file The last step of a lookup: texels to return words, or data words to texels.

#include <array>
#include <bit>

#include "gpu/base/float16.h"
#include "gpu/qpu/jit/avx512/lookups.h"
#include "gpu/qpu/jit/code/frame.h"
#include "gpu/qpu/jit/code/tmu_memory.h"

namespace v3d::qpu::jit::avx512 {

using tmu::LookupSteps;
using tmu::Plan;

namespace {

constexpr uint32_t kChannels = 4;
constexpr uint8_t kOrOfKept = 0xec;  // of vpternlogd: (a & c) | b

/// The halves that stand for bytes of unorm8, by their bytes.
struct HalvesOfBytes {
  alignas(64) std::array<uint8_t, 256> low, high;
  /// From the low bytes of all channels and the high ones, of 64 each: where those of channel 0 are, twice.
  alignas(64) std::array<uint32_t, kLanes> first;
};

consteval HalvesOfBytes make_halves_of_bytes() {
  HalvesOfBytes table{};
  for (uint32_t n = 0; n < 256; ++n) {
    const uint16_t half = float_to_half(static_cast<float>(n) / 255.0f);
    table.low[n] = static_cast<uint8_t>(half);
    table.high[n] = static_cast<uint8_t>(half >> 8);
  }
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    table.first[lane] = (4 * lane | (64 + 4 * lane) << 8) * 0x10001;
  return table;
}
constinit const HalvesOfBytes kHalvesOfBytes = make_halves_of_bytes();

}  // namespace

/// The words of all texels stand in zmm2, zmm3, ... after this; the lanes with texels in ecx.
void Lookups::load_words(const Load& load) {
  mov(edi, 0x80000000);  // indices have a sign
  add(rdi, kMemory);
  kmovw(ecx, kLanesMask);
  if (load.bytes() < 4) {
    vpandd(kA, kAddress, constant(3));
    left(kA, kA, 3);
    vpandd(kAddress, kAddress, constant(~3u));
  }
  vpxord(kAddress, kAddress, constant(0x80000000));
  for (int n = 0; n < load.bytes(); n += 4) {
    const Zmm to(kY.getIdx() + n / 4);
    if (n != 0) {
      vpaddd(kAddress, kAddress, constant(4));
      kmovw(kLanesMask, ecx);
    }
    clear(to);
    vpgatherdd(to | kLanesMask, ptr[rdi + kAddress]);
  }
  if (load.bytes() < 4) vpsrlvd(kY, kY, kA);
}

/// Where all lanes have a texel, and these lie in the lines of those of the corners of the block, permutes
/// the four lines, which is faster than a gather, and goes to `loaded`. Mostly tried where it has worked of
/// late.
void Lookups::load_lines_of_corners(Label& loaded) {
  constexpr uint32_t kTries = 4, kPeriod = 64;
  Label far, tried, near;
  const auto of_lane = [this](size_t lane) {
    return kFrame + offsetof(Frame, addresses) + lane * sizeof(uint32_t);
  };
  const auto far_lookups = dword[kFrame + offsetof(Frame, far_lookups)];
  kmovw(ecx, kLanesMask);
  cmp(ecx, kAllLanes);
  jne(far);
  mov(eax, far_lookups);
  cmp(eax, kTries);
  jae(tried);
  vpandd(kA, kAddress, constant(~63u));
  right(kB, kAddress, 2);
  vmovdqa64(zword[kFrame + offsetof(Frame, addresses)], kA);
  xor_(edi, edi);
  const auto take_line = [&](const auto& to, size_t corner) {
    vpcmpeqd(kLanesMask, kA, ptr_b[of_lane(corner)]);
    mov(edx, dword[of_lane(corner)]);
    vpermd(to, kB, zword[kMemory + rdx]);
    kmovw(edx, kLanesMask);
    or_(edi, edx);
  };
  // In two chains. What a lane finds twice is the same.
  take_line(kY | kLanesMask | T_z, 0);
  take_line(kX | kLanesMask | T_z, 5);
  take_line(kY | kLanesMask, 10);
  take_line(kX | kLanesMask, 15);
  vpord(kY, kY, kX);
  cmp(edi, kAllLanes);
  je(near);
  kmovw(kLanesMask, ecx);
  L(tried);
  inc(eax);
  and_(eax, kPeriod - 1);
  mov(far_lookups, eax);
  jmp(far);
  L(near);
  mov(far_lookups, 0);
  jmp(loaded);
  L(far);
}

/// Texels of four words when all lanes have one: by 128 bits. Goes on at `gather` otherwise.
void Lookups::load_vectors(Label& gather) {
  kmovw(ecx, kLanesMask);
  cmp(ecx, kAllLanes);
  jne(gather);
  vpcmpud(kLanesMask, kAddress, constant(kHighAddress), 5);  // not below
  kortestw(kLanesMask, kLanesMask);
  kmovw(kLanesMask, ecx);
  jnz(gather);
  vmovdqa64(zword[kFrame + offsetof(Frame, addresses)], kAddress);
  const Zmm rows[4] = {Zmm(2), Zmm(3), Zmm(4), Zmm(5)};
  for (int row = 0; row < 4; ++row) {
    for (int quad = 0; quad < 4; ++quad) {
      mov(eax, dword[kFrame + offsetof(Frame, addresses) + 4 * static_cast<size_t>(4 * quad + row)]);
      if (quad == 0)
        vmovdqu32(Xmm(rows[row].getIdx()), xword[kMemory + rax]);
      else
        vinserti32x4(rows[row], rows[row], xword[kMemory + rax], static_cast<uint8_t>(quad));
    }
  }
  transpose(*this, rows, kAddress);
}

/// A decoded channel of the texels in zmm2 and those after it.
void Lookups::channel_to(const Zmm& to, const Load& load, int channel) {
  if (channel < load.count()) return extract(to, load, channel);
  if (channel < 3) return clear(to);
  kmovw(kLanesMask, ecx);
  vpbroadcastd(to | kLanesMask | T_z, dword[kSlot + in_plan(offsetof(Plan, one))]);
}

/// unorm8() of the TMU, whose products are exact.
void Lookups::unorm8(const Zmm& v, const Zmm& spare) {
  vcvtdq2ps(v, v);
  vmulps(spare, v, of_float(65793 * 0x1p-24f));
  vfmadd132ps(v, spare, of_float(65793 * 0x1p-48f));
}

void Lookups::extract(const Zmm& to, const Load& load, int channel) {
  if (decodes_bytes(load)) return vmovdqa64(to, kept_channel(channel));
  if (load.fields())
    return load.blends ? blend_fields(kBlend, to, channel, 0)
                       : decode_fields(to, kY, channel, kBlend.spare, 0);
  if (load.blends) return blend_columns(kBlend, to, channel);
  const Zmm whole(kY.getIdx() + channel * load.bytes_of_channel() / 4);
  const Ymm half(to.getIdx());
  const bool odd = channel & 1;
  switch (load.channels) {
    case Channels::kUnorm8:
    case Channels::kUint8:
      if (channel == 3)
        right(to, whole, 24);
      else if (channel == 0)
        vpandd(to, whole, constant(0xff));
      else
        right(to, whole, 8 * channel), vpandd(to, to, constant(0xff));
      if (load.channels == Channels::kUint8) return;
      return unorm8(to, kAddress);
    case Channels::kSint8:
      left(to, whole, 24 - 8 * channel);
      vpsrad(to, to, 24);
      return;
    case Channels::kHalf:
      if (odd) right(to, whole, 16);
      vpmovdw(half, odd ? to : whole);
      vcvtph2ps(to, half);
      return;
    case Channels::kUint16:
      odd ? right(to, whole, 16) : vpandd(to, whole, constant(0xffff));
      return;
    case Channels::kSint16:
      if (!odd) left(to, whole, 16);
      vpsrad(to, odd ? whole : to, 16);
      return;
    case Channels::kDepth16:
    case Channels::kDepth24:
      // depth_from_unorm(), which rounds towards zero, in float: no quotient lies so near below a float that
      // doubles would round it up to that.
      load.bytes() == 2 ? static_cast<void>(vpandd(to, whole, constant(0xffff))) : right(to, whole, 8);
      vcvtdq2ps(to, to);
      vbroadcastss(kAddress,
                   dword[rip + constant_label(std::bit_cast<uint32_t>(static_cast<float>(load.largest())))]);
      vdivps(to, to, kAddress | T_rz_sae);
      return;
    case Channels::kFloat:
    case Channels::kWord:
    case Channels::kField:
    case Channels::kSrgb8:
      if (to.getIdx() != whole.getIdx()) vmovdqa64(to, whole);
  }
}

/// A word of 16-bit output, in `low`.
void Lookups::pack_halves(const Zmm& low, const Zmm& high, bool integers) {
  if (integers) {
    vpandd(low, low, constant(0xffff));
  } else {
    for (const Zmm& z : {low, high}) {
      vcvtps2ph(Ymm(z.getIdx()), z, 0);
      vpmovzxwd(z, Ymm(z.getIdx()));
    }
  }
  left(high, high, 16);
  vpord(low, low, high);
}

void Lookups::return_words_in_order(const Load& load, Label& done) {
  // Texels of three or four words stand in zmm2 to zmm5: there the words are the channels.
  const Zmm to(load.bytes() > 8 ? 6 : 5), other(load.bytes() > 8 ? 2 : 4);
  for (uint32_t n = 0; n < (load.wide ? 4u : 2u); ++n) {
    cmp(kWords, n);
    je(done, T_NEAR);
    if (load.wide) {
      channel_to(to, load, load.channel(static_cast<int>(n)));
    } else {
      channel_to(to, load, load.channel(static_cast<int>(2 * n)));
      channel_to(other, load, load.channel(static_cast<int>(2 * n + 1)));
      pack_halves(to, other, load.integers());
    }
    vmovdqa64(zword[kOut + n * sizeof(Lanes)], to);
  }
  jmp(done, T_NEAR);
}

/// All channels to the frame, and from there what the plan says.
void Lookups::return_any_words(const Load& load, Label& done) {
  const auto channel = [&](uint32_t n) {
    return zword[kFrame + offsetof(Frame, channels) + n * sizeof(Lanes)];
  };
  const Zmm to(load.bytes() > 8 ? 6 : 5);
  for (uint32_t n = 0; n < kChannels; ++n) {
    channel_to(to, load, static_cast<int>(n));
    vmovdqa64(channel(n), to);
  }
  clear(to);
  vmovdqa64(channel(tmu::kZeroSource), to);
  kmovw(kLanesMask, r8d);
  vpbroadcastd(to | kLanesMask | T_z, dword[kSlot + in_plan(offsetof(Plan, one))]);
  vmovdqa64(channel(tmu::kOneSource), to);
  const auto of_word = [&](const Zmm& z, uint32_t n, uint32_t half) {
    movzx(eax, byte[kSlot + in_plan(offsetof(Plan, word_channel)) + 2 * n + half]);
    shl(eax, 6);
    vmovdqa64(z, zword[kFrame + rax + offsetof(Frame, channels)]);
  };
  for (uint32_t n = 0; n < (load.wide ? 4u : 2u); ++n) {
    cmp(kWords, n);
    je(done, T_NEAR);
    of_word(kA, n, 0);
    if (!load.wide) {
      of_word(kB, n, 1);
      pack_halves(kA, kB, load.integers());
    }
    vmovdqa64(zword[kOut + n * sizeof(Lanes)], kA);
  }
  jmp(done, T_NEAR);
}

/// Of texels of four channels of a byte.
void Lookups::return_halves_of_bytes() {
  const Zmm low(3), high(6), to(4), ones(5);
  mov(rdx, reinterpret_cast<uint64_t>(&kHalvesOfBytes));
  vpmovb2m(kLanesMask, kY);
  look_up_bytes(low, kY, offsetof(HalvesOfBytes, low), to);
  look_up_bytes(high, kY, offsetof(HalvesOfBytes, high), to);
  kmovw(kLanesMask, r8d);
  for (uint32_t n = 0; n < 2; ++n) {
    const auto of_word = [&](size_t field) {
      return kSlot + in_steps(offsetof(LookupSteps, halves) + n * sizeof(LookupSteps::Halves) + field);
    };
    cmp(kWords, n);
    je(finished_, T_NEAR);
    vpbroadcastd(to, dword[of_word(offsetof(LookupSteps::Halves, channels))]);
    vpaddd(to, to, zword[rdx + offsetof(HalvesOfBytes, first)]);
    vpermi2b(to, low, high);
    vpbroadcastd(ones | kLanesMask | T_z, dword[of_word(offsetof(LookupSteps::Halves, ones))]);
    vpternlogd(to, ones, ptr_b[of_word(offsetof(LookupSteps::Halves, mask))], kOrOfKept);
    vmovdqa64(zword[kOut + n * sizeof(Lanes)], to);
  }
  jmp(finished_, T_NEAR);
}

/// Decoded channels in R, G, B, A order of the format.
void Lookups::return_channels(const Load& load) {
  const Zmm to(load.bytes() > 8 ? 6 : 5);
  for (uint32_t n = 0; n < kChannels; ++n) {
    channel_to(to, load, static_cast<int>(n));
    vmovdqa64(zword[kOut + n * sizeof(Lanes)], to);
  }
}

void Lookups::emit_load(const Load& load) {
  Label gather, loaded;
  if (load.bytes() == 16) {
    load_vectors(gather);
    jmp(loaded);
    L(gather);
  }
  if (load.bytes() == 4) load_lines_of_corners(loaded);
  load_words(load);
  L(loaded);
  if (decodes_bytes(load)) {
    decode_bytes();
    return_decoded(load, finished_);
    if (load.to_channels) ret();
    return;
  }
  if (load.to_channels) {
    return_channels(load);
    return ret();
  }
  if (has_vbmi_ && load.channels == Channels::kUnorm8 && load.log2_count == 2 && !load.wide)
    return return_halves_of_bytes();
  // Two channels in front of those that they replace: more than return_words_in_order() has registers for.
  const bool crosses = load.order == Order::kBgra && load.bytes() == 16 && !load.wide;
  load.order == Order::kAny || crosses ? return_any_words(load, finished_)
                                       : return_words_in_order(load, finished_);
}

/// @see store_words; of equal addresses the instruction takes the highest lane.
void Lookups::emit_store() {
  Label next;
  mov(edi, 0x80000000);
  add(rdi, kMemory);
  kmovw(ecx, kLanesMask);
  vpxord(kAddress, kAddress, constant(0x80000000));
  movzx(edx, byte[kSlot + in_steps(offsetof(LookupSteps, stored_words))]);
  lea(rax, ptr[kThread + kData]);
  L(next);
  kmovw(kLanesMask, ecx);
  vmovdqa64(kA, zword[rax]);
  vpscatterdd(ptr[rdi + kAddress] | kLanesMask, kA);
  vpaddd(kAddress, kAddress, constant(4));
  add(rax, sizeof(Lanes));
  dec(edx);
  jnz(next);
  jmp(finished_, T_NEAR);
}

}  // namespace v3d::qpu::jit::avx512
