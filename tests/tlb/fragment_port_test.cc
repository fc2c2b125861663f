// Colour words of fragment programs into render targets and back: conversions, clamps, masks, coverage,
// counters.

#include <bit>
#include <cmath>
#include <random>
#include <tuple>
#include <vector>

#include "gpu/base/float16.h"
#include "tests/tlb/tile_fixture.h"

namespace v3d::tlb {
namespace {

class Port : public ::testing::Test {
 protected:
  TileFixture fixture_;
  FragmentBatch batch_ = block_batch(0, 0, false);
};

TEST_F(Port, HalfToUnorm8AllValues) {
  fixture_.configure(TileFixture::one_target(ColorType::k8, 0));
  for (uint32_t first = 0; first < 65536; first += kLanes) {
    const Lanes half = splat(first) + kLaneIndex;
    const Lanes words[2] = {half | half << 16, half | half << 16};
    fixture_.write(fixture_.plain_state(), batch_, spec_f16(0), words);
    Lanes result[4], same[2];
    fixture_.read(batch_, spec_32(0), result);
    fixture_.read(batch_, spec_f16(0), same);
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      const double v = half_to_float(static_cast<uint16_t>(first + lane));
      const double clamped = v > 0 ? std::min(v, 1.0) : 0;  // NaN gives 0
      const double byte = std::nearbyint(clamped * 255);
      for (const Lanes& channel : result)
        ASSERT_EQ(std::nearbyint(std::bit_cast<float>(uint32_t{channel[lane]}) * 255.0), byte)
            << first + lane;
      ASSERT_EQ(same[0][lane] & 0xffff, float_to_half(static_cast<float>(byte / 255)));
    }
  }
}

TEST_F(Port, Unorm8ReadThenWrittenAgainIsTheSame) {
  fixture_.configure(TileFixture::one_target(ColorType::k8, 0));
  for (uint32_t first = 0; first < 256; first += kLanes) {
    Lanes words[4], read[2], again[4];
    for (Lanes& channel : words)
      channel = as_uint(__builtin_convertvector(as_int(splat(first) + kLaneIndex), LanesF) / 255.0f);
    fixture_.write(fixture_.plain_state(), batch_, spec_32(0), words);
    fixture_.read(batch_, spec_f16(0), read);
    fixture_.write(fixture_.plain_state(), batch_, spec_f16(0), read);
    fixture_.read(batch_, spec_32(0), again);
    for (uint32_t lane = 0; lane < kLanes; ++lane)
      ASSERT_EQ(std::lround(std::bit_cast<float>(uint32_t{again[2][lane]}) * 255),
                static_cast<long>(first + lane));
  }
}

TEST_F(Port, FloatTypesKeepEveryBitOfTheirOwnForm) {
  fixture_.configure(TileFixture::one_target(ColorType::k16F, 1));
  for (uint32_t first = 0; first < 65536; first += kLanes) {
    const Lanes half = splat(first) + kLaneIndex;
    const Lanes words[2] = {half | (half ^ 0xffffu) << 16, half << 16};
    fixture_.write(fixture_.plain_state(), batch_, spec_f16(0), words);
    Lanes read[2];
    fixture_.read(batch_, spec_f16(0), read);
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      ASSERT_EQ(read[0][lane], words[0][lane]);
      ASSERT_EQ(read[1][lane], words[1][lane]);
    }
  }
  fixture_.configure(TileFixture::one_target(ColorType::k32F, 2));
  const Lanes nan[4] = {splat(0x7f800001u), splat(0xffc12345u), splat(0x00000001u), splat(0x80000000u)};
  fixture_.write(fixture_.plain_state(), batch_, spec_32(0), nan);
  Lanes read[4];
  fixture_.read(batch_, spec_32(0), read);
  for (int c = 0; c < 4; ++c) EXPECT_EQ(read[c][9], nan[c][9]);
}

