/// Pictures without a window for captures that are looked into: OpenGL ES 3.1, and what glmark2 and the
/// samples do not draw.
///
///   targets colors   four targets of different kinds, with blending, masks, depth and stencil, in two passes
///   targets layers   a layered target, whose layers a geometry shader chooses, and passes to single layers
///   targets samples  four samples of colour, depth and stencil, kept from pass to pass and then resolved
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GLES3/gl32.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>

#include "tests/e2e/gl/compile.h"

namespace {

constexpr int kWidth = 150, kHeight = 110;  // more than one tile, and no multiple of one
constexpr int kLayers = 3;

void require(bool condition, const char* what, const char* detail = "") {
  if (condition) return;
  std::fprintf(stderr, "failed: %s (EGL %#x, GL %#x) %s\n", what, static_cast<unsigned>(eglGetError()),
               glGetError(), detail);
  std::exit(1);
}

void make_context() {
  const EGLDisplay display =
      eglGetPlatformDisplay(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, nullptr);
  require(eglInitialize(display, nullptr, nullptr), "eglInitialize");
  require(eglBindAPI(EGL_OPENGL_ES_API), "eglBindAPI");
  const EGLint version[] = {EGL_CONTEXT_MAJOR_VERSION, 3, EGL_CONTEXT_MINOR_VERSION, 1, EGL_NONE};
  const EGLContext context = eglCreateContext(display, EGL_NO_CONFIG_KHR, EGL_NO_CONTEXT, version);
  require(context != EGL_NO_CONTEXT, "eglCreateContext");
  require(eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context), "eglMakeCurrent");
}

void add_shader(GLuint program, GLenum stage, const std::string& source) {
  GLuint shader = 0;
  std::string log;
  require(e2e::compile(stage, "#version 310 es\n" + source, &shader, &log), "shader compiles", log.c_str());
  glAttachShader(program, shader);
}

/// Triangles that lie over each other, each with its number in `tone`.
constexpr const char* kVertices = R"(
  layout(location = 0) in vec3 position;
  flat out float tone;
  out vec2 at;
  void main() {
    tone = float(1 + gl_VertexID / 3);
    at = position.xy;
    gl_Position = vec4(position, 1.0);
  })";

void use_program(const std::string& fragment, const std::string& vertex = kVertices,
                 const std::string& geometry = "") {
  const GLuint program = glCreateProgram();
  add_shader(program, GL_VERTEX_SHADER, vertex);
  if (!geometry.empty()) add_shader(program, GL_GEOMETRY_SHADER, geometry);
  add_shader(program, GL_FRAGMENT_SHADER, fragment);
  glLinkProgram(program);
  GLint linked = 0;
  glGetProgramiv(program, GL_LINK_STATUS, &linked);
  require(linked, "program links");
  glUseProgram(program);
}

GLuint make_texture(GLenum kind, GLenum format) {
  GLuint texture = 0;
  glGenTextures(1, &texture);
  glBindTexture(kind, texture);
  if (kind == GL_TEXTURE_2D)
    glTexStorage2D(kind, 1, format, kWidth, kHeight);
  else
    glTexStorage3D(kind, 1, format, kWidth, kHeight, kLayers);
  return texture;
}

GLuint make_framebuffer() {
  GLuint framebuffer = 0;
  glGenFramebuffers(1, &framebuffer);
  glBindFramebuffer(GL_FRAMEBUFFER, framebuffer);
  return framebuffer;
}

void attach_samples(GLenum attachment, GLenum format) {
  GLuint buffer = 0;
  glGenRenderbuffers(1, &buffer);
  glBindRenderbuffer(GL_RENDERBUFFER, buffer);
  glRenderbufferStorageMultisample(GL_RENDERBUFFER, 4, format, kWidth, kHeight);
  glFramebufferRenderbuffer(GL_FRAMEBUFFER, attachment, GL_RENDERBUFFER, buffer);
}

void begin_drawing() {
  require(glCheckFramebufferStatus(GL_FRAMEBUFFER) == GL_FRAMEBUFFER_COMPLETE, "framebuffer is complete");
  glViewport(0, 0, kWidth, kHeight);
  glEnable(GL_DEPTH_TEST);
  glClearDepthf(0.9f);
  glClearStencil(3);
}

