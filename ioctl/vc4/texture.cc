#include "ioctl/vc4/texture.h"

#include <algorithm>
#include <array>
#include <bit>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "ioctl/vc4/layout.h"

namespace v3d::ioctl::vc4 {
namespace {

constexpr uint32_t kTypeEtc1 = 8, kTypeRgba32r = 16;
/// Bytes of a texel or block by type; 0: refused.
constexpr std::array<uint8_t, 32> kBytes = {
    4,  // RGBA8888
    4,  // RGBX8888
    2,  // RGBA4444
    2,  // RGBA5551
    2,  // RGB565
    1,  // LUMINANCE
    1,  // ALPHA
    2,  // LUMALPHA
    8,  // ETC1, of 4 by 4 texels
    2,  // S16F
    1,  // S8
    2,  // S16
    0,  // BW1
    0,  // A4
    0,  // A1
    0,  // RGBA64
    4,  // RGBA32R
};

constexpr uint32_t field(uint32_t word, int high, int low) {
  return word >> low & ((2u << (high - low)) - 1);
}
constexpr uint32_t kOffsetMask = 0xfffff000, kStrideMask = 0x3ffff000;
constexpr uint32_t kCubeStride = 1;  // kind of P2 and P3

struct Parameters {
  std::array<uint32_t, 4> p{};

  uint32_t offset() const { return p[0] & kOffsetMask; }
  bool is_cube() const { return field(p[0], 9, 9); }
  uint32_t levels() const { return field(p[0], 3, 0); }  ///< number of the last one
  uint32_t type() const { return field(p[0], 7, 4) | field(p[1], 31, 31) << 4; }
  uint32_t width() const { return side(field(p[1], 18, 8)); }
  uint32_t height() const { return side(field(p[1], 30, 20)); }

 private:
  static uint32_t side(uint32_t value) { return value ? value : 2048; }
};

absl::Status refuse(const Parameters& parameters, const char* rule) {
  const auto& p = parameters.p;
  return absl::InvalidArgumentError(
      absl::StrFormat("texture %08x %08x %08x %08x: %s", p[0], p[1], p[2], p[3], rule));
}

/// Bytes of the levels below level 0, each of a size that `size_of` says. The layout falls from T to LT once.
template <typename SizeOf>
uint64_t bytes_of_levels(uint32_t levels, Tiling tiling, uint32_t bytes, const SizeOf& size_of) {
  uint64_t sum = 0;
  for (uint32_t level = 1; level <= levels; ++level) {
    const auto [width, height] = size_of(level);
    if (tiling == Tiling::kT && is_small(width, height, bytes)) tiling = Tiling::kLt;
    sum += image_bytes(tiling, width, height, bytes);
  }
  return sum;
}

struct Size {
  uint32_t width, height;
};

absl::Status check_direct(const Parameters& parameters, uint64_t size) {
  const uint64_t base = parameters.p[0], highest = parameters.p[1];
  if (base + sizeof(uint32_t) > size) return refuse(parameters, "its base lies beyond its BO");
  if (highest + sizeof(uint32_t) > size - base)
    return refuse(parameters, "its clamp lets it read beyond its BO");
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> cube_stride(const Parameters& parameters) {
  uint32_t stride = 0;
  if (!parameters.is_cube()) return stride;
  for (const uint32_t p : {parameters.p[2], parameters.p[3]}) {
    if (field(p, 31, 30) != kCubeStride) continue;
    if (stride) return refuse(parameters, "two strides of a cube");
    stride = p & kStrideMask;
  }
  if (!stride) return refuse(parameters, "a cube without a stride");
  return stride;
}

absl::Status check_image(const Parameters& parameters, uint64_t size) {
  const auto stride = cube_stride(parameters);
  if (!stride.ok()) return stride.status();
  const uint32_t type = parameters.type();
  const uint32_t bytes = kBytes[type];
  if (!bytes) return refuse(parameters, "a type that may not be used");
  const uint32_t block = type == kTypeEtc1 ? 4 : 1;  // texels
  const auto blocks = [block](uint32_t texels) { return (texels + block - 1) / block; };
  const uint32_t width = blocks(parameters.width()), height = blocks(parameters.height());
  const Tiling tiling = type == kTypeRgba32r             ? Tiling::kLinear
                        : is_small(width, height, bytes) ? Tiling::kLt
                                                         : Tiling::kT;
  if (parameters.offset() + *stride * 5 + image_bytes(tiling, width, height, bytes) > size)
    return refuse(parameters, "it reaches beyond its BO");
  const auto halved = [&](uint32_t level) {
    return Size{std::max(width >> level, 1u), std::max(height >> level, 1u)};
  };
  const auto of_the_chip = [&](uint32_t level) {
    const auto side = [&](uint32_t texels) { return blocks(std::max(std::bit_ceil(texels) >> level, 1u)); };
    return Size{side(parameters.width()), side(parameters.height())};
  };
  const uint32_t levels = parameters.levels();
  if (std::max(bytes_of_levels(levels, tiling, bytes, halved),
               bytes_of_levels(levels, tiling, bytes, of_the_chip)) > parameters.offset())
    return refuse(parameters, "its levels begin before its BO");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<uint32_t> relocate_texture(const TextureSample& sample, std::span<const uint8_t> uniforms,
                                          const JobBo& bo) {
  Parameters parameters;
  for (size_t i = 0; i < parameters.p.size(); ++i)
    if (sample.parameters[i] != TextureSample::kAbsent)
      parameters.p[i] = get<uint32_t>(uniforms, sample.parameters[i]);
  const absl::Status status =
      sample.direct ? check_direct(parameters, bo.size) : check_image(parameters, bo.size);
  if (!status.ok()) return status;
  // Pages begin at multiples of 4096, so the low bits, which are no part of the offset, stay.
  return bo.address + parameters.p[0];
}

}  // namespace v3d::ioctl::vc4