TEST_F(Port, FloatTypesConvertTheOtherForm) {
  const Lanes pi = as_uint(splat(3.14159274f));
  const Lanes floats[4] = {pi, pi, pi, pi}, halves[2] = {splat(0x42484248u), splat(0x42484248u)};
  Lanes read[4];
  fixture_.configure(TileFixture::one_target(ColorType::k16F, 1));
  fixture_.write(fixture_.plain_state(), batch_, spec_32(0), floats);
  fixture_.read(batch_, spec_f16(0), read);
  EXPECT_EQ(read[0][0], 0x42484248u);
  fixture_.read(batch_, spec_32(0), read);
  EXPECT_EQ(std::bit_cast<float>(uint32_t{read[3][0]}), 3.140625f);
  fixture_.configure(TileFixture::one_target(ColorType::k32F, 2));
  fixture_.write(fixture_.plain_state(), batch_, spec_f16(0), halves);
  fixture_.read(batch_, spec_32(0), read);
  EXPECT_EQ(std::bit_cast<float>(uint32_t{read[1][0]}), 3.140625f);
}

struct IntegerCase {
  ColorType type;
  uint8_t bpp;
  int64_t min, max;
};

/// Light of PQ reaches 125, that of hybrid log-gamma 12; alpha stays within 0..1.
TEST_F(Port, HalfClampedToTheRangesOfHighDynamicRange) {
  const struct {
    Clamp clamp;
    float red, green;
  } cases[] = {{Clamp::kPq, 125, 13}, {Clamp::kHlg, 12, 12}};
  for (const auto& c : cases) {
    fixture_.configure(TileFixture::one_target(ColorType::k16F, 1, 64, 64, false, c.clamp));
    const float in[4] = {200, 13, -1, 2}, want[4] = {c.red, c.green, 0, 1};
    Lanes words[4];
    for (int i = 0; i < 4; ++i) words[i] = as_uint(splat(in[i]));
    fixture_.write(fixture_.plain_state(), batch_, spec_32(0), words);
    fixture_.read(batch_, spec_32(0), words);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(std::bit_cast<float>(uint32_t{words[i][5]}), want[i]) << i;
  }
}

TEST_F(Port, IntegersClampOrTruncateToTheInternalType) {
  constexpr IntegerCase kCases[] = {
      {ColorType::k8I, 0, -128, 127},
      {ColorType::k8Ui, 0, 0, 255},
      {ColorType::k16I, 1, -32768, 32767},
      {ColorType::k16Ui, 1, 0, 65535},
      {ColorType::k32I, 2, INT32_MIN, INT32_MAX},
      {ColorType::k32Ui, 2, 0, UINT32_MAX},
  };
  constexpr uint32_t kValues[kLanes] = {0,          1,          127,        128,       129,   255,
                                        256,        32767,      32768,      65535,     65536, 0x7fffffff,
                                        0x80000000, 0xffffff7f, 0xffffff80, 0xffffffff};
  for (const IntegerCase& test : kCases)
    for (Clamp clamp : {Clamp::kNone, Clamp::kInt}) {
      fixture_.configure(TileFixture::one_target(test.type, test.bpp, 64, 64, false, clamp));
      Lanes v;
      for (uint32_t lane = 0; lane < kLanes; ++lane) v[lane] = kValues[lane];
      const Lanes words[4] = {v, v, v, v};
      fixture_.write(fixture_.plain_state(), batch_, spec_32(0), words);
      Lanes read[4];
      fixture_.read(batch_, spec_32(0), read);
      const bool is_signed = test.min < 0;
      const uint64_t span = static_cast<uint64_t>(test.max - test.min) + 1;
      for (uint32_t lane = 0; lane < kLanes; ++lane) {
        const int64_t value =
            is_signed ? int64_t{static_cast<int32_t>(kValues[lane])} : int64_t{kValues[lane]};
        int64_t expected = std::clamp(value, test.min, test.max);
        if (clamp == Clamp::kNone) {
          expected = static_cast<int64_t>(static_cast<uint64_t>(value) % span);
          if (expected > test.max) expected -= static_cast<int64_t>(span);
        }
        for (const Lanes& channel : read)
          ASSERT_EQ(channel[lane], static_cast<uint32_t>(expected))
              << "type " << static_cast<int>(test.type) << " value " << kValues[lane];
      }
    }
}

