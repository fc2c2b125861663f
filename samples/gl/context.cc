#include "samples/gl/context.h"

#include <EGL/egl.h>
#include <EGL/eglext.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

namespace samples {

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "failed: %s (EGL %#x, GL %#x)\n", what, eglGetError(), glGetError());
  std::exit(1);
}

Context::Context() {
  const auto get_display =
      reinterpret_cast<PFNEGLGETPLATFORMDISPLAYEXTPROC>(eglGetProcAddress("eglGetPlatformDisplayEXT"));
  require(get_display != nullptr, "eglGetPlatformDisplayEXT");
  display_ = get_display(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, nullptr);
  require(eglInitialize(display_, nullptr, nullptr), "eglInitialize");
  require(eglBindAPI(EGL_OPENGL_ES_API), "eglBindAPI");
  const EGLint wanted[] = {EGL_SURFACE_TYPE, 0, EGL_RENDERABLE_TYPE, EGL_OPENGL_ES3_BIT, EGL_NONE};
  EGLConfig config = nullptr;
  EGLint count = 0;
  require(eglChooseConfig(display_, wanted, &config, 1, &count) && count == 1,
          "the driver has OpenGL ES 3 (that of a Raspberry Pi 0 to 3 has 2)");
  const EGLint version[] = {EGL_CONTEXT_MAJOR_VERSION, 3, EGL_CONTEXT_MINOR_VERSION, 1, EGL_NONE};
  context_ = eglCreateContext(display_, config, EGL_NO_CONTEXT, version);
  require(context_ != EGL_NO_CONTEXT, "eglCreateContext");
  require(eglMakeCurrent(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, context_), "eglMakeCurrent");
  std::printf("%s\n", reinterpret_cast<const char*>(glGetString(GL_RENDERER)));
}

