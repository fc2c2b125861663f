// Blending against the equations in double precision.

#include <bit>
#include <cmath>
#include <limits>

#include "gpu/base/float16.h"
#include "tests/tlb/tile_fixture.h"

namespace v3d::tlb {
namespace {

using draw::BlendFactor;
using draw::BlendMode;

constexpr int kFactors = 15, kModes = 9;

double factor(BlendFactor which, int c, const double* s, const double* d, const double* constant) {
  switch (static_cast<int>(which)) {
    case 0:
      return 0;
    case 1:
      return 1;
    case 2:
      return s[c];
    case 3:
      return 1 - s[c];
    case 4:
      return d[c];
    case 5:
      return 1 - d[c];
    case 6:
      return s[3];
    case 7:
      return 1 - s[3];
    case 8:
      return d[3];
    case 9:
      return 1 - d[3];
    case 10:
      return constant[c];
    case 11:
      return 1 - constant[c];
    case 12:
      return constant[3];
    case 13:
      return 1 - constant[3];
    default:
      return c == 3 ? 1 : std::min(s[3], 1 - d[3]);
  }
}

double blended(BlendMode mode, BlendFactor src, BlendFactor dst, int c, const double* s, const double* d,
               const double* constant) {
  const double a = s[c] * factor(src, c, s, d, constant), b = d[c] * factor(dst, c, s, d, constant);
  switch (static_cast<int>(mode)) {
    case 0:
      return a + b;
    case 1:
      return a - b;
    case 2:
      return b - a;
    case 3:
      return std::min(s[c], d[c]);
    case 4:
      return std::max(s[c], d[c]);
    case 5:
      return s[c] * d[c];
    case 6:
      return s[c] + d[c] - s[c] * d[c];
    case 7:
      return std::min(s[c], d[c]);
    default:
      return std::max(s[c], d[c]);
  }
}

struct Pixel {
  double c[4];
};

class Blend : public ::testing::Test {
 protected:
  static constexpr float kInfinity = std::numeric_limits<float>::infinity();

  float random_unit() { return static_cast<float>(engine_() % 4097) / 4096.0f; }
  float exact_half(float v) { return half_to_float(float_to_half(v)); }

  /// Writes random pixels with `write`, blends random ones over them with `state`, and compares.
  /// @param low,high  clamp of source and result
  void run(const Config& config, draw::DrawState state, int samples, float range, double low, double high) {
    const bool unorm = config.targets[0].type == ColorType::k8;
    const int channels = config.targets[0].type == ColorType::k16F && config.targets[0].bpp == 0 ? 2 : 4;
    for (float& v : state.blend_color) v = exact_half(random_unit());
    const FragmentBatch whole =
        engine_() % 2 ? block_batch(24, 18, samples == 4) : square_batch(24, 20, samples == 4);
    FragmentBatch batch = whole;
    const bool all = engine_() % 4 == 0;
    for (uint32_t lane = 0; lane < kLanes; ++lane)
      if (!all) batch.coverage[lane] = samples == 4 ? engine_() % 16 : engine_() % 2;

    // Destination: a different colour in every sample.
    Lanes old_words[8], new_words[2], result[16];
    for (Lanes& words : old_words) words = random_halves(range);
    for (Lanes& words : new_words) words = random_halves(range);
    fixture_.write(draw::DrawState{}, whole, spec_f16(0, samples == 4), old_words);
    Lanes before[16];
    fixture_.read(whole, spec_32(0, samples == 4), before);
    fixture_.write(state, batch, spec_f16(0), new_words);
    fixture_.read(whole, spec_32(0, samples == 4), result);

    const draw::BlendConfig& b = state.blend[0];
    double constant[4];
    for (size_t c = 0; c < 4; ++c) constant[c] = std::clamp<double>(state.blend_color[c], low, high);
    for (int s = 0; s < samples; ++s)
      for (uint32_t lane = 0; lane < kLanes; ++lane) {
        double source[4], destination[4];
        for (int c = 0; c < 4; ++c) {
          const uint32_t word = new_words[c / 2][lane];
          source[c] =
              std::clamp<double>(half_to_float(static_cast<uint16_t>(c & 1 ? word >> 16 : word)), low, high);
          destination[c] = std::bit_cast<float>(uint32_t{before[4 * s + c][lane]});
        }
        for (int c = 0; c < channels; ++c) {
          const double actual = std::bit_cast<float>(uint32_t{result[4 * s + c][lane]});
          double expected = destination[c], tolerance = 1e-7;
          if ((batch.coverage[lane] >> s) & 1) {
            expected =
                c < 3 ? blended(b.color_mode, b.color_src, b.color_dst, c, source, destination, constant)
                      : blended(b.alpha_mode, b.alpha_src, b.alpha_dst, c, source, destination, constant);
            expected = std::clamp(expected, low, high);
            tolerance = unorm ? 0.5001 / 255 : std::max(std::fabs(expected) / 2040, 1e-6 * range * range);
          }
          ASSERT_NEAR(actual, expected, tolerance)
              << "mode " << static_cast<int>(b.color_mode) << '/' << static_cast<int>(b.alpha_mode)
              << " source factor " << static_cast<int>(b.color_src) << '/' << static_cast<int>(b.alpha_src)
              << " destination factor " << static_cast<int>(b.color_dst) << '/'
              << static_cast<int>(b.alpha_dst) << " channel " << c << " sample " << s << " lane " << lane;
        }
      }
  }

