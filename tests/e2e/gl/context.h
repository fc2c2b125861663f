/// This is desktop OpenGL 3.1 without a window, for tests that compare pixels with values computed here.
/// Every EGL or compile error ends the test at once.
#pragma once

#define GL_GLEXT_PROTOTYPES
#include <GL/glcorearb.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace e2e {

/// A current context on EGL's surfaceless platform.
class GlContext {
 public:
  GlContext();
  ~GlContext();
  GlContext(const GlContext&) = delete;
  GlContext& operator=(const GlContext&) = delete;

 private:
  void *display_, *context_;
};

/// An RGBA8 colour and an optional depth renderbuffer, bound as the framebuffer; the viewport is all of it.
class GlTarget {
 public:
  /// @param depth  internal format, or 0 for none
  GlTarget(int width, int height, GLenum depth = 0);
  ~GlTarget();
  GlTarget(const GlTarget&) = delete;
  GlTarget& operator=(const GlTarget&) = delete;

  void bind() const;
  /// Pixels from the bottom row on.
  std::vector<std::array<uint8_t, 4>> pixels() const;
  GLuint framebuffer() const { return framebuffer_; }

 private:
  const int width_, height_;
  GLuint framebuffer_ = 0, color_ = 0, depth_ = 0;
};

/// Compiles, links and uses a program. Attributes are taken in the order of `attributes` from location 0 on.
GLuint use_program(const std::string& vertex, const std::string& fragment,
                   std::span<const char* const> attributes);

/// Draws vertices of `components` floats each, as attribute 0.
void draw(GLenum mode, int components, std::span<const float> vertices);

}  // namespace e2e
