#include "gpu/tmu/image/texture_config.h"

#include <iterator>

namespace v3d::tmu {
namespace {

constexpr uint32_t bits(uint32_t word, int first, int count) { return (word >> first) & ((1u << count) - 1); }
constexpr bool bit(uint32_t word, int index) { return bits(word, index, 1) != 0; }

/// What the two upper bits of P2 and P3 say the rest is.
enum Kind : uint32_t { kUnused = 0, kCubeStride = 1, kChildDimensions = 2, kChildOffsets = 3 };

constexpr uint32_t kPage = ~0xfffu;
constexpr int32_t kMostLevel = 15;
constexpr uint32_t kMostTexels = 2048;  ///< across or down: the fields hold 0 for it

/// How a level is chosen, and texels in it.
struct Filters {
  bool nearest;    ///< the texel of a level
  bool one_level;  ///< there is level 0 alone
  bool nearest_level;
};
constexpr Filters kMinify[] = {{false, true, true},  {true, true, true},   {true, false, true},
                               {true, false, false}, {false, false, true}, {false, false, false}};

void decode_filters(uint32_t p1, TextureConfig& config) {
  SamplerState& sampler = config.sampler;
  const uint32_t minify = bits(p1, 4, 3);
  sampler.max_anisotropy = 1;
  sampler.mag_nearest = bit(p1, 7);
  if (minify >= std::size(kMinify)) config.texture.unsupported = "minifying filter 6 or 7 of VideoCore IV";
  const Filters& filters = kMinify[minify < std::size(kMinify) ? minify : 0];
  sampler.min_nearest = filters.nearest;
  sampler.mip_nearest = filters.nearest_level;
  // One level: far enough above 0 for the minifying filter, and for the nearest level still the first. Else
  // the number of levels limits what is chosen, but not which filter chooses.
  sampler.max_lod = filters.one_level ? 1 : kMostLevel << 8;
  sampler.wrap[0] = static_cast<Wrap>(bits(p1, 0, 2));
  sampler.wrap[1] = static_cast<Wrap>(bits(p1, 2, 2));
  sampler.wrap[2] = Wrap::kClamp;
}
static_assert(static_cast<uint32_t>(Wrap::kRepeat) == 0 && static_cast<uint32_t>(Wrap::kClamp) == 1 &&
              static_cast<uint32_t>(Wrap::kMirror) == 2 && static_cast<uint32_t>(Wrap::kBorder) == 3);

}  // namespace

TextureConfig decode_texture_config(std::span<const uint32_t, kConfigWords> p) {
  TextureConfig config = {};
  TextureState& texture = config.texture;
  texture.base = p[0] & kPage;
  config.cube = bit(p[0], 9);
  texture.flip_y = bit(p[0], 8);
  texture.type = TextureType{bits(p[0], 4, 4) | bits(p[1], 31, 1) << 4};
  texture.max_level = static_cast<uint8_t>(bits(p[0], 0, 4));
  const auto size = [](uint32_t field) { return field == 0 ? kMostTexels : field; };
  texture.height = size(bits(p[1], 20, 11));
  texture.width = size(bits(p[1], 8, 11));
  texture.depth = 1;
  config.etc_flipped = !bit(p[1], 19);
  for (const uint32_t word : p.last<2>()) {
    switch (bits(word, 30, 2)) {
      case kCubeStride:
        texture.array_stride = word & 0x3ffff000u;
        config.explicit_lod = bit(word, 0);
        break;
      case kChildDimensions:
      case kChildOffsets:
        texture.unsupported = "part of a texture (child dimensions and offsets of VideoCore IV)";
        break;
      default:
        break;
    }
  }
  decode_filters(p[1], config);
  return config;
}

}  // namespace v3d::tmu
