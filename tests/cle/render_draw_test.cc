/// Draws from binning list to image: both lists, records, and programs in GPU memory.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "gpu/cle/executor.h"
#include "gpu/draw/bin_result.h"
#include "gpu/qpu/run/program_cache.h"
#include "tests/base/counting_control.h"
#include "tests/cle/packet_writer.h"
#include "tests/pse/program_builder.h"
#include "tests/qpu/engine.h"
#include "tests/vpm/shader_builder.h"
#include "tests/vpm/test_job.h"

namespace v3d::cle {
namespace {

constexpr int kWidth = 200, kHeight = 120;
constexpr uint32_t kClear = 0xff102030;

/// What both pass-through programs read: clip coordinates for binning, screen for both, varyings.
struct Vertex {
  float x, y, z, w;  // Xc, Yc, Zc, Wc
  int32_t xs, ys;    // for the coordinate program
  int32_t padding[2] = {};
  int32_t render_xs, render_ys;
  float zs, inverse_w;
  float color[4];
};

/// A vertex at a pixel position.
Vertex at_pixel(float px, float py, float w, std::array<float, 4> color) {
  Vertex v{};
  v.x = (px / kWidth * 2 - 1) * w;
  v.y = (py / kHeight * 2 - 1) * w;
  v.z = 0.5f * w;
  v.w = w;
  v.xs = v.render_xs = static_cast<int32_t>(std::lround((px - kWidth / 2.0f) * 64));
  v.ys = v.render_ys = static_cast<int32_t>(std::lround((py - kHeight / 2.0f) * 64));
  v.zs = 0.5f;
  v.inverse_w = 1 / w;
  std::copy(color.begin(), color.end(), v.color);
  return v;
}

/// How the render job finds the lists.
struct Lists {
  uint32_t layer = 0;       ///< that the primitives are in
  uint32_t block_size = 0;  ///< 64 << block_size bytes of each list lie in front
  uint32_t set = 0;
};

class DrawJob : public TestJob {
 public:
  explicit DrawJob(int workers, uint32_t targets = 1)
      : TestJob(chip::default_profile(), workers),
        programs_(chip::Generation::k71, qpu::compiler_of_tests()) {
    job().programs = &programs_;
    for (uint32_t rt = 0; rt < targets; ++rt)
      images_.push_back(put(std::vector<uint32_t>(kWidth * kHeight, 0xdeadbeef)));
    qma_ = allocate(1 << 16, 4096);
  }

  /// Draws triangles; the fragment program stores its four varyings as f16 colour. Target n > 0 gets n / 255
  /// in every channel, target 6 is masked, target 7 adds to what it has.
  void draw(const std::vector<Vertex>& vertices, const Lists& lists = {}) {
    const GpuAddr shader_record = make_shader_record(put(vertices), vertices.size());
    bin(shader_record, static_cast<uint32_t>(vertices.size()));
    to_layer(lists.layer);
    render(lists);
  }
  uint32_t pixel(int x, int y, size_t target = 0) const {
    return memory().load<uint32_t>(images_[target] + static_cast<uint32_t>(y * kWidth + x) * 4);
  }
  const draw::BinResult& bin_result() const { return *bin_; }

 private:
  draw::ShaderCode fragment_program() {
    pse::ProgramBuilder fs;
    for (uint8_t i = 0; i < 4; ++i) fs.varying(static_cast<uint8_t>(10 + i));
    fs.store_half(10);
    for (uint32_t rt = 1; rt < images_.size(); ++rt) {
      for (uint8_t i = 0; i < 4; ++i)
        fs.uniform(static_cast<uint8_t>(14 + i), std::bit_cast<uint32_t>(static_cast<float>(rt) / 255));
      fs.store_half(14, rt);
    }
    return fs.build(this);
  }

