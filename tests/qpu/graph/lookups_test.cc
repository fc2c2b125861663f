/// What becomes of texture lookups in blocks of fragments.

#include "gpu/qpu/graph/lookups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "gpu/qpu/flow/flow.h"
#include "gpu/qpu/graph/evaluate.h"
#include "gpu/qpu/graph/program_front_end.h"
#include "gpu/qpu/isa/assembler.h"

namespace v3d::qpu::graph {
namespace {

using tmu::LookupKind;

flow::Flow flow_of(chip::Generation generation, const std::string& text) {
  const Assembly assembly = assemble(generation, text);
  EXPECT_TRUE(assembly.errors.empty()) << to_string(assembly.errors.at(0));
  return flow::analyse({generation, true, {}}, assembly.words);
}

constexpr char kCoordinates[] = "nop ; mov rf10, 1.0\nnop ; mov rf11, 2.0\n",
               kLookup[] =
                   "nop ; nop ; wrtmuc\nor tmut, rf11, rf11 ; nop ; wrtmuc\nor tmus, rf10, rf10 ; nop\n",
               kLoads[] = "nop ; nop ; ldtmu.rf12\nnop ; nop ; ldtmu.rf13\n",
               kColor[] = "or tlb, rf12, rf12 ; nop\nor tlb, rf13, rf13 ; nop\nend\n";

LookupKind kind_of(LookupKind::Filter filter) {
  LookupKind kind;
  kind.filter = kind.minifying = filter;
  kind.x_shift = 8;
  kind.y0_shift = 7;
  kind.y1_shift = 10;
  kind.log2_bytes = 2;
  kind.num_words = 2;
  for (uint8_t n = 0; n < 4; ++n) kind.channel[n / 2][n % 2] = n;
  return kind;
}

std::optional<BlockGraph> graph_of(const std::string& text, std::vector<LookupKind> kinds, std::string* why) {
  const char* reason = nullptr;
  auto graph = block_graph(flow_of(chip::Generation::k71, text), {.lookups = std::move(kinds)}, &reason);
  if (reason != nullptr) *why = reason;
  return graph;
}
size_t count(const BlockGraph& block, Op op) {
  const auto& nodes = block.graph.nodes();
  return static_cast<size_t>(
      std::count_if(nodes.begin(), nodes.end(), [&](const Node& node) { return node.op == op; }));
}
size_t gathers(const BlockGraph& block) { return count(block, Op::kGather); }

TEST(Lookups, AreFoundWithTheUniformsThatConfigureThem) {
  for (const chip::Generation generation : {chip::Generation::k42, chip::Generation::k71}) {
    const std::string text = std::string(kCoordinates) + "nop ; nop ; ldunifrf.rf14\n" + kLookup + kLoads +
                             "nop ; nop ; wrtmuc\nor tmub, rf10, rf10 ; nop\nor tmuslod, rf10, rf10 ; nop\n" +
                             kLoads + kColor;
    const char* why = nullptr;
    const auto found = find_lookups(flow_of(generation, text), &why);
    ASSERT_TRUE(found.has_value()) << why;
    ASSERT_EQ(found->lookups.size(), 2u);
    EXPECT_EQ(found->lookups[0].launcher, tmu::Launcher::kS);
    EXPECT_EQ(found->lookups[0].written, tmu::kT);
    EXPECT_EQ(found->lookups[0].uniforms, (std::array<uint16_t, 3>{1, 2, BlockLookup::kNone}));
    EXPECT_EQ(found->lookups[1].launcher, tmu::Launcher::kSLod);
    EXPECT_EQ(found->lookups[1].written, tmu::kB);
    EXPECT_EQ(found->lookups[1].uniforms,
              (std::array<uint16_t, 3>{3, BlockLookup::kNone, BlockLookup::kNone}));
  }
}

// What is stored in scratch before a lookup is no texel that the lookup stores.
TEST(Lookups, AreFoundBehindStoresToScratch) {
  const std::string text =
      std::string(kCoordinates) + "nop ; mov tmud, rf10\nnop ; mov tmua, rf11\n" + kLookup + kLoads + kColor;
  const char* why = nullptr;
  const auto found = find_lookups(flow_of(chip::Generation::k71, text), &why);
  ASSERT_TRUE(found.has_value()) << why;
  EXPECT_EQ(found->lookups.size(), 1u);
  EXPECT_TRUE(found->has_scratch);
}

TEST(Lookups, SayWhyThereAreNone) {
  const auto why = [](const std::string& text) {
    const char* reason = nullptr;
    EXPECT_FALSE(find_lookups(flow_of(chip::Generation::k71, text), &reason).has_value());
    return std::string(reason == nullptr ? "" : reason);
  };
  EXPECT_EQ(why(std::string(kCoordinates) + "or tmus, rf10, rf10 ; nop\n" + kLoads + kColor),
            "a lookup without configuration");
  std::string many = kCoordinates;
  for (size_t n = 0; n <= BlockLookups::kMostLookups; ++n) many += std::string(kLookup) + kLoads;
  EXPECT_EQ(why(many + kColor), "many lookups");
}

TEST(Lookups, ReadATexelOrFour) {
  std::string why;
  const std::string text = std::string(kCoordinates) + kLookup + kLoads + kColor;
  auto block = graph_of(text, {kind_of(LookupKind::Filter::kNearest)}, &why);
  ASSERT_TRUE(block.has_value()) << why;
  EXPECT_EQ(gathers(*block), 1u);
  EXPECT_EQ(block->uniforms, 2u);
  block = graph_of(text, {kind_of(LookupKind::Filter::kLinear)}, &why);
  ASSERT_TRUE(block.has_value()) << why;
  EXPECT_EQ(gathers(*block), 4u);
  LookupKind levels = kind_of(LookupKind::Filter::kLinear);
  levels.levels = LookupKind::Levels::kLinear;
  block = graph_of(text, {levels}, &why);
  ASSERT_TRUE(block.has_value()) << why;
  EXPECT_EQ(gathers(*block), 8u);
}

// In pairs, one after the other: hosts load both at once.
TEST(Lookups, ReadTwoWordsSideBySideOfFourHalves) {
  std::string why;
  const std::string text = std::string(kCoordinates) + kLookup + kLoads + kColor;
  LookupKind kind = kind_of(LookupKind::Filter::kLinear);
  kind.texels = LookupKind::Texels::kPacked;
  kind.packing = {tmu::Number::kHalf, {{0, 16}, {16, 16}, {32, 16}, {48, 16}}};
  kind.in_float = true;
  kind.log2_bytes = 3;
  const auto block = graph_of(text, {kind}, &why);
  ASSERT_TRUE(block.has_value()) << why;
  EXPECT_EQ(gathers(*block), 8u);
  const auto& nodes = block->graph.nodes();
  for (size_t n = 0; n + 1 < nodes.size(); ++n) {
    if (nodes[n].op != Op::kGather || nodes[n].immediate != 0) continue;
    EXPECT_EQ(nodes[n + 1].op, Op::kGather);
    EXPECT_EQ(nodes[n + 1].operands[0], nodes[n].operands[0]);
    EXPECT_EQ(nodes[n + 1].immediate, 4u);
  }
}

TEST(Lookups, ReadTwiceAsMuchOfSlicesAndWhereTheyMustBeyondEdges) {
  std::string why;
  const std::string text = "nop ; mov rf10, 1.0\nnop ; mov rf11, 2.0\nor tmur, rf11, rf11 ; nop\n" +
                           std::string(kLookup) + kLoads + kColor;
  LookupKind volume = kind_of(LookupKind::Filter::kLinear);
  volume.dims = 3;
  auto block = graph_of(text, {volume}, &why);
  ASSERT_TRUE(block.has_value()) << why;
  EXPECT_EQ(gathers(*block), 8u);
  EXPECT_EQ(count(*block, Op::kWhen), 0u);
  for (const auto filter : {LookupKind::Filter::kNearest, LookupKind::Filter::kLinear}) {
    const bool is_linear = filter == LookupKind::Filter::kLinear;
    LookupKind cube = kind_of(filter);
    cube.is_cube = true;
    block = graph_of(text, {cube}, &why);
    ASSERT_TRUE(block.has_value()) << why;
    EXPECT_EQ(gathers(*block), is_linear ? 8u : 1u);
    EXPECT_EQ(count(*block, Op::kWhen), is_linear ? 1u : 0u);
    EXPECT_EQ(count(*block, Op::kResume), is_linear ? 1u : 0u);
    EXPECT_EQ(count(*block, Op::kAgain), 0u);
  }
}

TEST(Lookups, RepeatOneWithAnisotropy) {
  std::string why;
  LookupKind kind = kind_of(LookupKind::Filter::kLinear);
  kind.most_probes = 16;
  const auto block = graph_of(std::string(kCoordinates) + kLookup + kLoads + kColor, {kind}, &why);
  ASSERT_TRUE(block.has_value()) << why;
  EXPECT_EQ(gathers(*block), 4u);
  EXPECT_EQ(count(*block, Op::kAgain), 1u);
}

TEST(Lookups, ShareWhatTheyHaveInCommon) {
  std::string why;
  const std::string text = std::string(kCoordinates) + kLookup + kLookup + kLoads +
                           "nop ; nop ; ldtmu.rf14\nnop ; nop ; ldtmu.rf15\n" + kColor;
  const LookupKind kind = kind_of(LookupKind::Filter::kLinear);
  auto block = graph_of(text, {kind, kind}, &why);
  ASSERT_TRUE(block.has_value()) << why;
  EXPECT_EQ(gathers(*block), 4u);
  LookupKind other = kind;
  other.texture = 1;
  const std::string of_both = std::string(kCoordinates) + kLookup + kLookup +
                              "nop ; nop ; ldtmu.rf12\nnop ; nop ; ldtmu.rf14\nnop ; nop ; ldtmu.rf13\n" +
                              kColor;
  block = graph_of(of_both, {kind, other}, &why);
  ASSERT_TRUE(block.has_value()) << why;
  EXPECT_EQ(gathers(*block), 8u);
}

TEST(Lookups, SayWhatHasNoCode) {
  std::string why;
  const std::string text = std::string(kCoordinates) + kLookup + kLoads + kColor;
  LookupKind none;
  none.none = tmu::NotGenerated::kGather;
  EXPECT_FALSE(graph_of(text, {none}, &why).has_value());
  EXPECT_EQ(why, "gather");
  EXPECT_FALSE(graph_of(text, {}, &why).has_value());
  EXPECT_EQ(why, "a lookup that was not there before");
  LookupKind one_word = kind_of(LookupKind::Filter::kNearest);
  one_word.num_words = 1;
  EXPECT_FALSE(graph_of(text, {one_word}, &why).has_value());
  EXPECT_EQ(why, "a result of no lookup");
}

TEST(Lookups, OperationsGiveWhatTheirNamesSay) {
  const auto give = [](Op op, uint32_t a, uint32_t b, uint32_t immediate = 0) {
    return evaluate({.op = op, .immediate = immediate}, a, b, 0);
  };
  EXPECT_EQ(give(Op::kDeposit, 0b10111, 0, 0b1101000100), 0b0101000100u | 0u);
  EXPECT_EQ(give(Op::kDeposit, 0xff, 0, 0xfffffc00), 0xffu << 10);
  EXPECT_EQ(give(Op::kMinUnsigned, 0xffffffff, 3), 3u);
  EXPECT_EQ(give(Op::kByteProducts, 0xff02, 0x8003), static_cast<uint32_t>(255 * -128 + 2 * 3) & 0xffff);
  EXPECT_EQ(give(Op::kByteProducts, 0xffff, 0x8080), 0x8000u);
  EXPECT_EQ(give(Op::kHalfProducts, 0xffff0003, 0x00050007), static_cast<uint32_t>(-5 + 21));
}

}  // namespace
}  // namespace v3d::qpu::graph
