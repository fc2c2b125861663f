/// Where compute programs are cut, and what stands behind a cut in which way.

#include "gpu/qpu/graph/stretches.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gpu/qpu/flow/flow.h"
#include "gpu/qpu/graph/text.h"
#include "gpu/qpu/isa/assembler.h"

namespace v3d::qpu::graph {
namespace {

constexpr char kEnd[] = "end\n", kBarrier[] = "barrierid syncb ; nop ; thrsw\nnop\nnop\n";

flow::Flow flow_of(const std::string& text) {
  const Assembly assembly = assemble(chip::Generation::k71, text);
  EXPECT_TRUE(assembly.errors.empty()) << to_string(assembly.errors.at(0));
  return flow::analyse({chip::Generation::k71, false, {}}, assembly.words);
}

/// One after the other, a line between them.
std::string text_of(const std::string& program, const BatchKey& key = {.is_whole = true}) {
  const char* why = nullptr;
  const auto made = stretch_graphs(flow_of(program), key, &why);
  if (!made) return why;
  std::string text;
  for (const StretchGraphs::Part& part : made->parts) text += to_text(part.graph) + "--\n";
  return text;
}

// Constants and uniforms stay what they are; what was computed stands in a slot.
TEST(Stretches, BarriersCut) {
  const std::string program =
      std::string(
          "nop ; nop ; ldunifrf.rf12\nadd rf10, rf12, 4 ; nop\nnop ; mov rf11, 3\neidx rf14 ; nop\n"
          "add rf13, rf12, rf14 ; nop\n") +
      kBarrier + "add tmud, rf13, rf11 ; nop\nadd tmua, rf12, rf14 ; nop\n" + kEnd;
  EXPECT_EQ(text_of(program),
            "%0 = const 0xffffffff\n%1 = uniform_word 0\n%2 = lane_index\n%3 = add %1 %2\n"
            "lead %0 1073823745\nstore %3 0\nstore %2 64\n--\n"
            "%0 = const 0xffffffff\n%1 = const 0x3\n%2 = uniform_word 0\n%3 = load 0\n%4 = load 64\n"
            "%5 = add %3 %1\n%6 = add %2 %4\n%7 = const 0xfffffffc\n%8 = and %6 %7\n"
            "%9 = const 0x80000000\n%10 = add %8 %9\nstore_memory %10 %5 %0 0\nlead %0 2147516416\n--\n");
}

// A loop of which nobody knows how often it is executed leads to itself; its first time is part of what comes
// before. What does not change in it is not stored again.
TEST(Stretches, LoopsLeadToThemselves) {
  const std::string program =
      std::string(
          "nop ; nop ; ldunifrf.rf12\nadd rf10, rf12, 4 ; nop\nnop ; mov rf11, 0\neidx rf14 ; nop\nloop:\n"
          "add rf11, rf11, rf14 ; nop\nsub.pushz rf12, rf12, 1 ; nop\nb.anyna loop\n"
          "nop\nnop\nnop\nadd tmud, rf11, 0 ; nop\nnop ; mov tmua, rf10\n") +
      kEnd;
  const char* why = nullptr;
  const auto made = stretch_graphs(flow_of(program), {.is_whole = true}, &why);
  ASSERT_TRUE(made.has_value()) << why;
  ASSERT_EQ(made->parts.size(), 3u);
  EXPECT_FALSE(made->parts[0].has_turns);
  EXPECT_TRUE(made->parts[1].has_turns);
  const std::string text = to_text(made->parts[1].graph);
  EXPECT_NE(text.find("lead %"), std::string::npos) << text;
  size_t stores = 0;
  for (size_t at = text.find("store "); at != std::string::npos; at = text.find("store ", at + 1)) ++stores;
  EXPECT_EQ(stores, 3u) << text;  // the sum, the count and its flags; not lanes, and not the address
}

// Of known length they are unrolled, as long as that is not too much.
TEST(Stretches, LongLoopsOfKnownLengthAreCut) {
  const auto program = [](int times) {
    return "eidx rf14 ; mov rf11, 0\nnop ; mov rf12, 15\nshl rf12, rf12, " + std::to_string(times) +
           " ; nop\nloop:\nadd rf11, rf11, rf14 ; nop\nsub.pushz rf12, rf12, 1 ; nop\nb.anyna loop\n"
           "nop\nnop\nnop\n" +
           kBarrier + "add tmud, rf11, 0 ; nop\nnop ; mov tmua, rf14\n" + kEnd;
  };
  const char* why = nullptr;
  const auto short_one = stretch_graphs(flow_of(program(1)), {.is_whole = true}, &why);
  ASSERT_TRUE(short_one.has_value()) << why;
  EXPECT_EQ(short_one->parts.size(), 2u);
  const auto long_one = stretch_graphs(flow_of(program(8)), {.is_whole = true}, &why);
  ASSERT_TRUE(long_one.has_value()) << why;
  EXPECT_EQ(long_one->parts.size(), 5u);
  EXPECT_LT(long_one->instructions, 100u);
}

// Results of the TMU wait in slots, and words by an address are loaded where the program reads them.
TEST(Stretches, ResultsAndAddressesStayBehindACut) {
  const std::string text = text_of(std::string("nop ; nop ; ldunifrf.rf12\nnop ; mov tmua, rf12\n"
                                               "nop ; mov unifa, rf12\nnop\nnop\nnop\n") +
                                   kBarrier +
                                   "nop ; nop ; ldtmu.rf10\nnop ; nop ; ldunifarf.rf11\n"
                                   "add tmud, rf10, rf11 ; nop\nnop ; mov tmua, rf12\n" +
                                   kEnd);
  const size_t cut = text.find("--");
  EXPECT_LT(text.find("= load_memory %"), cut) << text;
  EXPECT_GT(text.find("= load_word %"), cut) << text;
  EXPECT_NE(text.find("= load_word %"), std::string::npos) << text;
}

TEST(Stretches, TellsWhatProgramsHaveThatFunctionsHaveNot) {
  EXPECT_EQ(text_of(std::string("nop ; mov tmud, 1\n") + kBarrier + "nop ; mov tmua, 0\n" + kEnd),
            "a cut between what sets an access up and the access");
  EXPECT_EQ(text_of(std::string("nop ; nop ; wrtmuc\nnop ; mov tmus, 0\n") + kBarrier + kEnd),
            "a lookup in a program that is cut");
  EXPECT_EQ(text_of(std::string("nop ; mov rf10, 1\nnop ; mov syncb, rf10 ; thrsw\nnop\nnop\n") + kEnd),
            "a meeting");
  EXPECT_EQ(text_of(std::string("tidx rf10 ; nop\n") + kEnd), "tidx");
}

}  // namespace
}  // namespace v3d::qpu::graph
