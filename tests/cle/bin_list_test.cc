#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "gpu/cle/executor.h"
#include "gpu/qpu/run/program_cache.h"
#include "tests/base/counting_control.h"
#include "tests/cle/packet_writer.h"
#include "tests/qpu/engine.h"
#include "tests/vpm/shader_builder.h"
#include "tests/vpm/test_job.h"

namespace v3d::cle {
namespace {

/// What the pass-through coordinate program reads and writes.
struct Vertex {
  float x = 0, y = 0, z = 0.5f, w = 1;
  int32_t xs = 0, ys = 0;
  float size = 1;
};

constexpr int32_t kHalf = 128 * 64;  // half the frame, 1/64 px

/// Vertex at a pixel position of the 256 x 256 frame.
Vertex at_pixel(float x, float y) {
  Vertex v;
  v.x = x / 128 - 1;
  v.y = y / 128 - 1;
  v.xs = static_cast<int32_t>(std::lround(x * 64)) - kHalf;
  v.ys = static_cast<int32_t>(std::lround(y * 64)) - kHalf;
  return v;
}

/// A bin job: memory, programs, and lists that begin with everything a draw needs.
class BinJob : public TestJob {
 public:
  explicit BinJob(const chip::Profile& profile = chip::default_profile(), int workers = 0)
      : TestJob(profile, workers),
        programs_(profile.generation, qpu::compiler_of_tests()),
        generation_(profile.generation) {
    job().programs = &programs_;
    coordinate_ = ShaderBuilder(generation_).copy_rows(7).build(this);
  }

  /// Shader record whose coordinate program copies 7 words per vertex from a buffer.
  GpuAddr record_for(const std::vector<Vertex>& vertices) {
    const GpuAddr buffer = put(vertices);
    std::vector<uint8_t> bytes =
        make_record(main_record(), {{"Enable clipping", 1},
                                    {"Coordinate Shader output VPM segment size", 1},
                                    {"Coordinate Shader Code Address", coordinate_.code},
                                    {"Coordinate Shader 4-way threadable", 1},
                                    {"Coordinate Shader start in final thread section", 1}});
    add_attributes(buffer, vertices.size(), &bytes);
    return put(bytes);
  }
  void add_attributes(GpuAddr buffer, size_t vertices, std::vector<uint8_t>* bytes) {
    const auto attribute = [&](uint32_t offset, int size) {
      const auto a = make_record(record("GL Shader State Attribute Record"),
                                 {{"Address", buffer + offset},
                                  {"Vec size", size & 3},
                                  {"Type", 2},
                                  {"Number of values read by Coordinate shader", size},
                                  {"Number of values read by Vertex shader", size},
                                  {"Stride", sizeof(Vertex)},
                                  {"Maximum Index", vertices - 1}});
      bytes->insert(bytes->end(), a.begin(), a.end());
    };
    attribute(0, 4);
    attribute(16, 3);
  }
  const RecordInfo& main_record() const {
    return generation_ == chip::Generation::k71 ? record("GL Shader State Record", k71)
                                                : record("GL Shader State Record", k42);
  }

  PacketWriter prefix(int layers = 1) const {
    PacketWriter list(generation_);
    list.packet("Number of Layers", {{"Number of Layers", layers}});
    if (generation_ == chip::Generation::k71)
      list.packet("Tile Binning Mode Cfg", {{"Width (in pixels)", 256},
                                            {"Height (in pixels)", 256},
                                            {"Log2 Tile Width", 3},
                                            {"Log2 Tile Height", 2}});
    else
      list.packet("Tile Binning Mode Cfg", {{"Width (in pixels)", 256},
                                            {"Height (in pixels)", 256},
                                            {"Number of Render Targets", 1},
                                            {"Multisample Mode (4x)", 1}});
    list.packet("Flush VCD cache").packet("Start Tile Binning");
    return list;
  }
  /// Prefix and the state of plain draws.
  PacketWriter list(GpuAddr shader_record, int layers = 1) const {
    PacketWriter l = prefix(layers);
    const bool v71 = generation_ == chip::Generation::k71;
    const float half = 128.0f * (v71 ? 64 : 256);
    l.packet("GL Shader State", {{"address", shader_record}, {"number of attribute arrays", 2}})
        .packet("Cfg Bits", {{"Enable Forward Facing Primitive", 1},
                             {"Enable Reverse Facing Primitive", 1},
                             {"Direct3D Provoking Vertex", 1}})
        .packet("clip_window", {{"Clip Window Width in pixels", 256}, {"Clip Window Height in pixels", 256}})
        .packet(
            "Clipper XY Scaling",
            {{v71 ? "Viewport Half-Width in 1/64th of pixel" : "Viewport Half-Width in 1/256th of pixel",
              half},
             {v71 ? "Viewport Half-Height in 1/64th of pixel" : "Viewport Half-Height in 1/256th of pixel",
              half}})
        .packet("Viewport Offset", {{"Fine X", 128 * 256}, {"Fine Y", 128 * 256}});
    return l;
  }