TEST_F(Port, ComponentsNotWrittenAreZeroAndAlphaOne) {
  const Lanes half = splat(0x38003800u), one = splat(7u);
  Lanes read[4];
  fixture_.configure(TileFixture::one_target(ColorType::k8, 0));
  fixture_.write(fixture_.plain_state(), batch_, spec_f16(0, false, 1), &half);
  fixture_.read(batch_, spec_32(0), read);
  EXPECT_EQ(std::bit_cast<float>(uint32_t{read[2][0]}), 0.0f);
  EXPECT_EQ(std::bit_cast<float>(uint32_t{read[3][0]}), 1.0f);
  fixture_.configure(TileFixture::one_target(ColorType::k16Ui, 1));
  fixture_.write(fixture_.plain_state(), batch_, spec_32(0, false, 1), &one);
  fixture_.read(batch_, spec_32(0), read);
  const uint32_t expected[4] = {7, 0, 0, 1};
  for (int c = 0; c < 4; ++c) EXPECT_EQ(read[c][0], expected[c]);
  // Channels that the target has no room for read alike.
  fixture_.configure(TileFixture::one_target(ColorType::k16Ui, 0));
  fixture_.write(fixture_.plain_state(), batch_, spec_32(0, false, 1), &one);
  fixture_.read(batch_, spec_32(0), read);
  for (int c = 0; c < 4; ++c) EXPECT_EQ(read[c][0], expected[c]);
}

TEST_F(Port, ColorMasks) {
  struct Case {
    ColorType type;
    uint8_t bpp;
  };
  for (const Case& test : {Case{ColorType::k8, 0}, Case{ColorType::k16F, 1}, Case{ColorType::k32F, 2},
                           Case{ColorType::k8Ui, 0}, Case{ColorType::k16I, 1}, Case{ColorType::k32I, 2}})
    for (uint8_t mask = 0; mask < 16; ++mask)
      for (bool blend : {false, true}) {
        fixture_.configure(TileFixture::one_target(test.type, test.bpp));
        const bool floats =
            test.type == ColorType::k8 || test.type == ColorType::k16F || test.type == ColorType::k32F;
        const Lanes one = floats ? as_uint(splat(1.0f)) : splat(1u);
        const Lanes ones[4] = {one, one, one, one}, zeros[4] = {};
        draw::DrawState state;
        state.color_masks[0] = mask;
        state.cfg.blend = blend;
        state.blend_enables = 1;
        fixture_.write(fixture_.plain_state(), batch_, spec_32(0), zeros);
        fixture_.write(state, batch_, spec_32(0), ones);
        Lanes read[4];
        fixture_.read(batch_, spec_32(0), read);
        for (int c = 0; c < 4; ++c)
          ASSERT_EQ(read[c][6], (mask >> c) & 1 ? 0u : one[0])
              << "type " << static_cast<int>(test.type) << " mask " << int{mask} << " channel " << c;
      }
}

