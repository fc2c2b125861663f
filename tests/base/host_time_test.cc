// The host's time by block: who is charged for what passes.
#include "gpu/base/host_time.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "gpu/base/left_out.h"
#include "gpu/base/thread_pool.h"

namespace v3d::host_time {
namespace {

using Clock = std::chrono::steady_clock;

/// Keeps the processor busy. @return  nanoseconds that passed
uint64_t work(std::chrono::microseconds least) {
  const Clock::time_point begin = Clock::now();
  while (Clock::now() - begin < least) {
  }
  return static_cast<uint64_t>(std::chrono::nanoseconds(Clock::now() - begin).count());
}

constexpr std::chrono::microseconds kSome{2000};
/// What passes between the looks at two clocks, when nobody takes the processor away in between, and what
/// their rates differ by.
constexpr double kShare = 0.2;

class HostTime : public testing::Test {
 protected:
  HostTime() { start(); }
  ~HostTime() override { g_on = false; }
  static uint64_t of(const Totals& totals, Block block) { return totals.blocks[static_cast<size_t>(block)]; }
};

TEST_F(HostTime, BlocksAddUpToTheTimeOfTheJob) {
  {
    const JobScope job(Job::kRender, Block::kLists);
    work(kSome);
    for (int i = 0; i < 3; ++i) {
      const Scope tile(Block::kTiles);
      work(kSome);
      const Scope store(Block::kStores);
      work(kSome);
    }
  }
  const Totals totals = host_time::totals();
  EXPECT_EQ(totals.jobs[static_cast<size_t>(Job::kRender)], 1u);
  const auto job_ns = static_cast<double>(totals.job_ns[static_cast<size_t>(Job::kRender)]);
  EXPECT_GE(job_ns, 7 * 2e6 * (1 - kShare));
  EXPECT_NEAR(static_cast<double>(totals.thread_ns()), job_ns, 0.01 * job_ns + 1e5);
  // Each has its own, without that of the scopes within it.
  for (const Block block : {Block::kTiles, Block::kStores})
    EXPECT_GE(static_cast<double>(of(totals, block)), 3 * 2e6 * (1 - kShare)) << name(block);
  EXPECT_GE(static_cast<double>(of(totals, Block::kLists)), 2e6 * (1 - kShare));
}

TEST_F(HostTime, ClocksAgree) {
  uint64_t passed;
  {
    const Scope scope(Block::kTransfers);
    passed = work(10 * kSome);
  }
  const auto told = static_cast<double>(of(host_time::totals(), Block::kTransfers));
  EXPECT_NEAR(told, static_cast<double>(passed), kShare * static_cast<double>(passed));
}

TEST_F(HostTime, ProgramsHaveWhatRanInTheirScope) {
  {
    const Scope root(Block::kSetUp);
    for (int i = 0; i < 2; ++i) {
      ProgramScope scope(Block::kFragmentPrograms, "fragment", 0x1000);
      add_interpreted(3);
      scope.executed(10);
      const Scope lookup(Block::kLookups);
      work(kSome);
    }
    ProgramScope other(Block::kFragmentPrograms, "fragment", 0x2000);
    other.executed(1);
  }
  add_interpreted(7);  // in no program
  const Totals totals = host_time::totals();
  ASSERT_EQ(totals.programs.size(), 2u);
  const Program& program = totals.programs.at({"fragment", 0x1000});
  EXPECT_EQ(program.batches, 2u);
  EXPECT_EQ(program.instructions, 20u);
  EXPECT_EQ(program.interpreted, 6u);
  EXPECT_GE(program.ns, of(totals, Block::kLookups));
  EXPECT_EQ(totals.programs.at({"fragment", 0x2000}).interpreted, 0u);
}

TEST_F(HostTime, DrawsHaveTheTimeOfAllThreads) {
  const DrawKey key{.vertex_program = 1, .fragment_program = 2, .vertices = 3};
  {
    const JobScope job(Job::kBin, Block::kLists);
    const DrawScope draw(DrawScope::Phase::kBin, key, true);
    const DrawScope inner(DrawScope::Phase::kBin, key);  // counts once
    work(kSome);
    std::thread([&key] {
      const Scope scope(Block::kVertices);
      const DrawScope there(DrawScope::Phase::kBin, key);
      work(kSome);
    }).join();
  }
  const Totals totals = host_time::totals();
  ASSERT_EQ(totals.draws.size(), 1u);
  const Draw& draw = totals.draws.at(key);
  EXPECT_EQ(draw.times, 1u);
  EXPECT_GE(static_cast<double>(draw.bin_ns), 2 * 2e6 * (1 - kShare));
  EXPECT_EQ(draw.render_ns, 0u);
}

TEST_F(HostTime, WhoWaitsForWorkersIsToldApart) {
  ThreadPool pool(1);
  {
    const JobScope job(Job::kRender, Block::kLists);
    pool.parallel_for(2, [](int, int slot) {
      const Scope tile(Block::kTiles);
      work(slot == 0 ? std::chrono::microseconds(10) : 5 * kSome);
      if (slot == 0) std::this_thread::sleep_for(kSome);  // the worker takes the other one
    });
  }
  EXPECT_GT(of(host_time::totals(), Block::kTiles), 0u);
  EXPECT_GT(of(host_time::totals(), Block::kWaiting), 0u);
}

TEST_F(HostTime, NothingIsGatheredWhereNobodyAsks) {
  g_on = false;
  {
    const JobScope job(Job::kBin, Block::kLists);
    ProgramScope program(Block::kVertexPrograms, "vertex", 8);
    program.executed(1);
  }
  const Totals totals = host_time::totals();
  EXPECT_EQ(totals.thread_ns(), 0u);
  EXPECT_EQ(totals.jobs[0], 0u);
  EXPECT_TRUE(totals.programs.empty());
}

TEST_F(HostTime, RowsHaveABound) {
  {
    const Scope root(Block::kSetUp);
    for (uint32_t i = 0; i < kMostRows + 5; ++i) ProgramScope(Block::kFragmentPrograms, "fragment", 8 * i);
  }
  { const ProgramScope more(Block::kComputePrograms, "compute", 8); }
  const Totals totals = host_time::totals();
  EXPECT_EQ(totals.programs.size(), kMostRows);
  EXPECT_EQ(totals.left_out, 5u + 1u);
}

TEST(LeftOut, StagesHaveNames) {
  EXPECT_EQ(parse_left_out("").value(), 0u);
  EXPECT_EQ(parse_left_out("lookups,stores").value(),
            static_cast<uint32_t>(Stage::kLookups) | static_cast<uint32_t>(Stage::kStores));
  const auto wrong = parse_left_out("lookups,shadows");
  EXPECT_EQ(wrong.status().message(),
            "no stage that can be left out: \"shadows\"; there are fragments, programs, lookups, stores");
}

}  // namespace
}  // namespace v3d::host_time