  GpuAddr make_shader_record(GpuAddr buffer, size_t vertices) {
    const draw::ShaderCode cs = ShaderBuilder().copy_rows(6).build(this),
                           vs = ShaderBuilder().copy_rows(8).build(this);
    const draw::ShaderCode fs = fragment_program();
    std::vector<uint8_t> bytes = make_record(record("GL Shader State Record", k71),
                                             {{"Enable clipping", 1},
                                              {"Disable implicit point/line varyings", 1},
                                              {"Number of varyings in Fragment Shader", 4},
                                              {"Coordinate Shader output VPM segment size", 1},
                                              {"Vertex Shader output VPM segment size", 1},
                                              {"Fragment Shader Code Address", fs.code},
                                              {"Fragment Shader Uniforms Address", fs.uniforms},
                                              {"Fragment Shader 4-way threadable", 1},
                                              {"Fragment Shader start in final thread section", 1},
                                              {"Vertex Shader Code Address", vs.code},
                                              {"Vertex Shader 4-way threadable", 1},
                                              {"Vertex Shader start in final thread section", 1},
                                              {"Coordinate Shader Code Address", cs.code},
                                              {"Coordinate Shader 4-way threadable", 1},
                                              {"Coordinate Shader start in final thread section", 1}});
    const auto attribute = [&](size_t offset, int cs_words, int vs_words) {
      const auto a = make_record(record("GL Shader State Attribute Record"),
                                 {{"Address", buffer + offset},
                                  {"Type", 2},
                                  {"Number of values read by Coordinate shader", cs_words},
                                  {"Number of values read by Vertex shader", vs_words},
                                  {"Stride", sizeof(Vertex)},
                                  {"Maximum Index", vertices - 1}});
      bytes.insert(bytes.end(), a.begin(), a.end());
    };
    attribute(offsetof(Vertex, x), 4, 0);
    attribute(offsetof(Vertex, xs), 2, 0);
    attribute(offsetof(Vertex, render_xs), 0, 4);
    attribute(offsetof(Vertex, color), 0, 4);
    return put(bytes);
  }

  void bin(GpuAddr shader_record, uint32_t vertices) {
    PacketWriter list;
    list.packet("Number of Layers", {{"Number of Layers", 1}})
        .packet("Tile Binning Mode Cfg", {{"Width (in pixels)", kWidth},
                                          {"Height (in pixels)", kHeight},
                                          {"Log2 Tile Width", 2},
                                          {"Log2 Tile Height", 2}})
        .packet("Flush VCD cache")
        .packet("Start Tile Binning")
        .packet("GL Shader State", {{"address", shader_record}, {"number of attribute arrays", 4}})
        .packet("Cfg Bits", {{"Enable Forward Facing Primitive", 1},
                             {"Enable Reverse Facing Primitive", 1},
                             {"Depth-Test Function", 7},
                             {"Z Clipping mode", 2},
                             {"Blend enable", 1},
                             {"Direct3D Provoking Vertex", 1}})
        .packet("clip_window",
                {{"Clip Window Width in pixels", kWidth}, {"Clip Window Height in pixels", kHeight}})
        .packet("Clipper XY Scaling", {{"Viewport Half-Width in 1/64th of pixel", kWidth * 32.0f},
                                       {"Viewport Half-Height in 1/64th of pixel", kHeight * 32.0f}})
        .packet("Clipper Z Scale and Offset",
                {{"Viewport Z Scale (Zc to Zs)", 1.0f}, {"Viewport Z Offset (Zc to Zs)", 0.0f}})
        .packet("Viewport Offset", {{"Fine X", kWidth * 128}, {"Fine Y", kHeight * 128}})
        .packet("Blend Enables", {{"Mask", 0x80}})
        .packet("Blend Cfg", {{"Render Target Mask", 0x80},
                              {"Color blend src factor", 1},
                              {"Color blend dst factor", 1},
                              {"Alpha blend src factor", 1},
                              {"Alpha blend dst factor", 1}})
        .packet("Color Write Masks", {{"Mask", 0x0f000000}})
        .packet("Vertex Array Prims", {{"mode", 4}, {"Length", vertices}})
        .packet("Flush");
    const GpuAddr start = list.build(this);
    bin_ = run_bin_list(job(), start, start + list.size());
  }

  /// Moves the primitives to another layer, the others are empty.
  void to_layer(uint32_t layer) {
    const size_t tiles = bin_->tiles.size();
    bin_->layers = layer + 1;
    bin_->tiles.insert(bin_->tiles.begin(), layer * tiles, {});
  }

