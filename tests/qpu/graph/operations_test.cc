/// Each operation of blocks of fragments, as code for each target that the host has, gives what evaluate()
/// says, wherever its operands are.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <iterator>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gpu/base/lanes.h"
#include "gpu/qpu/graph/evaluate.h"
#include "gpu/qpu/graph/program_front_end.h"
#include "gpu/qpu/graph/text.h"
#include "gpu/qpu/jit/back_ends.h"
#include "gpu/qpu/jit/code/code_memory.h"
#include "gpu/qpu/jit/jit.h"
#include "gpu/qpu/run/block_code.h"
#include "tests/qpu/each_target.h"
#include "tests/qpu/graph/planes.h"
#include "tests/qpu/special_words.h"

namespace v3d::qpu::graph {
namespace {

enum class Range : uint8_t {
  kAny,
  kPositive,  // numbers
  kOfExp2,    // from -200 to 200
  kMask,
  kHalf,  // 16 bits
};

/// Whether blocks have it, as an operation on values.
bool is_of_lanes(Op op) {
  constexpr Op kFirst = Op::kAdd, kLast = Op::kTruncate;
  if (info(op).immediate == kBits) return false;  // which say of what operands they are
  switch (op) {
    case Op::kSum:  // of V3D 2.1
    case Op::kProduct:
    case Op::kFloatOf:
    case Op::kIntegerOf:
    case Op::kAddNearest:
    case Op::kMulNearest:
    case Op::kMulExact:
    case Op::kFloor:
    case Op::kReciprocal:
    case Op::kTruncate:  // not of what does not fit
      return false;
    default:
      return op >= kFirst && op <= kLast;
  }
}
Range range_of(Op op, int operand) {
  if (op == Op::kChoose && operand == 0) return Range::kMask;
  if (op == Op::kReciprocalRoot || op == Op::kLog2) return Range::kPositive;
  if (op == Op::kDeposit) return Range::kHalf;
  if (op == Op::kFloatQuotient && operand == 0) return Range::kPositive;  // as front ends have it
  return op == Op::kExp2 ? Range::kOfExp2 : Range::kAny;
}

class Random {
 public:
  uint32_t word(Range range) {
    const auto any = static_cast<uint32_t>(random_());
    switch (range) {
      case Range::kPositive:
        return 1 + any % 0x7f7fffff;
      case Range::kOfExp2:
        return std::bit_cast<uint32_t>((static_cast<float>(any) - 0x1p31f) * 0x1.9p-25f);
      case Range::kMask:
        return any & 1 ? ~0u : 0;
      case Range::kHalf:
        return any & 0xffff;
      default:
        return any % 8 < 5 ? kSpecialWords[random_() % std::size(kSpecialWords)]
                           : static_cast<uint32_t>(random_());
    }
  }

 private:
  std::mt19937 random_{77};
};

/// Where an operand is: in lanes, a word of the coefficients, or a constant.
enum class Source : uint8_t { kLanes, kWord, kConstant };

/// The operation on three words of each lane, of which the first two are planes of the tile.
struct Case {
  Op op;
  uint32_t immediate = 0;
  std::array<Source, 2> sources{};
  bool keeps = false;  // its operands are needed once more
};

class Operations : public EachTarget {
 protected:
  uint32_t immediate_of(Op op, int round) {
    switch (op) {
      case Op::kRound:
      case Op::kByte:
      case Op::kSrgbValue:
        return static_cast<uint32_t>(round % 4);
      case Op::kShuffleQuads:
        return random.word(Range::kAny) & 0xff;
      case Op::kDeposit:
        return round == 0 ? 0 : random.word(Range::kAny) & random.word(Range::kAny);
      default:
        return 0;
    }
  }

  void expect_evaluated(const Case& c) {
    const int operands = info(c.op).operands;
    Lanes planes[2];
    uint32_t words[2];
    for (int n = 0; n < 2; ++n) {
      words[n] = random.word(range_of(c.op, n));
      for (int i = 0; i < kLanes; ++i)
        planes[n][i] =
            c.sources[static_cast<size_t>(n)] == Source::kLanes ? random.word(range_of(c.op, n)) : words[n];
    }
    Graph graph;
    Node node = {.op = c.op, .immediate = c.immediate};
    for (int n = 0; n < operands; ++n)
      node.operands[n] = operand(graph, c.sources[static_cast<size_t>(n % 2)], n % 2, words[n % 2]);
    Id result = graph.append(node);
    if (c.keeps && operands > 1)
      result = graph.append({.op = Op::kXor, .operands = {result, node.operands[1], kNoNode}});
    graph.append({.op = Op::kStoreTile, .operands = {result, kNoNode, kNoNode}, .immediate = kTileColor});
    if (c.keeps)
      graph.append(
          {.op = Op::kStoreTile, .operands = {node.operands[0], kNoNode, kNoNode}, .immediate = kTileDepth});

    if (const char* const missing = jit::operation_without_code(GetParam(), graph)) {
      without_code.insert(missing);
      return;
    }
    Lanes wanted;
    for (int i = 0; i < kLanes; ++i) {
      const uint32_t a = planes[0][i], b = planes[1][i];
      wanted[i] = evaluate(node, a, b, a);
      if (c.op == Op::kShuffleQuads)
        wanted[i] = planes[0][(i & 12) + static_cast<int>(c.immediate >> (2 * (i & 3)) & 3)];
      if (c.keeps && operands > 1) wanted[i] ^= b;
    }
    const std::optional<Lanes> run =
        run_on_planes(GetParam(), graph, planes[0], planes[1], {std::begin(words), std::end(words)});
    ASSERT_TRUE(run.has_value());
    const Lanes& got = *run;
    for (int i = 0; i < kLanes; ++i)
      ASSERT_EQ(got[i], wanted[i]) << "lane " << i << " of " << std::hex << planes[0][i] << ", "
                                   << planes[1][i] << '\n'
                                   << to_text(graph);
  }

  Random random;
  std::set<std::string> without_code;

 private:
  static Id operand(Graph& graph, Source source, int n, uint32_t word) {
    if (source == Source::kConstant) return graph.append({.op = Op::kConst, .immediate = word});
    const auto number = static_cast<uint32_t>(n);
    return graph.append({.op = source == Source::kWord ? Op::kVaryingC : Op::kLoadTile, .immediate = number});
  }
};

INSTANTIATE_TEST_SUITE_P(Targets, Operations, ::testing::ValuesIn(jit::kAllTargets), name_of_target);

TEST_P(Operations, GiveWhatTheyAreDefinedToGive) {
  constexpr int kRounds = 12;
  constexpr Source kSources[] = {Source::kLanes, Source::kWord, Source::kConstant};
  for (int n = 0; n < kNumOps; ++n) {
    const Op op = static_cast<Op>(n);
    if (!is_of_lanes(op)) continue;
    for (int round = 0; round < kRounds; ++round)
      for (const Source a : kSources)
        for (const Source b : kSources) {
          if (info(op).operands == 1 && b != Source::kLanes) continue;
          expect_evaluated({op, immediate_of(op, round), {a, b}, round % 2 != 0});
          if (HasFatalFailure()) return;
        }
  }
  EXPECT_EQ(without_code, std::set<std::string>());
}

}  // namespace
}  // namespace v3d::qpu::graph
