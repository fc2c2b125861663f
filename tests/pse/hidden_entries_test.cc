/// What lies under a triangle that replaces it need not be drawn, and nobody can tell.
#include "gpu/pse/hidden_entries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "gpu/base/work_meter.h"
#include "gpu/base/work_watch.h"
#include "gpu/qpu/isa/assembler.h"
#include "gpu/qpu/run/observer.h"
#include "tests/pse/scene.h"

namespace v3d::pse {
namespace {

/// Quads of the tile.
constexpr uint64_t kQuadsOfTile = 1024;

const std::vector<SceneVertex> kWhole = {{-1, -1}, {200, -1}, {-1, 200}};

/// A frame of one tile, of which draws colour all pixels.
class Frame {
 public:
  explicit Frame(bool multisample = false) : scene(64, 64, 64, multisample) {
    scene.control().set_counted(false);
  }

  static constexpr const char* kColor =
      "nop ; nop ; ldunifrf.rf10\nnop\nvfpack tlb, rf10, rf10 ; nop\nvfpack tlb, rf10, rf10 ; nop\n";

  draw::Draw& add(float color, const std::string& text = kColor,
                  const std::vector<SceneVertex>& vertices = kWhole) {
    const qpu::Assembly assembly = qpu::assemble(chip::Generation::k71, text + "end");
    EXPECT_TRUE(assembly.errors.empty()) << to_string(assembly.errors.at(0));
    const draw::ShaderCode code = {.code = scene.test().put(assembly.words),
                                   .uniforms = scene.test().put(std::vector<uint32_t>{bits(color)}),
                                   .four_threads = true,
                                   .final_section = true};
    return scene.add_draw(3, vertices, code, 0);
  }
  /// Quads whose programs ran.
  uint64_t shaded() {
    EXPECT_TRUE(scene.render()) << scene.error();
    return scene.count(perf::kFepValidQuads);
  }

