#include "gpu/tlb/color_codec.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "gpu/base/arithmetic.h"
#include "gpu/base/float16.h"
#include "gpu/base/vector.h"
#include "gpu/tlb/color_write.h"

namespace v3d::tlb {
namespace {

constexpr Field kNo{};

/// n channels of `bits` bits, R lowest.
constexpr ImageFormat plain(const char* name, Numeric numeric, int n, uint8_t bits) {
  ImageFormat format{name, numeric, static_cast<uint8_t>(n * bits / 8), {}};
  for (int c = 0; c < n; ++c) format.fields[c] = {bits, static_cast<uint8_t>(c * bits)};
  return format;
}

constexpr ImageFormat kFormats[64] = {
    /* 0 */ plain("srgb8_alpha8", Numeric::kSrgb, 4, 8),
    /* 1 */ {"srgb"},
    /* 2 */ {"rgb10_a2ui", Numeric::kUint, 4, {{10, 0}, {10, 10}, {10, 20}, {2, 30}}},
    /* 3 */ {"rgb10_a2", Numeric::kUnorm, 4, {{10, 0}, {10, 10}, {10, 20}, {2, 30}}},
    /* 4 */ {"abgr1555", Numeric::kUnorm, 2, {{5, 11}, {5, 6}, {5, 1}, {1, 0}}},
    /* 5 */ {"alpha-masked abgr1555"},
    /* 6 */ {"abgr4444", Numeric::kUnorm, 2, {{4, 12}, {4, 8}, {4, 4}, {4, 0}}},
    /* 7 */ {"bgr565", Numeric::kUnorm, 2, {{5, 11}, {6, 5}, {5, 0}, kNo}},
    /* 8 */ {"r11f_g11f_b10f", Numeric::kSmallFloat, 4, {{11, 0}, {11, 11}, {10, 22}, kNo}},
    /* 9 */ plain("rgba32f", Numeric::kFloat, 4, 32),
    /* 10 */ plain("rg32f", Numeric::kFloat, 2, 32),
    /* 11 */ plain("r32f", Numeric::kFloat, 1, 32),
    /* 12 */ plain("rgba32i", Numeric::kSint, 4, 32),
    /* 13 */ plain("rg32i", Numeric::kSint, 2, 32),
    /* 14 */ plain("r32i", Numeric::kSint, 1, 32),
    /* 15 */ plain("rgba32ui", Numeric::kUint, 4, 32),
    /* 16 */ plain("rg32ui", Numeric::kUint, 2, 32),
    /* 17 */ plain("r32ui", Numeric::kUint, 1, 32),
    /* 18 */ plain("rgba16f", Numeric::kHalf, 4, 16),
    /* 19 */ plain("rg16f", Numeric::kHalf, 2, 16),
    /* 20 */ plain("r16f", Numeric::kHalf, 1, 16),
    /* 21 */ plain("rgba16i", Numeric::kSint, 4, 16),
    /* 22 */ plain("rg16i", Numeric::kSint, 2, 16),
    /* 23 */ plain("r16i", Numeric::kSint, 1, 16),
    /* 24 */ plain("rgba16ui", Numeric::kUint, 4, 16),
    /* 25 */ plain("rg16ui", Numeric::kUint, 2, 16),
    /* 26 */ plain("r16ui", Numeric::kUint, 1, 16),
    /* 27 */ plain("rgba8", Numeric::kUnorm, 4, 8),
    /* 28 */ {"rgb8"},
    /* 29 */ plain("rg8", Numeric::kUnorm, 2, 8),
    /* 30 */ plain("r8", Numeric::kUnorm, 1, 8),
    /* 31 */ plain("rgba8i", Numeric::kSint, 4, 8),
    /* 32 */ plain("rg8i", Numeric::kSint, 2, 8),
    /* 33 */ plain("r8i", Numeric::kSint, 1, 8),
    /* 34 */ plain("rgba8ui", Numeric::kUint, 4, 8),
    /* 35 */ plain("rg8ui", Numeric::kUint, 2, 8),
    /* 36 */ plain("r8ui", Numeric::kUint, 1, 8),
    /* 37 */ {"reserved"},
    /* 38 */ {"reserved"},
    /* 39 */ {"bstc8"},
    /* 40 */ {"d32f", Numeric::kDepth32F, 4, {}},
    /* 41 */ {"d24"},
    /* 42 */ {"d16", Numeric::kDepth16, 2, {}},
    /* 43 */ {"d24s8", Numeric::kDepth24Stencil, 4, {}},
    /* 44 */ {"s8", Numeric::kStencil, 1, {}},
    /* 45 */ {"rgba5551", Numeric::kUnorm, 2, {{5, 0}, {5, 5}, {5, 10}, {1, 15}}},
    /* 46 */ {"bstc8_srgb"},
    /* 47 */ {"bstc10"},
    /* 48 */ {"bstc10_srgb"},
    /* 49 */ {"bstc10_pq"},
    /* 50 */ {"rgba10x6", Numeric::kUnorm, 8, {{10, 6}, {10, 22}, {10, 38}, {10, 54}}},
    /* 51 */ {"reserved"},
    /* 52 */ {"reserved"},
    /* 53 */ {"reserved"},
    /* 54 */ {"reserved"},
    /* 55 */ {"bstc10_hlg"},
    /* 56 */ {"rgba10x6_hlg", Numeric::kHlg, 8, {{10, 6}, {10, 22}, {10, 38}, {10, 54}}},
    /* 57 */ {"rgb10_a2_hlg", Numeric::kHlg, 4, {{10, 0}, {10, 10}, {10, 20}, {2, 30}}},
    /* 58 */ {"bstc10_pq_bt1886"},
    /* 59 */ {"rgba10x6_pq_bt1886"},
    /* 60 */ {"rgb10_a2_pq_bt1886"},
    /* 61 */ {"bstc10_hlg_bt1886"},
    /* 62 */ {"rgba10x6_hlg_bt1886"},
    /* 63 */ {"rgb10_a2_hlg_bt1886"},
};

/// Bits of the float16 that each sRGB byte decodes to, and the byte that each float16 in [0, 1] encodes to.
struct SrgbTables {
  static constexpr uint32_t kOne = 0x3c00;
  uint16_t decode[256 + 1];  // a gather reads four bytes
  uint8_t encode[kOne + 1 + 3];
  SrgbTables() : decode{}, encode{} {
    for (int i = 0; i < 256; ++i) {
      const double v = i / 255.0;
      const double linear = v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
      decode[i] = float_to_half(static_cast<float>(linear));
    }
    for (uint32_t h = 0; h <= kOne; ++h) {
      const double linear = half_to_float(static_cast<uint16_t>(h));
      const double v = linear <= 0.0031308 ? linear * 12.92 : 1.055 * std::pow(linear, 1 / 2.4) - 0.055;
      encode[h] = static_cast<uint8_t>(std::lround(v * 255));
    }
  }
};
const SrgbTables& srgb() {
  static const SrgbTables tables;
  return tables;
}

/// The same for the codes of hybrid log-gamma (ITU-R BT.2100 table 5, with the light of ARIB STD-B67: 0..12,
/// as Mesa v3d_packet.xml gives the range of "16f_clamp_hlg").
struct HlgTables {
  static constexpr uint32_t kCodes = 1024, kTwelve = 0x4a00;
  uint16_t decode[kCodes + 1];  // a gather reads four bytes
  uint16_t encode[kTwelve + 1 + 1];
  HlgTables() : decode{}, encode{} {
    constexpr double kA = 0.17883277, kB = 1 - 4 * kA, kLast = kCodes - 1;
    const double c = 0.5 - kA * std::log(4 * kA);
    for (uint32_t i = 0; i < kCodes; ++i) {
      const double v = i / kLast;
      const double light = v <= 0.5 ? 4 * v * v : std::exp((v - c) / kA) + kB;
      decode[i] = float_to_half(static_cast<float>(light));
    }
    for (uint32_t h = 0; h <= kTwelve; ++h) {
      const double light = half_to_float(static_cast<uint16_t>(h));
      const double v = light <= 1 ? std::sqrt(light) / 2 : kA * std::log(light - kB) + c;
      encode[h] = static_cast<uint16_t>(std::lround(v * kLast));
    }
  }
};
const HlgTables& hlg() {
  static const HlgTables tables;
  return tables;
}

/// The table's entries at the byte offsets: the bits above are unspecified.
Lanes gather(const void* table, Lanes offsets) {
#ifdef __AVX512F__
  typedef int Native __attribute__((vector_size(64)));
  return reinterpret_cast<Lanes>(__builtin_ia32_gathersiv16si(
      Native{}, table, reinterpret_cast<Native>(offsets), static_cast<LaneMask>(kAllLanes), 1));
#else
  Lanes result;
  for (int i = 0; i < kLanes; ++i) {
    uint32_t word;
    std::memcpy(&word, static_cast<const uint8_t*>(table) + offsets[i], sizeof word);
    result[i] = word;
  }
  return result;
#endif
}

Lanes srgb_to_half(Lanes byte) { return gather(srgb().decode, byte * 2) & 0xffffu; }

/// Bits of a float16 limited to 0..max; NaN gives 0.
Lanes limit_half(Lanes half, uint32_t max) {
  half = (half & 0x8000u) != 0u || half > 0x7c00u ? Lanes{} : half;
  return half < max ? half : splat(max);
}

Lanes half_to_srgb(Lanes half) { return gather(srgb().encode, limit_half(half, SrgbTables::kOne)) & 0xffu; }

Lanes hlg_to_half(Lanes code) { return gather(hlg().decode, code * 2) & 0xffffu; }
Lanes half_to_hlg(Lanes half) {
  return gather(hlg().encode, limit_half(half, HlgTables::kTwelve) * 2) & 0xffffu;
}

/// 10 and 11 bit floats are halves without sign and low mantissa bits.
Lanes half_to_small_float(Lanes half, uint32_t bits) {
  const uint32_t dropped = 15 - bits;
  const uint32_t infinity = 0x7c00u >> dropped;
  const Lanes magnitude = half & 0x7fffu;
  Lanes rounded = (magnitude + (1u << (dropped - 1)) - 1 + ((magnitude >> dropped) & 1u)) >> dropped;
  rounded = rounded < infinity ? rounded : splat(infinity - 1);  // finite values stay finite
  rounded = (half & 0x8000u) != 0u ? Lanes{} : rounded;
  const Lanes truncated = magnitude >> dropped;
  const Lanes nan = truncated == infinity ? truncated + 1 : truncated;
  rounded = half == 0x7c00u ? splat(infinity) : rounded;
  return magnitude > 0x7c00u ? nan : rounded;
}

Lanes extract(const Field& field, bool is_signed, const Lanes* texel) {
  const Lanes top = texel[field.shift / 32] << (32u - field.bits - field.shift % 32);
  const uint32_t down = 32u - field.bits;
  return is_signed ? as_uint(as_int(top) >> static_cast<int>(down)) : top >> down;
}

constexpr uint32_t max_of(uint32_t bits) { return bits >= 32 ? ~0u : (1u << bits) - 1; }

/// 1..8 bits to 8 by repeating them.
Lanes replicate_to_8(Lanes v, uint32_t bits) {
  Lanes wide = v << (8 - bits);
  for (uint32_t have = bits; have < 8; have *= 2) wide |= wide >> have;
  return wide;
}

LanesF from_unorm(Lanes v, uint32_t bits) {
  return __builtin_convertvector(as_int(v), LanesF) / static_cast<float>(max_of(bits));
}

/// Up to 16 bits, rounded to nearest, of 0..1 or what is rounded to them.
Lanes round_to_unorm(LanesF v, uint32_t bits) {
  return as_uint(v * static_cast<float>(max_of(bits)) + 12582912.0f) & max_of(bits);
}
/// The same, clamped; NaN gives 0.
Lanes to_unorm(LanesF v, uint32_t bits) {
  v = min(max(v, LanesF{}), splat(1.0f));
  return round_to_unorm(v, bits);
}

/// Dithering adds these to the value before the fraction is dropped, so that what a field can hold stays as
/// it is: a 4x4 ordered matrix (assumed, as is that it acts on unorm formats alone). Lanes of the upper and
/// of the lower 8x2 block of a 4x4 square.
constexpr LanesF kDither[2] = {
    {0.5f / 16, 8.5f / 16, 12.5f / 16, 4.5f / 16, 2.5f / 16, 10.5f / 16, 14.5f / 16, 6.5f / 16,  //
     0.5f / 16, 8.5f / 16, 12.5f / 16, 4.5f / 16, 2.5f / 16, 10.5f / 16, 14.5f / 16, 6.5f / 16},
    {3.5f / 16, 11.5f / 16, 15.5f / 16, 7.5f / 16, 1.5f / 16, 9.5f / 16, 13.5f / 16, 5.5f / 16,  //
     3.5f / 16, 11.5f / 16, 15.5f / 16, 7.5f / 16, 1.5f / 16, 9.5f / 16, 13.5f / 16, 5.5f / 16},
};
Lanes to_dithered_unorm(LanesF v, uint32_t bits, uint32_t strip) {
  v = min(max(v, LanesF{}), splat(1.0f));
  return __builtin_convertvector(v * static_cast<float>(max_of(bits)) + kDither[strip], Lanes);
}

Lanes swap_bytes_0_and_2(Lanes v) { return (v & 0xff00ff00u) | ((v >> 16) & 0xffu) | ((v & 0xffu) << 16); }

bool at_most_8_bits(const ImageFormat& format) {
  return std::all_of(std::begin(format.fields), std::end(format.fields),
                     [](const Field& field) { return field.bits <= 8; });
}

}  // namespace

const ImageFormat& image_format(uint8_t number) {
  static constexpr ImageFormat kUnknown{"reserved or compressed"};
  const ImageFormat& format = kFormats[number & 63];
  return number < 64 && format.name ? format : kUnknown;
}

/// One channel of sixteen texels, and all of them.
template <ColorType kType, ColorCodec::Domain kDomain, Numeric kNumeric>
struct ColorCodec::Coder {
  static constexpr bool kIsHalf = kDomain == Domain::kHalf;
  /// Between the channels of the target and the domain.
  static constexpr bool kUnorm8AsFloat = kDomain == Domain::kFloat && kType == ColorType::k8;
  static constexpr uint32_t kOne = kDomain == Domain::kBits     ? one_of(kType)
                                   : kDomain == Domain::kUnorm8 ? 0xff
                                   : kIsHalf                    ? 0x3c00
                                                                : 0x3f800000;

