/// @file Lookups of VideoCore IV against a scalar model written from the rules of vc4-graphics.md 5.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <random>

#include "gpu/chip/generation.h"
#include "gpu/tmu/image/layout.h"
#include "gpu/tmu/lookup/unit.h"
#include "gpu/tmu/texel/format.h"
#include "tests/tmu/gpu_memory.h"

namespace v3d::tmu {
namespace {

enum WrapMode : uint32_t { kRepeat, kClamp, kMirror, kBorder };
enum Minify : uint32_t { kLinear, kNearest, kNearMipNear, kNearMipLin, kLinMipNear, kLinMipLin };
constexpr uint32_t kRgba8888 = 0, kEtc1 = 8;

struct Spec {
  uint32_t type = kRgba8888, cpp = 4;
  uint32_t width = 32, height = 32, levels = 1;
  uint32_t minify = kNearest;
  bool mag_nearest = true;
  uint32_t wrap_s = kRepeat, wrap_t = kRepeat;
  bool cube = false, flip_y = false, etc_upside_down = false;
};

/// R, G, B, A of a stored word, by the table of 5.3; a byte each.
uint32_t bytes_of(uint32_t type, uint32_t word) {
  const auto wide = [&](int first, int bits) {
    const uint32_t v = word >> first & ((1u << bits) - 1);
    return bits == 4 ? v * 17 : bits == 1 ? v * 255 : bits == 5 ? v << 3 | v >> 2 : v << 2 | v >> 4;
  };
  const auto pack = [](uint32_t r, uint32_t g, uint32_t b, uint32_t a) {
    return r | g << 8 | b << 16 | a << 24;
  };
  const uint32_t low = word & 0xff;
  switch (type) {
    case 1:
      return word | 0xff000000u;
    case 2:
      return pack(wide(12, 4), wide(8, 4), wide(4, 4), wide(0, 4));
    case 3:
      return pack(wide(11, 5), wide(6, 5), wide(1, 5), wide(0, 1));
    case 4:
      return pack(wide(11, 5), wide(5, 6), wide(0, 5), 255);
    case 5:
      return pack(low, low, low, 255);
    case 6:
      return pack(0, 0, 0, low);
    case 7:
      return pack(low, low, low, word >> 8);
    default:  // RGBA8888, and values that are returned as they are
      return word;
  }
}

class Texture {
 public:
  static constexpr GpuAddr kImage = GpuMemory::kBase + 0x100000;

  Texture(const GpuMemory& gpu, const Spec& of) : spec(of), memory_(gpu.memory()) {
    shape_ = {
        .width = spec.width, .height = spec.height, .depth = 1, .cpp = spec.cpp, .num_levels = spec.levels};
    if (spec.type == kEtc1) shape_.block_width = shape_.block_height = 4;
    compute_vc4_levels(shape_, levels_);
    stride_ = (static_cast<uint32_t>(-levels_[spec.levels - 1].offset) + levels_[0].slice_size + 4095) /
              4096 * 4096;
    base_ = kImage + stride_;
  }

  uint32_t width(uint32_t level) const { return std::max(1u, spec.width >> level); }
  uint32_t height(uint32_t level) const { return std::max(1u, spec.height >> level); }

  std::array<uint32_t, 4> words() const {
    std::array<uint32_t, 4> p = {};
    p[0] = base_ | uint32_t{spec.cube} << 9 | uint32_t{spec.flip_y} << 8 | (spec.type & 15) << 4 |
           (spec.levels - 1);
    p[1] = spec.type >> 4 << 31 | (spec.height & 2047) << 20 | uint32_t{!spec.etc_upside_down} << 19 |
           (spec.width & 2047) << 8 | uint32_t{spec.mag_nearest} << 7 | spec.minify << 4 | spec.wrap_t << 2 |
           spec.wrap_s;
    return p;
  }
  /// At coordinates that are to be given.
  PackedLookup lookup() const {
    PackedLookup lookup;
    lookup.p = words();
    lookup.written = kT;
    if (spec.cube) {
      lookup.p[2] = 1u << 30 | stride_;
      lookup.written |= kR;
    }
    return lookup;
  }