  Scene scene;
};

TEST(HiddenEntries, DrawsUnderACoveringTriangleAreNotDrawn) {
  Frame frame;
  for (const float color : {1.0f, 2.0f, 3.0f}) frame.add(color);
  EXPECT_EQ(frame.shaded(), kQuadsOfTile);
  for (const uint32_t at : {0u, 31u, 63u}) EXPECT_EQ(frame.scene.value(at, 63 - at, 3), 3.0f);
}

TEST(HiddenEntries, WhoLooksAtCountersGetsThemAll) {
  Frame frame;
  frame.scene.control().set_counted(true);
  frame.add(1);
  frame.add(2);
  EXPECT_EQ(frame.shaded(), 2 * kQuadsOfTile);
}

TEST(HiddenEntries, EntriesBeforeAndBehindAreDrawn) {
  Frame frame;
  const GpuAddr counter = frame.scene.test().allocate(4);
  frame.add(1);
  frame.add(2).state.occlusion_counter = counter;
  frame.add(3);
  frame.add(4);
  frame.add(5);
  frame.add(6, Frame::kColor, {{0, 0}, {8, 0}, {0, 8}});
  EXPECT_EQ(frame.shaded(), 3 * kQuadsOfTile + 10) << "the first two, the fifth, and a triangle of ten quads";
  EXPECT_EQ(frame.scene.test().memory().load<uint32_t>(counter), 64u * 64u);
  EXPECT_EQ(frame.scene.value(1, 1, 0), 6.0f);
  EXPECT_EQ(frame.scene.value(40, 1, 0), 5.0f);
}

TEST(HiddenEntries, EachTileIsItsOwn) {
  Frame frame;
  frame.scene.config().width = frame.scene.bin().width = 128;
  frame.scene.bin().tiles_x = 2;
  frame.scene.bin().tiles.resize(2);
  frame.add(1, Frame::kColor, {{-1, -1}, {400, -1}, {-1, 400}});
  frame.add(2, Frame::kColor, {{64, -1}, {64, 400}, {400, -1}});
  EXPECT_EQ(frame.shaded(), 2 * kQuadsOfTile);
  EXPECT_EQ(frame.scene.value(63, 0, 0), 1.0f);
  EXPECT_EQ(frame.scene.value(64, 0, 0), 2.0f);
}

// A list may be as long as its client likes, and what is hidden of it is not drawn.
TEST(HiddenEntries, WhoGoesThroughAListLooksAtTheJob) {
  constexpr size_t kEntries = 50'000;
  Frame frame;
  frame.add(1);
  frame.add(2);
  frame.scene.list_everything();
  std::vector<draw::ListEntry>& list = frame.scene.bin().tiles.at(0);
  list.insert(list.begin(), kEntries, list.at(0));
  frame.scene.prepare();
  const uint64_t before = frame.scene.control().looks();
  frame.scene.render_tiles();
  EXPECT_EQ(frame.scene.error(), "");
  EXPECT_EQ(frame.scene.count(perf::kFepValidQuads), kQuadsOfTile);
  EXPECT_GE(frame.scene.control().looks() - before, kEntries / WorkMeter::kSlice);
  EXPECT_LT(frame.scene.control().looks() - before, kEntries / 100);
}

/// Edges belong to the triangle on their left and at their top.
TEST(HiddenEntries, CoverageIsOfEveryPixelCenter) {
  for (const double left : {0.5, 0.5 + 1.0 / 64}) {
    Frame frame;
    frame.add(1);
    frame.add(2, Frame::kColor, {{left, -100}, {left, 200}, {300, -100}});
    EXPECT_EQ(frame.shaded(), left == 0.5 ? kQuadsOfTile : 2 * kQuadsOfTile) << left;
    EXPECT_EQ(frame.scene.value(0, 20, 0), left == 0.5 ? 2.0f : 1.0f);
  }
}

TEST(HiddenEntries, TwoTrianglesOfARectangleCoverTogether) {
  const std::vector<SceneVertex> near = {{-1, -1}, {200, -1}, {-1, 70}},
                                 far = {{200, 70}, {-1, 70}, {200, -1}};
  for (const bool turned : {false, true}) {
    Frame frame;
    frame.add(1);
    std::vector<SceneVertex> both = turned ? far : near;
    const std::vector<SceneVertex>& second = turned ? near : far;
    both.insert(both.end(), second.begin(), second.end());
    frame.add(2, Frame::kColor, both);
    const uint64_t some = frame.shaded();
    for (const uint32_t at : {0u, 31u, 63u}) EXPECT_EQ(frame.scene.value(at, 63 - at, 3), 2.0f);
    frame.scene.control().set_counted(true);
    EXPECT_EQ(some + kQuadsOfTile, frame.shaded()) << turned;
  }
}

/// Nor those that leave pixels between them, lie on one side, or end inside the tile.
TEST(HiddenEntries, OtherPairsDoNot) {
  const auto hides = [](const std::vector<SceneVertex>& other) {
    Frame frame;
    frame.add(1);
    std::vector<SceneVertex> both = {{-1, -1}, {200, -1}, {-1, 70}};
    both.insert(both.end(), other.begin(), other.end());
    frame.add(2, Frame::kColor, both);
    const uint64_t some = frame.shaded();
    frame.scene.control().set_counted(true);
    return some != frame.shaded();
  };
  EXPECT_TRUE(hides({{200, 70}, {-1, 70}, {200, -1}}));
  EXPECT_FALSE(hides({{200, 70}, {-1, 70 + 1.0 / 64}, {200, -1}}));
  EXPECT_FALSE(hides({{-1, -1}, {200, -1}, {-1, 70}}));
  EXPECT_FALSE(hides({{30, 70}, {-1, 70}, {200, -1}}));
}

TEST(HiddenEntries, PixelsOutsideTheFrameNeedNotBeCovered) {
  Frame frame;
  frame.scene.config().width = frame.scene.bin().width = 40;
  frame.scene.config().height = frame.scene.bin().height = 40;
  frame.add(1);
  frame.add(2, Frame::kColor, {{0, 0}, {80, 0}, {0, 80}});
  EXPECT_EQ(frame.shaded(), 400u);
  EXPECT_EQ(frame.scene.value(39, 39, 0), 2.0f);
}

TEST(HiddenEntries, WrittenDepthsAreHiddenByOthersAlone) {
  for (const bool also_depth : {false, true}) {
    Frame frame;
    frame.add(1, Frame::kColor, {{-1, -1, 0.25f}, {200, -1, 0.25f}, {-1, 200, 0.25f}}).state.cfg.z_write =
        true;
    frame.add(2).state.cfg.z_write = also_depth;
    draw::Draw& behind = frame.add(3, Frame::kColor, {{-1, -1, 0.4f}, {200, -1, 0.4f}, {-1, 200, 0.4f}});
    behind.state.cfg.depth_func = Compare::kLess;
    EXPECT_EQ(frame.shaded(), 2 * kQuadsOfTile) << also_depth;
    EXPECT_EQ(frame.scene.value(5, 5, 0), also_depth ? 3.0f : 2.0f);
  }
}

struct Case {
  const char* name;
  std::function<void(draw::Draw& draw, draw::ShaderRecord& record)> change = nullptr;
  const char* text = Frame::kColor;
};

/// Each makes the upper draw of two leave something of the lower one, or needs a look at it.
TEST(HiddenEntries, WhatDoesNotReplaceCoversNothing) {
  const std::vector<Case> cases = {
      {"stencil", [](auto& d, auto&) { d.state.cfg.stencil = true; }},
      {"depth bounds", [](auto& d, auto&) { d.state.cfg.depth_bounds = true; }},
      {"depth test", [](auto& d, auto&) { d.state.cfg.depth_func = Compare::kLequal; }},
      {"blending", [](auto& d, auto&) { d.state.cfg.blend = true; }},
      {"colour mask", [](auto& d, auto&) { d.state.color_masks[0] = 8; }},
      {"program writes depths", [](auto&, auto& r) { r.fs_writes_z = true; }},
      {"discard", nullptr,
       "nop ; nop ; ldunifrf.rf10\nsetmsf -, 1 ; nop\nvfpack tlb, rf10, rf10 ; nop\nvfpack tlb, rf10, rf10 ; "
       "nop\n"},
      {"no colours", nullptr, "nop\n"},
      {"writes memory", nullptr,
       "nop ; nop ; ldunifrf.rf10\nmov tmud, rf10 ; nop\nmov tmua, rf10 ; nop\nvfpack tlb, rf10, rf10 ; nop\n"
       "vfpack tlb, rf10, rf10 ; nop\n"},
  };
  for (const Case& c : cases) {
    Frame frame;
    frame.add(0);
    draw::Draw& upper = frame.add(1, c.text);
    if (c.change) c.change(upper, frame.scene.record());
    if (std::string(c.name) == "writes memory")
      frame.scene.test().memory().store<uint32_t>(upper.record->fs.uniforms, upper.record->fs.uniforms);
    EXPECT_EQ(frame.shaded(), 2 * kQuadsOfTile) << c.name;
  }
}

TEST(HiddenEntries, PartsOfTheTileCoverNothing) {
  const auto shaded = [](const std::function<void(Frame&, draw::Draw&)>& change) {
    Frame frame;
    frame.add(1);
    draw::Draw& upper = frame.add(2);
    change(frame, upper);
    return frame.shaded();
  };
  EXPECT_EQ(shaded([](Frame&, draw::Draw& d) { d.state.clip_width = 62; }), kQuadsOfTile + 31 * 32);
  EXPECT_EQ(shaded([](Frame&, draw::Draw& d) { d.state.clip_left = 2; }), kQuadsOfTile + 31 * 32);
  EXPECT_EQ(shaded([](Frame&, draw::Draw& d) { d.state.clip_height = 62; }), kQuadsOfTile + 31 * 32);
  EXPECT_EQ(shaded([](Frame&, draw::Draw& d) { d.state.clip_bottom = 2; }), kQuadsOfTile + 31 * 32);
  EXPECT_EQ(shaded([](Frame&, draw::Draw& d) { d.state.sample_mask = 0; }), kQuadsOfTile);
  EXPECT_EQ(shaded([](Frame&, draw::Draw& d) { d.primitives[0].vertex[1] = 99; }), kQuadsOfTile);
  EXPECT_EQ(shaded([](Frame&, draw::Draw& d) {
              d.primitives[0].clipped = 0;
              d.clipped.push_back({.num_corners = 0, .corners = {}});
            }),
            kQuadsOfTile);
}

/// Each makes the lower draw of two do more than colour pixels.
TEST(HiddenEntries, WhatLeavesATraceIsDrawn) {
  const std::vector<Case> cases = {
      {"stencil", [](auto& d, auto&) { d.state.cfg.stencil = true; }},
      {"depths", [](auto& d, auto&) { d.state.cfg.z_write = true; }},
      {"blending that is not implemented",
       [](auto& d, auto&) {
         d.state.cfg.blend = true;
         d.state.blend[0].color_mode = static_cast<draw::BlendMode>(15);
       }},
  };
  for (const Case& c : cases) {
    Frame frame;
    draw::Draw& lower = frame.add(0);
    c.change(lower, frame.scene.record());
    frame.add(1);
    EXPECT_EQ(frame.shaded(), 2 * kQuadsOfTile) << c.name;
  }
}

TEST(HiddenEntries, OcclusionIsCounted) {
  Frame frame;
  const GpuAddr counter = frame.scene.test().allocate(4);
  frame.add(1).state.occlusion_counter = counter;
  frame.add(2);
  frame.shaded();
  EXPECT_EQ(frame.scene.test().memory().load<uint32_t>(counter), 64u * 64u);
}

TEST(HiddenEntries, MemoryIsWritten) {
  Frame frame;
  const GpuAddr word = frame.scene.test().put(std::vector<uint32_t>{0});
  frame.add(std::bit_cast<float>(word),
            "nop ; nop ; ldunifrf.rf10\nnop\nmov tmud, rf10 ; nop\nmov tmua, rf10 ; nop\n");
  frame.add(2);
  frame.shaded();
  EXPECT_EQ(frame.scene.test().memory().load<uint32_t>(word), word);
}

TEST(HiddenEntries, AProgramThatDoesNotEndHangs) {
  Frame frame;
  frame.scene.test().job().instruction_limit = 10000;
  frame.add(1, "b -32\nnop\nnop\nnop\n");
  frame.add(2);
  EXPECT_FALSE(frame.scene.render());
  EXPECT_TRUE(frame.scene.test().hangs());
}

TEST(HiddenEntries, BlendingAndDiscardsBelowAreHidden) {
  Frame frame;
  draw::Draw& blended = frame.add(1);
  blended.state.cfg.blend = true;
  blended.state.blend_enables = 1;
  frame.add(2,
            "nop ; nop ; ldunifrf.rf10\nsetmsf -, 0 ; nop\nvfpack tlb, rf10, rf10 ; nop\nvfpack tlb, rf10, "
            "rf10 ; nop\n");
  frame.add(3, std::string("nop ; nop ; ldtlb.rf10\nnop ; nop ; ldtlb.rf11\n") + Frame::kColor);
  frame.add(4);
  EXPECT_EQ(frame.shaded(), kQuadsOfTile);
  EXPECT_EQ(frame.scene.value(5, 5, 0), 4.0f);
}

TEST(HiddenEntries, FramesOfSeveralSamplesOrColorsHideNothing) {
  Frame samples(true);
  samples.add(1);
  samples.add(2);
  EXPECT_EQ(samples.shaded(), 2 * kQuadsOfTile);

  Frame colors;
  colors.scene.config().num_render_targets = 2;
  colors.scene.config().targets[1] = {.used = true, .type = tlb::ColorType::k8, .bpp = 0};
  colors.add(1);
  colors.add(2);
  EXPECT_EQ(colors.shaded(), 2 * kQuadsOfTile);
}

class Threads : public qpu::ThreadWatch {
 public:
  void start(const char*, qpu::Thread&) override { ++started; }
  int started = 0;
};

TEST(HiddenEntries, WhoWatchesThreadsSeesAll) {
  Frame frame;
  frame.add(1);
  frame.add(2);
  Threads threads;
  frame.scene.test().job().watch = &threads;
  EXPECT_EQ(frame.shaded(), 2 * kQuadsOfTile);
  EXPECT_GE(threads.started, 512);
}

class Units : public WorkWatch {
 public:
  void packet() override {}
  void begin_vertices(uint32_t, uint32_t, uint32_t) override {}
  void fetch(const Lanes&, LaneMask, uint32_t) override {}
  void binned(uint64_t, uint64_t) override {}
  void lists_written(uint64_t) override {}
  void begin_frame(uint32_t) override {}
  void add_tiles(const std::vector<uint32_t>&, size_t) override {}
  TileWatch& begin_tile(size_t, size_t, uint32_t, uint32_t) override { std::abort(); }
  void transferred(uint64_t, uint64_t) override {}
};

TEST(HiddenEntries, WhoWatchesUnitsSeesAll) {
  Frame frame;
  frame.add(1);
  frame.add(2);
  Units units;
  frame.scene.test().job().work = &units;
  EXPECT_EQ(frame.shaded(), 2 * kQuadsOfTile);
}

}  // namespace
}  // namespace v3d::pse