/// Each side of the triangles is oblique, so that pixels on them have some of their samples.
void draw(std::span<const float> corners) {
  GLuint array = 0, buffer = 0;
  glGenVertexArrays(1, &array);
  glBindVertexArray(array);
  glGenBuffers(1, &buffer);
  glBindBuffer(GL_ARRAY_BUFFER, buffer);
  glBufferData(GL_ARRAY_BUFFER, static_cast<GLsizeiptr>(corners.size_bytes()), corners.data(),
               GL_STATIC_DRAW);
  glEnableVertexAttribArray(0);
  glVertexAttribPointer(0, 3, GL_FLOAT, GL_FALSE, 0, nullptr);
  glDrawArrays(GL_TRIANGLES, 0, static_cast<GLsizei>(corners.size() / 3));
}
constexpr std::array<float, 27> kCorners = {-0.9f, -0.8f, 0.5f,  0.8f, -0.9f, 0.1f,  0.1f,  0.9f, -0.4f,
                                            -0.7f, 0.9f,  -0.3f, 0.9f, 0.7f,  0.2f,  -0.2f, -1,   0.6f,
                                            -1,    -0.3f, -0.2f, 1,    -0.1f, -0.2f, 0.6f,  0.8f, 0.8f};

/// Counts the triangles of a pixel that pass both tests, up and around the end of its eight bits.
void count_in_stencil() {
  glEnable(GL_STENCIL_TEST);
  glStencilFunc(GL_NOTEQUAL, 5, 0x7f);
  glStencilOp(GL_REPLACE, GL_INVERT, GL_INCR_WRAP);
  glStencilMask(0x7f);
}

void draw_colors() {
  const std::array<GLenum, 4> formats = {GL_RGBA8, GL_RGBA16F, GL_R32UI, GL_RGBA8I};
  make_framebuffer();
  std::array<GLenum, 4> all{};
  for (GLenum n = 0; n < formats.size(); ++n) {
    all[n] = GL_COLOR_ATTACHMENT0 + n;
    glFramebufferTexture2D(GL_FRAMEBUFFER, all[n], GL_TEXTURE_2D, make_texture(GL_TEXTURE_2D, formats[n]), 0);
  }
  glFramebufferTexture2D(GL_FRAMEBUFFER, GL_DEPTH_STENCIL_ATTACHMENT, GL_TEXTURE_2D,
                         make_texture(GL_TEXTURE_2D, GL_DEPTH24_STENCIL8), 0);
  glDrawBuffers(4, all.data());
  begin_drawing();
  use_program(R"(
    precision highp float;
    precision highp int;
    flat in float tone;
    in vec2 at;
    layout(location = 0) out vec4 plain;
    layout(location = 1) out vec4 large;
    layout(location = 2) out uint number;
    layout(location = 3) out ivec4 numbers;
    void main() {
      if (fract(at.x * 7.0) < 0.1) discard;
      plain = vec4(at, 0.3 * tone, 0.6);
      large = vec4(100.0 * at, -tone, 0.5);
      number = uint(tone * 1e9) + uint(gl_FragCoord.x);
      numbers = ivec4(100.0 * at.x, 100.0 * at.y, -tone, 127);
    })");
  const std::array<GLfloat, 4> plain = {0.2f, 0.4f, 0.6f, 0.8f}, large = {1000, -2, 0.001f, 1};
  const std::array<GLuint, 4> number = {0xfedcba98, 0, 0, 0};
  const std::array<GLint, 4> numbers = {-128, 127, -1, 1};
  glClear(GL_DEPTH_BUFFER_BIT | GL_STENCIL_BUFFER_BIT);
  glClearBufferfv(GL_COLOR, 0, plain.data());
  glClearBufferfv(GL_COLOR, 1, large.data());
  glClearBufferuiv(GL_COLOR, 2, number.data());
  glClearBufferiv(GL_COLOR, 3, numbers.data());
  count_in_stencil();
  draw(kCorners);
  glFinish();
  // A second pass begins with what the first one left.
  glEnable(GL_BLEND);
  glBlendFuncSeparate(GL_SRC_ALPHA, GL_ONE_MINUS_SRC_ALPHA, GL_ONE, GL_ONE);
  glColorMask(GL_TRUE, GL_FALSE, GL_TRUE, GL_TRUE);
  glDepthFunc(GL_GEQUAL);
  draw(kCorners);
}

