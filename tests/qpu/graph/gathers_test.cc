/// What lanes gather from memory, by the ways that hosts have.

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <random>
#include <tuple>

#include "gpu/base/lanes.h"
#include "gpu/qpu/graph/program_front_end.h"
#include "gpu/qpu/graph/value.h"
#include "gpu/qpu/jit/back_ends.h"
#include "gpu/qpu/jit/code/code_memory.h"
#include "gpu/qpu/jit/jit.h"
#include "tests/qpu/each_target.h"
#include "tests/qpu/graph/planes.h"

namespace v3d::qpu::graph {
namespace {

constexpr uint32_t kBytes = 4096, kPair = 8;
/// Where nobody may look.
constexpr uint32_t kNowhere = 0x40000000;

using Parameter = std::tuple<jit::Target, jit::Gathers>;

class Gathers : public OnTarget<Parameter> {
 protected:
  void SetUp() override {
    use(std::get<0>(GetParam()));
    for (uint8_t& byte : memory) byte = static_cast<uint8_t>(random());
  }
  /// At an index.
  uint32_t word_at(uint32_t index, uint32_t offset) const {
    uint32_t word = 0;
    std::memcpy(&word, memory.data() + kBytes / 2 + static_cast<int32_t>(index) + offset, sizeof word);
    return word;
  }
  /// In the lanes of a mask indices of either sign, elsewhere one without memory.
  Lanes indices_in(LaneMask lanes) {
    Lanes indices;
    for (int i = 0; i < kLanes; ++i)
      indices[i] =
          lanes >> i & 1 ? (static_cast<uint32_t>(random()) % kBytes & ~(kPair - 1)) - kBytes / 2 : kNowhere;
    return indices;
  }
  /// Of a graph that has the indices as %0 and a mask of the lanes, and gives what it makes of them.
  template <typename Make>
  Lanes of(const Lanes& indices, LaneMask lanes, Make make_value) {
    Graph graph;
    const auto plane = [&](uint32_t number) {
      return Value{&graph, graph.append({.op = Op::kLoadTile, .immediate = number})};
    };
    const Value index = plane(kTileDepth), wanted = ~equal_words(plane(kTileColor), constant(graph, 0));
    const Value result = make_value(index, wanted);
    graph.append({.op = Op::kStoreTile, .operands = {result.id, kNoNode, kNoNode}, .immediate = kTileColor});
    Lanes mask;
    for (int i = 0; i < kLanes; ++i) mask[i] = lanes >> i & 1;
    Planes<1> planes = {{indices}, {mask}};
    Planes<2> pair = {{indices, indices}, {mask, mask}};
    const auto [target, gathers] = GetParam();
    const uint8_t* const middle = memory.data() + kBytes / 2;
    EXPECT_TRUE(run_on(target, without_dead(graph), planes, {}, jit::Pairs::kWherePays, gathers, middle));
    EXPECT_TRUE(run_on(target, without_dead(graph), pair, {}, jit::Pairs::kAlways, gathers, middle));
    for (const Lanes& of_pair : pair.color)
      for (int i = 0; i < kLanes; ++i) EXPECT_EQ(of_pair[i], planes.color[0][i]) << "lane " << i;
    return planes.color[0];
  }
  static Value gathered(Value index, Value lanes, uint32_t offset) {
    return {index.graph,
            index.graph->make(
                {.op = Op::kGather, .operands = {index.id, lanes.id, kNoNode}, .immediate = offset})};
  }

