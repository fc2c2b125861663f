/// These are the pixel formats of framebuffers and planes (Linux drm_fourcc.c, vc4_plane.c).
#pragma once

#include <cstdint>
#include <span>

namespace v3d::ioctl::kms {

/// DRM_FORMAT_* by its name.
constexpr uint32_t fourcc(const char (&name)[5]) {
  return static_cast<uint32_t>(name[0]) | static_cast<uint32_t>(name[1]) << 8 |
         static_cast<uint32_t>(name[2]) << 16 | static_cast<uint32_t>(name[3]) << 24;
}

/// Bits of a pixel, which is a little-endian number.
struct Channel {
  uint8_t shift = 0, bits = 0;
};

/// Which displays take a format.
enum class Takers : uint8_t {
  kAll,
  kTenBits,      ///< boards that show 10 bits (chip::DisplayUnit)
  kLaterLinux,   ///< from Linux 6.12 on
  kNewestLinux,  ///< after it
};

struct Format {
  uint32_t fourcc;                                      ///< DRM_FORMAT_*
  uint8_t parts;                                        ///< memory planes
  uint8_t bytes[3];                                     ///< of a pixel, or of a sample of the part
  uint8_t hsub = 1, vsub = 1;                           ///< of the parts after the first
  uint8_t depth = 0;                                    ///< as GETFB says it
  Channel red = {}, green = {}, blue = {}, alpha = {};  ///< of one part; alpha of no bits: opaque
  /// Of YCbCr: which part has the samples of Cb and of Cr, and at which of its bytes.
  uint8_t cb_part = 0, cr_part = 0, cb_byte = 0, cr_byte = 0;
  Takers takers = Takers::kAll;
};

/// nullptr when no planes take it.
const Format* find_format(uint32_t fourcc);
/// What planes of some display take, in the order in which they list it.
std::span<const Format> formats();
/// The format of ADDFB's bits and depth; 0 when there is none.
uint32_t legacy_format(uint32_t bpp, uint32_t depth);

constexpr uint32_t part_width(const Format& format, uint32_t width, uint32_t part) {
  return part == 0 ? width : (width + format.hsub - 1) / format.hsub;
}
constexpr uint32_t part_height(const Format& format, uint32_t height, uint32_t part) {
  return part == 0 ? height : (height + format.vsub - 1) / format.vsub;
}

/// DRM_FORMAT_MOD_LINEAR, the only one.
inline constexpr uint64_t kLinear = 0;

}  // namespace v3d::ioctl::kms
