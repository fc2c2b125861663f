/// OpenGL ES 2.0, which the drivers of all boards have: each test draws with one of its means and compares
/// every pixel with values that are computed here.
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GLES2/gl2.h>
#include <GLES2/gl2ext.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "compile.h"

namespace e2e {
namespace {

constexpr int kWidth = 100, kHeight = 70;  // more than one tile, and no multiple of one

using Pixel = std::array<uint8_t, 4>;

GLuint compile(GLenum stage, const std::string& source) {
  GLuint shader = 0;
  std::string log;
  EXPECT_TRUE(e2e::compile(stage, source, &shader, &log)) << log;
  return shader;
}

/// With a corner in `position` and whatever goes with it in `value`.
GLuint use_program(const std::string& vertex, const std::string& fragment) {
  const GLuint program = glCreateProgram();
  glAttachShader(program, compile(GL_VERTEX_SHADER, vertex));
  glAttachShader(program, compile(GL_FRAGMENT_SHADER, "precision highp float;\n" + fragment));
  glBindAttribLocation(program, 0, "position");
  glBindAttribLocation(program, 1, "value");
  glLinkProgram(program);
  GLint linked = 0;
  glGetProgramiv(program, GL_LINK_STATUS, &linked);
  EXPECT_TRUE(linked);
  glUseProgram(program);
  return program;
}

constexpr const char* kPlain = "attribute vec4 position; void main() { gl_Position = position; }";
constexpr const char* kWithValue =
    "attribute vec4 position; attribute vec4 value; varying vec4 v; void main() { gl_Position = position; v "
    "= value; }";

/// With the place of the pixel in `at`: gl_FragCoord of the driver vc4 lacks the half pixel, on boards as
/// well.
const std::string kWithPlace =
    "attribute vec4 position; varying vec2 at; void main() { gl_Position = position; at = (position.xy * 0.5 "
    "+ 0.5)"
    " * vec2(" +
    std::to_string(kWidth) + ", " + std::to_string(kHeight) + "); }";

void use_color(float r, float g, float b, float a) {
  const GLuint program = use_program(kPlain, "uniform vec4 color; void main() { gl_FragColor = color; }");
  glUniform4f(glGetUniformLocation(program, "color"), r, g, b, a);
}

/// A rectangle in pixels at a depth from -1 to 1.
void draw_rectangle(float left, float bottom, float right, float top, float z = 0) {
  const auto x = [](float pixel) { return pixel / (kWidth * 0.5f) - 1; };
  const auto y = [](float pixel) { return pixel / (kHeight * 0.5f) - 1; };
  const std::array corners = {x(left), y(bottom), z, x(right), y(bottom), z,
                              x(left), y(top),    z, x(right), y(top),    z};
  glEnableVertexAttribArray(0);
  glVertexAttribPointer(0, 3, GL_FLOAT, GL_FALSE, 0, corners.data());
  glDrawArrays(GL_TRIANGLE_STRIP, 0, 4);
}
void draw_all(float z = 0) { draw_rectangle(0, 0, kWidth, kHeight, z); }

class Es2 : public testing::Test {
 protected:
  void SetUp() override { make_context(0); }
  void TearDown() override {
    EXPECT_EQ(glGetError(), static_cast<GLenum>(GL_NO_ERROR));
    eglMakeCurrent(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
    eglTerminate(display_);
  }

  void make_context(EGLint samples) {
    display_ = eglGetPlatformDisplay(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, nullptr);
    ASSERT_TRUE(eglInitialize(display_, nullptr, nullptr));
    ASSERT_TRUE(eglBindAPI(EGL_OPENGL_ES_API));
    const EGLint wanted[] = {EGL_SURFACE_TYPE,
                             EGL_PBUFFER_BIT,
                             EGL_RENDERABLE_TYPE,
                             EGL_OPENGL_ES2_BIT,
                             EGL_RED_SIZE,
                             8,
                             EGL_ALPHA_SIZE,
                             8,
                             EGL_DEPTH_SIZE,
                             24,
                             EGL_STENCIL_SIZE,
                             8,
                             EGL_SAMPLES,
                             samples,
                             EGL_NONE};
    EGLConfig config;
    EGLint count = 0;
    ASSERT_TRUE(eglChooseConfig(display_, wanted, &config, 1, &count) && count == 1);
    const EGLint size[] = {EGL_WIDTH, kWidth, EGL_HEIGHT, kHeight, EGL_NONE};
    const EGLSurface surface = eglCreatePbufferSurface(display_, config, size);
    const EGLint version[] = {EGL_CONTEXT_CLIENT_VERSION, 2, EGL_NONE};
    const EGLContext context = eglCreateContext(display_, config, EGL_NO_CONTEXT, version);
    ASSERT_TRUE(eglMakeCurrent(display_, surface, surface, context));
    const char* renderer = reinterpret_cast<const char*>(glGetString(GL_RENDERER));
    if (const char* expected = std::getenv("E2E_DEVICE")) {
      ASSERT_NE(std::strstr(renderer, expected), nullptr) << renderer;
    }
    GLint got = 0;
    glGetIntegerv(GL_SAMPLES, &got);
    ASSERT_EQ(got, samples);
    glViewport(0, 0, kWidth, kHeight);
    glClearColor(0, 0, 0, 0);
    glClear(GL_COLOR_BUFFER_BIT | GL_DEPTH_BUFFER_BIT | GL_STENCIL_BUFFER_BIT);
  }

  static size_t pixel_at(int x, int y) { return static_cast<size_t>(y) * kWidth + static_cast<size_t>(x); }
  static std::vector<Pixel> read() {
    std::vector<Pixel> pixels(kWidth * kHeight);
    glReadPixels(0, 0, kWidth, kHeight, GL_RGBA, GL_UNSIGNED_BYTE, pixels.data());
    return pixels;
  }
  /// @param expected  expected(x, y): of the pixel, or of none where it may be anything (alpha 1)
  template <typename Expected>
  static void expect_pixels(const Expected& expected, int tolerance = 1) {
    const std::vector<Pixel> got = read();
    int wrong = 0;
    for (int y = 0; y < kHeight; ++y)
      for (int x = 0; x < kWidth; ++x) {
        const Pixel& pixel = got[pixel_at(x, y)];
        const Pixel wanted = expected(x, y);
        if (wanted[3] == kAny) continue;
        for (size_t c = 0; c < 4; ++c)
          if (std::abs(pixel[c] - wanted[c]) > tolerance && wrong++ < 8)
            ADD_FAILURE() << "pixel " << x << "," << y << " channel " << c << " is " << int{pixel[c]}
                          << ", not " << int{wanted[c]};
      }
    EXPECT_EQ(wrong, 0);
  }
  static constexpr uint8_t kAny = 7;  ///< in alpha: nothing is said of the pixel

 private:
  EGLDisplay display_ = EGL_NO_DISPLAY;
};

class Es2With4Samples : public Es2 {
 protected:
  void SetUp() override { make_context(4); }
};

TEST_F(Es2, ClearsAndDrawsInAScissor) {
  glEnable(GL_SCISSOR_TEST);
  glScissor(10, 20, 70, 45);
  glClearColor(1, 0.5f, 0, 1);
  glClear(GL_COLOR_BUFFER_BIT);
  glScissor(60, 5, 30, 30);
  use_color(0, 0, 1, 1);
  draw_all();
  expect_pixels([](int x, int y) {
    if (x >= 60 && x < 90 && y >= 5 && y < 35) return Pixel{0, 0, 255, 255};
    return x >= 10 && x < 80 && y >= 20 && y < 65 ? Pixel{255, 128, 0, 255} : Pixel{};
  });
}

TEST_F(Es2, KeepsTheNearest) {
  glEnable(GL_DEPTH_TEST);
  use_color(1, 0, 0, 1);
  draw_rectangle(0, 0, 60, 70, 0.25f);
  use_color(0, 1, 0, 1);
  draw_rectangle(30, 0, 100, 70, 0.5f);  // behind
  use_color(0, 0, 1, 1);
  draw_rectangle(20, 30, 80, 40, -0.5f);
  expect_pixels([](int x, int y) {
    if (x >= 20 && x < 80 && y >= 30 && y < 40) return Pixel{0, 0, 255, 255};
    return x < 60 ? Pixel{255, 0, 0, 255} : Pixel{0, 255, 0, 255};
  });
}

TEST_F(Es2, CountsInTheStencilBuffer) {
  glEnable(GL_STENCIL_TEST);
  glColorMask(GL_FALSE, GL_FALSE, GL_FALSE, GL_FALSE);
  glStencilFunc(GL_ALWAYS, 0, 0xff);
  glStencilOp(GL_KEEP, GL_KEEP, GL_INCR);
  use_color(1, 1, 1, 1);
  draw_rectangle(0, 0, 50, 70);
  draw_rectangle(25, 0, 75, 70);
  glColorMask(GL_TRUE, GL_TRUE, GL_TRUE, GL_TRUE);
  glStencilOp(GL_KEEP, GL_KEEP, GL_KEEP);
  for (int count = 0; count < 3; ++count) {
    glStencilFunc(GL_EQUAL, count, 0xff);
    use_color(count == 0, count == 1, count == 2, 1);
    draw_all();
  }
  expect_pixels([](int x, int) {
    const int count = (x < 50) + (x >= 25 && x < 75);
    return Pixel{static_cast<uint8_t>(255 * (count == 0)), static_cast<uint8_t>(255 * (count == 1)),
                 static_cast<uint8_t>(255 * (count == 2)), 255};
  });
}

TEST_F(Es2, BlendsAndMasks) {
  glClearColor(0.2f, 0.4f, 0.6f, 0.8f);
  glClear(GL_COLOR_BUFFER_BIT);
  glEnable(GL_BLEND);
  glBlendFuncSeparate(GL_SRC_ALPHA, GL_ONE_MINUS_SRC_ALPHA, GL_ONE, GL_ZERO);
  use_color(1, 0, 0, 0.25f);
  draw_rectangle(0, 0, 50, 70);
  glBlendEquation(GL_FUNC_REVERSE_SUBTRACT);
  glBlendFunc(GL_ONE, GL_ONE);
  glColorMask(GL_TRUE, GL_FALSE, GL_TRUE, GL_FALSE);
  use_color(0.1f, 0.1f, 0.1f, 0.1f);
  draw_rectangle(50, 0, 100, 35);
  expect_pixels(
      [](int x, int y) {
        if (x < 50) return Pixel{102, 77, 115, 64};
        return y < 35 ? Pixel{26, 102, 128, 204} : Pixel{51, 102, 153, 204};
      },
      2);
}

TEST_F(Es2, InterpolatesVaryingsInPerspective) {
  use_program(kWithValue, "varying vec4 v; void main() { gl_FragColor = vec4(v.xx, 0.0, 1.0); }");
  // The right side is three times as far away as the left one.
  const std::array corners = {-1.f, -1.f, 0.f, 1.f, 3.f, -3.f, 0.f, 3.f,
                              -1.f, 1.f,  0.f, 1.f, 3.f, 3.f,  0.f, 3.f};
  const std::array values = {0.f, 1.f, 0.f, 1.f};
  glEnableVertexAttribArray(0);
  glEnableVertexAttribArray(1);
  glVertexAttribPointer(0, 4, GL_FLOAT, GL_FALSE, 0, corners.data());
  glVertexAttribPointer(1, 1, GL_FLOAT, GL_FALSE, 0, values.data());
  glDrawArrays(GL_TRIANGLE_STRIP, 0, 4);
  expect_pixels([](int x, int) {
    const double at = (x + 0.5) / kWidth;
    const auto value = static_cast<uint8_t>(std::lround(255 * at / (3 - 2 * at)));
    return Pixel{value, value, 0, 255};
  });
}

TEST_F(Es2, DrawsByIndicesOfEverySize) {
  constexpr int kColumns = 10, kRows = 7;
  std::vector<float> positions, values;
  std::vector<uint16_t> indices;
  for (int row = 0; row < kRows; ++row)
    for (int column = 0; column < kColumns; ++column) {
      const auto first = static_cast<uint16_t>(positions.size() / 2);
      for (int corner = 0; corner < 4; ++corner) {
        positions.push_back(static_cast<float>(column + (corner & 1)) * 2 / kColumns - 1);
        positions.push_back(static_cast<float>(row + (corner >> 1)) * 2 / kRows - 1);
        values.push_back(static_cast<float>(column) / 15);
        values.push_back(static_cast<float>(row) / 15);
      }
      for (const int i : {0, 1, 2, 2, 1, 3}) indices.push_back(static_cast<uint16_t>(first + i));
    }
  use_program(kWithValue, "varying vec4 v; void main() { gl_FragColor = vec4(v.xy, 0.0, 1.0); }");
  glEnableVertexAttribArray(0);
  glEnableVertexAttribArray(1);
  glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, 0, positions.data());
  glVertexAttribPointer(1, 2, GL_FLOAT, GL_FALSE, 0, values.data());
  const size_t split = 6 * 60;  // quads with vertices below 256
  const std::vector<uint8_t> bytes(indices.begin(), indices.begin() + split);
  glDrawElements(GL_TRIANGLES, split, GL_UNSIGNED_BYTE, bytes.data());
  glDrawElements(GL_TRIANGLES, static_cast<GLsizei>(indices.size() - split), GL_UNSIGNED_SHORT,
                 indices.data() + split);
  expect_pixels([](int x, int y) {
    return Pixel{static_cast<uint8_t>(x / 10 * 17), static_cast<uint8_t>(y / 10 * 17), 0, 255};
  });
}

TEST_F(Es2, DrawsPointsAndWideLines) {
  use_program("attribute vec4 position; void main() { gl_Position = position; gl_PointSize = 9.0; }",
              "void main() { gl_FragColor = vec4(gl_PointCoord, 1.0, 1.0); }");
  const auto x = [](float pixel) { return pixel / (kWidth * 0.5f) - 1; };
  const auto y = [](float pixel) { return pixel / (kHeight * 0.5f) - 1; };
  const std::array point = {x(20.5f), y(30.5f)};
  glEnableVertexAttribArray(0);
  glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, 0, point.data());
  glDrawArrays(GL_POINTS, 0, 1);
  use_color(1, 0, 0, 1);
  const std::array line = {x(40), y(10.5f), x(90), y(10.5f)};
  glLineWidth(5);
  glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, 0, line.data());
  glDrawArrays(GL_LINES, 0, 2);
  expect_pixels(
      [](int px, int py) {
        if (px >= 16 && px < 25 && py >= 26 && py < 35)
          return Pixel{static_cast<uint8_t>(std::lround(255 * (px - 16 + 0.5) / 9)),
                       static_cast<uint8_t>(std::lround(255 * (1 - (py - 26 + 0.5) / 9))), 255, 255};
        return px >= 40 && px < 90 && py >= 8 && py < 13 ? Pixel{255, 0, 0, 255} : Pixel{};
      },
      3);
}