  static constexpr std::array<LaneMask, 6> kMasks = {0xffff, 0, 0x00ff, 0xff00, 0x8001, 0x7ffe};
  std::mt19937 random{7};
  alignas(64) std::array<uint8_t, kBytes + kPair> memory;
};
INSTANTIATE_TEST_SUITE_P(Targets, Gathers,
                         ::testing::Combine(::testing::ValuesIn(jit::kAllTargets),
                                            ::testing::Values(jit::Gathers::kAvoided, jit::Gathers::kAlways)),
                         [](const auto& of) {
                           return std::string(jit::name(std::get<0>(of.param))) +
                                  (std::get<1>(of.param) == jit::Gathers::kAvoided ? "_avoided" : "");
                         });

TEST_P(Gathers, GiveWordsInTheLanesOfTheMaskAlone) {
  for (const uint32_t offset : {0u, 4u})
    for (const LaneMask lanes : kMasks) {
      const Lanes indices = indices_in(lanes);
      const Lanes got =
          of(indices, lanes, [&](Value index, Value mask) { return gathered(index, mask, offset); });
      for (int i = 0; i < kLanes; ++i)
        ASSERT_EQ(got[i], lanes >> i & 1 ? word_at(indices[i], offset) : 0) << lanes << ", lane " << i;
    }
}

TEST_P(Gathers, GiveWordsOfAllLanesWhereTheMaskIsKnown) {
  const Lanes indices = indices_in(kAllLanes);
  const Lanes all = of(indices, 0, [](Value index, Value) {
    return gathered(index, constant(*index.graph, ~0u), 0) + gathered(index, constant(*index.graph, 0), 0);
  });
  for (int i = 0; i < kLanes; ++i) ASSERT_EQ(all[i], word_at(indices[i], 0)) << "lane " << i;
}

// The words behind those of the node before come with them.
TEST_P(Gathers, GiveTwoWordsSideBySide) {
  for (const LaneMask lanes : kMasks) {
    const Lanes indices = indices_in(lanes);
    const Lanes got = of(indices, lanes, [](Value index, Value mask) {
      const Value first = gathered(index, mask, 0), second = gathered(index, mask, 4);
      return (first * 3u) ^ second;
    });
    for (int i = 0; i < kLanes; ++i) {
      const uint32_t wanted = lanes >> i & 1 ? (word_at(indices[i], 0) * 3) ^ word_at(indices[i], 4) : 0;
      ASSERT_EQ(got[i], wanted) << lanes << ", lane " << i;
    }
  }
}

TEST_P(Gathers, GiveHalvesAsFloats) {
  const Lanes indices = indices_in(kAllLanes);
  const auto half_of_word = [](uint32_t upper) {
    return [upper](Value index, Value mask) {
      const Value word = gathered(index, mask, 0);
      const Value low = float_of_half(word & 0xffffu), high = float_of_half(word >> 16);
      const Value of_low = half_of(low), of_high = half_of(high);
      return upper != 0 ? of_high | (of_low & 0u) : of_low | (of_high & 0u);
    };
  };
  constexpr uint32_t kQuiet = 0x200, kInfinite = 0x7c00;
  for (const uint32_t upper : {0u, 1u}) {
    const Lanes got = of(indices, kAllLanes, half_of_word(upper));
    for (int i = 0; i < kLanes; ++i) {
      const uint32_t half = word_at(indices[i], 0) >> 16 * upper & 0xffff;
      const bool is_nan = (half & 0x7fff) > kInfinite;
      ASSERT_EQ(got[i], is_nan ? half | kQuiet : half) << "lane " << i;
    }
  }
}

TEST_P(Gathers, GiveValuesOfSrgbOfATable) {
  const Lanes indices = indices_in(kAllLanes);
  for (uint32_t number = 0; number < 3; ++number) {
    const Lanes got = of(indices, kAllLanes, [&](Value index, Value mask) {
      return srgb_value(gathered(index, mask, 0), number);
    });
    for (int i = 0; i < kLanes; ++i) {
      const uint32_t byte = word_at(indices[i], 0) >> 8 * number & 0xff;
      ASSERT_EQ(got[i], std::bit_cast<uint32_t>(tmu::values_of_srgb_bytes()[byte])) << "lane " << i;
    }
  }
}

}  // namespace
}  // namespace v3d::qpu::graph
