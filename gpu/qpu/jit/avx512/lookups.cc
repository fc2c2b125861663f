/// @file The first two steps of a lookup: where its texels are.

#include "gpu/qpu/jit/avx512/lookups.h"

#include <bit>
#include <optional>

#include "gpu/qpu/jit/code/frame.h"
#include "gpu/qpu/jit/code/tmu_memory.h"

namespace v3d::qpu::jit::avx512 {

using tmu::Direct;
using tmu::LevelTables;
using tmu::Plan;
using tmu::TextureLookup;

namespace {

constexpr uint8_t kLess = 1, kNotEqual = 4;            // of comparisons
constexpr uint8_t kOrOfAnd = 0xf8, kOrThenXor = 0x56;  // of vpternlogd: a | (b & c), (a | b) ^ c
constexpr uint8_t kDown = 9;                           // of vrndscaleps, without exceptions

}  // namespace

const void* lookup_code() {
  static const std::optional<CodeMemory> kCode = LookupEmitter::make<Lookups>();
  return kCode ? kCode->begin() : nullptr;
}

Xbyak::Address Lookups::constant(uint32_t bits) { return ptr_b[rip + constant_label(bits)]; }
Xbyak::Address Lookups::of_float(float value) { return constant(std::bit_cast<uint32_t>(value)); }
Xbyak::Address Lookups::of_plan(size_t offset) { return ptr_b[kSlot + in_plan(offset)]; }
Xbyak::Address Lookups::in_level(size_t table) { return ptr_b[kLevel + table]; }

void Lookups::emit_live_lanes() {
  vmovdqa64(kY, zword[kThread + offsetof(Thread, msf)]);
  vptestmd(kLanesMask, kY, kY);
  kmovw(ecx, kLanesMask);
}

// ---- Coordinates

/// @see run_level_fetch
void Lookups::check_level() {
  vmovdqa64(kA, zword[kThread + kTexture + offsetof(TextureLookup, b)]);
  vpbroadcastd(kB, Xmm(kA.getIdx()));
  vpcmpd(kLanesMask, kA, kB, kNotEqual);
  kortestw(kLanesMask, kLanesMask);
  jnz(refused_);
  find_level_of_fetch();
}

void Lookups::add_layer(const Zmm& layer) {
  vpmulld(layer, layer, of_plan(offsetof(Plan, texture.array_stride)));
  vpaddd(kAddress, kAddress, layer);
}

void Lookups::emit_fetch(int dims, bool layers, bool level) {
  level ? check_level() : find_base_level();
  const auto parameter = [&](const Zmm& to, size_t offset, const Xbyak::Address& size) {
    vmovdqa64(to, zword[kThread + kTexture + offset]);
    vpcmpud(kLanesMask | kLanesMask, to, size, kLess);
  };
  kmovw(kLanesMask, r8d);
  vpcmpud(kLanesMask | kLanesMask, kX, in_level(offsetof(LevelTables, width)), kLess);
  if (dims > 1) parameter(kY, offsetof(TextureLookup, t), in_level(offsetof(LevelTables, height)));
  vpbroadcastd(kAddress, dword[kLevel + offsetof(LevelTables, address)]);
  if (layers) {
    parameter(kA, offsetof(TextureLookup, i), of_plan(offsetof(Plan, texture.depth)));
    add_layer(kA);
  }
  if (dims == 3) {
    parameter(kA, offsetof(TextureLookup, r), in_level(offsetof(LevelTables, depth)));
    vpmulld(kA, kA, in_level(offsetof(LevelTables, slice_size)));
    vpaddd(kAddress, kAddress, kA);
  }
  to_addresses();
}

/// @see sample_nearest
void Lookups::emit_nearest(Wrap s, Wrap t, bool layers) {
  find_base_level();
  vmovdqa64(kY, zword[kThread + kTexture + offsetof(TextureLookup, t)]);
  texel_index(kX, s, offsetof(LevelTables, width));
  texel_index(kY, t, offsetof(LevelTables, height));
  vpbroadcastd(kAddress, dword[kLevel + offsetof(LevelTables, address)]);
  if (layers) {
    vmovups(kA, zword[kThread + kTexture + offsetof(TextureLookup, i)]);
    vaddps(kA, kA, of_float(0.5f));
    vrndscaleps(kA, kA, kDown);
    vmaxps(kA, kA, of_float(0));
    vminps(kA, kA, ptr_b[kSlot + in_direct(offsetof(Direct, last_layer))]);
    vcvttps2dq(kA, kA);
    add_layer(kA);
  }
  kmovw(kLanesMask, r8d);
  to_addresses();
}

/// reduce(), sub_texel() and wrap_index(), where the first leaves an index of 0 to n, or 2 n if mirrored. The
/// minimum of numbers without sign chooses what is in range.
void Lookups::texel_index(const Zmm& at, Wrap wrap, size_t sizes) {
  if (wrap != Wrap::kClamp) {
    if (wrap == Wrap::kMirror) {
      vmulps(kA, at, of_float(0.5f));
      vrndscaleps(kA, kA, kDown);
      vaddps(kA, kA, kA);
    } else {
      vrndscaleps(kA, at, kDown);
    }
    vsubps(at, at, kA);
    vmaxps(at, at, of_float(0));
  }
  vcvtdq2ps(kA, in_level(sizes));
  vmulps(at, at, kA);
  vmaxps(at, at, of_float(-32768));
  vminps(at, at, of_float(32767));
  vcvtps2dq(at | T_rd_sae, at);

  vpbroadcastd(kA, dword[kLevel + sizes]);
  if (wrap == Wrap::kRepeat) {
    vpsubd(kB, at, kA);
    vpminud(at, at, kB);
  } else if (wrap == Wrap::kMirror) {
    vpaddd(kA, kA, kA);
    vpsubd(kB, at, kA);
    vpminud(at, at, kB);
    vpsubd(kB, kA, at);
    vpsubd(kB, kB, constant(1));
    vpminud(at, at, kB);
  } else {
    vpsubd(kA, kA, constant(1));
    vpmaxsd(at, at, constant(0));
    vpminsd(at, at, kA);
  }
}

// ---- Addresses

void Lookups::emit_raster_addresses(int log2_cpp) {
  left(kX, kX, log2_cpp);
  vpaddd(kAddress, kAddress, kX);
  to_texels();
}

/// column(), row() and place(): the parts of an offset are bits of their own, but for that of the column.
void Lookups::emit_tiled_addresses(int log2_cpp) {
  const auto log2 = [](uint32_t v) { return std::countr_zero(v); };
  const uint32_t cpp = 1u << log2_cpp, width = tmu::utile_width(cpp), height = tmu::utile_height(cpp);
  const int w = log2(width), h = log2(height), row = log2_cpp + w;

  left(kA, kX, log2_cpp);
  vpandd(kA, kA, constant((width - 1) << log2_cpp));
  left(kB, kX, 6 - w);
  vpternlogd(kA, kB, constant(64), kOrOfAnd);
  right(kB, kX, w + 1);
  vpandd(kB, kB, constant(3));
  vpsllvd(kB, kB, in_level(offsetof(LevelTables, x_shift)));
  vpord(kA, kA, kB);
  vpaddd(kAddress, kAddress, kA);
  right(kB, kX, w + 3);
  vpmulld(kB, kB, in_level(offsetof(LevelTables, column_pitch)));
  vpaddd(kAddress, kAddress, kB);
  left(kX, kX, 11 - w);
  vpandd(kX, kX, in_level(offsetof(LevelTables, xor_bit)));

  left(kA, kY, row);
  vpandd(kA, kA, constant((height - 1) << row));
  right(kB, kY, h);
  vpandd(kB, kB, constant(1));
  vpsllvd(kB, kB, in_level(offsetof(LevelTables, y0_shift)));
  vpord(kA, kA, kB);
  right(kY, kY, h + 1);
  vpsllvd(kY, kY, in_level(offsetof(LevelTables, y1_shift)));
  vpternlogd(kA, kY, kX, kOrThenXor);
  vpaddd(kAddress, kAddress, kA);
  to_texels();
}

}  // namespace v3d::qpu::jit::avx512