  std::shared_ptr<draw::BinResult> run(const PacketWriter& l) {
    const GpuAddr start = l.build(this);
    return run_bin_list(job(), start, start + l.size());
  }

 private:
  qpu::ProgramCache programs_;
  chip::Generation generation_;
  draw::ShaderCode coordinate_;
};

/// Points in a row, one per tile of 64 pixels and its repetitions.
std::vector<Vertex> row_of_points(int n) {
  std::vector<Vertex> v;
  for (int i = 0; i < n; ++i) {
    const int column = i % 16, row = i / 16;
    v.push_back(at_pixel(static_cast<float>(8 + 16 * column), static_cast<float>(8 + row)));
  }
  return v;
}

/// (index, instance) of the first vertex of every primitive, draw by draw.
std::vector<std::pair<uint32_t, uint32_t>> first_vertices(const draw::BinResult& r) {
  std::vector<std::pair<uint32_t, uint32_t>> out;
  for (const draw::Draw& d : r.draws)
    for (const draw::Primitive& p : d.primitives) {
      const draw::VertexRef& v = d.vertices[p.vertex[0]];
      out.emplace_back(v.index, v.instance);
    }
  return out;
}
using Refs = std::vector<std::pair<uint32_t, uint32_t>>;

TEST(BinList, ATriangleReachesTheTilesItCovers) {
  BinJob job;
  PacketWriter l = job.list(job.record_for({at_pixel(10, 10), at_pixel(100, 10), at_pixel(10, 60)}));
  l.packet("Vertex Array Prims", {{"mode", 4}, {"Length", 3}}).packet("Flush");
  const auto r = job.run(l);
  ASSERT_EQ(job.error(), "");
  EXPECT_EQ(r->width, 256u);
  EXPECT_EQ(r->tile_width, 64u);
  EXPECT_EQ(r->tile_height, 32u);
  EXPECT_EQ(r->tiles_x, 4u);
  EXPECT_EQ(r->tiles_y, 8u);
  EXPECT_EQ(r->layers, 1u);
  ASSERT_EQ(r->draws.size(), 1u);
  EXPECT_EQ(r->draws[0].vertices.size(), 3u);
  const std::vector<uint32_t> want = {1, 1, 0, 0, 1};  // (100, 10)-(10, 60) leaves tile (1, 1) free
  for (size_t t = 0; t < want.size(); ++t) EXPECT_EQ(r->tiles[t].size(), want[t]) << t;
  EXPECT_EQ(r->tiles[5].size(), 0u);
  EXPECT_EQ(job.counts()[perf::kPtbPrimitivesBinned], 1u);
  EXPECT_GT(job.counts()[perf::kQpuActive], 0u);
}

TEST(BinList, ThePointInTheLastTileOfTheLargestFrame) {
  BinJob job;
  constexpr uint32_t kSize = 7680;
  Vertex v;
  v.x = v.y = 1 - 1.0f / kSize;
  v.xs = v.ys = (kSize / 2) * 64 - 32;
  PacketWriter l;
  l.packet("Number of Layers", {{"Number of Layers", 2}})
      .packet("Tile Binning Mode Cfg", {{"Width (in pixels)", kSize},
                                        {"Height (in pixels)", kSize},
                                        {"Log2 Tile Width", 3},
                                        {"Log2 Tile Height", 3}})
      .packet("GL Shader State", {{"address", job.record_for({v})}, {"number of attribute arrays", 2}})
      .packet("Cfg Bits", {{"Enable Forward Facing Primitive", 1}})
      .packet("clip_window",
              {{"Clip Window Width in pixels", kSize}, {"Clip Window Height in pixels", kSize}})
      .packet("Clipper XY Scaling", {{"Viewport Half-Width in 1/64th of pixel", kSize * 32.0f},
                                     {"Viewport Half-Height in 1/64th of pixel", kSize * 32.0f}})
      .packet("Viewport Offset", {{"Fine X", kSize * 128}, {"Fine Y", kSize * 128}})
      .packet("Vertex Array Prims", {{"mode", 0}, {"Length", 1}});
  const auto r = job.run(l);
  ASSERT_EQ(job.error(), "");
  ASSERT_EQ(r->tiles.size(), 2u * 120 * 120);
  for (size_t t = 0; t < r->tiles.size(); ++t)
    ASSERT_EQ(r->tiles[t].size(), t == 120 * 120 - 1 ? 1u : 0u) << t;
}

TEST(BinList, DrawsSnapshotTheStateBeforeThem) {
  BinJob job;
  const GpuAddr first = job.record_for(row_of_points(4)), second = job.record_for(row_of_points(4));
  PacketWriter l = job.list(first);
  l.packet("Line width", {{"Line width", 2.0f}})
      .packet("Vertex Array Prims", {{"mode", 0}, {"Length", 1}})
      .packet("GL Shader State", {{"address", second}, {"number of attribute arrays", 2}})
      .packet("Line width", {{"Line width", 3.0f}})
      .packet("Occlusion Query Counter", {{"address", 0x5000}})
      .packet("Vertex Array Prims", {{"mode", 0}, {"Length", 1}})
      .packet("Line width", {{"Line width", 4.0f}});
  const auto r = job.run(l);
  ASSERT_EQ(job.error(), "");
  ASSERT_EQ(r->draws.size(), 2u);
  EXPECT_EQ(r->draws[0].state.line_width, 2.0f);
  EXPECT_EQ(r->draws[0].state.occlusion_counter, 0u);
  EXPECT_EQ(r->draws[0].state.shader_record, first);
  EXPECT_EQ(r->draws[1].state.line_width, 3.0f);
  EXPECT_EQ(r->draws[1].state.occlusion_counter, 0x5000u);
  EXPECT_EQ(r->draws[1].state.shader_record, second);
  EXPECT_NE(r->draws[0].record, r->draws[1].record);
}

TEST(BinList, EveryDrawPacket) {
  BinJob job;
  const GpuAddr shader_record = job.record_for(row_of_points(64));
  const GpuAddr indices = job.put<uint16_t>({9, 8, 7, 6, 5, 4, 3, 2, 1, 0});
  const GpuAddr arrays = job.put<uint32_t>({2, 2, 10, 5, 99, 1, 1, 20, 6, 99});  // stride of 5 words
  const GpuAddr indexed = job.put<uint32_t>({2, 1, 3, 30, 7, 0, 5, 0, 0, 0, 1, 2, 9, 0xffffffff, 0});
  const auto with = [&](std::string_view name, std::initializer_list<FieldValue> values) {
    PacketWriter l = job.list(shader_record);
    l.packet("Index Buffer Setup", {{"Address", indices}, {"Size", 20}})
        .packet("Base Vertex Base Instance", {{"Base Vertex", 1}, {"Base Instance", 3}})
        .packet(name, values)
        .packet(name, values);  // base vertex and instance are 0 now
    auto r = job.run(l);
    EXPECT_EQ(job.error(), "");
    return r;
  };
  auto r = with("Vertex Array Prims", {{"mode", 0}, {"Length", 2}, {"Index of First Vertex", 5}});
  EXPECT_EQ(first_vertices(*r), (Refs{{5, 0}, {6, 0}, {5, 0}, {6, 0}}));
  EXPECT_EQ(r->draws[0].call.base_instance, 3u);
  EXPECT_EQ(r->draws[1].call.base_instance, 0u);

  r = with("Vertex Array Instanced Prims",
           {{"mode", 0}, {"Instance Length", 2}, {"Number of Instances", 2}, {"Index of First Vertex", 5}});
  EXPECT_EQ(first_vertices(*r), (Refs{{5, 0}, {6, 0}, {5, 1}, {6, 1}, {5, 0}, {6, 0}, {5, 1}, {6, 1}}));

  r = with("Indexed Prim List", {{"mode", 0}, {"Index type", 1}, {"Length", 2}, {"Index Offset", 2}});
  EXPECT_EQ(first_vertices(*r), (Refs{{9, 0}, {8, 0}, {8, 0}, {7, 0}}));

  r = with("Indexed Instanced Prim List", {{"mode", 0},
                                           {"Index type", 1},
                                           {"Instance Length", 1},
                                           {"Number of Instances", 2},
                                           {"Index Offset", 4}});
  EXPECT_EQ(first_vertices(*r), (Refs{{8, 0}, {8, 1}, {7, 0}, {7, 1}}));
  EXPECT_EQ(r->draws[0].call.base_instance, 3u);

  r = with("Indirect Vertex Array Instanced Prims", {{"mode", 0},
                                                     {"Number of Draw Indirect Array Records", 2},
                                                     {"Address", arrays},
                                                     {"Stride in Multiples of 4 Bytes", 5}});
  const Refs twice = {{10, 0}, {11, 0}, {10, 1}, {11, 1}, {20, 0},
                      {10, 0}, {11, 0}, {10, 1}, {11, 1}, {20, 0}};
  EXPECT_EQ(first_vertices(*r), twice);
  EXPECT_EQ(r->draws[0].call.base_instance, 5u);
  EXPECT_EQ(r->draws[1].call.base_instance, 6u);

  // The second record has no vertices; the third one's vertex offset is -1.
  r = with("Indirect Indexed Instanced Prim List", {{"mode", 0},
                                                    {"Index type", 1},
                                                    {"Number of Draw Indirect Indexed Records", 3},
                                                    {"Address", indexed},
                                                    {"Stride in Multiples of 4 Bytes", 5}});
  const Refs once = {{36, 0}, {35, 0}, {0xffffffff, 0}, {0xffffffff, 1}};
  Refs both = once;
  both.insert(both.end(), once.begin(), once.end());
  EXPECT_EQ(first_vertices(*r), both);
  EXPECT_EQ(r->draws[0].call.base_instance, 7u);
}

TEST(BinList, ModesWithTransformFeedbackAndSingleInstances) {
  BinJob job;
  PacketWriter l = job.list(job.record_for(row_of_points(64)));
  l.packet("Vertex Array Prims", {{"mode", 19}, {"Length", 3}})
      .packet("Vertex Array Single Instance Prims",
              {{"mode", 16}, {"Instance Length", 2}, {"Instance ID", 9}, {"Index of First Vertex", 5}})
      .packet("Flush All State");
  const auto r = job.run(l);
  ASSERT_EQ(job.error(), "");
  EXPECT_EQ(first_vertices(*r), (Refs{{0, 0}, {1, 0}, {5, 9}, {6, 9}}));
  EXPECT_EQ(r->draws[0].vertices_per_primitive, 2);
}

/// Vertices of a coordinate program belong to stream 0.
TEST(BinList, TransformFeedbackOfOtherStreamsAndBufferState) {
  BinJob job;
  const GpuAddr out = job.allocate(64), other = job.allocate(64), state = job.allocate(64);
  PacketWriter l = job.list(job.record_for(row_of_points(8)));
  for (uint32_t i = 0; i < 2; ++i)
    l.packet("Transform Feedback Buffer", {{"Buffer Number", i},
                                           {"Buffer Size in 32-bit words", 10 + i},
                                           {"Buffer Address", i == 0 ? out : other}});
  l.packet("Transform Feedback Specs", {{"Number of 16-bit Output Data Specs following", 2}, {"Enable", 1}});
  l.byte(0).byte(0x01).byte(0).byte(0x51);  // two words to buffer 0; two of stream 1 to buffer 1
  const auto points = [&](uint32_t n) { l.packet("Vertex Array Prims", {{"mode", 0}, {"Length", n}}); };
  points(2);
  l.packet("Primitive Counts Feedback", {{"op", 2}, {"address", state}});
  points(1);
  l.packet("Primitive Counts Feedback", {{"op", 9}, {"address", state}});  // the third point is overwritten
  points(3);
  l.packet("Primitive Counts Feedback", {{"op", 3}, {"address", state + 32}});
  job.run(l);
  ASSERT_EQ(job.error(), "");
  const uint32_t want[] = {6, out + 16, 11, other, 0, 0, 0, 0, 0, out + 40, 11, other, 0, 0, 0, 0};
  for (uint32_t i = 0; i < 16; ++i) EXPECT_EQ(job.memory().load<uint32_t>(state + 4 * i), want[i]) << i;
  const auto x = [](uint32_t point) { return std::bit_cast<uint32_t>(at_pixel(8.0f + 16 * point, 8).x); };
  const uint32_t order[] = {0, 1, 0, 1, 2};
  for (uint32_t i = 0; i < 5; ++i) EXPECT_EQ(job.memory().load<uint32_t>(out + 8 * i), x(order[i])) << i;
  for (uint32_t i = 0; i < 16; ++i) EXPECT_EQ(job.memory().load<uint32_t>(other + 4 * i), 0u);
}

/// 7.1.10: programs may ask for the base vertex and the number of the indirect record.
TEST(BinList, DrawIndexAndBaseVertexAreInputs) {
  chip::Profile profile = chip::default_profile();
  profile.revision = 10;
  BinJob job(profile);
  const draw::ShaderCode program = ShaderBuilder().copy_rows(7).build(&job);
  std::vector<uint8_t> bytes = make_record(record("GL Shader State Record Draw Index", k71),
                                           {{"Enable clipping", 1},
                                            {"Base Instance ID read by coordinate shader", 1},
                                            {"cs_basevertex", 1},
                                            {"cs_drawindex", 1},
                                            {"Vertex ID read by coordinate shader", 1},
                                            {"Coordinate Shader output VPM segment size", 1},
                                            {"Coordinate Shader Code Address", program.code},
                                            {"Coordinate Shader 4-way threadable", 1},
                                            {"Coordinate Shader start in final thread section", 1}});
  job.add_attributes(job.put(row_of_points(2)), 2, &bytes);
  const GpuAddr out = job.allocate(64);
  PacketWriter l = job.list(job.put(bytes));
  const GpuAddr records = job.put<uint32_t>({1, 1, 0, 30, 7, 1, 1, 0, 40, 8});
  const GpuAddr indices = job.put<uint8_t>({2});
  l.packet("Index Buffer Setup", {{"Address", indices}, {"Size", 1}})
      .packet("Transform Feedback Buffer",
              {{"Buffer Number", 0}, {"Buffer Size in 32-bit words", 8}, {"Buffer Address", out}})
      .packet("Transform Feedback Specs",
              {{"Number of 16-bit Output Data Specs following", 1}, {"Enable", 1}});
  l.byte(0).byte(3);  // the first four words
  l.packet("Indirect Indexed Instanced Prim List", {{"mode", 0},
                                                    {"Index type", 0},
                                                    {"Number of Draw Indirect Indexed Records", 2},
                                                    {"Address", records},
                                                    {"Stride in Multiples of 4 Bytes", 5}});
  job.run(l);
  ASSERT_EQ(job.error(), "");
  const uint32_t want[] = {7, 30, 0, 32, 8, 40, 1, 42};  // base instance, base vertex, draw index, vertex id
  for (uint32_t i = 0; i < 8; ++i) EXPECT_EQ(job.memory().load<uint32_t>(out + 4 * i), want[i]) << i;
}

TEST(BinList, ListsHopBetweenBosAndCallSubLists) {
  BinJob job;
  const GpuAddr shader_record = job.record_for(row_of_points(64));
  const auto point = [](PacketWriter& l, uint32_t v) -> PacketWriter& {
    return l.packet("Vertex Array Prims", {{"mode", 0}, {"Length", 1}, {"Index of First Vertex", v}});
  };
  PacketWriter inner, outer, tail;
  point(inner, 3).packet("Return from sub-list");
  const GpuAddr inner_at = inner.build(&job);
  point(outer, 2).packet("Branch to Sub-list", {{"address", inner_at}});
  point(outer, 4).packet("Return from sub-list");
  const GpuAddr outer_at = outer.build(&job);
  point(tail, 6).packet("Flush");
  const GpuAddr tail_at = tail.build(&job);
  PacketWriter head = job.list(shader_record);
  point(head, 1).packet("Branch to Sub-list", {{"address", outer_at}});
  point(head, 5).packet("Branch", {{"address", tail_at}}).packet("NOP");
  const auto r = run_bin_list(job.job(), head.build(&job), tail_at + tail.size());
  ASSERT_EQ(job.error(), "");
  EXPECT_EQ(first_vertices(*r), (Refs{{1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}, {6, 0}}));
}

TEST(BinList, TheEndCountsOnlyOutsideOfSubLists) {
  BinJob job;
  const GpuAddr shader_record = job.record_for(row_of_points(4));
  PacketWriter sub;
  sub.packet("Vertex Array Prims", {{"mode", 0}, {"Length", 1}}).packet("Return from sub-list");
  const GpuAddr end = sub.build(&job);
  PacketWriter l = job.list(shader_record);
  l.packet("Branch to Sub-list", {{"address", end}}).packet("Branch", {{"address", end}});
  const auto r = run_bin_list(job.job(), l.build(&job), end);
  ASSERT_EQ(job.error(), "");
  EXPECT_EQ(r->draws.size(), 1u);
}

TEST(BinList, ErrorsNameThePacketAndItsAddress) {
  const auto error = [](const std::function<void(BinJob&, PacketWriter&)>& make, bool with_state = true) {
    BinJob job;
    const GpuAddr shader_record = job.record_for(row_of_points(4));
    PacketWriter l = with_state ? job.list(shader_record) : PacketWriter();
    make(job, l);
    const GpuAddr start = l.build(&job);
    run_bin_list(job.job(), start, start + l.size());
    return job.error();
  };
  const auto has = [](const char* text) { return testing::HasSubstr(text); };
  EXPECT_THAT(error([](BinJob&, PacketWriter& l) { l.byte(200); }), has("packet 200 (unknown) at 0x"));
  EXPECT_THAT(error([](BinJob&, PacketWriter& l) { l.packet("Halt"); }), has("Halt"));
  EXPECT_THAT(error([](BinJob&, PacketWriter& l) { l.packet("Supertile Coordinates"); }),
              has("Supertile Coordinates"));
  EXPECT_THAT(error([](BinJob&, PacketWriter& l) { l.packet("Return from sub-list"); }),
              has("Return from sub-list"));
  EXPECT_THAT(error([](BinJob&, PacketWriter& l) {
                l.packet("Primitive Counts Feedback", {{"op", 5}});
              }),
              has("op 5"));
  EXPECT_THAT(error([](BinJob&, PacketWriter& l) {
                l.packet("Vertex Array Prims", {{"mode", 7}, {"Length", 3}});
              }),
              has("primitive mode 7"));
  EXPECT_THAT(error([](BinJob&, PacketWriter& l) {
                l.packet("Vertex Array Prims", {{"mode", 255}, {"Length", 3}});
              }),
              has("primitive mode 255"));
  EXPECT_THAT(error([](BinJob&, PacketWriter& l) {
                l.packet("Indexed Prim List", {{"Index type", 3}, {"Length", 3}});
              }),
              has("index type 3"));
  EXPECT_THAT(error([](BinJob& j, PacketWriter& l) {
                l = j.prefix();
                l.packet("Vertex Array Prims");
              }),
              has("before GL Shader State"));
  EXPECT_THAT(error([](BinJob&, PacketWriter& l) { l.packet("Vertex Array Prims"); }, false),
              has("before Tile Binning Mode Cfg"));
  EXPECT_THAT(error(
                  [](BinJob&, PacketWriter& l) {
                    l.packet("Tile Binning Mode Cfg", {{"Log2 Tile Width", 5}});
                  },
                  false),
              has("tiles larger"));
  EXPECT_THAT(error(
                  [](BinJob&, PacketWriter& l) {
                    l.packet("Number of Layers", {{"Number of Layers", 256}})
                        .packet("Tile Binning Mode Cfg",
                                {{"Width (in pixels)", 65536}, {"Height (in pixels)", 65536}});
                  },
                  false),
              has("limit"));
  EXPECT_THAT(error([](BinJob& j, PacketWriter& l) {
                l.packet("GL Shader State including GS",
                         {{"address", j.allocate(512)}, {"number of attribute arrays", 1}})
                    .packet("Transform Feedback Specs",
                            {{"Number of 16-bit Output Data Specs following", 1}, {"Enable", 1}});
                l.byte(0).byte(0x80);
                l.packet("Vertex Array Prims");
              }),
              has("stream 2"));
}

TEST(BinList, ListsThatNeverEndAreHangs) {
  BinJob job;
  const GpuAddr at = job.allocate(64);
  PacketWriter l;
  l.packet("NOP").packet("Branch", {{"address", at}});
  job.memory().write(at, l.bytes().data(), l.size());
  run_bin_list(job.job(), at, at + 60);
  EXPECT_TRUE(job.hangs()) << job.error();

  BinJob deep;
  const GpuAddr self = deep.allocate(64);
  PacketWriter call;
  call.packet("Branch to Sub-list", {{"address", self}});
  deep.memory().write(self, call.bytes().data(), call.size());
  run_bin_list(deep.job(), self, self + 60);
  EXPECT_THAT(deep.error(), testing::HasSubstr("nested"));

  BinJob cancelled;
  cancelled.cancel() = true;
  run_bin_list(cancelled.job(), self, self + 60);
  EXPECT_EQ(cancelled.error(), "");
}

TEST(BinList, AbsurdDrawsEndSoon) {
  const auto hangs = [](std::string_view name, std::initializer_list<FieldValue> values) {
    BinJob job;
    // Nothing to see: culled, but all of it has to be looked at.
    PacketWriter l = job.list(job.record_for(row_of_points(64)));
    l.packet("Index Buffer Setup", {{"Address", job.allocate(64)}, {"Size", 16}}).packet(name, values);
    job.run(l);
    return job.hangs();
  };
  EXPECT_TRUE(hangs("Vertex Array Prims", {{"mode", 4}, {"Length", ~0u}}));
  EXPECT_TRUE(hangs("Vertex Array Instanced Prims",
                    {{"mode", 4}, {"Instance Length", 3}, {"Number of Instances", ~0u}}));
  EXPECT_TRUE(hangs("Indexed Prim List", {{"mode", 4}, {"Index type", 2}, {"Length", 0x7fffffff}}));
  EXPECT_TRUE(
      hangs("Indirect Vertex Array Instanced Prims",
            {{"mode", 4}, {"Number of Draw Indirect Array Records", ~0u}, {"Address", TestJob::end() - 16}}));
}

TEST(BinList, LongDrawsSpreadOverThePool) {
  for (const int workers : {0, 3}) {
    BinJob job(chip::default_profile(), workers);
    constexpr uint32_t kTriangles = 40'000;
    std::vector<Vertex> vertices;
    for (uint32_t i = 0; i < kTriangles; ++i) {
      const uint32_t column = i % 200, row = i / 200;
      const auto x = static_cast<float>(column), y = static_cast<float>(row);
      vertices.insert(vertices.end(), {at_pixel(x, y), at_pixel(x + 2, y), at_pixel(x, y + 2)});
    }
    PacketWriter l = job.list(job.record_for(vertices));
    l.packet("Vertex Array Prims", {{"mode", 4}, {"Length", 3 * kTriangles}});
    const auto r = job.run(l);
    ASSERT_EQ(job.error(), "");
    EXPECT_EQ(r->draws.size(), 2u);
    size_t primitives = 0, last = 0;
    for (const draw::Draw& d : r->draws) primitives += d.primitives.size();
    EXPECT_EQ(primitives, kTriangles);
    for (const auto& tile : r->tiles)
      for (size_t i = 0; i < tile.size(); ++i) {
        const size_t order = size_t{tile[i].draw} << 32 | tile[i].primitive;
        if (i > 0) {
          ASSERT_GT(order, last);
        }
        last = order;
      }
  }
}

TEST(BinList, VerticesOfCulledPrimitivesAreDropped) {
  BinJob job;
  std::vector<Vertex> v = {at_pixel(-900, 8), at_pixel(-900, 9), at_pixel(-901, 8),
                           at_pixel(8, 8),    at_pixel(20, 8),   at_pixel(8, 20)};
  PacketWriter l = job.list(job.record_for(v));
  l.packet("Vertex Array Prims", {{"mode", 4}, {"Length", 3}});  // nothing of this one is left
  l.packet("Vertex Array Prims", {{"mode", 4}, {"Length", 6}});
  const auto r = job.run(l);
  ASSERT_EQ(r->draws.size(), 1u);
  ASSERT_EQ(r->draws[0].vertices.size(), 3u);
  EXPECT_EQ(r->draws[0].vertices[0].index, 3u);
  ASSERT_EQ(r->draws[0].primitives.size(), 1u);
  EXPECT_EQ(r->draws[0].primitives[0].vertex[2], 2u);
  EXPECT_EQ(r->draws[0].primitives[0].primitive_id, 1u);
  EXPECT_EQ(job.counts()[perf::kPtbPrimitivesOutside], 2u);
}

TEST(BinList, TransformFeedbackWritesWhileTheListRuns) {
  BinJob job;
  std::vector<Vertex> v = row_of_points(4);
  for (size_t i = 0; i < v.size(); ++i) v[i].size = static_cast<float>(10 + i);
  const GpuAddr out = job.allocate(256), counts = job.allocate(64);
  PacketWriter l = job.list(job.record_for(v));
  l.packet("Cfg Bits", {})  // rasteriser discard
      .packet("Transform Feedback Specs",
              {{"Number of 16-bit Output Data Specs following", 1}, {"Enable", 1}})
      .byte(6)
      .byte(0 | 1 << 4)  // one word to buffer 1
      .packet("Transform Feedback Buffer",
              {{"Buffer Number", 1}, {"Buffer Size in 32-bit words", 60}, {"Buffer Address", out}})
      .packet("Vertex Array Prims", {{"mode", 5}, {"Length", 4}})
      .packet("Transform Feedback Flush and Count")
      .packet("Primitive Counts Feedback", {{"op", 1}, {"address", counts}})
      .packet("Wait for transform feedback", {{"Block count", 255}})
      .packet("Transform Feedback Specs")
      .packet("Vertex Array Prims", {{"mode", 5}, {"Length", 4}})
      .packet("Flush");
  const auto r = job.run(l);
  ASSERT_EQ(job.error(), "");
  EXPECT_EQ(r->draws.size(), 0u);
  const float want[] = {10, 11, 12, 12, 11, 13, 0};
  for (uint32_t i = 0; i < 7; ++i) EXPECT_EQ(job.memory().load<float>(out + 4 * i), want[i]) << i;
  const uint32_t counters[] = {0, 6, 0, 0, 2, 2, 0};
  for (uint32_t i = 0; i < 7; ++i) EXPECT_EQ(job.memory().load<uint32_t>(counts + 4 * i), counters[i]) << i;
}

TEST(BinList, GeometryShadersChooseTheLayer) {
  BinJob job;
  // Each input point becomes a triangle strip of three vertices in layer 2, at the point and 8 px beside it.
  constexpr uint32_t kStep = 8 * 64;
  ShaderBuilder gs;
  gs.uniform(50, 3 << 16 | 4).store(0, 50);
  gs.uniform(52, 0);
  for (uint8_t r = 0; r < 6; ++r) gs.load_vertex(static_cast<uint8_t>(20 + r), r, 52);
  gs.uniform(30, kStep);
  gs.integer_add(31, 24, 30).integer_add(32, 25, 30);
  for (uint8_t v = 0; v < 3; ++v) {
    gs.uniform(51, (v == 0) | 7 << 8 | 2 << 16).store(static_cast<uint8_t>(1 + v), 51);
    for (uint8_t r = 0; r < 6; ++r) {
      const uint8_t source = r == 4 && v == 1 ? 31 : r == 5 && v == 2 ? 32 : static_cast<uint8_t>(20 + r);
      gs.uniform(54, 4u + 7 * v + r).store_at(54, source);
    }
  }
  const draw::ShaderCode code = gs.build(&job);
  std::vector<uint8_t> bytes;
  const auto append = [&bytes](const std::vector<uint8_t>& more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
  };
  append(make_record(record("Geometry Shader State Record"),
                     {{"Geometry Bin Mode Shader Code Address", code.code},
                      {"Geometry Bin Mode Shader Uniforms Address", code.uniforms},
                      {"Geometry Bin Mode Shader Start in final thread section", 1}}));
  append(make_record(record("Tessellation/Geometry Common Params"),
                     {{"Geometry Shader output format", 2}, {"Geometry Shader Instances", 1}}));
  for (int i = 0; i < 2; ++i)
    append(make_record(record("Tessellation/Geometry Shader Params"),
                       {{"GS output segment size in sectors", 4}}));
  const GpuAddr plain = job.record_for(row_of_points(40));
  std::vector<uint8_t> main(job.main_record().length + 32);
  job.memory().read(plain, main.data(), main.size());
  append(main);
  PacketWriter l = job.list(job.put(bytes), 3);
  l.packet("GL Shader State including GS", {{"address", job.put(bytes)}, {"number of attribute arrays", 2}})
      .packet("Vertex Array Prims", {{"mode", 0}, {"Length", 40}});
  const auto r = job.run(l);
  ASSERT_EQ(job.error(), "");
  ASSERT_EQ(r->draws.size(), 1u);
  const draw::Draw& d = r->draws[0];
  EXPECT_EQ(d.vertices_per_primitive, 3);
  EXPECT_EQ(d.gs_input_vertices, 1);
  EXPECT_EQ(d.primitives.size(), 40u);
  EXPECT_EQ(d.primitives[7].vertex[0], 21u);
  EXPECT_EQ(d.primitives[7].primitive_id, 7u);
  const size_t per_layer = r->tiles_x * r->tiles_y;
  for (size_t t = 0; t < 2 * per_layer; ++t) EXPECT_TRUE(r->tiles[t].empty());
  EXPECT_FALSE(r->tiles[2 * per_layer].empty());
}

TEST(BinList, Version42DerivesTheTileSize) {
  BinJob job(profile_42());
  std::vector<Vertex> v = {at_pixel(10, 10), at_pixel(100, 10), at_pixel(10, 60)};
  for (Vertex& x : v) x.xs *= 4, x.ys *= 4;  // 1/256 px
  PacketWriter l = job.list(job.record_for(v));
  l.packet("Vertex Array Prims", {{"mode", 4}, {"Length", 3}});
  const auto r = job.run(l);
  ASSERT_EQ(job.error(), "");
  EXPECT_EQ(r->tile_width, 32u);  // one target, 32 bpp, 4x
  EXPECT_EQ(r->tile_height, 32u);
  ASSERT_EQ(r->draws.size(), 1u);
  EXPECT_EQ(r->tiles[0].size(), 1u);
  EXPECT_EQ(r->tiles[3].size(), 1u);
  EXPECT_EQ(r->tiles[4].size(), 0u);
}

TEST(BinList, WhatItMakesIsChargedAsItGrows) {
  const auto list_of = [](BinJob& job) {
    PacketWriter l = job.list(job.record_for({at_pixel(0, 0), at_pixel(250, 0), at_pixel(0, 250)}), 256);
    for (int n = 0; n < 2000; ++n) l.packet("Vertex Array Prims", {{"mode", 4}, {"Length", 3}});
    l.packet("Flush");
    return l;
  };
  BinJob job;
  CountingControl control;
  job.job().control = &control;
  const auto result = job.run(list_of(job));
  ASSERT_EQ(job.error(), "");
  uint64_t bytes = result->tiles.size() * sizeof(result->tiles[0]);
  for (const auto& list : result->tiles) bytes += list.size() * sizeof(draw::ListEntry);
  bytes += result->draws.size() * sizeof(draw::Draw);
  EXPECT_GE(control.taken() + 4096, bytes);
  EXPECT_LT(control.taken(), 2 * bytes);

  BinJob poor;
  CountingControl purse;
  purse.room = 300'000;
  poor.job().control = &purse;
  poor.run(list_of(poor));
  EXPECT_THAT(poor.error(), testing::HasSubstr("out of memory"));
  EXPECT_LE(purse.taken(), purse.room);
}

}  // namespace
}  // namespace v3d::cle
