// Loads and stores value by value: conversions, channel orders, decimation, partial Z/S, refusals.

#include <bit>
#include <cmath>

#include "gpu/base/float16.h"
#include "tests/tlb/tile_fixture.h"

namespace v3d::tlb {
namespace {

using tmu::Tiling;

class Transfer : public ::testing::Test {
 protected:
  static constexpr uint32_t kStride = 1024;
  GpuAddr texel(uint32_t x, uint32_t y, uint32_t cpp) { return TileFixture::kImage + y * kStride + x * cpp; }

  /// Loads `count` texels of `cpp` bytes as one row after another of 64; texel i gets value(i).
  template <typename Fn>
  void load_texels(uint8_t format, uint32_t cpp, uint32_t count, LoadStore packet, Fn&& value) {
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t v = value(i);
      fixture_.memory().write(texel(i % 64, i / 64, cpp), &v, cpp);
    }
    packet.format = format;
    fixture_.tile().begin_tile(0, 0);
    fixture_.load(packet);
  }
  static LoadStore raster(uint8_t format = 0) {
    return TileFixture::image(0, format, Tiling::kRaster, kStride);
  }

  /// Component c of pixel i as the program reads it with 32-bit words.
  uint32_t read_bits(uint32_t i, uint32_t c) {
    Lanes words[4];
    const uint32_t x = i % 64, y = i / 64;
    fixture_.read(block_batch(x & ~7u, y & ~1u, false), spec_32(0), words);
    const uint32_t lane = (x & 7) / 2 * 4 + (y & 1) * 2 + (x & 1);
    return words[c][lane];
  }
  float read(uint32_t i, uint32_t c) { return std::bit_cast<float>(read_bits(i, c)); }

  /// Writes component values to pixel i (through 32-bit words) of the whole 64x64 tile.
  template <typename Fn>
  void write_pixels(Fn&& value) {
    for (uint32_t y = 0; y < 64; y += 2)
      for (uint32_t x = 0; x < 64; x += 8) {
        const FragmentBatch batch = block_batch(x, y, false);
        Lanes words[4];
        for (uint32_t lane = 0; lane < kLanes; ++lane)
          for (uint32_t c = 0; c < 4; ++c)
            words[c][lane] = value(uint32_t{batch.y[lane]} * 64 + batch.x[lane], c);
        fixture_.write(fixture_.plain_state(), batch, spec_32(0), words);
      }
  }
  uint32_t stored(uint32_t i, uint32_t cpp) {
    uint32_t v = 0;
    fixture_.memory().read(texel(i % 64, i / 64, cpp), &v, cpp);
    return v;
  }
  /// All channels of pixel i get the half whose bits are first + i.
  void write_halves(uint32_t first) {
    write_pixels([first](uint32_t i, uint32_t) {
      return std::bit_cast<uint32_t>(half_to_float(static_cast<uint16_t>(first + i)));
    });
  }

  TileFixture fixture_;
};

double srgb_to_linear(double v) { return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4); }
double linear_to_srgb(double v) { return v <= 0.0031308 ? v * 12.92 : 1.055 * std::pow(v, 1 / 2.4) - 0.055; }

TEST_F(Transfer, SrgbLoadsToTheNearestHalf) {
  fixture_.configure(TileFixture::one_target(ColorType::k16F, 1));
  load_texels(0, 4, 256, raster(), [](uint32_t i) { return i * 0x01010101u; });
  for (uint32_t i = 0; i < 256; ++i) {
    const double linear = srgb_to_linear(i / 255.0);
    EXPECT_EQ(read(i, 0), half_to_float(float_to_half(static_cast<float>(linear))));
    EXPECT_EQ(read(i, 2), read(i, 0));
    EXPECT_EQ(read(i, 3), half_to_float(float_to_half(static_cast<float>(i / 255.0))));
  }
}

TEST_F(Transfer, SrgbStoresEveryHalf) {
  fixture_.configure(TileFixture::one_target(ColorType::k16F, 1));
  for (uint32_t first = 0; first < 65536; first += 4096) {
    write_halves(first);
    fixture_.store(raster(0));
    for (uint32_t i = 0; i < 4096; ++i) {
      const double v = half_to_float(static_cast<uint16_t>(first + i));
      const double clamped = v > 0 ? std::min(v, 1.0) : 0;
      const auto color = static_cast<uint32_t>(std::lround(linear_to_srgb(clamped) * 255));
      const auto alpha = static_cast<uint32_t>(std::nearbyint(clamped * 255));
      ASSERT_EQ(stored(i, 4), color * 0x010101u | alpha << 24) << "half " << first + i;
    }
  }
}

