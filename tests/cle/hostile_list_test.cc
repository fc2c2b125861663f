/// Lists, records and programs of random content: nothing may crash, hang or take memory without bound. Each
/// list is reproducible from its seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "gpu/cle/dump.h"
#include "gpu/cle/executor.h"
#include "gpu/qpu/run/program_cache.h"
#include "tests/cle/packet_writer.h"
#include "tests/qpu/engine.h"
#include "tests/vpm/shader_builder.h"
#include "tests/vpm/test_job.h"

namespace v3d::cle {
namespace {

class HostileList : public testing::TestWithParam<int> {
 public:
  HostileList() : test_(GetParam() % 4 == 0 ? profile_42() : chip::default_profile(), GetParam() % 3) {
    random_.seed(static_cast<uint32_t>(GetParam()));
  }

 protected:
  /// Memory full of small numbers, random words and addresses of itself.
  void fill_memory() {
    constexpr uint32_t kWords = 1 << 16;
    memory_ = test_.allocate(4 * kWords);
    for (uint32_t i = 0; i < kWords; ++i)
      test_.memory().store<uint32_t>(memory_ + 4 * i, i < 2000 ? coordinate() : word());
  }
  /// Mostly a float of magnitude 0.5 to 2.
  uint32_t coordinate() {
    if (random_() % 32 == 0) return word();
    const uint32_t bits = 0x3f000000 + (random_() & 0x00ffffff);
    return random_() % 4 == 0 ? bits | 0x80000000 : bits;
  }
  uint32_t word() {
    switch (random_() % 5) {
      case 0:
        return random_();
      case 1:
        return random_() % 40;
      case 2:
        return address();
      case 3:
        return 0x3f800000 ^ (random_() & 0x81ffffff);  // floats around 1
      default:
        return 0x40 | (random_() & 0x00ff3c7f);  // attributes of known types, sizes of a few words
    }
  }
  GpuAddr address() { return random_() % 16 == 0 ? random_() : memory_ + random_() % (1 << 18); }

  /// A record that works, but for a few flipped bits in half of all cases.
  GpuAddr make_records(bool with_gs) {
    const chip::Generation v = test_.job().profile->generation;
    const draw::ShaderCode copy = ShaderBuilder(v).copy_rows(7).build(&test_);
    ShaderBuilder emit(v);
    const uint32_t vertices = random_() % 5, length = 6 + random_() % 3;
    emit.uniform(50, vertices << 16 | (1 + vertices)).store(0, 50);
    for (uint32_t i = 0; i < vertices; ++i) {
      emit.uniform(51, random_() % 2 | length << 8 | (random_() % 4) << 16)
          .store(static_cast<uint8_t>(1 + i), 51);
      emit.uniform(52, random_() % 4);
      for (uint8_t r = 0; r < 6; ++r)
        emit.load_vertex(53, r, 52).uniform(54, 1 + vertices + length * i + r).store_at(54, 53);
    }
    const draw::ShaderCode points = emit.build(&test_);
    std::vector<uint8_t> bytes;
    const auto append = [&bytes](const std::vector<uint8_t>& more) {
      bytes.insert(bytes.end(), more.begin(), more.end());
    };
    if (with_gs) {
      append(make_record(record("Geometry Shader State Record"),
                         {{"Geometry Bin Mode Shader Code Address", points.code},
                          {"Geometry Bin Mode Shader Uniforms Address", points.uniforms},
                          {"Geometry Bin Mode Shader Start in final thread section", 1}}));
      append(make_record(record("Tessellation/Geometry Common Params"),
                         {{"Geometry Shader output format", random_() % 4},
                          {"Geometry Shader Instances", 1 + random_() % 3}}));
      for (int i = 0; i < 2; ++i)
        append(make_record(record("Tessellation/Geometry Shader Params"),
                           {{"GS output segment size in sectors", 6}}));
    }
    append(make_record(v == chip::Generation::k71 ? record("GL Shader State Record", k71)
                                                  : record("GL Shader State Record", k42),
                       {{"Enable clipping", 1},
                        {"Point size in shaded vertex data", random_() % 2},
                        {"Coordinate Shader output VPM segment size", 1},
                        {"Coordinate Shader Code Address", copy.code},
                        {"Coordinate Shader start in final thread section", 1}}));
    for (int i = 0; i < 2; ++i)
      append(make_record(record("GL Shader State Attribute Record"),
                         {{"Address", memory_ + random_() % 5000},
                          {"Vec size", random_() % 4},
                          {"Type", i == 0          ? 2
                                   : random_() % 4 ? 5
                                                   : 1 + random_() % 7},
                          {"Signed int type", 1},
                          {"Read as int/uint", 1},
                          {"Number of values read by Coordinate shader", 4},
                          {"Stride", random_() % 40},
                          {"Instance Divisor", random_() % 3},
                          {"Maximum Index", random_() % 3 == 0 ? random_() : 50u}}));
    for (uint32_t flips = random_() % 2 * (random_() % 4); flips > 0; --flips)
      bytes[random_() % bytes.size()] ^= static_cast<uint8_t>(1u << (random_() % 8));
    return test_.put(bytes);
  }

