/// Each kind of lookup for which functions for blocks of fragments have code gives the words that the unit
/// gives.

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "gpu/qpu/jit/jit.h"
#include "tests/pse/scene.h"
#include "tests/qpu/each_target.h"
#include "tests/tmu/test_texture.h"

namespace v3d::pse {
namespace {

using Pixels = std::vector<uint32_t>;

struct Format {
  const char* name;
  uint32_t type, cpp;
  bool is_srgb;
};
constexpr Format kFormats[] = {{"r8", 0, 1, false},        {"rg8", 2, 2, false},
                               {"rgba8", 4, 4, false},     {"srgb8", 4, 4, true},
                               {"r16f", 16, 2, false},     {"rg16f", 17, 4, false},
                               {"rgba16f", 18, 8, false},  {"depth16", 21, 2, false},
                               {"depth32f", 23, 4, false}, {"depth24", 24, 4, false}};
constexpr uint32_t kDepth16 = 21, kDepth32F = 23, kDepth24 = 24;

class LookupFrame {
 public:
  LookupFrame(uint32_t seed, const Format& format, qpu::Compiler* compiler)
      : random_(seed),
        format_(format),
        compares_(one_in(2)),
        shape_(static_cast<Shape>(below(kShapes))),
        scene_(kSize, kSize, 16, false, compiler) {
    scene_.control().set_counted(compiler == nullptr);
    scene_.config().targets[0] = {.used = true, .type = tlb::ColorType::k16F, .bpp = 1, .clear = {}};
  }

  Pixels render() {
    ProgramBuilder program = make_program();
    scene_.add_draw(3, vertices(), program, kVaryings);
    Pixels pixels;
    scene_.after_tile = [&](tlb::TileBuffer& tile) {
      for_each_pixel(tile, [&](const tlb::TileBuffer::Sample& sample) {
        pixels.insert(pixels.end(), sample.colors[0].begin(), sample.colors[0].begin() + 2);
      });
    };
    scene_.list_everything();
    scene_.prepare();
    scene_.render_tiles();
    EXPECT_EQ(scene_.error(), "");
    return pixels;
  }

 private:
  static constexpr uint32_t kSize = 24, kVaryings = 3;
  enum class Shape : uint8_t { k2D, k3D, kLayers, kCube, kCubes };
  static constexpr uint32_t kShapes = 5, kMostLayers = 4, kFaces = 6;

  bool is_cube() const { return shape_ == Shape::kCube || shape_ == Shape::kCubes; }
  bool has_layers() const { return shape_ == Shape::kLayers || shape_ == Shape::kCubes; }

  uint32_t below(uint32_t most) { return static_cast<uint32_t>(random_()) % most; }
  bool one_in(uint32_t n) { return below(n) == 0; }
  float number(float most) { return (static_cast<float>(random_()) - 0x1p31f) * 0x1p-31f * most; }

  /// Depths are of few values, so that references meet them.
  void fill(tmu::TestTexture& texture, const tmu::TextureSpec& spec) {
    texture.fill_random(static_cast<uint32_t>(random_()));
    if (!one_in(2) || format_.type < kDepth16) return;
    const Memory memory = scene_.test().memory();
    for (uint32_t l = 0; l <= spec.max_level; ++l)
      for (uint32_t z = 0; z < (spec.three_d ? texture.depth(l) : spec.layers); ++z)
        for (uint32_t y = 0; y < texture.level(l).height; ++y)
          for (uint32_t x = 0; x < texture.level(l).width; ++x)
            store_depth(memory, texture.address(l, x, y, z));
  }
  void store_depth(Memory memory, GpuAddr at) {
    constexpr float kDepths[] = {0, 0.25f, 0.5f, 1};
    const float depth = kDepths[below(4)];
    if (format_.type == kDepth16) return memory.store(at, static_cast<uint16_t>(depth * 65535));
    if (format_.type == kDepth24)
      return memory.store(at, static_cast<uint32_t>(depth * 16777215) << 8 | below(256));
    memory.store(at, depth);
  }

  GpuAddr make_texture() {
    constexpr uint32_t kRoom = 4 << 20;
    tmu::TextureSpec spec;
    spec.type = format_.type;
    spec.cpp = format_.cpp;
    spec.srgb = format_.is_srgb;
    const uint32_t most = shape_ == Shape::k2D ? 200 : 40;
    spec.width = 1 + below(one_in(3) ? most : 12);
    spec.height = is_cube() ? spec.width : 1 + below(one_in(3) ? most : 12);
    spec.three_d = shape_ == Shape::k3D;
    if (spec.three_d) spec.depth = 1 + below(10);
    spec.layers = has_layers() ? 1 + below(kMostLayers) : 1;
    spec.depth_field = spec.three_d ? 0 : spec.layers;
    if (is_cube()) spec.layers *= kFaces;
    spec.strictly_uif = one_in(6);
    spec.max_level = one_in(2) ? below(4) : 0;
    spec.base_level = one_in(3) ? below(spec.max_level + 1) : 0;
    if (one_in(4))
      for (uint32_t& channel : spec.swizzle) channel = below(6);
    const GpuAddr at = scene_.test().allocate(kRoom, 4096);
    tmu::TestTexture texture(scene_.test().memory(), spec, at);
    EXPECT_LE(texture.bytes(), kRoom);
    fill(texture, spec);
    tmu::SamplerSpec sampler;
    // Depths are filtered where they are compared.
    const bool is_nearest = format_.type >= kDepth16 && !compares_;
    sampler.mag_nearest = is_nearest || one_in(2);
    sampler.min_nearest = is_nearest || one_in(2);
    sampler.mip_nearest = one_in(2);
    for (uint32_t& wrap : sampler.wrap) wrap = below(5);
    if (one_in(2)) sampler.max_lod = 0;
    if (one_in(4)) sampler.bias = number(2);
    sampler.anisotropy = one_in(4);
    sampler.max_anisotropy = below(4);
    sampler.compare = below(8);
    constexpr uint32_t kBorders[] = {0, 1, 2, 7};
    sampler.border_mode = kBorders[below(4)];
    for (uint32_t& word : sampler.border) word = std::bit_cast<uint32_t>(number(2));
    texture.set_sampler(sampler);
    return at;
  }