  static Lanes decode(const ColorCodec& codec, int channel, const Lanes* texel) {
    const Field& field = codec.format_.fields[channel];
    if (field.bits == 0) return splat(channel == 3 ? kOne : 0u);
    const Lanes raw = extract(field, codec.format_.numeric == Numeric::kSint, texel);
    if constexpr (kDomain == Domain::kBits) return raw;
    if constexpr (kDomain == Domain::kUnorm8) return replicate_to_8(raw, field.bits);
    const auto from_half = [](Lanes half) { return kIsHalf ? half : as_uint(half_to_float(half)); };
    const auto from_float = [](LanesF v) { return kIsHalf ? float_to_half(v) : as_uint(v); };
    if (kNumeric == Numeric::kSrgb && channel < 3) return from_half(srgb_to_half(raw));
    if (kNumeric == Numeric::kHlg && channel < 3) return from_half(hlg_to_half(raw));
    switch (kNumeric) {
      case Numeric::kFloat:
        return from_float(as_float(raw));
      case Numeric::kSmallFloat:
        return from_half(raw << (15u - field.bits));
      case Numeric::kHalf:
        return from_half(raw);
      default:
        return from_float(from_unorm(raw, field.bits));
    }
  }

  /// @return  the field's value at bit 0
  static Lanes encode(const ColorCodec& codec, int channel, Lanes value, uint32_t strip) {
    const Field& field = codec.format_.fields[channel];
    if constexpr (kDomain == Domain::kBits) return value & max_of(field.bits);
    const auto unorm = [&](LanesF v) {
      const bool dithered = ((codec.dither_ >> (channel == 3)) & 1) != 0;
      if (dithered) [[unlikely]]
        return to_dithered_unorm(v, field.bits, strip);
      return kDomain == Domain::kUnorm8 ? round_to_unorm(v, field.bits) : to_unorm(v, field.bits);
    };
    if constexpr (kDomain == Domain::kUnorm8) {
      if (codec.cuts_) return value >> (8u - field.bits);
      return field.bits == 8 ? value : unorm(from_unorm8(value));
    }
    const auto as_half = [&] { return kIsHalf ? value : float_to_half(as_float(value)); };
    const auto as_number = [&] { return kIsHalf ? half_to_float(value) : as_float(value); };
    if (kNumeric == Numeric::kSrgb && channel < 3) return half_to_srgb(as_half());
    if (kNumeric == Numeric::kHlg && channel < 3) return half_to_hlg(as_half());
    switch (kNumeric) {
      case Numeric::kFloat:
        return as_uint(as_number());
      case Numeric::kSmallFloat:
        return half_to_small_float(as_half(), field.bits);
      case Numeric::kHalf:
        return as_half();
      default:
        return unorm(as_number());
    }
  }

