#include "gpu/cle/render_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <random>

#include "gpu/chip/profile.h"
#include "gpu/cle/executor.h"
#include "gpu/qpu/run/program_cache.h"
#include "tests/cle/packet_writer.h"
#include "tests/qpu/engine.h"
#include "tests/vpm/test_job.h"

namespace v3d::cle {
namespace {

using testing::HasSubstr;

constexpr uint32_t kRaster = 0, kRgba8 = 27;

struct Frame {
  uint32_t width, height;
  uint32_t log2_tile = 3;  // 64 px
  uint32_t clear = 0x80402010;
  uint32_t targets = 1;
};

void add_config(PacketWriter& list, const Frame& f) {
  list.packet("Tile Rendering Mode Cfg (Common)", {{"Number of Render Targets", f.targets},
                                                   {"Image Width (pixels)", f.width},
                                                   {"Image Height (pixels)", f.height},
                                                   {"Log2 Tile Width", f.log2_tile},
                                                   {"Log2 Tile Height", f.log2_tile}});
  for (uint32_t rt = 0; rt < f.targets; ++rt)
    list.packet("Tile Rendering Mode Cfg (Render Target Part1)", {{"Render Target number", rt},
                                                                  {"Stride", 32},
                                                                  {"Internal Type and Clamping", 8},
                                                                  {"Clear Color low bits", f.clear + rt}});
  list.packet("Tile Rendering Mode Cfg (ZS Clear Values)",
              {{"Z Clear Value", std::bit_cast<uint32_t>(1.0f)}});
  list.packet("Tile List Initial Block Size");
}

void add_dummy_tile(PacketWriter& list, bool clear) {
  list.packet("Tile Coordinates")
      .packet("End of Loads")
      .packet("Store Tile Buffer General", {{"Buffer to Store", 8}});
  if (clear) list.packet("Clear Render Targets");
  list.packet("End of Tile Marker");
}

FieldValue address(GpuAddr a) { return {"Address", a}; }

void add_store(PacketWriter& list, uint32_t buffer, GpuAddr at, uint32_t stride, bool clear_after = false) {
  list.packet("Store Tile Buffer General", {{"Buffer to Store", buffer},
                                            {"Memory Format", kRaster},
                                            {"Output Image Format", kRgba8},
                                            {"Clear buffer being stored", clear_after},
                                            {"Height in UB or Stride", stride},
                                            address(at)});
}

class RenderList : public testing::TestWithParam<int> {
 public:
  RenderList()
      : test_(chip::default_profile(), GetParam()),
        programs_(chip::Generation::k71, qpu::compiler_of_tests()) {
    test_.job().programs = &programs_;
  }

  /// Generic list around the commands that `body` adds.
  void add_generic(PacketWriter& list, const std::function<void(PacketWriter&)>& body) {
    PacketWriter generic;
    generic.packet("Tile Coordinates Implicit");
    body(generic);
    generic.packet("End of Tile Marker").packet("Return from sub-list");
    const GpuAddr at = test_.put(generic.bytes());
    list.packet("Start Address of Generic Tile List", {{"start", at}, {"end", at + generic.size()}});
  }
  void add_supertiles(PacketWriter& list, const Frame& f, uint32_t size, uint32_t columns, uint32_t rows) {
    const uint32_t tile = 8u << f.log2_tile;
    list.packet("Multicore Rendering Supertile Cfg",
                {{"Supertile Width in Tiles", size},
                 {"Supertile Height in Tiles", size},
                 {"Total Frame Width in Supertiles", columns},
                 {"Total Frame Height in Supertiles", rows},
                 {"Total Frame Width in Tiles", (f.width + tile - 1) / tile},
                 {"Total Frame Height in Tiles", (f.height + tile - 1) / tile},
                 {"Number of Bin Tile Lists", 1}});
  }
  static void add_supertile(PacketWriter& list, uint32_t column, uint32_t row) {
    list.packet("Supertile Coordinates",
                {{"column number in supertiles", column}, {"row number in supertiles", row}});
  }

  void run(const PacketWriter& list) {
    const GpuAddr start = test_.put(list.bytes());
    run_render_list(test_.job(), start, start + list.size(), 0, nullptr);
  }
  std::string error() const { return test_.error(); }
  uint32_t pixel(GpuAddr image, uint32_t stride, uint32_t x, uint32_t y) const {
    return test_.memory().load<uint32_t>(image + y * stride + 4 * x);
  }

