/// Colours that compiled code stores by itself, against the tile buffer's conversion, and depths that it only
/// counts.

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
  void write_depth(Thread&, const TlbSpec&, Lanes, LaneMask) override { ++depths; }
  void read_color(Thread&, const TlbSpec&, Lanes*) override {}
  std::vector<std::array<Lanes, 2>> colors;
  std::vector<LaneMask> lanes;
  int depths = 0;
};

class Pixels : public Twins {
 protected:
  Pixels() : Twins(jit::Target::kAvx512) {}

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
    load(assemble(generation, program));
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
    pixels.fill(kUntouched);
    TlbBlock& block = compiled.t().tlb_block;
    block = {};
    block.live = live;
    compiled.t().tlb_binding.counts_depth = counts_depth;
    for (size_t q = 0; q < 4; ++q) block.quads[q] = pixels.data() + 4 * order[q];
    run_both();
  }
  /// @param lanes  that are stored
  void expect_stored(LaneMask lanes = kAllLanes) {
    ASSERT_EQ(records[0].colors.size(), 1u);
    EXPECT_TRUE(records[1].colors.empty());
    uint64_t some = 0, split = 0;
    for (size_t q = 0; q < 4; ++q) {
      const uint32_t quad = (lanes >> (4 * q)) & 15u;
      some += quad != 0;
      split += quad != 0 && quad != 15;
      for (size_t n = 0; n < 4; ++n) {
        const int lane = static_cast<int>(4 * q + n);
        ASSERT_EQ(pixels[4 * order[q] + n],
                  (lanes >> lane) & 1 ? rgba8(records[0].colors[0], lane) : kUntouched)
            << lane;
      }
    }
    const TlbBlock& block = compiled.t().tlb_block;
    EXPECT_EQ(block.whole, lanes == kAllLanes);
    EXPECT_EQ(block.some_quads, lanes == kAllLanes ? 0 : some);
    EXPECT_EQ(block.split_quads, split);
  }
  void expect_left_to_port() {
    EXPECT_EQ(compiled.t().tlb_block.whole + compiled.t().tlb_block.some_quads, 0u);
    EXPECT_EQ(records[0].lanes, records[1].lanes);
    ASSERT_EQ(records[0].colors.size(), records[1].colors.size());
    EXPECT_EQ(std::memcmp(records[0].colors.data(), records[1].colors.data(),
                          records[0].colors.size() * sizeof(records[0].colors[0])),
              0);
    for (const uint32_t pixel : pixels) EXPECT_EQ(pixel, kUntouched);
  }

  static I color(int from) { return I().add(Op::kOr, to(kWaddrTlb), rf(from), rf(from)); }
  static I depth(int from) { return I().add(Op::kOr, to(kWaddrTlbu), rf(from), rf(from)); }
  std::vector<Instruction> two_words() {
    std::vector<Instruction> program = {color(1), color(2)};
    append_end(program);
    return program;
  }

  static constexpr uint32_t kUntouched = 0x55555555;
  LaneMask live = kAllLanes;
  bool counts_depth = false;
  std::array<size_t, 4> order = {0, 1, 2, 3};  // of the quads
  std::array<ColorRecord, 2> records;
  alignas(64) std::array<uint32_t, kLanes> pixels{};
  std::mt19937_64 random{5};
};

TEST_F(Pixels, AreStored) {
  for (int round = 0; round < 500; ++round) {
    run(two_words(), v3d::splat(round % 2 ? 1u : 0xfu));
    expect_stored();
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
}

TEST_F(Pixels, AreStoredBehindDepthThatNobodyWants) {
  std::vector<Instruction> program = {depth(3), color(1), color(2)};
  append_end(program);
  both([](Twin& twin) { twin.memory().store<uint32_t>(Twin::kUniforms, 0xffffff84); });
  run(program, v3d::splat(1u));
  expect_stored();
}

TEST_F(Pixels, WithAnotherSpecifierAreLeftToThePort) {
  std::vector<Instruction> program = {depth(1), color(2)};
  append_end(program);
  both([](Twin& twin) { twin.memory().store<uint32_t>(Twin::kUniforms, 0xfffffff7); });  // target 1
  run(program, v3d::splat(1u));
  expect_left_to_port();
  EXPECT_EQ(records[0].colors.size(), 1u);
}

TEST_F(Pixels, OfDeadLanesStay) {
  order = {2, 0, 3, 1};
  for (int round = 0; round < 500; ++round) {
    const auto any_lanes = [this] { return static_cast<LaneMask>(random() | random() | random()); };
    const LaneMask in_mask = any_lanes();
    live = round % 2 ? kAllLanes : any_lanes();
    Lanes msf;
    for (int lane = 0; lane < kLanes; ++lane) msf[lane] = (in_mask >> lane) & 1 ? 1 : 0xe * (random() & 1);
    run(two_words(), msf);
    expect_stored(in_mask & live);
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
  live = 0;
  run(two_words(), v3d::splat(1u));
  expect_stored(0);
}

TEST_F(Pixels, ThatOnlyCountAreTested) {
  std::vector<Instruction> program = {depth(3), color(1), color(2)};
  append_end(program);
  both([](Twin& twin) { twin.memory().store<uint32_t>(Twin::kUniforms, 0xffffff84); });
  const auto tested = [&](bool counts, LaneMask with_coverage, Lanes msf) {
    live = with_coverage;
    counts_depth = counts;
    for (ColorRecord& record : records) record.depths = 0;
    run(program, msf);
    EXPECT_EQ(records[0].depths, 1);
    EXPECT_EQ(records[1].depths + static_cast<int>(compiled.t().tlb_block.tested), 1);
    return compiled.t().tlb_block.tested == 1;
  };
  Lanes msf = v3d::splat(1u);
  EXPECT_TRUE(tested(true, kAllLanes, msf));
  EXPECT_FALSE(tested(false, kAllLanes, msf));
  EXPECT_FALSE(tested(true, 0x7fff, msf));
  msf[3] = 3;
  EXPECT_FALSE(tested(true, kAllLanes, msf));
  msf[3] = 0;
  EXPECT_FALSE(tested(true, kAllLanes, msf));
}

TEST_F(Pixels, WithConditionsAreLeftToThePort) {
  for (int conditional = 1; conditional < 4; ++conditional) {
    std::vector<Instruction> program;
    for (int n = 1; n <= 2; ++n) program.push_back(conditional & n ? color(n).add_if(Cond::kIfa) : color(n));
    append_end(program);
    run(program, v3d::splat(1u));
    expect_left_to_port();
    EXPECT_EQ(records[0].colors.size(), 1u);
  }
}

TEST_F(Pixels, WithoutABlockAreLeftToThePort) {
  run(two_words(), v3d::splat(1u));
  const std::array<Lanes, 2> values = records[0].colors[0];
  both([&](Twin& twin) { twin.start(); });  // which forgets the block
  pixels.fill(kUntouched);
  compiled.t().tlb_block = {};
  for (ColorRecord& record : records) record = {};
  both([&](Twin& twin) { twin.t().msf = v3d::splat(1u); });
  run_both();
  expect_left_to_port();
  EXPECT_EQ(records[1].colors.size(), 1u);
  EXPECT_EQ(records[1].colors[0][0][3], values[0][3]);
}

}  // namespace
}  // namespace v3d::qpu
