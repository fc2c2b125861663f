/// @file ASTC, LDR profile, 2D blocks (Khronos Data Format Specification 1.3, chapter "ASTC Compressed
/// Texture Image Formats").
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "gpu/tmu/texel/block_formats.h"

namespace v3d::tmu {
namespace {

/// The 128 bits of a block, or a part of them; bits beyond `size` read as 0.
class BitStream {
 public:
  BitStream(uint64_t low, uint64_t high, int size) : low_(low), high_(high), size_(size) {}
  static BitStream of(const uint8_t* block) {
    uint64_t words[2];
    std::memcpy(words, block, 16);
    return {words[0], words[1], 128};
  }

  /// @param count  0..16
  int bits(int first, int count) const {
    count = std::min(count, size_ - first);
    if (count <= 0) return 0;
    uint64_t word = first < 64 ? low_ >> first : high_ >> (first - 64);
    if (first > 0 && first < 64) word |= high_ << (64 - first);
    return static_cast<int>(word & ((1ull << count) - 1));
  }
  bool bit(int index) const { return bits(index, 1); }

  /// The stream read from its end backwards, as weights are.
  BitStream reversed(int size) const { return {reverse(high_), reverse(low_), size}; }
  /// From a bit onwards. @param first  0..63
  BitStream from(int first, int size) const {
    return {first ? low_ >> first | high_ << (64 - first) : low_, high_ >> first, size};
  }

