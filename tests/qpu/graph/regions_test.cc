/// What is done only where a lane wants it: registers and values are the same behind it.

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu/base/lanes.h"
#include "gpu/qpu/graph/program_front_end.h"
#include "gpu/qpu/graph/text.h"
#include "gpu/qpu/graph/value.h"
#include "gpu/qpu/jit/back_ends.h"
#include "gpu/qpu/jit/code/code_memory.h"
#include "gpu/qpu/jit/jit.h"
#include "gpu/qpu/run/batch_code.h"
#include "gpu/qpu/run/block_code.h"
#include "tests/qpu/each_target.h"
#include "tests/qpu/graph/planes.h"

namespace v3d::qpu::graph {
namespace {

Graph graph_of(std::string_view text) {
  Parsed parsed = parse(text);
  EXPECT_EQ(parsed.error, "");
  return std::move(parsed.graph);
}

TEST(Regions, KeepTheirNodesForThemselves) {
  constexpr std::string_view kText =
      "%0 = load 0\n%1 = load 64\n%2 = above %0 %1\nkeep %0 0\nwhen %2\n%5 = add %0 %1\nkeep %5 0\nresume\n"
      "%8 = kept 0\n%9 = add %0 %1\n%10 = xor %8 %9\nstore %10 0\n";
  EXPECT_EQ(to_text(without_dead(simplified(graph_of(kText)))), kText);
}

TEST(Regions, KnowWhatWasBeforeThem) {
  EXPECT_EQ(
      to_text(simplified(graph_of("%0 = load 0\n%1 = add %0 %0\nwhen %0\n%3 = add %0 %0\nkeep %3 1\nresume\n"
                                  "%6 = add %0 %0\n%7 = kept 1\n%8 = xor %6 %7\nstore %8 0\n"))),
      "%0 = load 0\n%1 = add %0 %0\nwhen %0\nkeep %1 1\nresume\n"
      "%5 = kept 1\n%6 = xor %1 %5\nstore %6 0\n");
}

TEST(Regions, GoWhereNobodyWantsWhatTheyKeep) {
  EXPECT_EQ(to_text(without_dead(
                graph_of("%0 = load 0\n%1 = load 64\n%2 = above %0 %1\nkeep %0 0\nkeep %0 1\nwhen %2\n"
                         "%6 = add %0 %1\nkeep %6 0\n%8 = sub %0 %1\nkeep %8 1\nresume\n%11 = kept 1\n"
                         "%12 = kept 0\nstore %11 0\n"))),
            "%0 = load 0\n%1 = load 64\n%2 = above %0 %1\nkeep %0 1\nwhen %2\n%5 = sub %0 %1\nkeep %5 1\n"
            "resume\n%8 = kept 1\nstore %8 0\n");
  EXPECT_EQ(to_text(without_dead(
                graph_of("%0 = load 0\n%1 = above %0 %0\nkeep %0 0\nwhen %1\n%4 = add %0 %0\nkeep %4 0\n"
                         "resume\n%7 = kept 0\nstore %0 0\n"))),
            "%0 = load 0\nstore %0 0\n");
}

TEST(Regions, HoldWhatWaitsForRoundingOnTheirSide) {
  EXPECT_EQ(to_text(by_rounding(graph_of("%0 = load 0\n%1 = reciprocal %0\nwhen %0\n%3 = reciprocal %1\n"
                                         "keep %0 0\nresume\n%6 = add %1 %1\nstore %6 0\n"))),
            "%0 = load 0\n%1 = reciprocal %0\nwhen %0\nkeep %0 0\n%4 = reciprocal %1\nresume\n"
            "%6 = add %1 %1\nstore %6 0\n");
}

TEST(Regions, KeepForTheNextTime) {
  constexpr std::string_view kText =
      "%0 = load 0\nkeep %0 0\nwhen %0\n%3 = kept 0\n%4 = shr %3 %3\nkeep %4 0\nagain %4\nresume\n"
      "%8 = load 64\nstore %8 0\n";
  EXPECT_EQ(to_text(without_dead(graph_of(kText))), kText);
  // Of two that are kept, one.
  EXPECT_EQ(to_text(without_dead(
                graph_of("%0 = load 0\nkeep %0 0\nkeep %0 1\nkeep %0 2\nwhen %0\n%5 = kept 0\n%6 = kept 1\n"
                         "%7 = kept 2\n%8 = add %5 %6\nkeep %8 0\n%10 = add %6 %6\nkeep %10 1\n"
                         "%12 = add %7 %7\nkeep %12 2\nagain %10\nresume\n%16 = kept 0\nstore %16 0\n"))),
            "%0 = load 0\nkeep %0 0\nkeep %0 1\nwhen %0\n%4 = kept 0\n%5 = kept 1\n%6 = add %4 %5\n"
            "keep %6 0\n%8 = add %5 %5\nkeep %8 1\nagain %8\nresume\n%12 = kept 0\nstore %12 0\n");
}

class RegionsOf : public EachTarget {
 protected:
  static std::optional<Lanes> run_block(const Graph& graph, const Lanes& depth, const Lanes& color) {
    return run_on_planes(GetParam(), graph, depth, color);
  }
  /// @return  what it stores from the middle of memory on
  static std::optional<Lanes> run_batch(const Graph& graph, const Lanes& first, const Lanes& second) {
    const std::vector<uint8_t> bytes = jit::make_batch_code(GetParam(), graph);
    const auto code = bytes.empty() ? std::nullopt : jit::CodeMemory::copy_of(bytes);
    if (!code) return {};
    Lanes stored{};
    BatchRun run;
    run.payload[0] = first;
    run.payload[1] = second;
    run.lanes = 0xffff;
    run.middle_of_memory = reinterpret_cast<const uint8_t*>(&stored);
    EXPECT_EQ(std::bit_cast<BatchFn>(code->begin())(&run), 1u);
    return stored;
  }

