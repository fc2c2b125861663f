#include "gpu/tmu/texel/format.h"

#include <algorithm>
#include <array>
#include <bit>

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

constexpr Kind kind_of(Number number) {
  return number == Number::kInt ? Kind::kInt : number == Number::kUint ? Kind::kUint : Kind::kFloat;
}

template <Number kNumber, Channel kChannel>
Lanes convert(const Lanes* words) {
  constexpr int kFirst = kChannel.first % 32, kBits = kChannel.bits;
  const Lanes word = words[kChannel.first / 32];
  if constexpr (kBits == 32) return word;
  if constexpr (kNumber == Number::kUnorm) return unorm(field(word, kFirst, kBits), kBits);
  if constexpr (kNumber == Number::kSnorm) return snorm(signed_field(word, kFirst, kBits), kBits);
  if constexpr (kNumber == Number::kInt) return as_uint(signed_field(word, kFirst, kBits));
  if constexpr (kNumber == Number::kUint) return field(word, kFirst, kBits);
  if constexpr (kNumber == Number::kDepth)
    return as_uint(depth_from_unorm(field(word, kFirst, kBits), (1u << kBits) - 1));
  // Small floats have the exponent of a half: widen the mantissa.
  const Lanes half = field(word, kFirst, kBits);
  return as_uint(half_to_float(kNumber == Number::kSmallFloat ? half << (15 - kBits) : half));
}

/// @param c  of R, G, B, A, which are 0, 0, 0, 1 where a texel does not have them
template <Packing kPacking, int c>
Lanes channel_of(const Lanes* words) {
  constexpr Channel kChannel = kPacking.channels[c];
  if constexpr (kChannel.bits == 0)
    return splat(c < 3 ? 0u : kind_of(kPacking.number) == Kind::kFloat ? kOneFloat : 1u);
  else
    return convert<kPacking.number, kChannel>(words);
}

template <Packing kPacking>
void decode_texels(const Lanes* words, Lanes* rgba) {
  rgba[0] = channel_of<kPacking, 0>(words);
  rgba[1] = channel_of<kPacking, 1>(words);
  rgba[2] = channel_of<kPacking, 2>(words);
  rgba[3] = channel_of<kPacking, 3>(words);
}