/// Texels that memory holds already are not stored again.
TEST_F(Transfer, ClearedRowsReplaceWhatMemoryHolds) {
  constexpr uint32_t kCleared = 0x80ff4020, kWidth = 40, kHeight = 12;  // 2.5 vectors a row
  constexpr uint8_t kRgba8 = 27;
  fixture_.randomize(1);
  Config config = TileFixture::one_target(ColorType::k8, 0, kWidth, kHeight);
  config.targets[0].clear[0] = kCleared;
  fixture_.configure(config);
  for (uint32_t y = 0; y < kHeight; ++y)
    for (uint32_t x = 0; x < kWidth; ++x)  // a piece as it will be, one but for a word, one of other words
      if (const uint32_t kind = (x / 8 + y) % 3; kind == 0 || (kind == 1 && (x + y) % 7 != 0))
        fixture_.memory().store<uint32_t>(texel(x, y, 4), kCleared);
  std::vector<uint8_t> expected = fixture_.bytes();
  for (uint32_t y = 0; y < kHeight; ++y)
    for (uint32_t x = 0; x < kWidth; ++x) std::memcpy(&expected[texel(x, y, 4)], &kCleared, sizeof kCleared);
  fixture_.tile().begin_tile(0, 0);
  fixture_.store(raster(kRgba8));
  EXPECT_TRUE(expected == fixture_.bytes());
}

TEST_F(Transfer, Rgb10A2StoresEveryHalfAndKeepsEveryValue) {
  fixture_.configure(TileFixture::one_target(ColorType::k16F, 1));
  load_texels(3, 4, 1024, raster(), [](uint32_t i) { return i | i << 10 | i << 20 | i << 30; });
  for (uint32_t i = 0; i < 1024; ++i) {
    EXPECT_EQ(read(i, 1), half_to_float(float_to_half(static_cast<float>(i / 1023.0))));
    EXPECT_EQ(read(i, 3), half_to_float(float_to_half(static_cast<float>((i & 3) / 3.0))));
  }
  fixture_.store(raster(3));
  for (uint32_t i = 0; i < 1024; ++i) ASSERT_EQ(stored(i, 4), i | i << 10 | i << 20 | i << 30);
  for (uint32_t first = 0; first < 65536; first += 4096) {
    write_halves(first);
    fixture_.store(raster(3));
    for (uint32_t i = 0; i < 4096; ++i) {
      const double v = half_to_float(static_cast<uint16_t>(first + i));
      const double clamped = v > 0 ? std::min(v, 1.0) : 0;
      const auto c = static_cast<uint32_t>(std::nearbyint(clamped * 1023));
      const auto alpha = static_cast<uint32_t>(std::nearbyint(clamped * 3));
      ASSERT_EQ(stored(i, 4), c | c << 10 | c << 20 | alpha << 30) << "half " << first + i;
    }
  }
}

/// Hybrid log-gamma of light 0..12: 1 is half of the range, 12 all of it.
TEST_F(Transfer, HlgOfBothLayouts) {
  fixture_.configure(TileFixture::one_target(ColorType::k16F, 1));
  const auto light = [](double v) {
    return v <= 0.5 ? 4 * v * v : std::exp((v - 0.55991073) / 0.17883277) + 0.28466892;
  };
  load_texels(57, 4, 1024, raster(), [](uint32_t i) { return i | i << 10 | (1023 - i) << 20 | i << 30; });
  for (uint32_t i = 0; i < 1024; ++i) {
    EXPECT_NEAR(read(i, 0), light(i / 1023.0), read(i, 0) * 0.0005 + 1e-6) << i;
    EXPECT_EQ(read(1023 - i, 2), read(i, 1));
    EXPECT_NEAR(read(i, 3), (i & 3) / 3.0, 0.0003);
  }
  fixture_.store(raster(57));
  for (uint32_t i = 0; i < 1024; ++i)
    ASSERT_EQ(stored(i, 4), i | i << 10 | (1023 - i) << 20 | i << 30) << "codes survive a trip";
  fixture_.store(raster(56));
  for (uint32_t i = 0; i < 1024; ++i) {
    uint16_t code[4];
    fixture_.memory().read(texel(i % 64, i / 64, 8), code, 8);
    EXPECT_EQ(code[1], i << 6);
    EXPECT_EQ(code[3], (i & 3) * 341 << 6);
  }
  write_pixels([](uint32_t i, uint32_t) {
    const float values[] = {-1, 0, 1, 12, 100, NAN};
    return std::bit_cast<uint32_t>(values[i % 6]);
  });
  fixture_.store(raster(57));
  const uint32_t want[] = {0, 0, 512, 1023, 1023, 0};
  for (uint32_t i = 0; i < 6; ++i) EXPECT_EQ(stored(i, 4) & 1023, want[i]);
}

