/// Graphs: their text, what becomes of them in passes, and what their operations give.

#include "gpu/qpu/graph/graph.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "gpu/qpu/graph/text.h"

namespace v3d::qpu::graph {
namespace {

Graph graph_of(std::string_view text) {
  Parsed parsed = parse(text);
  EXPECT_EQ(parsed.error, "");
  return std::move(parsed.graph);
}
std::string simplified_text(std::string_view text) {
  return to_text(without_dead(simplified(graph_of(text))));
}

TEST(GraphText, IsReadAsItIsPrinted) {
  constexpr std::string_view kText =
      "%0 = load 64\n"
      "%1 = const 0x3f800000\n"
      "%2 = uniform 0 @3\n"
      "%3 = sum %0 %2\n"
      "%4 = choose %3 %1 %0\n"
      "write_port 33 @7\n";
  EXPECT_EQ(parse(kText).error, "line 6: no value 33 so far");
  const std::string text = std::string(kText.substr(0, kText.find("write_port"))) +
                           "write_port %4 %1 33 @7\nfinish 65536 @8\nstore %4 128\n";
  EXPECT_EQ(to_text(graph_of(text)), text);
}

TEST(GraphText, NamesAreAnything) {
  EXPECT_EQ(to_text(graph_of("# a comment\n\n%zero = const 0 # none\n%same = add %zero %zero\n")),
            "%0 = const 0x0\n%1 = add %0 %0\n");
}

TEST(GraphText, SaysWhatIsWrong) {
  const auto error = [](std::string_view text) { return parse(text).error; };
  EXPECT_EQ(error("%0 = frobnicate"), "line 1: no operation \"frobnicate\"");
  EXPECT_EQ(error("%0 ="), "line 1: no operation behind the name");
  EXPECT_EQ(error("\nconst 1"), "line 2: const gives a value, which needs a name");
  EXPECT_EQ(error("%0 = store %0 64"), "line 1: store gives no value");
  EXPECT_EQ(error("%0 = const"), "line 1: no number");
  EXPECT_EQ(error("%0 = const 1\n%1 = add %0"), "line 2: too few operands");
  EXPECT_EQ(error("%0 = const 1 2"), "line 1: \"2\" is too much");
  EXPECT_EQ(error("%0 = uniform 0 @256"), "line 1: no instruction behind @");
}

TEST(GraphPasses, EqualNodesAreOne) {
  EXPECT_EQ(simplified_text("%a = load 0\n%b = load 64\n%c = load 0\n"
                            "%x = add %a %b\n%y = add %b %c\n%z = xor %x %y\nstore %z 0\nstore %x 64\n"),
            "%0 = load 0\n%1 = load 64\n%2 = add %0 %1\n%3 = const 0x0\nstore %3 0\nstore %2 64\n");
}

TEST(GraphPasses, WhatIsKnownIsAConstant) {
  EXPECT_EQ(simplified_text("%a = const 0x3f800000\n%b = const 0x40000000\n%c = sum %a %b\nstore %c 0\n"),
            "%0 = const 0x40400000\nstore %0 0\n");
  EXPECT_EQ(simplified_text("%a = load 0\n%b = const 0\n%c = or %b %a\n%d = shl %c %b\nstore %d 64\n"),
            "%0 = load 0\nstore %0 64\n");
}

TEST(GraphPasses, ChoicesThatAreKnownAreNone) {
  EXPECT_EQ(simplified_text(
                "%m = const 0xffffffff\n%a = load 0\n%b = load 64\n%c = choose %m %a %b\nstore %c 128\n"),
            "%0 = load 0\nstore %0 128\n");
  EXPECT_EQ(simplified_text("%f = load_mask 4800\n%ones = const 0xffffffff\n%n = xor %f %ones\n"
                            "%a = load 0\n%b = load 64\n%c = choose %n %a %b\nstore %c 0\n"),
            "%0 = load_mask 4800\n%1 = load 0\n%2 = load 64\n%3 = choose %0 %2 %1\nstore %3 0\n");
}

TEST(GraphPasses, WhatNothingNeedsGoes) {
  EXPECT_EQ(to_text(without_dead(
                graph_of("%a = load 0\n%b = add %a %a\n%u = uniform 0 @1\n%c = mul %b %b\nstore %a 64\n"))),
            "%0 = load 0\n%1 = uniform 0 @1\nstore %0 64\n");
}

TEST(GraphPasses, WhatIsRoundedToNearestIsTogether) {
  EXPECT_EQ(to_text(by_rounding(graph_of(
                "%a = load 0\n%b = product %a %a\n%c = mul_nearest %b %a\n%d = truncate %c\n"
                "%e = product %b %a\n%f = mul_nearest %e %a\n%g = add %d %f\nstore %e 0\nstore %g 64\n"))),
            "%0 = load 0\n%1 = product %0 %0\n%2 = product %1 %0\nstore %2 0\n%4 = mul_nearest %1 %0\n%5 = "
            "truncate %4\n"
            "%6 = mul_nearest %2 %0\n%7 = add %5 %6\nstore %7 64\n");
  // A product needs it at once.
  constexpr std::string_view kNeeded = "%0 = load 0\n%1 = reciprocal %0\n%2 = product %1 %0\nstore %2 0\n";
  EXPECT_EQ(to_text(by_rounding(graph_of(kNeeded))), kNeeded);
}

}  // namespace
}  // namespace v3d::qpu::graph