 private:
  static uint64_t reverse(uint64_t v) {
    uint64_t result = 0;
    for (int i = 0; i < 64; ++i) result |= ((v >> i) & 1) << (63 - i);
    return result;
  }
  uint64_t low_, high_;
  int size_;
};

/// A range of integers 0..max in the integer sequence encoding: a trit or quint and some plain bits.
struct Range {
  uint8_t max, bits, base;  ///< base: 3 trit, 5 quint, 1 neither
};
constexpr Range kRanges[] = {{1, 1, 1},   {2, 0, 3},   {3, 2, 1},  {4, 0, 5},  {5, 1, 3},  {7, 3, 1},
                             {9, 1, 5},   {11, 2, 3},  {15, 4, 1}, {19, 2, 5}, {23, 3, 3}, {31, 5, 1},
                             {39, 3, 5},  {47, 4, 3},  {63, 6, 1}, {79, 4, 5}, {95, 5, 3}, {127, 7, 1},
                             {159, 5, 5}, {191, 6, 3}, {255, 8, 1}};
constexpr int kSmallestColorRange = 4;  // 0..5

int encoded_size(const Range& range, int count) {
  const int extra = range.base == 3 ? (8 * count + 4) / 5 : range.base == 5 ? (7 * count + 2) / 3 : 0;
  return count * range.bits + extra;
}

/// One decoded element: plain bits and the trit or quint above them.
struct Element {
  int low, high;
};

void split_trits(int t, int* trits) {
  int c;
  if (((t >> 2) & 7) == 7) {
    c = (t >> 5) << 2 | (t & 3);
    trits[4] = trits[3] = 2;
  } else {
    c = t & 31;
    if (((t >> 5) & 3) == 3) {
      trits[4] = 2;
      trits[3] = t >> 7;
    } else {
      trits[4] = t >> 7;
      trits[3] = (t >> 5) & 3;
    }
  }
  if ((c & 3) == 3) {
    trits[2] = 2;
    trits[1] = c >> 4;
    trits[0] = (c >> 3 & 1) << 1 | (c >> 2 & ~(c >> 3) & 1);
  } else if (((c >> 2) & 3) == 3) {
    trits[2] = trits[1] = 2;
    trits[0] = c & 3;
  } else {
    trits[2] = c >> 4;
    trits[1] = (c >> 2) & 3;
    trits[0] = (c >> 1 & 1) << 1 | (c & ~(c >> 1) & 1);
  }
}

void split_quints(int q, int* quints) {
  if (((q >> 1) & 3) == 3 && (q >> 5) == 0) {
    const int q0 = q & 1;
    quints[2] = q0 << 2 | (q >> 4 & ~q0 & 1) << 1 | (q >> 3 & ~q0 & 1);
    quints[1] = quints[0] = 4;
    return;
  }
  int c;
  if (((q >> 1) & 3) == 3) {
    quints[2] = 4;
    c = (q >> 3 & 3) << 3 | (~(q >> 5) & 3) << 1 | (q & 1);
  } else {
    quints[2] = q >> 5;
    c = q & 31;
  }
  if ((c & 7) == 5) {
    quints[1] = 4;
    quints[0] = c >> 3;
  } else {
    quints[1] = c >> 3;
    quints[0] = c & 7;
  }
}

/// Reads `count` elements. A group of 5 trits shares 8 bits, one of 3 quints 7, spread between the elements.
void decode_sequence(const BitStream& stream, const Range& range, int count, Element* elements) {
  static constexpr uint8_t kTritBits[5] = {2, 2, 1, 2, 1}, kQuintBits[3] = {3, 2, 2};
  const int group = range.base == 3 ? 5 : range.base == 5 ? 3 : 1;
  const uint8_t* shares = range.base == 3 ? kTritBits : kQuintBits;
  int at = 0;
  for (int start = 0; start < count; start += group) {
    int low[5], high[5] = {}, packed = 0, packed_bits = 0;
    for (int k = 0; k < group; ++k) {
      low[k] = stream.bits(at, range.bits);
      at += range.bits;
      if (range.base == 1) continue;
      packed |= stream.bits(at, shares[k]) << packed_bits;
      at += shares[k];
      packed_bits += shares[k];
    }
    if (range.base == 3) split_trits(packed, high);
    if (range.base == 5) split_quints(packed, high);
    for (int k = 0; k < group && start + k < count; ++k) elements[start + k] = {low[k], high[k]};
  }
}

/// `from` bits repeated to fill `to`.
int replicate(int v, int from, int to) {
  int result = 0;
  for (int shift = to - from; shift > -from; shift -= from) result |= shift >= 0 ? v << shift : v >> -shift;
  return result;
}

/// Bits of `v` put where the pattern names them: 'b' is bit 1, 'c' bit 2 and so on.
int spread(int v, const char* pattern) {
  int result = 0;
  for (const char* p = pattern; *p; ++p) result = result << 1 | (*p == '0' ? 0 : v >> (*p - 'a') & 1);
  return result;
}

/// A colour endpoint value of a range as 0..255.
int unquantize_color(const Range& range, Element e) {
  static constexpr const char* kTritPatterns[7] = {"",          "000000000", "b000b0bb0", "cb000cbcb",
                                                   "dcb000dcb", "edcb000ed", "fedcb000f"};
  static constexpr int kTritScales[7] = {0, 204, 93, 44, 22, 11, 5};
  static constexpr const char* kQuintPatterns[6] = {"",          "000000000", "b0000bb00",
                                                    "cb0000cbc", "dcb0000dc", "edcb0000e"};
  static constexpr int kQuintScales[6] = {0, 113, 54, 26, 13, 6};
  if (range.base == 1) return replicate(e.low, range.bits, 8);
  const bool trit = range.base == 3;
  const int a = e.low & 1 ? 0x1ff : 0;
  const int b = spread(e.low, trit ? kTritPatterns[range.bits] : kQuintPatterns[range.bits]);
  const int t = (e.high * (trit ? kTritScales : kQuintScales)[range.bits] + b) ^ a;
  return (a & 0x80) | t >> 2;
}

/// A weight of a range as 0..64.
int unquantize_weight(const Range& range, Element e) {
  static constexpr int kTrits[3] = {0, 32, 63}, kQuints[5] = {0, 16, 32, 47, 63};
  static constexpr const char* kTritPatterns[4] = {"", "0000000", "b000b0b", "cb000cb"};
  static constexpr int kTritScales[4] = {0, 50, 23, 11};
  static constexpr const char* kQuintPatterns[3] = {"", "0000000", "b0000b0"};
  static constexpr int kQuintScales[3] = {0, 28, 13};
  int w;
  if (range.base == 1) {
    w = replicate(e.low, range.bits, 6);
  } else if (range.bits == 0) {
    w = range.base == 3 ? kTrits[e.high] : kQuints[e.high];
  } else {
    const bool trit = range.base == 3;
    const int a = e.low & 1 ? 0x7f : 0;
    const int b = spread(e.low, trit ? kTritPatterns[range.bits] : kQuintPatterns[range.bits]);
    const int t = (e.high * (trit ? kTritScales : kQuintScales)[range.bits] + b) ^ a;
    w = (a & 0x20) | t >> 2;
  }
  return w > 32 ? w + 1 : w;
}

struct WeightGrid {
  int width, height;
  bool dual_plane;
  int range;  ///< index of kRanges

