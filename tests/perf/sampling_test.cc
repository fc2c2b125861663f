/// What is recorded of a job that is recorded in part, and how the rest follows from it.
#include "gpu/perf/record/sampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "gpu/perf/record/dispatch_recorder.h"
#include "gpu/perf/record/recorder.h"
#include "gpu/perf/timing/replayer.h"
#include "gpu/perf/timing/tile_work.h"
#include "gpu/qpu/isa/assembler.h"
#include "tests/perf/timing_model.h"
#include "tests/qpu/machine.h"

namespace v3d::timing {
namespace {

using Kind = Event::Kind;

// ---- What is recorded

TEST(Sampling, TakesPairsOfTilesThatDraw) {
  std::vector<uint32_t> entries(200, 5);
  for (size_t i = 0; i < entries.size(); i += 5) entries[i] = 0;
  const std::vector<bool> recorded = recorded_tiles(kSampled, entries);
  std::vector<size_t> drawn;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i] == 0)
      EXPECT_TRUE(recorded[i]) << "costs nothing";
    else if (recorded[i])
      drawn.push_back(i);
  }
  EXPECT_EQ(drawn.size(), 160u / 16);
  EXPECT_EQ(drawn[0], 1u) << "the first one that draws is not like the others";
  EXPECT_EQ(drawn[1], 2u);
}

TEST(Sampling, TakesAllOfWhatIsShort) {
  EXPECT_EQ(recorded_tiles(kSampled, {1, 0, 7, 1, 1}), std::vector<bool>(5, true));
  EXPECT_EQ(recorded_tiles(kWhole, std::vector<uint32_t>(500, 1)), std::vector<bool>(500, true));
  const RecordedBatches few(kSampled, 100, 1), all(kWhole, 1 << 20, 1);
  for (uint64_t batch = 0; batch < 100; ++batch) EXPECT_TRUE(few.has(batch));
  for (uint64_t batch = 0; batch < 1 << 20; batch += 999) EXPECT_TRUE(all.has(batch));
  EXPECT_EQ(all.instructions(), ~uint64_t{0});
}

TEST(Sampling, TakesSupergroupsWhole) {
  constexpr uint64_t kBatches = 24 * 1000;
  constexpr uint32_t kPerSupergroup = 24;
  const RecordedBatches recorded(kSampled, kBatches, kPerSupergroup);
  uint64_t count = 0;
  for (uint64_t batch = 0; batch < kBatches; ++batch) {
    count += recorded.has(batch);
    EXPECT_EQ(recorded.has(batch), recorded.has(batch / kPerSupergroup * kPerSupergroup)) << batch;
  }
  EXPECT_GE(count, 128u);
  EXPECT_LE(count, kBatches / 32);
}

TEST(Sampling, BatchesOfFewRunLongerUntilTheyAreNoLongerWatched) {
  EXPECT_GT(RecordedBatches(kSampled, 1, 1).instructions(), RecordedBatches(kSampled, 24, 1).instructions());
  EXPECT_GE(RecordedBatches(kSampled, 1 << 20, 1).instructions(), 2048u);
}

// ---- Batches that need not be watched

/// Runs batches of one program on a recorder.
class Batches : public testing::Test {
 protected:
  void load(const std::string& text) {
    const qpu::Assembly assembly = qpu::assemble(chip::Generation::k71, text + "\nthrsw\nnop\nnop\n");
    ASSERT_TRUE(assembly.errors.empty()) << text;
    std::memcpy(machine_.memory().host(qpu::Machine::kCode), assembly.words.data(),
                assembly.words.size() * 8);
  }
  /// Whether it was watched.
  bool run(qpu::ThreadWatch& watch, const char* stage, GpuAddr uniforms = qpu::Machine::kUniforms) {
    machine_.reset();
    machine_.t().tmu = &unit_;
    machine_.t().uniforms = uniforms;
    watch.start(stage, machine_.t());
    const bool watched = machine_.t().observer != nullptr;
    EXPECT_EQ(machine_.resume(), qpu::Stop::kEnd);
    return watched;
  }

