#include "ioctl/display/compose.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_format.h"
#include "ioctl/display/rows.h"
#include "ioctl/display/scanout.h"

namespace v3d::ioctl::kms {
namespace {

// DRM_MODE_ROTATE_* and _REFLECT_*.
constexpr uint32_t kRotate0 = 1, kRotate180 = 4, kReflectX = 16, kReflectY = 32;

constexpr uint32_t kOne = 1 << 16;  // 16.16

/// One direction of a plane: where pixels of the screen lie in the framebuffer.
struct Axis {
  uint32_t start, length;  ///< in the framebuffer, 16.16
  uint32_t shown;          ///< pixels on the screen
  bool mirrored;
  uint32_t first, last;  ///< pixels of the framebuffer that may be read

  bool scaled() const { return length != uint64_t{shown} * kOne; }
  /// The two pixels that the i-th of the screen lies between, and how far it is from the first: of 256.
  struct Sample {
    uint32_t at, next, weight;
  };
  Sample sample(uint32_t i) const {
    const uint64_t from_start = mirrored ? shown - 1 - i : i;
    const uint64_t center = start + (2 * from_start + 1) * length / (2 * uint64_t{shown});
    const auto clamped = [this](int64_t pixel) {
      return static_cast<uint32_t>(std::clamp<int64_t>(pixel, first, last));
    };
    if (!scaled()) {
      const uint32_t at = clamped(static_cast<int64_t>(center >> 16));
      return {at, at, 0};
    }
    const int64_t position = static_cast<int64_t>(center) - kOne / 2;
    const int64_t at = position >> 16;
    return {clamped(at), clamped(at + 1), static_cast<uint32_t>(position >> 8 & 255)};
  }
};

/// @param size  of the framebuffer, pixels
Axis make_axis(uint32_t start, uint32_t length, uint32_t shown, uint32_t size, bool mirrored) {
  const uint64_t end = (uint64_t{start} + length + kOne - 1) >> 16;
  return {start,
          length,
          shown,
          mirrored,
          std::min(start >> 16, size - 1),
          static_cast<uint32_t>(std::clamp<uint64_t>(end, 1, size) - 1)};
}

uint32_t mix(uint32_t a, uint32_t b, uint32_t weight) {
  uint32_t mixed = 0;
  for (int shift = 0; shift < 32; shift += 8) {
    const uint32_t low = a >> shift & 255, high = b >> shift & 255;
    mixed |= (low * (256 - weight) + high * weight + 128) >> 8 << shift;
  }
  return mixed;
}

/// How a pixel of the plane and what is below become one.
struct Blender {
  Blend mode;
  uint32_t alpha;  ///< of the plane, of 0xffff

  bool is_copy() const { return mode == Blend::kNone && alpha == 0xffff; }
  uint32_t operator()(uint32_t over, uint32_t below) const {
    constexpr uint64_t kFull = uint64_t{255} * 0xffff;
    const uint64_t coverage = uint64_t{mode == Blend::kNone ? 255 : over >> 24} * alpha;
    const uint64_t weight = mode == Blend::kCoverage ? coverage : uint64_t{255} * alpha;
    uint32_t blended = 0;
    for (int shift = 0; shift < 24; shift += 8) {
      const uint64_t sum = (over >> shift & 255) * weight + (below >> shift & 255) * (kFull - coverage);
      blended |= static_cast<uint32_t>(std::min<uint64_t>((sum + kFull / 2) / kFull, 255)) << shift;
    }
    return blended;
  }
};

/// Rows of the framebuffer; the last two that were read are remembered.
class Rows {
 public:
  Rows(const RowReader& reader, const Axis& x) : reader_(reader), x_(x) {}

