/// Texture lookups without a call of C++: code that all programs share, made at the first use. It goes from
/// step to step of tmu::Direct by tables; what that does not have is refused, and left to the interpreter's
/// function.
#pragma once

#include <xbyak/xbyak.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "gpu/qpu/jit/code/code_memory.h"
#include "gpu/tmu/lookup/direct.h"
#include "gpu/tmu/lookup/plan.h"

namespace v3d::qpu::jit::avx512 {

/// The address of the code, or null if the host refuses memory. It takes the host registers of
/// ProgramEmitter, S in zmm5, the lanes in r8d and launcher << 16 | site in edx, and gives 1 in eax; or 0,
/// with nothing done and zmm5 kept. It changes zmm2 to zmm6, k7 and general registers, but for r11.
const void* lookup_code();

class Lookups final : private Xbyak::CodeGenerator {
 public:
  static std::optional<CodeMemory> make();

 private:
  using Zmm = Xbyak::Zmm;
  using Ymm = Xbyak::Ymm;
  using Xmm = Xbyak::Xmm;
  using Label = Xbyak::Label;
  using Wrap = tmu::Wrap;
  using Channels = tmu::Direct::Channels;
  using Order = tmu::Direct::Order;

  static constexpr size_t kRoom = 1 << 18;

  /// Of the texels that a step loads.
  struct Load {
    Channels channels;
    int log2_count;
    bool wide;
    Order order;
    int count() const { return 1 << log2_count; }
    int bytes() const;
    bool integers() const;
  };

  explicit Lookups(void* buffer) : CodeGenerator(kRoom, buffer) {}
  void emit();
  void emit_entry();
  void compare_key();
  void find_room_for_words();
  void find_lanes();
  void emit_end();
  void emit_tables();

  // From S in zmm5 and the other parameters to x in zmm5, y in zmm2, the address of the level or slice in
  // zmm6, and in k7 the lanes whose texels exist
  void emit_fetch(int dims, bool layers, bool level);
  void emit_nearest(Wrap s, Wrap t, bool layers);
  void find_level_of_fetch();
  void find_base_level();
  void texel_index(const Zmm& at, Wrap wrap, size_t sizes);
  void add_layer(const Zmm& layer);
  void to_addresses();

  // From there to addresses in zmm6
  void emit_raster_addresses(int log2_cpp);
  void emit_tiled_addresses(int log2_cpp);

  // From there to the end
  void emit_load(const Load& load);
  void emit_store();
  void load_words(const Load& load);
  void load_vectors(Label& gather);
  void channel_to(const Zmm& to, const Load& load, int channel);
  void extract(const Zmm& to, const Load& load, int channel);
  void return_words_in_order(const Load& load);
  void return_any_words(const Load& load);
  void pack_halves(const Zmm& low, const Zmm& high, bool integers);

  /// To the step that the plan names at an offset.
  void go_to_step(size_t index_in_plan, Label& table);

  Xbyak::Address constant(uint32_t bits);
  Xbyak::Address of_float(float value);
  Xbyak::Address in_plan(size_t offset);
  Xbyak::Address in_level(size_t table);
  void clear(const Zmm& z) { vpxord(z, z, z); }
  void left(const Zmm& to, const Zmm& from, int bits) { vpslld(to, from, static_cast<uint8_t>(bits)); }
  void right(const Zmm& to, const Zmm& from, int bits) { vpsrld(to, from, static_cast<uint8_t>(bits)); }

  Label coordinates_[tmu::Direct::kCoordinates], addresses_[tmu::Direct::kAddresses],
      texels_[tmu::Direct::kTexels];
  Label coordinate_table_, address_table_, texel_table_, refused_, finished_;
  std::map<uint32_t, std::unique_ptr<Label>> constants_;

  const Xbyak::Reg64 kThread{Xbyak::Operand::RBX}, kFrame{Xbyak::Operand::RBP}, kMemory{Xbyak::Operand::R14};
  /// The slot of the plan, its level, where return words go. r9d is their number, ecx the lanes with texels.
  const Xbyak::Reg64 kSlot{Xbyak::Operand::RSI}, kLevel{Xbyak::Operand::RDI}, kOut{Xbyak::Operand::R10};
  const Zmm kX{5}, kY{2}, kAddress{6}, kA{3}, kB{4};
  const Xbyak::Opmask kLanesMask{7};
};

}  // namespace v3d::qpu::jit::avx512