  qpu::Machine machine_{chip::Generation::k71};
  tmu::Unit unit_{machine_.memory(), chip::Generation::k71};
  Recorder recorder_{{.generation = chip::Generation::k71}};
};

constexpr const char* kLookup = "nop ; nop ; ldunif\nmov tmua, rf0\nnop ; nop ; ldtmu.rf2";

TEST_F(Batches, OfAStraightProgramOneIsWatchedForEachStreamOfUniforms) {
  load("nop ; nop ; ldunif\nnop ; nop ; ldunif");
  EXPECT_TRUE(run(recorder_, "fragment"));
  EXPECT_FALSE(run(recorder_, "fragment"));
  EXPECT_TRUE(run(recorder_, "fragment", qpu::Machine::kUniforms + 0x100));
  EXPECT_FALSE(run(recorder_, "fragment"));
  const Trace trace = recorder_.take();
  ASSERT_EQ(trace.batches.size(), 4u);
  EXPECT_EQ(trace.paths.size(), 1u);
  EXPECT_EQ(trace.batches[0].lines, trace.batches[1].lines);
  EXPECT_EQ(trace.batches[2].lines.at(0), trace.batches[0].lines.at(0) + 4);
  EXPECT_EQ(trace.uniform_words, 8u);
}

TEST_F(Batches, ThatLookSomethingUpAreAllWatched) {
  load(kLookup);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(run(recorder_, "fragment"));
}

TEST_F(Batches, ThatBranchAreAllWatched) {
  load("b 0\nnop\nnop\nnop");
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(run(recorder_, "fragment"));
}

TEST_F(Batches, OfVerticesStandForOthersWhereThatIsWanted) {
  load(kLookup);
  Recorder recorder({.generation = chip::Generation::k71, .sampling = {.vertices = 3}});
  for (int i = 0; i < 7; ++i) EXPECT_EQ(run(recorder, "vertex"), i % 3 == 0) << i;
  EXPECT_TRUE(run(recorder, "fragment"));
  const Trace trace = recorder.take();
  EXPECT_EQ(trace.batches.size(), 8u);
  EXPECT_EQ(trace.batches[6].lines.size(), 2u) << "of its uniforms, and of its lookup";
}

TEST_F(Batches, OfOtherRecordersFollowWithNumbersOfTheirNewPlace) {
  load(kLookup);
  EXPECT_TRUE(run(recorder_, "vertex"));
  Recorder other(recorder_, Recorder::Part{});
  EXPECT_TRUE(run(other, "fragment"));
  EXPECT_TRUE(run(other, "vertex"));
  Recorder::Numbers numbers;
  EXPECT_EQ(recorder_.add(other, 1, 1, &numbers), 1u);
  EXPECT_EQ(recorder_.add(other, 0, 1, &numbers), 2u);
  const Trace trace = recorder_.take();
  ASSERT_EQ(trace.batches.size(), 3u);
  EXPECT_EQ(trace.batches[1].program, trace.batches[0].program);
  EXPECT_STREQ(trace.programs.at(trace.batches[2].program).stage, "fragment");
  EXPECT_EQ(trace.paths.size(), 1u) << "they went the same way";
  EXPECT_EQ(trace.shapes.size(), 1u);
  EXPECT_EQ(trace.uniform_words, 3u);
}

