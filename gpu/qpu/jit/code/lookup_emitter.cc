#include "gpu/qpu/jit/code/lookup_emitter.h"

#include <bit>

#include "gpu/qpu/jit/code/frame.h"
#include "gpu/qpu/jit/code/tmu_memory.h"

namespace v3d::qpu::jit {

using tmu::LookupSteps;
using tmu::Plan;
using tmu::PlanSlot;
using tmu::RecentPlans;
using tmu::TextureLookup;

namespace {

constexpr size_t kConfigs = in_pending(offsetof(Pending, num_config));

constexpr uint32_t launcher_of(Effect effect) {
  return static_cast<uint32_t>(effect) - static_cast<uint32_t>(Effect::kTexture);
}
static_assert(launcher_of(Effect::kTextureCube) == static_cast<uint32_t>(tmu::Launcher::kSCm) &&
              launcher_of(Effect::kTextureFetch) == static_cast<uint32_t>(tmu::Launcher::kSF) &&
              launcher_of(Effect::kTextureLod) == static_cast<uint32_t>(tmu::Launcher::kSLod));

}  // namespace

// Programs of draws that follow each other should not all begin with site 0.
uint32_t launch_of(Effect effect, size_t nodes, uint32_t node) {
  return launcher_of(effect) << 16 | (static_cast<uint32_t>(nodes) + node) % RecentPlans::kSites;
}

int LookupEmitter::Load::bytes_of_channel() const {
  using enum LookupSteps::Channels;
  if (channels == kFloat || channels == kWord || channels == kDepth24) return 4;
  return channels == kUnorm8 || channels == kUint8 || channels == kSint8 ||
                 tmu::LookupSteps::are_fields(channels)
             ? 1
             : 2;
}

bool LookupEmitter::Load::integers() const {
  return channels != Channels::kUnorm8 && channels != Channels::kHalf && channels != Channels::kFloat &&
         !depth() && !fields();
}

LookupEmitter::Label& LookupEmitter::constant_label(uint32_t bits) {
  auto& label = constants_[bits];
  if (!label) label = std::make_unique<Label>();
  return *label;
}

// ---- All of it

void LookupEmitter::emit() {
  setDefaultJmpNEAR(true);
  emit_entry();
  for (int flags = 0; flags < 12; ++flags) {
    const int dims = 1 + flags / 4;
    L(coordinates_[LookupSteps::fetch(dims, flags & 2, flags & 1)]);
    emit_fetch(dims, flags & 2, flags & 1);
  }
  emit_filters();
  L(coordinates_[LookupSteps::kLevels]);
  emit_levels();
  L(coordinates_[LookupSteps::kAnisotropicLevels]);
  emit_anisotropic();
  for (int log2_cpp = 0; log2_cpp < 5; ++log2_cpp) {
    L(addresses_[LookupSteps::address(log2_cpp, true)]);
    emit_raster_addresses(log2_cpp);
    L(addresses_[LookupSteps::address(log2_cpp, false)]);
    emit_tiled_addresses(log2_cpp);
  }
  emit_texels();
  emit_end();
  emit_tables();
}

/// Each has an entry after the one that finds the base level.
void LookupEmitter::emit_filters() {
  const auto begin = [this](uint8_t step) {
    L(coordinates_[step]);
    find_base_level();
    L(filters_[LookupSteps::filter(step)]);
  };
  for (int s = 0; s < LookupSteps::kWraps; ++s)
    for (int t = 0; t < LookupSteps::kWraps; ++t)
      for (const bool layers : {false, true}) {
        begin(LookupSteps::nearest(s, t, layers));
        emit_nearest(static_cast<Wrap>(s), static_cast<Wrap>(t), layers);
        begin(LookupSteps::linear(s, t, layers));
        emit_linear(static_cast<Wrap>(s), static_cast<Wrap>(t), layers, false);
        begin(LookupSteps::linear_in_float(s, t, layers));
        emit_linear(static_cast<Wrap>(s), static_cast<Wrap>(t), layers, true);
      }
}

/// Bytes without code of their own share that of fields.
void LookupEmitter::emit_texels() {
  const auto add = [this](const auto& step_of, const Load& load) {
    L(texels_[step_of(load.channels, load.order)]);
    const bool is_bytes = load.channels == Channels::kSrgb8;
    if (is_bytes && !has_bytes()) return jmp(texels_[step_of(Channels::kField, Order::kAny)]);
    if ((load.channels == Channels::kField && load.order != Order::kAny) ||
        (is_bytes && load.log2_count != 2) || (load.depth() && load.log2_count != 0))
      return jmp(refused_);
    if (!load.blends) return emit_load(load);
    load.channels == Channels::kUnorm8 || load.fields() ? emit_blend(load) : jmp(refused_);
  };
  for (int n = 0; n < LookupSteps::kChannels; ++n)
    for (int log2_count = 0; log2_count < 3; ++log2_count) {
      const auto channels = static_cast<Channels>(n);
      for (const bool wide : {false, true})
        for (int m = 0; m < LookupSteps::kOrders; ++m) {
          const auto order = static_cast<Order>(m);
          add([&](Channels c, Order o) { return LookupSteps::load(c, log2_count, wide, o); },
              {channels, log2_count, wide, order});
          add([&](Channels c, Order o) { return LookupSteps::blend(c, log2_count, wide, o); },
              {channels, log2_count, wide, order, true});
        }
      for (const bool blends : {false, true})
        add([&](Channels c, Order) { return LookupSteps::decode(c, log2_count, blends); },
            {channels, log2_count, true, Order::kAny, blends, true});
    }
  L(texels_[LookupSteps::kStore]);
  emit_store();
}

void LookupEmitter::emit_tables() {
  const auto table = [this](Label& at, const auto& labels) {
    align(64);
    L(at);
    const uint8_t* const begin = getCurr();
    for (const Label& label : labels) dd(static_cast<uint32_t>(label.getAddress() - begin));
  };
  L(coordinates_[0]);  // unused: emit_entry() sends it elsewhere
  table(coordinate_table_, coordinates_);
  table(filter_table_, filters_);
  table(address_table_, addresses_);
  table(texel_table_, texels_);
  L(shifts_);
  for (uint32_t lane = 0; lane < 8; ++lane) dd(23 - lane);
  for (auto& [bits, label] : constants_) {
    L(*label);
    for (int n = 0; n < 8; ++n) dd(bits);
  }
  align(64);
  for (auto& [words, label] : quads_) {
    L(*label);
    for (int n = 0; n < 4; ++n)
      for (const uint32_t bits : words) dd(bits);
  }
}

/// rax, an index, becomes the address of a step.
void LookupEmitter::address_of_step(Label& table) {
  lea(rdx, ptr[rip + table]);
  movsxd(rax, dword[rdx + rax * 4]);
  add(rax, rdx);
}

void LookupEmitter::go_to_step(size_t index_in_steps, Label& table) {
  movzx(eax, byte[kSlot + in_steps(index_in_steps)]);
  address_of_step(table);
  jmp(rax);
}

void LookupEmitter::go_to_texels(size_t to_words, size_t to_channels) {
  static_assert(offsetof(LookupSteps, decode_step) - offsetof(LookupSteps, texels_step) ==
                offsetof(LookupSteps, decode_blend_step) - offsetof(LookupSteps, blend_step));
  mov(eax, dword[kFrame + offsetof(Frame, levels.to_channels)]);
  movzx(eax, word[kSlot + rax * static_cast<int>(to_channels - to_words) + in_steps(to_words)]);
  address_of_step(texel_table_);
  jmp(rax);
}

// ---- Is the plan known?

void LookupEmitter::emit_entry() {
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
  movzx(eax, byte[kSlot + in_steps(offsetof(LookupSteps, coordinates_step))]);
  test(eax, eax);
  jz(no_unit);
  address_of_step(coordinate_table_);
  jmp(rax);

  L(refused_);
  L(no_unit);
  xor_(eax, eax);
  ret();
}

/// Configuration words that were left out have their values, as those of the lookup before have been taken.
void LookupEmitter::compare_key() {
  movzx(eax, byte[kThread + kWritten]);
  or_(edx, eax);
  movzx(eax, byte[kThread + kNumData]);
  shl(eax, 8);
  or_(edx, eax);
  cmp(edx, dword[kSlot + in_plan(offsetof(Plan, key.shape))]);
  jne(refused_);
  mov(eax, dword[kThread + kTexture + offsetof(TextureLookup, p0)]);
  cmp(eax, dword[kSlot + in_plan(offsetof(Plan, key.p0))]);
  jne(refused_);
  cmp(byte[kThread + kConfigs], 0);
  je(refused_);
  mov(eax, dword[kThread + kTexture + offsetof(TextureLookup, p1)]);
  cmp(eax, dword[kSlot + in_plan(offsetof(Plan, key.p1))]);
  jne(refused_);
  mov(eax, dword[kThread + kTexture + offsetof(TextureLookup, p2)]);
  cmp(eax, dword[kSlot + in_plan(offsetof(Plan, key.p2))]);
  jne(refused_);
}

/// One after the other; emit_end() moves those beyond the end of the queue to its start.
void LookupEmitter::find_room_for_words() {
  mov(eax, dword[kThread + kTail]);
  mov(edx, eax);
  sub(edx, dword[kThread + kHead]);
  movzx(kWords, byte[kSlot + in_plan(offsetof(Plan, num_words))]);
  add(edx, kWords);
  cmp(edx, kTmuFifo);
  ja(refused_);
  and_(eax, kTmuFifo - 1);
  shl(eax, 6);
  lea(kOut, ptr[kThread + rax + kFifo]);
}

/// Those that take part, to r8d.
void LookupEmitter::find_lanes() {
  Label all, some;
  cmp(dword[kFrame + offsetof(Frame, plain)], 0);
  jne(all);
  emit_live_lanes();
  cmp(ecx, kAllLanes);
  je(all);
  cmp(byte[kSlot + in_plan(offsetof(Plan, per_pixel))], 0);
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
void LookupEmitter::emit_end() {
  static_assert(kMostWords - 1 <= kTmuFifoRoom);
  Label over, next;
  L(finished_);
  mov(eax, dword[kThread + kTail]);
  add(dword[kThread + kTail], kWords);
  mov(byte[kThread + kConfigs], 0);
  mov(dword[kThread + kTexture + offsetof(TextureLookup, p1)], tmu::kDefaultP1);
  mov(dword[kThread + kTexture + offsetof(TextureLookup, p2)], tmu::kDefaultP2);
  mov(word[kThread + kWritten], 0);
  and_(eax, kTmuFifo - 1);
  add(eax, kWords);
  sub(eax, kTmuFifo);
  jg(over);
  mov(eax, 1);
  ret();

  L(over);
  shl(eax, 6);
  L(next);
  sub(eax, sizeof(Lanes) / 2);
  vmovups(Ymm(2), yword[kThread + rax + (kFifo + kTmuFifo * sizeof(Lanes))]);
  vmovups(yword[kThread + rax + kFifo], Ymm(2));
  jnz(next);
  mov(eax, 1);
  ret();
}

LookupEmitter::Utile LookupEmitter::utile_of(int log2_cpp) {
  return {std::countr_zero(tmu::utile_width(1u << log2_cpp)),
          std::countr_zero(tmu::utile_height(1u << log2_cpp))};
}

/// The same in all lanes, which the caller checks.
void LookupEmitter::find_level_of_fetch() {
  mov(eax, dword[kThread + kTexture + offsetof(TextureLookup, b)]);
  cmp(eax, dword[kSlot + in_steps(offsetof(LookupSteps, num_levels))]);
  jae(refused_);
  add(eax, dword[kSlot + in_steps(offsetof(LookupSteps, base_level))]);
  lea(kLevel, ptr[kSlot + rax * 4 + in_plan(offsetof(Plan, levels))]);
}

void LookupEmitter::find_base_level() {
  mov(eax, dword[kSlot + in_steps(offsetof(LookupSteps, base_level))]);
  lea(kLevel, ptr[kSlot + rax * 4 + in_plan(offsetof(Plan, levels))]);
}

}  // namespace v3d::qpu::jit
