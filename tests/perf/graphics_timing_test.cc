/// Rules of the timing model of bin, render and TFU jobs, with clocks computed by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <vector>

#include "gpu/perf/counter_table.h"
#include "gpu/perf/timing/replayer.h"
#include "gpu/perf/timing/report.h"
#include "tests/perf/timing_model.h"

namespace v3d::timing {
namespace {

using Kind = Event::Kind;

/// Programs and paths 0 and 1: vertices, of 50 instructions, and fragments, of `fragment` ones.
Trace trace_of(uint32_t fragment) {
  Trace t;
  t.programs = {{.stage = "vertex"}, {.stage = "fragment", .code = 0x10000}};
  t.paths = {{Event::issue(0, 50), Kind::kEnd}, {Event::issue(0, fragment), Kind::kEnd}};
  return t;
}

uint32_t add_batch(Trace* t, uint32_t program) {
  t->batches.push_back({.path = program, .lines = {}, .program = program, .draw = 0, .fetched = {}});
  return static_cast<uint32_t>(t->batches.size() - 1);
}

/// Tiles with one draw each, of so many batches of vertices and of fragments.
RenderJob job_of(uint32_t tiles, uint32_t vertices, uint32_t fragments, uint32_t fragment_instructions) {
  RenderJob job;
  job.trace = trace_of(fragment_instructions);
  job.draws = {{.vertices = 16 * vertices, .primitives = 1}};
  for (uint32_t i = 0; i < vertices; ++i) add_batch(&job.trace, 0);
  for (uint32_t i = 0; i < tiles; ++i) {
    RenderJob::Segment s{.vertex_batches = {}};
    for (uint32_t v = 0; v < vertices; ++v) s.vertex_batches.push_back(v);
    s.first_batch = static_cast<uint32_t>(job.trace.batches.size());
    s.num_batches = fragments;
    for (uint32_t f = 0; f < fragments; ++f) add_batch(&job.trace, 1);
    job.tiles.push_back({.column = static_cast<uint16_t>(i), .segments = {s}});
  }
  return job;
}

TEST(RenderTiming, TilesAreStoredOneAfterTheOther) {
  RenderJob job;
  job.tiles = {{.stored = 1000, .segments = {}}, {.column = 1, .stored = 1000, .segments = {}}};
  Parameters p = nothing();
  p.tile_write = 1000;  // a nanosecond for each byte
  p.tile_start = 10;
  const Prediction got = replay(job, board(), p);
  EXPECT_EQ(got.clocks, 2u * (1000 + 10));
  EXPECT_EQ(got.memory.tile_stored, 2000u);
  EXPECT_EQ(got.bound(), Bound::kDram);
  ASSERT_EQ(got.spans.size(), 2u);
  EXPECT_EQ(got.spans[1].name, "tile 1,0");
  EXPECT_EQ(got.spans[1].begin, 1010u);
}

TEST(RenderTiming, DepthIsStoredAtARateOfItsOwn) {
  RenderJob job;
  job.tiles = {{.stored = 100, .stored_depth = 10, .segments = {}}};
  Parameters p = nothing();
  p.tile_write = 1000;
  p.depth_write = 3000;
  EXPECT_EQ(replay(job, board(), p).clocks, 100u + 30);
}

TEST(RenderTiming, FragmentsWaitForTheTileBeforeThem) {
  RenderJob job = job_of(2, 0, 1, 10);
  for (RenderJob::Tile& tile : job.tiles) tile.stored = 100;
  Parameters p = nothing();
  p.tile_write = 1000;
  EXPECT_EQ(replay(job, board(1, 4), p).clocks, 2u * (40 + 100));
}

TEST(RenderTiming, LoadsComeBeforeFragments) {
  RenderJob job = job_of(1, 0, 1, 10);
  Parameters p = nothing();
  p.dram_read = 1000;
  const uint64_t without = replay(job, board(), p).clocks;
  job.tiles[0].loaded = 100;
  EXPECT_EQ(replay(job, board(), p).clocks, without + 100);
}

/// 50 instructions of vertices take 200 clocks, 100 of fragments 400: vertices of the second tile hide.
TEST(RenderTiming, VerticesAreShadedAheadOfTheirTile) {
  EXPECT_EQ(replay(job_of(2, 1, 1, 100), board(1, 4), nothing()).clocks, 200u + 400 + 400);
  Parameters p = nothing();
  p.vcd_batches = 1;  // the VPM has room for those of one tile
  EXPECT_EQ(replay(job_of(2, 1, 1, 100), board(1, 4), p).clocks, 200u + 400 + 400);
  EXPECT_EQ(replay(job_of(2, 1, 1, 100), board(1, 1), p).clocks, 200u + 600 + 400) << "beside fragments";
}

/// However little room there is: what a fragment waits for comes.
TEST(RenderTiming, ASegmentMayNeedMoreVerticesThanTheVpmHolds) {
  Parameters p = nothing();
  p.vcd_batches = 2;
  const Prediction got = replay(job_of(3, 30, 1, 10), board(1, 4), p);
  EXPECT_EQ(got.programs[0].batches, 90u);
  EXPECT_EQ(got.programs[1].batches, 3u);
  EXPECT_EQ(got.draws[0].vertex_batches, 90u);
}

TEST(RenderTiming, TheFrontEndTakesTimeForPrimitivesAndQuads) {
  RenderJob job = job_of(1, 0, 2, 1);
  job.tiles[0].segments[0].primitives = 3;
  job.tiles[0].segments[0].quads = 8;
  Parameters p = nothing();
  p.fep_primitive = 10;
  p.fep_quad = 8;  // quarters of a clock
  EXPECT_EQ(replay(job, board(1, 4), p).clocks, 3u * 10 + 8 * 2 + 4);
  job.tiles[0].segments[0].num_batches = 0;  // nothing passes its tests
  EXPECT_EQ(replay(job, board(1, 4), p).clocks, 3u * 10 + 8 * 2);
  EXPECT_EQ(replay(job, board(1, 4), p).units.front_end, 46u);
}

TEST(RenderTiming, TheTileBufferTakesBatchAfterBatch) {
  RenderJob job = job_of(1, 0, 3, 1);
  job.trace.paths[1] = {Event::issue(0, 1), Kind::kTlb, Event::issue(1, 1), Kind::kEnd};
  for (Batch& batch : job.trace.batches) batch.tlb_quads = 4;
  Parameters p = nothing();
  p.tlb_quad = 100;
  // All three come to it at 0; the second and the third wait.
  const Prediction got = replay(job, board(1, 4), p);
  EXPECT_EQ(got.clocks, 1200u);
  EXPECT_EQ(got.units.tlb, 1200u);
  EXPECT_EQ(got.stalls[static_cast<size_t>(Stall::kTlb)], 400u + 800);
  p.tlb_queue = 10'000;
  EXPECT_EQ(replay(job, board(1, 4), p).stalls[static_cast<size_t>(Stall::kTlb)], 0u);
}

TEST(RenderTiming, TexturesTakeTheTmuByQuad) {
  RenderJob job = job_of(1, 0, 1, 1);
  job.trace.paths[1] = {Event::issue(0, 1), {Kind::kLookup, 0}, Event::issue(1, 1), Kind::kRead, Kind::kEnd};
  job.trace.batches[0].lines = {7};
  Shape texture;
  texture.results = 2;
  texture.quads = texture.quad_words = 4;
  texture.texels = 8;  // two times four of each pixel: trilinear
  texture.num_lines = 1;
  texture.lines = {0};
  job.trace.shapes = {texture};
  Parameters p = nothing();
  p.texture_quad = 4;
  p.texture_lookup = 3;
  const Prediction got = replay(job, board(), p);
  EXPECT_EQ(got.tmu_busy, 8u * 4 + 3);
  EXPECT_EQ(got.clocks, 4u + 4 + 36) << "held back by slots of 4 clocks";
}

TEST(RenderTiming, ClocksOfQpusAddUpByDraw) {
  const Prediction got = replay(job_of(4, 2, 5, 30), board(2, 2), nothing());
  EXPECT_EQ(got.draws[0].qpu_clocks, 4u * got.instructions);
  EXPECT_EQ(got.draws[0].fragment_batches, 20u);
  EXPECT_EQ(got.instructions, 4u * (2 * 50 + 5 * 30));
}

BinJob bin_of(uint32_t batches, uint32_t primitives, uint64_t entries) {
  BinJob job;
  job.trace = trace_of(1);
  job.draws = {
      {.vertices = 16 * batches, .primitives = primitives, .num_batches = batches, .entries = entries}};
  for (uint32_t i = 0; i < batches; ++i) add_batch(&job.trace, 0);
  return job;
}

TEST(BinTiming, TheBinnerFollowsTheVertices) {
  Parameters p = nothing();
  p.ptb_primitive = 10;
  p.ptb_entry = 5;
  // 200 clocks for all vertices side by side, then 4 primitives in 6 tiles.
  EXPECT_EQ(replay(bin_of(4, 4, 6), board(1, 4), p).clocks, 200u + 40 + 30);
  // One after the other: what the first ones make is binned meanwhile.
  p.vcd_batches = 1;
  EXPECT_EQ(replay(bin_of(4, 4, 0), board(1, 4), p).clocks, 4u * 200 + 10);
  EXPECT_EQ(replay(bin_of(4, 4, 0), board(1, 4), p).units.binner, 40u);
}

TEST(BinTiming, PrimitivesOutsideCostLess) {
  BinJob job = bin_of(0, 10, 0);
  job.draws[0].outside = 4;
  Parameters p = nothing();
  p.ptb_primitive = 10;
  p.ptb_outside = 3;
  EXPECT_EQ(replay(job, board(1, 4), p).units.binner, 6u * 10 + 4 * 3);
  job.draws[0].outside = 11;  // of what a geometry program made
  EXPECT_EQ(replay(job, board(1, 4), p).units.binner, 10u * 3);
}

TEST(BinTiming, AttributesAreFetched) {
  BinJob job = bin_of(2, 0, 0);
  for (Batch& batch : job.trace.batches) {
    batch.fetched = {1, 2, 3};
    batch.fetched_words = 10;
  }
  Parameters p = nothing();
  p.vcd_word = 4;
  const Prediction got = replay(job, board(1, 4), p);
  EXPECT_EQ(got.units.fetch, 80u);
  EXPECT_EQ(got.clocks, 80u + 200);
  EXPECT_EQ(got.memory.l2_misses[static_cast<size_t>(Client::kVcd)], 3u);
  EXPECT_EQ(got.memory.l2_hits[static_cast<size_t>(Client::kVcd)], 3u);
}

TEST(BinTiming, ListsAreWritten) {
  BinJob job = bin_of(0, 1, 1);
  job.written_bytes = 500;
  Parameters p = nothing();
  p.dram_write = 1000;
  const Prediction got = replay(job, board(), p);
  EXPECT_EQ(got.clocks, 500u);
  EXPECT_EQ(counters_of(got).values[64], 8u) << "transactions of 64 bytes";
}

TEST(TransferTiming, BytesShareTheMemory) {
  Parameters p = nothing();
  p.dram_read = 1000;
  p.dram_write = 2000;
  const Prediction got = replay(Transfer{.read_bytes = 100, .written_bytes = 50}, board(), p);
  EXPECT_EQ(got.clocks, 200u);
  EXPECT_EQ(got.kind, JobKind::kTransfer);
  EXPECT_NE(report(got, [](const Prediction::ProgramTime&, uint32_t) { return std::string(); })
                .find("100 read, 50 written"),
            std::string::npos);
}

TEST(TransferTiming, OthersTakeTheMemoryMeanwhile) {
  Parameters p = nothing();
  p.dram_read = 1000;
  p.dram_others = 250;
  const Prediction got = replay(Transfer{.read_bytes = 100, .written_bytes = 0}, board(), p);
  EXPECT_EQ(got.clocks, 125u) << "a quarter more, which is a fifth of all";
  EXPECT_EQ(got.dram_busy, 100u) << "of its own";
}

/// A job with some of everything, from random numbers.
RenderJob random_job(uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  RenderJob job = job_of(1 + below(12), 1 + below(20), 1 + below(40), 5 + below(60));
  job.trace.shapes = {
      Shape{.results = 1,
            .quad_words = 4,
            .quads = 4,
            .texels = 4,
            .one_line = true,
            .num_lines = 1,
            .lines = {0}},
      Shape{.access = Shape::Access::kStore, .quad_words = 4, .quads = 4, .num_lines = 2, .lines = {0, 1}}};
  job.trace.paths[0].insert(job.trace.paths[0].begin() + 1, {Kind::kUniforms});
  job.trace.paths[1] = {Event::issue(0, 3), {Kind::kLookup, 0}, Event::issue(3, 2),
                        Kind::kSwitch,      Event::issue(5, 1), Kind::kSfu,
                        Kind::kRead,        {Kind::kLookup, 1}, Event::issue(6, 2),
                        Kind::kRep,         Kind::kTlb,         Event::issue(8, 1 + below(9)),
                        Kind::kEnd};
  for (Batch& batch : job.trace.batches) {
    if (batch.program == 0) {
      batch.lines = {below(1000)};
      batch.fetched = {below(5000), 5000 + below(5000)};
      batch.fetched_words = static_cast<uint16_t>(below(20));
    } else {
      batch.lines = {below(100'000), below(100'000)};
      batch.tlb_quads = static_cast<uint16_t>(1 + below(32));
    }
  }
  job.trace.uniform_words = 10 * job.trace.batches.size();
  for (RenderJob::Tile& tile : job.tiles) {
    tile.loaded = below(2) * 16384;
    tile.stored = 16384;
    tile.list_bytes = 8 + below(2000);
    for (RenderJob::Segment& s : tile.segments) s.primitives = s.quads = below(300);
  }
  return job;
}

TEST(RenderTiming, CountersAreConsistentAndTheSameEveryTime) {
  for (const chip::Profile& profile : chip::profiles())
    for (uint32_t seed = 0; seed < 50; ++seed) {
      const RenderJob job = random_job(seed);
      const Prediction p = replay(job, profile, parameters_of(profile));
      perf::Counts counts = counters_of(p);
      counts[perf::kQpuActive] = p.instructions;
      EXPECT_THAT(perf::inconsistencies(counts, units_of(profile)), testing::IsEmpty())
          << profile.name << seed;
      EXPECT_EQ(p.programs[1].batches, job.tiles.size() * job.tiles[0].segments[0].num_batches);
      EXPECT_LE(p.dram_busy, p.clocks) << profile.name << seed;
      EXPECT_LE(p.units.front_end, p.clocks) << profile.name << seed;
      EXPECT_EQ(counters_of(replay(job, profile, parameters_of(profile))).values, counters_of(p).values);
    }
}

/// The table of counters marks those that the model fills, and no others.
perf::Counts counts_of_everything() {
  std::vector<Event> path = {Event::issue(0, 2), Kind::kSfu,         Event::issue(2, 1), Kind::kRep,
                             Event::issue(3, 1), {Kind::kLookup, 0}, Event::issue(4, 1), Kind::kRead,
                             Event::issue(5, 1), {Kind::kLookup, 1}, Event::issue(6, 1), {Kind::kLookup, 1},
                             Event::issue(7, 9), {Kind::kLookup, 2}, Event::issue(0, 8), Kind::kSwitch,
                             Event::issue(8, 1), Kind::kUniforms,    Kind::kRead,        Kind::kEnd};
  Dispatch d;
  d.trace.programs = {{.stage = "compute"}};
  d.trace.paths = {std::move(path)};
  d.trace.batches.assign(8, {.lines = {0, 100'000, 100'000, 50'000, 9'000}, .fetched = {}});
  d.trace.shapes = {
      Shape{.results = 1, .quad_words = 4, .quads = 4, .one_line = true, .num_lines = 1, .lines = {0}},
      Shape{.access = Shape::Access::kStore, .quad_words = 4, .quads = 4, .num_lines = 2, .lines = {0, 1}},
      Shape{.results = 1, .quad_words = 4, .quads = 6, .num_lines = 6, .lines = {0, 64, 128, 192, 256, 320}}};
  d.trace.uniform_words = 32 * 8;
  chip::Profile profile = board(2, 1);
  Parameters p = parameters_of(profile);
  p.tmu_misses = 1;
  p.l2_misses = 2;
  p.code_bytes = 2 * kLineBytes;
  perf::Counts c = counters_of(replay(d, profile, p));
  p.l2_bytes = 4 * 4 * kLineBytes;
  p.tlb_queue = 0;
  BinJob bin = bin_of(4, 4, 6);
  bin.written_bytes = 100;
  for (Batch& batch : bin.trace.batches) batch.fetched = {7};
  c.add(counters_of(replay(bin, profile, p)));
  c.add(counters_of(replay(random_job(1), profile, p)));
  return c;
}

TEST(Timing, EveryModelledCounterCounts) {
  const perf::Counts c = counts_of_everything();
  for (const chip::Generation generation : {chip::Generation::k71, chip::Generation::k42})
    for (size_t i = 0; i < perf::counter_table(generation).size(); ++i) {
      const perf::CounterInfo& info = perf::counter_table(generation)[i];
      const int index = perf::index_in_counts(generation, static_cast<int>(i));
      const bool counts = index >= 0 && c.values[static_cast<size_t>(index)] != 0;
      EXPECT_EQ(counts, info.counts == perf::Class::kModelled)
          << version_text(generation) << " " << i << " " << info.name;
    }
}

TEST(Parameters, AreSetByName) {
  Parameters p = nothing();
  EXPECT_EQ(set_parameter("tile_write=77", &p), "");
  EXPECT_EQ(p.tile_write, 77u);
  EXPECT_EQ(set_parameter("tile_write=0", &p), "");
  for (const char* wrong :
       {"tile_write", "no_such=1", "tile_write=", "tile_write=-1", "tile_write=1e3", "l2_ways=0",
        "instruction=0", "axi_bytes=0", "vcd_batches=0", "l2_bytes=16777217"})
    EXPECT_NE(set_parameter(wrong, &p), "") << wrong;
  EXPECT_EQ(p.l2_ways, nothing().l2_ways);
}

}  // namespace
}  // namespace v3d::timing