TEST_F(Batches, OfADispatchComeInTheirOrder) {
  load(kLookup);
  DispatchRecorder dispatch(recorder_, RecordedBatches(kWhole, 3, 1));
  std::vector<std::unique_ptr<qpu::Machine>> machines;
  for (const uint32_t number : {2u, 0u, 1u}) {
    qpu::Machine& m = *machines.emplace_back(std::make_unique<qpu::Machine>(chip::Generation::k71));
    std::memcpy(m.memory().host(qpu::Machine::kCode), machine_.memory().host(qpu::Machine::kCode), 64);
    m.uniforms({0x100 + 0x40 * number});
    m.t().tmu = &unit_;
    dispatch.start_batch(number, m.t());
    EXPECT_NE(m.t().observer, nullptr);
  }
  for (const auto& m : machines) EXPECT_EQ(m->resume(), qpu::Stop::kEnd);
  dispatch.gather();
  const Trace trace = recorder_.take();
  ASSERT_EQ(trace.batches.size(), 3u);
  for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(trace.batches[i].lines.at(1), 4 + i) << "the line looked up";
}

TEST_F(Batches, OfADispatchAreWatchedForSoManyInstructions) {
  load("nop\nnop\nnop\nnop\nnop\nnop");
  Recorder all({.generation = chip::Generation::k71, .max_instructions = 4});
  DispatchRecorder dispatch(all, RecordedBatches(kWhole, 1, 1));
  qpu::Thread& t = machine_.t();
  t.tmu = &unit_;
  dispatch.start_batch(0, t);
  dispatch.begin_slice(t);
  EXPECT_EQ(t.budget, 4u);
  EXPECT_EQ(machine_.resume(), qpu::Stop::kBudget);
  t.budget = 100;
  dispatch.begin_slice(t);
  EXPECT_EQ(t.observer, nullptr);
  EXPECT_EQ(machine_.resume(), qpu::Stop::kEnd);
  dispatch.gather();
  const Trace trace = all.take();
  EXPECT_EQ(trace.paths.at(trace.batches.at(0).path), (std::vector<Event>{Event::issue(0, 4), Kind::kEnd}));
}

// ---- The rest

/// Tiles of one draw with so many batches of fragments each, of a path of 20 instructions.
RenderJob tiles_of(const std::vector<uint32_t>& batches) {
  RenderJob job;
  job.trace.programs = {{.stage = "fragment"}};
  job.trace.paths = {{Event::issue(0, 20), Kind::kTlb, Kind::kEnd}};
  job.draws = {{.primitives = 1}};
  for (const uint32_t count : batches) {
    RenderJob::Segment s{.primitives = 1, .quads = 4 * count, .live_quads = 4 * count, .vertex_batches = {}};
    s.instructions = 20 * count;
    s.first_batch = static_cast<uint32_t>(job.trace.batches.size());
    s.num_batches = count;
    for (uint32_t i = 0; i < count; ++i)
      job.trace.batches.push_back({.lines = {}, .draw = 0, .fetched = {}, .tlb_quads = 4});
    job.tiles.push_back({.stored = 1024, .segments = {s}});
  }
  return job;
}

/// The same where tiles of an odd number are not recorded.
RenderJob half_of(RenderJob job) {
  for (size_t i = 1; i < job.tiles.size(); i += 2) {
    job.tiles[i].recorded = false;
    job.tiles[i].segments[0].num_batches = 0;
  }
  return job;
}

TEST(SampledTiming, TilesStandForOthersByTheirWork) {
  std::vector<uint32_t> batches;
  for (uint32_t i = 0; i < 60; ++i) batches.push_back(5 + i * i % 71);
  const chip::Profile profile = board(2, 4);
  const Parameters parameters = parameters_of(chip::default_profile());
  const RenderJob job = tiles_of(batches);
  const Prediction all = replay(job, profile, parameters), half = replay(half_of(job), profile, parameters);
  EXPECT_EQ(all.recorded, all.whole);
  EXPECT_EQ(half.recorded, 30u);
  EXPECT_EQ(half.whole, 60u);
  const auto near = [](uint64_t value) { return 0.03 * static_cast<double>(value); };
  EXPECT_NEAR(static_cast<double>(half.clocks), static_cast<double>(all.clocks), near(all.clocks));
  EXPECT_NEAR(static_cast<double>(half.instructions), static_cast<double>(all.instructions),
              near(all.instructions));
  EXPECT_NEAR(static_cast<double>(half.units.load_store), static_cast<double>(all.units.load_store),
              near(all.units.load_store));
  EXPECT_EQ(half.memory.tile_stored, all.memory.tile_stored) << "is known";
  EXPECT_EQ(half.draws[0].fragment_batches, all.draws[0].fragment_batches);
  EXPECT_EQ(half.draws[0].quads, all.draws[0].quads);
}