TEST_F(Es2, DiscardsFragmentsAndLoops) {
  // As many times as the column says, which no compiler knows.
  use_program(kWithPlace,
              "varying vec2 at; uniform float step; void main() {"
              "  if (mod(floor(at.y), 2.0) == 1.0) discard;"
              "  float sum = 0.0; float most = floor(at.x);"
              "  for (int i = 0; i < 128; ++i) { if (float(i) >= most) break; sum += step; }"
              "  gl_FragColor = vec4(sum, 0.0, 0.0, 1.0); }");
  GLint program = 0;
  glGetIntegerv(GL_CURRENT_PROGRAM, &program);
  glUniform1f(glGetUniformLocation(static_cast<GLuint>(program), "step"), 1.f / 128);
  draw_all();
  expect_pixels(
      [](int x, int y) {
        return y % 2 ? Pixel{} : Pixel{static_cast<uint8_t>(std::lround(255.0 * x / 128)), 0, 0, 255};
      },
      2);
}

/// A texture of one value a pixel of its place.
GLuint make_texture(int width, int height, GLenum filter) {
  std::vector<Pixel> texels;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      texels.push_back({static_cast<uint8_t>(x), static_cast<uint8_t>(y), static_cast<uint8_t>(x ^ y), 255});
  GLuint texture = 0;
  glGenTextures(1, &texture);
  glBindTexture(GL_TEXTURE_2D, texture);
  glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA, width, height, 0, GL_RGBA, GL_UNSIGNED_BYTE, texels.data());
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, static_cast<GLint>(filter));
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_S, GL_CLAMP_TO_EDGE);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_T, GL_CLAMP_TO_EDGE);
  return texture;
}

