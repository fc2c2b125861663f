#include "tools/inspect/texture_picture.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>

#include "absl/strings/str_format.h"
#include "gpu/chip/profile.h"
#include "gpu/tmu/image/layout.h"
#include "gpu/tmu/image/texture_config.h"
#include "gpu/tmu/image/texture_levels.h"
#include "gpu/tmu/image/texture_state.h"
#include "gpu/tmu/texel/format.h"

namespace v3d::inspect {
namespace {

using namespace tmu;  // the texture unit's words are what this file is about

constexpr uint64_t kMostPixels = uint64_t{1} << 24;

const char* tiling_name(Tiling tiling) {
  switch (tiling) {
    case Tiling::kRaster:
      return "raster";
    case Tiling::kLineartile:
      return "lineartile (utiles one after the other)";
    case Tiling::kUblinear1:
      return "UB-linear, 1 column (UIF blocks of 2x2 utiles, one column)";
    case Tiling::kUblinear2:
      return "UB-linear, 2 columns (UIF blocks of 2x2 utiles, two columns)";
    case Tiling::kUif:
      return "UIF (columns of 4 UIF blocks)";
    case Tiling::kUifXor:
      return "UIF XOR (columns of 4 UIF blocks, odd ones with bit 4 of the row flipped)";
    case Tiling::kT:
      return "T (tiles of 4 KiB)";
    case Tiling::kLineartileRows:
      return "LT (rows of utiles)";
  }
  return "?";
}

/// Texels or blocks in a row that a layout keeps together.
uint32_t columns_of_unit(Tiling tiling, uint32_t cpp) {
  switch (tiling) {
    case Tiling::kRaster:
      return 1;
    case Tiling::kLineartile:
      return utile_width(cpp);
    case Tiling::kUblinear1:
      return 2 * utile_width(cpp);
    case Tiling::kUblinear2:
      return 4 * utile_width(cpp);
    case Tiling::kUif:
    case Tiling::kUifXor:
      return 8 * utile_width(cpp);
    case Tiling::kT:
      return 8 * vc4_utile_width(cpp);
    case Tiling::kLineartileRows:
      return vc4_utile_width(cpp);
  }
  return 1;
}

const char* wrap_name(Wrap wrap) {
  constexpr const char* kNames[] = {"REPEAT", "CLAMP_TO_EDGE", "MIRRORED_REPEAT", "CLAMP_TO_BORDER",
                                    "MIRROR_CLAMP_TO_EDGE"};
  const auto index = static_cast<size_t>(wrap);
  return index < std::size(kNames) ? kNames[index] : "?";
}

std::string text_of(const SamplerState& sampler) {
  const auto filter = [](bool nearest) { return nearest ? "NEAREST" : "LINEAR"; };
  std::string text =
      absl::StrFormat("magnified %s, minified %s, between levels %s; S %s, T %s", filter(sampler.mag_nearest),
                      filter(sampler.min_nearest), filter(sampler.mip_nearest), wrap_name(sampler.wrap[0]),
                      wrap_name(sampler.wrap[1]));
  if (sampler.max_anisotropy > 1) absl::StrAppendFormat(&text, "; anisotropy %d", sampler.max_anisotropy);
  return text;
}

uint32_t byte_of(Kind kind, uint32_t raw) {
  if (kind == Kind::kUint) return std::min(raw, 255u);
  const double value = kind == Kind::kInt ? static_cast<double>(static_cast<int32_t>(raw))
                                          : double{std::bit_cast<float>(raw)} * 255;
  return value > 0 ? static_cast<uint32_t>(std::lround(std::min(value, 255.0))) : 0;  // NaN is 0
}

uint32_t byte_of(BlockScale scale, uint16_t value) {
  switch (scale) {
    case BlockScale::kUnorm8:
      return value & 255u;
    case BlockScale::kUnorm16:
      return value >> 8;
    case BlockScale::kUnorm11:
      return std::min<uint32_t>(value * 255u / 2047, 255);
    case BlockScale::kSnorm11:
      return static_cast<uint32_t>(std::clamp(static_cast<int16_t>(value) * 255 / 1023, 0, 255));
  }
  return 0;
}

/// Channels as the interface has them.
uint32_t join(const TextureState& texture, std::array<uint32_t, 4> channels) {
  if (texture.reverse) std::reverse(channels.begin(), channels.end());
  if (texture.rb_swap) std::swap(channels[0], channels[2]);
  return channels[0] | channels[1] << 8 | channels[2] << 16 | channels[3] << 24;
}

void decode_plain(const Format& format, const TextureState& texture, const std::vector<uint8_t>& texels,
                  TexturePicture* picture) {
  const size_t cpp = format.cpp, count = picture->rgba.size();
  for (size_t first = 0; first < count; first += kLanes) {
    Lanes words[4] = {}, rgba[4];
    for (size_t lane = 0; lane < kLanes && first + lane < count; ++lane) {
      std::array<uint32_t, 4> texel{};
      std::memcpy(texel.data(), texels.data() + (first + lane) * cpp, cpp);
      for (size_t w = 0; w < 4; ++w) words[w][static_cast<int>(lane)] = texel[w];
    }
    format.decode(words, rgba);
    for (size_t lane = 0; lane < kLanes && first + lane < count; ++lane) {
      std::array<uint32_t, 4> channels;
      for (size_t c = 0; c < 4; ++c) channels[c] = byte_of(format.kind, rgba[c][static_cast<int>(lane)]);
      picture->rgba[first + lane] = join(texture, channels);
    }
  }
}

void decode_blocks(const Format& format, const TextureState& texture, const std::vector<uint8_t>& blocks,
                   uint32_t columns, TexturePicture* picture) {
  const bool srgb = format.block_srgb && texture.transfer != Transfer::kNone;
  std::array<BlockTexel, kMaxBlockTexels> texels;
  for (uint32_t n = 0; n < blocks.size() / format.cpp; ++n) {
    format.decode_block(blocks.data() + size_t{n} * format.cpp, srgb, texels.data());
    for (uint32_t i = 0; i < uint32_t{format.block_width} * format.block_height; ++i) {
      const uint32_t x = n % columns * format.block_width + i % format.block_width,
                     y = n / columns * format.block_height + i / format.block_width;
      if (x >= picture->width || y >= picture->height) continue;
      std::array<uint32_t, 4> channels;
      for (size_t c = 0; c < 4; ++c) channels[c] = byte_of(format.block_scale, texels[i][c]);
      picture->rgba[size_t{y} * picture->width + x] = join(texture, channels);
    }
  }
}

ImageShape vc4_levels(const TextureState& texture, const Format& format, Level* levels) {
  const ImageShape shape{.width = texture.width,
                         .height = texture.height,
                         .depth = 1,
                         .cpp = format.cpp,
                         .block_width = format.block_width,
                         .block_height = format.block_height,
                         .num_levels = std::min<uint32_t>(texture.max_level + 1u, kMaxLevels)};
  compute_vc4_levels(shape, levels);
  return shape;
}

/// What a question gives need not be true.
int dimensions_of(const UsedTexture& used) { return static_cast<int>(std::clamp(used[2], 1u, 3u)); }

}  // namespace

TexturePicture read_texture(Memory memory, const chip::Profile& profile, const UsedTexture& used,
                            uint32_t level) {
  const chip::Generation generation = profile.generation;
  const bool has_config_words = chip::pipeline(generation).packed_lookups;
  const TextureState texture =
      has_config_words ? decode_texture_config(std::span<const uint32_t, kConfigWords>(used)).texture
                       : decode_texture_state(memory, used[0] & ~15u, generation);
  TexturePicture picture;
  if (has_config_words)
    picture.sampler = text_of(decode_texture_config(std::span<const uint32_t, kConfigWords>(used)).sampler);
  else if ((used[1] & ~7u) != 0)
    picture.sampler = text_of(decode_sampler_state(memory, used[1] & ~7u));
  picture.depth = texture.depth;
  picture.array_stride = texture.array_stride;
  picture.format = format_name(generation, texture.type);
  const Format* const format = find_format(generation, texture.type);
  picture.width = texture.width;
  picture.height = texture.height;
  if (format == nullptr || texture.unsupported != nullptr) {
    picture.problem = format == nullptr ? "the format is not modelled" : texture.unsupported;
    return picture;
  }
  std::array<Level, kMaxLevels> levels;
  const ImageShape shape = has_config_words
                               ? vc4_levels(texture, *format, levels.data())
                               : texture_levels(texture, *format, dimensions_of(used), levels.data());
  picture.levels = shape.num_levels;
  for (uint32_t n = 0; n < picture.levels; ++n) {
    const uint32_t width = std::max(shape.width >> n, 1u),
                   unit = columns_of_unit(levels[n].tiling, format->cpp);
    const uint32_t across = width / format->block_width + (width % format->block_width != 0);
    picture.rows.push_back({.address = texture.base + static_cast<uint32_t>(levels[n].offset),
                            .width = width,
                            .height = std::max(shape.height >> n, 1u),
                            .stride = levels[n].stride,
                            .needs = across * format->cpp,
                            .padded = (across + unit - 1) / unit * unit * format->cpp,
                            .tiling = tiling_name(levels[n].tiling)});
  }
  const uint32_t number = std::min(level, picture.levels - 1);
  const Level& of = levels[number];
  picture.address = texture.base + static_cast<uint32_t>(of.offset);
  picture.width = std::max(shape.width >> number, 1u);
  picture.height = std::max(shape.height >> number, 1u);
  picture.texel_bytes = format->cpp;
  const uint64_t pixels = uint64_t{picture.width} * picture.height;
  if (pixels > kMostPixels) {
    picture.problem = absl::StrFormat("%d pixels are too many for a picture", pixels);
    return picture;
  }
  const bool is_uif = of.tiling == Tiling::kUif || of.tiling == Tiling::kUifXor;
  const uint32_t columns = (picture.width + format->block_width - 1) / format->block_width,
                 rows = (picture.height + format->block_height - 1) / format->block_height;
  std::vector<uint8_t> texels(size_t{columns} * rows * format->cpp);
  load_rectangle(memory, {picture.address, of.tiling, format->cpp, is_uif ? of.padded_height_ub : of.stride},
                 0, 0, columns, rows, texels.data(), size_t{columns} * format->cpp);
  picture.rgba.resize(pixels);
  format->compressed() ? decode_blocks(*format, texture, texels, columns, &picture)
                       : decode_plain(*format, texture, texels, &picture);
  return picture;
}

}  // namespace v3d::inspect
