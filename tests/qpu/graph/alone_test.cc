/// Which programs in stretches have batches that nobody can tell from each other's company.

#include "gpu/qpu/graph/alone.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gpu/qpu/flow/flow.h"
#include "gpu/qpu/graph/stretches.h"
#include "gpu/qpu/isa/assembler.h"

namespace v3d::qpu::graph {
namespace {

constexpr char kBegin[] =
    "nop ; nop ; ldunifrf.rf12\nnop ; nop ; ldunifrf.rf13\nadd rf10, rf12, 4 ; nop\neidx rf14 ; nop\n";
constexpr char kLoad[] = "nop ; mov tmua, rf10 ; thrsw\nnop\nnop\nnop ; nop ; ldtmu.rf15\n";
constexpr char kStore[] = "add tmud, rf14, rf15 ; nop\nnop ; mov tmua, rf10\ntmuwt -\n";
constexpr char kEnd[] = "end\n";

std::string loop(const std::string& of, const std::string& what_counts) {
  return "loop:\n" + of + "sub.pushz " + what_counts + ", " + what_counts +
         ", 1 ; nop\nb.anyna loop\nnop\nnop\nnop\n";
}

bool goes_alone(const std::string& program) {
  const Assembly assembly = assemble(chip::Generation::k71, kBegin + program + kEnd);
  EXPECT_TRUE(assembly.errors.empty()) << to_string(assembly.errors.at(0));
  const flow::Flow flow = flow::analyse({chip::Generation::k71, false, {}}, assembly.words);
  const char* why = nullptr;
  const auto made = stretch_graphs(flow, {.is_whole = true}, &why);
  if (!made) {
    ADD_FAILURE() << why;
    return false;
  }
  EXPECT_GT(made->parts.size(), 1u);
  std::vector<const Graph*> parts;
  for (const StretchGraphs::Part& part : made->parts) parts.push_back(&part.graph);
  return go_alone(parts);
}

TEST(Alone, WhoLoadsFirstAndCountsByUniforms) { EXPECT_TRUE(goes_alone(loop(kLoad, "rf13") + kStore)); }

// Another may store what ends the loop.
TEST(Alone, NotWhoCountsByWhatItLoaded) {
  EXPECT_FALSE(goes_alone(loop(kLoad, "rf15") + kStore));
  EXPECT_FALSE(goes_alone(kLoad + loop("add rf10, rf10, 4 ; nop\n", "rf15") + kStore));
}

// Another may have stored in between.
TEST(Alone, NotWhoLoadsAfterItStored) {
  EXPECT_FALSE(goes_alone(loop(std::string(kLoad) + kStore, "rf13")));
  EXPECT_FALSE(
      goes_alone(std::string(kLoad) + kStore + loop("add rf14, rf14, 4 ; nop\n", "rf13") + kLoad + kStore));
}

}  // namespace
}  // namespace v3d::qpu::graph
