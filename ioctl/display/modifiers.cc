#include "ioctl/display/modifiers.h"

#include <algorithm>
#include <iterator>

#include "gpu/base/t_tiles.h"

namespace v3d::ioctl::kms {
namespace {

constexpr uint64_t kModifiers[] = {kTTiled, kSand128, kSand64, kSand256, kLinear};

constexpr uint32_t kParameterShift = 8;
constexpr uint64_t kParameter = (uint64_t{1} << 48) - 1;

constexpr uint32_t kTiledFormats[] = {fourcc("XR24"), fourcc("AR24"), fourcc("AB24"), fourcc("XB24"),
                                      fourcc("RG16"), fourcc("BG16"), fourcc("AR15"), fourcc("XR15")};
/// Of 10 bits each, so many in a word.
constexpr uint32_t kPacked10 = fourcc("P030");
constexpr uint64_t kSamples = 3;

bool is_sand(uint64_t base) { return base == kSand64 || base == kSand128 || base == kSand256; }

/// T tiles of pixels of 2 and of 4 bytes: utiles of 4 rows of 16 bytes (vc4-graphics.md 5.4).
constexpr uint32_t kUtileBytes = 16, kUtileRows = t_tiles::kUtileBytes / kUtileBytes;
constexpr uint32_t kTileBytes = kUtileBytes * t_tiles::kTileUtiles,
                   kTileRows = kUtileRows * t_tiles::kTileUtiles;
uint64_t t_tiled_offset(uint32_t x, uint32_t y, uint32_t tiles) {
  return t_tiles::utile_offset(x / kUtileBytes, y / kUtileRows, tiles) + y % kUtileRows * kUtileBytes +
         x % kUtileBytes;
}

}  // namespace

uint64_t base_of(uint64_t modifier) { return modifier & ~(kParameter << kParameterShift); }
uint64_t column_height(uint64_t modifier) { return modifier >> kParameterShift & kParameter; }
uint32_t column_bytes(uint64_t modifier) {
  switch (base_of(modifier)) {
    case kSand64:
      return 64;
    case kSand128:
      return 128;
    case kSand256:
      return 256;
    default:
      return 0;
  }
}

std::span<const uint64_t> modifiers() { return kModifiers; }

bool takes_modifier(const Format& format, uint64_t modifier) {
  const uint64_t base = base_of(modifier);
  if (std::find(std::begin(kTiledFormats), std::end(kTiledFormats), format.fourcc) != std::end(kTiledFormats))
    return base == kLinear || base == kTTiled;
  if (format.fourcc == fourcc("NV12") || format.fourcc == fourcc("NV21"))
    return base == kLinear || is_sand(base);
  if (format.fourcc == kPacked10) return base == kSand128;
  return modifier == kLinear;
}

bool shows_modifier(const chip::DisplayUnit& unit, uint64_t modifier) {
  constexpr uint64_t kMostRows = 0xffff;  // SCALER_TILE_HEIGHT
  const uint64_t base = base_of(modifier);
  if (is_sand(base) && column_height(modifier) > kMostRows) return false;
  return unit.shows_t_tiles || (base != kTTiled && base != kSand64);  // vc6_plane_mode_set
}

uint64_t least_pitch(const Format& format, uint32_t width, uint32_t part) {
  const uint64_t bytes = uint64_t{part_width(format, width, part)} * format.bytes[part];
  return format.fourcc == kPacked10 ? (bytes + kSamples - 1) / kSamples : bytes;
}

uint64_t row_bytes(const Format& format, uint32_t width, uint32_t part) {
  constexpr uint64_t kWord = 4;
  const uint64_t bytes = least_pitch(format, width, part);
  return format.fourcc == kPacked10 ? (bytes + kWord - 1) / kWord * kWord : bytes;
}

uint64_t extent(uint64_t modifier, uint64_t bytes, uint32_t rows, uint32_t pitch) {
  if (const uint32_t column = column_bytes(modifier))
    return ((bytes - 1) / column * column_height(modifier) + rows) * column;
  if (base_of(modifier) != kTTiled) return uint64_t{rows - 1} * pitch + bytes;
  const uint64_t tiles = pitch / kTileBytes;
  return bytes > tiles * kTileBytes ? UINT64_MAX
                                    : (rows + kTileRows - 1) / kTileRows * tiles * t_tiles::kTileBytes;
}

uint64_t byte_offset(uint64_t modifier, uint32_t x, uint32_t y, uint32_t pitch) {
  if (const uint32_t column = column_bytes(modifier))
    return (uint64_t{x / column} * column_height(modifier) + y) * column + x % column;
  return base_of(modifier) == kTTiled ? t_tiled_offset(x, y, pitch / kTileBytes) : uint64_t{y} * pitch + x;
}

uint32_t bytes_together(uint64_t modifier, uint32_t x) {
  if (const uint32_t column = column_bytes(modifier)) return column - x % column;
  return base_of(modifier) == kTTiled ? kUtileBytes - x % kUtileBytes : UINT32_MAX;
}

}  // namespace v3d::ioctl::kms
