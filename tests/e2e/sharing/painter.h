/// A Painter paints with OpenGL ES on buffers that other processes know by dma-buf descriptors. Every EGL or
/// GL error ends the program with status 2.
#pragma once

#include <GLES3/gl31.h>

#include <cstdint>
#include <vector>

struct gbm_device;
struct gbm_bo;

namespace e2e {

/// What another process must know of a buffer besides its descriptor. One plane of RGBA8.
struct Layout {
  uint32_t width, height;
  uint32_t stride;    ///< bytes
  uint32_t offset;    ///< bytes
  uint64_t modifier;  ///< DRM_FORMAT_MOD_*
};

/// Ends the program when something does not hold.
void require(bool condition, const char* what, const char* detail = "");

/// The colour of a pixel of a frame: its number in red and green, in blue something that differs between
/// neighbouring blocks of 8 x 8 pixels. Frames below 65536 differ in every pixel.
uint32_t expected_pixel(uint32_t frame, uint32_t x, uint32_t y);

/// A context of one render node, whose renderer must begin with E2E_DEVICE.
class Painter {
 public:
  /// @param work  turns of a loop that each pixel of a drawn frame takes: how long it takes to draw
  /// @param x_display  null: of the render node itself; otherwise of what that X server uses
  explicit Painter(uint32_t work, void* x_display = nullptr);
  Painter(const Painter&) = delete;
  Painter& operator=(const Painter&) = delete;

  /// From now on framebuffer 0 is the next buffer of that window, which is shown by swap(). It has the
  /// visual with that number. Each frame has its own turn: without turns (interval 0) an X server drops those
  /// that come while its compositor rests, however many they are, and goes on showing the one before.
  void draw_in(unsigned long window, uint32_t visual);
  void swap();

  /// A new buffer, its dma-buf descriptor and its layout. Of a render node's painter alone.
  int allocate(uint32_t width, uint32_t height, bool linear, Layout* layout);
  /// The buffer that a descriptor names, as a texture.
  GLuint import(int fd, const Layout& layout);
  /// A texture of this process alone.
  GLuint texture(uint32_t width, uint32_t height);
  /// A framebuffer of that texture.
  GLuint target(GLuint texture);

  /// Submits what draws a frame, and does not wait for it.
  void draw_frame(GLuint target, const Layout& layout, uint32_t frame);
  /// Submits what copies a texture by sampling it, and does not wait.
  void sample(GLuint texture, GLuint target, const Layout& layout);
  /// The pixels of a framebuffer, when what draws them has ended.
  std::vector<uint32_t> pixels(GLuint target, const Layout& layout);

 private:
  void draw_all(GLuint target, const Layout& layout);

  gbm_device* gbm_ = nullptr;
  void *display_, *context_, *surface_ = nullptr;
  GLuint frame_program_, copy_program_;
  GLint frame_, work_uniform_;
  const uint32_t work_;
};

}  // namespace e2e
