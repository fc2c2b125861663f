#include "ioctl/display/edid.h"

#include <algorithm>
#include <span>
#include <string_view>

namespace v3d::ioctl::kms {
namespace {

constexpr size_t kBlock = 128;
// Of drm::ModeInfo::flags.
constexpr uint32_t kPositiveHsync = 1, kPositiveVsync = 4;

uint8_t low(unsigned value) { return static_cast<uint8_t>(value); }
/// Two upper nibbles in one byte.
uint8_t high(unsigned a, unsigned b) { return static_cast<uint8_t>((a >> 8 & 15) << 4 | (b >> 8 & 15)); }

/// E-EDID 1.4, 3.10.2: detailed timing descriptor.
void put_timing(uint8_t* to, const Monitor& monitor, const drm::ModeInfo& mode) {
  const unsigned clock = mode.clock / 10;  // in 10 kHz
  const unsigned hblank = mode.htotal - mode.hdisplay, vblank = mode.vtotal - mode.vdisplay;
  const unsigned hoffset = mode.hsync_start - mode.hdisplay, hwidth = mode.hsync_end - mode.hsync_start;
  const unsigned voffset = mode.vsync_start - mode.vdisplay, vwidth = mode.vsync_end - mode.vsync_start;
  const uint8_t bytes[18] = {
      low(clock),
      low(clock >> 8),
      low(mode.hdisplay),
      low(hblank),
      high(mode.hdisplay, hblank),
      low(mode.vdisplay),
      low(vblank),
      high(mode.vdisplay, vblank),
      low(hoffset),
      low(hwidth),
      static_cast<uint8_t>((voffset & 15) << 4 | (vwidth & 15)),
      static_cast<uint8_t>((hoffset >> 8 & 3) << 6 | (hwidth >> 8 & 3) << 4 | (voffset >> 4 & 3) << 2 |
                           (vwidth >> 4 & 3)),
      low(monitor.mm_width),
      low(monitor.mm_height),
      high(monitor.mm_width, monitor.mm_height),
      0,
      0,
      static_cast<uint8_t>(0x18 | (mode.flags & kPositiveVsync ? 4 : 0) |
                           (mode.flags & kPositiveHsync ? 2 : 0)),
  };
  std::copy(std::begin(bytes), std::end(bytes), to);
}

/// Descriptors that are no timing: tag 0xfc is the name.
void put_text(uint8_t* to, uint8_t tag, const char* text) {
  to[3] = tag;
  const std::string_view shown = std::string_view(text).substr(0, 13);
  std::fill(to + 5, to + 18, ' ');
  std::copy(shown.begin(), shown.end(), to + 5);
  if (shown.size() < 13) to[5 + shown.size()] = '\n';
}

/// Tag 0xfd: the rates that it takes are those of the mode, rounded away from it.
void put_limits(uint8_t* to, const drm::ModeInfo& mode) {
  const unsigned khz = mode.clock / mode.htotal;
  const uint8_t bytes[] = {0xfd,
                           0,
                           low(mode.vrefresh - 1),
                           low(mode.vrefresh + 1),
                           low(khz - 1),
                           low(khz + 1),
                           low((mode.clock + 9999) / 10000),
                           1};
  std::copy(std::begin(bytes), std::end(bytes), to + 3);
  to[11] = '\n';
  std::fill(to + 12, to + 18, ' ');
}

/// All bytes of a block add up to 0.
void seal(std::span<uint8_t, kBlock> block) {
  uint8_t sum = 0;
  for (const uint8_t byte : block.first<kBlock - 1>()) sum = static_cast<uint8_t>(sum + byte);
  block[kBlock - 1] = static_cast<uint8_t>(-sum);
}

}  // namespace

std::array<uint8_t, 256> make_edid(const Monitor& monitor, const drm::ModeInfo& mode) {
  std::array<uint8_t, 256> edid{};
  uint8_t* base = edid.data();
  std::fill(base + 1, base + 7, 0xff);
  unsigned letters = 0;
  for (int i = 0; i < 3; ++i)
    letters = letters << 5 | static_cast<unsigned>(monitor.manufacturer[i] - 'A' + 1);
  base[8] = low(letters >> 8);
  base[9] = low(letters);
  base[10] = low(monitor.product);
  base[11] = low(monitor.product >> 8u);
  base[17] = 2024 - 1990;  // year of make, without a week
  base[18] = 1;
  base[19] = 4;
  base[20] = 0xa2;  // digital, 8 bits per colour, HDMI
  base[21] = low(monitor.mm_width / 10u);
  base[22] = low(monitor.mm_height / 10u);
  base[23] = 120;   // gamma 2.2
  base[24] = 0x06;  // sRGB; the first timing is the native one
  constexpr uint8_t kSrgb[] = {0xee, 0x91, 0xa3, 0x54, 0x4c, 0x99, 0x26, 0x0f, 0x50, 0x54};
  std::copy(std::begin(kSrgb), std::end(kSrgb), base + 25);
  std::copy(std::begin(monitor.established_timings), std::end(monitor.established_timings), base + 35);
  std::fill(base + 38, base + 54, 1);  // no standard timings
  put_timing(base + 54, monitor, mode);
  put_text(base + 72, 0xfc, monitor.name);
  put_limits(base + 90, mode);
  base[108 + 3] = 0x10;  // unused
  base[126] = 1;         // extensions
  seal(std::span(edid).first<kBlock>());

  // CTA-861 7.5: the mode as native video format, and HDMI's own block with the address of the first input.
  const uint8_t blocks[] = {2 << 5 | 3,
                            static_cast<uint8_t>(0x80 | monitor.cea_formats[0]),
                            monitor.cea_formats[1],
                            monitor.cea_formats[2],
                            3 << 5 | 5,
                            0x03,
                            0x0c,
                            0x00,
                            0x10,
                            0x00};
  uint8_t* extension = base + kBlock;
  extension[0] = 2;
  extension[1] = 3;
  extension[2] = 4 + sizeof blocks;  // where timings would begin
  std::copy(std::begin(blocks), std::end(blocks), extension + 4);
  seal(std::span(edid).last<kBlock>());
  return edid;
}

}  // namespace v3d::ioctl::kms