  uint32_t texel(uint32_t level, uint32_t face, uint32_t x, uint32_t y) const {
    const Level& l = levels_[level];
    const uint32_t bx = x / shape_.block_width, by = y / shape_.block_height;
    const GpuAddr at = base_ + face * stride_ + static_cast<uint32_t>(l.offset) +
                       texel_offset(l.tiling, spec.cpp, l.stride, bx, by);
    if (spec.type != kEtc1) {
      uint32_t word = 0;
      memory_.read(at, &word, spec.cpp);
      return bytes_of(spec.type, word);
    }
    uint8_t block[8];
    memory_.read(at, block, sizeof block);
    BlockTexel texels[kMaxBlockTexels];
    find_format(chip::Generation::k21, TextureType{8})->decode_block(block, false, texels);
    const uint32_t row = spec.etc_upside_down ? 3 - y % 4 : y % 4;
    const BlockTexel& t = texels[4 * row + x % 4];
    return t[0] | uint32_t{t[1]} << 8 | uint32_t{t[2]} << 16 | 0xff000000u;
  }

  const Spec spec;

 private:
  Memory memory_;
  ImageShape shape_;
  Level levels_[kMaxLevels];
  GpuAddr base_ = 0;
  uint32_t stride_ = 0;
};

/// Index inside 0..n-1, or -1 for the border.
int wrapped(uint32_t mode, int i, int n) {
  const int period = mode == kMirror ? 2 * n : n, in_period = ((i % period) + period) % period;
  switch (mode) {
    case kRepeat:
      return in_period;
    case kMirror:
      return in_period < n ? in_period : 2 * n - 1 - in_period;
    case kBorder:
      return i < 0 || i >= n ? -1 : i;
    default:
      return std::clamp(i, 0, n - 1);
  }
}

struct Model {
  const Texture& texture;
  uint32_t border = 0, face = 0;

