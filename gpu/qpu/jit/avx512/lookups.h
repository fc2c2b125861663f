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

 private:
  using Zmm = Xbyak::Zmm;
  using Ymm = Xbyak::Ymm;
  using Xmm = Xbyak::Xmm;

  void emit_live_lanes() override;
  // From x in zmm5 and y in zmm2, the address of the level or slice in zmm6, and in k7 the lanes whose texels
  // exist, to addresses in zmm6.
  void emit_fetch(int dims, bool layers, bool level) override;
  void emit_nearest(Wrap s, Wrap t, bool layers) override;
  void emit_raster_addresses(int log2_cpp) override;
  void emit_tiled_addresses(int log2_cpp) override;
  void emit_load(const Load& load) override;
  void emit_store() override;
  void emit_constant(uint32_t bits) override { dd(bits); }

  void check_level();
  void texel_index(const Zmm& at, Wrap wrap, size_t sizes);
  void add_layer(const Zmm& layer);
  void load_words(const Load& load);
  void load_vectors(Label& gather);
  void channel_to(const Zmm& to, const Load& load, int channel);
  void extract(const Zmm& to, const Load& load, int channel);
  void return_words_in_order(const Load& load);
  void return_any_words(const Load& load);
  void pack_halves(const Zmm& low, const Zmm& high, bool integers);

  Xbyak::Address constant(uint32_t bits);
  Xbyak::Address of_float(float value);
  Xbyak::Address of_plan(size_t offset);
  Xbyak::Address in_level(size_t table);
  void clear(const Zmm& z) { vpxord(z, z, z); }
  void left(const Zmm& to, const Zmm& from, int bits) { vpslld(to, from, static_cast<uint8_t>(bits)); }
  void right(const Zmm& to, const Zmm& from, int bits) { vpsrld(to, from, static_cast<uint8_t>(bits)); }

  const Zmm kX{5}, kY{2}, kAddress{6}, kA{3}, kB{4};
  const Xbyak::Opmask kLanesMask{7};
};

}  // namespace v3d::qpu::jit::avx512
