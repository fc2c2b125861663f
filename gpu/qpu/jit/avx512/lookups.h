/// This back end looks textures up (see code/lookup_emitter.h) by vectors of 16 lanes. S comes in zmm5, where
/// it stays if the lookup is refused. zmm2 to zmm6 and k7 are changed.
#pragma once

#include <xbyak/xbyak.h>
#include <xbyak/xbyak_util.h>

#include <cstddef>
#include <cstdint>
#include <functional>

#include "gpu/qpu/jit/code/lookup_emitter.h"

namespace v3d::qpu::jit::avx512 {

/// The address of the code, or null if the host refuses memory.
const void* lookup_code();

class Lookups final : public LookupEmitter {
 public:
  /// Host registers of bilinear lookups, which are kept before if Frame::keeps says so.
  static constexpr int kFirstKept = 16, kNumKept = 6;

  explicit Lookups(void* buffer) : LookupEmitter(buffer, {Xbyak::Zmm(3), Xbyak::Zmm(4)}) {}

 protected:
  using Zmm = Xbyak::Zmm;

  // Of emit_linear(): texel indices, then texels; weights.
  const Zmm kPairX[2] = {Zmm(16), Zmm(17)}, kPairY[2] = {Zmm(18), Zmm(19)}, kWeightX{20}, kWeightY{21};
  const Zmm kX{5}, kY{2}, kAddress{6}, kA{3}, kB{4};
  const Zmm kDiffers{4};                                     ///< of find_near_utiles()
  const Zmm kIndices[4] = {Zmm(3), Zmm(4), Zmm(2), Zmm(5)};  ///< of gathers
  const Blend kBlend{{kPairX[0], kPairX[1], kPairY[0], kPairY[1]}, {kY, kAddress}, kWeightX, kWeightY, kA};
  /// Of bytes: values of lanes 0, 4, 8, 12 with all their channels, of lanes 1, 5, ...
  const Zmm kRows[4] = {Zmm(5), Zmm(6), Zmm(3), Zmm(2)};
  const Xbyak::Opmask kLanesMask{7};

 private:
  void emit_live_lanes() override;
  void emit_keep_s() override;
  void emit_take_s() override;
  // From x in zmm5 and y in zmm2, the address of the level or slice in zmm6, and in k7 the lanes whose texels
  // exist, to addresses in zmm6.
  void emit_fetch(int dims, bool layers, bool level) override;
  void emit_nearest(Wrap s, Wrap t, bool layers) override;
  void emit_linear(Wrap s, Wrap t, bool layers, bool in_float) override;
  void emit_raster_addresses(int log2_cpp) override;
  void emit_tiled_addresses(int log2_cpp) override;
  void emit_load(const Load& load) override;
  void emit_blend(const Load& load) override;
  void emit_store() override;
  void emit_gather_values(const Xmm& to, const Xmm& index) override;
  void emit_drop_lanes(const Xmm& v, int part) override;

  /// For each host register that is kept, with its place in the Frame.
  void each_kept(const std::function<void(const Zmm& reg, const Xbyak::Address& place)>& fn);
  void check_level();
  void find_layer();
  void add_layer(const Zmm& layer);
  void load_words(const Load& load);
  void load_lines_of_corners(Label& loaded);
  void load_vectors(Label& gather);
  void channel_to(const Zmm& to, const Load& load, int channel);
  void unorm8(const Zmm& v, const Zmm& spare);
  void extract(const Zmm& to, const Load& load, int channel);
  void return_words_in_order(const Load& load, Label& done);
  void return_any_words(const Load& load, Label& done);
  void return_channels(const Load& load);
  void return_halves_of_bytes();
  bool has_bytes() const override { return has_vbmi_; }
  bool decodes_bytes(const Load& load) const { return has_vbmi_ && load.channels == Channels::kSrgb8; }
  Xbyak::Address kept_channel(int n);
  void look_up_bytes(const Zmm& to, const Zmm& texels, size_t table, const Zmm& upper);
  void find_rows(const Zmm& texels);
  void take_alpha(const Zmm& texels);
  void scale_rows(size_t factor);
  void decode_bytes();
  void blend_bytes();
  void return_decoded(const Load& load, Label& done);
  void find_tile_offsets(int log2_cpp);
  void tiled_offset(const Zmm& x, const Zmm& y, int log2_cpp);
  void fetch_ahead(const Zmm& x, const Zmm& y, int log2_cpp);
  void column(const Zmm& x, int log2_cpp);
  void row(const Zmm& y);
  void column_flip(const Zmm& to, const Zmm& x, int log2_cpp);
  void find_four(int log2_cpp);
  void find_utile_pair(const Zmm* pair, const Zmm& first, const Zmm& second, const Zmm& other);
  void find_near_utiles(Label& back);
  void permute_row(const Zmm& y, const Zmm& first, const Zmm& second);
  void load_near_utiles(Label& loaded);
  void gather_texels(const Zmm& to, const Zmm& index, int bytes);
  void pack_halves(const Zmm& low, const Zmm& high, bool integers);

  const bool has_vbmi_ = Xbyak::util::Cpu().has(Xbyak::util::Cpu::tAVX512_VBMI);

  Xbyak::Address of_plan(size_t offset);
  Xbyak::Address in_level(size_t table);
  void clear(const Zmm& z) { vpxord(z, z, z); }
  void left(const Zmm& to, const Zmm& from, int bits) { vpslld(to, from, static_cast<uint8_t>(bits)); }
  void right(const Zmm& to, const Zmm& from, int bits) { vpsrld(to, from, static_cast<uint8_t>(bits)); }
};

}  // namespace v3d::qpu::jit::avx512
