/// These functions give rows of framebuffers as pixels of 32 bits.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "ioctl/display/compose.h"
#include "ioctl/display/formats.h"

namespace v3d::ioctl::kms {

/// Turns rows of a plane's framebuffer into 0xAARRGGBB; formats without alpha are opaque.
class RowReader {
 public:
  /// Unimplemented or InvalidArgument as draw_plane().
  static absl::StatusOr<RowReader> create(const PlanePixels& pixels);

  bool has_alpha() const { return format_->alpha.bits != 0; }
  /// @param y  row of the framebuffer, in it
  /// @param first, count  pixels of it, in it
  void read(uint32_t y, uint32_t first, uint32_t count, uint32_t* out) const;

 private:
  enum class Layout : uint8_t { kArgb, kAbgr, kPacked, kYuv };
  struct Yuv {
    int32_t offset = 0, y = 0, r_cr = 0, g_cb = 0, g_cr = 0, b_cb = 0;  ///< of the conversion, 16.16
  };

  explicit RowReader(const PlanePixels& pixels) : pixels_(pixels) {}
  void set_conversion();
  /// Samples of a part in a row, one after the other.
  const uint8_t* row(uint32_t part, uint32_t y) const;
  void gather(uint32_t part, uint32_t y) const;
  void read_yuv(uint32_t y, uint32_t first, uint32_t count, uint32_t* out) const;

  PlanePixels pixels_;
  Layout layout_ = Layout::kArgb;
  const Format* format_ = nullptr;
  Yuv yuv_ = {};
  /// Of rows that lie otherwise: the last one that was read.
  mutable std::array<std::vector<uint8_t>, wire::kMaxPlaneParts> gathered_;
};

}  // namespace v3d::ioctl::kms
