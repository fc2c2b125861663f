#include "painter.h"

#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GLES2/gl2ext.h>
#include <fcntl.h>
#include <gbm.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace e2e {
namespace {

constexpr uint64_t kLinear = 0;

constexpr char kVertex[] = R"(#version 310 es
void main() {  // one triangle over everything
  gl_Position = vec4(gl_VertexID == 1 ? 3.0 : -1.0, gl_VertexID == 2 ? 3.0 : -1.0, 0.0, 1.0);
})";

// expected_pixel(); `zero` keeps the loop from being left out.
constexpr char kFrameFragment[] = R"(#version 310 es
precision highp float;
precision highp int;
uniform uint frame;
uniform int work;
uniform float zero;
out vec4 color;
void main() {
  uvec2 block = uvec2(gl_FragCoord.xy) / 8u;
  uint blue = block.x + block.y * 16u + frame * 7u;
  float spent = gl_FragCoord.x;
  for (int i = 0; i < work; ++i) spent = fract(spent * 1.37 + 0.11);
  color = vec4(vec3(uvec3(frame, frame >> 8, blue) & 255u) / 255.0 + spent * zero, 1.0);
})";

constexpr char kCopyFragment[] = R"(#version 310 es
precision highp float;
uniform highp sampler2D source;
out vec4 color;
void main() { color = texelFetch(source, ivec2(gl_FragCoord.xy), 0); })";

GLuint compile(GLenum stage, const char* source) {
  const GLuint shader = glCreateShader(stage);
  glShaderSource(shader, 1, &source, nullptr);
  glCompileShader(shader);
  GLint compiled = 0;
  glGetShaderiv(shader, GL_COMPILE_STATUS, &compiled);
  char log[1024] = "";
  if (!compiled) glGetShaderInfoLog(shader, sizeof log, nullptr, log);
  require(compiled, "a shader compiles", log);
  return shader;
}

GLuint link(const char* fragment) {
  const GLuint program = glCreateProgram();
  glAttachShader(program, compile(GL_VERTEX_SHADER, kVertex));
  glAttachShader(program, compile(GL_FRAGMENT_SHADER, fragment));
  glLinkProgram(program);
  GLint linked = 0;
  glGetProgramiv(program, GL_LINK_STATUS, &linked);
  require(linked, "a program links");
  return program;
}

void require_no_error() {
  const GLenum error = glGetError();
  require(error == GL_NO_ERROR, "no GL error", std::to_string(error).c_str());
}

}  // namespace

void require(bool condition, const char* what, const char* detail) {
  if (condition) return;
  std::fprintf(stderr, "failed: %s (EGL %#x) %s\n", what, static_cast<unsigned>(eglGetError()), detail);
  std::exit(2);
}

uint32_t expected_pixel(uint32_t frame, uint32_t x, uint32_t y) {
  const uint32_t blue = x / 8 + y / 8 * 16 + frame * 7;
  return (frame & 0xFFFF) | (blue & 0xFF) << 16 | 0xFF000000;
}

Painter::Painter(uint32_t work, void* x_display) : work_(work) {
  if (x_display == nullptr) {
    const int node = open("/dev/dri/renderD128", O_RDWR | O_CLOEXEC);
    require(node >= 0, "the render node opens");
    gbm_ = gbm_create_device(node);
    require(gbm_ != nullptr, "gbm_create_device");
    display_ = eglGetPlatformDisplay(EGL_PLATFORM_GBM_KHR, gbm_, nullptr);
  } else {
    display_ = eglGetPlatformDisplay(EGL_PLATFORM_X11_KHR, x_display, nullptr);
  }
  require(eglInitialize(display_, nullptr, nullptr), "eglInitialize");
  require(eglBindAPI(EGL_OPENGL_ES_API), "eglBindAPI");
  const EGLint version[] = {EGL_CONTEXT_MAJOR_VERSION, 3, EGL_CONTEXT_MINOR_VERSION, 1, EGL_NONE};
  context_ = eglCreateContext(display_, EGL_NO_CONFIG_KHR, EGL_NO_CONTEXT, version);
  require(context_ != EGL_NO_CONTEXT, "eglCreateContext");
  require(eglMakeCurrent(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, context_), "eglMakeCurrent");
  const char* renderer = reinterpret_cast<const char*>(glGetString(GL_RENDERER));
  if (const char* expected = std::getenv("E2E_DEVICE"))
    require(std::strncmp(renderer, expected, std::strlen(expected)) == 0, "E2E_DEVICE draws", renderer);
  frame_program_ = link(kFrameFragment);
  copy_program_ = link(kCopyFragment);
  frame_ = glGetUniformLocation(frame_program_, "frame");
  work_uniform_ = glGetUniformLocation(frame_program_, "work");
  require_no_error();
}

void Painter::draw_in(unsigned long window, uint32_t visual) {
  const EGLint wanted[] = {EGL_SURFACE_TYPE, EGL_WINDOW_BIT, EGL_RENDERABLE_TYPE, EGL_OPENGL_ES3_BIT,
                           EGL_NONE};
  EGLConfig configs[128];
  EGLint count = 0, number = 0;
  require(eglChooseConfig(display_, wanted, configs, 128, &count), "eglChooseConfig");
  for (EGLint i = 0; i < count && surface_ == nullptr; ++i)
    if (eglGetConfigAttrib(display_, configs[i], EGL_NATIVE_VISUAL_ID, &number) &&
        static_cast<uint32_t>(number) == visual)
      surface_ = eglCreateWindowSurface(display_, configs[i], window, nullptr);
  require(surface_ != nullptr, "eglCreateWindowSurface");
  require(eglMakeCurrent(display_, surface_, surface_, context_), "eglMakeCurrent");
  eglSwapInterval(display_, 1);
}