  int count() const { return width * height * (dual_plane ? 2 : 1); }
};

/// Bits 10:0 of a block. @return false for reserved modes
bool decode_block_mode(int mode, WeightGrid& grid) {
  const auto field = [mode](int first, int count) { return (mode >> first) & ((1 << count) - 1); };
  const int a = field(5, 2), b = field(7, 2);
  bool high_precision = field(9, 1);
  int r = field(4, 1);
  grid.dual_plane = field(10, 1);
  if (field(0, 2) != 0) {
    r |= field(0, 2) << 1;
    switch (field(2, 2)) {
      case 0:
        grid.width = b + 4, grid.height = a + 2;
        break;
      case 1:
        grid.width = b + 8, grid.height = a + 2;
        break;
      case 2:
        grid.width = a + 2, grid.height = b + 8;
        break;
      default:
        if (field(8, 1))
          grid.width = field(7, 1) + 2, grid.height = a + 2;
        else
          grid.width = a + 2, grid.height = field(7, 1) + 6;
    }
  } else {
    r |= field(2, 2) << 1;
    switch (b) {
      case 0:
        grid.width = 12, grid.height = a + 2;
        break;
      case 1:
        grid.width = a + 2, grid.height = 12;
        break;
      case 2:
        grid.width = a + 6, grid.height = field(9, 2) + 6;
        grid.dual_plane = high_precision = false;
        break;
      default:
        if (a >= 2) return false;
        grid.width = a == 0 ? 6 : 10, grid.height = a == 0 ? 10 : 6;
    }
  }
  if (r < 2) return false;
  grid.range = r - 2 + (high_precision ? 6 : 0);
  return true;
}

/// Weights of the grid interpolated at a texel (the specification's infill).
class WeightPlane {
 public:
  WeightPlane(const WeightGrid& grid, const int* weights, int plane, int block_width, int block_height)
      : grid_(grid), weights_(weights), plane_(plane), ds_(scale(block_width)), dt_(scale(block_height)) {}

  int at(int s, int t) const {
    const int gs = (ds_ * s * (grid_.width - 1) + 32) >> 6, gt = (dt_ * t * (grid_.height - 1) + 32) >> 6;
    const int js = gs >> 4, fs = gs & 15, jt = gt >> 4, ft = gt & 15;
    const int w11 = (fs * ft + 8) >> 4, w10 = ft - w11, w01 = fs - w11, w00 = 16 - fs - ft + w11;
    return (weight(js, jt) * w00 + weight(js + 1, jt) * w01 + weight(js, jt + 1) * w10 +
            weight(js + 1, jt + 1) * w11 + 8) >>
           4;
  }

