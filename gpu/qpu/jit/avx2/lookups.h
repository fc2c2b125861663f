/// This back end looks textures up (see code/lookup_emitter.h) by two vectors of 8 lanes, the parts. S comes
/// in Frame::a. ymm0 to ymm7 are changed.
#pragma once

#include <xbyak/xbyak.h>

#include <cstddef>
#include <cstdint>

#include "gpu/qpu/jit/code/lookup_emitter.h"

namespace v3d::qpu::jit::avx2 {

/// The address of the code, or null if the host refuses memory.
const void* lookup_code();

class Lookups final : public LookupEmitter {
 public:
  explicit Lookups(void* buffer) : LookupEmitter(buffer, {Ymm(6), Ymm(7)}) {}

 protected:
  const Ymm kX{0}, kY{2}, kAddress{4}, kA{6}, kB{7};
  // Of emit_linear() and emit_blend(), and kept before: as the AVX-512 back end has them.
  static constexpr int kFirstKept = 8, kNumKept = 8;
  const Ymm kPairX[2] = {Ymm(8), Ymm(9)}, kPairY[2] = {Ymm(10), Ymm(11)}, kWeightX{12}, kWeightY{13},
            kFlip[2] = {Ymm(14), Ymm(15)};
  const Blend kBlend{
      {kPairX[0], kPairX[1], kPairY[0], kPairY[1]}, {kFlip[0], kFlip[1]}, kWeightX, kWeightY, Ymm(3)};

 private:
  void emit_live_lanes() override;
  // From x in ymm0 and ymm1, y in ymm2 and ymm3, the address of the level or slice in ymm4 and ymm5, and in
  // ecx the lanes whose texels exist, to addresses in ymm4 and ymm5.
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

  void check_level();
  void load_coordinates(const Ymm& first, size_t offset_in_lookup);
  void drop_lanes_outside(const Ymm& first, const Xbyak::Address& size);
  void find_layers(int part);
  void fill_addresses();
  void add_layers(const Ymm& layer, const Ymm& address, const Xbyak::Address& stride);
  void load_words(const Load& load, int part);
  void channel_to(const Ymm& to, const Load& load, int channel, int part);
  void extract(const Ymm& to, const Load& load, int channel, int part);
  void extract_depth(const Ymm& to, const Ymm& whole, const Load& load);
  void return_words(const Load& load, int part);
  void return_any_words(const Load& load, int part);
  void return_channels(const Load& load, int part);
  void return_part(const Load& load, int part);
  void column(const Ymm& x, int log2_cpp);
  void row(const Ymm& y, int log2_cpp);
  void column_flip(const Ymm& to, const Ymm& x, int log2_cpp);
  void find_four(int log2_cpp, int part);
  void gather_texels(const Ymm& to, const Ymm& index, int bytes, int part);
  void halves_of_words(const Ymm& z);
  void pack_halves(const Ymm& low, const Ymm& high, bool integers);

  Xbyak::Address part_of_s(int part);
  Xbyak::Address tap(int n, int part);
  Xbyak::Address in_level(size_t table) { return dword[kLevel + table]; }
  void clear(const Ymm& y) { vpxor(y, y, y); }
  void left(const Ymm& to, const Ymm& from, int bits) { vpslld(to, from, static_cast<uint8_t>(bits)); }
  void right(const Ymm& to, const Ymm& from, int bits) { vpsrld(to, from, static_cast<uint8_t>(bits)); }

  static Ymm part_of(const Ymm& first, int part) { return Ymm(first.getIdx() + part); }
};

}  // namespace v3d::qpu::jit::avx2
