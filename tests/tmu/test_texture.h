/// Tests use these textures: state records packed by bit position as texture.md 3 states them, and images
/// written texel by texel.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <vector>

#include "gpu/chip/generation.h"
#include "gpu/tmu/image/layout.h"
#include "gpu/tmu/lookup/unit.h"
#include "tests/tmu/gpu_memory.h"

namespace v3d::tmu {

/// A record under construction.
template <size_t kWords>
struct Bits {
  std::array<uint32_t, kWords> words = {};
  void set(int first, int count, uint32_t value) {
    for (int i = 0; i < count; ++i)
      if ((value >> i) & 1) words[static_cast<size_t>(first + i) / 32] |= 1u << ((first + i) % 32);
  }
};

/// Shape of a test texture; every field is one of the texture shader state.
struct TextureSpec {
  uint32_t type = 4, cpp = 4;
  uint32_t width = 16, height = 16, depth = 1;
  uint32_t block_width = 1, block_height = 1;
  uint32_t base_level = 0, max_level = 0;
  uint32_t layers = 1;       ///< mip trees in memory (6 per cube)
  uint32_t depth_field = 0;  ///< 0: depth, or layers of 2D textures
  bool raster = false;       ///< 1D
  bool three_d = false;
  bool srgb = false, reverse = false, rb_swap = false;
  uint32_t transfer = 0;                              ///< 7.1, instead of srgb
  bool flip_x = false, flip_y = false, swap = false;  ///< swap, of S and T: 4.2
  bool reverse_border = false;                        ///< 4.2
  std::array<uint32_t, 4> swizzle = {2, 3, 4, 5};
  bool strictly_uif = false;  ///< level 0 is UIF whatever its size
  chip::Generation generation = chip::Generation::k71;
};

struct SamplerSpec {
  bool mag_nearest = false, min_nearest = false, mip_nearest = false;
  bool anisotropy = false;
  uint32_t max_anisotropy = 0;
  uint32_t compare = 0;  ///< v3d::Compare
  double min_lod = 0, max_lod = 15.99, bias = 0;
  std::array<uint32_t, 3> wrap = {1, 1, 1};
  bool transfer_disable = false, layer_border = false;
  uint32_t border_mode = 0;
  std::array<uint32_t, 4> border = {};
};

class TestTexture {
 public:
  static constexpr GpuAddr kState = GpuMemory::kBase, kSampler = GpuMemory::kBase + 64,
                           kImage = GpuMemory::kBase + 0x10000;

  TestTexture(const GpuMemory& gpu, const TextureSpec& spec)
      : TestTexture(gpu.memory(), spec, GpuMemory::kBase) {
    EXPECT_LE(base_ + stride_ * spec.layers, GpuMemory::kBase + GpuMemory::kSize);
  }
  /// @param at  where all of it begins: on a page; the image comes last
  TestTexture(Memory memory, const TextureSpec& spec, GpuAddr at) : memory_(memory), at_(at), spec_(spec) {
    ImageShape shape{.width = spec.width, .height = spec.height, .depth = spec.depth, .cpp = spec.cpp};
    shape.block_width = spec.block_width;
    shape.block_height = spec.block_height;
    shape.num_levels = spec.max_level + 1;
    shape.raster = spec.raster;
    shape.uif_top = spec.strictly_uif;
    compute_levels(shape, levels_);
    const auto below = static_cast<uint32_t>(-levels_[spec.max_level].offset);
    base_ = at_ + (kImage - GpuMemory::kBase) + (below + 4095) / 4096 * 4096;
    stride_ = (below + levels_[0].slice_size * (spec.three_d ? spec.depth : 1) + 4095) / 4096 * 4096;
    pack();
  }

  GpuAddr state() const { return at_; }
  GpuAddr sampler() const { return at_ + (kSampler - kState); }
  /// Of all that it takes.
  uint32_t bytes() const { return base_ + stride_ * spec_.layers - at_; }

  const Level& level(uint32_t l) const { return levels_[l]; }
  uint32_t width(uint32_t l) const { return std::max(1u, spec_.width >> l); }
  uint32_t height(uint32_t l) const { return std::max(1u, spec_.height >> l); }
  uint32_t depth(uint32_t l) const { return std::max(1u, spec_.depth >> l); }

  /// Address of a texel or block; z is a slice of a 3D texture, else a layer.
  GpuAddr address(uint32_t l, uint32_t x, uint32_t y, uint32_t z = 0) const {
    const Level& level = levels_[l];
    const uint32_t param = level.tiling == Tiling::kRaster ? level.stride : level.padded_height_ub;
    return base_ + static_cast<uint32_t>(level.offset) + z * (spec_.three_d ? level.slice_size : stride_) +
           texel_offset(level.tiling, spec_.cpp, param, x, y);
  }

