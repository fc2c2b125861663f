#include "context.h"

#include <EGL/egl.h>
#include <EGL/eglext.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "compile.h"

namespace e2e {
namespace {

void require(bool condition, const char* what, const char* detail = "") {
  if (condition) return;
  std::fprintf(stderr, "failed: %s (EGL %#x) %s\n", what, static_cast<unsigned>(eglGetError()), detail);
  std::exit(1);
}

GLuint compile(GLenum stage, const std::string& source) {
  GLuint shader = 0;
  std::string log;
  require(e2e::compile(stage, source, &shader, &log), "shader compiles", log.c_str());
  return shader;
}

}  // namespace

GlContext::GlContext() {
  display_ = eglGetPlatformDisplay(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, nullptr);
  require(eglInitialize(display_, nullptr, nullptr), "eglInitialize");
  require(eglBindAPI(EGL_OPENGL_API), "eglBindAPI");
  const EGLint attributes[] = {EGL_CONTEXT_MAJOR_VERSION, 3, EGL_CONTEXT_MINOR_VERSION, 1, EGL_NONE};
  context_ = eglCreateContext(display_, EGL_NO_CONFIG_KHR, EGL_NO_CONTEXT, attributes);
  require(context_ != EGL_NO_CONTEXT, "eglCreateContext");
  require(eglMakeCurrent(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, context_), "eglMakeCurrent");
  const char* renderer = reinterpret_cast<const char*>(glGetString(GL_RENDERER));
  const char* expected = std::getenv("E2E_DEVICE");
  if (expected != nullptr)
    require(std::strncmp(renderer, expected, std::strlen(expected)) == 0, "the renderer is E2E_DEVICE",
            renderer);
}

GlContext::~GlContext() {
  eglMakeCurrent(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
  eglDestroyContext(display_, context_);
  eglTerminate(display_);
}

GlTarget::GlTarget(int width, int height, GLenum depth) : width_(width), height_(height) {
  glGenFramebuffers(1, &framebuffer_);
  glBindFramebuffer(GL_FRAMEBUFFER, framebuffer_);
  glGenRenderbuffers(1, &color_);
  glBindRenderbuffer(GL_RENDERBUFFER, color_);
  glRenderbufferStorage(GL_RENDERBUFFER, GL_RGBA8, width, height);
  glFramebufferRenderbuffer(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER, color_);
  if (depth != 0) {
    glGenRenderbuffers(1, &depth_);
    glBindRenderbuffer(GL_RENDERBUFFER, depth_);
    glRenderbufferStorage(GL_RENDERBUFFER, depth, width, height);
    glFramebufferRenderbuffer(GL_FRAMEBUFFER, GL_DEPTH_ATTACHMENT, GL_RENDERBUFFER, depth_);
  }
  require(glCheckFramebufferStatus(GL_FRAMEBUFFER) == GL_FRAMEBUFFER_COMPLETE, "framebuffer is complete");
  bind();
}

GlTarget::~GlTarget() {
  glDeleteFramebuffers(1, &framebuffer_);
  glDeleteRenderbuffers(1, &color_);
  glDeleteRenderbuffers(1, &depth_);
}

void GlTarget::bind() const {
  glBindFramebuffer(GL_FRAMEBUFFER, framebuffer_);
  glViewport(0, 0, width_, height_);
}

std::vector<std::array<uint8_t, 4>> GlTarget::pixels() const {
  std::vector<std::array<uint8_t, 4>> pixels(static_cast<size_t>(width_) * static_cast<size_t>(height_));
  glBindFramebuffer(GL_READ_FRAMEBUFFER, framebuffer_);
  glReadPixels(0, 0, width_, height_, GL_RGBA, GL_UNSIGNED_BYTE, pixels.data());
  require(glGetError() == GL_NO_ERROR, "no GL error");
  return pixels;
}

GLuint use_program(const std::string& vertex, const std::string& fragment,
                   std::span<const char* const> attributes) {
  const GLuint program = glCreateProgram();
  glAttachShader(program, compile(GL_VERTEX_SHADER, "#version 140\n" + vertex));
  glAttachShader(program, compile(GL_FRAGMENT_SHADER, "#version 140\n" + fragment));
  for (GLuint i = 0; i < attributes.size(); ++i) glBindAttribLocation(program, i, attributes[i]);
  glLinkProgram(program);
  GLint linked = 0;
  glGetProgramiv(program, GL_LINK_STATUS, &linked);
  require(linked, "program links");
  glUseProgram(program);
  return program;
}

void draw(GLenum mode, int components, std::span<const float> vertices) {
  GLuint array = 0, buffer = 0;
  glGenVertexArrays(1, &array);
  glBindVertexArray(array);
  glGenBuffers(1, &buffer);
  glBindBuffer(GL_ARRAY_BUFFER, buffer);
  glBufferData(GL_ARRAY_BUFFER, static_cast<GLsizeiptr>(vertices.size_bytes()), vertices.data(),
               GL_STATIC_DRAW);
  glEnableVertexAttribArray(0);
  glVertexAttribPointer(0, components, GL_FLOAT, GL_FALSE, 0, nullptr);
  glDrawArrays(mode, 0, static_cast<GLsizei>(vertices.size()) / components);
  glDeleteBuffers(1, &buffer);
  glDeleteVertexArrays(1, &array);
}

}  // namespace e2e
