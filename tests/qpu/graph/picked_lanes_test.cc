/// Lanes that pick others', and the least of all.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>

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

class PickedLanes : public EachTarget {
 protected:
  void SetUp() override {
    EachTarget::SetUp();
    if (!IsSkipped() && !jit::picks_lanes(GetParam())) GTEST_SKIP() << "lanes pick none there";
    for (int plane = 0; plane < 2; ++plane)
      for (int i = 0; i < kLanes; ++i) planes[plane][i] = static_cast<uint32_t>(random());
  }
  template <typename Make>
  Lanes of_planes(Make make_value) {
    Graph graph;
    const auto plane = [&](uint32_t number) {
      return Value{&graph, graph.append({.op = Op::kLoadTile, .immediate = number})};
    };
    const Value a = plane(0), b = plane(1), result = make_value(a, b);
    graph.append({.op = Op::kStoreTile, .operands = {result.id, kNoNode, kNoNode}, .immediate = kTileColor});
    return run_on_planes(GetParam(), graph, planes[0], planes[1]).value_or(Lanes{});
  }

  std::mt19937 random{5};
  Lanes planes[2];
};
INSTANTIATE_TEST_SUITE_P(Targets, PickedLanes, ::testing::ValuesIn(jit::kAllTargets), name_of_target);

TEST_P(PickedLanes, AreThoseWithTheNumber) {
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < kLanes; ++i) planes[1][i] = static_cast<uint32_t>(random());
    const Lanes got = of_planes([](Value a, Value b) { return picked_lanes(a, b); });
    for (int i = 0; i < kLanes; ++i) ASSERT_EQ(got[i], planes[0][static_cast<int>(planes[1][i] & 15)]);
  }
}

TEST_P(PickedLanes, TheLeastIsOfAllWithoutSign) {
  for (int least = 0; least < kLanes; ++least) {
    for (int i = 0; i < kLanes; ++i)
      planes[0][i] = 0x7ffffff0 + static_cast<uint32_t>(i == least ? 0 : 3 * i + 9);
    const Lanes got = of_planes([](Value a, Value b) { return least_of_lanes(a) ^ (b & 0u); });
    for (int i = 0; i < kLanes; ++i) ASSERT_EQ(got[i], 0x7ffffff0u);
  }
}

}  // namespace
}  // namespace v3d::qpu::graph
