/// Rules of the hardware that conformance suites revealed, each through the real driver in its smallest form.
#include <gtest/gtest.h>

#include <utility>

#include "context.h"

namespace e2e {
namespace {

constexpr const char* kPosition[] = {"position"};
constexpr const char* kPassThrough = "in vec4 position; void main() { gl_Position = position; }";
constexpr const char* kWhite = "out vec4 color; void main() { color = vec4(1); }";

using Pixels = std::vector<std::array<uint8_t, 4>>;
const std::array<uint8_t, 4>& at(const Pixels& pixels, int width, int x, int y) {
  return pixels[static_cast<size_t>(y) * static_cast<size_t>(width) + static_cast<size_t>(x)];
}
bool lit(const Pixels& pixels, int width, int x, int y) { return at(pixels, width, x, y)[1] != 0; }

void clear() {
  glClearColor(0, 0, 0, 1);
  glClear(GL_COLOR_BUFFER_BIT | GL_DEPTH_BUFFER_BIT);
}

class GlRules : public testing::Test {
  GlContext context_;
};

// A varying that is equal along an axis has the same bits everywhere on it: the texels that a blit takes must
// not depend on the row where their borders fall on pixel centres (dEQP-GLES3
// functional.fbo.blit.rect.nearest_consistency_*).
TEST_F(GlRules, NearestBlitsTakeTheSameTexelsInEveryRowAndColumn) {
  constexpr int kSize = 140, kEdge = 10;
  constexpr struct { int texels, pixels; } kScales[] = {{54, 81}, {78, 91}, {68, 51}, {52, 130}};
  for (const bool rows : {false, true}) {
    const GlTarget from(kSize, kSize);
    use_program(kPassThrough,
                std::string("out vec4 color; void main() { color = vec4(floor(gl_FragCoord.") +
                    (rows ? "y" : "x") + ") / 255); }",
                kPosition);
    draw(GL_TRIANGLE_STRIP, 2, std::array{-1.f, -1.f, 1.f, -1.f, -1.f, 1.f, 1.f, 1.f});
    for (const auto& scale : kScales) {
      const GlTarget to(kSize, kSize);
      glBindFramebuffer(GL_READ_FRAMEBUFFER, from.framebuffer());
      glBlitFramebuffer(kEdge, kEdge, kEdge + scale.texels, kEdge + scale.texels, kEdge, kEdge,
                        kEdge + scale.pixels, kEdge + scale.pixels, GL_COLOR_BUFFER_BIT, GL_NEAREST);
      const Pixels got = to.pixels();
      for (int i = kEdge; i < kEdge + scale.pixels; ++i)
        for (int k = kEdge; k < kEdge + scale.pixels; ++k) {
          const auto texel = [&](int across) {
            return rows ? at(got, kSize, across, i)[0] : at(got, kSize, i, across)[0];
          };
          ASSERT_EQ(texel(k), texel(kEdge))
              << scale.pixels << (rows ? " row " : " column ") << i << " at " << k;
        }
    }
  }
}

// Points are clipped by their centre in depth only; beside the viewport they are cut off at its border
// (dEQP-GLES2 functional.clipping.point.wide_point_clip).
TEST_F(GlRules, WidePointsBesideTheViewportReachIntoIt) {
  constexpr int kSize = 32;
  const GlTarget target(kSize, kSize);
  clear();
  use_program("in vec4 position; void main() { gl_Position = position; gl_PointSize = 8.0; }", kWhite,
              kPosition);
  glEnable(GL_PROGRAM_POINT_SIZE);
  glViewport(0, 0, 16, 16);
  // Centres 2 px to the right of the viewport, and beyond the far plane.
  draw(GL_POINTS, 4, std::array{1.25f, 0.f, 0.f, 1.f, 0.f, 0.75f, 1.1f, 1.f});
  const Pixels got = target.pixels();
  for (int y = 0; y < kSize; ++y)
    for (int x = 0; x < kSize; ++x)
      ASSERT_EQ(lit(got, kSize, x, y), x >= 14 && x < 16 && y >= 4 && y < 12) << x << " " << y;
}

// A unit of depth offset changes the stored depth wherever it is: z * 2^n rounded down (dEQP-GLES2
// functional.polygon_offset.*_render_with_units).
TEST_F(GlRules, AUnitOfDepthOffsetAlwaysChangesUnormDepth) {
  constexpr int kSize = 8;
  constexpr std::pair<float, float> kCases[] = {{-0.9f, -1}, {0, -1},   {0, 1},
                                                {0.1f, 1},   {0.5f, 1}, {0.99f, -1}};
  for (const GLenum format : {GL_DEPTH_COMPONENT16, GL_DEPTH_COMPONENT24}) {
    for (const auto& [z, units] : kCases) {
      const GlTarget target(kSize, kSize, format);
      clear();
      const auto quad = std::array{-1.f, -1.f, z, 1.f, -1.f, z, -1.f, 1.f, z, 1.f, 1.f, z};
      glEnable(GL_DEPTH_TEST);
      glDepthFunc(GL_LESS);
      glDisable(GL_POLYGON_OFFSET_FILL);
      use_program(kPassThrough, "out vec4 color; void main() { color = vec4(0); }", kPosition);
      draw(GL_TRIANGLE_STRIP, 3, quad);
      glEnable(GL_POLYGON_OFFSET_FILL);
      glPolygonOffset(0, units);
      glDepthFunc(units > 0 ? GL_GREATER : GL_LESS);
      use_program(kPassThrough, kWhite, kPosition);
      draw(GL_TRIANGLE_STRIP, 3, quad);
      const Pixels got = target.pixels();
      for (int i = 0; i < kSize * kSize; ++i) ASSERT_TRUE(lit(got, kSize, i % kSize, i / kSize)) << z;
    }
  }
}

// Depth of fragments is limited to 0..1 in float buffers too (dEQP-GLES3
// functional.fbo.depth.depth_test_clamp.depth_component32f).
TEST_F(GlRules, FloatDepthIsLimitedToTheUnitRange) {
  constexpr int kSize = 8;
  const GlTarget target(kSize, kSize, GL_DEPTH_COMPONENT32F);
  clear();
  glEnable(GL_DEPTH_TEST);
  const std::array quad = {-1.f, -1.f, 1.f, -1.f, -1.f, 1.f, 1.f, 1.f};
  const auto draw_at = [&](const char* depth, const char* color, GLenum function) {
    glDepthFunc(function);
    use_program(kPassThrough,
                std::string("out vec4 color; void main() { gl_FragDepth = ") + depth + "; color = vec4(" +
                    color + "); }",
                kPosition);
    draw(GL_TRIANGLE_STRIP, 2, quad);
  };
  draw_at("2.0", "0", GL_ALWAYS);
  draw_at("1.0", "0,1,0,0", GL_EQUAL);
  draw_at("-1.0", "1,1,0,0", GL_ALWAYS);
  draw_at("0.0", "1,1,1,0", GL_EQUAL);
  for (const auto& pixel : target.pixels()) ASSERT_EQ(pixel, (std::array<uint8_t, 4>{255, 255, 255, 0}));
}

// A line that begins and ends on corners of diamonds draws the pixels between them (piglit
// vs-clip-distance-primitives).
TEST_F(GlRules, LinesBetweenCornersOfDiamondsDrawWhatLiesBetween) {
  constexpr int kSize = 32;
  const GlTarget target(kSize, kSize);
  clear();
  use_program(kPassThrough, kWhite, kPosition);
  const auto ndc = [](float pixel) { return pixel / (kSize * 0.5f) - 1; };
  draw(GL_LINES, 2,
       std::array{ndc(10), ndc(4.5f), ndc(20), ndc(4.5f), ndc(4.5f), ndc(20), ndc(4.5f), ndc(10)});
  const Pixels got = target.pixels();
  for (int y = 0; y < kSize; ++y)
    for (int x = 0; x < kSize; ++x)
      ASSERT_EQ(lit(got, kSize, x, y), (y == 4 && x >= 10 && x < 20) || (x == 4 && y >= 10 && y < 20))
          << x << " " << y;
}

// A noperspective varying is linear on the screen also where the triangle is clipped (piglit
// interpolation-noperspective-*).
TEST_F(GlRules, NoperspectiveVaryingsStayLinearWhereTheTriangleIsClipped) {
  constexpr int kSize = 32;
  const GlTarget target(kSize, kSize);
  clear();
  // The window coordinate itself as a varying. The near plane cuts two of the corners off.
  use_program(
      "in vec4 position; noperspective out vec2 at;"
      "void main() { gl_Position = position; at = position.xy / position.w * 0.5 + 0.5; }",
      "noperspective in vec2 at; out vec4 color; void main() { color = vec4(at, 1, 1); }", kPosition);
  draw(GL_TRIANGLES, 4, std::array{-2.f, -2.f, 0.f, 2.f, 4.f, -4.f, -4.5f, 4.f, -1.f, 3.f, -1.5f, 1.f});
  int drawn = 0;
  const Pixels got = target.pixels();
  for (int y = 0; y < kSize; ++y)
    for (int x = 0; x < kSize; ++x) {
      const auto& pixel = at(got, kSize, x, y);
      if (pixel[2] == 0) continue;
      ++drawn;
      ASSERT_NEAR(pixel[0], (x + 0.5) / kSize * 255, 1.01) << x << " " << y;
      ASSERT_NEAR(pixel[1], (y + 0.5) / kSize * 255, 1.01) << x << " " << y;
    }
  EXPECT_GT(drawn, kSize * kSize / 16);
  EXPECT_LT(drawn, kSize * kSize);
}

// A varying has the same bits at a pixel whatever the tiles are: three render targets make them smaller than
// one does (dEQP-VK draw.renderpass.output_location.array.r32-sfloat-highp).
TEST_F(GlRules, VaryingsDoNotDependOnTheSizeOfTheTiles) {
  constexpr int kSize = 60;
  constexpr GLenum kBuffers[] = {GL_COLOR_ATTACHMENT0, GL_COLOR_ATTACHMENT1, GL_COLOR_ATTACHMENT2};
  const auto render = [&](GLsizei targets) {
    GLuint framebuffer = 0, textures[3] = {};
    glGenFramebuffers(1, &framebuffer);
    glBindFramebuffer(GL_FRAMEBUFFER, framebuffer);
    glGenTextures(targets, textures);
    for (GLsizei i = 0; i < targets; ++i) {
      glBindTexture(GL_TEXTURE_2D, textures[i]);
      glTexImage2D(GL_TEXTURE_2D, 0, GL_R32F, kSize, kSize, 0, GL_RED, GL_FLOAT, nullptr);
      glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAX_LEVEL, 0);
      glFramebufferTexture2D(GL_FRAMEBUFFER, kBuffers[i], GL_TEXTURE_2D, textures[i], 0);
    }
    glDrawBuffers(targets, kBuffers);
    glViewport(0, 0, kSize, kSize);
    use_program(
        "in vec4 position; out float value;"
        "void main() { gl_Position = vec4(position.xy, 0, 1); value = position.z; }",
        "in float value; out vec4 color[3]; void main() { color[0] = color[1] = color[2] = vec4(value); }",
        kPosition);
    draw(GL_TRIANGLE_STRIP, 4,
         std::array{-1.f, -1.f, 1.f, 0.f, 1.f, -1.f, 0.f, 0.f, -1.f, 1.f, 0.f, 0.f, 1.f, 1.f, 1.f, 0.f});
    std::vector<uint32_t> bits(kSize * kSize);
    glReadPixels(0, 0, kSize, kSize, GL_RED, GL_FLOAT, bits.data());
    glDeleteTextures(targets, textures);
    glDeleteFramebuffers(1, &framebuffer);
    return bits;
  };
  const std::vector<uint32_t> large = render(1), small = render(3);
  for (size_t i = 0; i < large.size(); ++i) ASSERT_EQ(large[i], small[i]) << i % kSize << " " << i / kSize;
}

}  // namespace
}  // namespace e2e
