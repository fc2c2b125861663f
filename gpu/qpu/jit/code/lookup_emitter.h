/// A LookupEmitter writes host code for texture lookups that need no call of C++: all programs share it, and
/// it is made at the first use. It goes from step to step of tmu::LookupSteps by tables; what that does not
/// have is refused, and left to the interpreter's function. Here stands what does not depend on the host's
/// vectors; a back end (avx512/, avx2/) says what the steps are.
///
/// The code is called with the host registers of ProgramEmitter, the lanes in r8d, launcher << 16 | site in
/// edx, and S where the back end says. It gives 1 in eax; or 0, with nothing done. General registers other
/// than those of ProgramEmitter are changed.
#pragma once

#include <xbyak/xbyak.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "gpu/qpu/isa/isa.h"
#include "gpu/qpu/jit/code/code_memory.h"
#include "gpu/tmu/lookup/lookup_steps.h"
#include "gpu/tmu/lookup/plan.h"

namespace v3d::qpu::jit {

/// The second argument of the code: for a write that starts a lookup, at a node of a program with so many.
uint32_t launch_of(Effect effect, size_t nodes, uint32_t node);

class LookupEmitter : protected Xbyak::CodeGenerator {
 public:
  virtual ~LookupEmitter() = default;
  LookupEmitter(const LookupEmitter&) = delete;
  LookupEmitter& operator=(const LookupEmitter&) = delete;

  /// Empty if the host refuses memory.
  template <typename Emitter>
  static std::optional<CodeMemory> make() {
    const auto buffer = std::make_unique_for_overwrite<uint8_t[]>(kRoom);
    Emitter emitter(buffer.get());
    emitter.emit();
    return CodeMemory::copy_of(std::span<const uint8_t>(emitter.getCode(), emitter.getSize()));
  }

 protected:
  using Label = Xbyak::Label;
  using Xmm = Xbyak::Xmm;
  using Ymm = Xbyak::Ymm;
  using Wrap = tmu::Wrap;
  using Channels = tmu::LookupSteps::Channels;
  using Order = tmu::LookupSteps::Order;

  static constexpr size_t kRoom = 1 << 18;

  /// Of the texels that a step loads.
  struct Load {
    Channels channels;
    int log2_count;
    bool wide;
    Order order;
    bool blends = false;       ///< four texels, after emit_linear()
    bool to_channels = false;  ///< to the first of six Lanes, decoded, instead of return words; then returns
    bool fields() const { return tmu::LookupSteps::are_fields(channels); }
    bool depth() const { return channels == Channels::kDepth16 || channels == Channels::kDepth24; }
    /// Of depth: what is 1.
    uint32_t largest() const { return channels == Channels::kDepth16 ? 0xffff : 0xffffff; }
    int count() const { return fields() ? 4 : 1 << log2_count; }
    int bytes_of_channel() const;
    int bytes() const { return bytes_of_channel() << log2_count; }
    bool integers() const;
    /// The channel behind half `n` of the words, or word `n` if wide. Not of any order.
    int channel(int n) const { return order == Order::kBgra && n != 1 && n != 3 ? 2 - n : n; }
  };

  /// @param spares  of all steps. Their width is that of the vectors.
  LookupEmitter(void* buffer, const Xmm (&spares)[2])
      : CodeGenerator(kRoom, buffer), spares_{spares[0], spares[1]}, wide_(spares[0].isZMM()) {}

  // ---- What a back end says

  /// Bit i of ecx: whether lane i has a sample in the mask.
  virtual void emit_live_lanes() = 0;
  /// S, where it came from, to Frame::a, and back.
  virtual void emit_keep_s() {}
  virtual void emit_take_s() {}
  /// From S and the other parameters to texels of a level: x, y, and the address of the level or slice. Ends
  /// with to_addresses().
  virtual void emit_fetch(int dims, bool layers, bool level) = 0;
  /// From kLevel on.
  virtual void emit_nearest(Wrap s, Wrap t, bool layers) = 0;
  /// Likewise to the texels around a point; ends with to_blend().
  virtual void emit_linear(Wrap s, Wrap t, bool layers, bool in_float) = 0;
  /// From there to addresses. Ends with to_texels().
  virtual void emit_raster_addresses(int log2_cpp) = 0;
  virtual void emit_tiled_addresses(int log2_cpp) = 0;
  /// From there to the end: jumps to finished_.
  virtual void emit_load(const Load& load) = 0;
  virtual void emit_blend(const Load& load) = 0;  ///< after emit_linear()
  virtual void emit_store() = 0;
  /// Whether it has code for Channels::kSrgb8.
  virtual bool has_bytes() const { return false; }

  /// Words of a table in rdi, in all lanes.
  virtual void emit_gather_values(const Xmm& to, const Xmm& index) = 0;
  /// Zero in lanes without a texel.
  virtual void emit_drop_lanes(const Xmm& v, int part) = 0;

  // ---- What it uses

  void to_addresses() { go_to_step(offsetof(tmu::LookupSteps, address_step), address_table_); }
  void to_texels() {
    go_to_texels(offsetof(tmu::LookupSteps, texels_step), offsetof(tmu::LookupSteps, decode_step));
  }
  void to_blend() {
    go_to_texels(offsetof(tmu::LookupSteps, blend_step), offsetof(tmu::LookupSteps, decode_blend_step));
  }
  /// kLevel becomes that of a fetch, from the first word of B, or the base level. Changes eax.
  void find_level_of_fetch();
  void find_base_level();
  struct Utile {
    int log2_width, log2_height;
  };
  static Utile utile_of(int log2_cpp);
  /// All bits of the lanes of a part of 8.
  void expand_lanes(const Ymm& to, const Xbyak::Reg32& lanes, int part);
  /// The same word 8 times.
  Label& constant_label(uint32_t bits);
  using Quad = std::array<uint32_t, 4>;
  Xbyak::Address constant(uint32_t bits);
  Xbyak::Address of_float(float value);
  Xbyak::Address constant(const Quad& words);

