#include "ioctl/display/rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "absl/strings/str_format.h"
#include "ioctl/display/formats.h"
#include "ioctl/display/modifiers.h"

namespace v3d::ioctl::kms {
namespace {

std::string name_of(uint32_t format) {
  std::string name;
  for (int i = 0; i < 4; ++i) {
    const auto c = static_cast<char>(format >> (8 * i));
    name += c > 0x20 && c < 0x7f ? c : '?';
  }
  return name;
}

constexpr uint32_t kOpaque = 0xff000000;

constexpr uint32_t swap_red_and_blue(uint32_t pixel) {
  return (pixel & 0xff00ff00) | (pixel & 0xff) << 16 | (pixel >> 16 & 0xff);
}

/// A channel as 8 bits: the upper ones of more, and of less repeated below.
constexpr uint32_t channel_of(uint32_t pixel, Channel channel) {
  const uint32_t value = pixel >> channel.shift & ((uint32_t{1} << channel.bits) - 1);
  if (channel.bits >= 8) return value >> (channel.bits - 8);
  uint32_t wide = value << (8 - channel.bits);
  for (uint32_t known = channel.bits; known < 8; known *= 2) wide |= wide >> known;
  return wide;
}

constexpr uint32_t clamp_channel(int32_t value) {
  return static_cast<uint32_t>(std::clamp(value >> 16, 0, 255));
}

/// All rows lie in the memory.
bool fits(const PlanePixels& pixels, const Format& format) {
  const wire::ScreenPlane& plane = pixels.plane;
  for (uint32_t part = 0; part < format.parts; ++part) {
    const uint64_t bytes = row_bytes(format, plane.width, part);
    const uint32_t rows = part_height(format, plane.height, part);
    if (bytes == 0 || rows == 0 || bytes > INT32_MAX ||
        extent(plane.modifier, bytes, rows, plane.parts[part].pitch) > pixels.parts[part].size())
      return false;
  }
  return plane.num_parts == format.parts;
}

constexpr uint32_t kPacked10 = fourcc("P030");

/// Three samples of 10 bits in each word, as those of 8 bits one after the other.
void unpack10(std::vector<uint8_t>* samples) {
  std::vector<uint8_t> bytes;
  bytes.reserve(samples->size() / 4 * 3);
  for (size_t at = 0; at + 4 <= samples->size(); at += 4) {
    uint32_t word;
    std::memcpy(&word, samples->data() + at, sizeof word);
    for (int shift = 2; shift < 32; shift += 10) bytes.push_back(static_cast<uint8_t>(word >> shift));
  }
  *samples = std::move(bytes);
}

}  // namespace

absl::StatusOr<RowReader> RowReader::create(const PlanePixels& pixels) {
  const wire::ScreenPlane& plane = pixels.plane;
  const Format* format = find_format(plane.fourcc);
  if (!format)
    return absl::UnimplementedError(
        absl::StrFormat("plane %d: pictures of format %s", plane.plane_id, name_of(plane.fourcc)));
  if (!takes_modifier(*format, plane.modifier))
    return absl::UnimplementedError(
        absl::StrFormat("plane %d: pictures of modifier %#x", plane.plane_id, plane.modifier));
  if (!fits(pixels, *format))
    return absl::InvalidArgumentError(absl::StrFormat("plane %d is larger than its memory", plane.plane_id));
  RowReader reader(pixels);
  reader.format_ = format;
  if (plane.fourcc == fourcc("XR24") || plane.fourcc == fourcc("AR24"))
    reader.layout_ = Layout::kArgb;
  else if (plane.fourcc == fourcc("XB24") || plane.fourcc == fourcc("AB24"))
    reader.layout_ = Layout::kAbgr;
  else
    reader.layout_ = format->parts == 1 ? Layout::kPacked : Layout::kYuv;
  if (reader.layout_ == Layout::kYuv) reader.set_conversion();
  return reader;
}

/// BT.601, BT.709 and BT.2020 (not constant luminance), of limited or full range.
void RowReader::set_conversion() {
  static constexpr double kRed[] = {0.299, 0.2126, 0.2627}, kBlue[] = {0.114, 0.0722, 0.0593};
  const uint32_t encoding = std::min<uint32_t>(pixels_.plane.color_encoding, 2);
  const bool is_limited = pixels_.plane.color_range == 0;
  const double luma = is_limited ? 255.0 / 219 : 1, chroma = is_limited ? 255.0 / 224 : 1;
  const double red = kRed[encoding], blue = kBlue[encoding], green = 1 - red - blue;
  const auto fixed = [](double value) { return static_cast<int32_t>(std::lround(value * 65536)); };
  yuv_.offset = is_limited ? 16 : 0;
  yuv_.y = fixed(luma);
  yuv_.r_cr = fixed(2 * (1 - red) * chroma);
  yuv_.b_cb = fixed(2 * (1 - blue) * chroma);
  yuv_.g_cb = fixed(2 * (1 - blue) * blue / green * chroma);
  yuv_.g_cr = fixed(2 * (1 - red) * red / green * chroma);
}

void RowReader::gather(uint32_t part, uint32_t y) const {
  const uint64_t modifier = pixels_.plane.modifier;
  // fits() has seen that it is no more than 31 bits, of whole words.
  const auto size = static_cast<uint32_t>(row_bytes(*format_, pixels_.plane.width, part));
  std::vector<uint8_t>& row = gathered_[part];
  row.resize(size);
  for (uint32_t x = 0, count; x < size; x += count) {
    count = std::min(bytes_together(modifier, x), size - x);
    const uint64_t from = byte_offset(modifier, x, y, pixels_.plane.parts[part].pitch);
    std::memcpy(row.data() + x, pixels_.parts[part].data() + from, count);
  }
  if (format_->fourcc == kPacked10) unpack10(&row);
}

const uint8_t* RowReader::row(uint32_t part, uint32_t y) const {
  if (base_of(pixels_.plane.modifier) != kLinear) {
    gather(part, y);
    return gathered_[part].data();
  }
  return pixels_.parts[part].data() + uint64_t{y} * pixels_.plane.parts[part].pitch;
}

void RowReader::read_yuv(uint32_t y, uint32_t first, uint32_t count, uint32_t* out) const {
  const uint32_t hsub = format_->hsub, step = format_->parts == 2 ? 2 : 1;
  const uint8_t* luma = row(0, y);
  const uint8_t* const cb_row = row(format_->cb_part, y / format_->vsub);
  // Each call gathers its part anew, where the last row of that was.
  const uint8_t* const cr_row =
      format_->cr_part == format_->cb_part ? cb_row : row(format_->cr_part, y / format_->vsub);
  const uint8_t *cbs = cb_row + format_->cb_byte, *crs = cr_row + format_->cr_byte;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t x = first + i, at = x / hsub * step;
    const int32_t l = (luma[x] - yuv_.offset) * yuv_.y + 0x8000, cb = cbs[at] - 128, cr = crs[at] - 128;
    out[i] = kOpaque | clamp_channel(l + cr * yuv_.r_cr) << 16 |
             clamp_channel(l - cb * yuv_.g_cb - cr * yuv_.g_cr) << 8 | clamp_channel(l + cb * yuv_.b_cb);
  }
}

void RowReader::read(uint32_t y, uint32_t first, uint32_t count, uint32_t* out) const {
  if (layout_ == Layout::kYuv) return read_yuv(y, first, count, out);
  const uint8_t* from = row(0, y);
  if (layout_ == Layout::kArgb || layout_ == Layout::kAbgr) {
    std::memcpy(out, from + uint64_t{first} * 4, uint64_t{count} * 4);
    const uint32_t opaque = has_alpha() ? 0 : kOpaque;
    if (layout_ == Layout::kAbgr)
      for (uint32_t i = 0; i < count; ++i) out[i] = swap_red_and_blue(out[i]);
    for (uint32_t i = 0; i < count; ++i) out[i] |= opaque;
    return;
  }
  const uint32_t bytes = format_->bytes[0];
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t pixel = 0;
    std::memcpy(&pixel, from + uint64_t{first + i} * bytes, bytes);  // the host is little-endian, too
    const uint32_t alpha = has_alpha() ? channel_of(pixel, format_->alpha) : 255;
    out[i] = alpha << 24 | channel_of(pixel, format_->red) << 16 | channel_of(pixel, format_->green) << 8 |
             channel_of(pixel, format_->blue);
  }
}

}  // namespace v3d::ioctl::kms
