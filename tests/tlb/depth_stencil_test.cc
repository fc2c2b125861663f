// Depth bounds, stencil and depth tests against one pixel at a time.

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "gpu/tlb/tile.h"
#include "tests/tlb/tile_fixture.h"

namespace v3d::tlb {
namespace {

using draw::StencilOp;

/// The memory format of each internal type that holds exactly its bits.
uint8_t format_of(DepthType type) { return type == DepthType::k32F ? 40 : type == DepthType::k24 ? 43 : 42; }

uint32_t quantized(DepthType type, float z) {
  const double clamped = z > 0 ? (z < 1 ? double{z} : 1.0) : 0.0;
  if (type == DepthType::k32F) return std::bit_cast<uint32_t>(static_cast<float>(clamped));
  const double largest = type == DepthType::k24 ? 0xffffff : 0xffff;
  return static_cast<uint32_t>(std::min(std::floor(clamped * (largest + 1)), largest));
}

template <typename T>
bool compares(Compare func, T a, T b) {
  switch (func) {
    case Compare::kNever:
      return false;
    case Compare::kLess:
      return a < b;
    case Compare::kEqual:
      return a == b;
    case Compare::kLequal:
      return a <= b;
    case Compare::kGreater:
      return a > b;
    case Compare::kNotEqual:
      return a != b;
    case Compare::kGequal:
      return a >= b;
    case Compare::kAlways:
      return true;
  }
  return false;
}

/// Z clamp; NaN gives the lower limit.
float limited(const draw::DrawState& state, float z) {
  if (!state.cfg.z_clamp) return z;
  return z > state.z_min_clip ? std::min(z, state.z_max_clip) : state.z_min_clip;
}

bool depth_compares(DepthType type, Compare func, uint32_t a, uint32_t b) {
  if (type == DepthType::k32F) return compares(func, std::bit_cast<float>(a), std::bit_cast<float>(b));
  return compares(func, a, b);
}

int applied(StencilOp op, int stored, int ref) {
  switch (op) {
    case StencilOp::kZero:
      return 0;
    case StencilOp::kKeep:
      return stored;
    case StencilOp::kReplace:
      return ref;
    case StencilOp::kIncr:
      return std::min(stored + 1, 255);
    case StencilOp::kDecr:
      return std::max(stored - 1, 0);
    case StencilOp::kInvert:
      return 255 - stored;
    case StencilOp::kIncrWrap:
      return (stored + 1) % 256;
    case StencilOp::kDecrWrap:
      return (stored + 255) % 256;
  }
  return -1;
}

/// A frame of one small tile, kept pixel by pixel.
class Model {
 public:
  static constexpr uint32_t kSize = 16;
  struct Sample {
    uint32_t depth;
    int stencil;
  };

  explicit Model(const Config& config) : type_(config.depth_type), samples_(config.multisample ? 4 : 1) {
    for (auto& pixel : pixels_) pixel.fill({quantized(type_, config.clear_z), config.clear_stencil});
  }

  Sample& at(uint32_t x, uint32_t y, uint32_t s) { return pixels_[y * kSize + x][s]; }

  /// @return  the samples that pass
  uint32_t test(const draw::DrawState& state, uint32_t x, uint32_t y, uint32_t coverage, const float* z,
                bool back, uint32_t& stencil_passed) {
    uint32_t passed = 0;
    for (uint32_t s = 0; s < samples_; ++s)
      if ((coverage >> s) & 1) {
        bool stencil = false;
        if (test_sample(state, at(x, y, s), quantized(type_, limited(state, z[s])), back, stencil))
          passed |= 1u << s;
        stencil_passed |= uint32_t{stencil} << s;
      }
    return passed;
  }

 private:
  bool test_sample(const draw::DrawState& state, Sample& sample, uint32_t z, bool back,
                   bool& stencil_passed) {
    if (state.cfg.depth_bounds &&
        (depth_compares(type_, Compare::kLess, sample.depth, quantized(type_, state.depth_bounds_min)) ||
         depth_compares(type_, Compare::kGreater, sample.depth, quantized(type_, state.depth_bounds_max))))
      return false;
    const draw::StencilConfig& face = back ? state.back : state.front;
    const bool depth = depth_compares(type_, state.cfg.depth_func, z, sample.depth);
    stencil_passed = true;
    if (state.cfg.stencil) {
      stencil_passed = compares(face.func, face.ref & face.test_mask, sample.stencil & face.test_mask);
      const StencilOp op = !stencil_passed ? face.fail : depth ? face.pass : face.depth_fail;
      const int updated = applied(op, sample.stencil, face.ref);
      sample.stencil = (sample.stencil & ~face.write_mask) | (updated & face.write_mask);
    }
    if (!depth || !stencil_passed) return false;
    if (state.cfg.z_write) sample.depth = z;
    return true;
  }

