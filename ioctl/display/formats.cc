#include "ioctl/display/formats.h"

#include <algorithm>
#include <iterator>

namespace v3d::ioctl::kms {
namespace {

/// Four channels in the order of their names, the last one lowest.
constexpr Format argb(const char (&name)[5], uint8_t depth, uint8_t a, uint8_t r, uint8_t g, uint8_t b,
                      bool has_alpha) {
  const auto at = [](int shift, uint8_t bits) { return Channel{static_cast<uint8_t>(shift), bits}; };
  return {.fourcc = fourcc(name),
          .parts = 1,
          .bytes = {static_cast<uint8_t>((a + r + g + b + 7) / 8)},
          .depth = depth,
          .red = at(g + b, r),
          .green = at(b, g),
          .blue = at(0, b),
          .alpha = has_alpha ? at(r + g + b, a) : Channel()};
}
/// The same with red lowest.
constexpr Format abgr(const char (&name)[5], uint8_t depth, uint8_t a, uint8_t b, uint8_t g, uint8_t r,
                      bool has_alpha) {
  Format format = argb(name, depth, a, b, g, r, has_alpha);
  const Channel low = format.blue;
  format.blue = format.red;
  format.red = low;
  return format;
}
/// With the channels above alpha.
constexpr Format above(Format format, uint8_t a, bool has_alpha) {
  for (Channel* channel : {&format.red, &format.green, &format.blue})
    channel->shift = static_cast<uint8_t>(channel->shift + a);
  if (has_alpha) format.alpha = {0, a};
  return format;
}
/// Samples of Cb and Cr in a part of their own each, or both in one.
constexpr Format yuv(const char (&name)[5], uint8_t parts, uint8_t hsub, uint8_t vsub, bool cr_first) {
  Format format = {.fourcc = fourcc(name), .parts = parts, .bytes = {1, 1, 1}, .hsub = hsub, .vsub = vsub};
  format.cb_part = parts == 3 && cr_first ? 2 : 1;
  format.cr_part = parts == 3 && !cr_first ? 2 : 1;
  if (parts == 3) return format;
  format.bytes[1] = 2;
  format.bytes[2] = 0;
  format.cb_byte = cr_first;
  format.cr_byte = !cr_first;
  return format;
}

/// As NV12, of 10 bits: three samples in a word of 4 bytes (drm_fourcc.h).
constexpr Format packed10(const char (&name)[5]) {
  Format format = yuv(name, 2, 2, 2, false);
  format.bytes[0] = 4;
  format.bytes[1] = 8;
  return format;
}

constexpr Format only(Takers takers, Format format) {
  format.takers = takers;
  return format;
}

/// vc4's list in its order (vc4_plane.c, hvs_formats).
constexpr Format kFormats[] = {
    argb("XR24", 24, 8, 8, 8, 8, false),
    argb("AR24", 32, 8, 8, 8, 8, true),
    abgr("AB24", 32, 8, 8, 8, 8, true),
    abgr("XB24", 24, 8, 8, 8, 8, false),
    argb("RG16", 16, 0, 5, 6, 5, false),
    abgr("BG16", 16, 0, 5, 6, 5, false),
    argb("AR15", 15, 1, 5, 5, 5, true),
    argb("XR15", 15, 1, 5, 5, 5, false),
    argb("RG24", 24, 0, 8, 8, 8, false),
    abgr("BG24", 24, 0, 8, 8, 8, false),
    yuv("YU16", 3, 2, 1, false),
    yuv("YV16", 3, 2, 1, true),
    only(Takers::kNewestLinux, yuv("YU24", 3, 1, 1, false)),
    only(Takers::kNewestLinux, yuv("YV24", 3, 1, 1, true)),
    yuv("YU12", 3, 2, 2, false),
    yuv("YV12", 3, 2, 2, true),
    yuv("NV12", 2, 2, 2, false),
    yuv("NV21", 2, 2, 2, true),
    yuv("NV16", 2, 2, 1, false),
    yuv("NV61", 2, 2, 1, true),
    only(Takers::kTenBits, packed10("P030")),
    only(Takers::kTenBits, argb("XR30", 30, 2, 10, 10, 10, false)),
    only(Takers::kTenBits, argb("AR30", 30, 2, 10, 10, 10, true)),
    only(Takers::kTenBits, abgr("AB30", 30, 2, 10, 10, 10, true)),
    only(Takers::kTenBits, abgr("XB30", 30, 2, 10, 10, 10, false)),
    only(Takers::kLaterLinux, argb("RGB8", 8, 0, 3, 3, 2, false)),
    only(Takers::kLaterLinux, abgr("BGR8", 8, 0, 2, 3, 3, false)),
    only(Takers::kLaterLinux, argb("XR12", 0, 4, 4, 4, 4, false)),
    only(Takers::kLaterLinux, argb("AR12", 0, 4, 4, 4, 4, true)),
    only(Takers::kLaterLinux, abgr("XB12", 0, 4, 4, 4, 4, false)),
    only(Takers::kLaterLinux, abgr("AB12", 0, 4, 4, 4, 4, true)),
    only(Takers::kLaterLinux, above(argb("RX12", 0, 4, 4, 4, 4, false), 4, false)),
    only(Takers::kLaterLinux, above(argb("RA12", 0, 4, 4, 4, 4, false), 4, true)),
    only(Takers::kLaterLinux, above(abgr("BX12", 0, 4, 4, 4, 4, false), 4, false)),
    only(Takers::kLaterLinux, above(abgr("BA12", 0, 4, 4, 4, 4, false), 4, true)),
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
