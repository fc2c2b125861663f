#include "gpu/perf/counter_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>

#ifdef V3DEMU_MESA_COUNTERS
#define V3D_VERSION 71
#include "v3d_performance_counters.h"
#endif

namespace v3d::perf {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CounterTableOf : public testing::TestWithParam<chip::Generation> {};
INSTANTIATE_TEST_SUITE_P(Versions, CounterTableOf, testing::ValuesIn(chip::kGenerations));

TEST_P(CounterTableOf, FieldsFitTheIoctlAndNamesAreUnique) {
  std::set<std::string> names;
  for (const CounterInfo& c : counter_table(GetParam())) {
    EXPECT_LT(std::strlen(c.name), 64u) << c.name;  // DRM_V3D_PERFCNT_MAX_NAME and its sisters
    EXPECT_LT(std::strlen(c.category), 32u) << c.name;
    EXPECT_LT(std::strlen(c.description), 256u) << c.name;
    EXPECT_TRUE(names.insert(c.name).second) << c.name;
    EXPECT_EQ(std::string(c.description).find(c.category), 1u) << c.name;
    const std::string prefix(c.name, std::strcspn(c.name, "-"));
    EXPECT_EQ(c.category, prefix == "cycle" || prefix == "core" || prefix == "compute" ? "CORE" : prefix);
  }
}

TEST(CounterTable, IndicesOfTheCountersThatAreCounted) {
  const std::pair<Counter, const char*> cases[] = {
      {kFepPrimitivesNoPixels, "FEP-valid-primitives-no-rendered-pixels"},
      {kFepPrimitivesPixels, "FEP-valid-primitives-rendered-pixels"},
      {kFepClippedQuads, "FEP-clipped-quads"},
      {kFepValidQuads, "FEP-valid-quads"},
      {kTlbQuadsStencilFail, "TLB-quads-not-passing-stencil-test"},
      {kTlbQuadsZStencilFail, "TLB-quads-not-passing-z-and-stencil-test"},
      {kTlbQuadsZStencilPass, "TLB-quads-passing-z-and-stencil-test"},
      {kTlbQuadsWritten, "TLB-quads-written-to-color-buffer"},
      {kTlbPartialQuadsWritten, "TLB-partial-quads-written-to-color-buffer"},
      {kPtbPrimitivesClipped, "PTB-primitives-need-clipping"},
      {kPtbPrimitivesOutside, "PTB-primitives-discarded-outside-viewport"},
      {kPtbPrimitivesBinned, "PTB-primitives-binned"},
      {kPtbPrimitivesReversed, "PTB-primitives-discarded-reversed"},
      {kPtbWordsWritten, "PTB-memory-words-writes"},
      {kTlbWordsWritten, "TLB-memory-words-writes"},
      {kPseWordsRead, "PSE-memory-words-reads"},
      {kTlbWordsRead, "TLB-memory-words-reads"},
      {kQpuActive, "QPU-active"},
      {kQpuFragmentClocks, "QPU-total-active-clk-cycles-fragment-shading"},
  };
  std::set<int> exact;
  for (const auto& [counter, name] : cases) {
    EXPECT_STREQ(counter_table(chip::Generation::k71)[counter].name, name);
    exact.insert(counter);
  }
  for (int i = 0; i < kMaxCounters; ++i)
    EXPECT_EQ(counter_table(chip::Generation::k71)[static_cast<size_t>(i)].counts == Class::kExact,
              exact.count(i) == 1)
        << i;
}

// compute-and-timing.md 15.1, columns 7.1 and 4.2.
TEST(CounterTable, CountersOf42InCounts) {
  ASSERT_EQ(counter_table(chip::Generation::k42).size(), 87u);
  EXPECT_EQ(index_in_counts(chip::Generation::k71, 33), 33);
  const std::pair<int, int> cases[] = {{0, 5},   {11, 14}, {10, 15}, {12, 17}, {15, 84}, {32, 0},
                                       {35, 16}, {48, 13}, {79, 70}, {81, 71}, {84, 74}, {86, 4}};
  for (const auto& [old_number, number] : cases)
    EXPECT_EQ(index_in_counts(chip::Generation::k42, old_number), number);
  int own = 0;
  for (int i = 0; i < 87; ++i) own += index_in_counts(chip::Generation::k42, i) < 0;
  EXPECT_EQ(own, 20);
  EXPECT_EQ(index_in_counts(chip::Generation::k42, 7), -1);
  EXPECT_EQ(index_in_counts(chip::Generation::k42, 16), kQpuClocks);
  for (int i = 0; i < 87; ++i) {
    if (index_in_counts(chip::Generation::k42, i) >= 0) continue;
    const Class counts = counter_table(chip::Generation::k42)[static_cast<size_t>(i)].counts;
    EXPECT_TRUE(counts == Class::kNotCounted || counts == Class::kConstant) << i << ": nobody can count it";
  }
}

// vc4-abi.md 6.4.
TEST(CounterTable, CountersOf21InCounts) {
  const auto table = counter_table(chip::Generation::k21);
  ASSERT_EQ(table.size(), 30u);
  const std::pair<int, Counter> cases[] = {{0, kFepPrimitivesNoPixels},  {1, kFepPrimitivesPixels},
                                           {2, kFepClippedQuads},        {3, kFepValidQuads},
                                           {4, kTlbQuadsStencilFail},    {5, kTlbQuadsZStencilFail},
                                           {6, kTlbQuadsZStencilPass},   {7, kTlbQuadsNoCoverage},
                                           {8, kTlbQuadsCoverage},       {9, kTlbQuadsWritten},
                                           {10, kPtbPrimitivesOutside},  {11, kPtbPrimitivesClipped},
                                           {12, kPtbPrimitivesReversed}, {14, kQpuVertexTime},
                                           {15, kQpuFragmentTime},       {16, kQpuClocks}};
  const std::pair<int, int> modelled[] = {{13, kQpuIdleClocks},
                                          {17, kQpuTmuClocks},
                                          {18, kQpuTlbClocks},
                                          {19, kQpuVaryingClocks},
                                          {20, kCodeFetches},
                                          {21, 19},
                                          {22, kUniformFetches},
                                          {23, 21},
                                          {24, 24},
                                          {25, kTmuMisses},
                                          {27, kVcdClocks},
                                          {28, 28},
                                          {29, 29}};
  std::set<int> exact, timed;
  for (const auto& [number, counter] : cases) {
    EXPECT_EQ(index_in_counts(chip::Generation::k21, number), counter) << number;
    exact.insert(number);
  }
  for (const auto& [number, index] : modelled) {
    EXPECT_EQ(index_in_counts(chip::Generation::k21, number), index) << number;
    timed.insert(number);
  }
  for (int i = 0; i < 30; ++i) {
    const Class counts = table[static_cast<size_t>(i)].counts;
    EXPECT_EQ(counts == Class::kExact, exact.contains(i)) << i;
    EXPECT_EQ(counts == Class::kModelled, timed.contains(i)) << i;
    EXPECT_EQ(index_in_counts(chip::Generation::k21, i) < 0, counts == Class::kNotCounted) << i;
  }
  EXPECT_STREQ(table[29].name, "L2C-total-cache-miss");
}

#ifdef V3DEMU_MESA_COUNTERS
TEST(CounterTable, AgreesWithMesa) {
  ASSERT_EQ(std::size(v3d_performance_counters), size_t{kMaxCounters});
  for (size_t i = 0; i < kMaxCounters; ++i) {
    EXPECT_STREQ(counter_table(chip::Generation::k71)[i].name, v3d_performance_counters[i][V3D_PERFCNT_NAME]);
    EXPECT_STREQ(counter_table(chip::Generation::k71)[i].category,
                 v3d_performance_counters[i][V3D_PERFCNT_CATEGORY]);
    std::string theirs = v3d_performance_counters[i][V3D_PERFCNT_DESCRIPTION];
    if (i == 79) theirs.replace(theirs.find("Maximium"), 8, "Maximum");  // as the kernel spells it
    EXPECT_EQ(counter_table(chip::Generation::k71)[i].description, theirs);
  }
}
#endif

constexpr Units kUnits{.qpus = 8, .tmus = 2};

TEST(Inconsistencies, NothingCountedIsConsistent) {
  EXPECT_THAT(inconsistencies(Counts{}, kUnits), IsEmpty());
}

TEST(Inconsistencies, EveryModelledCounterHasARule) {
  for (const chip::Generation generation :
       {chip::Generation::k71, chip::Generation::k42, chip::Generation::k21})
    for (size_t i = 0; i < counter_table(generation).size(); ++i)
      if (counter_table(generation)[i].counts == Class::kModelled) {
        EXPECT_TRUE(has_rule(index_in_counts(generation, static_cast<int>(i))))
            << counter_table(generation)[i].name;
      }
}

// Each unit has as many clocks as the job: the L2T's stalls no more than these, eight QPUs' eight times as
// many.
TEST(Inconsistencies, NoUnitTakesMoreThanTheClocks) {
  Counts counts;
  counts.values[0] = 100;
  counts.values[43] = counts.values[36] = 100;
  counts.values[81] = 150;
  counts.values[87] = counts.values[85] = 50;
  counts[kQpuOtherStallClocks] = counts[kQpuTmuClocks] = 200;
  counts.values[22] = counts.values[23] = 200;
  EXPECT_THAT(inconsistencies(counts, kUnits), IsEmpty());
  for (const size_t counter : {size_t{43}, size_t{36}, size_t{81}, size_t{22}}) {
    Counts more = counts;
    ++more.values[counter];
    EXPECT_THAT(inconsistencies(more, kUnits),
                ElementsAre(HasSubstr(counter_table(chip::Generation::k71)[counter].name)));
  }
}

TEST(Inconsistencies, NamesEveryBrokenRelation) {
  Counts counts;
  counts.values[0] = 1000;
  counts[kQpuActive] = 10;
  counts[kQpuFragmentClocks] = 40;
  counts[kFepPrimitivesPixels] = 3;
  counts[kFepPrimitivesNoPixels] = 3;
  EXPECT_THAT(inconsistencies(counts, kUnits), IsEmpty());
  counts[kQpuFragmentClocks] = 41;
  EXPECT_THAT(inconsistencies(counts, kUnits), ElementsAre(HasSubstr("QPU-active")));
  counts[kFepPrimitivesNoPixels] = 4;
  EXPECT_THAT(inconsistencies(counts, kUnits), ElementsAre(HasSubstr("FEP-valid"), HasSubstr("QPU-active")));
}

TEST(Inconsistencies, SumsOfParts) {
  Counts counts;
  counts.values[0] = 1000;
  counts.values[85] = 21;
  counts[kQpuOtherStallClocks] = 4 * 21;
  for (size_t i = 87; i <= 92; ++i) counts.values[i] = i - 86;
  counts.values[62] = counts.values[76] = 6;
  counts.values[31] = 2;
  for (size_t i = 63; i <= 65; ++i) counts.values[i] = 2;
  EXPECT_THAT(inconsistencies(counts, kUnits), IsEmpty());
  ++counts.values[65];
  EXPECT_THAT(inconsistencies(counts, kUnits), ElementsAre(HasSubstr("core-memory-writes")));
}

TEST(Inconsistencies, ConstantCountersStayZero) {
  Counts counts;
  counts.values[50] = 1;
  EXPECT_THAT(inconsistencies(counts, kUnits), ElementsAre(HasSubstr("AXI-writes-seen-watch-0")));
}

TEST(JobCounts, SumsOfWorkers) {
  JobCounts job;
  Counts worker;
  worker[kQpuActive] = uint64_t{1} << 40;
  job.merge(worker);
  job.merge(worker);
  EXPECT_EQ(job.total()[kQpuActive], uint64_t{1} << 41);
}

}  // namespace
}  // namespace v3d::perf
