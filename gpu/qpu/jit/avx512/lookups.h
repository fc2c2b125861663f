/// Texture lookups (see code/lookup_emitter.h) by vectors of 16 lanes. S comes in zmm5, where it stays if the
/// lookup is refused. zmm2 to zmm6 and k7 are changed.
#pragma once

#include <xbyak/xbyak.h>

#include <cstddef>
#include <cstdint>

#include "gpu/qpu/jit/code/lookup_emitter.h"

namespace v3d::qpu::jit::avx512 {

/// The address of the code, or null if the host refuses memory.
const void* lookup_code();

class Lookups final : public LookupEmitter {
 public:
  explicit Lookups(void* buffer) : LookupEmitter(buffer) {}

 protected:
  using Zmm = Xbyak::Zmm;
  using Xmm = Xbyak::Xmm;

  // Of emit_linear(), and kept before: texel indices, then texels, then what blending made of even and odd
  // channels; weights; bits to flip
  static constexpr int kFirstKept = 16, kNumKept = 8;
  const Zmm kPairX[2] = {Zmm(16), Zmm(17)}, kPairY[2] = {Zmm(18), Zmm(19)}, kWeightX{20}, kWeightY{21},
            kFlip[2] = {Zmm(22), Zmm(23)};
  const Zmm kX{5}, kY{2}, kAddress{6}, kA{3}, kB{4};
  const Xbyak::Opmask kLanesMask{7};

 private:
  void emit_live_lanes() override;
  void emit_keep_s() override;
  void emit_take_s() override;
  // From x in zmm5 and y in zmm2, the address of the level or slice in zmm6, and in k7 the lanes whose texels
  // exist, to addresses in zmm6.
  void emit_fetch(int dims, bool layers, bool level) override;
  void emit_nearest(Wrap s, Wrap t, bool layers) override;
  void emit_linear(Wrap s, Wrap t, bool layers) override;
  void emit_raster_addresses(int log2_cpp) override;
  void emit_tiled_addresses(int log2_cpp) override;
  void emit_load(const Load& load) override;
  void emit_blend(const Load& load) override;
  void emit_store() override;

  void check_level();
  void reduce(const Zmm& at, Wrap wrap, size_t sizes);
  void texel_index(const Zmm& at, Wrap wrap, size_t sizes);
  void texel_pair(const Zmm& at, Wrap wrap, size_t sizes, const Zmm (&index)[2], const Zmm& weight);
  void find_layer();
  void add_layer(const Zmm& layer);
  void load_words(const Load& load);
  void load_vectors(Label& gather);
  void channel_to(const Zmm& to, const Load& load, int channel);
  void extract(const Zmm& to, const Load& load, int channel);
  void return_words_in_order(const Load& load, Label& done);
  void return_any_words(const Load& load, Label& done);
  void return_channels(const Load& load);
  void column(const Zmm& x, int log2_cpp);
  void row(const Zmm& y, int log2_cpp);
  void column_flip(const Zmm& to, const Zmm& x, int log2_cpp);
  void find_four(int log2_cpp);
  void gather_texels(const Zmm& to, const Zmm& index, int bytes);
  void blend_columns(const Zmm& to, const Zmm& a, const Zmm& b, bool odd);
  void extract_blended(const Zmm& to, int channel);
  void pack_halves(const Zmm& low, const Zmm& high, bool integers);

  Xbyak::Address constant(uint32_t bits);
  Xbyak::Address of_float(float value);
  Xbyak::Address of_plan(size_t offset);
  Xbyak::Address in_level(size_t table);
  void clear(const Zmm& z) { vpxord(z, z, z); }
  void left(const Zmm& to, const Zmm& from, int bits) { vpslld(to, from, static_cast<uint8_t>(bits)); }
  void right(const Zmm& to, const Zmm& from, int bits) { vpsrld(to, from, static_cast<uint8_t>(bits)); }
};

}  // namespace v3d::qpu::jit::avx512