  void run_all_factors(const Config& config, int samples, float range, double low, double high) {
    fixture_.configure(config);
    for (int mode = 0; mode < kModes; ++mode)
      for (int src = 0; src < kFactors; ++src)
        for (int dst = 0; dst < kFactors; ++dst) {
          draw::DrawState state = blending_state();
          draw::BlendConfig& b = state.blend[0];
          b.color_mode = static_cast<BlendMode>(mode);
          b.color_src = static_cast<BlendFactor>(src);
          b.color_dst = static_cast<BlendFactor>(dst);
          b.alpha_mode = static_cast<BlendMode>(engine_() % kModes);
          b.alpha_src = static_cast<BlendFactor>(engine_() % kFactors);
          b.alpha_dst = static_cast<BlendFactor>(engine_() % kFactors);
          if (engine_() % 2) {  // what the fast path takes
            b.alpha_mode = b.color_mode;
            b.alpha_src = b.color_src;
            b.alpha_dst = b.color_dst;
          }
          run(config, state, samples, range, low, high);
          if (HasFatalFailure()) return;
        }
  }

  static draw::DrawState blending_state() {
    draw::DrawState state;
    state.cfg.blend = true;
    state.blend_enables = 1;
    return state;
  }

  Lanes random_halves(float range) {
    Lanes result;
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      const float a = range * (range > 1 ? 2 * random_unit() - 1 : random_unit());
      const float b = range * (range > 1 ? 2 * random_unit() - 1 : random_unit());
      result[lane] = float_to_half(a) | uint32_t{float_to_half(b)} << 16;
    }
    return result;
  }

