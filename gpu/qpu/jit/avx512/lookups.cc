/// @file The first two steps of a lookup: where its texels are.

#include "gpu/qpu/jit/avx512/lookups.h"

#include <bit>
#include <optional>

#include "gpu/qpu/jit/code/frame.h"
#include "gpu/qpu/jit/code/tmu_memory.h"
#include "gpu/tmu/lookup/tile_offsets.h"

namespace v3d::qpu::jit::avx512 {

using tmu::LevelTables;
using tmu::LookupSteps;
using tmu::Plan;
using tmu::TextureLookup;
using tmu::TileOffsets;

namespace {

constexpr uint8_t kLess = 1, kNotEqual = 4;  // of comparisons
constexpr uint8_t kOrOfAnd = 0xf8;           // of vpternlogd: a | (b & c)
constexpr uint8_t kDown = 9;                 // of vrndscaleps, without exceptions

}  // namespace

const void* lookup_code() {
  static const std::optional<CodeMemory> kCode = LookupEmitter::make<Lookups>();
  return kCode ? kCode->begin() : nullptr;
}

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
  vminps(kA, kA, ptr_b[kSlot + in_steps(offsetof(LookupSteps, last_layer))]);
  vcvttps2dq(kA, kA);
  add_layer(kA);
}

void Lookups::each_kept(const std::function<void(const Zmm&, const Xbyak::Address&)>& fn) {
  Xbyak::Label done;
  cmp(dword[kFrame + offsetof(Frame, keeps)], 0);
  je(done);
  for (int n = 0; n < kNumKept; ++n)
    fn(Zmm(kFirstKept + n), zword[kFrame + offsetof(Frame, kept) + static_cast<size_t>(n) * sizeof(Lanes)]);
  L(done);
}

/// @see sample_nearest
void Lookups::emit_nearest(Wrap s, Wrap t, bool layers) {
  vmovdqa64(kY, zword[kThread + kTexture + offsetof(TextureLookup, t)]);
  texel_index(kX, s, kAxes[0]);
  texel_index(kY, t, kAxes[1]);
  vpbroadcastd(kAddress, dword[kLevel + offsetof(LevelTables, address)]);
  if (layers) find_layer();
  kmovw(kLanesMask, r8d);
  to_addresses();
}

