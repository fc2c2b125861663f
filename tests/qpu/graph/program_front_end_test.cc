/// What becomes a block of fragments or a batch of vertices, and what does not.

#include "gpu/qpu/graph/program_front_end.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gpu/qpu/flow/flow.h"
#include "gpu/qpu/graph/text.h"
#include "gpu/qpu/isa/assembler.h"

namespace v3d::qpu::graph {
namespace {

flow::Flow flow_of(const std::string& text) {
  const Assembly assembly = assemble(chip::Generation::k71, text);
  EXPECT_TRUE(assembly.errors.empty()) << to_string(assembly.errors.at(0));
  return flow::analyse({chip::Generation::k71, true, {}}, assembly.words);
}

constexpr char kEnd[] = "end\n",
               kColor[] = "nop ; mov rf10, 1.0\nvfpack tlb, rf10, rf10 ; nop\nvfpack tlb, rf10, rf10 ; nop\n";

TEST(FragmentFrontEnd, AConstantColorIsOneWord) {
  const char* why = nullptr;
  const auto block = block_graph(flow_of(std::string(kColor) + kEnd), {}, &why);
  ASSERT_TRUE(block.has_value()) << why;
  EXPECT_EQ(to_text(block->graph),
            "%0 = covered\nshade %0\npassed %0\n%3 = const 0xffffffff\n%4 = load_tile 1\n"
            "%5 = choose %0 %3 %4\nstore_tile %5 1\n");
  EXPECT_EQ(block->uniforms, 0u);
}

TEST(FragmentFrontEnd, DepthIsTestedAndStoredBeforeTheProgram) {
  const char* why = nullptr;
  const BlockKey key = {.depth = BlockKey::Depth::k24, .test = Compare::kLess, .writes_depth = true};
  const auto block = block_graph(flow_of(std::string(kColor) + kEnd), key, &why);
  ASSERT_TRUE(block.has_value()) << why;
  const std::string text = to_text(block->graph);
  EXPECT_LT(text.find("= plane 0\n"), text.find("store_tile %"));
  EXPECT_LT(text.find("store_tile %"), text.find("shade %"));
  EXPECT_LT(text.find("shade %"), text.find("= load_tile 1\n"));
}

TEST(FragmentFrontEnd, WhatNobodySeesIsNotComputed) {
  const char* why = nullptr;
  const std::string hidden = "%0 = covered\nshade %0\npassed %0\n";
  const auto text = [&](const std::string& program, const BlockTarget& target) {
    const auto block = block_graph(flow_of(program + kEnd), {.target = target}, &why);
    return block.has_value() ? to_text(block->graph) : why;
  };
  EXPECT_EQ(text("", {}), hidden);
  EXPECT_EQ(text(kColor, {.type = BlockTarget::Type::kNone}), hidden);
  EXPECT_EQ(text(kColor, {.kept = 0xf}), hidden);
  // Of halves, channels that the target does not have.
  EXPECT_EQ(text(kColor, {.type = BlockTarget::Type::k16F, .words = 1, .kept = 3}), hidden);
}

TEST(FragmentFrontEnd, WaitingGivesNothing) {
  const char* why = nullptr;
  const BlockTarget target = {.type = BlockTarget::Type::k16F, .words = 1};
  const auto text = [&](const std::string& first) {
    const std::string program = first + " rf10 ; nop\nnop ; mov tlb, rf10\nnop ; mov tlb, rf10\n";
    const auto block = block_graph(flow_of(program + kEnd), {.target = target}, &why);
    return block.has_value() ? to_text(block->graph) : why;
  };
  const std::string waits = text("tmuwt");
  EXPECT_NE(waits.find("= const 0x0\n"), std::string::npos) << waits;
  EXPECT_EQ(waits.find("= pixel"), std::string::npos) << waits;
  EXPECT_NE(text("xcd").find("= pixel 0\n"), std::string::npos);
}

TEST(FragmentFrontEnd, ChannelsAreKept) {
  const char* why = nullptr;
  const auto block = block_graph(flow_of(std::string(kColor) + kEnd), {.target = {.kept = 8}}, &why);
  ASSERT_TRUE(block.has_value()) << why;
  EXPECT_EQ(
      to_text(block->graph),
      "%0 = covered\nshade %0\npassed %0\n%3 = load_tile 1\n%4 = const 0xffffff\n%5 = const 0xff000000\n"
      "%6 = and %3 %5\n%7 = or %6 %4\n%8 = choose %0 %7 %3\nstore_tile %8 1\n");
}

TEST(FragmentFrontEnd, HalvesKeepTheirBits) {
  const char* why = nullptr;
  const BlockTarget target = {.type = BlockTarget::Type::k16F, .words = 2};
  const std::string program = "nop ; nop ; ldunifrf.rf10\nnop ; mov tlb, rf10\nnop ; mov tlb, rf10\n";
  const auto block = block_graph(flow_of(program + kEnd), {.target = target}, &why);
  ASSERT_TRUE(block.has_value()) << why;
  EXPECT_EQ(to_text(block->graph),
            "%0 = covered\nshade %0\npassed %0\n%3 = uniform_word 0\n%4 = load_tile 1\n%5 = load_tile 2\n"
            "%6 = choose %0 %3 %4\nstore_tile %6 1\n%8 = choose %0 %3 %5\nstore_tile %8 2\n");
}

TEST(FragmentFrontEnd, LateTestsSeeWhatIsNotDiscarded) {
  const char* why = nullptr;
  const BlockKey key = {.depth = BlockKey::Depth::k24,
                        .test = Compare::kLess,
                        .writes_depth = true,
                        .target = {},
                        .is_late = true};
  const std::string program = "nop ; nop ; ldunifrf.rf10\nsetmsf -, rf10 ; nop\nnop ; mov tlbu, rf10\n";
  const auto block = block_graph(flow_of(program + kColor + kEnd), key, &why);
  ASSERT_TRUE(block.has_value()) << why;
  EXPECT_EQ(block->depth_configuration, 1u);
  EXPECT_EQ(block->uniforms, 2u);
  const std::string text = to_text(block->graph);
  EXPECT_LT(text.find("shade %"), text.find("= uniform_word 0\n"));
  EXPECT_LT(text.find("= uniform_word 0\n"), text.find("store_tile %"));
  EXPECT_LT(text.find("store_tile %"), text.find("passed %"));
  EXPECT_FALSE(block_graph(flow_of(kColor + program + kEnd), key, &why).has_value());
  EXPECT_STREQ(why, "colours before depth");
  EXPECT_FALSE(block_graph(flow_of(kEnd), key, &why).has_value());
  EXPECT_STREQ(why, "no depth, which tests wait for");
}

TEST(FragmentFrontEnd, ConstantsOfBlendingFollowTheUniforms) {
  const char* why = nullptr;
  const BlockTarget target = {
      .blends = true,
      .blend = {.color_dst = draw::BlendFactor::kConstAlpha, .alpha_dst = draw::BlendFactor::kConstAlpha}};
  const std::string program =
      "nop ; mov rf10, 1.0\nnop ; nop ; ldunifrf.rf11\nvfpack tlb, rf10, rf11 ; nop\n"
      "vfpack tlb, rf10, rf10 ; nop\n";
  const auto block = block_graph(flow_of(program + kEnd), {.target = target}, &why);
  ASSERT_TRUE(block.has_value()) << why;
  EXPECT_EQ(block->uniforms, 1u);
  const std::string text = to_text(block->graph);
  EXPECT_NE(text.find("= uniform_word 0\n"), std::string::npos);
  EXPECT_NE(text.find("= uniform_word 4\n"), std::string::npos);
  EXPECT_EQ(text.find("= uniform_word 1\n"), std::string::npos);
}

TEST(FragmentFrontEnd, SaysWhyAProgramIsNone) {
  const auto why = [](const std::string& text) {
    const char* reason = nullptr;
    EXPECT_FALSE(block_graph(flow_of(text + kEnd), {}, &reason).has_value());
    return std::string(reason == nullptr ? "" : reason);
  };
  EXPECT_EQ(why(std::string(kColor) + kColor), "several colours");
  constexpr char kIndex[] = "vfpack tlb, rf11, rf11 ; nop\nvfpack tlb, rf11, rf11 ; nop\n";
  EXPECT_EQ(why(std::string("eidx rf11 ; nop\n") + kIndex), "eidx");
  EXPECT_EQ(why(std::string("tidx rf11 ; nop\n") + kIndex), "tidx");
  EXPECT_EQ(why(std::string("fadd rf10, rf11, rf11 ; nop\n") + kColor), "a register without a value");
  EXPECT_EQ(why(std::string("nop ; nop ; ldtmu.rf10\n") + kColor), "a result of no lookup");
  EXPECT_EQ(why("nop ; mov tlbu, 0\nnop ; mov tlbu, 0\n"), "several writes with a configuration");
}

// ---- Vertices

TEST(VertexFrontEnd, RowsAreUniformsOrConstants) {
  const char* why = nullptr;
  const std::string program =
      "nop ; nop ; ldunifrf.rf12\nldvpmv_in rf10, rf12 ; nop ; ldunifrf.rf11\nldvpmv_in rf13, 3 ; nop\n"
      "nop ; fmul rf14, rf11, rf10\nfadd rf15, rf14, rf13 ; nop ; ldunif\nstvpmv rf0, rf15 ; nop\n"
      "stvpmv 2, rf10 ; nop\n";
  const auto vertices = vertex_graph(flow_of(program + kEnd), &why);
  ASSERT_TRUE(vertices.has_value()) << why;
  EXPECT_EQ(to_text(vertices->graph),
            "%0 = load_attribute 65536\n%1 = uniform_word 1\n%2 = load_attribute 3\n"
            "%3 = float_product %0 %1\n%4 = float_sum %2 %3\nstore_output %4 65538\nstore_output %0 2\n");
  EXPECT_EQ(vertices->uniforms, 3u);
  EXPECT_EQ(vertices->rows.in, (std::vector<uint32_t>{VertexRows::kByUniform, 3}));
  EXPECT_EQ(vertices->rows.out, (std::vector<uint32_t>{VertexRows::kByUniform + 2, 2}));
  EXPECT_EQ(vertices->numbers, std::vector<uint32_t>{1});
}

TEST(VertexFrontEnd, WordsStandBehindAddressesThatAreUniforms) {
  const char* why = nullptr;
  const std::string program =
      "nop ; nop ; ldunifrf.rf12\nadd unifa, rf12, 8 ; nop\nnop ; nop\nnop ; nop\nnop ; nop\n"
      "nop ; nop ; ldunifarf.rf10\nnop ; nop ; ldunifarf.rf11\nstvpmv 0, rf11 ; nop\n";
  const auto vertices = vertex_graph(flow_of(program + kEnd), &why);
  ASSERT_TRUE(vertices.has_value()) << why;
  EXPECT_EQ(vertices->indirect, (std::vector<IndirectWord>{{0, 8, 0}, {0, 8, 4}}));
  EXPECT_EQ(to_text(vertices->graph),
            "%0 = uniform_word " + std::to_string(kFirstIndirect + 1) + "\nstore_output %0 0\n");
}

TEST(VertexFrontEnd, TellsWhatProgramsHaveThatFunctionsHaveNot) {
  const auto why_not = [](const std::string& program) {
    const char* why = nullptr;
    EXPECT_FALSE(vertex_graph(flow_of(program + kEnd), &why).has_value()) << program;
    return std::string(why);
  };
  EXPECT_EQ(why_not("ldvpmv_in rf10, 0 ; nop\nldvpmv_in rf11, rf10 ; nop\n"), "a computed row");
  EXPECT_EQ(why_not("ldvpmv_in rf10, 0 ; nop\nldvpmd_in rf11, 0 ; nop\n"), "ldvpmd_in");
  EXPECT_EQ(why_not("ldvpmv_in rf10, 0 ; nop\nstvpmd 0, rf10 ; nop\n"), "stvpmd");
  EXPECT_EQ(why_not("ldvpmv_in.pushz rf10, 0 ; nop\nstvpmv.ifa 0, rf10 ; nop\n"), "a conditional store");
  EXPECT_EQ(why_not("stvpmv 0, rf10 ; nop\n"), "a register without a value");
  EXPECT_EQ(why_not("setmsf -, 0 ; nop\n"), "lanes that end");
  EXPECT_EQ(why_not("msf rf10 ; nop\n"), "msf");
  EXPECT_EQ(why_not("xcd rf10 ; nop\n"), "xcd");
  EXPECT_EQ(why_not("nop ; nop ; ldvary.rf10\n"), "memory or the tile buffer read");
  EXPECT_EQ(why_not("nop ; nop ; wrtmuc\n"), "lookups");
  EXPECT_EQ(why_not("nop ; mov tmus, 0\n"), "tmus");
  EXPECT_EQ(why_not("nop ; mov tlb, 0\n"), "tlb");
}

// ---- Batches of dispatches

TEST(BatchFrontEnd, AccessesMemoryInItsOrder) {
  const char* why = nullptr;
  const std::string program =
      "nop ; nop ; ldunifrf.rf12\nnop ; mov tmua, rf12\nnop ; nop ; ldtmu.rf13\nnop ; mov tmud, rf13\n"
      "nop ; mov tmua, rf12\n";
  const auto batch = batch_graph(flow_of(program + kEnd), {.is_whole = true}, &why);
  ASSERT_TRUE(batch.has_value()) << why;
  const std::string text = to_text(batch->graph);
  EXPECT_NE(text.find("= load_memory %"), std::string::npos) << text;
  EXPECT_LT(text.find("= load_memory %"), text.find("store_memory %")) << text;
  EXPECT_EQ(text.find("covered"), std::string::npos) << text;
  EXPECT_EQ(batch->uniforms, 1u);
}

TEST(BatchFrontEnd, TellsWhatProgramsHaveThatFunctionsHaveNot) {
  const auto why_not = [](const std::string& program) {
    const char* why = nullptr;
    EXPECT_FALSE(batch_graph(flow_of(program + kEnd), {}, &why).has_value()) << program;
    return std::string(why == nullptr ? "" : why);
  };
  EXPECT_EQ(why_not("setmsf -, 0 ; nop\n"), "lanes that end");
  EXPECT_EQ(why_not("xcd rf10 ; nop\n"), "xcd");
  EXPECT_EQ(why_not("tidx rf10 ; nop\n"), "tidx");
  EXPECT_EQ(why_not("nop ; nop ; ldvary.rf10\n"), "varyings");
  EXPECT_EQ(why_not("nop ; mov tlb, 0\n"), "tlb");
  EXPECT_EQ(why_not("nop ; nop ; ldtmu.rf10\n"), "a result of no lookup");
}

}  // namespace
}  // namespace v3d::qpu::graph