  DepthType type_;
  uint32_t samples_;
  std::array<std::array<Sample, 4>, kSize * kSize> pixels_;
};

struct Case {
  DepthType type;
  bool multisample, late;
};

class DepthStencil : public ::testing::TestWithParam<Case> {
 protected:
  uint32_t random(uint32_t below) { return static_cast<uint32_t>(engine_() % below); }

  Config config() const {
    Config config =
        TileFixture::one_target(ColorType::k8, 0, Model::kSize, Model::kSize, GetParam().multisample);
    config.tile_width = config.tile_height = Model::kSize;
    config.depth_type = GetParam().type;
    config.clear_z = 0.625f;
    config.clear_stencil = 100;
    return config;
  }

  float random_depth() {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    constexpr float kSpecial[] = {0.0f,       -0.0f,       1.0f,  0.5f,
                                  0.625f,     0.62500006f, 1e-9f, -0.25f,
                                  1.5f,       0.25f,       0.75f, std::numeric_limits<float>::quiet_NaN(),
                                  -kInfinity, kInfinity};
    if (random(2)) return kSpecial[random(std::size(kSpecial))];
    return static_cast<float>(random(1 << 24)) / (1 << 24);
  }

  draw::StencilConfig random_face() {
    draw::StencilConfig face;
    face.ref = static_cast<uint8_t>(random(3) ? random(256) : random(2) * 255);
    face.test_mask = random(2) ? 0xff : static_cast<uint8_t>(random(256));
    face.write_mask = random(2) ? 0xff : static_cast<uint8_t>(random(256));
    face.func = static_cast<Compare>(random(8));
    face.fail = static_cast<StencilOp>(random(8));
    face.depth_fail = static_cast<StencilOp>(random(8));
    face.pass = static_cast<StencilOp>(random(8));
    return face;
  }

  draw::DrawState random_state() {
    draw::DrawState state;
    state.cfg.depth_func = static_cast<Compare>(random(8));
    state.cfg.z_write = random(4) != 0;
    state.cfg.stencil = random(2);
    state.cfg.depth_bounds = random(4) == 0;
    state.cfg.z_clamp = random(2);
    state.z_min_clip = random(2) ? 0.25f : 0;
    state.z_max_clip = random(2) ? 0.7f : 1;
    state.depth_bounds_min = 0.25f;
    state.depth_bounds_max = 0.75f;
    state.front = random_face();
    state.back = random_face();
    return state;
  }

  /// Four random quads; the last is sometimes dead and then lies where the first one does.
  FragmentBatch random_batch() {
    FragmentBatch batch{};
    constexpr uint32_t kQuads = Model::kSize / 2;
    const uint32_t first = random(kQuads * kQuads), step = 1 + 2 * random(8);
    const bool dead = random(3) == 0;
    batch.is_block = random(3) == 0;
    const uint32_t block_x = random(Model::kSize / 4) * 4, block_y = random(Model::kSize / 4) * 4;
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      const uint32_t quad = dead && lane >= 12 ? first : (first + lane / 4 * step) % (kQuads * kQuads);
      batch.x[lane] = (batch.is_block ? block_x + (lane & 4) / 2 : quad % kQuads * 2) + (lane & 1);
      batch.y[lane] = (batch.is_block ? block_y + (lane & 8) / 4 : quad / kQuads * 2) + ((lane >> 1) & 1);
      const uint32_t coverage = GetParam().multisample ? random(16) : random(2);
      batch.coverage[lane] = dead && lane >= 12 ? 0 : coverage;
      for (LanesF& z : batch.z) z[lane] = random_depth();
    }
    batch.back_facing = static_cast<LaneMask>(random(4) ? random(65536) : 0);
    return batch;
  }

  void expect_same_memory(TileFixture& fixture, Model& model) {
    const uint32_t samples = GetParam().multisample ? 4 : 1, scale = GetParam().multisample ? 2 : 1;
    const uint8_t format = format_of(GetParam().type);
    const uint32_t cpp = format == 42 ? 2 : 4;
    LoadStore depth = TileFixture::image(format == 43 ? 11 : 9, format, tmu::Tiling::kUif, 8);
    depth.decimate = samples == 4 ? 3 : 0;
    LoadStore stencil = TileFixture::image(10, 44, tmu::Tiling::kUif, 8);
    stencil.address += 1 << 20;
    stencil.decimate = depth.decimate;
    fixture.store(depth);
    fixture.store(stencil);
    for (uint32_t y = 0; y < Model::kSize; ++y)
      for (uint32_t x = 0; x < Model::kSize; ++x)
        for (uint32_t s = 0; s < samples; ++s) {
          const uint32_t tx = x * scale + (s & 1) * (scale - 1), ty = y * scale + (s >> 1);
          uint32_t texel = 0;
          fixture.memory().read(depth.address + tmu::texel_offset(tmu::Tiling::kUif, cpp, 8, tx, ty), &texel,
                                cpp);
          const Model::Sample& expected = model.at(x, y, s);
          const uint32_t word =
              format == 43 ? expected.depth << 8 | static_cast<uint32_t>(expected.stencil) : expected.depth;
          ASSERT_EQ(texel, word) << "depth of " << x << ',' << y << " sample " << s;
          ASSERT_EQ(fixture.memory().load<uint8_t>(stencil.address +
                                                   tmu::texel_offset(tmu::Tiling::kUif, 1, 8, tx, ty)),
                    expected.stencil)
              << "stencil of " << x << ',' << y << " sample " << s;
        }
  }

