/// Functions for whole blocks of fragments leave in the tile what batches leave there, whatever the program,
/// the primitives and the tests are.
#include "gpu/pse/block_functions.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gpu/qpu/jit/jit.h"
#include "gpu/qpu/run/program.h"
#include "gpu/qpu/run/program_room.h"
#include "tests/pse/scene.h"
#include "tests/qpu/each_target.h"
#include "tests/tmu/test_texture.h"

namespace v3d::pse {
namespace {

/// What a frame leaves in depth, stencil and colour, pixel by pixel, and in its occlusion counters.
using Pixels = std::vector<uint32_t>;

/// One frame of random draws, made of its seed.
class RandomFrame {
 public:
  /// @param lookups  that programs have at most
  RandomFrame(uint32_t seed, qpu::Compiler* compiler, bool counted, uint32_t lookups = 0)
      : random_(seed),
        tile_(pick({8, 16, 64})),
        lookups_(lookups),
        scene(kSize, kSize, tile_, false, compiler) {
    scene.control().set_counted(counted);
    tlb::Config& config = scene.config();
    using tlb::Clamp;
    using tlb::ColorType;
    config.targets[0] = {.used = below(16) != 0,
                         .type = pick({ColorType::k8, ColorType::k8, ColorType::k16F}),
                         .clamp = pick({Clamp::kNone, Clamp::kNorm, Clamp::kPos, Clamp::kPq, Clamp::kHlg}),
                         .bpp = static_cast<uint8_t>(below(2)),
                         .clear = {0x40302010, 0x3c003800}};
    config.depth_type =
        pick({tlb::DepthType::k24, tlb::DepthType::k24, tlb::DepthType::k32F, tlb::DepthType::k16});
    config.clear_z = 0.6f;
    for (int draws = 0; draws < 3; ++draws) add_draw();
    scene.after_tile = [this](tlb::TileBuffer& tile) { read(tile); };
  }

  Pixels render() {
    scene.list_everything();
    scene.prepare();
    scene.render_tiles();
    for (const GpuAddr counter : counters_) pixels_.push_back(scene.test().memory().load<uint32_t>(counter));
    return pixels_;
  }

 private:
  static constexpr uint32_t kSize = 40, kVaryings = 4;
  static constexpr uint8_t kFirst = 10, kRegisters = 12;  // of programs
  static constexpr GpuAddr kNowhere = 0x70000000;         // no memory of the client

  uint32_t below(uint32_t most) { return static_cast<uint32_t>(random_()) % most; }
  template <typename T>
  T pick(std::initializer_list<T> of) {
    return of.begin()[below(static_cast<uint32_t>(of.size()))];
  }
  float number() { return (static_cast<float>(random_()) - 0x1p31f) * 0x1p-31f; }
  /// A float, which may be none that a driver would use.
  uint32_t any_float() {
    constexpr uint32_t kSpecial[] = {0,          0x80000000, 0x7f800000, 0xff800000, 0x7fc00000,
                                     0xffc12345, 0x7f800001, 1,          0x807fffff, 0x7f7fffff};
    if (below(12) == 0) return kSpecial[below(std::size(kSpecial))];
    return std::bit_cast<uint32_t>(number() * pick({1.0f, 1.0f, 300.0f, 0x1p-130f}));
  }

  uint8_t any_register() { return static_cast<uint8_t>(kFirst + below(kRegisters)); }

  bool one_in(uint32_t n) { return below(n) == 0; }