  /// A packet with random fields. Counts of vertices stay small, but for one in a hundred.
  void add_packet(PacketWriter* list, const PacketInfo& info) {
    std::vector<uint8_t> body(info.length - 1u);
    for (const Field& f : info.fields) {
      if (f.name == nullptr) continue;
      const std::string_view name = f.name;
      uint64_t value = random_() % 3 == 0 ? random_() : random_() % 8;
      if (f.type == FieldType::kAddress) value = address();
      if (f.type == FieldType::kFloat) value = word();
      if (name == "sub-id") value = static_cast<uint8_t>(info.sub_id);
      const bool count = name.find("Length") != name.npos || name.find("Number of") == 0;
      if (count && f.width > 8 && random_() % 100 != 0) value = random_() % 100;
      put_field(body.data(), f, value);
    }
    list->byte(static_cast<uint8_t>(info.opcode));
    for (const uint8_t b : body) list->byte(b);
  }

  PacketWriter random_list() {
    const chip::Generation v = test_.job().profile->generation;
    PacketWriter list(v);
    list.packet("Number of Layers", {{"Number of Layers", 1 + random_() % 3}});
    list.packet("Tile Binning Mode Cfg",
                {{"Width (in pixels)", 1 + random_() % 300}, {"Height (in pixels)", 1 + random_() % 300}});
    std::vector<const PacketInfo*> state, others;
    for (const PacketInfo& p : packet_table::kPackets) {
      if (!(p.generations & set_of(v))) continue;
      const bool is_state = p.opcode >= Opcode::kStencilCfg && p.opcode < Opcode::kNumberOfLayers;
      (is_state ? state : others).push_back(&p);
    }
    for (int i = 0; i < 40; ++i) {
      for (int k = 0; k < 4; ++k) add_packet(&list, *state[random_() % state.size()]);
      if (random_() % 60 == 0) add_packet(&list, *others[random_() % others.size()]);
      if (random_() % 4 == 0) add_feedback(&list);
      if (random_() % 3 != 0) add_sane_state(&list);
      const bool with_gs = random_() % 4 == 0;
      list.packet(with_gs ? "GL Shader State including GS" : "GL Shader State",
                  {{"address", make_records(with_gs)}, {"number of attribute arrays", 2}});
      add_draw(&list);
    }
    return list;
  }

