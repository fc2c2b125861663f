/// Functions of texture lookups: which there are, and for how long.

#include "gpu/qpu/jit/lookup_functions.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "gpu/qpu/graph/lookup_graph.h"
#include "gpu/qpu/jit/back_ends.h"
#include "gpu/qpu/jit/jit.h"

namespace v3d::qpu::jit {
namespace {

using tmu::LookupKind;

LookupKind kind_with_layer_shift(uint8_t shift) {
  LookupKind kind;
  kind.filter = kind.minifying = LookupKind::Filter::kLinear;
  kind.x_shift = 8;
  kind.y0_shift = 7;
  kind.y1_shift = shift;
  kind.log2_bytes = 2;
  kind.num_words = 2;
  for (uint8_t n = 0; n < 4; ++n) kind.channel[n / 2][n % 2] = n;
  return kind;
}

std::vector<LookupKind> kinds() {
  using Filter = LookupKind::Filter;
  using Levels = LookupKind::Levels;
  using Texels = LookupKind::Texels;
  std::vector<LookupKind> all;
  for (const Texels texels : {Texels::kUnorm8, Texels::kSrgb8, Texels::kPacked})
    for (const Filter filter : {Filter::kNearest, Filter::kLinear})
      for (const Levels levels : {Levels::kBase, Levels::kNearest, Levels::kLinear})
        for (int shape = 0; shape < 5; ++shape) {
          LookupKind kind = kind_with_layer_shift(10);
          kind.texels = texels;
          kind.packing = {tmu::Number::kSnorm, {{0, 16}, {16, 16}}};
          kind.in_float = texels != Texels::kUnorm8;
          kind.minifying = filter;
          kind.levels = levels;
          kind.dims = shape == 1 ? 3 : 2;
          kind.is_cube = shape == 2;
          kind.most_probes = shape == 3 ? 4 : 1;
          kind.is_fetch = shape == 4;
          kind.stored_words = kind.is_fetch && filter == Filter::kNearest ? 1 : 0;
          all.push_back(kind);
        }
  return all;
}

class LookupFunctionsOf : public testing::Test {
 protected:
  void SetUp() override {
    if (!best_target()) GTEST_SKIP() << "nothing is compiled here";
  }
  static LookupCompiler::Made made_of(LookupFunctions& functions, uint8_t shift, const void* owner) {
    return functions.code_of(kind_with_layer_shift(shift), owner).value();
  }
  static LookupFunctions functions(size_t most = LookupFunctions::kMostFunctions) {
    return LookupFunctions(*best_target(), most);
  }
};

TEST_F(LookupFunctionsOf, AKindAreMadeOnceForAll) {
  LookupFunctions made = functions();
  const int one = 0, other = 0;
  const auto first = made_of(made, 10, &one), second = made_of(made, 10, &other),
             different = made_of(made, 9, &one);
  ASSERT_NE(first.code, nullptr);
  EXPECT_NE(first.cost, 0u);
  EXPECT_EQ(first.code, second.code);
  EXPECT_EQ(second.cost, 0u);
  EXPECT_NE(first.code, different.code);
  EXPECT_EQ(made.statistics().functions, 2u);
}

TEST_F(LookupFunctionsOf, WhoHasMostGiveWay) {
  LookupFunctions made = functions(3);
  const int greedy = 0, modest = 0;
  const auto kept = made_of(made, 10, &modest).code;
  for (uint8_t shift = 11; shift < 20; ++shift) made_of(made, shift, &greedy);
  EXPECT_EQ(made.kept(), 3u);
  EXPECT_EQ(made_of(made, 10, &modest).code, kept);
  EXPECT_EQ(made_of(made, 19, &greedy).cost, 0u);
  EXPECT_NE(made_of(made, 11, &greedy).cost, 0u);
}

/// Whatever the processor can execute of its kind: what is made for another one is not called.
TEST_F(LookupFunctionsOf, AllKindsHaveCodeForAllVectors) {
  for (const Target target : kAllTargets)
    for (const LookupKind& kind : kinds())
      for (const bool picks_lanes : {false, true})
        EXPECT_FALSE(make_lookup_code(target, graph::lookup_graph(kind, picks_lanes)).empty());
}

}  // namespace
}  // namespace v3d::qpu::jit