  /// A texture with its sampler: of those for which there is code, mostly.
  GpuAddr add_texture() {
    static constexpr struct {
      uint32_t type, cpp;
    } kFormats[] = {{0, 1},  {2, 2},  {4, 4},  {4, 4},  {4, 4},  {4, 4},
                    {16, 2}, {17, 4}, {18, 8}, {21, 2}, {23, 4}, {24, 4}};
    constexpr uint32_t kRoom = 2 << 20;
    tmu::TextureSpec spec;
    const auto& format = kFormats[below(std::size(kFormats))];
    spec.type = format.type;
    spec.cpp = format.cpp;
    spec.width = 1 + below(one_in(3) ? 300 : 24);
    spec.height = 1 + below(one_in(3) ? 300 : 24);
    spec.rb_swap = one_in(4);
    spec.reverse = one_in(10);
    spec.srgb = spec.type == 4 && one_in(3);
    spec.strictly_uif = one_in(8);
    spec.max_level = one_in(3) ? below(4) : 0;
    spec.base_level = one_in(3) ? below(spec.max_level + 1) : 0;
    if (one_in(4))
      for (uint32_t& channel : spec.swizzle) channel = below(6);
    const GpuAddr at = scene.test().allocate(kRoom, 4096);
    tmu::TestTexture texture(scene.test().memory(), spec, at);
    EXPECT_LE(texture.bytes(), kRoom);
    texture.fill_random(static_cast<uint32_t>(random_()));
    tmu::SamplerSpec sampler;
    sampler.mag_nearest = sampler.min_nearest = one_in(2);
    if (one_in(6)) sampler.min_nearest = !sampler.min_nearest;
    sampler.mip_nearest = one_in(2);
    for (uint32_t& wrap : sampler.wrap) wrap = one_in(6) ? below(5) : below(3);
    sampler.compare = below(8);
    sampler.border_mode = pick({0, 1, 2, 7});
    for (uint32_t& word : sampler.border) word = any_float();
    if (one_in(2)) sampler.max_lod = 0;
    if (one_in(8)) sampler.bias = number();
    texture.set_sampler(sampler);
    return at;
  }

  void write_lookups(ProgramBuilder& program) {
    if (lookups_ == 0) return;
    std::vector<GpuAddr> textures;
    for (uint32_t n = 1 + below(2); n > 0; --n) textures.push_back(add_texture());
    for (uint32_t n = 1 + below(lookups_); n > 0; --n) {
      const GpuAddr at = textures[below(static_cast<uint32_t>(textures.size()))];
      // Now and then a texture of which nothing is there.
      const uint32_t p0 = (one_in(24) ? kNowhere : at) | pick({1, 2, 3, 3, 3}),
                     p1 = (at + 64) | below(2) | below(2) << 2;
      // Mostly with coordinates that change little.
      const auto coordinate = [&] {
        return static_cast<uint8_t>(one_in(3) ? any_register() : kFirst + below(kVaryings));
      };
      const auto s = coordinate(), t = coordinate();
      const auto cond = one_in(8) ? pick({qpu::Cond::kIfa, qpu::Cond::kIfnb}) : qpu::Cond::kNone;
      program.look_up(s, t, p0, p1,
                      static_cast<uint8_t>(kFirst + kVaryings + below(kRegisters - kVaryings - 4)), cond,
                      more());
      if (one_in(2)) write_operations(program, 1 + below(4));
    }
  }

  /// What lookups have beside coordinates.
  ProgramBuilder::LookUpWith more() {
    ProgramBuilder::LookUpWith with;
    if (one_in(4)) with.bias = any_register();
    if (one_in(4)) with.reference = any_register();
    with.tells_level = one_in(6);
    if (one_in(4)) with.p2 |= below(256) << 8;
    return with;
  }

  /// Some lanes have a sample then, or none. @param sample  0 or 1
  void set_samples(ProgramBuilder& program, uint8_t sample) {
    qpu::Instruction flags, set;
    flags.add.op = qpu::Op::kFsub;
    flags.add.magic = false;
    flags.add.waddr = static_cast<uint8_t>(kFirst + kVaryings);
    flags.add.flags = qpu::FlagWrite::kPushn;
    flags.add.a = ProgramBuilder::rf(kFirst);
    flags.add.b = ProgramBuilder::rf(any_register());
    set.add.op = qpu::Op::kSetmsf;
    set.add.magic = true;
    set.add.waddr = qpu::kWaddrNop;
    set.add.cond = qpu::Cond::kIfa;
    set.add.a = {qpu::Operand::Kind::kImmediate, sample};
    program.emit(flags);
    program.emit(set);
  }