  void render(const Lists& lists) {
    PacketWriter generic;
    generic.packet("Tile Coordinates Implicit")
        .packet("End of Loads")
        .packet("Prim List Format", {{"primitive type", 2}})
        .packet("Set InstanceID")
        .packet("Branch to Implicit Tile List", {{"tile list set number", lists.set}});
    for (size_t rt = 0; rt < images_.size(); ++rt)
      generic.packet("Store Tile Buffer General", {{"Buffer to Store", rt},
                                                   {"Output Image Format", 27},
                                                   {"Clear buffer being stored", 1},
                                                   {"Height in UB or Stride", kWidth * 4},
                                                   {"Address", images_[rt]}});
    generic.packet("End of Tile Marker").packet("Return from sub-list");
    const GpuAddr body = generic.build(this);
    PacketWriter list;
    list.packet("Tile Rendering Mode Cfg (Common)", {{"Number of Render Targets", images_.size()},
                                                     {"Image Width (pixels)", kWidth},
                                                     {"Image Height (pixels)", kHeight},
                                                     {"Log2 Tile Width", 2},
                                                     {"Log2 Tile Height", 2}});
    for (size_t rt = 0; rt < images_.size(); ++rt)
      list.packet("Tile Rendering Mode Cfg (Render Target Part1)", {{"Render Target number", rt},
                                                                    {"Stride", 16},
                                                                    {"Internal Type and Clamping", 8},
                                                                    {"Clear Color low bits", kClear + rt}});
    list.packet("Tile Rendering Mode Cfg (ZS Clear Values)", {{"Z Clear Value", 1.0f}})
        .packet("Tile List Initial Block Size",
                {{"Size of first block in chained tile lists", lists.block_size}})
        .packet("Multicore Rendering Supertile Cfg", {{"Supertile Width in Tiles", 2},
                                                      {"Supertile Height in Tiles", 2},
                                                      {"Total Frame Width in Supertiles", 4},
                                                      {"Total Frame Height in Supertiles", 2},
                                                      {"Total Frame Width in Tiles", 7},
                                                      {"Total Frame Height in Tiles", 4},
                                                      {"Number of Bin Tile Lists", 1}});
    for (int i = 0; i < 2; ++i) {
      list.packet("Tile Coordinates")
          .packet("End of Loads")
          .packet("Store Tile Buffer General", {{"Buffer to Store", 8}});
      if (i == 0) list.packet("Clear Render Targets");
      list.packet("End of Tile Marker");
    }
    list.packet("Flush VCD cache")
        .packet("Multicore Rendering Tile List Set Base",
                {{"Tile List Set Number", lists.set},
                 {"address", qma_ + (64u << lists.block_size) * lists.layer * 7 * 4}})
        .packet("Start Address of Generic Tile List", {{"start", body}, {"end", body + generic.size()}});
    for (int row = 0; row < 2; ++row)
      for (int column = 0; column < 4; ++column)
        list.packet("Supertile Coordinates",
                    {{"column number in supertiles", column}, {"row number in supertiles", row}});
    list.packet("End of rendering");
    const GpuAddr start = list.build(this);
    run_render_list(job(), start, start + list.size(), qma_, bin_.get());
  }

  qpu::ProgramCache programs_;
  std::vector<GpuAddr> images_;
  GpuAddr qma_ = 0;
  std::shared_ptr<draw::BinResult> bin_;
};

class RenderDraw : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Workers, RenderDraw, testing::Values(0, 3));

double cross(const double (&a)[2], const double (&b)[2], double x, double y) {
  return (b[0] - a[0]) * (y - a[1]) - (b[1] - a[1]) * (x - a[0]);
}

TEST_P(RenderDraw, TriangleInPerspective) {
  DrawJob job(GetParam());
  const double at[3][2] = {{10.25, 8.5}, {190.75, 30.25}, {60.5, 110.125}};
  const double w[3] = {1, 4, 2};
  job.draw({at_pixel(10.25f, 8.5f, 1, {1, 0, 0, 1}), at_pixel(190.75f, 30.25f, 4, {0, 1, 0, 1}),
            at_pixel(60.5f, 110.125f, 2, {0, 0, 1, 1})});
  ASSERT_EQ(job.error(), "");
  int covered = 0;
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x) {
      const double all = cross(at[0], at[1], at[2][0], at[2][1]);
      double b[3], sum = 0;
      bool inside = true;
      for (int i = 0; i < 3; ++i) {
        b[i] = cross(at[(i + 1) % 3], at[(i + 2) % 3], x + 0.5, y + 0.5) / all;
        inside &= b[i] > 0;
        b[i] /= w[i];
        sum += b[i];
      }
      const uint32_t got = job.pixel(x, y);
      if (!inside) {
        ASSERT_EQ(got, kClear) << x << " " << y;
        continue;
      }
      ++covered;
      for (int c = 0; c < 3; ++c)
        ASSERT_NEAR((got >> (8 * c)) & 255, b[c] / sum * 255, 0.8) << x << " " << y << " channel " << c;
      ASSERT_EQ(got >> 24, 255u);
    }
  EXPECT_GT(covered, 5000);
}

/// Mesa of mid-2026 asks for first blocks of 128 bytes, and places the layers accordingly.
TEST_P(RenderDraw, LayersLieAsFarApartAsTheFirstBlocksAreLong) {
  for (const Lists& lists : {Lists{.layer = 1},
                             {.layer = 3, .block_size = 1},
                             {.layer = 2, .block_size = 2},
                             {.layer = 1, .block_size = 1, .set = 15}}) {
    DrawJob job(GetParam());
    job.draw({at_pixel(0, 0, 1, {1, 0, 0, 1}), at_pixel(200, 0, 1, {1, 0, 0, 1}),
              at_pixel(0, 120, 1, {1, 0, 0, 1})},
             lists);
    ASSERT_EQ(job.error(), "");
    EXPECT_EQ(job.pixel(20, 20), 0xff0000ffu) << "layer " << lists.layer;
    EXPECT_EQ(job.pixel(190, 110), kClear);
  }
}