  /// State with which something reaches the tiles.
  void add_sane_state(PacketWriter* list) {
    const bool v71 = test_.job().profile->generation == chip::Generation::k71;
    list->packet("clip_window", {{"Clip Window Width in pixels", 300}, {"Clip Window Height in pixels", 300}})
        .packet("Viewport Offset", {{"Fine X", 100 * 256}, {"Fine Y", 100 * 256}})
        .packet(
            "Clipper XY Scaling",
            {{v71 ? "Viewport Half-Width in 1/64th of pixel" : "Viewport Half-Width in 1/256th of pixel",
              9000.0f},
             {v71 ? "Viewport Half-Height in 1/64th of pixel" : "Viewport Half-Height in 1/256th of pixel",
              -9000.0f}})
        .packet("Cfg Bits", {{"Enable Forward Facing Primitive", 1},
                             {"Enable Reverse Facing Primitive", random_() % 2},
                             {"Direct3D Wireframe triangles mode", random_() % 8 == 0},
                             {"Direct3D 'Point-fill' mode", random_() % 2}});
  }
  void add_draw(PacketWriter* list) {
    constexpr uint8_t kModes[] = {0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11};
    const uint32_t mode = random_() % 200 == 0 ? random_() % 64 : kModes[random_() % std::size(kModes)];
    list->packet("Index Buffer Setup", {{"Address", memory_}, {"Size", random_() % 400}});
    list->packet("Indexed Instanced Prim List", {{"mode", mode},
                                                 {"Index type", random_() % 3},
                                                 {"Instance Length", random_() % 50},
                                                 {"Enable Primitive Restarts", random_() % 2},
                                                 {"Number of Instances", random_() % 3},
                                                 {"Index Offset", random_() % 100}});
    if (random_() % 2 == 0)
      list->packet("Vertex Array Prims",
                   {{"mode", mode}, {"Length", random_() % 100}, {"Index of First Vertex", random_()}});
  }
  void add_feedback(PacketWriter* list) {
    const uint32_t specs = random_() % 4;
    list->packet("Transform Feedback Specs",
                 {{"Number of 16-bit Output Data Specs following", specs}, {"Enable", random_() % 4 != 0}});
    for (uint32_t i = 0; i < specs; ++i)
      list->byte(static_cast<uint8_t>(random_())).byte(static_cast<uint8_t>(random_() & 0x3f));
    // Below everything else: nothing overwrites lists and programs.
    list->packet("Transform Feedback Buffer", {{"Buffer Number", random_() % 4},
                                               {"Buffer Size in 32-bit words", random_() % 1000},
                                               {"Buffer Address", memory_}});
  }

  void run(const PacketWriter& list) {
    qpu::ProgramCache programs(test_.job().profile->generation, qpu::compiler_of_tests());
    test_.job().programs = &programs;
    test_.job().instruction_limit = 10'000;
    const GpuAddr start = list.build(&test_);
    size_t lines = 0;
    dump_list(test_.memory(), start, start + list.size(), *test_.job().profile,
              {.line = [&lines](std::string_view) { ++lines; }});
    EXPECT_GT(lines, 0u);
    const auto result = run_bin_list(test_.job(), start, start + list.size());
    RecordProperty("draws", static_cast<int>(result->draws.size()));
    RecordProperty("error", test_.error());
    for (const auto& tile : result->tiles)
      for (const draw::ListEntry& e : tile) {
        ASSERT_LT(e.draw, result->draws.size());
        const draw::Draw& d = result->draws[e.draw];
        ASSERT_LT(e.primitive, d.primitives.size());
        const draw::Primitive& p = d.primitives[e.primitive];
        ASSERT_LT(p.clipped, static_cast<int32_t>(d.clipped.size()));
        if (d.record->has_gs) continue;
        for (const uint32_t v : p.vertex) ASSERT_LT(v, d.vertices.size());
      }
  }

  std::mt19937 random_;
  TestJob test_;
  GpuAddr memory_ = 0;
};

TEST_P(HostileList, RandomPacketsAndRecords) {
  fill_memory();
  run(random_list());
}

TEST_P(HostileList, RandomBytes) {
  fill_memory();
  PacketWriter list;
  for (int i = 0; i < 2000; ++i)
    list.byte(static_cast<uint8_t>(random_() % (random_() % 8 == 0 ? 256 : 128)));
  run(list);
}

/// V3DEMU_SEEDS=N runs N seeds.
int num_seeds() {
  const char* given = std::getenv("V3DEMU_SEEDS");
  return given != nullptr ? std::max(std::atoi(given), 1) : 60;
}

INSTANTIATE_TEST_SUITE_P(Seeds, HostileList, testing::Range(0, num_seeds()));

}  // namespace
}  // namespace v3d::cle