  void fill_random(uint32_t seed) {
    std::minstd_rand random(seed);
    for (uint32_t l = 0; l <= spec_.max_level; ++l)
      for (uint32_t z = 0; z < (spec_.three_d ? depth(l) : spec_.layers); ++z)
        for (uint32_t y = 0; y < levels_[l].height; ++y)
          for (uint32_t x = 0; x < levels_[l].width; ++x)
            for (uint32_t b = 0; b < spec_.cpp; ++b)
              memory_.store(address(l, x, y, z) + b, static_cast<uint8_t>(random() >> 8));
  }

  void set_sampler(const SamplerSpec& s) {
    Bits<6> bits;
    bits.set(0, 1, s.mag_nearest);
    bits.set(1, 1, s.min_nearest);
    bits.set(2, 1, s.mip_nearest);
    bits.set(3, 1, s.anisotropy);
    bits.set(4, 3, s.compare);
    bits.set(7, 1, s.transfer_disable);
    bits.set(57, 1, s.layer_border);
    bits.set(8, 12, static_cast<uint32_t>(s.min_lod * 256));
    bits.set(20, 12, static_cast<uint32_t>(s.max_lod * 256));
    bits.set(32, 16, static_cast<uint32_t>(static_cast<int32_t>(s.bias * 256)) & 0xffff);
    for (int i = 0; i < 3; ++i) bits.set(48 + 3 * i, 3, s.wrap[static_cast<size_t>(i)]);
    bits.set(58, 3, s.border_mode);
    bits.set(61, 2, s.max_anisotropy);
    for (int i = 0; i < 4; ++i) bits.set(64 + 32 * i, 32, s.border[static_cast<size_t>(i)]);
    memory_.write(sampler(), bits.words.data(), sizeof bits.words);
  }

  /// A lookup that returns all four channels in 32 bits.
  TextureLookup lookup(Launcher launcher, uint8_t written) const {
    TextureLookup result;
    result.launcher = launcher;
    result.written = written;
    result.p0 = state() | 15;
    result.p1 = launcher == Launcher::kSF ? 1 : sampler() | 1;
    return result;
  }

 private:
  void pack() {
    Bits<6> bits;
    const bool is71 = spec_.generation == chip::Generation::k71;
    bits.set(6, 26, base_ >> 6);
    bits.set(0, 1, spec_.flip_x);
    bits.set(1, 1, spec_.flip_y);
    if (is71) {
      bits.set(5, 1, spec_.reverse);
      bits.set(2, 3, spec_.srgb ? 1 : spec_.transfer);
      bits.set(32, 1, spec_.rb_swap);
      bits.set(33, 24, stride_ >> 6);
    } else {
      bits.set(5, 1, spec_.reverse_border);
      bits.set(2, 1, spec_.swap);
      bits.set(3, 1, spec_.srgb);
      bits.set(32, 26, stride_ >> 6);
    }
    bits.set(58, 14, spec_.width & 0x3fff);
    bits.set(72, 14, spec_.raster ? spec_.width >> 14 : spec_.height);
    bits.set(86, 14, spec_.depth_field ? spec_.depth_field : spec_.three_d ? spec_.depth : spec_.layers);
    bits.set(100, 7, spec_.type);
    for (int i = 0; i < 4; ++i) bits.set(108 + 3 * i, 3, spec_.swizzle[static_cast<size_t>(i)]);
    bits.set(120, 4, spec_.max_level);
    bits.set(124, 4, spec_.base_level);
    const Level& top = levels_[0];
    if (spec_.strictly_uif || top.tiling == Tiling::kUif || top.tiling == Tiling::kUifXor) {
      bits.set(107, 1, 1);
      bits.set(134, 1, 1);
      bits.set(132, 1, top.tiling == Tiling::kUifXor);
      const uint32_t block_height = 2 * utile_height(spec_.cpp);
      bits.set(128, 4, top.padded_height_ub - (top.height + block_height - 1) / block_height);
    }
    memory_.write(state(), bits.words.data(), sizeof bits.words);
  }

  const Memory memory_;
  const GpuAddr at_;
  TextureSpec spec_;
  Level levels_[kMaxLevels];
  GpuAddr base_;
  uint32_t stride_;
};

inline Lanes lanes_of(const std::function<float(int)>& f) {
  LanesF v;
  for (int i = 0; i < kLanes; ++i) v[i] = f(i);
  return as_uint(v);
}

}  // namespace v3d::tmu