constexpr const char* kTextured =
    "uniform vec2 scale; varying vec2 at; uniform sampler2D image;"
    "void main() { gl_FragColor = texture2D(image, at * scale); }";

void draw_textured(float per_pixel_x, float per_pixel_y) {
  const GLuint program = use_program(kWithPlace, kTextured);
  glUniform2f(glGetUniformLocation(program, "scale"), per_pixel_x, per_pixel_y);
  draw_all();
}

// In T tiles, several of them; and in LT, which small ones have.
TEST_F(Es2, FetchesTexelsOfLargeAndSmallTextures) {
  make_texture(kWidth, kHeight, GL_NEAREST);
  draw_textured(1.f / kWidth, 1.f / kHeight);
  expect_pixels(
      [](int x, int y) {
        return Pixel{static_cast<uint8_t>(x), static_cast<uint8_t>(y), static_cast<uint8_t>(x ^ y), 255};
      },
      0);
  make_texture(10, 7, GL_NEAREST);
  draw_textured(1.f / kWidth, 1.f / kHeight);
  expect_pixels(
      [](int x, int y) {
        x /= 10, y /= 10;
        return Pixel{static_cast<uint8_t>(x), static_cast<uint8_t>(y), static_cast<uint8_t>(x ^ y), 255};
      },
      0);
}