  std::mt19937 engine_{5};
};

TEST_P(DepthStencil, EqualsPixelByPixel) {
  TileFixture fixture;
  fixture.configure(config());
  Model model(config());
  fixture.tile().begin_tile(0, 0);
  uint64_t occlusion = 0;
  perf::Counts counts;

  for (int draw = 0; draw < 300; ++draw) {
    const draw::DrawState state = random_state();
    for (int i = 0; i < 4; ++i) {
      FragmentBatch batch = random_batch();
      const FragmentBatch before = batch;
      Lanes msf = batch.coverage;
      if (GetParam().late) {
        // The program may have discarded samples before.
        for (uint32_t lane = 0; lane < kLanes; ++lane) msf[lane] &= random(16) | random(16);
        fixture.thread().msf = msf;
        const bool invariant = random(2);
        Lanes z = as_uint(before.z[1]);
        qpu::TlbPort& port = fixture.tile().fragment_port(state, batch, true);
        port.write_depth(fixture.thread(), spec_depth(invariant), z, kAllLanes);
        if (!invariant)
          for (LanesF& sample : batch.z) sample = as_float(z);
      } else {
        fixture.test(state, batch);
      }

      uint32_t covered = 0, stencil_lanes = 0, passed_lanes = 0;
      for (uint32_t lane = 0; lane < kLanes; ++lane) {
        const float z[4] = {batch.z[0][lane], batch.z[1][lane], batch.z[2][lane], batch.z[3][lane]};
        uint32_t stencil_passed = 0;
        const uint32_t passed = model.test(state, before.x[lane], before.y[lane], msf[lane], z,
                                           (before.back_facing >> lane) & 1, stencil_passed);
        ASSERT_EQ(batch.coverage[lane], passed) << "lane " << lane << " of draw " << draw;
        if (GetParam().late) {
          ASSERT_EQ(fixture.thread().msf[lane], passed);
        }
        covered |= uint32_t{msf[lane] != 0} << lane;
        stencil_lanes |= uint32_t{stencil_passed != 0} << lane;
        passed_lanes |= uint32_t{passed != 0} << lane;
        occlusion += static_cast<uint64_t>(std::popcount(passed));
      }
      for (uint32_t quad = 0; quad < 16; quad += 4) {
        if (((covered >> quad) & 15) == 0) continue;
        counts[perf::kTlbQuadsStencilFail] += ((stencil_lanes >> quad) & 15) == 0;
        counts[perf::kTlbQuadsZStencilFail] += ((passed_lanes >> quad) & 15) == 0;
        counts[perf::kTlbQuadsZStencilPass] += ((passed_lanes >> quad) & 15) != 0;
      }
    }
  }
  expect_same_memory(fixture, model);
  EXPECT_EQ(fixture.tile().take_occlusion_count(), occlusion);
  EXPECT_EQ(fixture.tile().take_occlusion_count(), 0u);
  for (perf::Counter counter :
       {perf::kTlbQuadsStencilFail, perf::kTlbQuadsZStencilFail, perf::kTlbQuadsZStencilPass})
    EXPECT_EQ(fixture.tile().counts()[counter], counts[counter]) << "counter " << counter;
}

std::string test_name(const ::testing::TestParamInfo<Case>& test) {
  const Case& c = test.param;
  std::string name = c.type == DepthType::k32F ? "D32F" : c.type == DepthType::k24 ? "D24" : "D16";
  return name + (c.multisample ? "_4x" : "_1x") + (c.late ? "_late" : "_early");
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (DepthType type : {DepthType::k32F, DepthType::k24, DepthType::k16})
    for (bool multisample : {false, true})
      for (bool late : {false, true}) cases.push_back({type, multisample, late});
  return cases;
}
INSTANTIATE_TEST_SUITE_P(All, DepthStencil, ::testing::ValuesIn(all_cases()), test_name);

/// The program of a draw whose depth test never passes writes depth in some lanes.
void write_failing_depth(TileFixture* fixture, FragmentBatch* batch, bool late, LaneMask lanes) {
  fixture->configure(TileFixture::one_target(ColorType::k8, 0));
  draw::DrawState state;
  state.cfg.depth_func = Compare::kNever;
  fixture->thread().msf = batch->coverage;
  fixture->tile()
      .fragment_port(state, *batch, late)
      .write_depth(fixture->thread(), spec_depth(true), Lanes{}, lanes);
}

TEST(DepthTest, LateTestLeavesLanesThatDidNotWriteDepth) {
  TileFixture fixture;
  FragmentBatch batch = block_batch(8, 4, false);
  write_failing_depth(&fixture, &batch, true, 0x00f3);
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    EXPECT_EQ(batch.coverage[lane], (0x00f3u >> lane) & 1 ? 0u : 1u);
    EXPECT_EQ(fixture.thread().msf[lane], batch.coverage[lane]);
  }
}

