/// What the recorder keeps of lookups and batches.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "gpu/chip/profile.h"
#include "gpu/draw/bin_result.h"
#include "gpu/perf/record/recorder.h"
#include "gpu/perf/record/shape.h"
#include "gpu/perf/record/work_recorder.h"
#include "gpu/qpu/isa/assembler.h"
#include "gpu/qpu/run/thread.h"
#include "tests/qpu/machine.h"

namespace v3d::timing {
namespace {

constexpr uint8_t kLoadWord = 0xff, kLoadFourWords = 0xfc;  // texture.md 2.4: a lane each, regular

tmu::GeneralLookup lookup_of(uint32_t first, uint32_t stride, uint8_t config = kLoadWord) {
  tmu::GeneralLookup lookup;
  lookup.config = config;
  lookup.address = splat(first) + kLaneIndex * stride;
  return lookup;
}

Shape shape_of(const tmu::GeneralLookup& lookup, int results, std::vector<uint32_t>* lines) {
  Shape shape;
  shape.lines = {1, 2, 3};  // of another one
  set_shape(lookup, results, &shape, lines);
  return shape;
}
Shape shape_of(const tmu::TextureLookup& lookup, const tmu::Footprint& footprint, int results,
               std::vector<uint32_t>* lines) {
  Shape shape;
  set_shape(lookup, footprint, results, &shape, lines);
  return shape;
}

TEST(Shape, ARowOfWordsIsOneLine) {
  std::vector<uint32_t> lines;
  const Shape shape = shape_of(lookup_of(0x1000, 4), 1, &lines);
  EXPECT_EQ(shape.access, Shape::Access::kLoad);
  EXPECT_EQ(lines, (std::vector<uint32_t>{0x40}));
  EXPECT_TRUE(shape.one_line);
  EXPECT_EQ(shape.quads, 4);
  EXPECT_EQ(shape.quad_words, 4);
}

TEST(Shape, LanesFarApartHaveALineEach) {
  std::vector<uint32_t> lines;
  const Shape shape = shape_of(lookup_of(0x1000, 4096), 1, &lines);
  EXPECT_EQ(shape.num_lines, 16);
  EXPECT_EQ(lines.back(), 0x40u + 15 * 64);
  EXPECT_EQ(shape.quads, 16) << "four lines in each quad";
  EXPECT_EQ(shape.quad_words, 16);
  EXPECT_EQ(shape.lines.back(), 15 * 64) << "relative to the first";
}

TEST(Shape, VectorsReachOverTheEndOfALine) {
  std::vector<uint32_t> lines;
  const Shape shape = shape_of(lookup_of(0x1030, 64, kLoadFourWords), 4, &lines);
  EXPECT_EQ(lines.size(), 16u) << "16 bytes from the 48th on end with the line";
  const Shape shifted = shape_of(lookup_of(0x1034, 64, kLoadFourWords), 4, &lines);
  EXPECT_EQ(lines.size(), 17u) << "from the 52nd on they do not";
  EXPECT_EQ(shape.results, 4);
  EXPECT_EQ(shifted.quads, 4 * 5);
}

TEST(Shape, LanesThatTakeNoPartTouchNothing) {
  std::vector<uint32_t> lines;
  tmu::GeneralLookup lookup = lookup_of(0x1000, 4096);
  lookup.exec = 0x0003;
  const Shape shape = shape_of(lookup, 1, &lines);
  EXPECT_EQ(lines, (std::vector<uint32_t>{0x40, 0x80}));
  EXPECT_EQ(shape.quads, 2);
}

/// Lines of 16 lanes, each quad's and each different one, by what the words of shape.h say.
struct PlainLines {
  std::vector<uint32_t> lines;
  size_t quads = 0, quad_words = 0;