TEST_F(Es2, MakesAndTakesMipmaps) {
  constexpr int kSize = 128;
  make_texture(kSize, kSize, GL_NEAREST_MIPMAP_NEAREST);
  glGenerateMipmap(GL_TEXTURE_2D);
  for (int level = 1; level <= 4; ++level) {
    const int texels = kSize >> level, step = 1 << level;
    draw_textured(1.f / static_cast<float>(texels), 1.f / static_cast<float>(texels));
    expect_pixels(
        [&](int x, int y) {
          const auto middle = [&](int at) {
            return static_cast<uint8_t>(std::lround(std::min(at, texels - 1) * step + (step - 1) * 0.5));
          };
          return Pixel{middle(x), middle(y), 0, 255};
        },
        255);  // the exclusive or has no average
    const std::vector<Pixel> got = read();
    for (int y = 0; y < kHeight; ++y)
      for (int x = 0; x < kWidth; ++x) {
        const Pixel& pixel = got[pixel_at(x, y)];
        ASSERT_NEAR(pixel[0], std::min(x, texels - 1) * step + (step - 1) * 0.5, level + 1)
            << level << ": " << x;
        ASSERT_NEAR(pixel[1], std::min(y, texels - 1) * step + (step - 1) * 0.5, level + 1)
            << level << ": " << y;
      }
  }
}