void decode_shared_exponent(const Lanes* words, Lanes* rgba) {
  const LanesF scale = as_float((field(words[0], 27, 5) + (127 - 15 - 9)) << 23);
  for (int c = 0; c < 3; ++c) rgba[c] = as_uint(to_float(as_int(field(words[0], 9 * c, 9))) * scale);
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

template <Transfer kTransfer, Channel kChannel>
Lanes look_up_channel(const Lanes* words) {
  return look_up(table<kTransfer, kChannel.bits>(),
                 field(words[kChannel.first / 32], kChannel.first % 32, kChannel.bits));
}

/// Colours after a transfer function; alpha has none.
template <Transfer kTransfer, Packing kPacking>
void decode_transfer(const Lanes* words, Lanes* rgba) {
  rgba[0] = look_up_channel<kTransfer, kPacking.channels[0]>(words);
  rgba[1] = look_up_channel<kTransfer, kPacking.channels[1]>(words);
  rgba[2] = look_up_channel<kTransfer, kPacking.channels[2]>(words);
  rgba[3] = channel_of<kPacking, 3>(words);
}

/// The number of unorm bytes in order that a texel consists of, or 0.
constexpr uint8_t count_unorm_bytes(const Packing& packing) {
  uint8_t count = 0;
  while (count < 4 && packing.channels[count] == Channel{static_cast<uint8_t>(8 * count), 8}) ++count;
  for (int c = count; c < 4; ++c)
    if (packing.channels[c].bits != 0) return 0;
  return packing.number == Number::kUnorm && count != 3 ? count : 0;
}

/// Format::transfers. Assumed but for sRGB: they act on the colours of unorm formats that have all three.
/// Mesa uses sRGB with RGBA8 alone.
template <Packing kPacking>
constexpr DecodeTexels kColorTransfers[kTransfers] = {
    nullptr,
    count_unorm_bytes(kPacking) == 4 ? decode_transfer<Transfer::kSrgb, kPacking> : nullptr,
    decode_transfer<Transfer::kPq, kPacking>,
    decode_transfer<Transfer::kHlg, kPacking>,
    decode_transfer<Transfer::kPqBt1886, kPacking>,
    decode_transfer<Transfer::kHlgBt1886, kPacking>};

template <Packing kPacking>
constexpr const DecodeTexels* transfers_of() {
  if constexpr (kPacking.number == Number::kUnorm && kPacking.channels[2].bits > 0)
    return kColorTransfers<kPacking>;
  return nullptr;
}

template <Packing kPacking>
constexpr DecodeTexels decoder_of() {
  if constexpr (kPacking.number == Number::kSharedExponent)
    return decode_shared_exponent;
  else
    return decode_texels<kPacking>;
}

/// A number of a few bits as one of 8 that has them again and again from the top on.
template <int kBits>
Lanes repeat_bits(Lanes v) {
  static_assert(kBits <= 8);
  Lanes repeated = v << (8 - kBits);
  for (int have = kBits; have < 8; have *= 2) repeated |= repeated >> have;
  return repeated;
}

template <Channel kChannel, uint32_t kOtherwise>
Lanes channel_byte(Lanes word) {
  if constexpr (kChannel.bits == 0)
    return splat(kOtherwise);
  else
    return repeat_bits<kChannel.bits>(field(word, kChannel.first, kChannel.bits));
}

/// Format::bytes.
template <Packing kPacking>
Lanes texel_bytes(Lanes word) {
  if constexpr (kPacking.number != Number::kUnorm) {
    return word;
  } else {
    const Lanes red = channel_byte<kPacking.channels[0], 0>(word),
                green = channel_byte<kPacking.channels[1], 0>(word),
                blue = channel_byte<kPacking.channels[2], 0>(word),
                alpha = channel_byte<kPacking.channels[3], 255>(word);
    return red | green << 8 | blue << 16 | alpha << 24;
  }
}

/// The numbers by which chips know a format, one for each family.
struct TypeNumbers {
  TextureType v3d = kNoType, vc4 = kNoType;
};
constexpr TypeNumbers v3d(uint32_t type) { return {.v3d = TextureType{type}}; }
constexpr TypeNumbers vc4(uint32_t type) { return {.vc4 = TextureType{type}}; }
constexpr TypeNumbers operator|(TypeNumbers a, TypeNumbers b) { return {a.v3d, b.vc4}; }

constexpr uint8_t bytes_of(const Packing& packing) {
  uint32_t bits = 0;
  for (const Channel& channel : packing.channels)
    bits = std::max<uint32_t>(bits, channel.first + channel.bits);
  return static_cast<uint8_t>(std::bit_ceil((bits + 7) / 8));
}

template <Packing kPacking, bool kOfVc4>
constexpr TexelBytes bytes_function() {
  if constexpr (kOfVc4)
    return texel_bytes<kPacking>;
  else
    return nullptr;
}

template <Packing kPacking, bool kOfVc4>
constexpr Format plain(const char* name, TypeNumbers types, BorderEncoding border, Filtering filtering,
                       TfuUse tfu) {
  Format format = {};
  format.name = name;
  format.type = types.v3d;
  format.vc4_type = types.vc4;
  format.cpp = bytes_of(kPacking);
  format.block_width = format.block_height = 1;
  format.kind = kind_of(kPacking.number);
  format.filtering = filtering;
  format.tfu = tfu;
  format.border = border;
  format.packing = kPacking;
  format.unorm_bytes = count_unorm_bytes(kPacking);
  format.decode = decoder_of<kPacking>();
  format.bytes = bytes_function<kPacking, kOfVc4>();
  format.transfers = transfers_of<kPacking>();
  return format;
}

constexpr Format block(const char* name, TypeNumbers types, int width, int height, int bytes,
                       BlockScale scale, bool srgb, TfuUse tfu, DecodeBlock decode) {
  Format format = {};
  format.name = name;
  format.type = types.v3d;
  format.vc4_type = types.vc4;
  format.cpp = static_cast<uint8_t>(bytes);
  format.block_width = static_cast<uint8_t>(width);
  format.block_height = static_cast<uint8_t>(height);
  format.kind = Kind::kFloat;
  format.filtering = Filtering::kLinear;
  format.tfu = tfu;
  format.border = BorderEncoding::kF16;
  format.decode_block = decode;
  format.block_scale = scale;
  format.block_srgb = srgb;
  return format;
}

template <Packing kPacking>
constexpr Format vc4_plain(const char* name, TypeNumbers types) {
  Format format = {};
  format.name = name;
  format.type = kNoType;
  format.vc4_type = types.vc4;
  format.cpp = bytes_of(kPacking);
  format.block_width = format.block_height = 1;
  format.kind = kind_of(kPacking.number);
  format.filtering = Filtering::kLinear;
  format.packing = kPacking;
  format.unorm_bytes = count_unorm_bytes(kPacking);
  format.decode = decode_texels<kPacking>;
  format.bytes = texel_bytes<kPacking>;
  return format;
}

constexpr Format kFormats[] = {
#define V3D_TEXELS(name, types, number, border, filtering, tfu, ...)     \
  plain<Packing{Number::number, {__VA_ARGS__}}, (types).vc4 != kNoType>( \
      #name, types, BorderEncoding::border, Filtering::filtering, TfuUse::tfu),
#define V3D_BLOCKS(name, types, width, height, bytes, scale, srgb, tfu, ...) \
  block(#name, types, width, height, bytes, BlockScale::scale, srgb, TfuUse::tfu, __VA_ARGS__),
#define V3D_VC4_TEXELS(name, type, number, ...) \
  vc4_plain<Packing{Number::number, {__VA_ARGS__}}>(#name, type),
#include "gpu/tmu/texel/formats.def"
};

using FormatIndex = std::array<const Format*, kTextureTypes>;
constexpr FormatIndex index_by(TextureType Format::*type) {
  FormatIndex index = {};
  for (const Format& format : kFormats)
    if (format.*type != kNoType) index[static_cast<uint32_t>(format.*type)] = &format;
  return index;
}
constexpr FormatIndex kIndex = index_by(&Format::type), kVc4Index = index_by(&Format::vc4_type);

constexpr struct {
  const char* name;
  TypeNumbers types;
} kUnknown[] = {
#define V3D_UNKNOWN_TEXELS(name, types) {#name, types},
#include "gpu/tmu/texel/formats.def"
};

/// The numbers that chips give to formats.
struct Numbers {
  const FormatIndex& index;
  TextureType TypeNumbers::*unknown;
};
Numbers numbers_of(chip::Generation generation) {
  switch (generation) {
    case chip::Generation::k21:
      return {kVc4Index, &TypeNumbers::vc4};
    case chip::Generation::k42:
    case chip::Generation::k71:
      return {kIndex, &TypeNumbers::v3d};
  }
  chip::no_such_generation();
}

}  // namespace

const Format* find_format(chip::Generation generation, TextureType type) {
  const auto number = static_cast<uint32_t>(type);
  return number < kTextureTypes ? numbers_of(generation).index[number] : nullptr;
}

const char* format_name(chip::Generation generation, TextureType type) {
  if (const Format* format = find_format(generation, type)) return format->name;
  for (const auto& unknown : kUnknown)
    if (unknown.types.*numbers_of(generation).unknown == type) return unknown.name;
  return "unassigned texture type";
}

}  // namespace v3d::tmu