  static void load(const ColorCodec& codec, std::span<const ColorWords> texels, ColorWords* colors) {
    for (size_t i = 0; i < texels.size(); ++i) {
      Lanes channels[4];
      for (int c = 0; c < 4; ++c) channels[c] = decode(codec, c, texels[i].data());
      if (codec.reverse_) std::reverse(channels, channels + 4);
      if (codec.swap_) std::swap(channels[0], channels[2]);
      if (codec.force_alpha_1_) channels[3] = splat(kOne);
      if constexpr (kUnorm8AsFloat)
        for (Lanes& channel : channels) channel = to_unorm8(as_float(channel));
      pack_channels(kType, channels, colors[i].data());
    }
  }

  static void store(const ColorCodec& codec, std::span<const ColorWords> colors, uint32_t strip,
                    ColorWords* texels) {
    codec.format_.bytes <= 4 ? store_texels<false>(codec, colors, strip, texels)
                             : store_texels<true>(codec, colors, strip, texels);
  }
  /// @param kWide  of several words
  template <bool kWide>
  static void store_texels(const ColorCodec& codec, std::span<const ColorWords> colors, uint32_t strip,
                           ColorWords* texels) {
    for (size_t i = 0; i < colors.size(); ++i) {
      Lanes channels[4];
      unpack_channels(kType, codec.words_, colors[i].data(), channels);
      if constexpr (kUnorm8AsFloat)
        for (Lanes& channel : channels) channel = as_uint(from_unorm8(channel));
      if (codec.swap_) std::swap(channels[0], channels[2]);
      if (codec.reverse_) std::reverse(channels, channels + 4);
      ColorWords texel{};
      for (int c = 0; c < 4; ++c) {
        const Field& field = codec.format_.fields[c];
        if (field.bits != 0)
          texel[kWide ? field.shift / 32 : 0] |= encode(codec, c, channels[c], strip) << (field.shift % 32u);
      }
      for (size_t w = 0; w < (kWide ? kMaxWords : 1); ++w) texels[i][w] = texel[w];
    }
  }

