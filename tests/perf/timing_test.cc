/// Rules of the timing model on tiny lists of events, with clocks computed by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "gpu/perf/counter_table.h"
#include "gpu/perf/timing/replayer.h"
#include "gpu/perf/timing/report.h"
#include "tests/perf/timing_model.h"

namespace v3d::timing {
namespace {

using Kind = Event::Kind;

Shape load_of(std::vector<int32_t> lines, uint8_t results = 1, uint16_t quad_words = 4) {
  Shape shape;
  shape.results = results;
  shape.quad_words = quad_words;
  shape.quads = 4;
  shape.num_lines = static_cast<uint16_t>(lines.size());
  shape.lines = std::move(lines);
  return shape;
}

Shape store_of(std::vector<int32_t> lines) {
  Shape shape = load_of(std::move(lines), 0);
  shape.access = Shape::Access::kStore;
  shape.inputs = 2;
  return shape;
}

/// So many batches of one path.
Dispatch dispatch_of(std::vector<Event> path, size_t batches = 1, const std::vector<uint32_t>& lines = {}) {
  Dispatch d;
  d.trace.programs = {{.stage = "compute"}};
  d.trace.paths.push_back(std::move(path));
  for (size_t i = 0; i < batches; ++i) d.trace.batches.push_back({.lines = lines, .fetched = {}});
  return d;
}

TEST(Timing, InstructionsTakeFourClocks) {
  const Prediction p = replay(dispatch_of({Event::issue(0, 10), Kind::kEnd}), board(), nothing());
  EXPECT_EQ(p.clocks, 40u);
  EXPECT_EQ(p.instructions, 10u);
  EXPECT_EQ(p.bound(), Bound::kIssue);
  EXPECT_EQ(p.programs[0].at[9].issued, 1u);
}

TEST(Timing, BatchesSpreadOverQpusAndThenOverThreads) {
  const Dispatch d = dispatch_of({Event::issue(0, 10), Kind::kEnd}, 4);
  EXPECT_EQ(replay(d, board(1, 4), nothing()).clocks, 40u);
  EXPECT_EQ(replay(d, board(1, 2), nothing()).clocks, 80u);
  EXPECT_EQ(replay(d, board(1, 1), nothing()).clocks, 160u);
}

TEST(Timing, TheLauncherTakesTime) {
  Parameters p = nothing();
  p.batch_launch = 16;
  EXPECT_EQ(replay(dispatch_of({Event::issue(0, 1), Kind::kEnd}, 4), board(1, 4), p).clocks, 3u * 16 + 4);
}

TEST(Timing, AnSfuResultStallsTheNextInstruction) {
  Parameters p = nothing();
  p.sfu_stall = 4;
  const Prediction got =
      replay(dispatch_of({Event::issue(0, 2), Kind::kSfu, Event::issue(2, 1), Kind::kEnd}), board(), p);
  EXPECT_EQ(got.clocks, 16u);
  EXPECT_EQ(got.programs[0].at[1].stalls[static_cast<size_t>(Stall::kSfu)], 4u);
}

TEST(Timing, ASpreadValueStallsTheNextInstruction) {
  Parameters p = nothing();
  p.rep_stall = 8;
  const Prediction got =
      replay(dispatch_of({Event::issue(0, 2), Kind::kRep, Event::issue(2, 1), Kind::kEnd}), board(), p);
  EXPECT_EQ(got.clocks, 20u);
  EXPECT_EQ(got.programs[0].at[1].stalls[static_cast<size_t>(Stall::kRep)], 8u);
  EXPECT_EQ(counters_of(got).values[92], 2u) << "other stalls";
  EXPECT_LT(got.issue_share(), Prediction::kBusy);
  EXPECT_EQ(got.bound(), Bound::kIssue) << "nothing outside of the QPU holds it back";
}

/// 16 pages of 4 KiB share a line of the page table.
TEST(Timing, AWalkServesItsNeighbours) {
  Parameters p = nothing();
  p.page_walk = 100;
  const auto walks = [&](const std::vector<uint32_t>& lines) {
    Dispatch d = dispatch_of({{Kind::kLookup, 0}, {Kind::kLookup, 0}, Kind::kEnd}, 1, lines);
    d.trace.shapes = {load_of({0})};
    return replay(d, board(), p).memory.page_misses;
  };
  constexpr uint32_t kPage = 4096 / kLineBytes;
  EXPECT_EQ(walks({0, 15 * kPage}), 1u);
  EXPECT_EQ(walks({0, 16 * kPage}), 2u);
}

TEST(Timing, ALoadTakesItsWayThroughTheMemory) {
  Parameters p = nothing();
  p.tmu_request = 8;
  p.tmu_return = 20;
  p.l2_latency = 40;
  p.dram_latency = 150;
  p.page_walk = 120;
  Dispatch d = dispatch_of(
      {Event::issue(0, 1), {Kind::kLookup, 0}, Event::issue(1, 1), Kind::kRead, Kind::kEnd}, 1, {2000});
  d.trace.shapes = {load_of({0})};
  const Prediction got = replay(d, board(), p);
  // Code is there at 120 + 150 + 40, from the next slot of an instruction at 312. The lookup, far from that,
  // is issued at 316 and starts at 324; 4 clocks of work, 310 until the line is there, 20 back: 658.
  // The instruction that reads began at 316 and is held back by a multiple of 4.
  EXPECT_EQ(got.stalls[static_cast<size_t>(Stall::kCode)], 312u);
  EXPECT_EQ(got.stalls[static_cast<size_t>(Stall::kTmu)], 344u);
  EXPECT_EQ(got.clocks, 664u);
  EXPECT_EQ(got.memory.l1_misses, 1u);
  EXPECT_EQ(got.memory.read_bytes, 64u + 64u) << "the line, and one of code";
  EXPECT_EQ(got.bound(), Bound::kLatency);
}

TEST(Timing, ALineThatIsThereTakesNoMemory) {
  Parameters p = nothing();
  p.dram_latency = 100;
  Dispatch d = dispatch_of({Event::issue(0, 1),
                            {Kind::kLookup, 0},
                            Event::issue(1, 1),
                            Kind::kRead,
                            Event::issue(2, 1),
                            {Kind::kLookup, 0},
                            Event::issue(3, 1),
                            Kind::kRead,
                            Kind::kEnd},
                           1, {5, 5});
  d.trace.shapes = {load_of({0})};
  const Prediction got = replay(d, board(), p);
  // Code arrives at 100. The first lookup starts at 104 and is done at 104 + 4 + 100; the read began at 104,
  // ends at 212. The second: issued at 216, done at 220, read from 216 on with a stall of 4, ends at 224.
  EXPECT_EQ(got.clocks, 224u);
  EXPECT_EQ(got.memory.l1_hits, 1u);
}

// One load after the other, from one line to the next.
TEST(Timing, AMissBringsTheSectorsBesideIt) {
  Parameters p = nothing();
  p.dram_latency = 100;
  const auto loads = [&](uint64_t fill, const std::vector<uint32_t>& lines) {
    p.l2_fill = fill;
    std::vector<Event> path;
    for (size_t i = 0; i < lines.size(); ++i)
      path.insert(path.end(), {Event::issue(0, 1), {Kind::kLookup, 0}, Event::issue(1, 1), Kind::kRead});
    path.push_back(Kind::kEnd);
    Dispatch d = dispatch_of(std::move(path), 1, lines);
    d.trace.shapes = {load_of({0})};
    return replay(d, board(), p);
  };
  const auto misses = [&](uint64_t fill, const std::vector<uint32_t>& lines) {
    return loads(fill, lines).memory.l2_misses[static_cast<size_t>(Client::kTmu)];
  };
  const std::vector<uint32_t> next = {2000, 2001, 2002, 2003}, back = {2003, 2002, 2001, 2000};
  for (const auto& lines : {next, back}) {
    EXPECT_EQ(misses(1, lines), 4u);
    EXPECT_EQ(misses(2, lines), 2u);
    EXPECT_EQ(misses(4, lines), 1u);
    EXPECT_EQ(loads(2, lines).memory.read_bytes, (4u + 2u) * kLineBytes) << "the line, and one of code";
    EXPECT_EQ(loads(2, lines).clocks + 2 * 100, loads(1, lines).clocks);
  }
  EXPECT_EQ(misses(2, {2001, 2002}), 2u);
  // What lies elsewhere takes no less time, and more of the memory.
  const std::vector<uint32_t> scattered = {2000, 2005, 2010, 2015};
  EXPECT_EQ(loads(2, scattered).clocks, loads(1, scattered).clocks);
  EXPECT_EQ(loads(2, scattered).memory.read_bytes, (8u + 2u) * kLineBytes);
}

TEST(Timing, AMissBesideOthersBringsItsOwnSectorAlone) {
  Parameters p = nothing();
  p.dram_latency = 100;
  p.l2_fill = 2;
  Dispatch d = dispatch_of(
      {Event::issue(0, 1), {Kind::kLookup, 0}, Event::issue(1, 1), Kind::kRead, Kind::kEnd}, 1, {2000});
  d.trace.shapes = {load_of({0, 8, 16})};
  const auto lines_read = [&](uint64_t beside) {
    p.l2_fill_beside = beside;
    return replay(d, board(), p).memory.read_bytes / kLineBytes;
  };
  const uint64_t code = 2;  // its line and the one beside it
  EXPECT_EQ(lines_read(0), code + 2 + 1 + 1);
  EXPECT_EQ(lines_read(1), code + 2 + 2 + 1);
  EXPECT_EQ(lines_read(2), code + 2 + 2 + 2);
}

TEST(Timing, ASwitchHidesLatency) {
  Parameters p = nothing();
  p.tmu_return = 100;
  Dispatch d = dispatch_of({Event::issue(0, 1),
                            {Kind::kLookup, 0},
                            Event::issue(1, 2),
                            Kind::kSwitch,
                            Event::issue(3, 1),
                            Kind::kRead,
                            Kind::kEnd},
                           2, {5});
  d.trace.shapes = {load_of({0})};
  const Prediction got = replay(d, board(), p);
  // Two threads: the first one's result is there at 4 + 4 + 100, after the switch at 12; the second one's,
  // issued at 16, at 120. Both wait from 24 to 108, and the second one from 112 to 120.
  EXPECT_EQ(got.clocks, 124u);
  EXPECT_EQ(got.waiting, (108u - 24) + (120 - 112));
  EXPECT_EQ(got.stalls[static_cast<size_t>(Stall::kTmu)], 0u);
}

TEST(Timing, QueuesOfThreadsAreFinite) {
  Parameters p = nothing();
  p.tmu_return = 100;
  Dispatch d = dispatch_of({Event::issue(0, 1),
                            {Kind::kLookup, 0},
                            Event::issue(1, 1),
                            {Kind::kLookup, 0},
                            Event::issue(2, 1),
                            {Kind::kLookup, 0},
                            Kind::kEnd},
                           1, {5, 5, 5});
  d.trace.shapes = {load_of({0})};
  EXPECT_EQ(replay(d, board(), p).clocks, 12u);
  p.tmu_queue = 2;  // the first is done at 108; the third began to wait at 8
  EXPECT_EQ(replay(d, board(), p).clocks, 112u);
}

TEST(Timing, ASlowTmuHoldsBackItsQpus) {
  Parameters p = nothing();
  p.tmu_input = 2;
  Dispatch d = dispatch_of({Event::issue(0, 1),
                            {Kind::kLookup, 0},
                            Event::issue(1, 1),
                            {Kind::kLookup, 0},
                            Event::issue(2, 1),
                            {Kind::kLookup, 0},
                            Event::issue(3, 1),
                            {Kind::kLookup, 0},
                            Event::issue(4, 1),
                            Kind::kRead,
                            Kind::kRead,
                            Kind::kRead,
                            Kind::kRead,
                            Kind::kEnd},
                           1, {5, 5, 5, 5});
  d.trace.shapes = {load_of({0}, 1, 100)};
  const Prediction got = replay(d, board(), p);
  // Lookups start at 4, 104, 204 and 304 and take 100 each; the last result is there at 404.
  EXPECT_EQ(got.clocks, 408u);
  EXPECT_EQ(got.tmu_busy, 400u);
  EXPECT_EQ(got.bound(), Bound::kTmu);
}

TEST(Timing, StoresAreMergedAndWrittenOnce) {
  Parameters p = nothing();
  p.dram_write = 1000;  // a nanosecond for each byte
  Dispatch d = dispatch_of({Event::issue(0, 1),
                            {Kind::kLookup, 0},
                            Event::issue(1, 1),
                            {Kind::kLookup, 0},
                            Event::issue(2, 1),
                            Kind::kWait,
                            Kind::kEnd},
                           1, {4, 4});
  d.trace.shapes = {store_of({0, 1})};
  const Prediction got = replay(d, board(), p);
  EXPECT_EQ(got.memory.l2_writes, 4u);
  EXPECT_EQ(got.memory.l2_merges, 2u);
  EXPECT_EQ(got.memory.write_bytes, 128u);
  EXPECT_EQ(got.clean_clocks, 128u);
}

TEST(Timing, BarriersHoldASupergroupTogether) {
  Dispatch d;
  d.batches_per_supergroup = 2;
  d.trace.paths = {{Event::issue(0, 1), Kind::kBarrier, Event::issue(1, 1), Kind::kEnd},
                   {Event::issue(0, 100), Kind::kBarrier, Event::issue(100, 1), Kind::kEnd}};
  d.trace.programs = {{.stage = "compute"}};
  d.trace.batches = {{.path = 0, .lines = {}, .fetched = {}}, {.path = 1, .lines = {}, .fetched = {}}};
  EXPECT_EQ(replay(d, board(1, 2), nothing()).clocks, 404u);
  EXPECT_EQ(replay(d, board(1, 2), nothing()).released, 0u);
}

TEST(Timing, ASupergroupThatDoesNotFitIsReleased) {
  Dispatch d = dispatch_of({Event::issue(0, 1), Kind::kBarrier, Event::issue(1, 1), Kind::kEnd}, 8);
  d.batches_per_supergroup = 8;
  EXPECT_GT(replay(d, board(), nothing()).released, 0u);
}

TEST(Timing, SoManySupergroupsAreUnderWay) {
  Dispatch d = dispatch_of({Event::issue(0, 10), Kind::kEnd}, 8);
  d.batches_per_supergroup = 2;
  Parameters p = nothing();
  EXPECT_EQ(replay(d, board(1, 8), p).clocks, 40u);
  p.supergroups = 2;
  EXPECT_EQ(replay(d, board(1, 8), p).clocks, 80u);
  p.supergroups = 1;
  EXPECT_EQ(replay(d, board(1, 8), p).clocks, 160u);
}

TEST(Timing, OfNothingIsNothing) {
  EXPECT_EQ(replay(Dispatch{}, board(), nothing()).clocks, 0u);
  EXPECT_EQ(replay(Dispatch{}, board(), nothing()).bound(), Bound::kLatency);
}

/// The parts of every sum add up, on every board (compute-and-timing.md 15).
/// Lookups near and far, of which some are not waited for.
Dispatch busy_dispatch(uint32_t stride) {
  std::vector<Event> path;
  std::vector<uint32_t> lines;
  for (uint32_t i = 0; i < 200; ++i) {
    path.push_back(Event::issue(4 * i, 1));
    path.emplace_back(Kind::kLookup, i & 1);
    lines.push_back(i * stride);
    if (i % 8 == 0) {
      path.emplace_back(Kind::kUniforms);
      lines.push_back(100'000 + i);
    }
    path.push_back(Event::issue(4 * i + 1, 3));
    if ((i & 1) == 0) path.emplace_back(Kind::kRead);
    if (i % 32 == 0) path.emplace_back(Kind::kSwitch);
  }
  path.emplace_back(Kind::kWait);
  path.emplace_back(Kind::kEnd);
  Dispatch d = dispatch_of(std::move(path), 50, lines);
  for (Batch& batch : d.trace.batches)
    for (uint32_t& line : batch.lines)
      line += static_cast<uint32_t>(&batch - d.trace.batches.data()) * stride;
  d.trace.shapes = {load_of({0, 3, 3000}), store_of({0, 1})};
  d.trace.uniform_words = 400 * 50;
  return d;
}

TEST(Timing, CountersAreConsistent) {
  for (const chip::Profile& profile : chip::profiles())
    for (const uint32_t stride : {17u, 3001u})
      for (const uint64_t times : {1, 7, 1000}) {  // as much as is recorded
        Dispatch d = busy_dispatch(stride);
        d.batches = times * d.trace.batches.size();
        d.instructions = times * 200 * 4 * d.trace.batches.size() + (times == 1 ? 0 : 333);
        const Prediction p = replay(d, profile, parameters_of(profile));
        perf::Counts counts = counters_of(p);
        counts[perf::kQpuActive] = d.instructions;
        derive(&counts);
        EXPECT_THAT(perf::inconsistencies(counts, units_of(profile)), testing::IsEmpty())
            << profile.name << stride << times;
        EXPECT_EQ(p.instructions, d.instructions) << profile.name;
        // And the same again gives the same.
        EXPECT_EQ(counters_of(replay(d, profile, parameters_of(profile))).values, counters_of(p).values);
      }
}

// What the L2T waits for is not what the port does: it serves others meanwhile, and other units read, too.
TEST(Timing, TheL2TStallsForDataOnlyWhileItServesNobody) {
  const chip::Profile& profile = *chip::find_profile("rpi5");
  const perf::Counts c = counters_of(replay(busy_dispatch(3001), profile, parameters_of(profile)));
  EXPECT_GT(c.values[43], 0u);
  EXPECT_LT(c.values[43], c.values[77]);
}

TEST(Timing, ReportNamesWhatBoundsAndWhatIsSlowest) {
  const Dispatch d = dispatch_of({Event::issue(0, 10), Kind::kEnd});
  const std::string text = report(replay(d, board(), nothing()), [](const Prediction::ProgramTime&,
                                                                    uint32_t) { return std::string("nop"); });
  EXPECT_NE(text.find("bound by issue"), std::string::npos) << text;
  EXPECT_NE(text.find("10.0 %      0  nop  (1 times)"), std::string::npos) << text;
}

/// A frame of VideoCore IV is one job of two.
TEST(Timing, OneJobBeforeAnotherTakesBothTimes) {
  const chip::Profile& profile = *chip::find_profile("rpi3");
  const Dispatch d = busy_dispatch(17);
  const Prediction first = replay(d, profile, parameters_of(profile));
  Prediction both = first;
  put_before(first, &both);
  EXPECT_EQ(both.clocks, 2 * first.clocks);
  EXPECT_EQ(both.instructions, 2 * first.instructions);
  EXPECT_EQ(both.memory.misses(), 2 * first.memory.misses());
  EXPECT_EQ(both.programs.size(), 2 * first.programs.size());
  perf::Counts counts = counters_of(both);
  counts[perf::kQpuActive] = both.instructions;
  derive(&counts);
  EXPECT_THAT(perf::inconsistencies(counts, units_of(profile)), testing::IsEmpty());
}

/// Boards list what they have: the one no TMUs beside each other, the other no page table.
TEST(Parameters, AreThoseOfTheBoard) {
  const auto origin_of = [](const char* board, std::string_view name) {
    for (const ParameterRow& row : parameter_rows(*chip::find_profile(board)))
      if (name == row.name) return row.origin;
    return Origin::kNone;
  };
  EXPECT_EQ(origin_of("rpi5", "tmus"), Origin::kNone);
  EXPECT_EQ(origin_of("rpi5", "page_walk"), Origin::kInferred);
  EXPECT_EQ(origin_of("rpi3", "tmus"), Origin::kPublished);
  EXPECT_EQ(origin_of("rpi3", "page_walk"), Origin::kNone);
  EXPECT_EQ(origin_of("rpi3", "l1_ways"), Origin::kMeasured);
  EXPECT_EQ(parameters_of(*chip::find_profile("rpi1")).system_bytes, 131072u);
  EXPECT_EQ(parameters_of(*chip::find_profile("rpi2")).system_bytes, 0u);
  EXPECT_EQ(parameters_of(*chip::find_profile("rpi4")).l1_ways, 16u);
}

}  // namespace
}  // namespace v3d::timing