TEST_F(Transfer, Rgba10x6KeepsTenBitsOfEachChannel) {
  fixture_.configure(TileFixture::one_target(ColorType::k16F, 1));
  fixture_.tile().begin_tile(0, 0);
  for (uint32_t i = 0; i < 1024; ++i)
    fixture_.memory().store(texel(i % 64, i / 64, 8), 0x0001'0040'ffc0'0000ull | i << 6);
  fixture_.load(raster(50));
  for (uint32_t i = 0; i < 1024; ++i)
    EXPECT_EQ(read(i, 0), half_to_float(float_to_half(static_cast<float>(i / 1023.0))));
  EXPECT_EQ(read(0, 1), 1.0f);
  EXPECT_EQ(read(0, 3), 0.0f);
  fixture_.store(raster(50));
  for (uint32_t i = 0; i < 1024; ++i)
    EXPECT_EQ(fixture_.memory().load<uint64_t>(texel(i % 64, i / 64, 8)), 0x0000'0040'ffc0'0000ull | i << 6);
}

/// Value of a float with 5 exponent bits and no sign.
double small_float(uint32_t bits, uint32_t mantissa_bits) {
  const uint32_t exponent = bits >> mantissa_bits, mantissa = bits & ((1u << mantissa_bits) - 1);
  if (exponent == 31) return mantissa ? NAN : INFINITY;
  const double scale = std::ldexp(1.0, -static_cast<int>(mantissa_bits));
  return exponent ? std::ldexp(1 + mantissa * scale, static_cast<int>(exponent) - 15)
                  : std::ldexp(mantissa * scale, -14);
}

TEST_F(Transfer, SmallFloatsLoadExactly) {
  fixture_.configure(TileFixture::one_target(ColorType::k16F, 1));
  load_texels(8, 4, 2048, raster(), [](uint32_t i) { return i | i << 11 | i << 22; });
  for (uint32_t i = 0; i < 2048; ++i)
    for (uint32_t c = 0; c < 3; ++c) {
      const double expected = c < 2 ? small_float(i, 6) : small_float(i & 1023, 5);
      if (std::isnan(expected))
        ASSERT_TRUE(std::isnan(read(i, c)));
      else
        ASSERT_EQ(read(i, c), expected) << i << " channel " << c;
    }
  EXPECT_EQ(read(77, 3), 1.0f);
}

TEST_F(Transfer, SmallFloatsStoreTheNearest) {
  fixture_.configure(TileFixture::one_target(ColorType::k16F, 1));
  for (uint32_t first = 0; first < 65536; first += 4096) {
    write_halves(first);
    fixture_.store(raster(8));
    for (uint32_t i = 0; i < 4096; ++i) {
      const double v = half_to_float(static_cast<uint16_t>(first + i));
      const uint32_t word = stored(i, 4);
      for (uint32_t mantissa : {6u, 5u}) {
        const uint32_t bits = mantissa == 6 ? word & 0x7ff : word >> 22;
        const double got = small_float(bits, mantissa);
        if (std::isnan(v)) {
          ASSERT_TRUE(std::isnan(got));
        } else if (v <= 0) {
          ASSERT_EQ(bits, 0u);
        } else if (std::isinf(v)) {
          ASSERT_EQ(got, v);
        } else {
          // No neighbour is nearer, and a tie is even; finite stays finite.
          ASSERT_TRUE(std::isfinite(got));
          const double error = std::fabs(got - v);
          if (bits > 0) {
            ASSERT_LE(error, std::fabs(small_float(bits - 1, mantissa) - v));
          }
          const double above = small_float(bits + 1, mantissa);
          if (std::isfinite(above)) {
            ASSERT_LE(error, std::fabs(above - v));
            if (error == std::fabs(above - v)) {
              ASSERT_EQ(bits & 1, 0u) << v;
            }
          }
        }
      }
    }
  }
}

struct PackedCase {
  uint8_t format;
  struct {
    uint32_t bits, shift;
  } field[4];
};

constexpr PackedCase kPacked[] = {
    {4, {{5, 11}, {5, 6}, {5, 1}, {1, 0}}},
    {6, {{4, 12}, {4, 8}, {4, 4}, {4, 0}}},
    {7, {{5, 11}, {6, 5}, {5, 0}, {0, 0}}},
    {45, {{5, 0}, {5, 5}, {5, 10}, {1, 15}}},
};

TEST_F(Transfer, PackedFormatsRoundToNearestAndReplicate) {
  for (const PackedCase& test : kPacked) {
    fixture_.configure(TileFixture::one_target(ColorType::k8, 0));
    write_pixels([](uint32_t i, uint32_t c) {
      return std::bit_cast<uint32_t>(static_cast<float>((i + 50 * c) & 255) / 255);
    });
    fixture_.store(raster(test.format));
    for (uint32_t i = 0; i < 4096; ++i) {
      uint32_t expected = 0;
      for (uint32_t c = 0; c < 4; ++c) {
        const uint32_t max = (1u << test.field[c].bits) - 1;
        expected |= static_cast<uint32_t>(std::nearbyint(((i + 50 * c) & 255) * double{max * 1.0} / 255))
                    << test.field[c].shift;
      }
      ASSERT_EQ(stored(i, 2), expected) << "format " << int{test.format} << " pixel " << i;
    }
    load_texels(test.format, 2, 4096, raster(), [](uint32_t i) { return i * 16 + (i >> 8); });
    for (uint32_t i = 0; i < 4096; ++i)
      for (uint32_t c = 0; c < 4; ++c) {
        const uint32_t bits = test.field[c].bits,
                       value = ((i * 16 + (i >> 8)) >> test.field[c].shift) & ((1u << bits) - 1);
        uint32_t wide = 255;
        if (bits == 1) wide = value * 255;
        if (bits == 4) wide = value * 17;
        if (bits == 5) wide = value << 3 | value >> 2;
        if (bits == 6) wide = value << 2 | value >> 4;
        ASSERT_EQ(std::lround(read(i, c) * 255), static_cast<long>(wide)) << "format " << int{test.format};
      }
  }
}

TEST_F(Transfer, MissingChannelsAndForcedAlpha) {
  fixture_.configure(TileFixture::one_target(ColorType::k8, 0));
  load_texels(29, 2, 64, raster(), [](uint32_t i) { return 0x8000u + i; });
  EXPECT_EQ(std::lround(read(9, 0) * 255), 9);
  EXPECT_EQ(std::lround(read(9, 1) * 255), 0x80);
  EXPECT_EQ(read(9, 2), 0.0f);
  EXPECT_EQ(read(9, 3), 1.0f);
  LoadStore forced = raster();
  forced.force_alpha_1 = true;
  load_texels(27, 4, 64, forced, [](uint32_t i) { return 0x40302010u + i; });
  EXPECT_EQ(std::lround(read(9, 0) * 255), 0x19);
  EXPECT_EQ(read(9, 3), 1.0f);
  forced.rb_swap = true;
  load_texels(27, 4, 64, forced, [](uint32_t i) { return 0x40302010u + i; });
  EXPECT_EQ(std::lround(read(9, 0) * 255), 0x30);
  EXPECT_EQ(std::lround(read(9, 2) * 255), 0x19);
  EXPECT_EQ(read(9, 3), 1.0f);
  fixture_.configure(TileFixture::one_target(ColorType::k16I, 1));
  load_texels(23, 2, 64, raster(), [](uint32_t i) { return 0xffffu - i; });
  EXPECT_EQ(read_bits(4, 0), static_cast<uint32_t>(-5));
  EXPECT_EQ(read_bits(4, 1), 0u);
  EXPECT_EQ(read_bits(4, 3), 1u);
}

/// A4R4G4B4 (A in the high bits, B in the low ones) uses abgr4444 with both (Mesa v3dvx_formats.c).
TEST_F(Transfer, ReverseAndSwapMakeA4R4G4B4) {
  fixture_.configure(TileFixture::one_target(ColorType::k8, 0));
  LoadStore packet = raster();
  packet.channel_reverse = packet.rb_swap = true;
  load_texels(6, 2, 64, packet, [](uint32_t) { return 0xa123u; });
  EXPECT_EQ(std::lround(read(0, 0) * 15), 1);
  EXPECT_EQ(std::lround(read(0, 1) * 15), 2);
  EXPECT_EQ(std::lround(read(0, 2) * 15), 3);
  EXPECT_EQ(std::lround(read(0, 3) * 15), 0xa);
  packet.format = 6;
  packet.address += 512;
  fixture_.store(packet);
  EXPECT_EQ(fixture_.memory().load<uint16_t>(packet.address), 0xa123u);
}

TEST_F(Transfer, SwapStoresBgra) {
  fixture_.configure(TileFixture::one_target(ColorType::k8, 0));
  write_pixels([](uint32_t, uint32_t c) { return std::bit_cast<uint32_t>(static_cast<float>(c + 1) / 255); });
  LoadStore packet = raster(27);
  packet.rb_swap = true;
  fixture_.store(packet);
  EXPECT_EQ(stored(70, 4), 0x04010203u);
}

class Multisample : public Transfer {
 protected:
  static constexpr uint32_t kSize = 32;

  /// Sample s of pixel (x, y) gets value(x, y, s, c).
  template <typename Fn>
  void write_samples(Fn&& value) {
    for (uint32_t y = 0; y < kSize; y += 2)
      for (uint32_t x = 0; x < kSize; x += 8) {
        const FragmentBatch batch = block_batch(x, y, true);
        Lanes words[16];
        for (uint32_t lane = 0; lane < kLanes; ++lane)
          for (uint32_t s = 0; s < 4; ++s)
            for (uint32_t c = 0; c < 4; ++c)
              words[4 * s + c][lane] = value(batch.x[lane], batch.y[lane], s, c);
        fixture_.write(fixture_.plain_state(), batch, spec_32(0, true), words);
      }
  }
};

TEST_F(Multisample, ResolveOfUnorm8RoundsHalfUp) {
  fixture_.configure(TileFixture::one_target(ColorType::k8, 0, kSize, kSize, true));
  const auto byte = [](uint32_t x, uint32_t y, uint32_t s, uint32_t c) {
    return (x * 7 + y * 13 + s * s * 41 + c * 5) & 255;
  };
  write_samples([&](uint32_t x, uint32_t y, uint32_t s, uint32_t c) {
    return std::bit_cast<uint32_t>(static_cast<float>(byte(x, y, s, c)) / 255);
  });
  LoadStore packet = raster(27);
  packet.decimate = 1;
  fixture_.store(packet);
  for (uint32_t y = 0; y < kSize; ++y)
    for (uint32_t x = 0; x < kSize; ++x)
      for (uint32_t c = 0; c < 4; ++c) {
        const uint32_t sum = byte(x, y, 0, c) + byte(x, y, 1, c) + byte(x, y, 2, c) + byte(x, y, 3, c);
        ASSERT_EQ(fixture_.memory().load<uint8_t>(texel(x, y, 4) + c), (sum + 2) / 4);
      }
}

TEST_F(Multisample, ResolveOfSrgbIsLinear) {
  fixture_.configure(TileFixture::one_target(ColorType::k16F, 1, kSize, kSize, true));
  write_samples(
      [](uint32_t, uint32_t, uint32_t s, uint32_t) { return std::bit_cast<uint32_t>(s < 2 ? 1.0f : 0.0f); });
  LoadStore packet = raster(0);
  packet.decimate = 1;
  fixture_.store(packet);
  EXPECT_EQ(fixture_.memory().load<uint32_t>(texel(5, 5, 4)), 0x80bcbcbcu);  // 188 is 0.5, encoded
  packet.format = 18;
  fixture_.store(packet);
  EXPECT_EQ(fixture_.memory().load<uint64_t>(texel(5, 5, 8)), 0x3800380038003800u);
}

TEST_F(Multisample, Decimation) {
  fixture_.configure(TileFixture::one_target(ColorType::k8Ui, 0, kSize, kSize, true));
  write_samples([](uint32_t x, uint32_t y, uint32_t s, uint32_t c) {
    return c == 0 ? x : c == 1 ? y : c == 2 ? s : 9;
  });
  LoadStore packet = raster(34);
  fixture_.store(packet);
  EXPECT_EQ(fixture_.memory().load<uint32_t>(texel(3, 7, 4)), 0x09000703u);
  LoadStore all = TileFixture::image(0, 34, Tiling::kUif, 8);
  all.address += 1 << 20;
  all.decimate = 3;
  fixture_.store(all);
  for (uint32_t s = 0; s < 4; ++s) {
    const uint32_t offset = tmu::texel_offset(Tiling::kUif, 4, 8, 2 * 3 + (s & 1), 2 * 7 + (s >> 1));
    EXPECT_EQ(fixture_.memory().load<uint32_t>(all.address + offset), 0x09000703u | s << 16);
  }
  // A single-sampled image fills all samples.
  fixture_.load(packet);
  fixture_.store(all);
  for (uint32_t s = 0; s < 4; ++s) {
    const uint32_t offset = tmu::texel_offset(Tiling::kUif, 4, 8, 2 * 3 + (s & 1), 2 * 7 + (s >> 1));
    EXPECT_EQ(fixture_.memory().load<uint32_t>(all.address + offset), 0x09000703u);
  }
}

/// Row y of the frame is row height - 1 - y of the image; rows it does not have stay out of it.
TEST_F(Transfer, FlippedImages) {
  for (const Tiling tiling : {Tiling::kRaster, Tiling::kUif})
    for (const uint16_t height : {uint16_t{64}, uint16_t{37}, uint16_t{80}}) {
      fixture_.configure(TileFixture::one_target(ColorType::k8Ui, 0, 61, 50));
      fixture_.tile().begin_tile(0, 0);
      write_pixels([](uint32_t i, uint32_t c) { return c == 0 ? i % 64 : c == 1 ? i / 64 : 7; });
      const uint32_t stride = tiling == Tiling::kRaster ? kStride : 12;
      LoadStore packet = TileFixture::image(0, 34, tiling, stride);
      packet.flip_y = true;
      packet.height = height;
      std::fill(fixture_.bytes().begin(), fixture_.bytes().end(), 0x55);
      fixture_.store(packet);
      for (uint32_t row = 0; row < 90; ++row)
        for (uint32_t x = 0; x < 64; ++x) {
          const uint32_t at = packet.address + tmu::texel_offset(tiling, 4, stride, x, row);
          const uint32_t y = height - 1 - row;  // of the frame
          const bool inside = row < height && y < 50 && x < 61;
          ASSERT_EQ(fixture_.memory().load<uint32_t>(at), inside ? 0x07070000 | y << 8 | x : 0x55555555u)
              << height << ": " << x << " " << row;
        }
      fixture_.configure(TileFixture::one_target(ColorType::k8Ui, 0, 61, 50));
      fixture_.tile().begin_tile(0, 0);
      fixture_.load(packet);
      for (uint32_t y = 0; y < 50; ++y) EXPECT_EQ(read_bits(64 * y + 9, 1), y < height ? y : 0) << y;
    }
}

TEST_F(Multisample, FlippingKeepsTheSamplesOfAPixel) {
  fixture_.configure(TileFixture::one_target(ColorType::k8Ui, 0, kSize, kSize, true));
  write_samples([](uint32_t x, uint32_t y, uint32_t s, uint32_t c) {
    return c == 0 ? x : c == 1 ? y : c == 2 ? s : 9;
  });
  LoadStore packet = TileFixture::image(0, 34, Tiling::kUif, 8);
  packet.decimate = 3;
  packet.flip_y = true;
  packet.height = kSize;
  fixture_.store(packet);
  for (uint32_t s = 0; s < 4; ++s) {
    const uint32_t row = 2 * (kSize - 1 - 7) + (s >> 1);
    const uint32_t offset = tmu::texel_offset(Tiling::kUif, 4, 8, 2 * 3 + (s & 1), row);
    EXPECT_EQ(fixture_.memory().load<uint32_t>(packet.address + offset), 0x09000703u | s << 16);
  }
}

/// Over 4 x 4 pixels, dithered values have the mean that rounding loses; what the format holds stays exact.
TEST_F(Transfer, DitheringKeepsMeansAndExactValues) {
  const struct {
    ColorType type;
    uint8_t bpp, format;
    uint32_t bits;  // of green
    uint32_t shift;
  } cases[] = {{ColorType::k8, 0, 7, 6, 5}, {ColorType::k8, 0, 6, 4, 8}, {ColorType::k16F, 1, 3, 10, 10}};
  for (const auto& c : cases) {
    fixture_.configure(TileFixture::one_target(c.type, c.bpp));
    fixture_.tile().begin_tile(0, 0);
    const uint32_t max = (1u << c.bits) - 1, cpp = c.format == 3 ? 4 : 2;
    // 4 x 4 squares of one value
    const auto value = [](uint32_t x, uint32_t y) {
      const uint32_t square = y / 4 * 16 + x / 4;
      return static_cast<float>(square) / 255;
    };
    write_pixels([&](uint32_t i, uint32_t) { return std::bit_cast<uint32_t>(value(i % 64, i / 64)); });
    LoadStore packet = raster(c.format);
    packet.dither = 1;
    fixture_.store(packet);
    for (uint32_t y = 0; y < 64; y += 4)
      for (uint32_t x = 0; x < 64; x += 4) {
        uint32_t sum = 0, least = max, most = 0;
        for (uint32_t k = 0; k < 16; ++k) {
          const uint32_t v = stored((y + k / 4) * 64 + x + k % 4, cpp) >> c.shift & max;
          sum += v;
          least = std::min(least, v);
          most = std::max(most, v);
        }
        const bool half = c.type == ColorType::k16F;
        const float exact =
            (half ? half_to_float(float_to_half(value(x, y))) : value(x, y)) * static_cast<float>(max);
        ASSERT_NEAR(sum / 16.0, exact, 1 / 31.9) << x << " " << y;
        const bool representable = std::abs(exact - std::round(exact)) < 1e-4f;
        EXPECT_LE(most - least, representable ? 0u : 1u) << x << " " << y;
      }
  }
}

TEST_F(Transfer, DitherModesNameTheChannels) {
  Config config = TileFixture::one_target(ColorType::k8, 0);
  config.targets[0].clear[0] = 0x84848484;  // between two values of every field
  fixture_.configure(config);
  const auto varies = [&](uint8_t dither, uint32_t mask) {
    LoadStore packet = raster(6);  // abgr4444
    packet.dither = dither;
    fixture_.store(packet);
    bool differs = false;
    for (uint32_t i = 0; i < 64; ++i) differs |= ((stored(i, 2) ^ stored(0, 2)) & mask) != 0;
    return differs;
  };
  constexpr uint32_t kAlpha = 0xf, kColor = 0xfff0;
  for (uint8_t mode = 0; mode < 4; ++mode) {
    EXPECT_EQ(varies(mode, kColor), mode == 1 || mode == 3);
    EXPECT_EQ(varies(mode, kAlpha), mode == 2 || mode == 3);
  }
}

class DepthStencilTransfer : public Transfer {
 protected:
  Config config(DepthType type) {
    Config config = TileFixture::one_target(ColorType::k8, 0, 45, 37);
    config.depth_type = type;
    config.clear_z = 0.5f;
    config.clear_stencil = 0x5a;
    return config;
  }
  static LoadStore buffer(uint8_t number, uint8_t format, uint32_t offset = 0) {
    LoadStore packet = TileFixture::image(number, format, Tiling::kUif, 8);
    packet.address += offset;
    return packet;
  }
  GpuAddr at(const LoadStore& packet, uint32_t cpp, uint32_t x, uint32_t y) {
    return packet.address + tmu::texel_offset(Tiling::kUif, cpp, 8, x, y);
  }
};

TEST_F(DepthStencilTransfer, PartialD24S8KeepsTheOtherAspect) {
  constexpr uint32_t kTarget = 1 << 20;
  for (uint8_t loaded : {9, 10, 11})
    for (uint8_t stored : {9, 10, 11}) {
      fixture_.randomize(loaded * 16u + stored);
      fixture_.configure(config(DepthType::k24));
      std::vector<uint8_t> expected = fixture_.bytes();
      const LoadStore source = buffer(loaded, 43), target = buffer(stored, 43, kTarget);
      for (uint32_t y = 0; y < 37; ++y)
        for (uint32_t x = 0; x < 45; ++x) {
          const uint32_t in = fixture_.memory().load<uint32_t>(at(source, 4, x, y));
          const uint32_t old = fixture_.memory().load<uint32_t>(at(target, 4, x, y));
          const uint32_t depth = loaded == 10 ? 0x800000u : in >> 8;  // 0.5 * 0xffffff, a tie, to even
          const uint32_t stencil = loaded == 9 ? 0x5au : in & 0xff;
          const uint32_t word = (stored == 10 ? old >> 8 : depth) << 8 | (stored == 9 ? old & 0xff : stencil);
          std::memcpy(&expected[at(target, 4, x, y)], &word, 4);
        }
      fixture_.tile().begin_tile(0, 0);
      fixture_.load(source);
      fixture_.store(target);
      EXPECT_TRUE(expected == fixture_.bytes()) << "load of " << int{loaded} << ", store of " << int{stored};
    }
}

/// Utiles that memory holds already are not stored again.
TEST_F(DepthStencilTransfer, ClearedTilesReplaceWhatMemoryHolds) {
  constexpr uint32_t kCleared = 0x800000u << 8 | 0x5a;
  for (const uint8_t stored : {9, 10, 11}) {
    fixture_.randomize(stored);
    Config of_whole_utiles = config(DepthType::k24);
    of_whole_utiles.width = 48;
    of_whole_utiles.height = 40;
    fixture_.configure(of_whole_utiles);
    const LoadStore target = buffer(stored, 43);
    const auto word_at = [&](uint32_t x, uint32_t y) { return at(target, 4, x, y); };
    for (uint32_t y = 0; y < 40; ++y)
      for (uint32_t x = 0; x < 48; ++x)  // a utile as it will be, one but for a word, one of other words
        if (const uint32_t kind = (x / 4 + y / 4) % 3; kind == 0 || (kind == 1 && (x + y) % 7 != 0))
          fixture_.memory().store<uint32_t>(word_at(x, y), kCleared);
    std::vector<uint8_t> expected = fixture_.bytes();
    for (uint32_t y = 0; y < 40; ++y)
      for (uint32_t x = 0; x < 48; ++x) {
        const uint32_t kept = stored == 9 ? 0xffu : stored == 10 ? ~0xffu : 0;
        const uint32_t old = fixture_.memory().load<uint32_t>(word_at(x, y)),
                       word = (old & kept) | (kCleared & ~kept);
        std::memcpy(&expected[word_at(x, y)], &word, 4);
      }
    fixture_.tile().begin_tile(0, 0);
    fixture_.store(target);
    EXPECT_TRUE(expected == fixture_.bytes()) << "store of " << int{stored};
  }
}

TEST_F(DepthStencilTransfer, NaturalFormatsRoundTrip) {
  constexpr uint32_t kTarget = 1 << 20;
  struct Case {
    DepthType type;
    uint8_t buffer, format;
    uint32_t cpp;
  };
  for (const Case& test :
       {Case{DepthType::k32F, 9, 40, 4}, Case{DepthType::k32F, 11, 40, 4}, Case{DepthType::k16, 9, 42, 2},
        Case{DepthType::k16, 11, 42, 2}, Case{DepthType::k24, 11, 43, 4}, Case{DepthType::k32F, 10, 44, 1}}) {
    fixture_.randomize(test.format);
    fixture_.configure(config(test.type));
    std::vector<uint8_t> expected = fixture_.bytes();
    const LoadStore source = buffer(test.buffer, test.format),
                    target = buffer(test.buffer, test.format, kTarget);
    for (uint32_t y = 0; y < 37; ++y)
      for (uint32_t x = 0; x < 45; ++x)
        std::copy_n(&expected[at(source, test.cpp, x, y)], test.cpp, &expected[at(target, test.cpp, x, y)]);
    fixture_.tile().begin_tile(0, 0);
    fixture_.load(source);
    fixture_.store(target);
    EXPECT_TRUE(expected == fixture_.bytes()) << "format " << int{test.format};
  }
}

TEST_F(DepthStencilTransfer, UnnaturalFormatsConvert) {
  for (DepthType type : {DepthType::k32F, DepthType::k24, DepthType::k16})
    for (uint8_t format : {40, 42, 43}) {
      Config c = config(type);
      c.clear_z = 1.0f;
      c.clear_stencil = 0;
      fixture_.configure(c);
      const LoadStore packet = buffer(9, format);
      fixture_.memory().store<uint32_t>(packet.address, 0);
      fixture_.store(packet);
      const uint32_t expected = format == 40 ? 0x3f800000u : format == 42 ? 0xffffu : 0xffffff00u;
      uint32_t word = 0;
      fixture_.memory().read(packet.address, &word, format == 42 ? 2 : 4);
      EXPECT_EQ(word, expected) << "type " << static_cast<int>(type) << " format " << int{format};
    }
}

TEST_F(Transfer, RefusesWhatItDoesNotKnow) {
  Config config = TileFixture::one_target(ColorType::k8I, 0);
  config.num_render_targets = 2;
  fixture_.configure(config);
  const std::vector<uint8_t> before = fixture_.bytes();
  const auto refusal = [&](const LoadStore& packet, bool is_load) {
    std::string error;
    EXPECT_FALSE(is_load ? fixture_.tile().load(packet, &error) : fixture_.tile().store(packet, &error));
    EXPECT_FALSE(is_load ? fixture_.tile().load(packet, nullptr) : fixture_.tile().store(packet, nullptr));
    return error;
  };
  int supported = 0;
  for (uint32_t format = 0; format < 256; ++format)
    for (uint8_t buffer : {0, 9, 10}) {
      LoadStore packet = TileFixture::image(buffer, static_cast<uint8_t>(format), Tiling::kRaster, 1024);
      std::string error;
      TileFixture other;
      other.configure(config);
      if (other.tile().load(packet, &error))
        ++supported;
      else
        EXPECT_NE(error.find("image format " + std::to_string(format)), std::string::npos) << error;
    }
  EXPECT_EQ(supported, 38 + 3 + 2);  // colour; Z; stencil
  for (bool is_load : {false, true}) {
    LoadStore packet = raster(27);
    packet.buffer = 1;
    EXPECT_NE(refusal(packet, is_load).find("buffer 1"), std::string::npos);
    packet.buffer = 7;
    EXPECT_NE(refusal(packet, is_load).find("buffer 7"), std::string::npos);
    packet.buffer = 12;
    EXPECT_NE(refusal(packet, is_load).find("buffer 12"), std::string::npos);
    packet = raster(27);
    packet.memory_format = 6;
    EXPECT_NE(refusal(packet, is_load).find("memory format 6"), std::string::npos);
    packet = raster(27);
    packet.decimate = 2;
    EXPECT_NE(refusal(packet, is_load).find("decimate mode 2"), std::string::npos);
    packet.decimate = 3;  // in a single-sampled frame
    EXPECT_NE(refusal(packet, is_load).find("decimate mode 3"), std::string::npos);
  }
  Config multisample = TileFixture::one_target(ColorType::k8I, 0, 64, 64, true);
  fixture_.configure(multisample);
  LoadStore packet = raster(31);
  packet.decimate = 1;  // integers have no average
  EXPECT_NE(refusal(packet, false).find("decimate mode 1"), std::string::npos);
  EXPECT_TRUE(before == fixture_.bytes());
}

TEST_F(Transfer, StoreToNoBufferDoesNothing) {
  fixture_.configure(TileFixture::one_target(ColorType::k8, 0));
  fixture_.randomize(1);
  const std::vector<uint8_t> before = fixture_.bytes();
  LoadStore packet;
  packet.memory_format = 7;  // not looked at
  fixture_.store(packet);
  fixture_.load(packet);
  EXPECT_TRUE(before == fixture_.bytes());
}

TEST_F(Transfer, CountsMemoryWordsOf16Bytes) {
  fixture_.configure(TileFixture::one_target(ColorType::k8, 0, 70, 40));
  fixture_.tile().begin_tile(1, 0);  // 6 x 40 pixels
  fixture_.load(raster(27));
  fixture_.store(raster(7));
  EXPECT_EQ(fixture_.tile().counts()[perf::kTlbWordsRead], 60u);
  EXPECT_EQ(fixture_.tile().counts()[perf::kTlbWordsWritten], 30u);
}

}  // namespace
}  // namespace v3d::tlb