TEST_F(Es2, FindsFacesOfCubes) {
  GLuint texture = 0;
  glGenTextures(1, &texture);
  glBindTexture(GL_TEXTURE_CUBE_MAP, texture);
  const auto color_of = [](int face) {
    return Pixel{static_cast<uint8_t>(40 * face), static_cast<uint8_t>(255 - 40 * face), 99, 255};
  };
  for (int face = 0; face < 6; ++face) {
    const std::vector<Pixel> texels(32 * 32, color_of(face));
    glTexImage2D(GL_TEXTURE_CUBE_MAP_POSITIVE_X + static_cast<GLenum>(face), 0, GL_RGBA, 32, 32, 0, GL_RGBA,
                 GL_UNSIGNED_BYTE, texels.data());
  }
  glTexParameteri(GL_TEXTURE_CUBE_MAP, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
  glTexParameteri(GL_TEXTURE_CUBE_MAP, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
  const GLuint program = use_program(
      kWithPlace,
      "varying vec2 at; uniform vec3 direction; uniform samplerCube image;"
      "void main() { gl_FragColor = textureCube(image, direction + 0.3 * fract(at.xyx * 0.1)); }");
  for (int face = 0; face < 6; ++face) {
    std::array<float, 3> direction{};
    direction[static_cast<size_t>(face / 2)] = face % 2 ? -1.5f : 1.5f;
    glUniform3fv(glGetUniformLocation(program, "direction"), 1, direction.data());
    const auto left = static_cast<float>(16 * face);
    draw_rectangle(left, 0, left + 16, kHeight);
  }
  expect_pixels([&](int x, int) { return x < 96 ? color_of(x / 16) : Pixel{}; });
}

TEST_F(Es2, DecodesEtc1) {
  // Both halves one colour each, of 4 bits a channel; all texels take the first modifier of their table, +2.
  constexpr std::array<uint8_t, 8> kBlock = {0x2c, 0x48, 0x84, 0x00, 0, 0, 0, 0};
  GLuint texture = 0;
  glGenTextures(1, &texture);
  glBindTexture(GL_TEXTURE_2D, texture);
  glCompressedTexImage2D(GL_TEXTURE_2D, 0, GL_ETC1_RGB8_OES, 4, 4, 0, kBlock.size(), kBlock.data());
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
  draw_textured(1.f / kWidth, 1.f / kHeight);
  expect_pixels([](int x, int) {
    return x < kWidth / 2 ? Pixel{0x24, 0x46, 0x8a, 255} : Pixel{0xce, 0x8a, 0x46, 255};
  });
}

TEST_F(Es2, RendersTo565AndSamplesIt) {
  GLuint texture = 0, framebuffer = 0;
  glGenTextures(1, &texture);
  glBindTexture(GL_TEXTURE_2D, texture);
  glTexImage2D(GL_TEXTURE_2D, 0, GL_RGB, kWidth, kHeight, 0, GL_RGB, GL_UNSIGNED_SHORT_5_6_5, nullptr);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_S, GL_CLAMP_TO_EDGE);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_T, GL_CLAMP_TO_EDGE);
  glGenFramebuffers(1, &framebuffer);
  glBindFramebuffer(GL_FRAMEBUFFER, framebuffer);
  glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, texture, 0);
  ASSERT_EQ(glCheckFramebufferStatus(GL_FRAMEBUFFER), static_cast<GLenum>(GL_FRAMEBUFFER_COMPLETE));
  use_program(kWithPlace, "varying vec2 at; void main() { gl_FragColor = vec4(at / 128.0, 0.5, 1.0); }");
  draw_all();
  glBindFramebuffer(GL_FRAMEBUFFER, 0);
  draw_textured(1.f / kWidth, 1.f / kHeight);
  expect_pixels(
      [](int x, int y) {
        return Pixel{static_cast<uint8_t>(std::lround((x + 0.5) / 128 * 255)),
                     static_cast<uint8_t>(std::lround((y + 0.5) / 128 * 255)), 128, 255};
      },
      9);  // a step of five bits
}

TEST_F(Es2With4Samples, ResolvesEdges) {
  use_color(1, 1, 1, 1);
  // Columns of pixels that are covered by quarters of their width.
  draw_rectangle(10, 10, 40.5f, 60);
  const std::vector<Pixel> got = read();
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x) {
      const int value = got[pixel_at(x, y)][0];
      const bool row = y >= 10 && y < 60;
      if (x == 40 && row)
        EXPECT_NEAR(value, 128, 1) << x << "," << y;
      else
        ASSERT_EQ(value, row && x >= 10 && x < 40 ? 255 : 0) << x << "," << y;
    }
}

TEST_F(Es2With4Samples, TestsTheDepthOfSamples) {
  glEnable(GL_DEPTH_TEST);
  use_color(1, 0, 0, 1);
  draw_rectangle(0, 0, 50.5f, 70, 0);
  use_color(0, 1, 0, 1);
  draw_rectangle(0, 0, 100, 70, 0.5f);
  expect_pixels([](int x, int) {
    if (x == 50) return Pixel{128, 128, 0, 255};
    return x < 50 ? Pixel{255, 0, 0, 255} : Pixel{0, 255, 0, 255};
  });
}

}  // namespace
}  // namespace e2e