TEST_F(Port, OnlyLiveSamplesOfExecutingLanesChange) {
  for (bool multisample : {false, true})
    for (bool per_sample : {false, true}) {
      if (per_sample && !multisample) continue;
      fixture_.configure(TileFixture::one_target(ColorType::k8Ui, 0, 64, 64, multisample));
      const uint32_t samples = multisample ? 4 : 1;
      std::mt19937 random(17);
      FragmentBatch batch = per_sample ? block_batch(16, 8, multisample) : square_batch(16, 8, multisample);
      const FragmentBatch whole = batch;
      Lanes words[16], read[16];
      for (Lanes& word : words) word = splat(static_cast<uint32_t>(random() & 255));
      for (uint32_t lane = 0; lane < kLanes; ++lane) {
        batch.coverage[lane] = static_cast<uint32_t>(random() % (1u << samples));
        fixture_.thread().msf[lane] = static_cast<uint32_t>(random() % 16);
      }
      const LaneMask exec = static_cast<LaneMask>(random());
      fixture_.tile()
          .fragment_port(fixture_.plain_state(), batch, false)
          .write_color(fixture_.thread(), spec_32(0, per_sample), words, exec);
      const Lanes live = batch.coverage & fixture_.thread().msf;
      fixture_.read(whole, spec_32(0, multisample), read);
      for (uint32_t lane = 0; lane < kLanes; ++lane)
        for (uint32_t s = 0; s < samples; ++s) {
          const bool written = ((live[lane] >> s) & 1) && ((exec >> lane) & 1);
          for (uint32_t c = 0; c < 4; ++c)
            ASSERT_EQ(read[4 * s + c][lane], written ? words[(per_sample ? 4 * s : 0) + c][lane] : 0u)
                << "lane " << lane << " sample " << s;
        }
    }
}

TEST_F(Port, SeveralTargetsAndMissingOnes) {
  Config config;
  config.width = config.height = 32;
  config.tile_width = config.tile_height = 32;
  config.num_render_targets = 8;
  for (uint32_t rt : {0u, 3u, 7u}) {
    config.targets[rt].used = true;
    config.targets[rt].type = rt == 3 ? ColorType::k32Ui : ColorType::k8Ui;
    config.targets[rt].bpp = rt == 3 ? 2 : 0;
  }
  fixture_.configure(config);
  for (uint8_t rt = 0; rt < 8; ++rt) {
    const Lanes words[4] = {splat(rt + 1u), splat(2u), splat(3u), splat(4u)};
    fixture_.write(fixture_.plain_state(), batch_, spec_32(rt), words);
  }
  for (uint8_t rt = 0; rt < 8; ++rt) {
    Lanes read[4];
    fixture_.read(batch_, spec_32(rt), read);
    EXPECT_EQ(read[0][0], config.targets[rt].used ? rt + 1u : 0u);
  }
}

/// What compiled programs call for a draw does what the port's own functions do: on random words, lanes and
/// state, of every type.
class BoundPort : public ::testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  static Lanes random_lanes(std::mt19937& engine) {
    Lanes v;
    for (int lane = 0; lane < kLanes; ++lane) v[lane] = static_cast<uint32_t>(engine());
    return v;
  }
  static draw::DrawState random_state(std::mt19937& engine) {
    draw::DrawState state;
    state.cfg.blend = engine() & 1;
    state.blend_enables = 1;
    state.blend[0].color_mode = static_cast<draw::BlendMode>(engine() % 5);
    state.blend[0].color_src = static_cast<draw::BlendFactor>(engine() % 10);
    state.blend[0].color_dst = static_cast<draw::BlendFactor>(engine() % 10);
    state.color_masks[0] = engine() & 1 ? 0 : engine() & 0xf;
    state.cfg.z_write = engine() & 1;
    state.cfg.depth_func = static_cast<Compare>(engine() % 8);
    state.cfg.stencil = (engine() & 3) == 0;
    state.front.func = static_cast<Compare>(engine() % 8);
    state.front.pass = draw::StencilOp::kIncrWrap;
    return state;
  }
  /// Everything that can be seen of a tile and of the lanes of its last program.
  static std::vector<uint32_t> contents(TileFixture& fixture, const FragmentBatch& batch) {
    std::vector<uint32_t> words;
    const auto add = [&](const Lanes& v) {
      for (int lane = 0; lane < kLanes; ++lane) words.push_back(v[lane]);
    };
    add(batch.coverage);
    add(fixture.thread().msf);
    Lanes read[16] = {};
    fixture.read(batch, spec_32(0, true), read);
    for (const Lanes& v : read) add(v);
    for (const uint64_t count : fixture.tile().counts().values) words.push_back(static_cast<uint32_t>(count));
    words.push_back(static_cast<uint32_t>(fixture.tile().take_occlusion_count()));
    return words;
  }
};