void Lookups::emit_linear(Wrap s, Wrap t, bool layers, bool in_float) {
  each_kept([this](const Zmm& reg, const Xbyak::Address& place) { vmovdqa64(place, reg); });
  vmovdqa64(kWeightX, kX);
  vmovdqa64(kWeightY, zword[kThread + kTexture + offsetof(TextureLookup, t)]);
  texel_pair(kWeightX, s, kAxes[0], kPairX[0], kPairX[1], in_float);
  texel_pair(kWeightY, t, kAxes[1], kPairY[0], kPairY[1], in_float);
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

/// To rdx.
void Lookups::find_tile_offsets(int log2_cpp) {
  mov(eax, dword[kLevel + offsetof(LevelTables, tile_offsets)]);
  mov(rdx, reinterpret_cast<uint64_t>(tmu::kTileOffsets[static_cast<size_t>(log2_cpp)].data()));
  add(rdx, rax);
}

/// @see tmu::column(): x to its part of an offset. Columns of eight utiles are what a multiplication adds.
void Lookups::column(const Zmm& x, int log2_cpp) {
  const int log2_column = utile_of(log2_cpp).log2_width + 3;
  right(kA, x, log2_column);
  if ((1u << log2_column) > TileOffsets::kEntries) {
    left(kB, x, 11);
    vpternlogd(kA, kB, constant(1 << 16), kOrOfAnd);
  }
  vpbroadcastd(kB, dword[kLevel + offsetof(LevelTables, column_step)]);
  vpmaddwd(kA, kA, kB);
  left(kA, kA, 8);
  vpermw(x, x, zword[rdx + offsetof(TileOffsets, column)]);
  vpaddd(x, x, kA);
}

/// The bit of the row's part that x decides on.
void Lookups::column_flip(const Zmm& to, const Zmm& x, int log2_cpp) {
  left(to, x, 11 - utile_of(log2_cpp).log2_width);
  vpandd(to, to, in_level(offsetof(LevelTables, xor_bit)));
}

/// @see tmu::row()
void Lookups::row(const Zmm& y) {
  vpsllvd(kA, y, in_level(offsetof(LevelTables, row_shift)));
  vpermw(y, y, zword[rdx + offsetof(TileOffsets, row)]);
  vpxord(y, y, kA);
}

/// Texel x, y of a level to its offset there, in x. Changes y.
void Lookups::tiled_offset(const Zmm& x, const Zmm& y, int log2_cpp) {
  find_tile_offsets(log2_cpp);
  row(y);
  column_flip(kA, x, log2_cpp);
  vpxord(y, y, kA);
  column(x, log2_cpp);
  vpaddd(x, x, y);
}

/// Has the host fetch texels of the next lookup of the site in this level, which most likely lie as far from
/// x and y as these from the ones before. (Gathers of a minified texture wait for most of their texels
/// otherwise.) Changes zmm2 to zmm5 and the registers of tiled_offset().
void Lookups::fetch_ahead(const Zmm& x, const Zmm& y, int log2_cpp) {
  Label done;
  const Zmm next_x(5), next_y(2);
  const auto of_next = dword[kFrame + offsetof(Frame, levels.of_next)],
             probe = dword[kFrame + offsetof(Frame, probes.probe)];
  movzx(eax, byte[kThread + kTexture + offsetof(TextureLookup, site)]);
  mov(edx, probe);
  lea(eax, ptr[rax + rdx * 2]);
  mov(rdx, kLevel);
  shl(rdx, 8);
  add(rdx, rax);
  add(eax, of_next);
  and_(eax, std::extent_v<decltype(Frame::ahead)> - 1);
  imul(eax, eax, sizeof(Frame::Ahead));
  lea(rcx, ptr[kFrame + rax + offsetof(Frame, ahead)]);
  const auto last_x = zword[rcx + offsetof(Frame::Ahead, x)], last_y = zword[rcx + offsetof(Frame::Ahead, y)];
  left(kA, x, 1);
  left(kB, y, 1);
  vpsubd(kA, kA, last_x);
  vpsubd(kB, kB, last_y);
  vmovdqa64(last_x, x);
  vmovdqa64(last_y, y);
  cmp(rdx, qword[rcx + offsetof(Frame::Ahead, site)]);
  mov(qword[rcx + offsetof(Frame::Ahead, site)], rdx);
  jne(done);
  vpminud(next_x, kA, in_level(offsetof(LevelTables, width)));
  vpminud(next_y, kB, in_level(offsetof(LevelTables, height)));
  tiled_offset(next_x, next_y, log2_cpp);
  vpaddd(next_x, next_x, kAddress);
  vmovdqa64(zword[kFrame + offsetof(Frame, addresses)], next_x);
  for (const size_t lane : {0, 5, 10, 15}) {  // the corners of a block
    mov(eax, dword[kFrame + offsetof(Frame, addresses) + lane * sizeof(uint32_t)]);
    prefetcht0(ptr[kMemory + rax]);
  }
  L(done);
}

void Lookups::emit_tiled_addresses(int log2_cpp) {
  Label near;
  const auto kept_x = zword[kFrame + offsetof(Frame, kept)],
             kept_y = zword[kFrame + offsetof(Frame, kept) + sizeof(Lanes)];
  cmp(byte[kSlot + in_steps(offsetof(LookupSteps, fetches_ahead))], 0);
  je(near);
  // Not while lookups are so near each other that load_lines_of_corners() serves them.
  cmp(dword[kFrame + offsetof(Frame, far_lookups)], 0);
  je(near);
  vmovdqa64(kept_x, kX);
  vmovdqa64(kept_y, kY);
  fetch_ahead(kX, kY, log2_cpp);
  vmovdqa64(kX, kept_x);
  vmovdqa64(kY, kept_y);
  L(near);
  tiled_offset(kX, kY, log2_cpp);
  vpaddd(kAddress, kAddress, kX);
  to_texels();
}

}  // namespace v3d::qpu::jit::avx512