TEST(SampledTiming, TilesThatDrawNothingAreNoMeasure) {
  RenderJob job = tiles_of(std::vector<uint32_t>(40, 50));
  for (int i = 0; i < 400; ++i) job.tiles.push_back({.stored = 16, .segments = {}});
  const Parameters parameters = parameters_of(chip::default_profile());
  const Prediction all = replay(job, board(2, 4), parameters);
  for (size_t i = 1; i < 40; i += 2) {
    job.tiles[i].recorded = false;
    job.tiles[i].segments[0].num_batches = 0;
  }
  const Prediction half = replay(job, board(2, 4), parameters);
  EXPECT_NEAR(static_cast<double>(half.clocks), static_cast<double>(all.clocks),
              0.01 * static_cast<double>(all.clocks));
}

Dispatch batches_of(size_t count, uint32_t instructions) {
  Dispatch d;
  d.trace.programs = {{.stage = "compute"}};
  d.trace.paths = {{Event::issue(0, instructions), Kind::kEnd}};
  for (size_t i = 0; i < count; ++i) d.trace.batches.push_back({.lines = {}, .fetched = {}});
  d.batches = count;
  d.instructions = count * instructions;
  return d;
}

TEST(SampledTiming, BatchesThatWaitForRoomTellTheRate) {
  const chip::Profile profile = board(1, 4);  // 16 threads
  const Prediction all = replay(batches_of(1000, 100), profile, nothing());
  EXPECT_EQ(all.clocks, 1000u * 100 * 4 / 4);
  Dispatch part = batches_of(72, 100);  // 4.5 times 16
  part.batches = 1000;
  part.instructions = 1000 * 100;
  const Prediction p = replay(part, profile, nothing());
  EXPECT_EQ(p.recorded, 72u);
  EXPECT_EQ(p.whole, 1000u);
  EXPECT_EQ(p.instructions, 100000u);
  EXPECT_NEAR(static_cast<double>(p.clocks), static_cast<double>(all.clocks), 2000);
}

TEST(SampledTiming, BatchesThatRunLongerThanTheyAreWatchedGoOnAsTheyBegan) {
  Dispatch d = batches_of(8, 100);
  d.instructions *= 50;
  const Prediction p = replay(d, board(1, 4), nothing());
  EXPECT_EQ(p.clocks, replay(batches_of(8, 5000 / 2), board(1, 4), nothing()).clocks * 2);
}

/// A line of 64 bytes each, which takes 64 clocks; nobody waits for it.
TEST(SampledTiming, NothingIsFasterThanTheMemoryThatItNeeds) {
  Dispatch d = batches_of(8, 1);
  d.trace.shapes = {
      {.access = Shape::Access::kStore, .quad_words = 4, .quads = 4, .num_lines = 1, .lines = {0}}};
  d.trace.paths = {{Event::issue(0, 1), Kind::kLookup, Kind::kEnd}};
  for (uint32_t i = 0; i < 8; ++i) d.trace.batches[i].lines = {16 * i};
  Parameters parameters = nothing();
  parameters.dram_write = 1000;
  d.instructions *= 50;
  const Prediction p = replay(d, board(1, 4), parameters);
  EXPECT_EQ(p.dram_busy, 50u * 8 * 64);
  EXPECT_EQ(p.clocks, p.dram_busy);
}

}  // namespace
}  // namespace v3d::timing
