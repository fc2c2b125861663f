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

constexpr uint8_t kLess = 1, kNotEqual = 4;     // of comparisons
constexpr uint8_t kOrOfAnd = 0xf8, kOr = 0xfe;  // of vpternlogd: a | (b & c), a | b | c
constexpr uint8_t kDown = 9;                    // of vrndscaleps, without exceptions

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

void Lookups::emit_keep_s() { vmovdqa64(zword[kFrame + offsetof(Frame, a)], kX); }
void Lookups::emit_take_s() { vmovdqa64(kX, zword[kFrame + offsetof(Frame, a)]); }

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

/// array_layer().
void Lookups::find_layer() {
  vmovups(kA, zword[kThread + kTexture + offsetof(TextureLookup, i)]);
  vaddps(kA, kA, of_float(0.5f));
  vrndscaleps(kA, kA, kDown);
  vmaxps(kA, kA, of_float(0));
  vminps(kA, kA, ptr_b[kSlot + in_direct(offsetof(Direct, last_layer))]);
  vcvttps2dq(kA, kA);
  add_layer(kA);
}

/// @see sample_nearest
void Lookups::emit_nearest(Wrap s, Wrap t, bool layers) {
  vmovdqa64(kY, zword[kThread + kTexture + offsetof(TextureLookup, t)]);
  texel_index(kX, s, offsetof(LevelTables, width));
  texel_index(kY, t, offsetof(LevelTables, height));
  vpbroadcastd(kAddress, dword[kLevel + offsetof(LevelTables, address)]);
  if (layers) find_layer();
  kmovw(kLanesMask, r8d);
  to_addresses();
}

/// reduce() and the first part of sub_texel(): a coordinate in texels, from 0 to n if repeated, or 2 n if
/// mirrored.
void Lookups::reduce(const Zmm& at, Wrap wrap, size_t sizes) {
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
}

/// The rest of sub_texel() for whole texels, and wrap_index(). The minimum of numbers without sign chooses
/// what is in range.
void Lookups::texel_index(const Zmm& at, Wrap wrap, size_t sizes) {
  reduce(at, wrap, sizes);
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

/// linear_tap(). Of the second texel's index the first one is the one below, -1 at least.
void Lookups::texel_pair(const Zmm& at, Wrap wrap, size_t sizes, const Zmm (&index)[2], const Zmm& weight) {
  const auto& [first, second] = index;
  reduce(at, wrap, sizes);
  vmulps(at, at, of_float(256));
  vcvtps2dq(at | T_rd_sae, at);
  vpsubd(at, at, constant(128));
  vpandd(weight, at, constant(255));
  vpsrad(first, at, 8);
  vpsubd(second, first, constant(~0u));
  vpbroadcastd(kA, dword[kLevel + sizes]);
  if (wrap == Wrap::kClamp) {
    vpsubd(kA, kA, constant(1));
    for (const Zmm& i : index) {
      vpmaxsd(i, i, constant(0));
      vpminsd(i, i, kA);
    }
    return;
  }
  if (wrap == Wrap::kMirror) vpaddd(kA, kA, kA);
  vpaddd(kB, first, kA);
  vpminud(first, first, kB);
  vpsubd(kB, second, kA);
  vpminud(second, second, kB);
  if (wrap != Wrap::kMirror) return;
  vpsubd(kA, kA, constant(1));
  for (const Zmm& i : index) {
    vpsubd(kB, kA, i);
    vpminud(i, i, kB);
  }
}

void Lookups::emit_linear(Wrap s, Wrap t, bool layers) {
  for (int n = 0; n < kNumKept; ++n)
    vmovdqa64(zword[kFrame + offsetof(Frame, kept) + static_cast<size_t>(n) * sizeof(Lanes)],
              Zmm(kFirstKept + n));
  vmovdqa64(kY, zword[kThread + kTexture + offsetof(TextureLookup, t)]);
  texel_pair(kX, s, offsetof(LevelTables, width), kPairX, kWeightX);
  texel_pair(kY, t, offsetof(LevelTables, height), kPairY, kWeightY);
  vpbroadcastd(kAddress, dword[kLevel + offsetof(LevelTables, address)]);
  if (layers) find_layer();
  to_blend();
}

// ---- Addresses

void Lookups::emit_raster_addresses(int log2_cpp) {
  left(kX, kX, log2_cpp);
  vpaddd(kAddress, kAddress, kX);
  to_texels();
}

/// @see tmu::column(): x to its part of an offset. All but the last term are bits of their own.
void Lookups::column(const Zmm& x, int log2_cpp) {
  const int w = utile_of(log2_cpp).log2_width;
  left(kA, x, log2_cpp);
  vpandd(kA, kA, constant(((1u << w) - 1) << log2_cpp));
  left(kB, x, 6 - w);
  vpternlogd(kA, kB, constant(64), kOrOfAnd);
  right(kB, x, w + 1);
  vpandd(kB, kB, constant(3));
  vpsllvd(kB, kB, in_level(offsetof(LevelTables, x_shift)));
  vpord(kA, kA, kB);
  right(x, x, w + 3);
  vpmulld(x, x, in_level(offsetof(LevelTables, column_pitch)));
  vpaddd(x, x, kA);
}

/// The bit of the row's part that x decides on.
void Lookups::column_flip(const Zmm& to, const Zmm& x, int log2_cpp) {
  left(to, x, 11 - utile_of(log2_cpp).log2_width);
  vpandd(to, to, in_level(offsetof(LevelTables, xor_bit)));
}

/// @see tmu::row()
void Lookups::row(const Zmm& y, int log2_cpp) {
  const auto [w, h] = utile_of(log2_cpp);
  left(kA, y, log2_cpp + w);
  vpandd(kA, kA, constant(((1u << h) - 1) << (log2_cpp + w)));
  right(kB, y, h);
  vpandd(kB, kB, constant(1));
  vpsllvd(kB, kB, in_level(offsetof(LevelTables, y0_shift)));
  right(y, y, h + 1);
  vpsllvd(y, y, in_level(offsetof(LevelTables, y1_shift)));
  vpternlogd(y, kA, kB, kOr);
}

void Lookups::emit_tiled_addresses(int log2_cpp) {
  row(kY, log2_cpp);
  column_flip(kA, kX, log2_cpp);
  vpxord(kY, kY, kA);
  column(kX, log2_cpp);
  vpaddd(kAddress, kAddress, kX);
  vpaddd(kAddress, kAddress, kY);
  to_texels();
}

}  // namespace v3d::qpu::jit::avx512
