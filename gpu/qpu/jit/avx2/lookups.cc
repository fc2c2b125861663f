/// @file The first two steps of a lookup: where its texels are.

#include "gpu/qpu/jit/avx2/lookups.h"

#include <bit>
#include <optional>

#include "gpu/qpu/jit/code/frame.h"
#include "gpu/qpu/jit/code/tmu_memory.h"

namespace v3d::qpu::jit::avx2 {

using tmu::LevelTables;
using tmu::LookupSteps;
using tmu::Plan;
using tmu::TextureLookup;

namespace {

constexpr size_t kPartBytes = sizeof(Lanes) / 2;
constexpr uint8_t kDown = 9;  // of vroundps, without exceptions

}  // namespace

const void* lookup_code() {
  static const std::optional<CodeMemory> kCode = LookupEmitter::make<Lookups>();
  return kCode ? kCode->begin() : nullptr;
}

void Lookups::emit_live_lanes() {
  clear(kX);
  for (int part = 0; part < 2; ++part)
    vpcmpeqd(part_of(kY, part), kX,
             yword[kThread + offsetof(Thread, msf) + static_cast<size_t>(part) * kPartBytes]);
  vmovmskps(ecx, kY);
  vmovmskps(edx, part_of(kY, 1));
  shl(edx, 8);
  or_(ecx, edx);
  xor_(ecx, kAllLanes);
}

// ---- Coordinates

Xbyak::Address Lookups::tap(int n, int part) {
  return yword[kFrame + offsetof(Frame, taps) + static_cast<size_t>(n) * sizeof(Lanes) +
               static_cast<size_t>(part) * kPartBytes];
}

Xbyak::Address Lookups::part_of_s(int part) {
  return yword[kFrame + offsetof(Frame, a) + static_cast<size_t>(part) * kPartBytes];
}

/// @see run_level_fetch
void Lookups::check_level() {
  constexpr size_t kLevels = kTexture + offsetof(TextureLookup, b);
  vpbroadcastd(kA, dword[kThread + kLevels]);
  vpcmpeqd(kX, kA, yword[kThread + kLevels]);
  vpcmpeqd(kY, kA, yword[kThread + kLevels + kPartBytes]);
  vpand(kX, kX, kY);
  vmovmskps(eax, kX);
  cmp(eax, 0xff);
  jne(refused_);
  find_level_of_fetch();
}

void Lookups::load_coordinates(const Ymm& first, size_t offset_in_lookup) {
  for (int part = 0; part < 2; ++part)
    vmovaps(part_of(first, part),
            yword[kThread + kTexture + offset_in_lookup + static_cast<size_t>(part) * kPartBytes]);
}

/// Takes lanes from ecx whose value is not below a size.
void Lookups::drop_lanes_outside(const Ymm& first, const Xbyak::Address& size) {
  vpbroadcastd(kA, size);
  for (int part = 0; part < 2; ++part) {
    vpmaxud(kB, kA, part_of(first, part));
    vpcmpeqd(kB, kB, part_of(first, part));
    vmovmskps(eax, kB);
    if (part == 1) shl(eax, 8);
    not_(eax);
    and_(ecx, eax);
  }
}

void Lookups::fill_addresses() {
  for (int part = 0; part < 2; ++part)
    vpbroadcastd(part_of(kAddress, part), in_level(offsetof(LevelTables, address)));
}

void Lookups::add_layers(const Ymm& layer, const Ymm& address, const Xbyak::Address& stride) {
  vpbroadcastd(kB, stride);
  vpmulld(layer, layer, kB);
  vpaddd(address, address, layer);
}

void Lookups::emit_fetch(int dims, bool layers, bool level) {
  level ? check_level() : find_base_level();
  mov(ecx, r8d);
  fill_addresses();
  const auto of_layers = [&](size_t parameter, const Xbyak::Address& size, const Xbyak::Address& stride) {
    load_coordinates(kY, parameter);
    drop_lanes_outside(kY, size);
    for (int part = 0; part < 2; ++part) add_layers(part_of(kY, part), part_of(kAddress, part), stride);
  };
  if (layers)
    of_layers(offsetof(TextureLookup, i), dword[kSlot + in_plan(offsetof(Plan, texture.depth))],
              dword[kSlot + in_plan(offsetof(Plan, texture.array_stride))]);
  if (dims == 3)
    of_layers(offsetof(TextureLookup, r), in_level(offsetof(LevelTables, depth)),
              in_level(offsetof(LevelTables, slice_size)));
  for (int part = 0; part < 2; ++part) vmovaps(part_of(kX, part), part_of_s(part));
  drop_lanes_outside(kX, in_level(offsetof(LevelTables, width)));
  if (dims > 1) {
    load_coordinates(kY, offsetof(TextureLookup, t));
    drop_lanes_outside(kY, in_level(offsetof(LevelTables, height)));
  }
  to_addresses();
}

/// array_layer().
void Lookups::find_layers(int part) {
  constexpr size_t kLayer = kTexture + offsetof(TextureLookup, i);
  vmovaps(kA, yword[kThread + kLayer + static_cast<size_t>(part) * kPartBytes]);
  vaddps(kA, kA, of_float(0.5f));
  vroundps(kA, kA, kDown);
  vmaxps(kA, kA, of_float(0));
  vbroadcastss(kB, dword[kSlot + in_steps(offsetof(LookupSteps, last_layer))]);
  vminps(kA, kA, kB);
  vcvttps2dq(kA, kA);
  add_layers(kA, part_of(kAddress, part), dword[kSlot + in_plan(offsetof(Plan, texture.array_stride))]);
}

/// @see sample_nearest
void Lookups::emit_nearest(Wrap s, Wrap t, bool layers) {
  fill_addresses();
  load_coordinates(kY, offsetof(TextureLookup, t));
  for (int part = 0; part < 2; ++part) {
    vmovaps(part_of(kX, part), part_of_s(part));
    texel_index(part_of(kX, part), s, kAxes[0]);
    texel_index(part_of(kY, part), t, kAxes[1]);
    if (layers) find_layers(part);
  }
  mov(ecx, r8d);
  to_addresses();
}

/// Keeps for emit_blend(), of each part, what this has in registers.
void Lookups::emit_linear(Wrap s, Wrap t, bool layers, bool in_float) {
  for (int n = 0; n < kNumKept; ++n)
    vmovaps(yword[kFrame + offsetof(Frame, kept) + static_cast<size_t>(n) * kPartBytes], Ymm(kFirstKept + n));
  fill_addresses();
  for (int part = 0; part < 2; ++part) {
    vmovaps(kWeightX, part_of_s(part));
    vmovaps(kWeightY,
            yword[kThread + kTexture + offsetof(TextureLookup, t) + static_cast<size_t>(part) * kPartBytes]);
    texel_pair(kWeightX, s, kAxes[0], kPairX[0], kPairX[1], in_float);
    texel_pair(kWeightY, t, kAxes[1], kPairY[0], kPairY[1], in_float);
    if (layers) find_layers(part);
    for (int n = 0; n < 6; ++n) vmovaps(tap(n, part), Ymm(kFirstKept + n));
    vmovaps(tap(6, part), part_of(kAddress, part));
  }
  to_blend();
}

// ---- Addresses

void Lookups::emit_raster_addresses(int log2_cpp) {
  for (int part = 0; part < 2; ++part) {
    left(part_of(kX, part), part_of(kX, part), log2_cpp);
    vpaddd(part_of(kAddress, part), part_of(kAddress, part), part_of(kX, part));
  }
  to_texels();
}

/// column(), row() and place(). Levels with a bit to flip are UIF, where that is one of the block row.
void Lookups::emit_tiled_addresses(int log2_cpp) {
  const auto log2 = [](uint32_t v) { return std::countr_zero(v); };
  const uint32_t cpp = 1u << log2_cpp, width = tmu::utile_width(cpp), height = tmu::utile_height(cpp);
  const int w = log2(width), h = log2(height), row = log2_cpp + w;
  for (int part = 0; part < 2; ++part) {
    const Ymm x = part_of(kX, part), y = part_of(kY, part), address = part_of(kAddress, part);
    const auto add = [&](const Ymm& v) { vpaddd(address, address, v); };
    const auto add_shifted = [&](const Ymm& v, size_t shifts) {
      vpbroadcastd(kA, in_level(shifts));
      vpsllvd(v, v, kA);
      add(v);
    };
    left(kA, x, log2_cpp);
    vpand(kA, kA, constant((width - 1) << log2_cpp));
    add(kA);
    left(kA, x, 6 - w);
    vpand(kA, kA, constant(64));
    add(kA);
    right(kB, x, w + 1);
    vpand(kB, kB, constant(3));
    add_shifted(kB, offsetof(LevelTables, x_shift));
    right(kB, x, w + 3);
    vpbroadcastd(kA, in_level(offsetof(LevelTables, column_pitch)));
    vpmulld(kB, kB, kA);
    add(kB);
    left(x, x, 11 - w);
    vpbroadcastd(kA, in_level(offsetof(LevelTables, xor_bit)));
    vpand(x, x, kA);

    left(kA, y, row);
    vpand(kA, kA, constant((height - 1) << row));
    add(kA);
    right(kB, y, h);
    vpand(kB, kB, constant(1));
    add_shifted(kB, offsetof(LevelTables, y0_shift));
    right(y, y, h + 1);
    vpbroadcastd(kA, in_level(offsetof(LevelTables, y1_shift)));
    vpsllvd(y, y, kA);
    vpxor(y, y, x);
    add(y);
  }
  to_texels();
}

}  // namespace v3d::qpu::jit::avx2
