#include "gpu/tmu/texel/format.h"

#include <algorithm>
#include <array>

#include "gpu/base/float16.h"
#include "gpu/base/unorm_depth.h"
#include "gpu/base/vector.h"
#include "gpu/tmu/texel/block_formats.h"

namespace v3d::tmu {
namespace {

constexpr uint32_t kOneFloat = 0x3f800000;

Lanes field(Lanes word, int first, int bits) { return (word >> first) & ((1u << bits) - 1); }
LanesI signed_field(Lanes word, int first, int bits) {
  return as_int(word << (32 - first - bits)) >> (32 - bits);
}

Lanes unorm(Lanes v, int bits) {
  const LanesF f = to_float(as_int(v));
  if (bits == 1) return as_uint(f);
  if (bits == 8) return as_uint(unorm8(f));
  return as_uint(f / static_cast<float>((1u << bits) - 1));
}
Lanes snorm(LanesI v, int bits) {
  const LanesF f = to_float(v) / static_cast<float>((1u << (bits - 1)) - 1);
  return as_uint(max(f, splat(-1.0f)));
}

enum class Number { kUnorm, kSnorm, kFloat, kInt, kUint };

template <Number kNumber>
constexpr uint32_t kOne = kNumber == Number::kInt || kNumber == Number::kUint ? 1 : kOneFloat;

template <Number kNumber>
Lanes convert(Lanes word, int first, int bits) {
  if constexpr (kNumber == Number::kUnorm) return unorm(field(word, first, bits), bits);
  if constexpr (kNumber == Number::kSnorm) return snorm(signed_field(word, first, bits), bits);
  if constexpr (kNumber == Number::kInt) return as_uint(signed_field(word, first, bits));
  if constexpr (kNumber == Number::kUint) return field(word, first, bits);
  return as_uint(half_to_float(field(word, first, bits)));
}

/// Arrays of equal channels: 8 or 16 bits wide.
template <Number kNumber, int kBits, int kChannels>
void decode_array(const Lanes* words, Lanes* rgba) {
  constexpr int kPerWord = 32 / kBits;
  for (int c = 0; c < 4; ++c) {
    if (c < kChannels)
      rgba[c] = convert<kNumber>(words[c / kPerWord], c % kPerWord * kBits, kBits);
    else
      rgba[c] = splat(c == 3 ? kOne<kNumber> : 0u);
  }
}

/// 32-bit channels, passed on as they are.
template <uint32_t kOneBits, int kChannels>
void decode_raw(const Lanes* words, Lanes* rgba) {
  for (int c = 0; c < 4; ++c) rgba[c] = c < kChannels ? words[c] : splat(c == 3 ? kOneBits : 0u);
}

/// Channels of different widths in one word; first bit and width of R, G, B, A.
template <Number kNumber, int kR, int kRBits, int kG, int kGBits, int kB, int kBBits, int kA, int kABits>
void decode_packed(const Lanes* words, Lanes* rgba) {
  rgba[0] = convert<kNumber>(words[0], kR, kRBits);
  rgba[1] = convert<kNumber>(words[0], kG, kGBits);
  rgba[2] = convert<kNumber>(words[0], kB, kBBits);
  if constexpr (kABits == 0)
    rgba[3] = splat(kOne<kNumber>);
  else
    rgba[3] = convert<kNumber>(words[0], kA, kABits);
}

void decode_r11g11b10f(const Lanes* words, Lanes* rgba) {
  // Unsigned floats with the exponent of a half: widen the mantissa.
  rgba[0] = as_uint(half_to_float(field(words[0], 0, 11) << 4));
  rgba[1] = as_uint(half_to_float(field(words[0], 11, 11) << 4));
  rgba[2] = as_uint(half_to_float(field(words[0], 22, 10) << 5));
  rgba[3] = splat(kOneFloat);
}

void decode_rgb9e5(const Lanes* words, Lanes* rgba) {
  const LanesF scale = as_float((field(words[0], 27, 5) + (127 - 15 - 9)) << 23);
  for (int c = 0; c < 3; ++c) rgba[c] = as_uint(to_float(as_int(field(words[0], 9 * c, 9))) * scale);
  rgba[3] = splat(kOneFloat);
}

template <int kFirst, int kBits>
void decode_depth(const Lanes* words, Lanes* rgba) {
  rgba[0] = as_uint(depth_from_unorm(field(words[0], kFirst, kBits), (1u << kBits) - 1));
  rgba[1] = rgba[2] = Lanes{};
  rgba[3] = splat(kOneFloat);
}

/// At a fixed address, as the one that is in common use.
const auto g_srgb_table = [] {
  std::array<float, 256> values;
  std::copy_n(transfer_table(Transfer::kSrgb, 8), values.size(), values.begin());
  return values;
}();

template <Transfer kTransfer, int kBits>
const float* table() {
  if constexpr (kTransfer == Transfer::kSrgb && kBits == 8) return g_srgb_table.data();
  static const float* const values = transfer_table(kTransfer, kBits);
  return values;
}

/// Colours after a transfer function; alpha has none. First bit, from word 0 on, and width of R, G, B, A.
template <Transfer kTransfer, int kR, int kRBits, int kG, int kGBits, int kB, int kBBits, int kA, int kABits>
void decode_transfer(const Lanes* words, Lanes* rgba) {
  rgba[0] = look_up(table<kTransfer, kRBits>(), field(words[kR / 32], kR % 32, kRBits));
  rgba[1] = look_up(table<kTransfer, kGBits>(), field(words[kG / 32], kG % 32, kGBits));
  rgba[2] = look_up(table<kTransfer, kBBits>(), field(words[kB / 32], kB % 32, kBBits));
  if constexpr (kABits == 0)
    rgba[3] = splat(kOneFloat);
  else
    rgba[3] = unorm(field(words[kA / 32], kA % 32, kABits), kABits);
}

/// Format::transfers of a format with such fields. kSrgb8: Mesa uses sRGB with RGBA8 alone.
template <bool kSrgb8, int... kFields>
constexpr DecodeTexels kColorTransfers[kTransfers] = {
    nullptr,
    kSrgb8 ? decode_transfer<Transfer::kSrgb, kFields...> : nullptr,
    decode_transfer<Transfer::kPq, kFields...>,
    decode_transfer<Transfer::kHlg, kFields...>,
    decode_transfer<Transfer::kPqBt1886, kFields...>,
    decode_transfer<Transfer::kHlgBt1886, kFields...>};

/// @param transfers  assumed but for sRGB: they act on the colours of unorm formats that have all three
constexpr Format plain(const char* name, int type, int cpp, Kind kind, bool filterable, BorderEncoding border,
                       DecodeTexels decode, const DecodeTexels* transfers = nullptr) {
  Format format = {};
  format.name = name;
  format.type = static_cast<uint8_t>(type);
  format.cpp = static_cast<uint8_t>(cpp);
  format.block_width = format.block_height = 1;
  format.kind = kind;
  format.filterable = filterable;
  format.border = border;
  format.decode = decode;
  format.transfers = transfers;
  return format;
}

constexpr Format depth(const char* name, int type, int cpp, bool fixed_point, DecodeTexels decode) {
  Format format = plain(name, type, cpp, Kind::kFloat, false, BorderEncoding::kF32, decode);
  format.depth = true;
  format.clamps_reference = fixed_point;
  return format;
}

constexpr Format block(const char* name, int type, int cpp, int width, int height, BlockScale scale,
                       bool srgb, DecodeBlock decode) {
  Format format = plain(name, type, cpp, Kind::kFloat, true, BorderEncoding::kF16, nullptr);
  format.block_width = static_cast<uint8_t>(width);
  format.block_height = static_cast<uint8_t>(height);
  format.decode_block = decode;
  format.block_scale = scale;
  format.block_srgb = srgb;
  return format;
}

template <int kWidth, int kHeight>
constexpr Format astc(const char* name, int type) {
  return block(name, type, 16, kWidth, kHeight, BlockScale::kUnorm16, true, decode_astc<kWidth, kHeight>);
}

constexpr Number kUn = Number::kUnorm, kSn = Number::kSnorm, kFl = Number::kFloat, kSi = Number::kInt,
                 kUi = Number::kUint;
constexpr Kind kFloat = Kind::kFloat, kInt = Kind::kInt, kUint = Kind::kUint;
constexpr BorderEncoding kBorderU16 = BorderEncoding::kUnorm16, kBorderS14 = BorderEncoding::kSnorm14,
                         kBorderS15 = BorderEncoding::kSnorm15, kBorderF16 = BorderEncoding::kF16,
                         kBorderF32 = BorderEncoding::kF32, kBorderRaw = BorderEncoding::kRaw;

constexpr Format kFormats[] = {
    plain("R8", 0, 1, kFloat, true, kBorderU16, decode_array<kUn, 8, 1>),
    plain("R8_SNORM", 1, 1, kFloat, true, kBorderS14, decode_array<kSn, 8, 1>),
    plain("RG8", 2, 2, kFloat, true, kBorderU16, decode_array<kUn, 8, 2>),
    plain("RG8_SNORM", 3, 2, kFloat, true, kBorderS14, decode_array<kSn, 8, 2>),
    plain("RGBA8", 4, 4, kFloat, true, kBorderU16, decode_array<kUn, 8, 4>,
          kColorTransfers<true, 0, 8, 8, 8, 16, 8, 24, 8>),
    plain("RGBA8_SNORM", 5, 4, kFloat, true, kBorderS14, decode_array<kSn, 8, 4>),
    plain("RGB565", 6, 2, kFloat, true, kBorderF16, decode_packed<kUn, 11, 5, 5, 6, 0, 5, 0, 0>,
          kColorTransfers<false, 11, 5, 5, 6, 0, 5, 0, 0>),
    plain("RGBA4", 7, 2, kFloat, true, kBorderF16, decode_packed<kUn, 12, 4, 8, 4, 4, 4, 0, 4>,
          kColorTransfers<false, 12, 4, 8, 4, 4, 4, 0, 4>),
    plain("RGB5_A1", 8, 2, kFloat, true, kBorderF16, decode_packed<kUn, 11, 5, 6, 5, 1, 5, 0, 1>,
          kColorTransfers<false, 11, 5, 6, 5, 1, 5, 0, 1>),
    plain("RGB10_A2", 9, 4, kFloat, true, kBorderF16, decode_packed<kUn, 0, 10, 10, 10, 20, 10, 30, 2>,
          kColorTransfers<false, 0, 10, 10, 10, 20, 10, 30, 2>),
    plain("R16", 10, 2, kFloat, true, kBorderU16, decode_array<kUn, 16, 1>),
    plain("R16_SNORM", 11, 2, kFloat, true, kBorderS15, decode_array<kSn, 16, 1>),
    plain("RG16", 12, 4, kFloat, true, kBorderU16, decode_array<kUn, 16, 2>),
    plain("RG16_SNORM", 13, 4, kFloat, true, kBorderS15, decode_array<kSn, 16, 2>),
    plain("RGBA16", 14, 8, kFloat, true, kBorderU16, decode_array<kUn, 16, 4>,
          kColorTransfers<false, 0, 16, 16, 16, 32, 16, 48, 16>),
    plain("RGBA16_SNORM", 15, 8, kFloat, true, kBorderS15, decode_array<kSn, 16, 4>),
    plain("R16F", 16, 2, kFloat, true, kBorderF16, decode_array<kFl, 16, 1>),
    plain("RG16F", 17, 4, kFloat, true, kBorderF16, decode_array<kFl, 16, 2>),
    plain("RGBA16F", 18, 8, kFloat, true, kBorderF16, decode_array<kFl, 16, 4>),
    plain("R11F_G11F_B10F", 19, 4, kFloat, true, kBorderF32, decode_r11g11b10f),
    plain("RGB9_E5", 20, 4, kFloat, true, kBorderF32, decode_rgb9e5),
    depth("DEPTH_COMP16", 21, 2, true, decode_depth<0, 16>),
    depth("DEPTH_COMP32F", 23, 4, false, decode_raw<kOneFloat, 1>),
    depth("DEPTH24_X8", 24, 4, true, decode_depth<8, 24>),
    plain("S8", 27, 1, kUint, false, kBorderRaw, decode_array<kUi, 8, 1>),
    plain("S16", 28, 2, kUint, false, kBorderRaw, decode_array<kUi, 16, 1>),
    plain("R32F", 29, 4, kFloat, false, kBorderF32, decode_raw<kOneFloat, 1>),
    plain("RG32F", 30, 8, kFloat, false, kBorderF32, decode_raw<kOneFloat, 2>),
    plain("RGBA32F", 31, 16, kFloat, false, kBorderF32, decode_raw<kOneFloat, 4>),
    block("RGB8_ETC2", 32, 8, 4, 4, BlockScale::kUnorm8, true, decode_etc2_rgb),
    block("RGB8_PUNCHTHROUGH_ALPHA1", 33, 8, 4, 4, BlockScale::kUnorm8, true, decode_etc2_punchthrough),
    block("R11_EAC", 34, 8, 4, 4, BlockScale::kUnorm11, false, decode_eac_r11),
    block("SIGNED_R11_EAC", 35, 8, 4, 4, BlockScale::kSnorm11, false, decode_eac_signed_r11),
    block("RG11_EAC", 36, 16, 4, 4, BlockScale::kUnorm11, false, decode_eac_rg11),
    block("SIGNED_RG11_EAC", 37, 16, 4, 4, BlockScale::kSnorm11, false, decode_eac_signed_rg11),
    block("RGBA8_ETC2_EAC", 38, 16, 4, 4, BlockScale::kUnorm8, true, decode_etc2_rgba),
    block("BC1", 48, 8, 4, 4, BlockScale::kUnorm8, true, decode_bc1),
    block("BC2", 49, 16, 4, 4, BlockScale::kUnorm8, true, decode_bc2),
    block("BC3", 50, 16, 4, 4, BlockScale::kUnorm8, true, decode_bc3),
    astc<4, 4>("ASTC_4X4", 64),
    astc<5, 4>("ASTC_5X4", 65),
    astc<5, 5>("ASTC_5X5", 66),
    astc<6, 5>("ASTC_6X5", 67),
    astc<6, 6>("ASTC_6X6", 68),
    astc<8, 5>("ASTC_8X5", 69),
    astc<8, 6>("ASTC_8X6", 70),
    astc<8, 8>("ASTC_8X8", 71),
    astc<10, 5>("ASTC_10X5", 72),
    astc<10, 6>("ASTC_10X6", 73),
    astc<10, 8>("ASTC_10X8", 74),
    astc<10, 10>("ASTC_10X10", 75),
    astc<12, 10>("ASTC_12X10", 76),
    astc<12, 12>("ASTC_12X12", 77),
    plain("R8I", 96, 1, kInt, false, kBorderRaw, decode_array<kSi, 8, 1>),
    plain("R8UI", 97, 1, kUint, false, kBorderRaw, decode_array<kUi, 8, 1>),
    plain("RG8I", 98, 2, kInt, false, kBorderRaw, decode_array<kSi, 8, 2>),
    plain("RG8UI", 99, 2, kUint, false, kBorderRaw, decode_array<kUi, 8, 2>),
    plain("RGBA8I", 100, 4, kInt, false, kBorderRaw, decode_array<kSi, 8, 4>),
    plain("RGBA8UI", 101, 4, kUint, false, kBorderRaw, decode_array<kUi, 8, 4>),
    plain("R16I", 102, 2, kInt, false, kBorderRaw, decode_array<kSi, 16, 1>),
    plain("R16UI", 103, 2, kUint, false, kBorderRaw, decode_array<kUi, 16, 1>),
    plain("RG16I", 104, 4, kInt, false, kBorderRaw, decode_array<kSi, 16, 2>),
    plain("RG16UI", 105, 4, kUint, false, kBorderRaw, decode_array<kUi, 16, 2>),
    plain("RGBA16I", 106, 8, kInt, false, kBorderRaw, decode_array<kSi, 16, 4>),
    plain("RGBA16UI", 107, 8, kUint, false, kBorderRaw, decode_array<kUi, 16, 4>),
    plain("R32I", 108, 4, kInt, false, kBorderRaw, decode_raw<1, 1>),
    plain("R32UI", 109, 4, kUint, false, kBorderRaw, decode_raw<1, 1>),
    plain("RG32I", 110, 8, kInt, false, kBorderRaw, decode_raw<1, 2>),
    plain("RG32UI", 111, 8, kUint, false, kBorderRaw, decode_raw<1, 2>),
    plain("RGBA32I", 112, 16, kInt, false, kBorderRaw, decode_raw<1, 4>),
    plain("RGBA32UI", 113, 16, kUint, false, kBorderRaw, decode_raw<1, 4>),
    plain("RGB10_A2UI", 114, 4, kUint, false, kBorderRaw, decode_packed<kUi, 0, 10, 10, 10, 20, 10, 30, 2>),
    plain("A1_RGB5", 115, 2, kFloat, true, kBorderF16, decode_packed<kUn, 0, 5, 5, 5, 10, 5, 15, 1>,
          kColorTransfers<false, 0, 5, 5, 5, 10, 5, 15, 1>),
};

constexpr auto kIndex = [] {
  std::array<const Format*, 128> index = {};
  for (const Format& format : kFormats) index[format.type] = &format;
  return index;
}();

}  // namespace

const Format* find_format(uint32_t type) { return type < kIndex.size() ? kIndex[type] : nullptr; }

const char* format_name(uint32_t type) {
  if (const Format* format = find_format(type)) return format->name;
  switch (type) {
    case 22:
      return "DEPTH_COMP24";
    case 25:
      return "R4";
    case 26:
      return "R1";
    case 39:
      return "YCBCR_LUMA";
    case 40:
      return "YCBCR_420_CHROMA";
    default:
      return "unassigned texture type";
  }
}

}  // namespace v3d::tmu
