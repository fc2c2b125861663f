/// @file BC1, BC2 and BC3 (Khronos Data Format Specification 1.3, "S3TC Compressed Texture Image Formats").
#include <cstring>

#include "gpu/tmu/texel/block_formats.h"

namespace v3d::tmu {
namespace {

constexpr int kTexels = 16;

/// The four colours of a block. @param three_colors  BC1: c0 <= c1 selects three colours and transparent
/// black
void make_palette(const uint8_t* block, bool may_have_alpha, BlockTexel (&palette)[4]) {
  uint16_t c[2];
  std::memcpy(c, block, 4);
  for (int i = 0; i < 2; ++i) {
    const int r = c[i] >> 11, g = (c[i] >> 5) & 63, b = c[i] & 31;
    palette[i][0] = static_cast<uint16_t>(r << 3 | r >> 2);
    palette[i][1] = static_cast<uint16_t>(g << 2 | g >> 4);
    palette[i][2] = static_cast<uint16_t>(b << 3 | b >> 2);
  }
  const bool three_colors = may_have_alpha && c[0] <= c[1];
  for (int ch = 0; ch < 3; ++ch) {
    const int a = palette[0][ch], b = palette[1][ch];
    palette[2][ch] = static_cast<uint16_t>(three_colors ? (a + b) / 2 : (2 * a + b) / 3);
    palette[3][ch] = static_cast<uint16_t>(three_colors ? 0 : (a + 2 * b) / 3);
  }
  for (int i = 0; i < 4; ++i) palette[i][3] = three_colors && i == 3 ? 0 : 255;
}

void decode_color(const uint8_t* block, bool may_have_alpha, BlockTexel* texels) {
  BlockTexel palette[4];
  make_palette(block, may_have_alpha, palette);
  uint32_t indices;
  std::memcpy(&indices, block + 4, 4);
  for (int i = 0; i < kTexels; ++i)
    std::memcpy(texels[i], palette[(indices >> (2 * i)) & 3], sizeof(BlockTexel));
}

void decode_alpha(const uint8_t* block, BlockTexel* texels) {
  uint64_t word;
  std::memcpy(&word, block, 8);
  const int a = block[0], b = block[1];
  int values[8] = {a, b};
  for (int i = 1; i < 7; ++i) values[i + 1] = a > b ? ((7 - i) * a + i * b) / 7 : ((5 - i) * a + i * b) / 5;
  if (a <= b) {
    values[6] = 0;
    values[7] = 255;
  }
  for (int i = 0; i < kTexels; ++i) texels[i][3] = static_cast<uint16_t>(values[(word >> (16 + 3 * i)) & 7]);
}

}  // namespace

void decode_bc1(const uint8_t* block, bool, BlockTexel* texels) { decode_color(block, true, texels); }

void decode_bc2(const uint8_t* block, bool, BlockTexel* texels) {
  decode_color(block + 8, false, texels);
  uint64_t alpha;
  std::memcpy(&alpha, block, 8);
  for (int i = 0; i < kTexels; ++i) texels[i][3] = static_cast<uint16_t>(((alpha >> (4 * i)) & 15) * 17);
}

void decode_bc3(const uint8_t* block, bool, BlockTexel* texels) {
  decode_color(block + 8, false, texels);
  decode_alpha(block, texels);
}

}  // namespace v3d::tmu
