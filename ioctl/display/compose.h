/// Compositing makes one picture of a display's planes, as the display's compositor would.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "ioctl/display/image.h"
#include "ioctl/link/wire.h"

namespace v3d::ioctl::kms {

/// A plane and its pixels.
struct PlanePixels {
  wire::ScreenPlane plane;
  /// Of plane.parts: from the start of the framebuffer's part to the end of its memory.
  std::array<std::span<const uint8_t>, wire::kMaxPlaneParts> parts;
};

/// Lays a plane over what is there, of any of formats() and of what else takes_modifier() says,
/// rotated by 0 or 180 degrees, and reflected. Scaled planes are sampled bilinearly (the hardware's filter
/// has more taps), others exactly.
/// @return Unimplemented naming what this does not know, InvalidArgument when rows lie outside the memory;
/// then nothing is drawn
absl::Status draw_plane(const PlanePixels& pixels, Image* image);

}  // namespace v3d::ioctl::kms