void Painter::swap() { require(eglSwapBuffers(display_, surface_), "eglSwapBuffers"); }

int Painter::allocate(uint32_t width, uint32_t height, bool linear, Layout* layout) {
  uint32_t use = GBM_BO_USE_RENDERING;
  if (linear) use |= GBM_BO_USE_LINEAR;
  gbm_bo* bo = gbm_bo_create(gbm_, width, height, GBM_FORMAT_ABGR8888, use);
  require(bo != nullptr, "gbm_bo_create");
  *layout = {width, height, gbm_bo_get_stride(bo), gbm_bo_get_offset(bo, 0), gbm_bo_get_modifier(bo)};
  require(linear == (layout->modifier == kLinear), "the buffer is laid out as asked");
  const int fd = gbm_bo_get_fd(bo);
  require(fd >= 0, "gbm_bo_get_fd");
  gbm_bo_destroy(bo);  // the descriptor keeps the memory
  return fd;
}

GLuint Painter::import(int fd, const Layout& layout) {
  const EGLAttrib attributes[] = {EGL_WIDTH,
                                  static_cast<EGLAttrib>(layout.width),
                                  EGL_HEIGHT,
                                  static_cast<EGLAttrib>(layout.height),
                                  EGL_LINUX_DRM_FOURCC_EXT,
                                  GBM_FORMAT_ABGR8888,
                                  EGL_DMA_BUF_PLANE0_FD_EXT,
                                  fd,
                                  EGL_DMA_BUF_PLANE0_OFFSET_EXT,
                                  static_cast<EGLAttrib>(layout.offset),
                                  EGL_DMA_BUF_PLANE0_PITCH_EXT,
                                  static_cast<EGLAttrib>(layout.stride),
                                  EGL_DMA_BUF_PLANE0_MODIFIER_LO_EXT,
                                  static_cast<EGLAttrib>(layout.modifier & 0xFFFFFFFF),
                                  EGL_DMA_BUF_PLANE0_MODIFIER_HI_EXT,
                                  static_cast<EGLAttrib>(layout.modifier >> 32),
                                  EGL_NONE};
  const EGLImage image = eglCreateImage(display_, EGL_NO_CONTEXT, EGL_LINUX_DMA_BUF_EXT, nullptr, attributes);
  require(image != EGL_NO_IMAGE, "eglCreateImage");
  const auto bind_image = reinterpret_cast<PFNGLEGLIMAGETARGETTEXTURE2DOESPROC>(
      eglGetProcAddress("glEGLImageTargetTexture2DOES"));
  GLuint texture = 0;
  glGenTextures(1, &texture);
  glBindTexture(GL_TEXTURE_2D, texture);
  bind_image(GL_TEXTURE_2D, image);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
  require_no_error();
  return texture;
}

GLuint Painter::texture(uint32_t width, uint32_t height) {
  GLuint texture = 0;
  glGenTextures(1, &texture);
  glBindTexture(GL_TEXTURE_2D, texture);
  glTexStorage2D(GL_TEXTURE_2D, 1, GL_RGBA8, static_cast<GLsizei>(width), static_cast<GLsizei>(height));
  require_no_error();
  return texture;
}

GLuint Painter::target(GLuint texture) {
  GLuint framebuffer = 0;
  glGenFramebuffers(1, &framebuffer);
  glBindFramebuffer(GL_FRAMEBUFFER, framebuffer);
  glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, texture, 0);
  require(glCheckFramebufferStatus(GL_FRAMEBUFFER) == GL_FRAMEBUFFER_COMPLETE, "a framebuffer is complete");
  return framebuffer;
}

void Painter::draw_all(GLuint target, const Layout& layout) {
  glBindFramebuffer(GL_FRAMEBUFFER, target);
  glViewport(0, 0, static_cast<GLsizei>(layout.width), static_cast<GLsizei>(layout.height));
  glDrawArrays(GL_TRIANGLES, 0, 3);
  glFlush();
}

void Painter::draw_frame(GLuint target, const Layout& layout, uint32_t frame) {
  glUseProgram(frame_program_);
  glUniform1ui(frame_, frame);
  glUniform1i(work_uniform_, static_cast<GLint>(work_));
  draw_all(target, layout);
}

void Painter::sample(GLuint texture, GLuint target, const Layout& layout) {
  glUseProgram(copy_program_);
  glBindTexture(GL_TEXTURE_2D, texture);
  draw_all(target, layout);
}

std::vector<uint32_t> Painter::pixels(GLuint target, const Layout& layout) {
  std::vector<uint32_t> pixels(static_cast<size_t>(layout.width) * layout.height);
  glBindFramebuffer(GL_FRAMEBUFFER, target);
  glReadPixels(0, 0, static_cast<GLsizei>(layout.width), static_cast<GLsizei>(layout.height), GL_RGBA,
               GL_UNSIGNED_BYTE, pixels.data());
  require_no_error();
  return pixels;
}

}  // namespace e2e