  /// From pixel x.first on; valid until two others have been asked for.
  const uint32_t* at(uint32_t y) {
    for (const Row& row : rows_)
      if (!row.pixels.empty() && row.y == y) return row.pixels.data();
    Row& row = rows_[oldest_];
    oldest_ ^= 1;
    row.y = y;
    row.pixels.resize(x_.last - x_.first + 1);
    reader_.read(y, x_.first, static_cast<uint32_t>(row.pixels.size()), row.pixels.data());
    return row.pixels.data();
  }

 private:
  struct Row {
    uint32_t y = 0;
    std::vector<uint32_t> pixels;
  };
  const RowReader& reader_;
  const Axis& x_;
  std::array<Row, 2> rows_;
  uint32_t oldest_ = 0;
};

/// What of a plane is on the screen: pixels [first, end) of it.
struct Visible {
  uint32_t first, end;
};
Visible visible(int32_t position, uint32_t shown, uint32_t screen) {
  const int64_t first = std::clamp<int64_t>(-int64_t{position}, 0, shown);
  const int64_t end = std::clamp<int64_t>(int64_t{screen} - position, first, shown);
  return {static_cast<uint32_t>(first), static_cast<uint32_t>(end)};
}

absl::Status check_plane(const wire::ScreenPlane& plane) {
  constexpr uint32_t kKnown = kRotate0 | kRotate180 | kReflectX | kReflectY;
  if (plane.rotation & ~kKnown)
    return absl::UnimplementedError(
        absl::StrFormat("plane %d: pictures of rotation %#x", plane.plane_id, plane.rotation));
  if (plane.blend > static_cast<uint32_t>(Blend::kNone))
    return absl::UnimplementedError(
        absl::StrFormat("plane %d: pictures of blend mode %d", plane.plane_id, plane.blend));
  return absl::OkStatus();
}

}  // namespace

absl::Status draw_plane(const PlanePixels& pixels, Image* image) {
  const wire::ScreenPlane& plane = pixels.plane;
  if (absl::Status known = check_plane(plane); !known.ok()) return known;
  auto reader = RowReader::create(pixels);
  if (!reader.ok()) return reader.status();
  const auto across = visible(plane.x, plane.w, image->width);
  const auto down = visible(plane.y, plane.h, image->height);
  if (across.first >= across.end || down.first >= down.end) return absl::OkStatus();

  const bool turned = (plane.rotation & kRotate180) != 0;
  const Axis x = make_axis(plane.src_x, plane.src_w, plane.w, plane.width,
                           turned != ((plane.rotation & kReflectX) != 0));
  const Axis y = make_axis(plane.src_y, plane.src_h, plane.h, plane.height,
                           turned != ((plane.rotation & kReflectY) != 0));
  std::vector<Axis::Sample> columns;
  columns.reserve(across.end - across.first);
  for (uint32_t i = across.first; i < across.end; ++i) columns.push_back(x.sample(i));
  const bool is_scaled = x.scaled() || y.scaled();
  const Blender blend = {reader->has_alpha() ? static_cast<Blend>(plane.blend) : Blend::kNone,
                         std::min<uint32_t>(plane.alpha, 0xffff)};

  Rows rows(*reader, x);
  for (uint32_t j = down.first; j < down.end; ++j) {
    const Axis::Sample row = y.sample(j);
    const uint32_t* upper = rows.at(row.at);
    const uint32_t* lower = rows.at(row.next);
    uint32_t* out = image->pixels.data() + static_cast<uint64_t>(plane.y + int64_t{j}) * image->width +
                    static_cast<uint64_t>(plane.x + int64_t{across.first});
    for (const Axis::Sample& column : columns) {
      const uint32_t at = column.at - x.first, next = column.next - x.first;
      uint32_t pixel = upper[at];
      if (is_scaled)
        pixel = mix(mix(pixel, upper[next], column.weight), mix(lower[at], lower[next], column.weight),
                    row.weight);
      *out = blend.is_copy() ? pixel & 0xffffff : blend(pixel, *out);
      ++out;
    }
  }
  return absl::OkStatus();
}

}  // namespace v3d::ioctl::kms
