/// Bytes that are packed four at a time are those of byte_of_channel().

#include "gpu/qpu/graph/packed_bytes.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>

#include "gpu/base/lanes.h"
#include "gpu/qpu/graph/program_front_end.h"
#include "gpu/qpu/graph/text.h"
#include "gpu/qpu/graph/value.h"
#include "gpu/qpu/run/target_lanes.h"
#include "tests/qpu/each_target.h"
#include "tests/qpu/graph/planes.h"
#include "tests/qpu/special_words.h"

namespace v3d::qpu::graph {
namespace {

Value plane(Graph& graph, uint32_t number) {
  return {&graph, graph.append({.op = Op::kLoadTile, .immediate = number})};
}
void store(Value v) {
  v.graph->append({.op = Op::kStoreTile, .operands = {v.id, kNoNode, kNoNode}, .immediate = kTileColor});
}
template <typename W>
W pixel_of(const W& r, const W& g, const W& b, const W& a) {
  return byte_of_channel(r) | byte_of_channel(g) << 8 | byte_of_channel(b) << 16 | byte_of_channel(a) << 24;
}
int count(const Graph& graph, Op op) {
  int result = 0;
  for (const Node& node : graph.nodes()) result += node.op == op;
  return result;
}

TEST(PackingBytes, AreThoseOfPixels) {
  Graph graph;
  const Value a = plane(graph, 0), b = plane(graph, 1);
  store(pixel_of(a, b, a, b));
  const Graph packed = with_packed_bytes(graph);
  EXPECT_EQ(count(packed, Op::kPackBytes), 1);
  EXPECT_EQ(count(packed, Op::kPackWords), 2);
  EXPECT_EQ(count(packed, Op::kMinFloats), 4);
  EXPECT_EQ(count(packed, Op::kMaxFloats) + count(packed, Op::kOr), 0);
}

TEST(PackingBytes, AreNotLimitedWhereTheyCannotBeBeyond) {
  Graph graph;
  const Value channel =
      make(Op::kRoundToHalf, float_product(nearest_float(plane(graph, 0)), constant(graph, 0x33808081)));
  store(pixel_of(channel, channel, channel, constant(graph, 0x3f800000)));
  const Graph packed = with_packed_bytes(graph);
  EXPECT_EQ(count(packed, Op::kPackBytes), 1);
  EXPECT_EQ(count(packed, Op::kMinFloats), 0);
}

TEST(PackingBytes, StayWhereAByteIsAnother) {
  Graph graph;
  const Value a = plane(graph, 0);
  store(byte_of_channel(a) | (a & 0xff0000u));
  const std::string before = to_text(graph);
  EXPECT_EQ(to_text(with_packed_bytes(graph)), before);
}

class PackedBytes : public EachTarget {};
INSTANTIATE_TEST_SUITE_P(Targets, PackedBytes, ::testing::ValuesIn(jit::kAllTargets), name_of_target);

TEST_P(PackedBytes, AreThoseOfEachChannel) {
  for (size_t first = 0; first < std::size(kSpecialWords); ++first)
    for (const bool is_opaque : {false, true}) {
      Graph graph;
      const Value a = plane(graph, 0), b = plane(graph, 1);
      store(pixel_of(a, b, b, is_opaque ? constant(graph, 0x3f800000) : a));
      Lanes planes[2];
      for (int i = 0; i < kLanes; ++i) {
        planes[0][i] = kSpecialWords[(first + static_cast<size_t>(i)) % std::size(kSpecialWords)];
        planes[1][i] =
            0x3b000000 + static_cast<uint32_t>(i) * 0x00654321 + static_cast<uint32_t>(first) * 77777;
      }
      const std::optional<Lanes> got = run_on_planes(GetParam(), graph, planes[0], planes[1]);
      ASSERT_TRUE(got.has_value());
      const Lanes alpha = is_opaque ? splat(0x3f800000u) : planes[0];
      const Lanes wanted = pixel_of(planes[0], planes[1], planes[1], alpha);
      for (int i = 0; i < kLanes; ++i)
        ASSERT_EQ((*got)[i], wanted[i]) << std::hex << planes[0][i] << ", " << planes[1][i];
    }
}

}  // namespace
}  // namespace v3d::qpu::graph