void draw_layers() {
  const GLuint colors = make_texture(GL_TEXTURE_2D_ARRAY, GL_RGB10_A2),
               depths = make_texture(GL_TEXTURE_2D_ARRAY, GL_DEPTH_COMPONENT32F);
  make_framebuffer();
  glFramebufferTexture(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, colors, 0);
  glFramebufferTexture(GL_FRAMEBUFFER, GL_DEPTH_ATTACHMENT, depths, 0);
  begin_drawing();
  const std::string color = R"(
    precision highp float;
    flat in float tone;
    in vec2 at;
    out vec4 color;
    void main() { color = vec4(0.5 + 0.5 * at, 0.2 * tone, 1.0); })";
  use_program(color, R"(
    layout(location = 0) in vec3 position;
    void main() { gl_Position = vec4(position, 1.0); })",
              R"(#extension GL_EXT_geometry_shader : require
    layout(triangles) in;
    layout(triangle_strip, max_vertices = 9) out;
    flat out float tone;
    out vec2 at;
    void main() {
      for (int layer = 0; layer < 3; ++layer) {
        for (int n = 0; n < 3; ++n) {
          gl_Layer = layer;
          tone = float(layer + gl_PrimitiveIDIn);
          at = gl_in[n].gl_Position.xy;
          gl_Position = gl_in[n].gl_Position + vec4(0.2 * float(layer), 0.0, 0.1 * float(layer), 0.0);
          EmitVertex();
        }
        EndPrimitive();
      }
    })");
  glClear(GL_COLOR_BUFFER_BIT | GL_DEPTH_BUFFER_BIT);
  draw(kCorners);
  glFinish();
  use_program(color);
  for (GLint layer = 0; layer < kLayers; layer += 2) {
    glFramebufferTextureLayer(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, colors, 0, layer);
    glFramebufferTextureLayer(GL_FRAMEBUFFER, GL_DEPTH_ATTACHMENT, depths, 0, layer);
    draw(std::span(kCorners).first(9));
  }
}

void draw_samples() {
  const GLuint samples = make_framebuffer();
  attach_samples(GL_COLOR_ATTACHMENT0, GL_RGBA8);
  attach_samples(GL_COLOR_ATTACHMENT1, GL_RGBA16F);
  attach_samples(GL_DEPTH_STENCIL_ATTACHMENT, GL_DEPTH24_STENCIL8);
  const std::array<GLenum, 2> both = {GL_COLOR_ATTACHMENT0, GL_COLOR_ATTACHMENT1};
  glDrawBuffers(2, both.data());
  begin_drawing();
  count_in_stencil();
  use_program(R"(
    precision highp float;
    flat in float tone;
    in vec2 at;
    layout(location = 0) out vec4 plain;
    layout(location = 1) out vec4 large;
    void main() {
      plain = vec4(0.5 + 0.5 * at, 0.3 * tone, fract(3.0 * at.x));
      large = vec4(10.0 * at, tone, -1.0);
    })");
  glClearColor(0.5f, 0.25f, 0.75f, 1);
  glClear(GL_COLOR_BUFFER_BIT | GL_DEPTH_BUFFER_BIT | GL_STENCIL_BUFFER_BIT);
  glEnable(GL_SAMPLE_ALPHA_TO_COVERAGE);
  draw(kCorners);
  glFinish();
  // A second pass begins with the samples that the first one left.
  glDisable(GL_SAMPLE_ALPHA_TO_COVERAGE);
  glEnable(GL_BLEND);
  glBlendFunc(GL_ONE, GL_ONE);
  glDepthFunc(GL_GEQUAL);
  draw(std::span(kCorners).first(18));
  glFinish();
  make_framebuffer();
  glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D,
                         make_texture(GL_TEXTURE_2D, GL_RGBA8), 0);
  glBindFramebuffer(GL_READ_FRAMEBUFFER, samples);
  glReadBuffer(GL_COLOR_ATTACHMENT0);
  glBlitFramebuffer(0, 0, kWidth, kHeight, 0, 0, kWidth, kHeight, GL_COLOR_BUFFER_BIT, GL_NEAREST);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc == 2 ? argv[1] : "";
  void (*const draw_it)() = what == "colors"    ? draw_colors
                            : what == "layers"  ? draw_layers
                            : what == "samples" ? draw_samples
                                                : nullptr;
  require(draw_it != nullptr, "usage: targets colors|layers|samples");
  make_context();
  draw_it();
  glFinish();
  require(glGetError() == GL_NO_ERROR, "no GL error");
  std::printf("%s\n", reinterpret_cast<const char*>(glGetString(GL_RENDERER)));
  return 0;
}