TEST_P(BoundPort, DoesWhatThePortDoes) {
  const auto [type, multisample] = GetParam();
  const auto color = static_cast<ColorType>(type);
  const auto bpp = static_cast<uint8_t>(type / 3);
  TileFixture fixtures[2];
  for (TileFixture& fixture : fixtures)
    fixture.configure(TileFixture::one_target(color, bpp, 64, 64, multisample));
  std::mt19937 engine(static_cast<uint32_t>(type) * 2 + multisample);
  uint64_t whole_blocks = 0, split_quads = 0;
  for (int round = 0; round < 1000; ++round) {
    const draw::DrawState state = random_state(engine);
    const bool late = engine() & 1;
    FragmentBatch batch = engine() & 1 ? block_batch(8, 4, multisample) : square_batch(4, 8, multisample);
    if (engine() & 1) batch.coverage &= random_lanes(engine);
    for (LanesF& z : batch.z) z = splat(static_cast<float>(engine() % 9) / 8.0f);
    const Lanes words[2] = {random_lanes(engine), random_lanes(engine)};
    const Lanes msf = engine() & 1 ? splat(multisample ? 0xfu : 1u) : random_lanes(engine) & 0xfu;
    const auto exec = static_cast<LaneMask>(engine() & 1 ? kAllLanes : engine());
    std::vector<uint32_t> seen[2];
    for (int bound = 0; bound < 2; ++bound) {
      TileFixture& fixture = fixtures[bound];
      qpu::Thread& thread = fixture.thread();
      FragmentBatch own = batch;
      qpu::TlbPort& port = fixture.tile().fragment_port(state, own, late);
      thread.msf = msf;
      thread.tlb = &port;
      std::copy_n(words, 2, thread.pending.tlb_words);
      thread.tlb_block = {};
      thread.tlb_block.live = multisample ? LaneMask{0} : nonzero(own.coverage);
      if (uint32_t* const pixels = bound ? fixture.tile().replaced_pixels() : nullptr; pixels && round % 2)
        for (size_t q = 0; q < 4; ++q)
          thread.tlb_block.quads[q] = pixels + (own.y[4 * q] / 2 * 32 + own.x[4 * q] / 2) * 4;
      const qpu::TlbBinding binding = port.binding();
      EXPECT_EQ(binding.drops_depth, !late);
      bound ? binding.write_depth(thread, exec) : port.write_depth(thread, spec_depth(true), splat(0u), exec);
      bound ? binding.write_halves(thread, exec) : port.write_color(thread, spec_f16(0), words, exec);
      const Lanes after = thread.msf;
      whole_blocks += thread.tlb_block.whole;
      split_quads += thread.tlb_block.split_quads;
      fixture.tile().count(thread.tlb_block);
      seen[bound] = contents(fixture, own);
      for (int lane = 0; lane < kLanes; ++lane) seen[bound].push_back(after[lane]);
    }
    ASSERT_EQ(seen[0], seen[1]) << "round " << round;
  }
  EXPECT_EQ(whole_blocks > 5, color == ColorType::k8 && !multisample);
  EXPECT_EQ(split_quads > 100, color == ColorType::k8 && !multisample);
}

INSTANTIATE_TEST_SUITE_P(AllTypes, BoundPort, ::testing::Combine(::testing::Range(0, 9), ::testing::Bool()));

