/// @file ETC2 and EAC (Khronos Data Format Specification 1.3, chapters "ETC2 Compressed Texture Image
/// Formats"). Blocks are big-endian 64-bit words; bits are numbered as in the specification.
#include <algorithm>
#include <cstring>

#include "gpu/tmu/texel/block_formats.h"

namespace v3d::tmu {
namespace {

constexpr int kTexels = 16;

uint64_t big_endian(const uint8_t* bytes) {
  uint64_t word = 0;
  for (int i = 0; i < 8; ++i) word = word << 8 | bytes[i];
  return word;
}

int bits(uint64_t word, int high, int low) {
  return static_cast<int>((word >> low) & ((1ull << (high - low + 1)) - 1));
}
int signed_bits(uint64_t word, int high, int low) {
  const int width = high - low + 1, v = bits(word, high, low);
  return v >= 1 << (width - 1) ? v - (1 << width) : v;
}

int extend4(int v) { return v << 4 | v; }
int extend5(int v) { return v << 3 | v >> 2; }
int extend6(int v) { return v << 2 | v >> 4; }
int extend7(int v) { return v << 1 | v >> 6; }

struct Rgb {
  int r, g, b;
};
Rgb operator+(Rgb c, int d) { return {c.r + d, c.g + d, c.b + d}; }
Rgb extend4(Rgb c) { return {extend4(c.r), extend4(c.g), extend4(c.b)}; }

void write(BlockTexel& texel, Rgb c) {
  const auto byte = [](int v) { return static_cast<uint16_t>(std::clamp(v, 0, 255)); };
  texel[0] = byte(c.r);
  texel[1] = byte(c.g);
  texel[2] = byte(c.b);
  texel[3] = 255;
}
void write_transparent(BlockTexel& texel) { std::fill(texel, texel + 4, uint16_t{0}); }

/// Pixel (x, y) has its index bits at 16 + 4x + y (high) and 4x + y (low).
int pixel_index(uint64_t word, int x, int y) {
  const int i = 4 * x + y;
  return bits(word, 16 + i, 16 + i) << 1 | bits(word, i, i);
}

constexpr int kModifiers[8][2] = {{2, 8},   {5, 17},  {9, 29},   {13, 42},
                                  {18, 60}, {24, 80}, {33, 106}, {47, 183}};
constexpr int kDistances[8] = {3, 6, 11, 16, 23, 32, 41, 64};

/// Individual and differential blocks: two halves with one base colour and one modifier table each.
void decode_halves(uint64_t word, const Rgb (&base)[2], bool opaque, BlockTexel* texels) {
  const int table[2] = {bits(word, 39, 37), bits(word, 36, 34)};
  const bool flip = bits(word, 32, 32);
  for (int y = 0; y < 4; ++y)
    for (int x = 0; x < 4; ++x) {
      const int half = (flip ? y : x) >> 1, index = pixel_index(word, x, y);
      const int* modifiers = kModifiers[table[half]];
      BlockTexel& texel = texels[4 * y + x];
      if (!opaque && index == 2) {
        write_transparent(texel);
        continue;
      }
      const int small = opaque ? modifiers[0] : 0;
      const int offsets[4] = {small, modifiers[1], -small, -modifiers[1]};
      write(texel, base[half] + offsets[index]);
    }
}

void paint(uint64_t word, const Rgb (&colors)[4], bool opaque, BlockTexel* texels) {
  for (int y = 0; y < 4; ++y)
    for (int x = 0; x < 4; ++x) {
      const int index = pixel_index(word, x, y);
      if (!opaque && index == 2)
        write_transparent(texels[4 * y + x]);
      else
        write(texels[4 * y + x], colors[index]);
    }
}

void decode_t(uint64_t word, bool opaque, BlockTexel* texels) {
  const Rgb first =
      extend4({bits(word, 60, 59) << 2 | bits(word, 57, 56), bits(word, 55, 52), bits(word, 51, 48)});
  const Rgb second = extend4({bits(word, 47, 44), bits(word, 43, 40), bits(word, 39, 36)});
  const int d = kDistances[bits(word, 35, 34) << 1 | bits(word, 32, 32)];
  paint(word, {first, second + d, second, second + -d}, opaque, texels);
}

void decode_h(uint64_t word, bool opaque, BlockTexel* texels) {
  const Rgb a = {bits(word, 62, 59), bits(word, 58, 56) << 1 | bits(word, 52, 52),
                 bits(word, 51, 51) << 3 | bits(word, 49, 47)};
  const Rgb b = {bits(word, 46, 43), bits(word, 42, 39), bits(word, 38, 35)};
  const auto order = [](Rgb c) { return c.r << 8 | c.g << 4 | c.b; };
  const int d = kDistances[bits(word, 34, 34) << 2 | bits(word, 32, 32) << 1 | (order(a) >= order(b))];
  const Rgb first = extend4(a), second = extend4(b);
  paint(word, {first + d, first + -d, second + d, second + -d}, opaque, texels);
}

void decode_planar(uint64_t word, BlockTexel* texels) {
  const Rgb origin = {extend6(bits(word, 62, 57)), extend7(bits(word, 56, 56) << 6 | bits(word, 54, 49)),
                      extend6(bits(word, 48, 48) << 5 | bits(word, 44, 43) << 3 | bits(word, 41, 39))};
  const Rgb across = {extend6(bits(word, 38, 34) << 1 | bits(word, 32, 32)), extend7(bits(word, 31, 25)),
                      extend6(bits(word, 24, 19))};
  const Rgb down = {extend6(bits(word, 18, 13)), extend7(bits(word, 12, 6)), extend6(bits(word, 5, 0))};
  for (int y = 0; y < 4; ++y)
    for (int x = 0; x < 4; ++x) {
      const auto value = [&](int o, int h, int v) { return (x * (h - o) + y * (v - o) + 4 * o + 2) >> 2; };
      write(texels[4 * y + x], {value(origin.r, across.r, down.r), value(origin.g, across.g, down.g),
                                value(origin.b, across.b, down.b)});
    }
}

/// @param punchthrough  bit 33 says "opaque" instead of "differential"
void decode_color(uint64_t word, bool punchthrough, BlockTexel* texels) {
  const bool flag = bits(word, 33, 33), opaque = flag || !punchthrough;
  if (!flag && !punchthrough) {
    const Rgb base[2] = {extend4({bits(word, 63, 60), bits(word, 55, 52), bits(word, 47, 44)}),
                         extend4({bits(word, 59, 56), bits(word, 51, 48), bits(word, 43, 40)})};
    return decode_halves(word, base, true, texels);
  }
  const Rgb a = {bits(word, 63, 59), bits(word, 55, 51), bits(word, 47, 43)};
  const Rgb b = {a.r + signed_bits(word, 58, 56), a.g + signed_bits(word, 50, 48),
                 a.b + signed_bits(word, 42, 40)};
  const auto overflows = [](int v) { return v < 0 || v > 31; };
  if (overflows(b.r)) return decode_t(word, opaque, texels);
  if (overflows(b.g)) return decode_h(word, opaque, texels);
  if (overflows(b.b)) return decode_planar(word, texels);
  const Rgb base[2] = {{extend5(a.r), extend5(a.g), extend5(a.b)},
                       {extend5(b.r), extend5(b.g), extend5(b.b)}};
  decode_halves(word, base, opaque, texels);
}

constexpr int8_t kEacModifiers[16][8] = {
    {-3, -6, -9, -15, 2, 5, 8, 14}, {-3, -7, -10, -13, 2, 6, 9, 12}, {-2, -5, -8, -13, 1, 4, 7, 12},
    {-2, -4, -6, -13, 1, 3, 5, 12}, {-3, -6, -8, -12, 2, 5, 7, 11},  {-3, -7, -9, -11, 2, 6, 8, 10},
    {-4, -7, -8, -11, 3, 6, 7, 10}, {-3, -5, -8, -11, 2, 4, 7, 10},  {-2, -6, -8, -10, 1, 5, 7, 9},
    {-2, -5, -8, -10, 1, 4, 7, 9},  {-2, -4, -8, -10, 1, 3, 7, 9},   {-2, -5, -7, -10, 1, 4, 6, 9},
    {-3, -4, -7, -10, 2, 3, 6, 9},  {-1, -2, -3, -10, 0, 1, 2, 9},   {-4, -6, -8, -9, 3, 5, 7, 8},
    {-3, -5, -7, -9, 2, 4, 6, 8}};

/// The modifier of pixel (x, y): 3 bits each, pixel 0 highest.
int eac_modifier(uint64_t word, int x, int y) {
  const int low = 45 - 3 * (4 * x + y);
  return kEacModifiers[bits(word, 51, 48)][bits(word, low + 2, low)];
}

void decode_eac_alpha(const uint8_t* block, BlockTexel* texels) {
  const uint64_t word = big_endian(block);
  const int base = bits(word, 63, 56), multiplier = bits(word, 55, 52);
  for (int y = 0; y < 4; ++y)
    for (int x = 0; x < 4; ++x)
      texels[4 * y + x][3] =
          static_cast<uint16_t>(std::clamp(base + eac_modifier(word, x, y) * multiplier, 0, 255));
}

void decode_eac_11(const uint8_t* block, bool is_signed, int channel, BlockTexel* texels) {
  const uint64_t word = big_endian(block);
  const int scale = bits(word, 55, 52) ? 8 * bits(word, 55, 52) : 1;
  // Signed: -128 means -127, so that both signs reach 1.0.
  const int base = is_signed ? 8 * std::max(signed_bits(word, 63, 56), -127) : 8 * bits(word, 63, 56) + 4;
  const int low = is_signed ? -1023 : 0, high = is_signed ? 1023 : 2047;
  for (int y = 0; y < 4; ++y)
    for (int x = 0; x < 4; ++x)
      texels[4 * y + x][channel] =
          static_cast<uint16_t>(std::clamp(base + eac_modifier(word, x, y) * scale, low, high));
}

void clear(BlockTexel* texels, uint16_t alpha) {
  for (int i = 0; i < kTexels; ++i) {
    texels[i][0] = texels[i][1] = texels[i][2] = 0;
    texels[i][3] = alpha;
  }
}

}  // namespace

void decode_etc2_rgb(const uint8_t* block, bool, BlockTexel* texels) {
  decode_color(big_endian(block), false, texels);
}
void decode_etc2_punchthrough(const uint8_t* block, bool, BlockTexel* texels) {
  decode_color(big_endian(block), true, texels);
}
void decode_etc2_rgba(const uint8_t* block, bool, BlockTexel* texels) {
  decode_color(big_endian(block + 8), false, texels);
  decode_eac_alpha(block, texels);
}

void decode_eac_r11(const uint8_t* block, bool, BlockTexel* texels) {
  clear(texels, 2047);
  decode_eac_11(block, false, 0, texels);
}
void decode_eac_signed_r11(const uint8_t* block, bool, BlockTexel* texels) {
  clear(texels, 1023);
  decode_eac_11(block, true, 0, texels);
}
void decode_eac_rg11(const uint8_t* block, bool, BlockTexel* texels) {
  clear(texels, 2047);
  decode_eac_11(block, false, 0, texels);
  decode_eac_11(block + 8, false, 1, texels);
}
void decode_eac_signed_rg11(const uint8_t* block, bool, BlockTexel* texels) {
  clear(texels, 1023);
  decode_eac_11(block, true, 0, texels);
  decode_eac_11(block + 8, true, 1, texels);
}

}  // namespace v3d::tmu
