/// An Image is a picture of a screen.
#pragma once

#include <cstdint>
#include <vector>

namespace v3d::ioctl::kms {

struct Image {
  uint32_t width = 0, height = 0;
  std::vector<uint32_t> pixels;  ///< 0x00RRGGBB, rows from the top

  Image() = default;
  /// Black.
  Image(uint32_t w, uint32_t h) : width(w), height(h), pixels(uint64_t{w} * h) {}
  bool empty() const { return pixels.empty(); }
};

}  // namespace v3d::ioctl::kms