Context::~Context() {
  eglMakeCurrent(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
  eglDestroyContext(display_, context_);
  eglTerminate(display_);
}

namespace {

void attach_shader(GLuint program, GLenum stage, const char* text) {
  const GLuint shader = glCreateShader(stage);
  glShaderSource(shader, 1, &text, nullptr);
  glCompileShader(shader);
  GLint compiled = 0;
  glGetShaderiv(shader, GL_COMPILE_STATUS, &compiled);
  if (!compiled) {
    char log[4096] = "";
    glGetShaderInfoLog(shader, sizeof log, nullptr, log);
    std::fprintf(stderr, "%s\n%s\n", text, log);
  }
  require(compiled, "a shader compiles");
  glAttachShader(program, shader);
  glDeleteShader(shader);  // lives as long as the program
}

GLuint make_buffer(GLenum target, const void* data, size_t bytes) {
  GLuint buffer = 0;
  glGenBuffers(1, &buffer);
  glBindBuffer(target, buffer);
  glBufferData(target, static_cast<GLsizeiptr>(bytes), data, GL_STATIC_DRAW);
  return buffer;
}

GLuint attach_renderbuffer(GLenum attachment, GLenum format, Size size, GLsizei samples) {
  GLuint buffer = 0;
  glGenRenderbuffers(1, &buffer);
  glBindRenderbuffer(GL_RENDERBUFFER, buffer);
  glRenderbufferStorageMultisample(GL_RENDERBUFFER, samples, format, static_cast<GLsizei>(size.width),
                                   static_cast<GLsizei>(size.height));
  glFramebufferRenderbuffer(GL_FRAMEBUFFER, attachment, GL_RENDERBUFFER, buffer);
  return buffer;
}

/// As offset into the bound buffer.
const void* at(size_t offset) {
  return reinterpret_cast<const void*>(offset);  // NOLINT(performance-no-int-to-ptr): so OpenGL wants it
}

}  // namespace

GLuint make_program(const char* vertex, const char* fragment) {
  const GLuint program = glCreateProgram();
  attach_shader(program, GL_VERTEX_SHADER, vertex);
  attach_shader(program, GL_FRAGMENT_SHADER, fragment);
  glLinkProgram(program);
  GLint linked = 0;
  glGetProgramiv(program, GL_LINK_STATUS, &linked);
  require(linked, "a program links");
  return program;
}

Framebuffer::Framebuffer(Size pixels, GLsizei samples) : size(pixels) {
  glGenFramebuffers(1, &handle);
  glBindFramebuffer(GL_FRAMEBUFFER, handle);
  attach_renderbuffer(GL_COLOR_ATTACHMENT0, GL_RGBA8, size, samples);
  attach_renderbuffer(GL_DEPTH_ATTACHMENT, GL_DEPTH_COMPONENT24, size, samples);
  require(glCheckFramebufferStatus(GL_FRAMEBUFFER) == GL_FRAMEBUFFER_COMPLETE, "a framebuffer is complete");
}

SceneBuffers::SceneBuffers(const Scene& scene, float aspect)
    : draws_(scene.draws), background_(screen_color(scene.sky)) {
  GLuint arrays = 0;
  glGenVertexArrays(1, &arrays);
  glBindVertexArray(arrays);
  const Uniforms u = uniforms(scene, aspect, ClipSpace::kOpenGl);
  glBindBufferBase(GL_UNIFORM_BUFFER, 0, make_buffer(GL_UNIFORM_BUFFER, &u, sizeof u));
  make_buffer(GL_ELEMENT_ARRAY_BUFFER, scene.indices.data(), scene.indices.size() * sizeof(uint32_t));
  make_buffer(GL_ARRAY_BUFFER, scene.vertices.data(), scene.vertices.size() * sizeof(Vertex));
  const struct {
    GLint components;
    size_t offset;
  } attributes[] = {{3, offsetof(Vertex, position)},
                    {3, offsetof(Vertex, normal)},
                    {4, offsetof(Vertex, tangent)},
                    {2, offsetof(Vertex, u)}};
  for (GLuint i = 0; i < 4; ++i) {
    glVertexAttribPointer(i, attributes[i].components, GL_FLOAT, GL_FALSE, sizeof(Vertex),
                          at(attributes[i].offset));
    glEnableVertexAttribArray(i);
  }
  instances_ =
      make_buffer(GL_ARRAY_BUFFER, scene.instances.data(), scene.instances.size() * sizeof(Instance));
  for (GLuint i = 4; i < 8; ++i) {
    glVertexAttribDivisor(i, 1);
    glEnableVertexAttribArray(i);
  }
  glEnable(GL_DEPTH_TEST);
  glEnable(GL_CULL_FACE);
}

void SceneBuffers::draw() const {
  glBindBuffer(GL_ARRAY_BUFFER, instances_);
  for (const Draw& d : draws_) {
    // OpenGL ES has no first instance: the attributes begin there.
    for (GLuint i = 0; i < 4; ++i)
      glVertexAttribPointer(4 + i, 4, GL_FLOAT, GL_FALSE, sizeof(Instance),
                            at(d.first_instance * sizeof(Instance) + i * sizeof(Vec4)));
    glDrawElementsInstanced(GL_TRIANGLES, static_cast<GLsizei>(d.index_count), GL_UNSIGNED_INT,
                            at(d.first_index * sizeof(uint32_t)), static_cast<GLsizei>(d.instance_count));
  }
}

void SceneBuffers::begin(const Framebuffer& framebuffer) const {
  glBindFramebuffer(GL_FRAMEBUFFER, framebuffer.handle);
  glViewport(0, 0, static_cast<GLsizei>(framebuffer.size.width),
             static_cast<GLsizei>(framebuffer.size.height));
  glClearColor(background_.x, background_.y, background_.z, background_.w);
  glClear(GL_COLOR_BUFFER_BIT | GL_DEPTH_BUFFER_BIT);
}

Pixels read_pixels(const Framebuffer& framebuffer) {
  const auto [width, height] = framebuffer.size;
  const size_t row = size_t{4} * width;
  Pixels pixels(row * height);
  glBindFramebuffer(GL_FRAMEBUFFER, framebuffer.handle);
  glReadPixels(0, 0, static_cast<GLsizei>(width), static_cast<GLsizei>(height), GL_RGBA, GL_UNSIGNED_BYTE,
               pixels.data());
  require(glGetError() == GL_NO_ERROR, "the picture was drawn");
  for (uint32_t y = 0; y < height / 2; ++y) {  // OpenGL's first row is the lowest
    uint8_t* const upper = pixels.data() + y * row;
    std::swap_ranges(upper, upper + row, pixels.data() + (height - 1 - y) * row);
  }
  return pixels;
}

}  // namespace samples
