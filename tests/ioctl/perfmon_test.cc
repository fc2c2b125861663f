// PERFMON_*: drm-abi.md 2.7, 3.7.
#include <cerrno>
#include <set>

#include "gpu/perf/counter_table.h"
#include "tests/ioctl/fixture.h"

namespace v3d::ioctl::test {
namespace {

class PerfmonTest : public IoctlTest {
 protected:
  int create(std::vector<uint8_t> counters, uint32_t* id) {
    drm::PerfmonCreate args = {};
    args.ncounters = static_cast<uint32_t>(counters.size());
    std::copy_n(counters.begin(), std::min<size_t>(counters.size(), 32), args.counters);
    const int error = ioctl(kPerfmonCreate, args);
    *id = args.id;
    return error;
  }
};

TEST_F(PerfmonTest, CreateChecksCounters) {
  uint32_t id;
  EXPECT_EQ(create({}, &id), EINVAL);
  EXPECT_EQ(create(std::vector<uint8_t>(33), &id), EINVAL);
  EXPECT_EQ(create({0, 93}, &id), EINVAL);
  EXPECT_EQ(create({255}, &id), EINVAL);
  EXPECT_EQ(create({0, 92, 0}, &id), 0);
  EXPECT_EQ(id, 1u);
  EXPECT_EQ(create(std::vector<uint8_t>(32, 5), &id), 0);
  EXPECT_EQ(id, 2u);
}

TEST_F(PerfmonTest, IdsAreReused) {
  uint32_t id;
  for (int i = 0; i < 3; ++i) create({1}, &id);
  drm::PerfmonDestroy args = {.id = 2};
  EXPECT_EQ(ioctl(kPerfmonDestroy, args), 0);
  EXPECT_EQ(ioctl(kPerfmonDestroy, args), EINVAL);
  EXPECT_EQ(create({1}, &id), 0);
  EXPECT_EQ(id, 2u);
}

TEST_F(PerfmonTest, ValuesAddUpAndPersist) {
  uint32_t id;
  ASSERT_EQ(create({83, 16}, &id), 0);
  gpu_.counts[perf::kQpuActive] = 10;
  gpu_.counts[perf::kPtbPrimitivesBinned] = 3;
  drm::SubmitCl submit = {};
  submit.bcl_end = submit.rcl_end = 16;
  submit.bo_handles = memory_.place(create_bo());
  submit.bo_handle_count = 1;
  submit.perfmon_id = id;
  ASSERT_EQ(ioctl(kSubmitCl, submit), 0);
  submit.perfmon_id = 0;
  ASSERT_EQ(ioctl(kSubmitCl, submit), 0);
  host_.run_all();
  const uint64_t values = memory_.place(std::vector<uint64_t>(2));
  drm::PerfmonGetValues args = {.id = id, .pad = 0, .values_ptr = values};
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(ioctl(kPerfmonGetValues, args), 0);
    EXPECT_EQ(memory_.at<uint64_t>(values), 20u);  // bin and render of the first submit
    EXPECT_EQ(memory_.at<uint64_t>(values + 8), 6u);
  }
  args.pad = 1;
  EXPECT_EQ(ioctl(kPerfmonGetValues, args), EINVAL);
  args = {.id = 9, .pad = 0, .values_ptr = values};
  EXPECT_EQ(ioctl(kPerfmonGetValues, args), EINVAL);
  args = {.id = id, .pad = 0, .values_ptr = 16};
  EXPECT_EQ(ioctl(kPerfmonGetValues, args), EFAULT);
}

/// What a job without one leaves out nobody counts.
TEST_F(PerfmonTest, JobsKnowWhetherTheyAreCounted) {
  uint32_t id;
  ASSERT_EQ(create({83}, &id), 0);
  drm::SubmitCl submit = {};
  submit.rcl_end = 16;
  submit.bo_handles = memory_.place(create_bo());
  submit.bo_handle_count = 1;
  for (const bool counted : {false, true, false}) {
    submit.perfmon_id = counted ? id : 0;
    ASSERT_EQ(ioctl(kSubmitCl, submit), 0);
    host_.run_all();
    EXPECT_EQ(gpu_.render_counted, counted);
  }
}

TEST_F(PerfmonTest, EveryCounterHasAName) {
  std::set<std::string> names;
  for (int counter = 0; counter < 256; ++counter) {
    drm::PerfmonGetCounter args = {};
    args.counter = static_cast<uint8_t>(counter);
    EXPECT_EQ(ioctl(kPerfmonGetCounter, args), counter < 93 ? 0 : EINVAL);
    if (counter >= 93) continue;
    const auto text = [](const uint8_t* bytes) { return std::string(reinterpret_cast<const char*>(bytes)); };
    const std::string category = text(args.category), description = text(args.description);
    names.insert(text(args.name));
    EXPECT_EQ(description.find("[" + category + "] "), 0u) << description;
  }
  EXPECT_EQ(names.size(), 93u);
  EXPECT_TRUE(names.contains("QPU-active"));
  drm::PerfmonGetCounter args = {};
  args.reserved[6] = 1;
  EXPECT_EQ(ioctl(kPerfmonGetCounter, args), EINVAL);
}

TEST(Perfmon, CountersOf42AreFoundByTheirNames) {
  const uint8_t counters[] = {35, 16, 7};  // the others have no namesakes on 7.1; one of them is counted
  ASSERT_STREQ(perf::counter_table(chip::Generation::k42)[35].name, "PTB-primitives-binned");
  ASSERT_STREQ(perf::counter_table(chip::Generation::k42)[16].name,
               "QPU-total-clk-cycles-executing-valid-instr");
  ASSERT_STREQ(perf::counter_table(chip::Generation::k42)[7].name, "TLB-quads-with-zero-coverage");
  Perfmon perfmon(counters, chip::Generation::k42);
  perf::Counts counts;
  for (uint64_t& value : counts.values) value = 1;
  counts[perf::kPtbPrimitivesBinned] = 7;
  counts[perf::kQpuClocks] = 20;
  perfmon.add(counts, perfmon.start());
  perfmon.add(counts, perfmon.start());
  EXPECT_EQ(perfmon.values(), (std::vector<uint64_t>{14, 40, 0}));
}

}  // namespace
}  // namespace v3d::ioctl::test
