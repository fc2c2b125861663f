#include "ioctl/display/scanout.h"

namespace v3d::ioctl::kms {

wire::ScreenPlane describe(const ScanoutPlane& plane) {
  return {.modifier = plane.modifier,
          .plane_id = plane.plane_id,
          .fourcc = plane.fourcc,
          .width = plane.width,
          .height = plane.height,
          .src_x = plane.src_x,
          .src_y = plane.src_y,
          .src_w = plane.src_w,
          .src_h = plane.src_h,
          .x = plane.x,
          .y = plane.y,
          .w = plane.w,
          .h = plane.h,
          .alpha = plane.alpha,
          .blend = static_cast<uint32_t>(plane.blend),
          .rotation = plane.rotation,
          .color_encoding = plane.color_encoding,
          .color_range = plane.color_range,
          .num_parts = static_cast<uint32_t>(plane.parts.size()),
          .parts = {}};
}

}  // namespace v3d::ioctl::kms