  /// A straight line of operations on registers that all have values.
  void write_operations(ProgramBuilder& program, uint32_t count) {
    using qpu::Op;
    for (uint32_t n = 0; n < count; ++n) {
      const Op op = pick(
          {Op::kFadd,   Op::kFsub,  Op::kFmin,  Op::kFmax,   Op::kFmul,   Op::kAdd,   Op::kSub,    Op::kAnd,
           Op::kOr,     Op::kXor,   Op::kShl,   Op::kShr,    Op::kAsr,    Op::kMin,   Op::kMax,    Op::kUmin,
           Op::kVfpack, Op::kVfmul, Op::kVfmin, Op::kFfloor, Op::kFtrunc, Op::kFceil, Op::kFround, Op::kFtoiz,
           Op::kFtoin,  Op::kFtouz, Op::kItof,  Op::kUtof,   Op::kClz,    Op::kFdx,   Op::kFdy,    Op::kRecip,
           Op::kRsqrt,  Op::kExp,   Op::kLog,   Op::kFcmp,   Op::kXcd,    Op::kYcd,   Op::kFxcd,   Op::kFycd,
           Op::kRevf,   Op::kMsf,   Op::kVfla,  Op::kMov,    Op::kFmov,   Op::kSetmsf});
      const qpu::FlagWrite flags = pick(
          {qpu::FlagWrite::kNone, qpu::FlagWrite::kNone, qpu::FlagWrite::kPushz, qpu::FlagWrite::kPushn,
           qpu::FlagWrite::kPushc, qpu::FlagWrite::kAndn, qpu::FlagWrite::kNorz, qpu::FlagWrite::kAndnc});
      const qpu::Cond cond =
          flags != qpu::FlagWrite::kNone
              ? qpu::Cond::kNone
              : pick({qpu::Cond::kNone, qpu::Cond::kIfa, qpu::Cond::kIfnb, qpu::Cond::kIfb});
      qpu::Instruction i;
      const bool of_mul = op == Op::kFmul || op == Op::kVfmul || op == Op::kMov || op == Op::kFmov;
      qpu::AluHalf& half = of_mul ? i.mul : i.add;
      half.op = op;
      half.magic = op == Op::kSetmsf;
      half.waddr = any_register();
      if (half.magic) half.waddr = qpu::kWaddrNop;
      half.cond = cond;
      half.flags = flags;
      if (qpu::info(op).operands > 0) half.a = ProgramBuilder::rf(any_register());
      if (qpu::info(op).operands > 1) half.b = ProgramBuilder::rf(any_register());
      if (qpu::encode(chip::Generation::k71, i)) program.emit(i);  // FMIN and FMAX tell each other by order
    }
  }

  draw::ShaderCode make_program(bool writes_depth) {
    ProgramBuilder program;
    uint8_t to = kFirst;
    for (uint32_t n = 0; n < kVaryings; ++n) program.varying(to++);
    program.add(qpu::Op::kOr, to, ProgramBuilder::rf(3), ProgramBuilder::rf(3));  // W
    ++to;
    while (to < kFirst + kRegisters) program.uniform(to++, any_float());
    if (lookups_ != 0 && one_in(2)) write_operations(program, below(4));
    const bool loses_samples = lookups_ != 0 && one_in(3);
    if (loses_samples) set_samples(program, 0);
    write_lookups(program);
    if (loses_samples) set_samples(program, 1);
    write_operations(program, below(24));
    if (writes_depth) program.store_depth(any_register(), below(8) != 0);
    program.store_half(static_cast<uint8_t>(kFirst + below(kRegisters - 4)));
    draw::ShaderCode code = program.build(&scene.test());
    // Lookups that give no word, as they would then, hang: nothing is said of what is drawn before.
    if (below(16) == 0 && lookups_ == 0) code.uniforms = kNowhere;
    return code;
  }