TEST_F(Port, ReplacedPixelsAreTheStoredOnes) {
  Config config = TileFixture::one_target(ColorType::k8, 0);
  config.tile_width = 32;
  config.targets[0].clear = {0x04030201, 0, 0, 0};
  fixture_.configure(config);
  FragmentBatch batch = square_batch(20, 12, false);
  fixture_.tile().fragment_port(fixture_.plain_state(), batch, false);
  uint32_t* const pixels = fixture_.tile().replaced_pixels();
  ASSERT_NE(pixels, nullptr);
  EXPECT_EQ(pixels[0], 0x04030201u);
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    pixels[12 * 32 + 2 * 20 + (lane & 7) + (lane >> 3) * 64] = 100 + lane;
  Lanes read[4];
  fixture_.read(batch, spec_32(0), read);
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    EXPECT_EQ(std::lround(std::bit_cast<float>(uint32_t{read[0][lane]}) * 255), 100 + lane);
}

TEST_F(Port, PixelsAreReplacedByWholeRgba8ColorsAlone) {
  const auto replaced = [&](const Config& config, const draw::DrawState& state) {
    fixture_.configure(config);
    FragmentBatch batch = square_batch(0, 0, config.multisample);
    fixture_.tile().fragment_port(state, batch, false);
    return fixture_.tile().replaced_pixels() != nullptr;
  };
  const draw::DrawState plain;
  const Config config = TileFixture::one_target(ColorType::k8, 0);
  EXPECT_TRUE(replaced(config, plain));
  EXPECT_FALSE(replaced(TileFixture::one_target(ColorType::k16F, 1), plain));
  EXPECT_FALSE(replaced(TileFixture::one_target(ColorType::k8Ui, 0), plain));
  EXPECT_FALSE(replaced(TileFixture::one_target(ColorType::k8, 0, 64, 64, true), plain));
  Config two = config;
  two.num_render_targets = 2;
  two.targets[1] = two.targets[0];
  EXPECT_FALSE(replaced(two, plain));
  Config none = config;
  none.targets[0].used = false;
  EXPECT_FALSE(replaced(none, plain));
  draw::DrawState state;
  state.color_masks[0] = 7;
  EXPECT_FALSE(replaced(config, state));
  state = {};
  state.cfg.blend = true;
  state.blend_enables = 1;
  EXPECT_FALSE(replaced(config, state));
}

/// What a late test takes from the batch a program may not store by itself.
TEST_F(Port, LateTestsTakeTheLanesThatFail) {
  draw::DrawState state;
  state.cfg.z_write = true;
  state.cfg.depth_func = Compare::kLess;
  for (const bool fails : {false, true}) {
    fixture_.configure(TileFixture::one_target(ColorType::k8, 0));
    FragmentBatch batch = square_batch(0, 0, false);
    batch.z[0] = splat(0.5f);
    if (fails) batch.z[0][5] = 1.0f;
    qpu::Thread& thread = fixture_.thread();
    thread.msf = batch.coverage;
    thread.tlb = &fixture_.tile().fragment_port(state, batch, true);
    thread.tlb_block.live = kAllLanes;
    thread.tlb->binding().write_depth(thread, kAllLanes);
    EXPECT_EQ(thread.tlb_block.live, fails ? kAllLanes & ~(1u << 5) : kAllLanes);
    thread.tlb->write_depth(thread, spec_depth(true), splat(0u), 1u << 7);  // which no longer is less
    EXPECT_EQ(thread.tlb_block.live, kAllLanes & ~(1u << 7) & ~(fails ? 1u << 5 : 0u));
  }
}