 private:
  static int scale(int size) { return (1024 + size / 2) / (size - 1); }
  /// Beyond the edge the factor is 0.
  int weight(int s, int t) const {
    if (s >= grid_.width || t >= grid_.height) return 0;
    return weights_[(t * grid_.width + s) * (grid_.dual_plane ? 2 : 1) + plane_];
  }
  const WeightGrid& grid_;
  const int* weights_;
  int plane_, ds_, dt_;
};

/// The partition of a texel (the specification's hash-based partition function).
int partition_of(int seed, int x, int y, int partitions, bool small_block) {
  if (small_block) x <<= 1, y <<= 1;
  uint32_t p = static_cast<uint32_t>(seed + (partitions - 1) * 1024);
  p ^= p >> 15;
  p -= p << 17;
  p += p << 7;
  p += p << 4;
  p ^= p >> 5;
  p += p << 16;
  p ^= p >> 7;
  p ^= p >> 3;
  p ^= p << 6;
  p ^= p >> 17;
  uint8_t seeds[8];
  for (int i = 0; i < 8; ++i) {
    const auto nibble = static_cast<uint8_t>((p >> (4 * i)) & 15);
    seeds[i] = static_cast<uint8_t>(nibble * nibble);
  }
  const int odd_seed = seed & 1, by_seed = seed & 2 ? 4 : 5, by_count = partitions == 3 ? 6 : 5;
  const int shifts[2] = {odd_seed ? by_seed : by_count, odd_seed ? by_count : by_seed};
  int values[4];
  for (int i = 0; i < 4; ++i)
    values[i] = static_cast<int>(
        (static_cast<uint32_t>((seeds[2 * i] >> shifts[0]) * x + (seeds[2 * i + 1] >> shifts[1]) * y) +
         (p >> (14 - 4 * i))) &
        63);
  if (partitions < 4) values[3] = 0;
  if (partitions < 3) values[2] = 0;
  return static_cast<int>(std::max_element(values, values + 4) - values);
}

struct Color {
  int c[4];
};
struct Endpoints {
  Color low, high;
};

Color clamped(Color v) {
  for (int& c : v.c) c = std::clamp(c, 0, 255);
  return v;
}
Color blue_contracted(int r, int g, int b, int a) { return {{(r + b) >> 1, (g + b) >> 1, b, a}}; }

/// Moves the top bit of an offset to its base and sign-extends the offset.
void transfer_bit(int& offset, int& base) {
  base = base >> 1 | (offset & 0x80);
  offset = (offset >> 1) & 0x3f;
  if (offset & 0x20) offset -= 0x40;
}

constexpr bool is_hdr_mode(int mode) {
  return mode == 2 || mode == 3 || mode == 7 || mode == 11 || mode == 14 || mode == 15;
}
constexpr int values_of_mode(int mode) { return 2 * ((mode >> 2) + 1); }

/// Colour endpoints of a mode; HDR modes give the error colour. @param v  values_of_mode(mode) values 0..255;
/// may be changed
Endpoints decode_endpoints(int mode, int* v) {
  if (is_hdr_mode(mode)) return {{{255, 0, 255, 255}}, {{255, 0, 255, 255}}};
  switch (mode) {
    case 0:
      return {{{v[0], v[0], v[0], 255}}, {{v[1], v[1], v[1], 255}}};
    case 1: {
      const int low = v[0] >> 2 | (v[1] & 0xc0), high = std::min(low + (v[1] & 0x3f), 255);
      return {{{low, low, low, 255}}, {{high, high, high, 255}}};
    }
    case 4:
      return {{{v[0], v[0], v[0], v[2]}}, {{v[1], v[1], v[1], v[3]}}};
    case 5: {
      transfer_bit(v[1], v[0]);
      transfer_bit(v[3], v[2]);
      const int high = v[0] + v[1];
      return {clamped({{v[0], v[0], v[0], v[2]}}), clamped({{high, high, high, v[2] + v[3]}})};
    }
    case 6:
    case 10: {
      const bool alpha = mode == 10;
      return {{{v[0] * v[3] >> 8, v[1] * v[3] >> 8, v[2] * v[3] >> 8, alpha ? v[4] : 255}},
              {{v[0], v[1], v[2], alpha ? v[5] : 255}}};
    }
    case 8:
    case 12: {
      const int a0 = mode == 12 ? v[6] : 255, a1 = mode == 12 ? v[7] : 255;
      if (v[1] + v[3] + v[5] >= v[0] + v[2] + v[4])
        return {{{v[0], v[2], v[4], a0}}, {{v[1], v[3], v[5], a1}}};
      return {blue_contracted(v[1], v[3], v[5], a1), blue_contracted(v[0], v[2], v[4], a0)};
    }
    default: {  // 9 and 13
      for (int i = 0; i < (mode == 13 ? 8 : 6); i += 2) transfer_bit(v[i + 1], v[i]);
      const int a0 = mode == 13 ? v[6] : 255, a1 = mode == 13 ? v[6] + v[7] : 255;
      if (v[1] + v[3] + v[5] >= 0)
        return {clamped({{v[0], v[2], v[4], a0}}), clamped({{v[0] + v[1], v[2] + v[3], v[4] + v[5], a1}})};
      return {clamped(blue_contracted(v[0] + v[1], v[2] + v[3], v[4] + v[5], a1)),
              clamped(blue_contracted(v[0], v[2], v[4], a0))};
    }
  }
}

/// Everything of a block but its texels.
struct Block {
  WeightGrid grid;
  int weights[128];
  int partitions, seed;
  int second_plane_channel;  ///< -1: one plane
  Endpoints endpoints[4];
};

/// Endpoint modes of all partitions. @param below_weights  first bit above the data; moved below the mode
/// bits that stand there @return first bit of the colour data
int decode_modes(const BitStream& stream, int partitions, int* modes, int& below_weights) {
  if (partitions == 1) {
    modes[0] = stream.bits(13, 4);
    return 17;
  }
  const int field = stream.bits(23, 6);
  if ((field & 3) == 0) {
    std::fill(modes, modes + partitions, field >> 2);
    return 29;
  }
  const int extra_bits = 3 * partitions - 4;
  below_weights -= extra_bits;
  const int encoded = (field | stream.bits(below_weights, extra_bits) << 6) >> 2;
  for (int i = 0; i < partitions; ++i) {
    const int mode_class = (field & 3) - 1 + (encoded >> i & 1);
    modes[i] = mode_class << 2 | (encoded >> (partitions + 2 * i) & 3);
  }
  return 29;
}

/// @return false: illegal
bool decode_block_header(const BitStream& stream, int width, int height, Block& block) {
  WeightGrid& grid = block.grid;
  if (!decode_block_mode(stream.bits(0, 11), grid)) return false;
  if (grid.width > width || grid.height > height || grid.count() > 64) return false;
  const Range& weight_range = kRanges[grid.range];
  const int weight_bits = encoded_size(weight_range, grid.count());
  block.partitions = stream.bits(11, 2) + 1;
  block.seed = stream.bits(13, 10);
  if (weight_bits < 24 || weight_bits > 96 || (grid.dual_plane && block.partitions == 4)) return false;

  int below_weights = 128 - weight_bits, modes[4];
  const int color_start = decode_modes(stream, block.partitions, modes, below_weights);
  block.second_plane_channel = -1;
  if (grid.dual_plane) {
    below_weights -= 2;
    block.second_plane_channel = stream.bits(below_weights, 2);
  }
  int num_values = 0;
  for (int i = 0; i < block.partitions; ++i) {
    num_values += values_of_mode(modes[i]);
  }
  const int color_bits = below_weights - color_start;
  int range = std::size(kRanges) - 1;
  while (range >= kSmallestColorRange && encoded_size(kRanges[range], num_values) > color_bits) --range;
  if (num_values > 18 || range < kSmallestColorRange) return false;

  Element elements[64];
  int values[18];
  decode_sequence(stream.from(color_start, encoded_size(kRanges[range], num_values)), kRanges[range],
                  num_values, elements);
  for (int i = 0; i < num_values; ++i) values[i] = unquantize_color(kRanges[range], elements[i]);
  for (int i = 0, first = 0; i < block.partitions; first += values_of_mode(modes[i++]))
    block.endpoints[i] = decode_endpoints(modes[i], values + first);

  decode_sequence(stream.reversed(weight_bits), weight_range, grid.count(), elements);
  for (int i = 0; i < grid.count(); ++i) block.weights[i] = unquantize_weight(weight_range, elements[i]);
  return true;
}

void fill(BlockTexel* texels, int count, const uint16_t (&color)[4]) {
  for (int i = 0; i < count; ++i) std::memcpy(texels[i], color, sizeof color);
}

/// A block of one colour. @return false: illegal or HDR
bool decode_void_extent(const BitStream& stream, bool srgb, int count, BlockTexel* texels) {
  if (stream.bit(9) || stream.bits(10, 2) != 3) return false;
  const int min_s = stream.bits(12, 13), max_s = stream.bits(25, 13);
  const int min_t = stream.bits(38, 13), max_t = stream.bits(51, 13);
  const bool no_extent = (min_s & max_s & min_t & max_t) == 0x1fff;
  if (!no_extent && (min_s >= max_s || min_t >= max_t)) return false;
  uint16_t color[4];
  for (int c = 0; c < 4; ++c)
    color[c] = static_cast<uint16_t>(stream.bits(64 + 16 * c, 16) >> (srgb ? 8 : 0));
  fill(texels, count, color);
  return true;
}

}  // namespace

void decode_astc_block(const uint8_t* bytes, bool srgb, int width, int height, BlockTexel* texels) {
  const uint16_t one = srgb ? 0xff : 0xffff, error[4] = {one, 0, one, one};
  const BitStream stream = BitStream::of(bytes);
  if (stream.bits(0, 9) == 0x1fc) {
    if (!decode_void_extent(stream, srgb, width * height, texels)) fill(texels, width * height, error);
    return;
  }
  Block block;
  if (!decode_block_header(stream, width, height, block)) return fill(texels, width * height, error);

  const bool small_block = width * height < 31;
  const WeightPlane plane(block.grid, block.weights, 0, width, height);
  const WeightPlane second(block.grid, block.weights, 1, width, height);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const int partition =
          block.partitions == 1 ? 0 : partition_of(block.seed, x, y, block.partitions, small_block);
      const Endpoints& ends = block.endpoints[partition];
      const int weight = plane.at(x, y);
      const int other = block.second_plane_channel >= 0 ? second.at(x, y) : weight;
      for (int c = 0; c < 4; ++c) {
        const int w = c == block.second_plane_channel ? other : weight;
        const auto widen = [srgb](int v) { return v << 8 | (srgb ? 0x80 : v); };
        const int v = (widen(ends.low.c[c]) * (64 - w) + widen(ends.high.c[c]) * w + 32) >> 6;
        texels[y * width + x][c] = static_cast<uint16_t>(srgb ? v >> 8 : v);
      }
    }
}

}  // namespace v3d::tmu