  TestJob test_;
  qpu::ProgramCache programs_;
};
INSTANTIATE_TEST_SUITE_P(Workers, RenderList, testing::Values(0, 3));

TEST_P(RenderList, ClearsAndStoresTheFrameOnly) {
  const Frame frame = {.width = 150, .height = 70};
  const uint32_t stride = 160 * 4, rows = 80;
  const GpuAddr image = test_.put(std::vector<uint32_t>(160 * rows, 0x11223344));
  PacketWriter list;
  add_config(list, frame);
  add_supertiles(list, frame, 2, 2, 1);
  add_dummy_tile(list, true);
  add_dummy_tile(list, false);
  list.packet("Flush VCD cache").packet("Multicore Rendering Tile List Set Base");
  add_generic(list, [&](PacketWriter& g) {
    g.packet("End of Loads").packet("Branch to Implicit Tile List");
    add_store(g, 0, image, stride, true);
    g.packet("Clear Render Targets");
  });
  add_supertile(list, 0, 0);
  add_supertile(list, 1, 0);
  list.packet("End of rendering");
  run(list);
  EXPECT_EQ(error(), "");
  for (uint32_t y = 0; y < rows; ++y)
    for (uint32_t x = 0; x < 160; ++x)
      ASSERT_EQ(pixel(image, stride, x, y), x < 150 && y < 70 ? frame.clear : 0x11223344u) << x << " " << y;
  EXPECT_EQ(test_.counts()[perf::kTlbWordsRead], 0u);
}

TEST_P(RenderList, OnlyListedSupertilesAreTouched) {
  const Frame frame = {.width = 64, .height = 64, .log2_tile = 1};  // 16 px: 4x4 tiles
  const GpuAddr image = test_.put(std::vector<uint32_t>(64 * 64, 7));
  PacketWriter list;
  add_config(list, frame);
  add_dummy_tile(list, true);
  add_supertiles(list, frame, 3, 2, 2);
  add_generic(list, [&](PacketWriter& g) { add_store(g, 0, image, 256); });
  add_supertile(list, 1, 0);  // tiles (3, 0) to (3, 2); the rest of it is outside of the frame
  list.packet("End of rendering");
  run(list);
  EXPECT_EQ(error(), "");
  for (uint32_t y = 0; y < 64; ++y)
    for (uint32_t x = 0; x < 64; ++x)
      ASSERT_EQ(pixel(image, 256, x, y), x >= 48 && y < 48 ? frame.clear : 7u) << x << " " << y;
}

TEST_P(RenderList, LoadsThenStoresElsewhereAndStartsTheNextTileClear) {
  const Frame frame = {.width = 48, .height = 16, .log2_tile = 1, .targets = 2};
  std::vector<uint32_t> pattern(48 * 16);
  for (size_t i = 0; i < pattern.size(); ++i) pattern[i] = static_cast<uint32_t>(i * 2654435761u);
  const GpuAddr from = test_.put(pattern), to = test_.put(std::vector<uint32_t>(48 * 16)),
                second = test_.put(std::vector<uint32_t>(48 * 16));
  PacketWriter list;
  add_config(list, frame);
  add_dummy_tile(list, true);
  add_supertiles(list, frame, 1, 3, 1);
  add_generic(list, [&](PacketWriter& g) {
    g.packet("Load Tile Buffer General", {{"Buffer to Load", 0},
                                          {"Memory Format", kRaster},
                                          {"Input Image Format", kRgba8},
                                          {"Height in UB or Stride", 48 * 4},
                                          address(from)});
    g.packet("End of Loads");
    add_store(g, 0, to, 48 * 4);
    add_store(g, 1, second, 48 * 4);
  });
  for (uint32_t i = 0; i < 3; ++i) add_supertile(list, i, 0);
  list.packet("End of rendering");
  run(list);
  EXPECT_EQ(error(), "");
  for (uint32_t i = 0; i < 48 * 16; ++i) {
    ASSERT_EQ(test_.memory().load<uint32_t>(to + 4 * i), pattern[i]);
    ASSERT_EQ(test_.memory().load<uint32_t>(second + 4 * i), frame.clear + 1);
  }
}

/// The tile buffer keeps what an explicit tile put into it (vkCmdFillBuffer relies on it).
TEST_P(RenderList, ExplicitTileSetsTheContents) {
  const Frame frame = {.width = 32, .height = 16, .log2_tile = 1};
  std::vector<uint32_t> pattern(16 * 16, 0xabcdef01);
  const GpuAddr from = test_.put(pattern), to = test_.put(std::vector<uint32_t>(32 * 16));
  PacketWriter list;
  add_config(list, frame);
  list.packet("Tile Coordinates");
  list.packet("Load Tile Buffer General", {{"Memory Format", kRaster},
                                           {"Input Image Format", kRgba8},
                                           {"Height in UB or Stride", 16 * 4},
                                           address(from)});
  list.packet("End of Loads").packet("End of Tile Marker");
  add_supertiles(list, frame, 2, 1, 1);
  add_generic(list, [&](PacketWriter& g) { add_store(g, 0, to, 32 * 4); });
  add_supertile(list, 0, 0);
  run(list);  // ends at its end address, without End of rendering
  EXPECT_EQ(error(), "");
  for (uint32_t i = 0; i < 32 * 16; ++i) ASSERT_EQ(test_.memory().load<uint32_t>(to + 4 * i), 0xabcdef01u);
}

TEST_P(RenderList, ClearInTheMiddleOfATileCounts) {
  const Frame frame = {.width = 16, .height = 16, .log2_tile = 1};
  const GpuAddr from = test_.put(std::vector<uint32_t>(256, 5)), a = test_.put(std::vector<uint32_t>(256)),
                b = test_.put(std::vector<uint32_t>(256));
  PacketWriter list;
  add_config(list, frame);
  add_supertiles(list, frame, 1, 1, 1);
  add_generic(list, [&](PacketWriter& g) {
    g.packet("Load Tile Buffer General",
             {{"Input Image Format", kRgba8}, {"Height in UB or Stride", 64}, address(from)});
    add_store(g, 0, a, 64, true);
    add_store(g, 0, b, 64);
  });
  add_supertile(list, 0, 0);
  list.packet("End of rendering");
  run(list);
  EXPECT_EQ(error(), "");
  EXPECT_EQ(test_.memory().load<uint32_t>(a), 5u);
  EXPECT_EQ(test_.memory().load<uint32_t>(b + 1020), frame.clear);
}

TEST_P(RenderList, TheSemaphoreCountsUpInTheBinList) {
  PacketWriter bin_list, list;
  bin_list.packet("Increment Semaphore").packet("Increment Semaphore");
  const GpuAddr at = test_.put(bin_list.bytes());
  const auto bin = run_bin_list(test_.job(), at, at + bin_list.size());
  EXPECT_EQ(bin->semaphores, 2u);
  list.packet("Wait for previous frame")
      .packet("Wait on Semaphore")
      .packet("Wait on Semaphore")
      .packet("End of rendering");
  const GpuAddr start = test_.put(list.bytes());
  run_render_list(test_.job(), start, start + list.size(), 0, bin.get());
  EXPECT_EQ(error(), "");
  run_render_list(test_.job(), start, start + list.size(), 0, nullptr);
  EXPECT_THAT(error(), HasSubstr("Wait on Semaphore"));
  EXPECT_TRUE(test_.hangs());
}

/// The lower right corner of a frame of 7680 x 7680: only the last of 15 x 15 supertiles is listed, and only
/// its memory exists.
TEST_P(RenderList, TheLargestFrame) {
  const Frame frame = {.width = 7680, .height = 7680};
  constexpr uint32_t kStride = 7680 * 4, kFirst = 7680 - 512;
  const GpuAddr rows = test_.allocate(512 * kStride);
  const GpuAddr image = rows - kFirst * kStride;
  PacketWriter list;
  add_config(list, frame);
  add_supertiles(list, frame, 8, 15, 15);
  add_dummy_tile(list, true);
  add_generic(list, [&](PacketWriter& g) { add_store(g, 0, image, kStride); });
  add_supertile(list, 14, 14);
  list.packet("End of rendering");
  run(list);
  EXPECT_EQ(error(), "");
  for (uint32_t y = kFirst; y < 7680; y += 37)
    for (uint32_t x = kFirst - 8; x < 7680; ++x)
      ASSERT_EQ(pixel(image, kStride, x, y), x < kFirst ? 0 : frame.clear) << x << " " << y;
  EXPECT_EQ(pixel(image, kStride, 7679, 7679), frame.clear);
  EXPECT_EQ(test_.space().take_faults().count, 0u);
}

/// Noop job of v3dv: no clears, SET_BASE first.
TEST_P(RenderList, NoopJob) {
  PacketWriter list;
  list.packet("Tile Rendering Mode Cfg (Common)", {{"Number of Render Targets", 1},
                                                   {"Image Width (pixels)", 1},
                                                   {"Image Height (pixels)", 1},
                                                   {"Log2 Tile Width", 3},
                                                   {"Log2 Tile Height", 3}});
  list.packet("Tile Rendering Mode Cfg (Render Target Part1)", {{"Stride", 1}});
  list.packet("Tile Rendering Mode Cfg (ZS Clear Values)").packet("Tile List Initial Block Size");
  list.packet("Multicore Rendering Tile List Set Base", {{"address", 0x4000}});
  add_supertiles(list, {.width = 1, .height = 1}, 1, 1, 1);
  add_generic(list, [&](PacketWriter& g) {
    g.packet("End of Loads").packet("Branch to Implicit Tile List");
    g.packet("Store Tile Buffer General", {{"Buffer to Store", 8}});
  });
  add_supertile(list, 0, 0);
  list.packet("End of rendering");
  run(list);
  EXPECT_EQ(error(), "");
}

TEST_P(RenderList, BadListsEndWithAMessage) {
  const Frame frame = {.width = 16, .height = 16, .log2_tile = 1};
  struct Case {
    const char* message;
    std::function<void(RenderList&, PacketWriter&)> build;
  };
  const Case cases[] = {
      {"unknown packet, opcode 78", [](RenderList&, PacketWriter& l) { l.byte(78); }},
      {"Point size (opcode 104)", [](RenderList&, PacketWriter& l) { l.packet("Point size"); }},
      {"no frame configuration", [](RenderList&, PacketWriter& l) { l.packet("Supertile Coordinates"); }},
      {"no caller", [](RenderList&, PacketWriter& l) { l.packet("Return from sub-list"); }},
      {"no generic tile list",
       [&](RenderList& t, PacketWriter& l) {
         add_config(l, frame);
         t.add_supertiles(l, frame, 1, 1, 1);
         t.add_supertile(l, 0, 0);
       }},
      {"frame of 7681 x 16",
       [](RenderList&, PacketWriter& l) { add_config(l, {.width = 7681, .height = 16}); }},
      {"tile of 1024 x 1024",
       [](RenderList&, PacketWriter& l) { add_config(l, {.width = 16, .height = 16, .log2_tile = 7}); }},
      {"Internal Type and Clamping 3",
       [](RenderList&, PacketWriter& l) {
         l.packet("Tile Rendering Mode Cfg (Render Target Part1)", {{"Internal Type and Clamping", 3}});
       }},
      {"tile 9, 0 is outside the frame",
       [&](RenderList&, PacketWriter& l) {
         add_config(l, frame);
         l.packet("Tile Coordinates", {{"tile column number", 9}});
       }},
      {"block size 3",
       [](RenderList&, PacketWriter& l) {
         l.packet("Tile List Initial Block Size", {{"Size of first block in chained tile lists", 3}});
       }},
      {"tile list set number 16",
       [&](RenderList& t, PacketWriter& l) {
         t.add_generic(l, [](PacketWriter& g) {
           g.packet("Branch to Implicit Tile List", {{"tile list set number", 16}});
         });
       }},
      {"has no place there",
       [&](RenderList& t, PacketWriter& l) {
         t.add_generic(l, [](PacketWriter& g) { g.packet("Supertile Coordinates"); });
       }},
  };
  for (const Case& c : cases) {
    PacketWriter list;
    c.build(*this, list);
    SCOPED_TRACE(c.message);
    JobError failure;
    test_.job().error = &failure;
    run(list);
    EXPECT_THAT(failure.message(), HasSubstr(c.message));
  }
}

TEST_P(RenderList, ListsThatBranchInCirclesEnd) {
  const GpuAddr circle = test_.allocate(64);
  PacketWriter list;
  list.packet("Branch", {{"address", circle}});
  test_.memory().write(circle, list.bytes().data(), list.size());
  run_render_list(test_.job(), circle, circle + 32, 0, nullptr);
  EXPECT_THAT(error(), HasSubstr("runs away"));
  EXPECT_TRUE(test_.hangs());

  JobError failure;
  test_.job().error = &failure;
  PacketWriter generic;
  generic.packet("Start Address of Generic Tile List", {{"start", circle}, {"end", circle + 32}});
  run(generic);
  EXPECT_THAT(failure.message(), HasSubstr("runs away"));

  JobError nested;
  test_.job().error = &nested;
  PacketWriter call;
  call.packet("Branch to Sub-list", {{"address", circle}});
  test_.memory().write(circle, call.bytes().data(), call.size());
  run_render_list(test_.job(), circle, circle + 32, 0, nullptr);
  EXPECT_THAT(nested.message(), HasSubstr("calls nest too deep"));
}

/// Valid lists with flipped bits: whatever they do, they end, and only inside their address space.
TEST_P(RenderList, ListsWithFlippedBitsEnd) {
  std::mt19937 random(17);
  const Frame frame = {.width = 100, .height = 60, .log2_tile = 1};
  for (int round = 0; round < 150; ++round) {
    const GpuAddr image = test_.put(std::vector<uint32_t>(100 * 60));
    PacketWriter generic;
    generic.packet("Tile Coordinates Implicit");
    generic.packet("Load Tile Buffer General",
                   {{"Input Image Format", kRgba8}, {"Height in UB or Stride", 400}, address(image)});
    generic.packet("End of Loads").packet("Branch to Implicit Tile List");
    add_store(generic, 0, image, 400, true);
    generic.packet("Clear Render Targets").packet("End of Tile Marker").packet("Return from sub-list");
    const GpuAddr body = test_.put(generic.bytes());
    PacketWriter list;
    add_config(list, frame);
    add_dummy_tile(list, true);
    add_supertiles(list, frame, 2, 4, 2);
    list.packet("Multicore Rendering Tile List Set Base", {{"address", 64}});
    list.packet("Start Address of Generic Tile List", {{"start", body}, {"end", body + generic.size()}});
    for (uint32_t i = 0; i < 8; ++i) add_supertile(list, i % 4, i / 4);
    list.packet("End of rendering");
    const GpuAddr start = test_.put(list.bytes());
    for (uint32_t flips = 1 + random() % 3; flips > 0; --flips) {
      const bool in_body = random() % 2;
      const GpuAddr at = in_body ? body + random() % generic.size() : start + random() % list.size();
      test_.memory().store(at, static_cast<uint8_t>(test_.memory().load<uint8_t>(at) ^ (1u << random() % 8)));
    }
    JobError failure;
    test_.job().error = &failure;
    run_render_list(test_.job(), start, start + list.size(), 0, nullptr);
  }
  test_.space().take_faults();
}

TEST(FrameConfig, ClearColorsOf71FillAllFourWords) {
  PacketWriter list;
  list.packet("Tile Rendering Mode Cfg (Common)", {{"Number of Render Targets", 8},
                                                   {"Image Width (pixels)", 300},
                                                   {"Image Height (pixels)", 200},
                                                   {"Multisample Mode (4x)", 1},
                                                   {"Internal Depth Type", 2},
                                                   {"Log2 Tile Width", 2},
                                                   {"Log2 Tile Height", 1}});
  list.packet("Tile Rendering Mode Cfg (Render Target Part1)", {{"Render Target number", 7},
                                                                {"Stride", 16},
                                                                {"Internal BPP", 2},
                                                                {"Internal Type and Clamping", 22},
                                                                {"Clear Color low bits", 0x01234567}});
  list.packet("Tile Rendering Mode Cfg (Render Target Part2)",
              {{"Render Target number", 7}, {"Clear Color mid bits", 0xdd89abcdefull}});
  list.packet("Tile Rendering Mode Cfg (Render Target Part3)",
              {{"Render Target number", 7}, {"Clear Color top bits", 0xfedcba98aabbccull}});
  list.packet("Tile Rendering Mode Cfg (ZS Clear Values)",
              {{"Stencil Clear Value", 0x5a}, {"Z Clear Value", std::bit_cast<uint32_t>(0.25f)}});
  TestJob test;
  GpuAddr pc = test.put(list.bytes());
  FrameConfig frame(chip::Generation::k71);
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(frame.complete());
    Packet packet;
    std::string error;
    ASSERT_TRUE(decode(test.memory(), pc, chip::Generation::k71, &packet));
    EXPECT_TRUE(frame.apply(packet, &error)) << error;
    pc += packet.length;
  }
  EXPECT_TRUE(frame.complete());
  const tlb::Config& c = frame.config();
  EXPECT_EQ(c.width, 300u);
  EXPECT_EQ(c.height, 200u);
  EXPECT_EQ(c.tile_width, 32u);
  EXPECT_EQ(c.tile_height, 16u);
  EXPECT_TRUE(c.multisample);
  EXPECT_TRUE(c.auto_clear_zs);
  EXPECT_EQ(c.depth_type, tlb::DepthType::k16);
  EXPECT_EQ(c.clear_stencil, 0x5a);
  EXPECT_EQ(c.clear_z, 0.25f);
  EXPECT_EQ(c.num_render_targets, 8);
  EXPECT_FALSE(c.targets[0].used);
  EXPECT_TRUE(c.targets[7].used);
  EXPECT_EQ(c.targets[7].type, tlb::ColorType::k32Ui);
  EXPECT_EQ(c.targets[7].clamp, tlb::Clamp::kInt);
  EXPECT_EQ(c.targets[7].bpp, 2);
  const std::array<uint32_t, 4> expected = {0x01234567, 0x89abcdef, 0xaabbccdd, 0xfedcba98};
  EXPECT_EQ(c.targets[7].clear, expected);
}

// Its frames come from the kernel's description of surfaces (surface_job.h).
TEST(FrameConfig, IsNotOfVideoCoreIv) {
  TestJob test;
  PacketWriter list;
  list.packet("Tile Rendering Mode Cfg (Common)");
  Packet packet;
  ASSERT_TRUE(decode(test.memory(), test.put(list.bytes()), chip::Generation::k71, &packet));
  std::string error;
  EXPECT_FALSE(FrameConfig(chip::Generation::k21).apply(packet, &error));
  EXPECT_EQ(error, "V3D 2.1 has no rendering lists");
}

TEST(FrameConfig, TypesAndTileSizeOf42) {
  TestJob test;
  const auto config = [&](uint32_t targets, uint32_t bpp, bool msaa, bool early_clear) {
    PacketWriter list(chip::Generation::k42);
    list.packet("Tile Rendering Mode Cfg (Common)", {{"Number of Render Targets", targets},
                                                     {"Image Width (pixels)", 64},
                                                     {"Image Height (pixels)", 64},
                                                     {"Maximum BPP of all render targets", bpp},
                                                     {"Multisample Mode (4x)", msaa},
                                                     {"Early Depth/Stencil Clear", early_clear}});
    list.packet("Tile Rendering Mode Cfg (Clear Colors Part1)", {{"Render Target number", 1},
                                                                 {"Clear Color low 32 bits", 0x01234567},
                                                                 {"Clear Color next 24 bits", 0xabcdef}});
    list.packet("Tile Rendering Mode Cfg (Clear Colors Part2)", {{"Render Target number", 1},
                                                                 {"Clear Color mid-low 32 bits", 0xaabbcc89},
                                                                 {"Clear Color mid-high 24 bits", 0xba98dd}});
    list.packet("Tile Rendering Mode Cfg (Clear Colors Part3)",
                {{"Render Target number", 1}, {"Clear Color high 16 bits", 0xfedc}});
    list.packet("Tile Rendering Mode Cfg (Color)", {{"Render Target 1 Internal BPP", 1},
                                                    {"Render Target 1 Internal Type", 6},
                                                    {"Render Target 1 Clamp", 2},
                                                    {"Render Target 0 Internal Type", 2}});
    list.packet("Tile Rendering Mode Cfg (ZS Clear Values)");
    GpuAddr pc = test.put(list.bytes());
    FrameConfig frame(chip::Generation::k42);
    while (!frame.complete()) {
      Packet packet;
      std::string error;
      EXPECT_TRUE(decode(test.memory(), pc, chip::Generation::k42, &packet));
      EXPECT_TRUE(frame.apply(packet, &error)) << error;
      pc += packet.length;
    }
    return frame.config();
  };
  const tlb::Config c = config(2, 1, false, true);
  EXPECT_TRUE(c.auto_clear_zs);
  EXPECT_EQ(c.targets[0].type, tlb::ColorType::k8);
  EXPECT_EQ(c.targets[1].type, tlb::ColorType::k16F);
  EXPECT_EQ(c.targets[1].clamp, tlb::Clamp::kPos);
  EXPECT_EQ(c.targets[1].bpp, 1);
  EXPECT_FALSE(c.targets[2].used);
  const std::array<uint32_t, 4> expected = {0x01234567, 0x89abcdef, 0xddaabbcc, 0xfedcba98};
  EXPECT_EQ(c.targets[1].clear, expected);
  const auto size = [&](uint32_t targets, uint32_t bpp, bool msaa) {
    const tlb::Config sized = config(targets, bpp, msaa, false);
    EXPECT_FALSE(sized.auto_clear_zs);
    return std::pair{sized.tile_width, sized.tile_height};
  };
  EXPECT_EQ(size(1, 0, false), (std::pair{64u, 64u}));
  EXPECT_EQ(size(2, 0, false), (std::pair{64u, 32u}));
  EXPECT_EQ(size(1, 2, false), (std::pair{32u, 32u}));
  EXPECT_EQ(size(4, 1, true), (std::pair{16u, 8u}));
  EXPECT_EQ(size(3, 2, true), (std::pair{8u, 8u}));
}

TEST(GenericList, FinalClearsAreLeftOut) {
  TestJob test;
  PacketWriter list;
  add_store(list, 0, 0x1000, 64, true);
  add_store(list, 1, 0x2000, 64, true);
  add_store(list, 0, 0x3000, 64, true);
  list.packet("Clear Render Targets").packet("End of Tile Marker").packet("Return from sub-list");
  const GpuAddr at = test.put(list.bytes());
  TileProgram program;
  std::string error;
  ASSERT_TRUE(
      parse_generic_list(test.memory(), chip::Generation::k71, at, at + list.size(), &program, &error))
      << error;
  ASSERT_EQ(program.commands.size(), 3u);
  EXPECT_TRUE(program.commands[0].transfer.clear_after);
  EXPECT_FALSE(program.commands[1].transfer.clear_after);
  EXPECT_FALSE(program.commands[2].transfer.clear_after);
  EXPECT_TRUE(program.writes);
  EXPECT_FALSE(program.draws);
}

TEST(GenericList, TheFormatsAndFlagsOfStores) {
  TestJob test;
  for (const chip::Generation generation : {chip::Generation::k71, chip::Generation::k42}) {
    PacketWriter list(generation);
    list.packet("Store Tile Buffer General", {{"Output Image Format", 57},
                                              {"Dither Mode", 3},
                                              {"Flip Y", 1},
                                              {"Height", 7680},
                                              {"Height in UB or Stride", 64}});
    list.packet("End of Tile Marker").packet("Return from sub-list");
    const GpuAddr at = test.put(list.bytes());
    TileProgram program;
    std::string error;
    EXPECT_EQ(parse_generic_list(test.memory(), generation, at, at + list.size(), &program, &error),
              generation == chip::Generation::k71);
    EXPECT_EQ(error.find("image format 57") != std::string::npos, generation == chip::Generation::k42);
    if (generation == chip::Generation::k42) continue;
    const tlb::LoadStore& store = program.commands.at(0).transfer;
    EXPECT_EQ(store.dither, 3);
    EXPECT_TRUE(store.flip_y);
    EXPECT_EQ(store.height, 7680);
  }
}

TEST(GenericList, TilesRunInOrderWhereContentsAreStoredTwice) {
  TestJob test;
  const auto in_order = [&](bool draws, uint8_t second_buffer) {
    PacketWriter list;
    if (draws) list.packet("Branch to Implicit Tile List");
    add_store(list, 0, 0x1000, 64, false);
    add_store(list, second_buffer, 0x2000, 64, false);
    list.packet("End of Tile Marker").packet("Return from sub-list");
    const GpuAddr at = test.put(list.bytes());
    TileProgram program;
    std::string error;
    EXPECT_TRUE(
        parse_generic_list(test.memory(), chip::Generation::k71, at, at + list.size(), &program, &error))
        << error;
    return program.in_order;
  };
  EXPECT_TRUE(in_order(true, 0));
  EXPECT_FALSE(in_order(true, 1));
  EXPECT_FALSE(in_order(false, 0));
}

}  // namespace
}  // namespace v3d::cle