  void add_draw() {
    std::vector<SceneVertex> vertices;
    const int corners = pick({3, 3, 3, 3, 2, 1});
    const uint32_t primitives = 1 + below(12);
    const double reach = pick({4.0, 12.0, 60.0, 5000.0});
    for (uint32_t n = 0; n < primitives; ++n) {
      const double x = below(kSize), y = below(kSize);
      for (int k = 0; k < corners; ++k) {
        SceneVertex v = {x + number() * reach, y + number() * reach};
        v.z = below(10) == 0 ? std::bit_cast<float>(any_float()) : 0.5f + 0.6f * number();
        v.r = below(10) == 0 ? std::bit_cast<float>(any_float()) : 1.0f + 0.5f * number();
        for (uint32_t i = 0; i < kVaryings; ++i) v.words.push_back(any_float());
        vertices.push_back(v);
      }
    }
    const bool writes_depth = below(3) == 0;
    draw::Draw& draw = scene.add_draw(corners, vertices, make_program(writes_depth), kVaryings);
    scene.record().fs_writes_z = writes_depth;
    scene.record().early_z_off = below(3) != 0;
    draw.state.cfg.depth_func = static_cast<Compare>(below(8));
    draw.state.cfg.z_write = below(2) != 0;
    counters_.push_back(scene.test().put(std::vector<uint32_t>{0}));
    draw.state.occlusion_counter = counters_.back();
    draw.state.clip_width = pick({4096, 31});
    draw.state.clip_left = pick({0, 0, 5});
    draw.state.cfg.depth_offset = below(4) == 0;
    draw.state.offset_factor = number();
    draw.state.offset_units = 1000 * number();
    if (below(2) == 0) add_blending(draw.state);
    if (below(4) == 0) add_tests(draw.state);
    if (below(3) == 0) draw.state.color_masks[0] = static_cast<uint8_t>(below(16));
    if (below(8) == 0) draw.state.sample_mask = static_cast<uint8_t>(below(16));
    scene.record().primitive_id_varying = below(4) == 0;
    scene.record().no_implicit_varyings = below(2) != 0;
    for (uint32_t i = 0; i < kVaryings; ++i) {
      if (below(4) == 0) draw.state.flat.words[i / 24] |= 1u << (i % 24);
      if (below(4) == 0) draw.state.noperspective.words[i / 24] |= 1u << (i % 24);
    }
    for (draw::Primitive& p : draw.primitives) {
      p.back_facing = below(2) != 0;
      if (below(16) == 0) p.provoking = static_cast<uint32_t>(random_());  // a geometry program emitted less
      if (corners != 1 && below(8) == 0) add_polygon(draw, p);
    }
  }

  void add_tests(draw::DrawState& state) {
    const auto op = [&] { return static_cast<draw::StencilOp>(below(8)); };
    const auto byte = [&] { return static_cast<uint8_t>(random_()); };
    state.cfg.stencil = below(2) != 0;
    for (draw::StencilConfig* face : {&state.front, &state.back})
      *face = {byte(), byte(), byte(), static_cast<Compare>(below(8)), op(), op(), op()};
    state.cfg.depth_bounds = below(2) != 0;
    state.depth_bounds_min = 0.5f + 0.5f * number();
    state.depth_bounds_max = 0.5f + 0.5f * number();
    state.cfg.z_clamp = below(2) != 0;
    state.z_min_clip = 0.3f;
    state.z_max_clip = 0.8f;
  }

  void add_blending(draw::DrawState& state) {
    const auto mode = [&] { return static_cast<draw::BlendMode>(below(3) == 0 ? below(9) : below(3)); };
    const auto factor = [&] { return static_cast<draw::BlendFactor>(below(15)); };
    state.cfg.blend = true;
    state.blend_enables = static_cast<uint8_t>(below(16) == 0 ? 0xfe : 0xff);
    state.blend[0] = {mode(), factor(), factor(), mode(), factor(), factor()};
    for (float& constant : state.blend_color) constant = std::bit_cast<float>(any_float());
  }

  /// What clipping left of a primitive, or no clipping would.
  void add_polygon(draw::Draw& draw, draw::Primitive& p) {
    draw::ClippedPolygon polygon{};
    polygon.num_corners = draw.vertices_per_primitive == 2 ? 2 : 3 + below(6);
    for (uint32_t i = 0; i < polygon.num_corners; ++i) {
      draw::ClippedPolygon::Corner& c = polygon.corners[i];
      c.x = static_cast<int32_t>(below(8192)) - 2048;
      c.y = static_cast<int32_t>(below(8192)) - 2048;
      for (float& weight : c.weight) weight = number();
      c.z = number();
      c.w = std::bit_cast<float>(any_float());
    }
    p.clipped = static_cast<int32_t>(draw.clipped.size());
    draw.clipped.push_back(polygon);
  }

  void read(tlb::TileBuffer& tile) {
    for_each_pixel(tile, [this](const tlb::TileBuffer::Sample& sample) {
      pixels_.push_back(sample.depth);
      pixels_.push_back(sample.stencil);
      pixels_.insert(pixels_.end(), sample.colors[0].begin(), sample.colors[0].end());
    });
  }

  std::mt19937 random_;
  const uint32_t tile_, lookups_;
  Pixels pixels_;
  std::vector<GpuAddr> counters_;  // of samples that pass, one a draw