  uint32_t at(uint32_t level, int i, int j) const {
    const int x = wrapped(texture.spec.wrap_s, i, static_cast<int>(texture.width(level))),
              y = wrapped(texture.spec.wrap_t, j, static_cast<int>(texture.height(level)));
    if (x < 0 || y < 0) return border;
    return texture.texel(level, face, static_cast<uint32_t>(x), static_cast<uint32_t>(y));
  }
  /// Place in 1/128 texel, which is rounded.
  static int place(uint32_t mode, double at, uint32_t size) {
    const double period = mode == kRepeat ? 1 : mode == kMirror ? 2 : 0;
    const double reduced = period > 0 ? at - period * std::floor(at / period) : at;
    return static_cast<int>(std::round(reduced * size * 128));
  }
  /// Of the texture coordinates s and t. Weights are of 1/64, and cut.
  uint32_t in_level(uint32_t level, double s, double t, bool nearest) const {
    const int u = place(texture.spec.wrap_s, s, texture.width(level)),
              v = place(texture.spec.wrap_t, t, texture.height(level));
    if (nearest) return at(level, u >> 7, v >> 7);
    const int i = (u - 64) >> 7, j = (v - 64) >> 7, ws = (u - 64) >> 1 & 63, wt = (v - 64) >> 1 & 63;
    uint32_t result = 0;
    for (int byte = 0; byte < 4; ++byte) {
      const auto of = [&](int x, int y) { return static_cast<int>(at(level, x, y) >> (8 * byte) & 255); };
      const auto blend = [](int a, int b, int weight) { return (a * (64 - weight) + b * weight + 32) / 64; };
      const int top = blend(of(i, j), of(i + 1, j), ws), bottom = blend(of(i, j + 1), of(i + 1, j + 1), ws);
      result |= static_cast<uint32_t>(blend(top, bottom, wt)) << (8 * byte);
    }
    return result;
  }
  /// @param lod  in 1/256
  uint32_t sample(double s, double t, int lod) const {
    const Spec& spec = texture.spec;
    const int last = static_cast<int>(spec.levels) - 1;
    const bool has_levels = spec.minify >= kNearMipNear;
    const int lambda = std::clamp(lod, 0, last * 256);
    const bool nearest = spec.minify == kNearest || spec.minify == kNearMipNear || spec.minify == kNearMipLin;
    if (lod <= (has_levels && nearest && !spec.mag_nearest ? 128 : 0))
      return in_level(0, s, t, spec.mag_nearest);
    if (!has_levels) return in_level(0, s, t, nearest);
    if (spec.minify == kNearMipNear || spec.minify == kLinMipNear)
      return in_level(static_cast<uint32_t>((lambda + 128) >> 8), s, t, nearest);
    const uint32_t level = static_cast<uint32_t>(lambda >> 8), weight = static_cast<uint32_t>(lambda & 255);
    const uint32_t a = in_level(level, s, t, nearest);
    if (weight == 0) return a;
    const uint32_t b = in_level(level + 1, s, t, nearest);
    uint32_t result = 0;
    for (int shift = 0; shift < 32; shift += 8)
      result |= ((a >> shift & 255) * (256 - weight) + (b >> shift & 255) * weight + 128) >> 8 << shift;
    return result;
  }
};

Lanes floats(const std::array<float, kLanes>& values) {
  LanesF v;
  for (int i = 0; i < kLanes; ++i) v[i] = values[static_cast<size_t>(i)];
  return as_uint(v);
}

class Packed : public testing::Test {
 protected:
  Packed() : unit_(gpu_.memory(), chip::Generation::k21) { gpu_.randomize(4 << 20, 5); }

  /// Coordinates in the middle of 1/256 texel of level 0, on both sides of the image.
  float coordinate(uint32_t size) {
    const int range = static_cast<int>(size) * 256;
    const int sub_texel = static_cast<int>(random_() % static_cast<uint32_t>(5 * range)) - 2 * range;
    return static_cast<float>((sub_texel + 0.5) / range);
  }

  /// Lookups with level `lod` in 1/256 by BSLOD, if it is given.
  void check(const Spec& spec, int lod, bool explicit_lod) {
    const Texture texture(gpu_, spec);
    const bool has_border = spec.wrap_s == kBorder || spec.wrap_t == kBorder;
    PackedLookup lookup = texture.lookup();
    Model model{texture};
    if (has_border) {
      lookup.written |= kR;
      model.border = 0x40c080ff;
      lookup.r = splat(0x12345678u);
      lookup.r[0] = model.border;
    }
    if (explicit_lod) {
      lookup.p[2] = 1u << 30 | 1;
      lookup.written |= kB;
      lookup.b = as_uint(splat((static_cast<float>(lod) + 0.5f) / 256));
    }
    std::array<float, kLanes> s, t;
    for (int i = 0; i < kLanes; ++i) {
      // Without a level from the program all pixels of a quad look at one place.
      const size_t n = static_cast<size_t>(i), first = explicit_lod ? n : n & ~size_t{3};
      s[n] = n == first ? coordinate(spec.width) : s[first];
      t[n] = n == first ? coordinate(spec.height) : t[first];
    }
    lookup.s = floats(s);
    lookup.t = floats(t);
    const Lanes result = unit_.packed(lookup);
    for (int i = 0; i < kLanes; ++i) {
      const size_t n = static_cast<size_t>(i);
      const double row = spec.flip_y ? 1.0 - double{t[n]} : double{t[n]};
      ASSERT_EQ(static_cast<uint32_t>(result[i]), model.sample(double{s[n]}, row, explicit_lod ? lod : -256))
          << "type " << spec.type << " " << spec.width << "x" << spec.height << " minify " << spec.minify
          << " lod " << lod << " wrap " << spec.wrap_s << spec.wrap_t << " s " << s[n] << " t " << t[n];
    }
  }