  ProgramBuilder make_program() {
    constexpr uint8_t kS = 10, kT = 11, kBias = 12, kReference = 13, kR = 14, kLayer = 15, kWords = 16,
                      kAll = 15;
    constexpr float kReferences[] = {0, 0.25f, 0.5f, 1, -0.5f, 1.5f};
    const GpuAddr texture = make_texture();
    ProgramBuilder program;
    program.varying(kS).varying(kT).varying(kR);
    program.uniform(kBias, std::bit_cast<uint32_t>(number(3)));
    const float reference = one_in(2) ? kReferences[below(6)] : number(1);
    program.uniform(kReference, std::bit_cast<uint32_t>(reference));
    ProgramBuilder::LookUpWith with;
    if (compares_) with.reference = kReference;
    if (shape_ == Shape::k3D || is_cube()) with.r = kR;
    if (has_layers()) with.layer = kLayer;
    program.uniform(kLayer, std::bit_cast<uint32_t>(number(kMostLayers)));
    if (one_in(3)) with.bias = kBias;
    with.is_cube = is_cube();
    with.tells_level = one_in(4);
    constexpr uint32_t kTellsLevel = 2;
    if (with.is_cube && with.tells_level) with.p2 |= kTellsLevel;
    if (one_in(3) && !with.is_cube) with.p2 |= below(shape_ == Shape::k3D ? 4096 : 256) << 8;
    const bool is_wide = !one_in(4);
    const uint32_t per_pixel = below(2) << 2;
    program.look_up(kS, kT, texture | (is_wide ? kAll : 3), (texture + 64) | per_pixel | is_wide, kWords,
                    qpu::Cond::kNone, with);
    // The words as they are.
    const uint32_t first = is_wide ? below(3) : 0;
    for (uint32_t n = 0; n < 2; ++n) {
      qpu::Instruction store;
      store.add.op = qpu::Op::kOr;
      store.add.waddr = qpu::kWaddrTlb;
      store.add.a = store.add.b = ProgramBuilder::rf(static_cast<uint8_t>(kWords + first + n));
      program.emit(store);
    }
    return program;
  }

  std::vector<SceneVertex> vertices() {
    std::vector<SceneVertex> vertices = {{-2, -2}, {60, -2}, {-2, 60}};
    // Magnified, so that lanes share texels, or not.
    const float reach = one_in(4) ? 0.2f : one_in(2) ? 1.5f : 12;
    for (SceneVertex& v : vertices)
      for (uint32_t n = 0; n < kVaryings; ++n) v.words.push_back(std::bit_cast<uint32_t>(number(reach)));
    return vertices;
  }

  std::mt19937 random_;
  const Format& format_;
  const bool compares_;
  const Shape shape_;
  Scene scene_;
};

using Parameter = std::tuple<qpu::jit::Target, size_t>;
class BlockLookupsOf : public qpu::OnTarget<Parameter> {
 protected:
  void SetUp() override { use(std::get<0>(GetParam())); }
};

INSTANTIATE_TEST_SUITE_P(Targets, BlockLookupsOf,
                         ::testing::Combine(::testing::ValuesIn(qpu::jit::kAllTargets),
                                            ::testing::Range<size_t>(0, std::size(kFormats))),
                         [](const auto& of) {
                           return std::string(qpu::jit::name(std::get<0>(of.param))) + "_" +
                                  kFormats[std::get<1>(of.param)].name;
                         });

TEST_P(BlockLookupsOf, GiveWhatTheUnitGives) {
  const uint32_t frames = qpu::scenes_for(std::get<0>(GetParam()), 160, 12);
  const Format& format = kFormats[std::get<1>(GetParam())];
  for (uint32_t seed = 0; seed < frames; ++seed) {
    const Pixels expected = LookupFrame(seed, format, nullptr).render(),
                 drawn = LookupFrame(seed, format, compiler.get()).render();
    ASSERT_EQ(drawn, expected) << "of the frame with seed " << seed;
  }
  EXPECT_EQ(compiler->statistics().blocks.functions, frames);
}

}  // namespace
}  // namespace v3d::pse
