/// @file What both back ends do alike, by vectors of 16 or 8 lanes: from coordinates to texels, and four
/// texels of 8-bit unorm channels blended. @see linear_tap() and Unorm8Texel of the TMU

#include <bit>

#include "gpu/qpu/jit/code/frame.h"
#include "gpu/qpu/jit/code/lookup_emitter.h"

namespace v3d::qpu::jit {

using Xbyak::Operand;
using Xbyak::Xmm;

namespace {

constexpr uint8_t kDown = 9;        // of vrndscaleps and vroundps, without exceptions
constexpr uint8_t kOrOfAnd = 0xf8;  // of vpternlogd: a | (b & c)
constexpr uint32_t kAbsent = 0x80;  // of vpshufb: zero
constexpr float kUnorm = 1.0f / (255 * 256);
constexpr float kLowest = -32768 * 256.0f, kHighest = 32767 * 256.0f;  // of 1/256 texels

constexpr size_t in_field(int channel, size_t offset) {
  return offsetof(tmu::LookupSteps, fields) + static_cast<size_t>(channel) * sizeof(tmu::Field) + offset;
}

}  // namespace

// ---- Instructions that vectors of one width have, or have by another name

Xbyak::Address LookupEmitter::constant(uint32_t bits) {
  return wide_ ? ptr_b[rip + constant_label(bits)] : yword[rip + constant_label(bits)];
}

Xbyak::Address LookupEmitter::of_float(float value) { return constant(std::bit_cast<uint32_t>(value)); }

/// The same four words in all groups of four lanes; also for instructions that broadcast nothing.
Xbyak::Address LookupEmitter::constant(const Quad& words) {
  auto& label = quads_[words];
  if (!label) label = std::make_unique<Label>();
  return ptr[rip + *label];
}

void LookupEmitter::bits_xor(const Xmm& to, const Xmm& a, const Operand& b) {
  wide_ ? vpxord(to, a, b) : vpxor(to, a, b);
}

/// Or of `to` and the bits of `from` that are in the mask. @param spare  changed if vectors are short
void LookupEmitter::or_masked(const Xmm& to, const Xmm& from, uint32_t mask, const Xmm& spare) {
  if (wide_) return vpternlogd(to, from, constant(mask), kOrOfAnd);
  vpand(spare, from, constant(mask));
  vpor(to, to, spare);
}

void LookupEmitter::round_down(const Xmm& to, const Xmm& from) {
  wide_ ? vrndscaleps(to, from, kDown) : vroundps(to, from, kDown);
}

/// An instruction that takes a word of the level for all lanes. @param spare  where it stands if vectors are
/// short
template <typename Instruction>
void LookupEmitter::of_level(size_t table, const Xmm& spare, const Instruction& instruction) {
  if (wide_) return instruction(ptr_b[kLevel + table]);
  vpbroadcastd(spare, dword[kLevel + table]);
  instruction(spare);
}

// ---- Coordinates

/// reduce() and the first part of sub_texel(): 1/256 texels, from 0 to 256 n if repeated, or twice that if
/// mirrored.
void LookupEmitter::scale(const Xmm& at, Wrap wrap, const Axis& axis) {
  const Xmm& spare = spares_[0];
  if (wrap != Wrap::kClamp) {
    if (wrap == Wrap::kMirror) {
      vmulps(spare, at, of_float(0.5f));
      round_down(spare, spare);
      vaddps(spare, spare, spare);
    } else {
      round_down(spare, at);
    }
    vsubps(at, at, spare);
    vmaxps(at, at, of_float(0));
  }
  of_level(axis.scale, spare, [&](const Operand& scale) { vmulps(at, at, scale); });
  if (wrap == Wrap::kMirror) vminps(at, at, of_float(kHighest));
}

/// From `least` to the center of the last texel, after which nothing changes any more.
void LookupEmitter::clamp(const Xmm& at, const Axis& axis, float least) {
  vmaxps(at, at, of_float(least));
  of_level(axis.last, spares_[0], [&](const Operand& last) { vminps(at, at, last); });
}

/// wrap_index() of indices at most one outside. The minimum of numbers without sign chooses what is in range.
/// @param below  they may lie before the first texel, else after the last one
void LookupEmitter::wrap_index(const Xmm& index, Wrap wrap, const Axis& axis, bool below) {
  const Xmm &size = spares_[0], &other = spares_[1];
  if (wrap == Wrap::kClamp) return;
  if (wrap == Wrap::kRepeat) {
    of_level(axis.size, size,
             [&](const Operand& n) { below ? vpaddd(other, index, n) : vpsubd(other, index, n); });
    return vpminud(index, index, other);
  }
  vpbroadcastd(size, dword[kLevel + axis.size]);
  vpaddd(size, size, size);
  below ? vpaddd(other, index, size) : vpsubd(other, index, size);
  vpminud(index, index, other);
  vpsubd(other, size, index);
  vpaddd(other, other, constant(~0u));
  vpminud(index, index, other);
}

/// The texel at a coordinate.
void LookupEmitter::texel_index(const Xmm& at, Wrap wrap, const Axis& axis) {
  scale(at, wrap, axis);
  if (wrap == Wrap::kClamp) clamp(at, axis, 0);
  vcvttps2dq(at, at);
  vpsrld(at, at, 8);
  wrap_index(at, wrap, axis, false);
}

/// The two texels around a coordinate. Where it is the center of one, that is also the second; beyond the
/// edge of a clamped axis both are the last one. Of `at` the lowest byte stays the weight.
/// @param in_float  that counts between two that are the same, too, as blending rounds
void LookupEmitter::texel_pair(const Xmm& at, Wrap wrap, const Axis& axis, const Xmm& first,
                               const Xmm& second, bool in_float) {
  const bool clamps = wrap == Wrap::kClamp, may_be_outside = clamps && in_float;
  scale(at, wrap, axis);
  if (may_be_outside) {
    vmaxps(at, at, of_float(kLowest));
    vminps(at, at, of_float(kHighest));
    round_down(at, at);
  } else if (clamps) {
    clamp(at, axis, 128);
  }
  vcvttps2dq(at, at);
  vpaddd(at, at, constant(static_cast<uint32_t>(-128)));
  vpaddd(second, at, constant(255));
  vpsrad(first, at, 8);
  vpsrad(second, second, 8);
  if (may_be_outside) {
    const Xmm& last = spares_[0];
    vpbroadcastd(last, dword[kLevel + axis.size]);
    vpaddd(last, last, constant(~0u));
    for (const Xmm* index : {&first, &second}) {
      vpmaxsd(*index, *index, constant(0));
      vpminsd(*index, *index, last);
    }
    return;
  }
  wrap_index(first, wrap, axis, true);
  wrap_index(second, wrap, axis, false);
}

// ---- Blending

/// From fixed-point coordinates to factors: bytes 256 - w and w, and halves likewise. A weight of 0 becomes
/// 1, as both texels are the same then, so that bytes hold the factors.
void LookupEmitter::blend_factors(const Xmm& x, const Xmm& y) {
  vpshufb(x, x, constant(Quad{0, 0x04040404, 0x08080808, 0x0c0c0c0c}));
  vpmaxub(x, x, constant(Quad{0x01010101, 0x01010101, 0x01010101, 0x01010101}));
  bits_xor(x, x, constant(0x00ff00ff));
  vpaddb(x, x, constant(Quad{0x00010001, 0x00010001, 0x00010001, 0x00010001}));
  constexpr uint32_t kHalves = kAbsent << 24 | kAbsent << 8;
  vpshufb(y, y, constant(Quad{kHalves, kHalves | 0x00040004, kHalves | 0x00080008, kHalves | 0x000c000c}));
  bits_xor(y, y, constant(0x0000ffff));
  vpaddw(y, y, constant(Quad{0x00000101, 0x00000101, 0x00000101, 0x00000101}));
}

/// Rows blended: even channels to b.even, the odd ones in place of the first and third texel; less 32768, as
/// bytes without sign times factors do not fit 16 bits with one.
void LookupEmitter::blend_rows(const Blend& b, bool has_odd) {
  for (const Xmm& texel : b.texel) bits_xor(texel, texel, constant(0x80808080));
  for (int k = 0; k < 2; ++k) {
    const Xmm &left = b.texel[2 * k], &right = b.texel[2 * k + 1], &even = b.even[k];
    vpsllw(even, right, 8);
    or_masked(even, left, 0x00ff00ff, b.spare);
    vpmaddubsw(even, b.factors_x, even);
    if (!has_odd) continue;
    vpsrlw(left, left, 8);
    or_masked(left, right, 0xff00ff00, b.spare);
    vpmaddubsw(left, b.factors_x, left);
  }
  if (wide_) vbroadcastss(b.texel[1], dword[rip + constant_label(std::bit_cast<uint32_t>(kUnorm * 0x1p15f))]);
}

/// A channel of both rows, after blend_rows(): sums below 2^24, which the one rounding after them sees as
/// they are.
void LookupEmitter::blend_columns(const Blend& b, const Xmm& to, int channel) {
  const bool odd = channel & 1;
  const Xmm &top = odd ? b.texel[0] : b.even[0], &bottom = odd ? b.texel[2] : b.even[1];
  if (channel < 2) {
    vpslld(to, bottom, 16);
    or_masked(to, top, 0xffff, b.spare);
  } else {
    vpsrld(to, top, 16);
    or_masked(to, bottom, 0xffff0000, b.spare);
  }
  vpmaddwd(to, to, b.factors_y);
  if (wide_) {
    vcvtdq2ps(to, to);
    return vfmadd132ps(to, b.texel[1], of_float(kUnorm * 0x1p-8f));
  }
  vpaddd(to, to, constant(1u << 23));
  vcvtdq2ps(to, to);
  vmulps(to, to, of_float(kUnorm * 0x1p-8f));
}

// ---- Fields

/// A channel of texels. All lanes have an index of the table, whatever they loaded.
void LookupEmitter::field_to(const Xmm& to, const Xmm& texels, int channel, const Xmm& spare) {
  vpslld(spare, texels, xword[kSlot + in_steps(in_field(channel, offsetof(tmu::Field, left)))]);
  vpsrld(spare, spare, xword[kSlot + in_steps(in_field(channel, offsetof(tmu::Field, right)))]);
  emit_gather_values(to, spare);
}

/// A channel by `decode`, with its table in rdi; or the one value of a channel that is not there.
template <typename Decode>
void LookupEmitter::present_or_one(const Xmm& to, int channel, int part, const Decode& decode) {
  Label absent, done;
  mov(rdi, qword[kSlot + in_steps(in_field(channel, offsetof(tmu::Field, values)))]);
  cmp(dword[kSlot + in_steps(in_field(channel, offsetof(tmu::Field, right)))], 32);
  je(absent);
  decode();
  jmp(done);
  L(absent);
  vbroadcastss(to, dword[rdi]);
  L(done);
  emit_drop_lanes(to, part);
}

void LookupEmitter::decode_fields(const Xmm& to, const Xmm& texels, int channel, const Xmm& spare, int part) {
  present_or_one(to, channel, part, [&] { field_to(to, texels, channel, spare); });
}

/// Those of blend_fields(), from fixed-point coordinates.
void LookupEmitter::blend_factors_in_float(const Blend& b) {
  const Xmm& other = b.even[0];
  size_t at = offsetof(Frame, factors);
  for (const Xmm* factor : {&b.factors_x, &b.factors_y}) {
    wide_ ? vpandd(*factor, *factor, constant(255)) : vpand(*factor, *factor, constant(255));
    vcvtdq2ps(*factor, *factor);
    vmulps(*factor, *factor, of_float(1.0f / 256));
    vbroadcastss(other, dword[rip + constant_label(std::bit_cast<uint32_t>(1.0f))]);
    vsubps(other, other, *factor);
    for (const Xmm* v : {&other, factor}) {
      vmovups(ptr[kFrame + at], *v);
      at += sizeof(Lanes);
    }
  }
}

/// AnyTexel::bilinear() of a channel, whose values are finite.
void LookupEmitter::blend_fields(const Blend& b, const Xmm& to, int channel, int part) {
  const auto linear = [&](const Xmm& x, const Xmm& y, size_t first) {
    const size_t at = offsetof(Frame, factors) + first * sizeof(Lanes);
    vmulps(x, x, ptr[kFrame + at]);
    vmulps(y, y, ptr[kFrame + at + sizeof(Lanes)]);
    vaddps(x, x, y);
  };
  const auto row = [&](const Xmm& left, const Xmm& right, size_t n) {
    field_to(left, b.texel[n], channel, b.spare);
    field_to(right, b.texel[n + 1], channel, b.spare);
    linear(left, right, 0);
  };
  present_or_one(to, channel, part, [&] {
    row(to, b.even[0], 0);
    row(b.even[0], b.even[1], 2);
    linear(to, b.even[0], 2);
  });
}

}  // namespace v3d::qpu::jit