TEST(DepthTest, DepthWriteOfAnEarlyTestedDrawDoesNothing) {
  TileFixture fixture;
  FragmentBatch batch = block_batch(0, 0, false);
  write_failing_depth(&fixture, &batch, false, kAllLanes);
  for (uint32_t lane = 0; lane < kLanes; ++lane) EXPECT_EQ(fixture.thread().msf[lane], 1u);
  EXPECT_EQ(fixture.tile().take_occlusion_count(), 0u);
}

/// Two draws with the same depth must meet "equal", whichever way the depth arrives.
TEST(DepthTest, EarlyAndLateRoundAlike) {
  std::mt19937 random(3);
  for (DepthType type : {DepthType::k32F, DepthType::k24, DepthType::k16}) {
    TileFixture fixture;
    Config config = TileFixture::one_target(ColorType::k8, 0);
    config.depth_type = type;
    fixture.configure(config);
    draw::DrawState write, equal;
    write.cfg.z_write = true;
    equal.cfg.depth_func = Compare::kEqual;
    for (int i = 0; i < 100; ++i) {
      FragmentBatch batch = block_batch(16, 16, false);
      for (uint32_t lane = 0; lane < kLanes; ++lane)
        batch.z[0][lane] = static_cast<float>(random()) / 4294967296.0f;
      FragmentBatch again = batch;
      fixture.test(write, batch);
      fixture.thread().msf = again.coverage;
      const Lanes z = as_uint(again.z[0]);
      fixture.tile()
          .fragment_port(equal, again, true)
          .write_depth(fixture.thread(), spec_depth(false), z, kAllLanes);
      for (uint32_t lane = 0; lane < kLanes; ++lane) ASSERT_EQ(again.coverage[lane], 1u);
    }
  }
}

}  // namespace
/// Offsets of one unit, 2^-n, change the stored depth, also where z * (2^n - 1) is halfway between two
/// numbers.
TEST(StoredDepth, OneUnitIsAtLeastOneStep) {
  for (const auto& [type, unit] :
       {std::pair{DepthType::k24, 0x1p-24f}, std::pair{DepthType::k16, 0x1p-16f}}) {
    for (const float z : {0.5f, 0.25f, 0.75f, 0.3f, 0x1p-10f}) {
      const uint32_t stored = to_stored_depth(type, splat(z))[0];
      EXPECT_EQ(to_stored_depth(type, splat(z + unit))[0], stored + 1);
      EXPECT_EQ(to_stored_depth(type, splat(z - unit))[0], stored - 1);
    }
  }
}

TEST(StoredDepth, SurvivesATripThroughAFloat) {
  for (const DepthType type : {DepthType::k24, DepthType::k16})
    for (uint32_t v = 0; v <= static_cast<uint32_t>(max_depth(type)); v += kLanes) {
      const Lanes stored = v + kLaneIndex;
      const LanesF z = from_stored_depth(type, stored);
      ASSERT_EQ(nonzero(as_uint(to_stored_depth(type, z) != stored)), 0) << v;
      ASSERT_EQ(nonzero(as_uint(z > 1.0f)), 0) << v;
    }
  EXPECT_EQ(from_stored_depth(DepthType::k24, splat(0xffffffu))[0], 1.0f);
  EXPECT_EQ(from_stored_depth(DepthType::k16, splat(0xffffu))[0], 1.0f);
}

TEST(StoredDepth, FloatsAreLimited) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const auto& [z, stored] :
       {std::pair{-0.5f, 0.0f}, {0.25f, 0.25f}, {1.0f, 1.0f}, {1.5f, 1.0f}, {nan, 0.0f}})
    EXPECT_EQ(as_float(to_stored_depth(DepthType::k32F, splat(z)))[0], stored);
}

}  // namespace v3d::tlb
