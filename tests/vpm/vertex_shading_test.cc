#include "gpu/vpm/vertex_shading.h"

#include <gtest/gtest.h>

#include <set>

#include "gpu/base/work_meter.h"
#include "gpu/mmu/fault_place.h"
#include "gpu/qpu/run/program_cache.h"
#include "tests/base/counting_control.h"
#include "tests/qpu/engine.h"
#include "tests/vpm/shader_builder.h"
#include "tests/vpm/test_job.h"

namespace v3d::vpm {
namespace {

/// A job with a program cache.
struct Stage : TestJob {
  explicit Stage(const chip::Profile& profile = chip::default_profile(), int workers = 0)
      : TestJob(profile, workers), programs(profile.generation, qpu::compiler_of_tests()) {
    job().programs = &programs;
  }
  qpu::ProgramCache programs;
};

/// `words` words per vertex from a buffer of increasing numbers, for both programs.
std::shared_ptr<draw::ShaderRecord> counting_record(Stage* test, uint32_t vertices, uint8_t words) {
  std::vector<uint32_t> data(vertices * words);
  for (uint32_t i = 0; i < data.size(); ++i) data[i] = i;
  auto record = std::make_shared<draw::ShaderRecord>();
  record->num_attributes = 1;
  record->attributes[0] = {.address = test->put(data),
                           .vec_size = words,
                           .type = 2,
                           .cs_words = words,
                           .vs_words = words,
                           .stride = 4u * words,
                           .max_index = vertices - 1};
  record->cs_output_sectors = record->vs_output_sectors = 1;
  record->cs = record->vs = ShaderBuilder(test->job().profile->generation).copy_rows(words).build(test);
  return record;
}

draw::Draw draw_of(std::shared_ptr<draw::ShaderRecord> record, uint32_t vertices) {
  draw::Draw draw;
  draw.record = std::move(record);
  for (uint32_t i = 0; i < vertices; ++i) draw.vertices.push_back({.index = i, .instance = 0});
  return draw;
}

/// Vertices that come one group after the other are those that are kept.
void expect_sink_gets(const JobContext& job, const draw::Draw& draw, Phase phase,
                      const ShadedVertices& want) {
  uint32_t count = ~0u;
  std::vector<uint32_t> words, seen;
  VertexStages(job).shade(draw, phase,
                          {.begin =
                               [&](uint32_t vertices) {
                                 count = vertices;
                                 words.resize((vertices + kLanes) * want.rows);
                                 seen.resize((vertices + kLanes - 1) / kLanes);
                               },
                           .take =
                               [&](uint32_t group, const Lanes* data, uint32_t rows) {
                                 ASSERT_EQ(rows, want.rows);
                                 ++seen[group];
                                 for (uint32_t i = 0; i < kLanes * rows; ++i)
                                   words[group * kLanes * rows + i] = data[i / kLanes][i % kLanes];
                               }});
  ASSERT_EQ(count, want.count);
  EXPECT_EQ(seen, std::vector<uint32_t>(seen.size(), 1));
  for (uint32_t v = 0; v < count; ++v)
    for (uint32_t r = 0; r < want.rows; ++r)
      ASSERT_EQ(words[(v / kLanes * want.rows + r) * kLanes + v % kLanes], want.word(v, r));
}

TEST(VertexShading, ProgramsSeeTheRowsOfTheirVertices) {
  for (const auto* profile : {&chip::default_profile(), &profile_42()}) {
    for (const int workers : {0, 3}) {
      Stage test(*profile, workers);
      constexpr uint32_t kVertices = 1000;
      const draw::Draw draw = draw_of(counting_record(&test, kVertices, 4), kVertices);
      for (const Phase phase : {Phase::kBin, Phase::kRender}) {
        const ShadedVertices shaded = shade(test.job(), draw, phase);
        ASSERT_EQ(test.error(), "");
        ASSERT_EQ(shaded.count, kVertices);
        ASSERT_EQ(shaded.rows, 8u);
        for (uint32_t v = 0; v < kVertices; ++v)
          for (uint32_t r = 0; r < 8; ++r) ASSERT_EQ(shaded.word(v, r), r < 4 ? 4 * v + r : 0u);
        expect_sink_gets(test.job(), draw, phase, shaded);
      }
      EXPECT_GT(test.counts()[perf::kQpuActive], 2u * (kVertices / 16) * 10);
    }
  }
}

TEST(VertexShading, EachPhaseRunsItsOwnProgram) {
  Stage test;
  auto record = counting_record(&test, 4, 1);
  record->vs = ShaderBuilder().uniform(5, 4711).store(0, 5).build(&test);
  record->vs_output_sectors = 2;
  record->vs_instance_id = true;
  const draw::Draw draw = draw_of(record, 4);
  EXPECT_EQ(shade(test.job(), draw, Phase::kBin).word(3, 0), 3u);
  const ShadedVertices vs = shade(test.job(), draw, Phase::kRender);
  EXPECT_EQ(vs.rows, 16u);
  EXPECT_EQ(vs.word(3, 0), 4711u);
}

TEST(VertexShading, HangsAreReportedAndEnd) {
  Stage test;
  test.job().instruction_limit = 100'000;
  auto record = counting_record(&test, 40, 1);
  record->cs = ShaderBuilder().loop_forever().build(&test);
  shade(test.job(), draw_of(record, 40), Phase::kBin);
  EXPECT_TRUE(test.hangs()) << test.error();
  EXPECT_NE(test.error().find("coordinate program at 0x"), std::string::npos);
  EXPECT_NE(test.error().find("does not end, and is at pc 0x"), std::string::npos);

  Stage nowhere;
  auto lost = counting_record(&nowhere, 40, 1);
  lost->cs.code = 0xf0000000;  // reads 0 there, which is no program that ends
  nowhere.job().instruction_limit = 100'000;
  shade(nowhere.job(), draw_of(lost, 40), Phase::kBin);
  EXPECT_TRUE(nowhere.hangs()) << nowhere.error();
  EXPECT_NE(nowhere.error().find("invalid instruction at pc 0xf0000000, word 0x0000000000000000"),
            std::string::npos)
      << nowhere.error();
}

TEST(VertexShading, FaultsNameTheInstruction) {
  for (const auto& [phase, stage] :
       {std::pair(Phase::kBin, "coordinate"), std::pair(Phase::kRender, "vertex")}) {
    Stage test;
    auto record = counting_record(&test, 40, 1);
    record->cs = record->vs = ShaderBuilder().load(4, 0).nop().uniform(5, 1).store(0, 5).build(&test);
    record->cs.uniforms = record->vs.uniforms = TestJob::end();
    shade(test.job(), draw_of(record, 40), phase);
    EXPECT_EQ(test.space().take_faults().first_address, TestJob::end());
    const mmu::FaultPlace place = mmu::take_fault_place(test.space());
    EXPECT_STREQ(place.stage, stage);
    EXPECT_EQ(place.program, record->cs.code);
    EXPECT_EQ(place.instruction, record->cs.code + 16);
  }
}

TEST(VertexShading, CancelledJobsStop) {
  Stage test;
  auto record = counting_record(&test, 40, 1);
  record->cs = ShaderBuilder().loop_forever().build(&test);
  std::thread later([&test] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    test.cancel() = true;
  });
  shade(test.job(), draw_of(record, 40), Phase::kBin);
  later.join();
  EXPECT_EQ(test.error(), "");
}

/// Emits for each input vertex one point of 7 words: the primitive id, the invocation, the vertex's first
/// word.
draw::ShaderCode points_program(Stage* test, uint32_t vertices) {
  ShaderBuilder b(test->job().profile->generation);
  b.load(40, 0).invocation(41);
  b.uniform(50, vertices << 16 | (1 + vertices)).store(0, 50);
  for (uint32_t v = 0; v < vertices; ++v) {
    b.uniform(51, 1 | 7 << 8 | (v + 1) << 16).store(static_cast<uint8_t>(1 + v), 51);
    b.uniform(52, v).load_vertex(53, 0, 52);
    const uint32_t row = 1 + vertices + 7 * v;
    b.uniform(54, row).store_at(54, 40);
    b.uniform(54, row + 1).store_at(54, 41);
    b.uniform(54, row + 2).store_at(54, 53);
  }
  return b.build(test);
}

TEST(GeometryShading, EmittedVerticesComeInOrder) {
  for (const auto* profile : {&chip::default_profile(), &profile_42()}) {
    for (const int workers : {0, 2}) {
      Stage test(*profile, workers);
      auto record = counting_record(&test, 300, 2);
      record->has_gs = true;
      record->reads_primitive_id = true;
      record->gs_invocations = 3;
      record->gs_bin_rows = 32;
      record->gs_bin = points_program(&test, 2);
      draw::Draw draw = draw_of(record, 300);
      draw.gs_input_vertices = 2;
      for (uint32_t p = 0; p < 299; ++p) {
        draw.gs_input.insert(draw.gs_input.end(), {p + 1, p});
        draw.gs_primitive_ids.push_back(1000 + p);
      }
      const ShadedVertices out = shade(test.job(), draw, Phase::kBin);
      ASSERT_EQ(test.error(), "");
      ASSERT_EQ(out.rows, 7u);
      ASSERT_EQ(out.emitted.size(), 299u * 3);
      ASSERT_EQ(out.count, 299u * 3 * 2);
      for (uint32_t item = 0; item < 299 * 3; ++item) {
        ASSERT_EQ(out.emitted[item], 2u);
        for (uint32_t v = 0; v < 2; ++v) {
          const uint32_t vertex = item * 2 + v, primitive = item / 3;
          ASSERT_EQ(out.word(vertex, 0), 1000 + primitive);
          ASSERT_EQ(out.word(vertex, 1), item % 3);
          ASSERT_EQ(out.word(vertex, 2), 2 * (v == 0 ? primitive + 1 : primitive));
          ASSERT_EQ(out.layer[vertex], v + 1);
          ASSERT_EQ(out.strip_start[vertex], 1);
        }
      }
      expect_sink_gets(test.job(), draw, Phase::kBin, out);
    }
  }
}

TEST(GeometryShading, ImpossibleHeadersAreErrors) {
  const uint32_t headers[][2] = {
      {0xffff0000, 0x701},   // more vertices than rows
      {0x00020003, 0xff01},  // a vertex longer than the segment
      {0x0001ffff, 0x701},   // data after the segment
  };
  for (const auto& [first, second] : headers) {
    Stage test;
    auto record = counting_record(&test, 3, 1);
    record->has_gs = true;
    record->gs_bin_rows = 16;
    record->gs_bin =
        ShaderBuilder().uniform(5, first).store(0, 5).uniform(6, second).store(1, 6).store(2, 6).build(&test);
    draw::Draw draw = draw_of(record, 3);
    draw.gs_input_vertices = 3;
    draw.gs_input = {0, 1, 2};
    draw.gs_primitive_ids = {0};
    shade(test.job(), draw, Phase::kBin);
    EXPECT_NE(test.error().find("geometry program"), std::string::npos) << std::hex << first;
  }
}

TEST(VertexShading, LongProgramsLookAtTheJob) {
  Stage test;
  CountingControl control;
  test.job().control = &control;
  test.job().instruction_limit = 1'000'000;
  auto record = counting_record(&test, 4, 1);
  record->cs = ShaderBuilder().loop_forever().build(&test);
  shade(test.job(), draw_of(record, 4), Phase::kBin);
  EXPECT_TRUE(test.hangs()) << test.error();
  EXPECT_GE(control.looks(), test.job().instruction_limit / kInstructionSlice);
}

}  // namespace
}  // namespace v3d::vpm