TEST_P(RenderDraw, EightTargets) {
  DrawJob job(GetParam(), 8);
  job.draw({at_pixel(0, 0, 1, {1, 0, 0, 1}), at_pixel(200, 0, 1, {1, 0, 0, 1}),
            at_pixel(0, 120, 1, {1, 0, 0, 1})});
  ASSERT_EQ(job.error(), "");
  for (uint32_t rt = 0; rt < 8; ++rt) {
    const uint32_t written = rt * 0x01010101u;
    EXPECT_EQ(job.pixel(20, 20, rt), rt == 0   ? 0xff0000ffu
                                     : rt == 6 ? kClear + 6
                                     : rt == 7 ? 0xff17273eu  // kClear + 7 and 7 in every channel
                                               : written)
        << rt;
    EXPECT_EQ(job.pixel(190, 110, rt), kClear + rt);
  }
}

/// One vertex behind the eye: what is left reaches the horizon's side of the frame without gaps.
TEST_P(RenderDraw, TriangleThroughTheNearPlane) {
  DrawJob job(GetParam());
  std::vector<Vertex> v = {at_pixel(0, 110, 1, {1, 1, 0, 1}), at_pixel(200, 110, 1, {1, 1, 0, 1}),
                           at_pixel(100, 160, -1, {1, 1, 0, 1})};
  v[2].z = -0.5f;  // behind the near plane as well
  job.draw(v);
  ASSERT_EQ(job.error(), "");
  ASSERT_EQ(job.bin_result().draws[0].clipped.size(), 1u);
  int covered = 0;
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x) {
      if (job.pixel(x, y) == kClear) continue;
      ++covered;
      ASSERT_EQ(job.pixel(x, y), 0xff00ffffu) << "a constant colour stays what it is";
    }
  // (0, 110) and (200, 110) are corners; the third one is seen upside down, so the triangle opens upwards.
  EXPECT_NE(job.pixel(100, 60), kClear);
  EXPECT_EQ(job.pixel(100, 115), kClear);
  EXPECT_GT(covered, 10000);
}

TEST_P(RenderDraw, ManyTrianglesShareNoPixel) {
  // A grid that covers the frame; alpha is 1 everywhere, red tells the cell.
  DrawJob job(GetParam());
  std::vector<Vertex> v;
  constexpr int kCells = 16;
  const auto corner = [&](int i, int j, float red) {
    return at_pixel(
        static_cast<float>(kWidth * i) / kCells + static_cast<float>(j % 3) * (i % kCells ? 1.25f : 0),
        static_cast<float>(kHeight * j) / kCells, 1, {red, 0, 0, 1});
  };
  for (int j = 0; j < kCells; ++j)
    for (int i = 0; i < kCells; ++i) {
      const float red = static_cast<float>((i + j) % 2 ? 51 : 102) / 255;
      const Vertex a = corner(i, j, red), b = corner(i + 1, j, red), c = corner(i, j + 1, red),
                   d = corner(i + 1, j + 1, red);
      v.insert(v.end(), {a, b, c, c, b, d});
    }
  job.draw(v);
  ASSERT_EQ(job.error(), "");
  int light = 0, dark = 0;
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x) {
      const uint32_t p = job.pixel(x, y);
      ASSERT_TRUE(p == 0xff000033 || p == 0xff000066) << x << " " << y << " " << std::hex << p;
      (p == 0xff000033 ? dark : light) += 1;
    }
  EXPECT_NEAR(light, dark, kWidth * kHeight / 50.0);
}

TEST(RenderDrawMemory, ShadedVerticesAreChargedWhileTheyAreThere) {
  std::vector<Vertex> vertices;
  for (int n = 0; n < 3000; ++n)
    vertices.push_back(at_pixel(n % 3 == 1 ? 100 : 10, n % 3 == 2 ? 100 : 10, 1, {1, 1, 1, 1}));
  DrawJob job(0);
  CountingControl control;
  job.job().control = &control;
  job.draw(vertices);
  ASSERT_EQ(job.error(), "");
  // What the bin job took stays; 8 words of a vertex went.
  EXPECT_GE(control.most_taken(), control.taken() + vertices.size() * 8 * sizeof(uint32_t));

  DrawJob poor(0);
  CountingControl purse;
  purse.room = control.taken() + 1000;
  poor.job().control = &purse;
  poor.draw(vertices);
  EXPECT_NE(poor.error().find("out of memory"), std::string::npos) << poor.error();
}

}  // namespace
}  // namespace v3d::cle