  // ---- lookup_filter.cc: by vectors of the back end

  /// Where a level says of an axis how many texels it has, what makes a coordinate 1/256 texels, and where
  /// the center of the last texel is.
  struct Axis {
    size_t size, scale, last;
  };
  static constexpr Axis kAxes[2] = {{offsetof(tmu::LevelTables, width), offsetof(tmu::LevelTables, scale_x),
                                     offsetof(tmu::LevelTables, last_x)},
                                    {offsetof(tmu::LevelTables, height), offsetof(tmu::LevelTables, scale_y),
                                     offsetof(tmu::LevelTables, last_y)}};
  void texel_index(const Xmm& at, Wrap wrap, const Axis& axis);
  void texel_pair(const Xmm& at, Wrap wrap, const Axis& axis, const Xmm& first, const Xmm& second,
                  bool in_float);
  /// Four texels around each point, rows one after the other, and the factors of their columns and rows.
  struct Blend {
    Xmm texel[4], even[2], factors_x, factors_y;
    Xmm spare;  ///< of short vectors, and of fields
  };
  void blend_factors(const Xmm& x, const Xmm& y);
  void blend_rows(const Blend& b, bool has_odd);
  void blend_columns(const Blend& b, const Xmm& to, int channel);
  /// Of fields: changes rdi. @param part  of the lanes
  void decode_fields(const Xmm& to, const Xmm& texels, int channel, const Xmm& spare, int part);
  void blend_factors_in_float(const Blend& b);
  void blend_fields(const Blend& b, const Xmm& to, int channel, int part);
  static constexpr size_t in_plan(size_t offset) { return offsetof(tmu::PlanSlot, plan) + offset; }
  static constexpr size_t in_steps(size_t offset) { return in_plan(offsetof(tmu::Plan, steps) + offset); }

  const Xbyak::Reg64 kThread{Xbyak::Operand::RBX}, kFrame{Xbyak::Operand::RBP}, kMemory{Xbyak::Operand::R14};
  /// The slot of the plan, its level, where return words go; their number. Lanes that take part stay in r8d.
  const Xbyak::Reg64 kSlot{Xbyak::Operand::RSI}, kLevel{Xbyak::Operand::RDI}, kOut{Xbyak::Operand::R10};
  const Xbyak::Reg32 kWords{Xbyak::Operand::R9D};
  Label refused_, finished_;

 private:
  void emit();
  void emit_entry();
  void emit_filters();
  void emit_texels();
  void emit_end();
  void emit_tables();
  void compare_key();
  void find_room_for_words();
  void find_lanes();
  void address_of_step(Label& table);
  /// To the step that the plan names.
  void go_to_step(size_t index_in_steps, Label& table);
  void go_to_texels(size_t to_words, size_t to_channels);

  // ---- lookup_filter.cc

  void field_to(const Xmm& to, const Xmm& texels, int channel, const Xmm& spare);
  template <typename Decode>
  void present_or_one(const Xmm& to, int channel, int part, const Decode& decode);
  void bits_xor(const Xmm& to, const Xmm& a, const Xbyak::Operand& b);
  void or_masked(const Xmm& to, const Xmm& from, uint32_t mask, const Xmm& spare);
  void round_down(const Xmm& to, const Xmm& from);
  template <typename Instruction>
  void of_level(size_t table, const Xmm& spare, const Instruction& instruction);
  void scale(const Xmm& at, Wrap wrap, const Axis& axis);
  void clamp(const Xmm& at, const Axis& axis, float least);
  void wrap_index(const Xmm& index, Wrap wrap, const Axis& axis, bool below);

  // ---- lookup_levels.cc

  void emit_levels();
  void emit_level_of_detail(Label& base, Label& of_lanes);
  void find_quads();
  void emit_footprints();
  void quad_differences(const Xbyak::RegExp& values);
  void find_footprint_sides(size_t steps);
  void log2_of_square();
  void choose_levels(int part);
  void choose_levels_of_lanes();
  void expand_quads(size_t offset);
  void note_blended_quads();
  void expand_quads();
  void choose_filters();
  void lanes_of_level(const Xbyak::Reg32& to, const Xbyak::Reg32& level);
  void take_level(const Xbyak::RegExp& guess);
  void look_up_base_level();
  void look_up_one_level_of_quads(Label& differ);
  void look_up_one_level(Label& differ);
  void look_up_levels();
  void begin_levels();
  void look_up_chosen_levels();
  void look_up_some();
  void merge_some();
  void blend_levels();
  void return_words();
  // ---- lookup_anisotropy.cc

  void emit_anisotropic();
  void find_probes();
  void look_up_probes();
  void begin_probes();
  void take_probe(Label& done);
  void add_probe();
  void end_probes();

  Xbyak::Address eight(uint32_t bits) { return yword[rip + constant_label(bits)]; }
  Xbyak::Address eight(float value);

  Label coordinates_[tmu::LookupSteps::kCoordinates], filters_[tmu::LookupSteps::kFilters],
      addresses_[tmu::LookupSteps::kAddresses], texels_[tmu::LookupSteps::kTexels];
  Label coordinate_table_, filter_table_, address_table_, texel_table_;
  Label shifts_;  // 8 words for expand_lanes()
  std::map<uint32_t, std::unique_ptr<Label>> constants_;
  std::map<Quad, std::unique_ptr<Label>> quads_;
  const Xmm spares_[2];
  const bool wide_;
};

}  // namespace v3d::qpu::jit