  PlainLines(const tmu::Footprint& footprint, uint32_t words) {
    for (int quad = 0; quad < kLanes / 4; ++quad) {
      std::vector<uint32_t> own;
      for (const tmu::Footprint::Texels& part : footprint.parts())
        for (int lane = 4 * quad; lane < 4 * quad + 4; ++lane) {
          if (!(part.lanes >> lane & 1)) continue;
          add(&own, part.address[lane] / kLineBytes);
          add(&own, (part.address[lane] + part.bytes - 1) / kLineBytes);
        }
      for (const uint32_t line : own) add(&lines, line);
      quads += own.size();
      quad_words += own.empty() ? 0 : std::max<size_t>(words, own.size());
    }
  }
  static void add(std::vector<uint32_t>* list, uint32_t line) {
    if (std::find(list->begin(), list->end(), line) == list->end()) list->push_back(line);
  }
};

/// Lanes near each other, within one line, and further apart than 64 lines.
TEST(Shape, LinesAreThoseOfTheLanesOneByOne) {
  std::mt19937 random(1);
  const auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  for (int n = 0; n < 2000; ++n) {
    const uint32_t spread = std::array{16u, 256u, 2048u, 1u << 20}[below(4)], base = below(1u << 30);
    const auto address = [&] {
      Lanes at;
      for (int lane = 0; lane < kLanes; ++lane) at[lane] = (base + below(spread)) & ~15u;
      return at;
    };
    tmu::Footprint footprint;
    for (uint32_t part = below(5); part > 0; --part)
      footprint.add(address(), static_cast<LaneMask>(random()), std::array{1u, 4u, 16u, 20u}[below(4)]);
    std::vector<uint32_t> lines;
    const Shape shape = shape_of(tmu::TextureLookup{}, footprint, 1, &lines);
    const PlainLines plain(footprint, 0);
    ASSERT_EQ(lines, plain.lines) << n;
    ASSERT_EQ(shape.quads, plain.quads) << n;
    ASSERT_EQ(shape.quad_words, plain.quad_words) << n;

    tmu::GeneralLookup lookup = lookup_of(0, 0, kLoadFourWords);
    lookup.address = address();
    lookup.exec = static_cast<LaneMask>(random());
    tmu::Footprint accessed;
    accessed.add(lookup.address, lookup.exec, 16);
    const Shape general = shape_of(lookup, 4, &lines);
    const PlainLines plain_general(accessed, 4);
    ASSERT_EQ(lines, plain_general.lines) << n;
    ASSERT_EQ(general.quads, plain_general.quads) << n;
    ASSERT_EQ(general.quad_words, plain_general.quad_words) << n;
  }
}

TEST(Shape, DataMakesAStore) {
  std::vector<uint32_t> lines;
  tmu::GeneralLookup lookup = lookup_of(0x1000, 4);
  lookup.num_data = 1;
  const Shape shape = shape_of(lookup, 0, &lines);
  EXPECT_EQ(shape.access, Shape::Access::kStore);
  EXPECT_EQ(shape.inputs, 2);
}

TEST(Recorder, KeepsNoMoreThanItsBytes) {
  Recorder recorder({.max_bytes = 2 * sizeof(Batch)});
  for (int batch = 0; batch < 2; ++batch) {
    qpu::Thread thread;
    thread.reset();
    recorder.start("compute", thread);
    EXPECT_NE(thread.observer, nullptr);
  }
  EXPECT_EQ(recorder.failure(), "");
  qpu::Thread one_more, another;
  one_more.reset();
  another.reset();
  recorder.start("compute", one_more);
  EXPECT_NE(recorder.failure().find("its events take more than"), std::string::npos) << recorder.failure();
  recorder.start("compute", another);
  EXPECT_EQ(another.observer, nullptr) << "nothing is watched for a record that is given up";
}

/// The kinds of what a batch of the text did, without instructions.
std::vector<Event::Kind> kinds_of(chip::Generation generation, const std::string& text) {
  const qpu::Assembly assembly = qpu::assemble(generation, text + "\nthrsw\nnop\nnop\n");
  EXPECT_TRUE(assembly.errors.empty()) << text;
  qpu::Machine machine(generation);
  std::memcpy(machine.memory().host(qpu::Machine::kCode), assembly.words.data(), assembly.words.size() * 8);
  tmu::Unit unit(machine.memory(), generation);
  machine.t().tmu = &unit;
  Recorder recorder({.generation = generation});
  recorder.start("compute", machine.t());
  EXPECT_EQ(machine.resume(), qpu::Stop::kEnd);
  EXPECT_EQ(recorder.failure(), "");
  const Trace trace = recorder.take();
  std::vector<Event::Kind> kinds;
  for (const Event event : trace.paths.at(trace.batches.at(0).path))
    if (event.kind() != Event::Kind::kIssue) kinds.push_back(event.kind());
  return kinds;
}

TEST(Recorder, SeesASpreadValueUsedAtOnce) {
  using enum Event::Kind;
  EXPECT_EQ(kinds_of(chip::Generation::k71, "mov rep, rf3\nadd rf1, rf0, rf2"), (std::vector{kRep, kEnd}));
  EXPECT_EQ(kinds_of(chip::Generation::k71, "mov rep, rf3\nnop\nadd rf1, rf0, rf2"), (std::vector{kEnd}));
  EXPECT_EQ(kinds_of(chip::Generation::k71, "mov rep, rf3\nadd rf1, rf2, rf2"), (std::vector{kEnd}));
  EXPECT_EQ(kinds_of(chip::Generation::k42, "nop ; mov r5rep, r0\nadd r1, r5, r0"),
            (std::vector{kRep, kEnd}));
}

/// By these clocks batches take turns: what a load is waited for counts, the more the further away it is.
TEST(Recorder, TellsTheClocksOfABatch) {
  const auto clocks_of = [](const std::string& text) {
    const qpu::Assembly assembly = qpu::assemble(chip::Generation::k71, text + "\nthrsw\nnop\nnop\n");
    EXPECT_TRUE(assembly.errors.empty()) << text;
    qpu::Machine machine(chip::Generation::k71);
    std::memcpy(machine.memory().host(qpu::Machine::kCode), assembly.words.data(), assembly.words.size() * 8);
    tmu::Unit unit(machine.memory(), chip::Generation::k71);
    machine.t().tmu = &unit;
    const chip::Profile& profile = *chip::find_profile("rpi5");
    Recorder recorder(
        {.generation = chip::Generation::k71, .profile = &profile, .parameters = parameters_of(profile)});
    recorder.start("compute", machine.t());
    machine.t().budget = assembly.words.size() - 1;
    EXPECT_EQ(machine.resume(), qpu::Stop::kBudget);
    return recorder.clocks(machine.t());
  };
  const Parameters p = parameters_of(*chip::find_profile("rpi5"));
  EXPECT_EQ(clocks_of("nop\nnop"), 4 * 4u);
  const std::string load = "mov tmua, rf1\nnop ; nop ; ldtmu.rf2";
  const uint64_t once = clocks_of(load), twice = clocks_of(load + "\n" + load);
  const uint64_t request = p.tmu_request + p.tmu_quad_words * 4 + p.tmu_return;
  const auto clocks = [](uint64_t ns) { return ns * 960 / 1000; };
  EXPECT_NEAR(static_cast<double>(once),
              static_cast<double>(4 * 4 + request + p.l2_latency + clocks(p.dram_latency + p.page_walk)), 8);
  EXPECT_NEAR(static_cast<double>(twice - once), static_cast<double>(2 * 4 + request), 8);
}

/// An instruction that asks the TMU and takes from it waits after what it asked.
TEST(Recorder, ALookupDoesNotWaitForTheLoadBesideIt) {
  using enum Event::Kind;
  const auto kinds = kinds_of(chip::Generation::k71,
                              "mov tmua, rf1\nmov tmua, rf1 ; nop ; ldtmu.rf2\nnop ; nop ; ldtmu.rf2");
  EXPECT_EQ(kinds, (std::vector{kLookup, kLookup, kRead, kRead, kEnd}));
}

/// Four texels of each lane, as a linear filter takes them: of one row of a texture of four bytes.
tmu::Footprint linear_footprint(uint32_t bytes) {
  tmu::Footprint footprint;
  for (uint32_t texel = 0; texel < 4; ++texel)
    footprint.add(splat(0x1000u) + kLaneIndex * bytes + texel * 0x400, kAllLanes, bytes);
  return footprint;
}

TEST(Shape, TexelsCountByQuadInFours) {
  tmu::TextureLookup lookup;
  std::vector<uint32_t> lines;
  const Shape linear = shape_of(lookup, linear_footprint(4), 2, &lines);
  EXPECT_EQ(linear.access, Shape::Access::kLoad);
  EXPECT_EQ(linear.texels, 4) << "one for each quad";
  EXPECT_EQ(lines.size(), 4u);
  EXPECT_EQ(linear.quads, 16) << "four lines in each quad";
  EXPECT_EQ(shape_of(lookup, linear_footprint(8), 2, &lines).texels, 8) << "of 64 bits";
  tmu::Footprint nearest;
  nearest.add(splat(0x1000u), 0x00ff, 4);
  const Shape half = shape_of(lookup, nearest, 2, &lines);
  EXPECT_EQ(half.texels, 2) << "two quads";
  EXPECT_TRUE(half.one_line);
}

TEST(Shape, ALookupWithoutTexelsTouchesNothing) {
  std::vector<uint32_t> lines;
  EXPECT_EQ(shape_of(tmu::TextureLookup{}, tmu::Footprint{}, 1, &lines).access, Shape::Access::kNothing);
  tmu::Footprint stored;
  stored.add_store(splat(0x1000u), kAllLanes, 4);
  EXPECT_EQ(shape_of(tmu::TextureLookup{}, stored, 0, &lines).access, Shape::Access::kStore);
}

/// Two triangles of four vertices each in a list, of draws of 64 vertices.
draw::BinResult bin_with(const std::vector<std::array<uint32_t, 3>>& triangles) {
  draw::BinResult bin;
  bin.draws.resize(1);
  for (const auto& t : triangles) {
    draw::Primitive p{};
    std::copy(t.begin(), t.end(), p.vertex);
    bin.draws[0].primitives.push_back(p);
  }
  return bin;
}

/// Starts so many batches, which end at once.
void run_batches(qpu::ThreadWatch* watch, const char* stage, int count) {
  for (int i = 0; i < count; ++i) {
    qpu::Thread thread;
    thread.reset();
    watch->start(stage, thread);
  }
}

TEST(WorkRecorder, VerticesAreShadedAgainInEachTileThatHasThem) {
  Recorder threads({});
  WorkRecorder work(threads);
  work.begin_vertices(0, 64, 3);
  run_batches(&threads, "vertex", 4);
  const draw::BinResult bin = bin_with({{0, 1, 2}, {40, 1, 2}, {63, 62, 61}});
  work.add_tiles({2, 2}, 2);
  work.begin_tile(0, 1, 0, 0).list({{0, 0}, {0, 1}}, bin);
  work.begin_tile(1, 0, 1, 0).list({{0, 2}, {0, 0}}, bin);
  const RenderJob job = work.take_render();
  EXPECT_EQ(job.draws[0].num_batches, 4u);
  ASSERT_EQ(job.tiles.size(), 2u);
  const RenderJob::Segment& first = job.tiles[0].segments.at(0);
  EXPECT_EQ(first.primitives, 2u);
  EXPECT_EQ(job.tiles[0].list_bytes, 2 * sizeof(draw::ListEntry));
  EXPECT_EQ(first.vertex_batches, (std::vector<uint32_t>{0})) << "four vertices fit in one batch";
  EXPECT_EQ(job.tiles[1].segments.at(0).vertex_batches, (std::vector<uint32_t>{3})) << "63 came first";
}

/// Has a tile with one draw of so many batches, of two instructions each.
void run_tile(TileWatch& tile, const draw::BinResult& bin, int batches, perf::Counts* front_end) {
  tile.list({{0, 0}}, bin);
  tile.begin_draw(0, *front_end);
  if (tile.threads()) run_batches(tile.threads(), "fragment", batches);
  (*front_end)[perf::kFepValidQuads] += 4 * static_cast<uint64_t>(batches);
  (*front_end)[perf::kFepClippedQuads] += 1;
  (*front_end)[perf::kQpuActive] += 2 * static_cast<uint64_t>(batches);
  tile.end_draw(*front_end);
}

TEST(WorkRecorder, FragmentsAndBytesBelongToTheirTile) {
  Recorder threads({});
  WorkRecorder work(threads);
  work.begin_vertices(0, 3, 1);
  run_batches(&threads, "vertex", 1);
  const draw::BinResult bin = bin_with({{0, 1, 2}});
  work.add_tiles({1, 1}, 2);
  std::array<perf::Counts, 2> front_end;
  for (const uint32_t column : {1u, 0u}) {  // the second one ends first, on another worker
    TileWatch& tile = work.begin_tile(column, column, column, 7);
    tile.moved(false, true, 160 * uint64_t{column});
    run_tile(tile, bin, 2 + static_cast<int>(column), &front_end[column]);
    tile.moved(true, false, 1600);
    tile.moved(true, true, 77);
  }
  const RenderJob job = work.take_render();
  const RenderJob::Tile& second = job.tiles.at(1);
  EXPECT_EQ(second.row, 7);
  EXPECT_EQ(second.loaded, 160u);
  EXPECT_EQ(second.stored, 1600u);
  EXPECT_EQ(second.stored_depth, 77u);
  EXPECT_EQ(job.tiles[0].loaded, 0u);
  EXPECT_EQ(second.segments.at(0).quads, 13u);
  EXPECT_EQ(second.segments[0].live_quads, 12u);
  EXPECT_EQ(second.segments[0].instructions, 6u);
  EXPECT_EQ(second.segments[0].first_batch, 3u) << "after the first tile's";
  EXPECT_EQ(second.segments[0].num_batches, 3u);
  EXPECT_EQ(job.trace.programs.size(), 2u);
}

TEST(WorkRecorder, OfTilesThatAreNotRecordedItKnowsWhatTheyHaveToDo) {
  Recorder threads({});
  WorkRecorder work(threads, {.tiles = 2});
  work.begin_vertices(0, 3, 1);
  run_batches(&threads, "vertex", 1);
  const draw::BinResult bin = bin_with({{0, 1, 2}});
  work.add_tiles(std::vector<uint32_t>(40, 1), 1);
  perf::Counts front_end;
  for (uint32_t i = 0; i < 40; ++i) run_tile(work.begin_tile(i, 0, i, 0), bin, 5, &front_end);
  const RenderJob job = work.take_render();
  EXPECT_EQ(job.trace.batches.size(), 1u + 20 * 5);
  for (const RenderJob::Tile& tile : job.tiles) {
    const RenderJob::Segment& s = tile.segments.at(0);
    EXPECT_EQ(s.num_batches, tile.recorded ? 5u : 0u);
    EXPECT_EQ(s.live_quads, 20u);
    EXPECT_EQ(s.instructions, 10u);
    EXPECT_EQ(s.primitives, 1u);
    EXPECT_EQ(s.vertex_batches.size(), tile.recorded ? 1u : 0u);
  }
}

TEST(WorkRecorder, BatchesOfABinJobBelongToTheirDraw) {
  Recorder threads({});
  WorkRecorder work(threads);
  work.packet();
  for (uint32_t draw = 0; draw < 2; ++draw) {
    work.begin_vertices(draw, 16, 5);
    work.fetch(splat(0x1000u) + kLaneIndex * 32, 0x0003, 12);
    run_batches(&threads, "coordinate", 1);
    work.binned(10 + draw, 3 + draw);
  }
  work.lists_written(77);
  const BinJob job = work.take_bin();
  EXPECT_EQ(job.packets, 1u);
  EXPECT_EQ(job.written_bytes, 77u);
  ASSERT_EQ(job.draws.size(), 2u);
  EXPECT_EQ(job.draws[1].first_batch, 1u);
  EXPECT_EQ(job.draws[1].num_batches, 1u);
  EXPECT_EQ(job.draws[0].entries, 10u);
  EXPECT_EQ(job.draws[1].outside, 4u);
  EXPECT_EQ(job.trace.batches[0].fetched, (std::vector<uint32_t>{0x40})) << "both lanes are in one line";
  EXPECT_EQ(job.trace.batches[0].fetched_words, 3);
  EXPECT_EQ(job.trace.batches[1].draw, 1u);
}

}  // namespace
}  // namespace v3d::timing
