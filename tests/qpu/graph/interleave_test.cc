/// Which sums are done side by side, and that all else stays as it was.

#include "gpu/qpu/graph/interleave.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gpu/qpu/graph/text.h"

namespace v3d::qpu::graph {
namespace {

constexpr int kTerms = 8;

/// Chains one after the other, each of products of words in memory.
Graph chains(int count, int terms) {
  Graph graph;
  const Id all = graph.constant(~0u);
  std::vector<Id> sums;
  for (int c = 0; c < count; ++c) {
    const Id base = graph.make({.op = Op::kPayload, .immediate = static_cast<uint32_t>(c)});
    Id sum = graph.make({.op = Op::kLoad, .immediate = static_cast<uint32_t>(64 * c)});
    for (int n = 0; n < terms; ++n) {
      const Id word = graph.make({.op = Op::kLoadWord,
                                  .operands = {base, kNoNode, kNoNode},
                                  .immediate = static_cast<uint32_t>(4 * n)});
      sum = graph.make({.op = Op::kFloatSum, .operands = {sum, word, kNoNode}});
    }
    sums.push_back(sum);
  }
  for (const Id sum : sums) graph.make({.op = Op::kStoreMemory, .operands = {all, sum, all}});
  return graph;
}

/// Of each sum, whose term it takes: the payload of its word.
std::string order_of_sums(const Graph& graph) {
  std::string order;
  for (const Node& node : graph.nodes())
    if (node.op == Op::kFloatSum)
      order += std::to_string(graph[graph[node.operands[1]].operands[0]].immediate);
  return order;
}

TEST(Interleave, LongChainsGoOnByTurns) {
  EXPECT_EQ(order_of_sums(chains(2, kTerms)), "0000000011111111");
  EXPECT_EQ(order_of_sums(interleaved(chains(2, kTerms), 2)), "0101010101010101");
  EXPECT_EQ(order_of_sums(interleaved(chains(3, kTerms), 2)), "010101010101010122222222");
  EXPECT_EQ(interleaved(chains(3, kTerms), 2).nodes().size(), chains(3, kTerms).nodes().size());
}

TEST(Interleave, OthersStayAsTheyAre) {
  for (const Graph& graph : {chains(1, kTerms), chains(4, kTerms - 1)})
    EXPECT_EQ(to_text(interleaved(graph, 4)), to_text(graph));
}

// What is stored between them others may load.
TEST(Interleave, NothingMovesBeyondAStore) {
  Graph graph = chains(1, kTerms);
  const Id base = graph.constant(64), all = graph.constant(~0u);
  Id sum = graph.constant(0);
  for (uint32_t n = 0; n < kTerms; ++n) {
    const Id word =
        graph.make({.op = Op::kLoadWord, .operands = {base, kNoNode, kNoNode}, .immediate = 4 * n});
    sum = graph.make({.op = Op::kFloatSum, .operands = {sum, word, kNoNode}});
  }
  graph.make({.op = Op::kStoreMemory, .operands = {all, sum, all}});
  EXPECT_EQ(to_text(interleaved(graph, 4)), to_text(graph));
}

}  // namespace
}  // namespace v3d::qpu::graph
