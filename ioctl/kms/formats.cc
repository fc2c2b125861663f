#include "ioctl/kms/formats.h"

#include <algorithm>
#include <iterator>

namespace v3d::ioctl::kms {
namespace {

constexpr uint32_t fourcc(const char (&name)[5]) {
  return static_cast<uint32_t>(name[0]) | static_cast<uint32_t>(name[1]) << 8 |
         static_cast<uint32_t>(name[2]) << 16 | static_cast<uint32_t>(name[3]) << 24;
}

/// Of vc4's list: no 4:2:2, no formats of 10 bits, and neither SAND nor T tiles.
constexpr Format kFormats[] = {
    {.fourcc = fourcc("XR24"), .parts = 1, .bytes = {4}, .depth = 24},
    {.fourcc = fourcc("AR24"), .parts = 1, .bytes = {4}, .alpha = true, .depth = 32},
    {.fourcc = fourcc("AB24"), .parts = 1, .bytes = {4}, .alpha = true},
    {.fourcc = fourcc("XB24"), .parts = 1, .bytes = {4}},
    {.fourcc = fourcc("RG16"), .parts = 1, .bytes = {2}, .depth = 16},
    {.fourcc = fourcc("BG16"), .parts = 1, .bytes = {2}},
    {.fourcc = fourcc("YU12"), .parts = 3, .bytes = {1, 1, 1}, .hsub = 2, .vsub = 2},
    {.fourcc = fourcc("YV12"), .parts = 3, .bytes = {1, 1, 1}, .hsub = 2, .vsub = 2},
    {.fourcc = fourcc("NV12"), .parts = 2, .bytes = {1, 2}, .hsub = 2, .vsub = 2},
};

/// What ADDFB makes of bits per pixel and depth (drm_mode_legacy_fb_format).
constexpr struct {
  uint32_t bpp, depth, format;
} kLegacy[] = {{8, 8, fourcc("C8  ")},   {16, 15, fourcc("XR15")}, {16, 16, fourcc("RG16")},
               {24, 24, fourcc("RG24")}, {32, 24, fourcc("XR24")}, {32, 30, fourcc("XR30")},
               {32, 32, fourcc("AR24")}};

}  // namespace

std::span<const Format> formats() { return kFormats; }

const Format* find_format(uint32_t fourcc) {
  const auto* it = std::find_if(std::begin(kFormats), std::end(kFormats),
                                [&](const Format& f) { return f.fourcc == fourcc; });
  return it == std::end(kFormats) ? nullptr : it;
}

uint32_t legacy_format(uint32_t bpp, uint32_t depth) {
  for (const auto& row : kLegacy)
    if (row.bpp == bpp && row.depth == depth) return row.format;
  return 0;
}

}  // namespace v3d::ioctl::kms
