/// An EDID is what a monitor says of itself over the cable.
#pragma once

#include <array>
#include <cstdint>

#include "ioctl/abi/mode.h"

namespace v3d::ioctl::kms {

struct Monitor {
  char manufacturer[4];  ///< three capital letters
  uint16_t product;
  const char* name;  ///< at most 13 characters
  uint16_t mm_width, mm_height;
  uint8_t cea_formats[3];          ///< VICs of its modes, 1 to 64; the native one first
  uint8_t established_timings[2];  ///< bits of E-EDID's bytes 35 and 36
};

/// The EDID of an HDMI monitor with that mode as the preferred one: a base block (VESA E-EDID 1.4) and an
/// extension (CTA-861) that makes it HDMI.
/// @param mode  progressive, without borders
std::array<uint8_t, 256> make_edid(const Monitor& monitor, const drm::ModeInfo& mode);

}  // namespace v3d::ioctl::kms