/// Late tests that look at no depth say so, and what programs then count by themselves is what they count.
TEST_F(Port, TestsThatOnlyCountMayBeLeftOut) {
  fixture_.configure(TileFixture::one_target(ColorType::k8, 0));
  draw::DrawState state;
  FragmentBatch batch = square_batch(0, 0, false);
  qpu::Thread& thread = fixture_.thread();
  for (const bool compares : {false, true}) {
    state.cfg.depth_func = compares ? Compare::kLess : Compare::kAlways;
    for (const bool late : {false, true}) {
      const qpu::TlbBinding binding = fixture_.tile().fragment_port(state, batch, late).binding();
      EXPECT_EQ(binding.counts_depth, late && !compares);
      EXPECT_EQ(binding.drops_depth, !late);
    }
  }
  state.cfg.depth_func = Compare::kAlways;
  perf::Counts& counts = fixture_.tile().counts();
  std::array<uint64_t, 2> passed{}, samples{};
  for (const size_t itself : {0, 1}) {
    thread.tlb = &fixture_.tile().fragment_port(state, batch, true);
    thread.msf = batch.coverage = splat(1u);
    counts = {};
    thread.tlb_block = {};
    itself ? void(thread.tlb_block.tested = 1) : thread.tlb->binding().write_depth(thread, kAllLanes);
    fixture_.tile().count(thread.tlb_block);
    EXPECT_EQ(thread.tlb_block.tested, 0u);
    passed[itself] = counts[perf::kTlbQuadsZStencilPass];
    samples[itself] = fixture_.tile().take_occlusion_count();
  }
  EXPECT_EQ(passed[0], 4u);
  EXPECT_EQ(samples[0], 16u);
  EXPECT_EQ(passed[1], passed[0]);
  EXPECT_EQ(samples[1], samples[0]);
}

TEST_F(Port, StateOfTheLastCallCounts) {
  fixture_.configure(TileFixture::one_target(ColorType::k8, 0));
  draw::DrawState state;
  const Lanes ones[2] = {splat(0x3c003c00u), splat(0x3c003c00u)}, zeros[2] = {};
  Lanes read[4];
  fixture_.write(state, batch_, spec_f16(0), ones);
  state.color_masks[0] = 0xe;  // the same object, changed
  fixture_.write(state, batch_, spec_f16(0), zeros);
  fixture_.read(batch_, spec_32(0), read);
  EXPECT_EQ(std::bit_cast<float>(uint32_t{read[0][0]}), 0.0f);
  EXPECT_EQ(std::bit_cast<float>(uint32_t{read[1][0]}), 1.0f);
}

TEST_F(Port, QuadsWrittenCountOncePerProgramRun) {
  Config config = TileFixture::one_target(ColorType::k8, 0);
  config.num_render_targets = 2;
  config.targets[1] = config.targets[0];
  fixture_.configure(config);
  const Lanes words[2] = {};
  // Quads: whole, one pixel, three pixels, none.
  const uint32_t covered = 0x074f;
  for (uint32_t lane = 0; lane < kLanes; ++lane) batch_.coverage[lane] = (covered >> lane) & 1;
  const draw::DrawState& state = fixture_.plain_state();
  fixture_.thread().msf = batch_.coverage;
  qpu::TlbPort& port = fixture_.tile().fragment_port(state, batch_, false);
  for (int batches = 1; batches <= 2; ++batches) {
    port.write_color(fixture_.thread(), spec_f16(0), words, kAllLanes);
    port.write_color(fixture_.thread(), spec_f16(1), words, kAllLanes);
    EXPECT_EQ(fixture_.tile().counts()[perf::kTlbQuadsWritten], 3u * batches);
    EXPECT_EQ(fixture_.tile().counts()[perf::kTlbPartialQuadsWritten], 2u * batches);
  }
  draw::DrawState masked;
  masked.color_masks[0] = 0xf;
  fixture_.write(masked, batch_, spec_f16(0), words);
  EXPECT_EQ(fixture_.tile().counts()[perf::kTlbQuadsWritten], 6u);
}

/// A batch with two quads at each of two positions is the same as four batches.
class SharedQuads : public ::testing::TestWithParam<std::tuple<bool, bool, bool>> {};

