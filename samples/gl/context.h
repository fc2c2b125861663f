/// A context is OpenGL ES 3.1 without a window, with the objects that the samples share. Every error ends the
/// program at once with a message.
#pragma once

#include <GLES3/gl31.h>

#include "samples/common/program.h"
#include "samples/common/scene.h"

namespace samples {

/// Ends the program with `what` and the errors of EGL and GL unless the condition holds.
void require(bool condition, const char* what);

/// A current context on EGL's surfaceless platform. Prints the renderer.
class Context {
 public:
  Context();
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

 private:
  void* display_ = nullptr;
  void* context_ = nullptr;
};

/// Linked of the texts of two shaders.
GLuint make_program(const char* vertex, const char* fragment);

/// RGBA8 colour and 24-bit depth in renderbuffers.
struct Framebuffer {
  /// @param samples  of each pixel; 0 for none but the pixel's own
  explicit Framebuffer(Size size, GLsizei samples = 0);

  GLuint handle = 0;
  Size size;
};

/// A scene in buffers: attributes 0 to 7 and the uniform block at binding 0.
class SceneBuffers {
 public:
  SceneBuffers(const Scene& scene, float aspect);

  void draw() const;

  /// Makes the framebuffer current and fills it with the sky.
  void begin(const Framebuffer& framebuffer) const;

 private:
  std::vector<Draw> draws_;
  GLuint instances_ = 0;
  Vec4 background_;
};

/// Of a single-sampled framebuffer.
Pixels read_pixels(const Framebuffer& framebuffer);

}  // namespace samples
