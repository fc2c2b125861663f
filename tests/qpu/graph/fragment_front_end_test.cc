/// What becomes a block of fragments, and what does not.

#include "gpu/qpu/graph/fragment_front_end.h"

#include <gtest/gtest.h>

#include <string>

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
            "%0 = covered\nshade %0\n%2 = const 0xffffffff\n%3 = load_tile 1\n%4 = choose %0 %2 %3\n"
            "store_tile %4 1\n");
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

TEST(FragmentFrontEnd, SaysWhyAProgramIsNone) {
  const auto why = [](const std::string& text) {
    const char* reason = nullptr;
    EXPECT_FALSE(block_graph(flow_of(text + kEnd), {}, &reason).has_value());
    return std::string(reason == nullptr ? "" : reason);
  };
  EXPECT_EQ(why(""), "no colour");
  EXPECT_EQ(why(std::string(kColor) + kColor), "several colours");
  EXPECT_EQ(why(std::string("eidx rf10 ; nop\n") + kColor), "eidx");
  EXPECT_EQ(why(std::string("fadd rf10, rf11, rf11 ; nop\n") + kColor), "a register without a value");
  EXPECT_EQ(why(std::string("nop ; nop ; ldtmu.rf10\n") + kColor), "a result of no lookup");
  EXPECT_EQ(why(std::string("mov tlbu, 0 ; nop\n") + kColor), "tlbu");
  EXPECT_EQ(why(std::string("setmsf -, 0 ; nop\n") + kColor), "setmsf");
}

}  // namespace
}  // namespace v3d::qpu::graph