  TileFixture fixture_;
  std::mt19937 engine_{11};
};

TEST_F(Blend, Unorm8EveryFactorAndEquation) {
  run_all_factors(TileFixture::one_target(ColorType::k8, 0), 1, 1, 0, 1);
}
TEST_F(Blend, Unorm8SourceOutsideTheRange) {
  run_all_factors(TileFixture::one_target(ColorType::k8, 0), 1, 2, 0, 1);
}
TEST_F(Blend, Unorm8Multisample) {
  run_all_factors(TileFixture::one_target(ColorType::k8, 0, 64, 64, true), 4, 1, 0, 1);
}
TEST_F(Blend, HalfEveryFactorAndEquation) {
  run_all_factors(TileFixture::one_target(ColorType::k16F, 1), 1, 4, -1e30, 1e30);
}
TEST_F(Blend, HalfTwoChannels) {
  run_all_factors(TileFixture::one_target(ColorType::k16F, 0), 1, 1, -1e30, 1e30);
}
TEST_F(Blend, HalfClampedToOne) {
  run_all_factors(TileFixture::one_target(ColorType::k16F, 1, 64, 64, false, Clamp::kNorm), 1, 2, 0, 1);
}
TEST_F(Blend, HalfClampedToPositive) {
  run_all_factors(TileFixture::one_target(ColorType::k16F, 1, 64, 64, false, Clamp::kPos), 1, 2, 0, 1e30);
}

/// All pairs of source and destination alpha-blended: the byte nearest to the exact value, off ties.
TEST_F(Blend, SourceAlphaIsCorrectlyRounded) {
  fixture_.configure(TileFixture::one_target(ColorType::k8, 0));
  draw::DrawState state = blending_state();
  state.blend[0] = {.color_src = BlendFactor::kSrcAlpha,
                    .color_dst = BlendFactor::kOneMinusSrcAlpha,
                    .alpha_dst = BlendFactor::kOneMinusSrcAlpha};
  for (uint32_t alpha = 0; alpha < 256; alpha += 5)
    for (uint32_t i = 0; i < 65536; i += kLanes) {
      Lanes old[2] = {}, fresh[2] = {}, result[4];
      for (uint32_t lane = 0; lane < kLanes; ++lane) {
        const uint32_t s = (i + lane) & 255, d = (i + lane) >> 8;
        old[0][lane] = float_to_half(static_cast<float>(d) / 255);
        fresh[0][lane] = float_to_half(static_cast<float>(s) / 255);
        fresh[1][lane] = uint32_t{float_to_half(static_cast<float>(alpha) / 255)} << 16;
      }
      const FragmentBatch batch = block_batch(0, 0, false);
      fixture_.write(draw::DrawState{}, batch, spec_f16(0), old);
      fixture_.write(state, batch, spec_f16(0), fresh);
      fixture_.read(batch, spec_32(0), result);
      for (uint32_t lane = 0; lane < kLanes; ++lane) {
        const double d = (i + lane) >> 8;
        const double s = half_to_float(static_cast<uint16_t>(uint32_t{fresh[0][lane]}));
        const double a = half_to_float(static_cast<uint16_t>(uint32_t{fresh[1][lane]} >> 16));
        const double exact = s * a * 255 + d * (1 - a);
        const double stored = std::bit_cast<float>(uint32_t{result[0][lane]}) * 255.0;
        ASSERT_LE(std::fabs(stored - exact), 0.5001) << "source " << s << " alpha " << a << " over " << d;
      }
    }
}

TEST_F(Blend, ZeroFactorDropsInfinity) {
  fixture_.configure(TileFixture::one_target(ColorType::k16F, 1));
  draw::DrawState state = blending_state();
  state.blend[0] = {.color_dst = BlendFactor::kZero};
  const FragmentBatch batch = block_batch(0, 0, false);
  const Lanes infinite[2] = {splat(0x7c007c00u), splat(0x7e007c00u)},
              half[2] = {splat(0x38003800u), splat(0x38003800u)};
  fixture_.write(draw::DrawState{}, batch, spec_f16(0), infinite);
  fixture_.write(state, batch, spec_f16(0), half);
  Lanes result[2];
  fixture_.read(batch, spec_f16(0), result);
  EXPECT_EQ(result[0][3], 0x38003800u);
  EXPECT_EQ(result[1][3], 0x38003800u);
}

TEST_F(Blend, OnlyEnabledTargetsOfBlendingTypes) {
  const draw::BlendConfig zero_one{BlendMode::kAdd,    BlendFactor::kZero, BlendFactor::kOne, BlendMode::kAdd,
                                   BlendFactor::kZero, BlendFactor::kOne};  // keeps the destination
  for (ColorType type : {ColorType::k8, ColorType::k16F, ColorType::k32F, ColorType::k16Ui})
    for (bool cfg : {false, true})
      for (uint8_t enables : {0, 1, 2}) {
        fixture_.configure(TileFixture::one_target(type, type == ColorType::k32F ? 2 : 1));
        draw::DrawState state;
        state.cfg.blend = cfg;
        state.blend_enables = enables;
        state.blend[0] = zero_one;
        const FragmentBatch batch = block_batch(0, 0, false);
        const bool half = type == ColorType::k8 || type == ColorType::k16F;
        const qpu::TlbSpec spec = half ? spec_f16(0) : spec_32(0);
        const Lanes one = half                      ? splat(0x3c003c00u)
                          : type == ColorType::k32F ? as_uint(splat(1.0f))
                                                    : splat(1u);
        const Lanes ones[4] = {one, one, one, one}, zeros[4] = {};
        fixture_.write(draw::DrawState{}, batch, spec, ones);
        fixture_.write(state, batch, spec, zeros);
        Lanes result[4];
        fixture_.read(batch, spec, result);
        const bool keeps = half && cfg && (enables & 1);
        EXPECT_EQ(result[0][5], keeps ? one[0] : 0u)
            << "type " << static_cast<int>(type) << " blend " << cfg << " enables " << int{enables};
      }
}

TEST_F(Blend, UnknownValuesFailTheNextStore) {
  for (const draw::BlendConfig& config :
       {draw::BlendConfig{.color_mode = BlendMode{9}}, draw::BlendConfig{.color_src = BlendFactor{15}},
        draw::BlendConfig{.alpha_dst = BlendFactor{15}}}) {
    fixture_.configure(TileFixture::one_target(ColorType::k8, 0));
    draw::DrawState state = blending_state();
    state.blend[0] = config;
    const LoadStore packet = TileFixture::image(0, 27, tmu::Tiling::kRaster, 256);
    const Lanes words[2] = {};
    fixture_.store(packet);
    fixture_.write(state, block_batch(0, 0, false), spec_f16(0), words);
    std::string error;
    EXPECT_FALSE(fixture_.tile().store(packet, &error));
    EXPECT_NE(error.find("blend mode"), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace v3d::tlb
