/// Colours of whole batches that compiled code stores by itself, against the tile buffer's conversion.

#include <array>
#include <bit>
#include <random>
#include <vector>

#include "gpu/base/float16.h"
#include "gpu/tlb/color_write.h"
#include "tests/qpu/assembly.h"
#include "tests/qpu/jit/twins.h"

namespace v3d::qpu {
namespace {

using namespace assembly;

/// Notes what comes through the port.
class ColorRecord : public TlbPort {
 public:
  void write_color(Thread&, const TlbSpec& spec, const Lanes* words, LaneMask exec) override {
    colors.push_back({words[0], words[1]});
    lanes.push_back(exec);
    EXPECT_EQ(spec.words, 2);
  }
  void write_depth(Thread&, const TlbSpec&, Lanes, LaneMask) override {}
  void read_color(Thread&, const TlbSpec&, Lanes*) override {}
  std::vector<std::array<Lanes, 2>> colors;
  std::vector<LaneMask> lanes;
};

class WholeBatches : public Twins {
 protected:
  WholeBatches() : Twins(jit::Target::kAvx512) {}

  Lanes random_halves() {
    Lanes v;
    for (int lane = 0; lane < kLanes; ++lane) {
      const auto bits = static_cast<uint32_t>(random());
      v[lane] = random() % 4 ? bits & 0x3fff3fffu : bits;
    }
    return v;
  }
  static uint32_t rgba8(const std::array<Lanes, 2>& words, int lane) {
    uint32_t pixel = 0;
    for (uint32_t c = 0; c < 4; ++c) {
      const auto half = static_cast<uint16_t>(words[c / 2][lane] >> (16 * (c % 2)));
      pixel |= tlb::to_unorm8(v3d::splat(half_to_float(half)))[0] << (8 * c);
    }
    return pixel;
  }
  /// Runs a program in both ways, the compiled one with a block.
  void run(const std::vector<Instruction>& program, Lanes msf) {
    load(assemble(version, program));
    const std::array<Lanes, 2> values = {random_halves(), random_halves()};
    int n = 0;
    both([&](Twin& twin) {
      twin.t().reset();
      twin.start();
      twin.t().rf[1] = values[0];
      twin.t().rf[2] = values[1];
      twin.t().msf = msf;
      twin.t().final_section = true;
      twin.t().flag_a = 0x0ff0;
      records[n] = {};
      twin.t().tlb = &records[n++];
    });
    pixels.fill(0x55555555);
    compiled.t().tlb_block = {pixels.data(), pixels.data() + 8, 0};
    run_both();
  }
  void expect_stored() {
    ASSERT_EQ(records[0].colors.size(), 1u);
    EXPECT_EQ(compiled.t().tlb_block.written, 1u);
    EXPECT_TRUE(records[1].colors.empty());
    for (int lane = 0; lane < kLanes; ++lane)
      ASSERT_EQ(pixels[static_cast<size_t>(lane)], rgba8(records[0].colors[0], lane)) << lane;
  }
  void expect_left_to_port() {
    EXPECT_EQ(compiled.t().tlb_block.written, 0u);
    EXPECT_EQ(records[0].lanes, records[1].lanes);
    ASSERT_EQ(records[0].colors.size(), records[1].colors.size());
    EXPECT_EQ(std::memcmp(records[0].colors.data(), records[1].colors.data(),
                          records[0].colors.size() * sizeof(records[0].colors[0])),
              0);
    for (const uint32_t pixel : pixels) EXPECT_EQ(pixel, 0x55555555u);
  }

  static I color(int from) { return I().add(Op::kOr, to(kWaddrTlb), rf(from), rf(from)); }
  static I depth(int from) { return I().add(Op::kOr, to(kWaddrTlbu), rf(from), rf(from)); }
  std::vector<Instruction> two_words() {
    std::vector<Instruction> program = {color(1), color(2)};
    append_end(program);
    return program;
  }

  std::array<ColorRecord, 2> records;
  alignas(64) std::array<uint32_t, kLanes> pixels{};
  std::mt19937_64 random{5};
};

TEST_F(WholeBatches, AreStored) {
  for (int round = 0; round < 500; ++round) {
    run(two_words(), v3d::splat(round % 2 ? 1u : 0xfu));
    expect_stored();
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
}

TEST_F(WholeBatches, AreStoredBehindDepthThatNobodyWants) {
  std::vector<Instruction> program = {depth(3), color(1), color(2)};
  append_end(program);
  both([](Twin& twin) { twin.memory().store<uint32_t>(Twin::kUniforms, 0xffffff84); });
  run(program, v3d::splat(1u));
  expect_stored();
}

TEST_F(WholeBatches, WithAnotherSpecifierAreLeftToThePort) {
  std::vector<Instruction> program = {depth(1), color(2)};
  append_end(program);
  both([](Twin& twin) { twin.memory().store<uint32_t>(Twin::kUniforms, 0xfffffff7); });  // target 1
  run(program, v3d::splat(1u));
  expect_left_to_port();
  EXPECT_EQ(records[0].colors.size(), 1u);
}

TEST_F(WholeBatches, WithDeadLanesAreLeftToThePort) {
  for (int lane = 0; lane < kLanes; ++lane) {
    Lanes msf = v3d::splat(1u);
    msf[lane] = lane % 2 ? 0 : 0xe;
    run(two_words(), msf);
    expect_left_to_port();
    EXPECT_EQ(records[0].colors.size(), 1u);
  }
}

TEST_F(WholeBatches, WithConditionsAreLeftToThePort) {
  for (int conditional = 1; conditional < 4; ++conditional) {
    std::vector<Instruction> program;
    for (int n = 1; n <= 2; ++n) program.push_back(conditional & n ? color(n).add_if(Cond::kIfa) : color(n));
    append_end(program);
    run(program, v3d::splat(1u));
    expect_left_to_port();
    EXPECT_EQ(records[0].colors.size(), 1u);
  }
}

TEST_F(WholeBatches, WithoutABlockAreLeftToThePort) {
  run(two_words(), v3d::splat(1u));
  const std::array<Lanes, 2> values = records[0].colors[0];
  both([&](Twin& twin) { twin.start(); });  // which forgets the block
  pixels.fill(0x55555555);
  compiled.t().tlb_block.written = 0;
  for (ColorRecord& record : records) record = {};
  both([&](Twin& twin) { twin.t().msf = v3d::splat(1u); });
  run_both();
  expect_left_to_port();
  EXPECT_EQ(records[1].colors.size(), 1u);
  EXPECT_EQ(records[1].colors[0][0][3], values[0][3]);
}

}  // namespace
}  // namespace v3d::qpu
