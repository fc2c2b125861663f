#include "gpu/tfu/mipmap.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gpu/base/arithmetic.h"
#include "gpu/tmu/texel/encode.h"

namespace v3d::tfu {
namespace {

/// One row of texels as floats, 4 per texel.
using Row = std::vector<float>;

void decode_row(const tmu::Format& format, const uint8_t* texels, uint32_t width, Row& row) {
  for (uint32_t x = 0; x < width; x += kLanes) {
    const uint32_t count = std::min<uint32_t>(kLanes, width - x);
    Lanes words[4] = {}, rgba[4];
    for (uint32_t i = 0; i < count; ++i) {
      uint32_t texel[4] = {};
      std::memcpy(texel, texels + size_t{x + i} * format.cpp, format.cpp);
      for (int k = 0; k < 4; ++k) words[k][static_cast<int>(i)] = texel[k];
    }
    format.decode(words, rgba);
    for (uint32_t i = 0; i < count; ++i)
      for (int c = 0; c < 4; ++c)
        row[size_t{x + i} * 4 + static_cast<size_t>(c)] = as_float(rgba[c])[static_cast<int>(i)];
  }
}

/// The two source texels around the centre of target texel i, and the weight of the second.
struct Tap {
  uint32_t first, second;
  float weight;
};
Tap tap(uint32_t i, uint32_t source_size, uint32_t target_size) {
  const double centre = (i + 0.5) * source_size / target_size - 0.5;
  const double floor = std::floor(centre);
  const auto clamp = [&](double at) {
    return static_cast<uint32_t>(std::clamp(at, 0.0, static_cast<double>(source_size - 1)));
  };
  return {clamp(floor), clamp(floor + 1), static_cast<float>(centre - floor)};
}

void encode_row(const tmu::Packing& packing, uint32_t cpp, const Row& row, uint32_t width, uint8_t* texels) {
  for (uint32_t x = 0; x < width; ++x) {
    uint64_t texel = 0;
    for (size_t c = 0; c < 4; ++c) {
      const tmu::Channel channel = packing.channels[c];
      if (channel.bits)
        texel |= uint64_t{tmu::encode_float(packing.number, row[size_t{x} * 4 + c], channel.bits)}
                 << channel.first;
    }
    std::memcpy(texels + size_t{x} * cpp, &texel, cpp);
  }
}

/// Means of 2 x 2 texels of 8-bit channels, rounded half up, from two source rows.
template <uint32_t kChannels>
void box_row(const uint8_t* top, const uint8_t* bottom, uint32_t width, uint8_t* result) {
  for (uint32_t x = 0; x < width; ++x)
    for (uint32_t c = 0; c < kChannels; ++c) {
      const uint32_t left = 2 * x * kChannels + c, right = left + kChannels;
      result[x * kChannels + c] =
          static_cast<uint8_t>((top[left] + top[right] + bottom[left] + bottom[right] + 2) / 4);
    }
}
/// Two channels at a time in the halves of a word.
template <>
void box_row<4>(const uint8_t* top, const uint8_t* bottom, uint32_t width, uint8_t* result) {
  constexpr uint32_t kMask = 0x00ff00ff, kRound = 0x00020002;
  for (uint32_t x = 0; x < width; ++x) {
    uint32_t t[2], b[2];
    std::memcpy(t, top + 8 * x, 8);
    std::memcpy(b, bottom + 8 * x, 8);
    const uint32_t even = (t[0] & kMask) + (t[1] & kMask) + (b[0] & kMask) + (b[1] & kMask) + kRound;
    const uint32_t odd = ((t[0] >> 8) & kMask) + ((t[1] >> 8) & kMask) + ((b[0] >> 8) & kMask) +
                         ((b[1] >> 8) & kMask) + kRound;
    const uint32_t mean = ((even >> 2) & kMask) | ((odd >> 2) & kMask) << 8;
    std::memcpy(result + 4 * x, &mean, 4);
  }
}

/// filter_level for 8-bit unorm formats and exact halves.
void box_filter_level(const JobContext& job, const tmu::Format& format, const tmu::Surface& source,
                      const tmu::Surface& target, uint32_t target_width, uint32_t target_height) {
  constexpr uint32_t kBand = 8;  // target rows at a time
  const size_t source_pitch = size_t{target_width} * 2 * format.cpp, target_pitch = source_pitch / 2;
  std::vector<uint8_t> from(source_pitch * kBand * 2), to(target_pitch * kBand);
  using BoxRow = void (*)(const uint8_t*, const uint8_t*, uint32_t, uint8_t*);
  const BoxRow box = format.cpp == 1 ? box_row<1> : format.cpp == 2 ? box_row<2> : box_row<4>;
  for (uint32_t y = 0; y < target_height && !job.stopped(); y += kBand) {
    const uint32_t lines = std::min(kBand, target_height - y);
    tmu::load_rectangle(job.memory, source, 0, 2 * y, 2 * target_width, 2 * lines, from.data(), source_pitch);
    for (uint32_t line = 0; line < lines; ++line)
      box(&from[2 * line * source_pitch], &from[(2 * line + 1) * source_pitch], target_width,
          &to[line * target_pitch]);
    tmu::store_rectangle(job.memory, target, 0, y, target_width, lines, to.data(), target_pitch);
  }
}

}  // namespace

// R8 .. R11F_G11F_B10F
bool can_filter(const tmu::Format& format) { return format.tfu == tmu::TfuUse::kFilters; }

void filter_level(const JobContext& job, const tmu::Format& format, const tmu::Surface& source,
                  uint32_t source_width, uint32_t source_height, const tmu::Surface& target,
                  uint32_t target_width, uint32_t target_height) {
  if (format.unorm_bytes > 0 && source_width == 2 * target_width && source_height == 2 * target_height)
    return box_filter_level(job, format, source, target, target_width, target_height);
  const tmu::Packing& packing = format.packing;
  std::vector<uint8_t> texels(size_t{source_width} * format.cpp);
  Row rows[2] = {Row(size_t{source_width} * 4), Row(size_t{source_width} * 4)};
  Row result(size_t{target_width} * 4);
  std::vector<Tap> columns(target_width);
  for (uint32_t x = 0; x < target_width; ++x) columns[x] = tap(x, source_width, target_width);

  for (uint32_t y = 0; y < target_height && !job.stopped(); ++y) {
    const Tap vertical = tap(y, source_height, target_height);
    const uint32_t lines[2] = {vertical.first, vertical.second};
    for (int k = 0; k < 2; ++k) {
      tmu::load_rectangle(job.memory, source, 0, lines[k], source_width, 1, texels.data(), texels.size());
      decode_row(format, texels.data(), source_width, rows[k]);
    }
    for (uint32_t x = 0; x < target_width; ++x) {
      const Tap& horizontal = columns[x];
      for (size_t c = 0; c < 4; ++c) {
        const auto across = [&](const Row& row) {
          const float a = row[size_t{horizontal.first} * 4 + c], b = row[size_t{horizontal.second} * 4 + c];
          return horizontal.weight == 0 ? a : sum(a * (1 - horizontal.weight), b * horizontal.weight);
        };
        const float top = across(rows[0]), bottom = across(rows[1]);
        result[size_t{x} * 4 + c] =
            vertical.weight == 0 ? top : sum(top * (1 - vertical.weight), bottom * vertical.weight);
      }
    }
    encode_row(packing, format.cpp, result, target_width, texels.data());
    tmu::store_rectangle(job.memory, target, 0, y, target_width, 1, texels.data(), texels.size());
  }
}

}  // namespace v3d::tfu