  template <typename Source, typename Store, typename RunGraph>
  static void leave_all_else_as_it_was(const Source& source, const Store& store, const RunGraph& run);
};

INSTANTIATE_TEST_SUITE_P(Targets, RegionsOf, ::testing::ValuesIn(jit::kAllTargets), name_of_target);

/// More values than registers are needed before, in and behind a region, and another that is repeated.
/// @param source  (graph, number) gives one of two values
/// @param store   (graph, value)
template <typename Source, typename Store, typename RunGraph>
void RegionsOf::leave_all_else_as_it_was(const Source& source, const Store& store, const RunGraph& run) {
  constexpr uint32_t kValues = 40, kLimit = 1u << 20, kTimes = 2;
  std::mt19937 random(5);
  for (int round = 0; round < 12; ++round) {
    Graph graph;
    const auto effect = [&](Op op, Value v, uint32_t immediate) {
      graph.make({.op = op, .operands = {v.id, kNoNode, kNoNode}, .immediate = immediate});
    };
    const auto kept = [&](uint32_t n) {
      return Value{&graph, graph.make({.op = Op::kKept, .immediate = n})};
    };
    const Value a = source(graph, 0), b = source(graph, 1);
    std::vector<Value> values;
    for (uint32_t n = 0; n < kValues; ++n) values.push_back(a * (2 * n + 3) + b);
    Value sum = a;
    for (uint32_t region = 0; region < 2; ++region) {
      effect(Op::kKeep, sum, region);
      effect(Op::kKeep, constant(graph, 0), kTimes);
      const Value wants = above(a, constant(graph, kLimit << region));
      effect(Op::kWhen, wants, 0);
      const Value time = kept(kTimes), before = kept(region);
      Value in_region = region == 0 ? b : before;
      for (const Value& v : values) in_region = (in_region ^ v) * 5u;
      const Value takes_part = region == 0 ? wants : wants & above(a >> 21, time);
      effect(Op::kKeep, choose(takes_part, in_region, before), region);
      if (region == 1) {
        effect(Op::kKeep, time + 1u, kTimes);
        effect(Op::kAgain, wants & above(a >> 21, time + 1u), 0);
      }
      graph.make({.op = Op::kResume});
      sum = kept(region);
      for (size_t n = 0; n < values.size(); n += region + 2) sum = (sum ^ values[n]) * 3u;
    }
    store(graph, sum);
    graph = without_dead(graph);

    Lanes depth, color, wanted;
    for (int i = 0; i < kLanes; ++i) {
      // Of a third of the rounds no lane wants the regions, of a third some do.
      depth[i] = static_cast<uint32_t>(random()) % (round % 3 == 0 ? kLimit : kLimit * 16);
      if (round % 3 == 2) depth[i] += kLimit * 2 + 1;
      color[i] = static_cast<uint32_t>(random());
      const auto value = [&](uint32_t n) { return depth[i] * (2 * n + 3) + color[i]; };
      uint32_t s = depth[i];
      for (uint32_t region = 0; region < 2; ++region) {
        if (depth[i] > kLimit << region) {
          if (region == 0) s = color[i];
          for (uint32_t time = 0; time < (region == 0 ? 1 : depth[i] >> 21); ++time)
            for (uint32_t n = 0; n < kValues; ++n) s = (s ^ value(n)) * 5;
        }
        for (uint32_t n = 0; n < kValues; n += region + 2) s = (s ^ value(n)) * 3;
      }
      wanted[i] = s;
    }
    const std::optional<Lanes> got = run(graph, depth, color);
    ASSERT_TRUE(got.has_value());
    for (int i = 0; i < kLanes; ++i) ASSERT_EQ((*got)[i], wanted[i]) << "lane " << i << " of round " << round;
  }
}

TEST_P(RegionsOf, LeaveAllElseOfBlocksAsItWas) {
  const auto tile = [](Graph& graph, uint32_t number) {
    return Value{&graph,
                 graph.make({.op = Op::kLoadTile, .immediate = number == 0 ? kTileDepth : kTileColor})};
  };
  const auto store = [](Graph& graph, Value v) {
    graph.make({.op = Op::kStoreTile, .operands = {v.id, kNoNode, kNoNode}, .immediate = kTileColor});
  };
  leave_all_else_as_it_was(tile, store, run_block);
}

TEST_P(RegionsOf, LeaveAllElseOfBatchesAsItWas) {
  if (GetParam() == jit::Target::kNeon) GTEST_SKIP() << "it has no functions of batches of dispatches";
  const auto payload = [](Graph& graph, uint32_t number) {
    return Value{&graph, graph.make({.op = Op::kPayload, .immediate = number})};
  };
  const auto store = [](Graph& graph, Value v) {
    const Value place = Value{&graph, graph.make({.op = Op::kLaneIndex})} << 2;
    graph.make({.op = Op::kStoreMemory, .operands = {place.id, v.id, constant(graph, ~0u).id}});
  };
  leave_all_else_as_it_was(payload, store, run_batch);
}

}  // namespace
}  // namespace v3d::qpu::graph