  GpuMemory gpu_;
  Unit unit_;
  std::minstd_rand random_{7};
};

TEST_F(Packed, EveryTypeAndBothFilters) {
  const uint32_t types[][2] = {{0, 4}, {1, 4}, {2, 2}, {3, 2}, {4, 2}, {5, 1}, {6, 1}, {7, 2}, {kEtc1, 8}};
  for (const auto& [type, cpp] : types)
    for (const bool nearest : {true, false})
      for (const uint32_t size : {8u, 33u, 100u})  // LT and T
        check({.type = type, .cpp = cpp, .width = size, .height = 65, .mag_nearest = nearest}, 0, false);
}

TEST_F(Packed, ValuesThatAreNoBytesAreReturnedUnfiltered) {
  const uint32_t types[][2] = {{9, 2}, {10, 1}, {11, 2}};
  for (const auto& [type, cpp] : types) {
    const Spec spec{.type = type, .cpp = cpp, .width = 40, .height = 40};
    check(spec, 0, false);
    const Texture texture(gpu_, {.type = type, .cpp = cpp, .width = 40, .height = 40, .mag_nearest = false});
    PackedLookup lookup = texture.lookup();
    lookup.s = lookup.t = as_uint(splat(20.75f / 40));
    EXPECT_EQ(uint32_t{unit_.packed(lookup)[0]}, texture.texel(0, 0, 20, 20));
  }
}

TEST_F(Packed, EveryWrapModeOnAnySize) {
  for (uint32_t s = 0; s < 4; ++s)
    for (uint32_t t = 0; t < 4; ++t)
      for (const bool nearest : {true, false})
        for (const uint32_t size : {16u, 37u})
          check({.width = size, .height = 129, .mag_nearest = nearest, .wrap_s = s, .wrap_t = t}, 0, false);
}

TEST_F(Packed, EveryMinifyingFilterInEveryLevel) {
  for (uint32_t minify = 0; minify < 6; ++minify)
    for (const bool mag_nearest : {true, false})
      for (int lod = -40; lod < 7 * 256; lod += 37) {
        check({.width = 64, .height = 64, .levels = 7, .minify = minify, .mag_nearest = mag_nearest}, lod,
              true);
        check({.width = 129, .height = 37, .levels = 8, .minify = minify, .mag_nearest = mag_nearest}, lod,
              true);
      }
  check({.minify = kLinMipLin}, 300, true);  // one level, and yet not magnified
  for (int lod = 0; lod < 4 * 256; lod += 100)
    check({.type = kEtc1, .cpp = 8, .width = 64, .height = 64, .levels = 5, .minify = kLinMipLin}, lod, true);
}

#ifdef __x86_64__
// Compiled programs call lookups while the host takes denormals for zeros.
TEST_F(Packed, DenormalsAsZerosMakeNoDifference) {
  constexpr unsigned kFlushing = 0x1f80 | 1 << 15 | 1 << 6;
  constexpr uint32_t kWords[] = {0x00000001, 0x007fffff, 0x00800000, 0x80000001, 0x807fffff, 0x80000000,
                                 0,          0x3f800000, 0xbf800000, 0x7f800000, 0x7fc00000, 0x3f7fffff};
  for (const bool cube : {false, true}) {
    for (uint32_t n = 0; n < 400; ++n) {
      const Spec spec{.type = n % 3,
                      .cpp = n % 3 == 2 ? 2u : 4u,
                      .width = cube ? 16u : 33u,
                      .height = 16,
                      .levels = n % 5 == 0 ? 4u : 1u,
                      .minify = n % 6,
                      .mag_nearest = n % 2 != 0,
                      .wrap_s = n / 6 % 4,
                      .wrap_t = n / 24 % 4,
                      .cube = cube,
                      .flip_y = n % 7 == 0};
      PackedLookup lookup = Texture(gpu_, spec).lookup();
      if (n % 4 == 0) lookup.written |= kB;
      for (AlignedLanes* v : {&lookup.s, &lookup.t, &lookup.r, &lookup.b})
        for (int i = 0; i < kLanes; ++i) (*v)[i] = kWords[random_() % std::size(kWords)];
      const Lanes expected = unit_.packed(lookup);
      const unsigned before = __builtin_ia32_stmxcsr();
      __builtin_ia32_ldmxcsr(kFlushing);
      const Lanes flushed = unit_.packed(lookup);
      const unsigned after = __builtin_ia32_stmxcsr();
      __builtin_ia32_ldmxcsr(before);
      ASSERT_EQ(after & kFlushing, kFlushing);
      for (int i = 0; i < kLanes; ++i) ASSERT_EQ(uint32_t{expected[i]}, uint32_t{flushed[i]}) << n;
    }
  }
}
#endif

TEST_F(Packed, FlipsOfRowsAndOfBlocks) {
  check({.flip_y = true}, 0, false);
  check({.type = kEtc1, .cpp = 8, .width = 33, .height = 33, .etc_upside_down = true}, 0, false);
}

TEST_F(Packed, BothSizesOfZeroAre2048) {
  check({.type = 6, .cpp = 1, .width = 2048, .height = 8}, 0, false);
  check({.type = 6, .cpp = 1, .width = 8, .height = 2048}, 0, false);
}

/// Steps of 2^lod texels from pixel to pixel.
TEST_F(Packed, LevelFromTheQuadAndItsBias) {
  const Texture texture(gpu_,
                        {.width = 64, .height = 64, .levels = 7, .minify = kLinMipLin, .mag_nearest = false});
  const Model model{texture};
  for (const bool along_x : {true, false})
    for (int lod = -1; lod < 6; ++lod)
      for (int bias = 0; bias < 600; bias += 151) {
        PackedLookup lookup = texture.lookup();
        std::array<float, kLanes> s, t;
        const float step = std::exp2(static_cast<float>(lod)) / 64;
        for (int i = 0; i < kLanes; ++i) {
          const int along = along_x ? i & 1 : i >> 1 & 1, quad = i / 4;
          s[static_cast<size_t>(i)] =
              0.13f + static_cast<float>(quad) / 16 + (along_x ? step * static_cast<float>(along) : 0);
          t[static_cast<size_t>(i)] = 0.29f + (along_x ? 0 : step * static_cast<float>(along));
        }
        lookup.s = floats(s);
        lookup.t = floats(t);
        if (bias != 0) {
          lookup.p[2] = 1u << 30;
          lookup.written |= kB;
          lookup.b = as_uint(splat((static_cast<float>(bias) + 0.5f) / 256));
        }
        const Lanes result = unit_.packed(lookup);
        for (int i = 0; i < kLanes; i += 4) {
          const size_t n = static_cast<size_t>(i);
          // Differences of these coordinates are exact to 1/256 of a level, but not more.
          const int level = lod * 256 + bias;
          const uint32_t got = result[i];
          EXPECT_TRUE(got == model.sample(double{s[n]}, double{t[n]}, level) ||
                      got == model.sample(double{s[n]}, double{t[n]}, level - 1) ||
                      got == model.sample(double{s[n]}, double{t[n]}, level + 1))
              << lod << " " << bias << " " << i;
        }
      }
}

/// As dEQP-GLES2.functional.texture.wrap.clamp_clamp_nearest_npot_etc1 shows on boards.
TEST_F(Packed, PlacesAreRoundedTo128thsOfATexel) {
  const Texture texture(gpu_, {.width = 128, .height = 128});
  PackedLookup lookup = texture.lookup();
  lookup.s = floats({(49 - 1.0f / 256) / 128, (49 - 1.0f / 200) / 128, 49.0f / 128, 1 - 1.0f / 65536});
  lookup.t = splat(0u);
  const Lanes result = unit_.packed(lookup);
  EXPECT_EQ(uint32_t{result[0]}, texture.texel(0, 0, 49, 0));
  EXPECT_EQ(uint32_t{result[1]}, texture.texel(0, 0, 48, 0));
  EXPECT_EQ(uint32_t{result[2]}, texture.texel(0, 0, 49, 0));
  EXPECT_EQ(uint32_t{result[3]}, texture.texel(0, 0, 0, 0));  // of the next repetition
}

/// As dEQP-GLES2.functional.texture.size.cube.15x15_rgba8888 shows on boards.
TEST_F(Packed, PlacesInAFaceAreRoundedAwayFromItsMiddle) {
  const Texture texture(gpu_, {.width = 15, .height = 15, .wrap_s = kClamp, .wrap_t = kClamp, .cube = true});
  PackedLookup lookup = texture.lookup();
  // 1/256 texel before texel 1, and as much after texel 13.
  lookup.s = floats({-111.0f / 128, 111.0f / 128, -111.1f / 128, -110.9f / 128});
  lookup.t = as_uint(splat(1.0f));
  lookup.r = floats({0, 0, 0, 0});
  const Lanes result = unit_.packed(lookup);  // +Y: s = x, t = z
  EXPECT_EQ(uint32_t{result[0]}, texture.texel(0, 2, 0, 7));
  EXPECT_EQ(uint32_t{result[1]}, texture.texel(0, 2, 14, 7));
  EXPECT_EQ(uint32_t{result[2]}, texture.texel(0, 2, 0, 7));
  EXPECT_EQ(uint32_t{result[3]}, texture.texel(0, 2, 1, 7));
}

/// As dEQP-GLES2.functional.texture.filtering.2d.nearest_mipmap_nearest_linear_repeat_rgba8888 and piglit's
/// texwrap show on boards.
TEST_F(Packed, WeightsAre64thsOfATexelAndCut) {
  const Texture texture(gpu_, {.minify = kLinear, .mag_nearest = false});
  PackedLookup lookup = texture.lookup();
  const auto at = [](float texels) { return (texels + 0.5f) / 32; };
  lookup.s = floats({at(5), at(5 + 1.0f / 128), at(5 + 1.0f / 64), at(5 + 3.0f / 128)});
  lookup.t = as_uint(splat(at(3)));
  const Lanes result = unit_.packed(lookup);
  const uint32_t a = texture.texel(0, 0, 5, 3), b = texture.texel(0, 0, 6, 3);
  uint32_t blended = 0;
  for (int shift = 0; shift < 32; shift += 8)
    blended |= ((a >> shift & 255) * 63 + (b >> shift & 255) + 32) / 64 << shift;
  EXPECT_EQ(uint32_t{result[0]}, a);
  EXPECT_EQ(uint32_t{result[1]}, a);
  EXPECT_EQ(uint32_t{result[2]}, blended);
  EXPECT_EQ(uint32_t{result[3]}, blended);
}

/// As dEQP-GLES2.functional.texture.mipmap.2d.basic.nearest_linear_repeat_non_square shows on boards.
TEST_F(Packed, ADifferenceOfMoreThanTheImageCountsAsTheImage) {
  const Texture texture(gpu_,
                        {.width = 32, .height = 64, .levels = 7, .minify = kNearMipNear, .wrap_s = kClamp});
  PackedLookup lookup = texture.lookup();
  lookup.s = floats({0, 1.5f, 0, 1.5f});  // 48 texels, which would be level 6
  lookup.t = splat(0u);
  EXPECT_EQ(uint32_t{unit_.packed(lookup)[0]}, texture.texel(5, 0, 0, 0));
  lookup.t = floats({0, 0, 0.75f, 0.75f});
  EXPECT_EQ(uint32_t{unit_.packed(lookup)[0]}, texture.texel(6, 0, 0, 0));
}

/// As dEQP-GLES2.functional.texture.vertex.cube.filtering.nearest_mipmap_linear_linear_clamp shows on boards.
TEST_F(Packed, ALinearFilterMagnifiesUpToHalfALevelBeforeNearestTexels) {
  for (const uint32_t minify : {kNearMipNear, kNearMipLin, kNearest, kLinMipLin}) {
    const bool waits = minify == kNearMipNear || minify == kNearMipLin;
    const Spec spec{.levels = 6, .minify = minify, .mag_nearest = false};
    const Texture texture(gpu_, spec),
        magnified(gpu_, {.levels = 6, .minify = kLinear, .mag_nearest = false});
    PackedLookup lookup;
    lookup.written = kT | kB;
    lookup.s = lookup.t = as_uint(splat(3.25f / 32));
    lookup.b = floats({0.0f, 0.25f, 0.5f, 0.75f});
    const auto run = [&](const Texture& of) {
      lookup.p = of.words();
      lookup.p[2] = 1u << 30 | 1;
      return unit_.packed(lookup);
    };
    const Lanes result = run(texture), linear = run(magnified);
    EXPECT_EQ(uint32_t{result[0]}, uint32_t{linear[0]});
    EXPECT_EQ(result[1] == linear[1], waits) << minify;
    EXPECT_EQ(result[2] == linear[2], waits) << minify;
    EXPECT_NE(uint32_t{result[3]}, uint32_t{linear[3]}) << minify;
  }
}

TEST_F(Packed, ExplicitLevelWithoutBIsZero) {
  const Texture texture(gpu_, {.width = 64, .height = 64, .levels = 7, .minify = kNearMipNear});
  PackedLookup lookup = texture.lookup();
  lookup.p[2] = 1u << 30 | 1;
  lookup.s = floats({0.1f, 0.9f, 0.2f, 0.7f, 0, 0.5f, 0.25f, 0.75f});
  lookup.t = splat(0u);
  EXPECT_EQ(uint32_t{unit_.packed(lookup)[1]}, texture.texel(0, 0, 57, 0));
}

/// Directions whose major component is 1, as programs give them.
TEST_F(Packed, CubeFaces) {
  const Texture texture(gpu_, {.width = 32, .height = 32, .levels = 6, .cube = true});
  // s and t of each face as multiples of the components, in GL's table.
  const struct {
    float major[3];
    int s_axis, s_sign, t_axis, t_sign;
  } faces[6] = {{{1, 0, 0}, 2, -1, 1, -1}, {{-1, 0, 0}, 2, 1, 1, -1}, {{0, 1, 0}, 0, 1, 2, 1},
                {{0, -1, 0}, 0, 1, 2, -1}, {{0, 0, 1}, 0, 1, 1, -1},  {{0, 0, -1}, 0, -1, 1, -1}};
  for (uint32_t face = 0; face < 6; ++face) {
    PackedLookup lookup = texture.lookup();
    AlignedLanes* const components[3] = {&lookup.s, &lookup.t, &lookup.r};
    std::array<uint32_t, 2> texels[kLanes];
    for (int i = 0; i < kLanes; ++i) {
      float point[3] = {faces[face].major[0], faces[face].major[1], faces[face].major[2]};
      texels[i] = {static_cast<uint32_t>(random_() % 32), static_cast<uint32_t>(random_() % 32)};
      const auto place = [](uint32_t texel, int sign) {
        return static_cast<float>(sign) * ((static_cast<float>(texel) + 0.5f) / 16 - 1);
      };
      point[faces[face].s_axis] = place(texels[i][0], faces[face].s_sign);
      point[faces[face].t_axis] = place(texels[i][1], faces[face].t_sign);
      for (int axis = 0; axis < 3; ++axis) (*components[axis])[i] = std::bit_cast<uint32_t>(point[axis]);
    }
    const Lanes result = unit_.packed(lookup);
    for (int i = 0; i < kLanes; ++i)
      EXPECT_EQ(uint32_t{result[i]}, texture.texel(0, face, texels[i][0], texels[i][1])) << face << " " << i;
  }
}

TEST_F(Packed, EqualComponentsOfADirectionTakeTheFirstAxis) {
  const Texture texture(gpu_, {.width = 32, .height = 32, .wrap_s = kClamp, .wrap_t = kClamp, .cube = true});
  PackedLookup lookup = texture.lookup();
  lookup.s = floats({1, -1, 0.5f, 0});
  lookup.t = floats({1, 1, -1, -1});
  lookup.r = floats({1, -1, 1, -1});
  const Lanes result = unit_.packed(lookup);
  EXPECT_EQ(uint32_t{result[0]}, texture.texel(0, 0, 0, 0));   // +X: s = -z, t = -y
  EXPECT_EQ(uint32_t{result[1]}, texture.texel(0, 1, 0, 0));   // -X: s = z
  EXPECT_EQ(uint32_t{result[2]}, texture.texel(0, 3, 24, 0));  // -Y: s = x, t = -z
  EXPECT_EQ(uint32_t{result[3]}, texture.texel(0, 3, 16, 31));
}

TEST_F(Packed, DirectReadsIgnoreTheLowBitsOfTheirAddress) {
  PackedLookup lookup;
  for (int i = 0; i < kLanes; ++i) lookup.s[i] = GpuMemory::kBase + 37u * static_cast<uint32_t>(i);
  const Lanes result = unit_.packed(lookup);
  for (int i = 0; i < kLanes; ++i)
    EXPECT_EQ(uint32_t{result[i]},
              gpu_.memory().load<uint32_t>((GpuMemory::kBase + 37u * static_cast<uint32_t>(i)) & ~3u));
}

TEST_F(Packed, QuadsWithoutALiveLaneReadNothing) {
  PackedLookup lookup;
  lookup.live = 0x0020;
  lookup.s = splat(0x10u);  // nothing is mapped there
  lookup.s[4] = lookup.s[5] = lookup.s[6] = lookup.s[7] = GpuMemory::kBase;
  const Lanes result = unit_.packed(lookup);
  EXPECT_EQ(gpu_.take_faults(), 0u);
  EXPECT_EQ(uint32_t{result[0]}, 0u);
  EXPECT_EQ(uint32_t{result[7]}, gpu_.memory().load<uint32_t>(GpuMemory::kBase));
}

TEST_F(Packed, WhatIsNotModelledGivesZero) {
  const Texture texture(gpu_, {.type = 15, .cpp = 8});
  PackedLookup lookup;
  lookup.written = kT;
  lookup.p = texture.words();
  EXPECT_EQ(uint32_t{unit_.packed(lookup)[0]}, 0u);
  lookup.p[0] &= ~0xf0u;
  lookup.p[2] = 2u << 30 | 4 << 12 | 4;  // child dimensions
  EXPECT_EQ(uint32_t{unit_.packed(lookup)[0]}, 0u);
}

TEST_F(Packed, AnyWordsAreHarmless) {
  std::mt19937 random(9);
  const auto word = [&] { return static_cast<uint32_t>(random()); };
  for (int round = 0; round < 2000; ++round) {
    PackedLookup lookup;
    for (uint32_t& p : lookup.p) p = word();
    lookup.p[0] = (lookup.p[0] & 0xfff) | (GpuMemory::kBase + 0x800000);
    lookup.written = static_cast<uint8_t>(1 + word() % 15) & (kT | kR | kB);
    for (int i = 0; i < kLanes; ++i) {
      lookup.s[i] = word();
      lookup.t[i] = word();
      lookup.r[i] = word();
      lookup.b[i] = word();
    }
    if (lookup.written != 0) unit_.packed(lookup);
  }
  gpu_.take_faults();
}

}  // namespace
}  // namespace v3d::tmu
