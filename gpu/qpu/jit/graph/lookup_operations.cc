/// @file Code of what lookups of textures need beside the operations of values.

#include <array>
#include <bit>
#include <cstdint>

#include "gpu/qpu/graph/evaluate.h"
#include "gpu/qpu/jit/graph/emitter.h"
#include "gpu/qpu/jit/graph/frame.h"
#include "gpu/qpu/run/block_code.h"
#include "gpu/tmu/lookup/lookup_kind.h"

namespace v3d::qpu::jit {
namespace {

using Xbyak::Opmask;
using Xbyak::Xmm;
using Xbyak::Ymm;
using Xbyak::Zmm;

constexpr int kBitsOfTable = 5;
constexpr uint32_t kEntries = 1u << kBitsOfTable;
/// The lowest bits of a mask.
uint32_t lowest_bits(uint32_t mask, int count) {
  uint32_t bits = 0;
  for (; count > 0 && mask != 0; --count, mask &= mask - 1) bits |= mask & (0 - mask);
  return bits;
}

/// Whether the bits of a mask stand side by side up to the highest one.
bool reaches_end(uint32_t mask) { return mask == 0 || (mask | (mask - 1)) == ~0u; }

}  // namespace

bool GraphEmitter::emit_lookups(const Node& node) {
  switch (node.op) {
    case Op::kByte:
      one_byte(node);
      return true;
    case Op::kSrgbValue:
      srgb_value(node);
      return true;
    case Op::kDeposit:
      deposit(node);
      return true;
    case Op::kGather:
      gather(node);
      return true;
    case Op::kLevelWord:
      level_word(node);
      return true;
    case Op::kPickLanes:
      pick_lanes(node);
      return true;
    case Op::kLeastOfLanes:
      least_of_lanes(node);
      return true;
    default:
      return emit_regions(node);
  }
}

// ---- Bytes, and bits to the places of others

void GraphEmitter::one_byte(const Node& node) {
  const int from = in_register(node.operands[0]), to = result(node);
  for (int p = 0; p < parts_; ++p) one_byte(vector(to, p), vector(from, p), node.immediate);
}

void GraphEmitter::one_byte(const Vector& to, const Vector& from, uint32_t number) {
  if (number == 0) return wide_ ? vpandd(to, from, constant(0xff)) : vpand(to, from, constant(0xff));
  if (number == 3) return vpsrld(to, from, 24);
  uses_bytes_ = true;
  vpshufb(to, from, ptr[rip + (number == 1 ? second_byte_ : third_byte_)]);
}

/// Of a table that stays where it is as long as the process does.
void GraphEmitter::srgb_value(const Node& node) {
  if (wide_ && avoids_gathers_) return permuted_srgb_value(node);
  const int from = in_register(node.operands[0]), to = result(node, true);
  mov(rax, reinterpret_cast<uintptr_t>(tmu::values_of_srgb_bytes()));
  for (int p = 0; p < parts_; ++p) {
    one_byte(scratch(0), vector(from, p), node.immediate);
    if (wide_) {
      kxnorw(kLanesLeft, kLanesLeft, kLanesLeft);
      vgatherdps(vector(to, p) | kLanesLeft, ptr[rax + Zmm(scratch(0).getIdx()) * 4]);
      continue;
    }
    if (avoids_gathers_) {
      load_from_table(vector(to, p), scratch(0), rax);
      continue;
    }
    vpcmpeqd(scratch(1), scratch(1), scratch(1));
    vgatherdps(vector(to, p), ptr[rax + Ymm(scratch(0).getIdx()) * 4], scratch(1));
  }
}

/// Halves of the values, whose tables are four times two registers of 16-bit words: an instruction picks 32
/// words of two of these. Of pairs both instances at a time.
void GraphEmitter::permuted_srgb_value(const Node& node) {
  constexpr int kBytesOfPart = 2 * kLaneBytes, kBytesOfTable = 4 * kBytesOfPart;
  constexpr uint32_t kUpperHalves = 0xaaaaaaaa;
  const Opmask bit_6 = k1, bit_7 = k5, upper = k6;
  const int from = in_register(node.operands[0]), to = result(node, true);
  const Vector index = scratch(1), other = scratch(0);
  one_byte(index, vector(from, 0), node.immediate);
  if (are_pairs_) {
    one_byte(other, vector(from, 1), node.immediate);
    vpslld(other, other, 16);
    vpord(index, index, other);
  }
  vpsllw(other, index, 15 - 6);
  vpmovw2m(bit_6, other);
  vpsllw(other, index, 15 - 7);
  vpmovw2m(bit_7, other);
  // The operand's register may be one of these, if nothing else needs it.
  const int first = new_unit();
  locked_ |= 1u << first;
  const Vector high = vector(first, 0), low = are_pairs_ ? vector(first, 1) : vector(new_unit(), 0);
  mov(rax, reinterpret_cast<uintptr_t>(tmu::halves_of_srgb_values()));
  const auto part = [&](const Vector& d, int at) {
    vmovdqa64(d, ptr[rax + at]);
    vpermt2w(d, index, ptr[rax + at + kLaneBytes]);
  };
  const auto words = [&](const Vector& d, int at) {
    const Vector last = vector(to, 0);
    part(d, at);
    part(other, at + kBytesOfPart);
    vpblendmw(d | bit_6, d, other);
    part(other, at + 2 * kBytesOfPart);
    part(last, at + 3 * kBytesOfPart);
    vpblendmw(other | bit_6, other, last);
    vpblendmw(d | bit_7, d, other);
  };
  words(high, 0);
  words(low, kBytesOfTable);
  mov(eax, kUpperHalves);
  kmovd(upper, eax);
  vpslld(vector(to, 0), high, 16);
  vpblendmw(vector(to, 0) | upper, low, vector(to, 0));
  if (!are_pairs_) return;
  vpsrld(vector(to, 1), low, 16);
  vpblendmw(vector(to, 1) | upper, vector(to, 1), high);
}

void GraphEmitter::deposit(const Node& node) {
  constexpr uint32_t kHalf = 0xffff;
  const uint32_t low = lowest_bits(node.immediate, kBitsOfTable);
  if (wide_ && low <= kHalf && reaches_end(node.immediate & ~low)) return deposit_wide(node);
  const int from = in_register(node.operands[0]), to = result(node, true);
  for (int p = 0; p < parts_; ++p) deposit_by_runs(vector(to, p), vector(from, p), node.immediate);
}

/// The lowest bits by a table, whose upper half of an index of 16 bits is that of 0.
void GraphEmitter::deposit_wide(const Node& node) {
  const uint32_t low = lowest_bits(node.immediate, kBitsOfTable), high = node.immediate & ~low;
  const int from = in_register(node.operands[0]), to = result(node, true);
  for (int p = 0; p < parts_; ++p) {
    vpermw(vector(to, p), vector(from, p), ptr[rip + deposits_[low]]);
    if (high == 0) continue;
    vpsrld(scratch(0), vector(from, p), kBitsOfTable);
    vpslld(scratch(0), scratch(0), static_cast<uint8_t>(std::countr_zero(high)));
    vpord(vector(to, p), vector(to, p), scratch(0));
  }
}

void GraphEmitter::deposit_by_runs(const Vector& to, const Vector& from, uint32_t mask) {
  if (mask == 0) wide_ ? vpxord(to, to, to) : vpxor(to, to, to);
  bool is_first = true;
  for (int bit = 0; mask != 0;) {
    const int at = std::countr_zero(mask), count = std::countr_one(mask >> at);
    const uint32_t run = at + count == 32 ? ~0u << at : ((1u << count) - 1) << at;
    const Vector& d = is_first ? to : scratch(0);
    at >= bit ? vpslld(d, from, static_cast<uint8_t>(at - bit))
              : vpsrld(d, from, static_cast<uint8_t>(bit - at));
    wide_ ? vpandd(d, d, constant(run)) : vpand(d, d, constant(run));
    if (!is_first) wide_ ? vpord(to, to, d) : vpor(to, to, d);
    is_first = false;
    bit += count;
    mask &= ~run;
  }
}

void GraphEmitter::lookup_data() {
  if (uses_bytes_) {
    constexpr uint32_t kZeros = 0x80808000;
    table(second_byte_, [](uint32_t lane) { return kZeros | (4 * (lane & 3) + 1); });
    table(third_byte_, [](uint32_t lane) { return kZeros | (4 * (lane & 3) + 2); });
  }
  if (packs_bytes_)
    table(bytes_of_lanes_, [](uint32_t lane) { return 0x0c080400 + 0x01010101 * (lane & 3); });
  if (uses_halves_) {
    constexpr uint32_t kOrder[4] = {0x05040100, 0x0d0c0908, 0x07060302, 0x0f0e0b0a};
    table(halves_of_lanes_, [&](uint32_t lane) { return kOrder[lane & 3]; });
  }
  for (auto& [mask, label] : deposits_) {
    align(kLaneBytes);
    L(label);
    const graph::Node node = {.op = Op::kDeposit, .immediate = mask};
    for (uint32_t n = 0; n < kEntries; ++n) dw(graph::evaluate(node, n, 0, 0));
  }
}

// ---- Textures

Xbyak::Address GraphEmitter::texture_word(const Node& node, bool spreads) {
  const uint32_t texture = node.immediate / tmu::kTextureWords, n = node.immediate % tmu::kTextureWords;
  const Xbyak::RegExp at =
      kTextures + offset_of(texture * sizeof(tmu::TextureData) + n * sizeof(tmu::TextureData::words[0]));
  return spreads && wide_ ? ptr_b[at] : ptr[at];
}

/// Of each lane's level, of which the lowest four bits count.
void GraphEmitter::level_word(const Node& node) {
  const uint32_t texture = node.immediate / tmu::kLevelWords, n = node.immediate % tmu::kLevelWords;
  const size_t at =
      texture * sizeof(tmu::TextureData) + offsetof(tmu::TextureData, levels) + n * sizeof(Lanes);
  const int index = in_register(node.operands[0]), to = result(node, true);
  if (wide_) {
    for (int p = 0; p < parts_; ++p)
      vpermd(Zmm(vector(to, p).getIdx()), Zmm(vector(index, p).getIdx()), ptr[kTextures + offset_of(at)]);
    return;
  }
  for (int p = 0; p < parts_; ++p)
    pick_lanes(to, p, index, ptr[kTextures + offset_of(at)],
               ptr[kTextures + offset_of(at + sizeof(Lanes) / 2)]);
}

// ---- Lanes of others

void GraphEmitter::pick_lanes(const Node& node) {
  const int from = in_register(node.operands[0]), index = in_register(node.operands[1]),
            to = result(node, true);
  for (int p = 0; p < parts_; ++p) {
    if (wide_)
      vpermd(Zmm(vector(to, p).getIdx()), Zmm(vector(index, p).getIdx()), vector(from, p));
    else
      pick_lanes(to, p, index, vector(from, 0), vector(from, 1));
  }
}

/// Of AVX2.
void GraphEmitter::pick_lanes(int to, int part, int index, const Xbyak::Operand& low,
                              const Xbyak::Operand& high) {
  const Ymm from(vector(index, part).getIdx()), d(vector(to, part).getIdx()), upper(scratch(0).getIdx()),
      chooses(scratch(1).getIdx());
  vpermd(d, from, low);
  vpermd(upper, from, high);
  vpslld(chooses, from, 28);
  vblendvps(d, d, upper, chooses);
}

void GraphEmitter::least_of_lanes(const Node& node) {
  const int from = in_register(node.operands[0]), to = result(node);
  for (int p = 0; p < (wide_ ? parts_ : 1); ++p) {
    const Ymm least(scratch(0).getIdx()), other(scratch(1).getIdx());
    const Xmm least_four(least.getIdx()), other_four(other.getIdx());
    if (wide_) {
      const Zmm all(vector(from, p).getIdx());
      vextracti64x4(other, all, 1);
      vpminud(least, other, Ymm(all.getIdx()));
      vextracti32x4(other_four, least, 1);
    } else {
      vpminud(least, vector(from, 0), vector(from, 1));
      vextracti128(other_four, least, 1);
    }
    vpminud(least_four, least_four, other_four);
    for (const uint8_t order : {uint8_t{0x4e}, uint8_t{0xb1}}) {
      vpshufd(other_four, least_four, order);
      vpminud(least_four, least_four, other_four);
    }
    vpbroadcastd(vector(to, p), least_four);
    if (!wide_) vmovdqa(vector(to, 1), vector(to, 0));
  }
}

// ---- What is done only where a lane wants it

bool GraphEmitter::emit_regions(const Node& node) {
  switch (node.op) {
    case Op::kKeep:
      keep(node);
      return true;
    case Op::kKept:
      take_kept(node);
      return true;
    case Op::kWhen:
      when(node);
      return true;
    case Op::kAgain:
      again(node);
      return true;
    case Op::kResume:
      resume();
      return true;
    default:
      return false;
  }
}

void GraphEmitter::keep(const Node& node) {
  save(in_register(node.operands[0]), slot_of_kept(node));
  consume(node);
}

void GraphEmitter::when(const Node& node) {
  mask_to(edx, node.operands[0]);
  consume(node);
  test(edx, edx);
  jz(resumed_.emplace_back(), T_NEAR);
  begin_region();
  if (is_repeated(node)) lanes_of_gather_ = graph::kNoNode;
  lanes_before_region_ = lanes_of_gather_;
  L(repeated_.emplace_back());
}

void GraphEmitter::again(const Node& node) {
  mask_to(edx, node.operands[0]);
  consume(node);
  repeat_region();
  test(edx, edx);
  jnz(repeated_.back(), T_NEAR);
}

void GraphEmitter::resume() {
  end_region();
  if (lanes_of_gather_ != lanes_before_region_) lanes_of_gather_ = graph::kNoNode;
  L(resumed_.back());
}

}  // namespace v3d::qpu::jit
