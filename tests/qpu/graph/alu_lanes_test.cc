/// Expressions of the operations of V3D 4.2 and 7.1 (gpu/qpu/run/alu_lanes.h) as graphs: evaluated, and as
/// code for each target that the host has, they give what the interpreter's vectors give.

#include "gpu/qpu/run/alu_lanes.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gpu/base/raw_vector.h"
#include "gpu/qpu/graph/evaluate.h"
#include "gpu/qpu/graph/program_front_end.h"
#include "gpu/qpu/graph/text.h"
#include "gpu/qpu/graph/value.h"
#include "gpu/qpu/jit/back_ends.h"
#include "gpu/qpu/jit/code/code_memory.h"
#include "gpu/qpu/jit/jit.h"
#include "gpu/qpu/run/alu.h"
#include "tests/qpu/special_words.h"

namespace v3d::qpu::graph {
namespace {

class Random {
 public:
  Lanes lanes() {
    Lanes v;
    for (int i = 0; i < kLanes; ++i) v[i] = word();
    return v;
  }

 private:
  uint32_t word() {
    switch (random_() % 4) {
      case 0:
        return kSpecialWords[random_() % std::size(kSpecialWords)];
      case 1:
        return std::bit_cast<uint32_t>((static_cast<float>(random_()) - 0x1p31f) * 0x1p-24f);
      default:
        return static_cast<uint32_t>(random_());
    }
  }
  std::mt19937 random_{4242};
};

/// An operation with conversions of its operands, and a flag of it.
struct Case {
  std::string name;
  Graph graph;  // of what the planes of the tile hold
  AluFn alu;
  FlagFn flag;
};

Value load(Graph& graph, uint32_t plane) {
  return {&graph, graph.make({.op = Op::kLoadTile, .immediate = plane})};
}
void store(Graph& graph, Value v, uint32_t plane) {
  graph.make({.op = Op::kStoreTile, .operands = {v.id, kNoNode, kNoNode}, .immediate = plane});
}

/// The flag goes where a came from, the result where b did.
template <qpu::Op op, Unpack ua, Unpack ub, Flag flag>
Case make_case(FlagWrite write) {
  Case c;
  c.name = std::string(info(op).mnemonic) + suffix(ua) + suffix(ub) + suffix(write);
  const Value a = unpacked_lanes<ua>(load(c.graph, kTileDepth)),
              b = unpacked_lanes<ub>(load(c.graph, kTileColor)), result = result_of<op>(a, b);
  store(c.graph, flag_of<op, flag>(a, b, result), kTileDepth);
  store(c.graph, result, kTileColor);
  c.alu = find_alu(op, ua, ub);
  c.flag = find_flag(op, write, ua, ub);
  return c;
}

template <qpu::Op op, Unpack ua, Unpack ub>
void add_flags(std::vector<Case>& cases) {
  cases.push_back(make_case<op, ua, ub, Flag::kZ>(FlagWrite::kPushz));
  cases.push_back(make_case<op, ua, ub, Flag::kN>(FlagWrite::kPushn));
  cases.push_back(make_case<op, ua, ub, Flag::kC>(FlagWrite::kPushc));
}

template <qpu::Op op>
void add_cases(std::vector<Case>& cases) {
  if constexpr (has_expression(op)) {
    constexpr Input kInput = info(op).input;
    add_flags<op, Unpack::kNone, Unpack::kNone>(cases);
    if constexpr (kInput == Input::kFloat && info(op).operands == 2) {
      add_flags<op, Unpack::kL, Unpack::kH>(cases);
      add_flags<op, Unpack::kAbs, Unpack::kL>(cases);
    }
    if constexpr (kInput == Input::kFloatMove || (kInput == Input::kFloat && info(op).operands == 1)) {
      add_flags<op, Unpack::kH, Unpack::kNone>(cases);
      add_flags<op, Unpack::kAbs, Unpack::kNone>(cases);
    }
    if constexpr (kInput == Input::kFloatMove) {
      add_flags<op, Unpack::kSat, Unpack::kNone>(cases);
      add_flags<op, Unpack::kNsat, Unpack::kNone>(cases);
      add_flags<op, Unpack::kMax0, Unpack::kNone>(cases);
    }
    if constexpr (kInput == Input::kIntMove) {
      add_flags<op, Unpack::kUl, Unpack::kNone>(cases);
      add_flags<op, Unpack::kUh, Unpack::kNone>(cases);
      add_flags<op, Unpack::kIl, Unpack::kNone>(cases);
      add_flags<op, Unpack::kIh, Unpack::kNone>(cases);
    }
    if constexpr (kInput == Input::kHalf) {
      add_flags<op, Unpack::kFf, Unpack::kNone>(cases);
      add_flags<op, Unpack::kLl, Unpack::kNone>(cases);
      add_flags<op, Unpack::kHh, Unpack::kNone>(cases);
      add_flags<op, Unpack::kSwp, Unpack::kNone>(cases);
      add_flags<op, Unpack::kU5, Unpack::kNone>(cases);
      add_flags<op, Unpack::kU6, Unpack::kNone>(cases);
      add_flags<op, Unpack::kU7, Unpack::kNone>(cases);
    }
  }
}

const std::vector<Case>& all_cases() {
  static const std::vector<Case> kCases = [] {
    std::vector<Case> cases;
#define V3D_QPU_OP(op, mnemonic, operands, destination, input, output, flags, carry, latency, traits) \
  add_cases<qpu::Op::k##op>(cases);
#include "gpu/qpu/isa/isa.def"
    return cases;
  }();
  return kCases;
}

struct Results {
  Lanes flag, value;  // all ones, or 0, of the flag
};

Results interpreted(const Case& c, const Lanes& a, const Lanes& b) {
  static Thread thread;
  const Lanes value = c.alu(thread, a, b, kAllLanes);
  return {as_uint(expand(c.flag(a, b, value))), value};
}

Results evaluated(const Graph& graph, const Lanes& a, const Lanes& b) {
  RawVector<Lanes> values;
  Results results{};
  for (const Node& node : graph.nodes()) {
    Lanes v{};
    const auto operand = [&](int n) -> const Lanes& { return values[node.operands[n]]; };
    switch (node.op) {
      case Op::kConst:
        v = splat(node.immediate);
        break;
      case Op::kLoadTile:
        v = node.immediate == kTileDepth ? a : b;
        break;
      case Op::kStoreTile:
        (node.immediate == kTileDepth ? results.flag : results.value) = operand(0);
        break;
      case Op::kShuffleQuads:
        for (int i = 0; i < kLanes; ++i)
          v[i] = operand(0)[(i & 12) + static_cast<int>(node.immediate >> (2 * (i & 3)) & 3)];
        break;
      default:
        for (int i = 0; i < kLanes; ++i) {
          const int operands = info(node.op).operands;
          v[i] = evaluate(node, operand(0)[i], operands > 1 ? operand(1)[i] : 0,
                          operands > 2 ? operand(2)[i] : 0);
        }
    }
    values.push_back(v);
  }
  return results;
}

::testing::AssertionResult are_equal(const Results& got, const Results& wanted) {
  for (int i = 0; i < kLanes; ++i)
    if (got.flag[i] != wanted.flag[i] || got.value[i] != wanted.value[i])
      return ::testing::AssertionFailure()
             << "lane " << i << std::hex << ": " << got.value[i] << " flag " << got.flag[i] << " for "
             << wanted.value[i] << " flag " << wanted.flag[i];
  return ::testing::AssertionSuccess();
}

constexpr int kRounds = 40;

TEST(AluLanes, GraphsGiveWhatVectorsGive) {
  Random random;
  for (const Case& c : all_cases())
    for (int n = 0; n < kRounds; ++n) {
      const Lanes a = random.lanes(), b = random.lanes();
      ASSERT_TRUE(are_equal(evaluated(c.graph, a, b), interpreted(c, a, b))) << c.name;
    }
}

TEST(AluLanes, CodeGivesWhatVectorsGive) {
  int targets = 0;
  for (const jit::Target target : jit::kAllTargets) {
    if (!jit::can_compile(target)) continue;
    ++targets;
    Random random;
    for (const Case& c : all_cases()) {
      const std::vector<uint8_t> bytes = jit::make_block_code(target, c.graph);
      ASSERT_FALSE(bytes.empty());
      const auto code = jit::CodeMemory::copy_of(bytes);
      ASSERT_TRUE(code.has_value());
      for (int n = 0; n < kRounds; ++n) {
        const Lanes a = random.lanes(), b = random.lanes();
        // Rows of quads that follow each other.
        Lanes depth = a, color = b;
        const Block block = {};
        BlockRun run;
        run.depth = reinterpret_cast<uint32_t*>(&depth);
        run.color = reinterpret_cast<uint32_t*>(&color);
        run.bytes_of_rows = sizeof(Lanes) / 2;
        run.blocks = &block;
        run.end = &block + 1;
        std::bit_cast<BlockFn>(code->begin())(&run);
        ASSERT_TRUE(are_equal({depth, color}, interpreted(c, a, b)))
            << c.name << " for " << jit::name(target) << '\n'
            << to_text(c.graph);
      }
    }
  }
  if (targets == 0) GTEST_SKIP() << jit::why_no_target();
}

TEST(AluLanes, HalvesThatAreJoinedAndTakenApartAreTheSame) {
  Graph graph;
  const Value a = load(graph, kTileDepth), b = load(graph, kTileColor);
  store(graph, low_half(pack_halves(a, b)), kTileDepth);
  store(graph, high_half(pack_halves(a, {&graph, graph.constant(0x3f800000)})), kTileColor);
  EXPECT_EQ(to_text(without_dead(graph)),
            "%0 = load_tile 0\n%1 = load_tile 1\n%2 = round_to_half %0\nstore_tile %2 0\n"
            "%4 = const 0x3f800000\nstore_tile %4 1\n");
}

}  // namespace
}  // namespace v3d::qpu::graph