 public:
  Scene scene;
};

class BlockFunctionsOf : public qpu::EachTarget {
 protected:
  uint64_t functions() const { return compiler->statistics().blocks.functions; }
};

INSTANTIATE_TEST_SUITE_P(Targets, BlockFunctionsOf, ::testing::ValuesIn(qpu::jit::kAllTargets),
                         qpu::name_of_target);

TEST_P(BlockFunctionsOf, LeaveWhatBatchesLeave) {
  const uint32_t frames = qpu::scenes_for(GetParam(), 300, 30);
  for (uint32_t seed = 0; seed < frames; ++seed) {
    const Pixels expected = RandomFrame(seed, nullptr, true).render(),
                 drawn = RandomFrame(seed, compiler.get(), false).render();
    ASSERT_EQ(drawn.size(), expected.size());
    for (size_t n = 0; n < drawn.size(); ++n)
      ASSERT_EQ(drawn[n], expected[n]) << "word " << n << " of the frame with seed " << seed;
  }
  EXPECT_GT(functions(), 2 * frames);
}

TEST_P(BlockFunctionsOf, LookUpWhatTheUnitLooksUp) {
  constexpr uint32_t kFrames = 300, kLookups = 4;
  for (uint32_t seed = 0; seed < kFrames; ++seed) {
    const Pixels expected = RandomFrame(seed, nullptr, true, kLookups).render(),
                 drawn = RandomFrame(seed, compiler.get(), false, kLookups).render();
    ASSERT_EQ(drawn.size(), expected.size());
    for (size_t n = 0; n < drawn.size(); ++n)
      ASSERT_EQ(drawn[n], expected[n]) << "word " << n << " of the frame with seed " << seed;
  }
  EXPECT_GT(functions(), kFrames / 2);
}

TEST_P(BlockFunctionsOf, WhoCountsSeesBatches) {
  RandomFrame(1, compiler.get(), true).render();
  EXPECT_EQ(functions(), 0u);
}

/// A program of its own, as a cache has it.
struct OneProgram {
  explicit OneProgram(qpu::Compiler* compiler) : program(chip::Generation::k71, build(), room, compiler) {}
  GpuAddr build() {
    ProgramBuilder builder;
    builder.varying(10).add(qpu::Op::kFadd, 11, ProgramBuilder::rf(10), ProgramBuilder::rf(3));
    builder.add(qpu::Op::kFmax, 12, ProgramBuilder::rf(11), ProgramBuilder::rf(10))
        .add(qpu::Op::kFsub, 13, ProgramBuilder::rf(11), ProgramBuilder::rf(10))
        .store_half(10);
    return builder.build(&job).code;
  }
  const qpu::BlockCode* blocks(const qpu::BlockKey& key) { return program.blocks(job.memory(), true, key); }

  TestJob job;
  std::shared_ptr<qpu::ProgramRoom> room = std::make_shared<qpu::ProgramRoom>(qpu::Program::kMaxTotal);
  qpu::Program program;
};

TEST_P(BlockFunctionsOf, AProgramHasFew) {
  OneProgram of(compiler.get());
  for (int test = 0; test < 8; ++test)
    for (const bool writes : {false, true})
      of.blocks({.depth = qpu::BlockKey::Depth::k24,
                 .test = static_cast<Compare>(test),
                 .writes_depth = writes,
                 .components = 1});
  EXPECT_EQ(functions(), 8u);
  // The first ones stay.
  const qpu::BlockKey first = {.depth = qpu::BlockKey::Depth::k24, .test = Compare::kNever, .components = 1};
  EXPECT_NE(of.blocks(first), nullptr);
  EXPECT_EQ(of.blocks(first), of.blocks(first));
}

TEST_P(BlockFunctionsOf, MemoryIsCountedAndGivenBack) {
  std::shared_ptr<qpu::ProgramRoom> room;
  {
    OneProgram of(compiler.get());
    room = of.room;
    ASSERT_NE(of.blocks({.components = 1}), nullptr);
    EXPECT_GE(room->pieces(), 1u);
  }
  EXPECT_EQ(room->pieces(), 0u);
}

TEST_P(BlockFunctionsOf, AreOfTheWordsThatTheyWereMadeOf) {
  OneProgram of(compiler.get());
  const qpu::BlockCode* const code = of.blocks({.components = 1});
  ASSERT_NE(code, nullptr);
  EXPECT_TRUE(of.program.matches(of.job.memory()));
  const GpuAddr last = of.program.entry() + static_cast<GpuAddr>(code->words().size() - 1) * 8;
  of.job.memory().store<uint32_t>(last, of.job.memory().load<uint32_t>(last) ^ 1u);
  EXPECT_FALSE(of.program.matches(of.job.memory()));
}

}  // namespace
}  // namespace v3d::pse
