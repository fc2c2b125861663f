/// Draws whose vertices, state and primitives are random words: nothing may crash, hang, or leave the tile.
#include <gtest/gtest.h>

#include <random>

#include "tests/pse/scene.h"

namespace v3d::pse {
namespace {

class HostileDraw : public testing::TestWithParam<int> {
 protected:
  HostileDraw() : random_(static_cast<uint32_t>(GetParam()) * 7919 + 1) {}

  uint32_t word() {
    static constexpr uint32_t kSpecial[] = {0,          0x80000000, 0x7f800000, 0xff800000,
                                            0x7fc00000, 0x7f800001, 0x00000001, 0x7f7fffff,
                                            0x3f800000, 0xbf800000, 0xffffffff};
    if (random_() % 3 == 0) return kSpecial[random_() % std::size(kSpecial)];
    return random_() % 2 ? random_() : bits(static_cast<float>(static_cast<int>(random_() % 4000) - 1000));
  }
  float number() { return std::bit_cast<float>(word()); }
  /// Pixels; extreme ones do not fit the 1/64 px grid and wrap.
  double position() {
    switch (random_() % 8) {
      case 0:
        return (static_cast<double>(random_()) - 2147483648.0) / 64;
      case 1:
        return static_cast<double>(random_() % 131072) - 65536;
      default:
        return static_cast<double>(random_() % 8192) / 64 - 32;
    }
  }
  std::vector<SceneVertex> vertices(size_t count) {
    std::vector<SceneVertex> v(count);
    for (SceneVertex& s : v)
      s = {position(), position(), number(), number(), {word(), word(), word(), word()}};
    return v;
  }
  void scramble(draw::Draw& draw) {
    draw::DrawState& s = draw.state;
    s.cfg.depth_offset = random_() % 2;
    s.cfg.z_clamp = random_() % 2;
    s.cfg.line_mode = random_() % 2;
    s.cfg.oversample = random_() % 4;
    s.cfg.depth_func = static_cast<Compare>(random_() % 8);
    s.cfg.z_write = random_() % 2;
    s.cfg.wireframe = random_() % 2;
    s.line_width = number();
    s.point_size = number();
    s.offset_factor = number();
    s.offset_units = number();
    s.offset_limit = number();
    s.z_min_clip = number();
    s.z_max_clip = number();
    s.z_scale = number();
    s.z_offset = number();
    s.sample_mask = random_() % 16;
    s.viewport_x = static_cast<int32_t>(random_()) >> (random_() % 2 ? 8 : 31);
    s.viewport_y = static_cast<int32_t>(random_()) >> (random_() % 2 ? 8 : 31);
    if (random_() % 4 == 0) {
      s.clip_left = static_cast<uint16_t>(random_());
      s.clip_bottom = static_cast<uint16_t>(random_());
      s.clip_width = static_cast<uint16_t>(random_());
      s.clip_height = static_cast<uint16_t>(random_());
    }
    s.flat.words[0] = random_();
    s.noperspective.words[0] = random_();
    s.centroid.words[0] = random_();
    for (draw::Primitive& p : draw.primitives) {
      p.back_facing = random_() % 2;
      if (random_() % 16 == 0) p.vertex[random_() % 3] = random_();  // a geometry program emitted less
      if (random_() % 16 == 0) p.provoking = random_();
      if (random_() % 3 == 0) add_polygon(draw, p);
    }
  }
  void add_polygon(draw::Draw& draw, draw::Primitive& p) {
    draw::ClippedPolygon polygon{};
    polygon.num_corners = draw.vertices_per_primitive == 2 ? 2 : 3 + random_() % 10;
    for (uint32_t i = 0; i < polygon.num_corners; ++i) {
      draw::ClippedPolygon::Corner& c = polygon.corners[i];
      c.x = static_cast<int32_t>(random_() % 8192) - 2048;
      c.y = static_cast<int32_t>(random_() % 8192) - 2048;
      for (float& weight : c.weight) weight = number();
      c.z = number();
      c.w = number();
    }
    p.clipped = static_cast<int32_t>(draw.clipped.size());
    draw.clipped.push_back(polygon);
  }

  std::mt19937 random_;
};
INSTANTIATE_TEST_SUITE_P(Seeds, HostileDraw, testing::Range(0, 40));

TEST_P(HostileDraw, EndsInsideTheTile) {
  const uint32_t tile = 8u << random_() % 4;
  Scene scene(static_cast<uint32_t>(1 + random_() % 100), static_cast<uint32_t>(1 + random_() % 70), tile,
              random_() % 2);
  ProgramBuilder fs;
  for (uint8_t i = 0; i < 4; ++i) fs.varying(static_cast<uint8_t>(10 + i), i & 1 ? 1 : 3);
  fs.store(10);
  const draw::ShaderCode code = fs.build(&scene.test());
  for (int corners = 1; corners <= 3; ++corners) {
    scramble(scene.add_draw(corners, vertices(60), code, static_cast<uint8_t>(random_() % 5)));
    scene.record().sample_shading = random_() % 2;
    scene.record().fs_writes_z = random_() % 2;
    scene.record().early_z_off = random_() % 2;
    scene.record().point_size_in_vertices = random_() % 2;
    scene.record().no_implicit_varyings = random_() % 2;
    scene.record().primitive_id_varying = random_() % 2;
  }
  EXPECT_TRUE(scene.render()) << scene.error();
  EXPECT_LE(scene.count(perf::kFepPrimitivesNoPixels), scene.count(perf::kFepPrimitivesPixels));
}

}  // namespace
}  // namespace v3d::pse
