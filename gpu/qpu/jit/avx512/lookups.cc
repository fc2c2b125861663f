/// @file The first two steps of a lookup: whether its plan is known, and where its texels are.

#include "gpu/qpu/jit/avx512/lookups.h"

#include <bit>
#include <optional>
#include <span>
#include <vector>

#include "gpu/qpu/jit/code/frame.h"
#include "gpu/qpu/jit/code/tmu_memory.h"

namespace v3d::qpu::jit::avx512 {

using tmu::Direct;
using tmu::LevelTables;
using tmu::Plan;
using tmu::PlanSlot;
using tmu::RecentPlans;
using tmu::TextureLookup;

namespace {

constexpr uint8_t kLess = 1, kNotEqual = 4;            // of comparisons
constexpr uint8_t kOrOfAnd = 0xf8, kOrThenXor = 0x56;  // of vpternlogd: a | (b & c), (a | b) ^ c
constexpr uint8_t kDown = 9;                           // of vrndscaleps, without exceptions

constexpr size_t kConfigs = in_pending(offsetof(Pending, num_config));
constexpr size_t in_slot(size_t offset_in_plan) { return offsetof(PlanSlot, plan) + offset_in_plan; }
constexpr size_t in_direct(size_t offset) { return offsetof(Plan, direct) + offset; }

}  // namespace

const void* lookup_code() {
  static const std::optional<CodeMemory> kCode = Lookups::make();
  return kCode ? kCode->begin() : nullptr;
}

std::optional<CodeMemory> Lookups::make() {
  std::vector<uint8_t> buffer(kRoom);
  Lookups lookups(buffer.data());
  lookups.emit();
  return CodeMemory::copy_of(std::span<const uint8_t>(lookups.getCode(), lookups.getSize()));
}

// ---- Operands

Xbyak::Address Lookups::constant(uint32_t bits) {
  auto& label = constants_[bits];
  if (!label) label = std::make_unique<Label>();
  return ptr_b[rip + *label];
}
Xbyak::Address Lookups::of_float(float value) { return constant(std::bit_cast<uint32_t>(value)); }
Xbyak::Address Lookups::in_plan(size_t offset) { return ptr_b[kSlot + in_slot(offset)]; }
Xbyak::Address Lookups::in_level(size_t table) { return ptr_b[kLevel + table]; }

// ---- All of it

void Lookups::emit() {
  setDefaultJmpNEAR(true);
  emit_entry();
  for (int flags = 0; flags < 12; ++flags) {
    const int dims = 1 + flags / 4;
    L(coordinates_[Direct::fetch(dims, flags & 2, flags & 1)]);
    emit_fetch(dims, flags & 2, flags & 1);
  }
  for (int s = 0; s < Direct::kWraps; ++s)
    for (int t = 0; t < Direct::kWraps; ++t)
      for (const bool layers : {false, true}) {
        L(coordinates_[Direct::nearest(s, t, layers)]);
        emit_nearest(static_cast<Wrap>(s), static_cast<Wrap>(t), layers);
      }
  for (int log2_cpp = 0; log2_cpp < 5; ++log2_cpp) {
    L(addresses_[Direct::address(log2_cpp, true)]);
    emit_raster_addresses(log2_cpp);
    L(addresses_[Direct::address(log2_cpp, false)]);
    emit_tiled_addresses(log2_cpp);
  }
  for (int channels = 0; channels < Direct::kChannels; ++channels)
    for (int log2_count = 0; log2_count < 3; ++log2_count)
      for (const bool wide : {false, true})
        for (int order = 0; order < Direct::kOrders; ++order) {
          const Load load{static_cast<Channels>(channels), log2_count, wide, static_cast<Order>(order)};
          L(texels_[Direct::load(load.channels, log2_count, wide, load.order)]);
          emit_load(load);
        }
  L(texels_[Direct::kStore]);
  emit_store();
  emit_end();
  emit_tables();
}

void Lookups::emit_tables() {
  const auto table = [this](Label& at, const auto& labels) {
    align(64);
    L(at);
    const uint8_t* const begin = getCurr();
    for (const Label& label : labels) dd(static_cast<uint32_t>(label.getAddress() - begin));
  };
  L(coordinates_[0]);  // unused: emit_entry() sends it elsewhere
  table(coordinate_table_, coordinates_);
  table(address_table_, addresses_);
  table(texel_table_, texels_);
  for (auto& [bits, label] : constants_) {
    L(*label);
    dd(bits);
  }
}

void Lookups::go_to_step(size_t index_in_plan, Label& table) {
  movzx(eax, byte[kSlot + in_slot(index_in_plan)]);
  lea(rdx, ptr[rip + table]);
  movsxd(rax, dword[rdx + rax * 4]);
  add(rax, rdx);
  jmp(rax);
}

// ---- Is the plan known?

void Lookups::emit_entry() {
  Label no_unit;
  mov(byte[kThread + kTexture + offsetof(TextureLookup, site)], dl);
  mov(rdi, qword[kThread + offsetof(Thread, tmu)]);
  test(rdi, rdi);
  jz(no_unit);
  mov(rdi, qword[rdi]);
  movzx(ecx, dl);
  xor_(edx, ecx);  // of the key: launcher, number of data words, parameters
  mov(kSlot, qword[rdi + rcx * 8 + offsetof(RecentPlans, at)]);
  compare_key();
  find_room_for_words();
  find_lanes();
  movzx(eax, byte[kSlot + in_slot(in_direct(offsetof(Direct, coordinates_step)))]);
  test(eax, eax);
  jz(no_unit);
  go_to_step(in_direct(offsetof(Direct, coordinates_step)), coordinate_table_);

  L(refused_);
  L(no_unit);
  xor_(eax, eax);
  ret();
}

/// Parameters that were left out get their values, as launch_texture() gives them.
void Lookups::compare_key() {
  Label complete, two;
  movzx(eax, byte[kThread + kWritten]);
  or_(edx, eax);
  movzx(eax, byte[kThread + kNumData]);
  shl(eax, 8);
  or_(edx, eax);
  cmp(edx, dword[kSlot + in_slot(offsetof(Plan, key.shape))]);
  jne(refused_);
  mov(rax, qword[rdi + offsetof(RecentPlans, job)]);
  cmp(rax, qword[kSlot + offsetof(PlanSlot, job)]);
  jne(refused_);
  mov(eax, dword[kThread + kTexture + offsetof(TextureLookup, p0)]);
  cmp(eax, dword[kSlot + in_slot(offsetof(Plan, key.p0))]);
  jne(refused_);

  movzx(eax, byte[kThread + kConfigs]);
  cmp(eax, 3);
  jae(complete);
  cmp(eax, 1);
  jb(refused_);
  ja(two);
  mov(dword[kThread + kTexture + offsetof(TextureLookup, p1)], tmu::kDefaultP1);
  L(two);
  mov(dword[kThread + kTexture + offsetof(TextureLookup, p2)], tmu::kDefaultP2);
  L(complete);
  mov(eax, dword[kThread + kTexture + offsetof(TextureLookup, p1)]);
  cmp(eax, dword[kSlot + in_slot(offsetof(Plan, key.p1))]);
  jne(refused_);
  mov(eax, dword[kThread + kTexture + offsetof(TextureLookup, p2)]);
  cmp(eax, dword[kSlot + in_slot(offsetof(Plan, key.p2))]);
  jne(refused_);
}

/// One behind the other, without going on at the start of the queue.
void Lookups::find_room_for_words() {
  mov(eax, dword[kThread + kTail]);
  mov(edx, eax);
  sub(edx, dword[kThread + kHead]);
  movzx(r9d, byte[kSlot + in_slot(offsetof(Plan, num_words))]);
  add(edx, r9d);
  cmp(edx, kTmuFifo);
  ja(refused_);
  and_(eax, kTmuFifo - 1);
  lea(edx, ptr[rax + r9]);
  cmp(edx, kTmuFifo);
  ja(refused_);
  shl(eax, 6);
  lea(kOut, ptr[kThread + rax + kFifo]);
}

/// Those that take part, to r8d.
void Lookups::find_lanes() {
  Label all, some;
  vmovdqa64(kY, zword[kThread + offsetof(Thread, msf)]);
  vptestmd(kLanesMask, kY, kY);
  kmovw(ecx, kLanesMask);
  cmp(ecx, kAllLanes);
  je(all);
  cmp(byte[kSlot + in_slot(offsetof(Plan, per_pixel))], 0);
  jne(some);
  for (const int distance : {1, 2}) {
    mov(edx, ecx);
    shr(edx, distance);
    or_(ecx, edx);
  }
  and_(ecx, 0x1111);
  imul(ecx, ecx, 15);
  L(some);
  and_(r8d, ecx);
  L(all);
}

/// The lookup has taken place.
void Lookups::emit_end() {
  L(finished_);
  add(dword[kThread + kTail], r9d);
  mov(byte[kThread + kConfigs], 0);
  mov(word[kThread + kWritten], 0);
  mov(eax, 1);
  ret();
}

// ---- Coordinates

void Lookups::to_addresses() { go_to_step(in_direct(offsetof(Direct, address_step)), address_table_); }

/// With the same level in all lanes. @see run_level_fetch
void Lookups::find_level_of_fetch() {
  vmovdqa64(kA, zword[kThread + kTexture + offsetof(TextureLookup, b)]);
  vpbroadcastd(kB, Xmm(kA.getIdx()));
  vpcmpd(kLanesMask, kA, kB, kNotEqual);
  kortestw(kLanesMask, kLanesMask);
  jnz(refused_);
  vmovd(eax, Xmm(kA.getIdx()));
  cmp(eax, dword[kSlot + in_slot(in_direct(offsetof(Direct, num_levels)))]);
  jae(refused_);
  add(eax, dword[kSlot + in_slot(in_direct(offsetof(Direct, base_level)))]);
  lea(kLevel, ptr[kSlot + rax * 4 + in_slot(offsetof(Plan, levels))]);
}

void Lookups::find_base_level() {
  mov(eax, dword[kSlot + in_slot(in_direct(offsetof(Direct, base_level)))]);
  lea(kLevel, ptr[kSlot + rax * 4 + in_slot(offsetof(Plan, levels))]);
}

void Lookups::add_layer(const Zmm& layer) {
  vpmulld(layer, layer, in_plan(offsetof(Plan, texture.array_stride)));
  vpaddd(kAddress, kAddress, layer);
}

void Lookups::emit_fetch(int dims, bool layers, bool level) {
  level ? find_level_of_fetch() : find_base_level();
  const auto parameter = [&](const Zmm& to, size_t offset, const Xbyak::Address& size) {
    vmovdqa64(to, zword[kThread + kTexture + offset]);
    vpcmpud(kLanesMask | kLanesMask, to, size, kLess);
  };
  kmovw(kLanesMask, r8d);
  vpcmpud(kLanesMask | kLanesMask, kX, in_level(offsetof(LevelTables, width)), kLess);
  if (dims > 1) parameter(kY, offsetof(TextureLookup, t), in_level(offsetof(LevelTables, height)));
  vpbroadcastd(kAddress, dword[kLevel + offsetof(LevelTables, address)]);
  if (layers) {
    parameter(kA, offsetof(TextureLookup, i), in_plan(offsetof(Plan, texture.depth)));
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
    vminps(kA, kA, in_plan(in_direct(offsetof(Direct, last_layer))));
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
  go_to_step(in_direct(offsetof(Direct, texels_step)), texel_table_);
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
  go_to_step(in_direct(offsetof(Direct, texels_step)), texel_table_);
}

}  // namespace v3d::qpu::jit::avx512