  static constexpr Functions kFunctions = {load, store};
};

template <ColorType kType>
ColorCodec::Functions ColorCodec::functions(Domain domain, Numeric numeric) {
  if constexpr (!info(kType).is_integer) {
    constexpr Domain kDomain = kType == ColorType::k16F ? Domain::kHalf : Domain::kFloat;
    if (domain == Domain::kUnorm8) return Coder<kType, Domain::kUnorm8, Numeric::kUnorm>::kFunctions;
    if (domain != Domain::kBits) switch (numeric) {
        case Numeric::kSrgb:
          return Coder<kType, kDomain, Numeric::kSrgb>::kFunctions;
        case Numeric::kHlg:
          return Coder<kType, kDomain, Numeric::kHlg>::kFunctions;
        case Numeric::kHalf:
          return Coder<kType, kDomain, Numeric::kHalf>::kFunctions;
        case Numeric::kSmallFloat:
          return Coder<kType, kDomain, Numeric::kSmallFloat>::kFunctions;
        case Numeric::kFloat:
          return Coder<kType, kDomain, Numeric::kFloat>::kFunctions;
        default:
          return Coder<kType, kDomain, Numeric::kUnorm>::kFunctions;
      }
  }
  return Coder<kType, Domain::kBits, Numeric::kUint>::kFunctions;
}

ColorCodec::Functions ColorCodec::functions(ColorType type, Domain domain, Numeric numeric) {
  using Choose = Functions (*)(Domain, Numeric);
  static constexpr Choose kOfType[] = {
      functions<ColorType::k8I>,  functions<ColorType::k8Ui>,  functions<ColorType::k8>,
      functions<ColorType::k16I>, functions<ColorType::k16Ui>, functions<ColorType::k16F>,
      functions<ColorType::k32I>, functions<ColorType::k32Ui>, functions<ColorType::k32F>};
  return kOfType[static_cast<int>(type)](domain, numeric);
}

/// rgba8 of every kind with R/B swap alone.
const ColorCodec::Functions ColorCodec::kSwappedBytes = {
    [](const ColorCodec&, std::span<const ColorWords> texels, ColorWords* colors) {
      for (size_t i = 0; i < texels.size(); ++i) colors[i][0] = swap_bytes_0_and_2(texels[i][0]);
    },
    [](const ColorCodec&, std::span<const ColorWords> colors, uint32_t, ColorWords* texels) {
      for (size_t i = 0; i < colors.size(); ++i) texels[i][0] = swap_bytes_0_and_2(colors[i][0]);
    }};

ColorCodec::ColorCodec(const ImageFormat& format, const RenderTarget& target, const LoadStore& packet)
    : format_(format),
      words_(color_words(target)),
      force_alpha_1_(packet.force_alpha_1),
      cuts_(packet.cuts),
      reverse_(packet.channel_reverse),
      swap_(packet.rb_swap) {
  const ColorTypeInfo& type = info(target.type);
  Domain domain;
  const bool integer_format = format.numeric == Numeric::kUint || format.numeric == Numeric::kSint;
  if (type.is_integer || integer_format ||
      (format.numeric == Numeric::kFloat && target.type == ColorType::k32F))
    domain = Domain::kBits;
  else if (target.type == ColorType::k16F)
    domain = Domain::kHalf;
  else if (target.type == ColorType::k8 && format.numeric == Numeric::kUnorm && at_most_8_bits(format))
    domain = Domain::kUnorm8;
  else
    domain = Domain::kFloat;

  functions_ = functions(target.type, domain, format.numeric);

  bool same_fields = domain == Domain::kBits || domain == Domain::kUnorm8 || format.numeric == Numeric::kHalf;
  const uint32_t channels = color_channels(target);
  for (uint32_t c = 0; c < 4; ++c)
    same_fields &= c < channels
                       ? format.fields[c].bits == type.bits && format.fields[c].shift == c * type.bits
                       : format.fields[c].bits == 0;
  if (same_fields && !force_alpha_1_ && !packet.channel_reverse) {
    if (!packet.rb_swap) copies_ = true;
    if (packet.rb_swap && type.bits == 8) functions_ = kSwappedBytes;
  }
  if (format.numeric == Numeric::kUnorm && domain != Domain::kBits && !same_fields) dither_ = packet.dither;
}

bool can_average(ColorType type) { return !info(type).is_integer; }

void average_samples(ColorType type, uint32_t words, const Lanes samples[kMaxSamples][kMaxWords],
                     Lanes* out) {
  if (type == ColorType::k8) {
    Lanes even = splat(0x00020002u), odd = even;  // rounds half up
    for (uint32_t s = 0; s < kMaxSamples; ++s) {
      even += samples[s][0] & 0x00ff00ffu;
      odd += (samples[s][0] >> 8) & 0x00ff00ffu;
    }
    out[0] = ((even >> 2) & 0x00ff00ffu) | (((odd >> 2) & 0x00ff00ffu) << 8);
    return;
  }
  LanesF sums[4] = {};
  Lanes channels[4];
  for (uint32_t s = 0; s < kMaxSamples; ++s) {
    unpack_channels(type, words, samples[s], channels);
    for (int c = 0; c < 4; ++c)
      sums[c] = sum(sums[c], type == ColorType::k16F ? half_to_float(channels[c]) : as_float(channels[c]));
  }
  for (int c = 0; c < 4; ++c) {
    const LanesF mean = sums[c] * 0.25f;
    channels[c] = type == ColorType::k16F ? float_to_half(mean) : as_uint(mean);
  }
  pack_channels(type, channels, out);
}

}  // namespace v3d::tlb