TEST_P(SharedQuads, AreThoseOfBatchesByThemselves) {
  const auto [multisample, blends, late] = GetParam();
  draw::DrawState state;
  state.cfg.depth_func = Compare::kLess;
  state.cfg.z_write = state.cfg.stencil = true;
  state.front.pass = state.back.pass = draw::StencilOp::kIncr;
  state.front.depth_fail = state.back.depth_fail = draw::StencilOp::kDecrWrap;
  state.front.func = state.back.func = Compare::kNotEqual;
  state.front.ref = state.back.ref = 3;
  state.cfg.blend = blends;
  if (blends) {
    state.blend_enables = 1;
    state.blend[0].color_src = draw::BlendFactor::kSrcAlpha;
    state.blend[0].color_dst = draw::BlendFactor::kOneMinusSrcAlpha;
  }
  TileFixture together, apart;
  const Config config = TileFixture::one_target(ColorType::k8, 0, 64, 64, multisample);
  for (TileFixture* fixture : {&together, &apart}) {
    fixture->configure(config);
    fixture->tile().begin_tile(0, 0);
  }
  std::mt19937 random(5);
  const auto draw_batch = [&, late = late](TileFixture& fixture, FragmentBatch batch, const Lanes* words) {
    qpu::Thread& thread = fixture.thread();
    qpu::TlbPort& port = fixture.tile().fragment_port(state, batch, late);
    if (!late) fixture.tile().test();
    thread.msf = batch.coverage;
    if (late) port.write_depth(thread, spec_depth(true), Lanes{}, kAllLanes);
    port.write_color(thread, spec_f16(0), words, kAllLanes);
    return batch.coverage;
  };
  for (int round = 0; round < 200; ++round) {
    FragmentBatch batch = block_batch(0, 0, multisample);
    batch.coverage = splat(0u);
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      batch.x[lane] = (lane >> 3) * 2 + (lane & 1);  // quads 0 and 1, 2 and 3
      for (int s = 0; s < (multisample ? 4 : 1); ++s)
        batch.z[s][lane] = static_cast<float>(random() % 64) / 64;
    }
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      const uint32_t samples = static_cast<uint32_t>(random()) & (multisample ? 0xfu : 1u);
      batch.coverage[lane] |= samples;
      if ((lane & 4) != 0) batch.coverage[lane] &= ~batch.coverage[lane - 4];
    }
    batch.back_facing = static_cast<LaneMask>(random());
    Lanes words[2];
    for (Lanes& word : words)
      for (uint32_t lane = 0; lane < kLanes; ++lane)
        word[lane] = uint32_t{float_to_half(static_cast<float>(random() % 256) / 255)} |
                     uint32_t{float_to_half(static_cast<float>(random() % 256) / 255)} << 16;
    Lanes one_by_one{};
    for (uint32_t q = 0; q < 4; ++q) {
      FragmentBatch one = batch;
      one.coverage = select(static_cast<LaneMask>(0xfu << (4 * q)), batch.coverage, Lanes{});
      one_by_one |= draw_batch(apart, one, words);
    }
    batch.again = true;
    const Lanes survivors = draw_batch(together, batch, words);
    ASSERT_EQ(nonzero(survivors ^ one_by_one), 0) << round;
    Lanes read[2][8];
    const FragmentBatch all = block_batch(0, 0, multisample);
    together.read(all, spec_f16(0, multisample), read[0]);
    apart.read(all, spec_f16(0, multisample), read[1]);
    for (int w = 0; w < (multisample ? 8 : 2); ++w) ASSERT_EQ(nonzero(read[0][w] ^ read[1][w]), 0) << round;
  }
  EXPECT_EQ(together.tile().take_occlusion_count(), apart.tile().take_occlusion_count());
  for (const perf::Counter c :
       {perf::kTlbQuadsWritten, perf::kTlbPartialQuadsWritten, perf::kTlbQuadsZStencilPass,
        perf::kTlbQuadsZStencilFail, perf::kTlbQuadsStencilFail})
    EXPECT_EQ(together.tile().counts()[c], apart.tile().counts()[c]) << c;
}

INSTANTIATE_TEST_SUITE_P(All, SharedQuads,
                         testing::Combine(testing::Bool(), testing::Bool(), testing::Bool()));

}  // namespace
}  // namespace v3d::tlb
