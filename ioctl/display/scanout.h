/// A scanout is what the display shows, for whoever makes it visible.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "ioctl/link/wire.h"

namespace v3d::ioctl {
class Buffer;
}

namespace v3d::ioctl::kms {

/// Values of the property "pixel blend mode".
enum class Blend : uint8_t { kPremultiplied = 0, kCoverage = 1, kNone = 2 };

/// A rectangle of a framebuffer on the screen.
struct ScanoutPlane {
  uint32_t plane_id;
  /// Where the pixels are: file and offset by Buffer::place() (vc4's buffers and shared ones are never in a
  /// slab, so that the file is theirs alone), plus `offset`.
  struct Part {
    std::shared_ptr<Buffer> memory;
    uint64_t offset;  ///< bytes from the start of the buffer
    uint32_t pitch;   ///< bytes from row to row
  };
  std::vector<Part> parts;  ///< one, or those of a planar format; all rows lie inside their buffers
  uint32_t fourcc;          ///< DRM_FORMAT_*, of formats()
  uint64_t modifier;        ///< DRM_FORMAT_MOD_*
  uint32_t width, height;   ///< of the framebuffer, pixels

  uint32_t src_x, src_y, src_w, src_h;  ///< in the framebuffer, 16.16 fixed point, inside it
  int32_t x, y;                         ///< on the screen, perhaps outside it
  uint32_t w, h;
  uint16_t alpha;                        ///< of the plane, 0xffff: opaque
  Blend blend;                           ///< for formats with alpha
  uint32_t rotation;                     ///< DRM_MODE_ROTATE_* and _REFLECT_* bits; 1: none
  uint32_t color_encoding, color_range;  ///< of YCbCr formats: values of the properties
};

/// One frame. Holding it keeps its memory, not what the memory says: a client may draw into a buffer again
/// as soon as another frame is shown. Pixels copied from here are of one frame when Display::frame() is still
/// `frame` afterwards.
struct Scanout {
  uint64_t frame = 0;   ///< how many frames have been shown: flips, mode settings, moves of the cursor
  int64_t time_ns = 0;  ///< CLOCK_MONOTONIC at which it was
  bool active = false;  ///< the screen is on; else it is black and the rest is empty
  uint32_t width = 0, height = 0;  ///< of the mode
  uint32_t refresh_hz = 0;
  std::vector<ScanoutPlane> planes;  ///< from bottom to top; where there is none the screen is black
};

/// The same as others see it: without its parts' places, which are the memory's.
wire::ScreenPlane describe(const ScanoutPlane& plane);

}  // namespace v3d::ioctl::kms
