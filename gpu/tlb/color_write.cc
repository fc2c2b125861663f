#include "gpu/tlb/color_write.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_format.h"
#include "gpu/base/arithmetic.h"
#include "gpu/base/float16.h"
#include "gpu/base/vector.h"
#include "gpu/qpu/run/target_lanes.h"

namespace v3d::tlb {
namespace {

using Kind = qpu::TlbSpec::Kind;

using draw::BlendFactor;
using draw::BlendMode;

/// The colour of a program's words. Components it does not write: 0, and 1 for alpha.
void source_color(const qpu::TlbSpec& spec, const Lanes* words, LanesF* color) {
  if (spec.kind == Kind::kColorF16 && spec.words == 2) [[likely]] {
    for (uint32_t w = 0; w < 2; ++w) {
      color[2 * w] = half_to_float(words[w] & 0xffffu);
      color[2 * w + 1] = half_to_float(words[w] >> 16);
    }
    return;
  }
  for (uint32_t c = 0; c < 4; ++c) color[c] = splat(c == 3 ? 1.0f : 0.0f);
  if (spec.kind == Kind::kColor32) {
    for (uint32_t c = 0; c < spec.words && c < 4; ++c) color[c] = as_float(words[c]);
    return;
  }
  for (uint32_t w = 0; w < spec.words && w < 2; ++w) {
    color[2 * w] = half_to_float(words[w] & 0xffffu);
    color[2 * w + 1] = half_to_float(words[w] >> 16);
  }
}

/// Halves from 0 to 1, NaN as 0.
Lanes clamped_halves(const Lanes& words) {
  typedef uint16_t Halves __attribute__((vector_size(kHostBytes)));
  constexpr uint16_t kInfinity = 0x7c00, kOne = 0x3c00;
  return by_parts<Lanes>(
      [](auto part) {
        auto v = reinterpret_cast<Halves>(part);
        v = v <= kInfinity ? v : Halves{};  // above are negative ones and NaN
        return v < kOne ? v : Halves{} + kOne;
      },
      words);
}

/// to_unorm8() of four halves in two words, clamped before they are widened.
Lanes rgba8_of_halves(const Lanes* words) {
  const auto rounded = [](Lanes half) { return as_uint(half_to_float(half) * 255.0f + 12582912.0f) & 0xffu; };
  Lanes packed{};
  for (uint32_t w = 0; w < 2; ++w) {
    const Lanes pair = clamped_halves(words[w]);
    packed |= (rounded(pair & 0xffffu) | rounded(pair >> 16) << 8) << (16 * w);
  }
  return packed;
}

/// source_color() for integer targets, and bit by bit for floats: raw components.
void source_bits(const qpu::TlbSpec& spec, const Lanes* words, uint32_t one, Lanes* bits) {
  for (uint32_t c = 0; c < 4; ++c) bits[c] = splat(c == 3 ? one : 0u);
  if (spec.kind == Kind::kColor32) {
    for (uint32_t c = 0; c < spec.words && c < 4; ++c) bits[c] = words[c];
    return;
  }
  for (uint32_t w = 0; w < spec.words && w < 2; ++w) {
    bits[2 * w] = words[w] & 0xffffu;
    bits[2 * w + 1] = words[w] >> 16;
  }
}

/// To the range of the internal type, not of the image format.
Lanes clamp_integer(const ColorTypeInfo& type, Lanes v) {
  if (type.bits == 32) return v;
  if (!type.is_signed) {
    const uint32_t max = (1u << type.bits) - 1;
    return v3d::min(v, splat(max));
  }
  const int32_t max = (1 << (type.bits - 1)) - 1;
  return as_uint(clamp(as_int(v), splat_int(-max - 1), splat_int(max)));
}

bool can_blend(const RenderTarget& target) {
  return target.type == ColorType::k8 || target.type == ColorType::k16F;
}

}  // namespace

void ColorWrite::prepare(Tile& tile, uint32_t rt, const draw::DrawState& state) {
  const RenderTarget& target = tile.config.targets[rt];
  const bool blend = state.cfg.blend && ((state.blend_enables >> rt) & 1) && can_blend(target);
  const uint8_t mask = state.color_masks[rt] & 0xf;
  if (function_ && blend == blend_key_ && mask == mask_key_ &&
      (!blend || (config_key_ == state.blend[rt] && constant_key_ == state.blend_color)))
    return;
  blend_key_ = blend;
  mask_key_ = mask;
  config_key_ = state.blend[rt];
  constant_key_ = state.blend_color;

  target_ = target;
  rt_ = rt;
  words_ = color_words(target);
  Lanes written[4], packed[4];
  for (uint32_t c = 0; c < 4; ++c) written[c] = splat((mask >> c) & 1 ? 0u : ~0u);
  pack_channels(target.type, written, packed);
  writes_anything_ = false;
  writes_all_ = true;
  for (uint32_t w = 0; w < words_; ++w) {
    write_bits_[w] = packed[w][0];
    writes_anything_ |= write_bits_[w] != 0;
    writes_all_ &= write_bits_[w] == ~0u;
  }

  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const bool half = target.type == ColorType::k16F;
  clamps_ =
      target.type == ColorType::k8 || (half && target.clamp != Clamp::kNone && target.clamp != Clamp::kInt);
  for (int c = 0; c < 4; ++c) {
    const bool color = c < 3;
    low_[c] = 0;
    high_[c] = !half                                  ? 1.0f
               : target.clamp == Clamp::kPos          ? kInfinity
               : target.clamp == Clamp::kPq && color  ? 125.0f
               : target.clamp == Clamp::kHlg && color ? 12.0f
                                                      : 1.0f;
  }
  Blend how = Blend::kNone;
  if (blend) {
    decode_blend(tile, state.blend_color);
    how = target.type == ColorType::k8 && decode_linear() ? Blend::kLinear : Blend::kAny;
  }
  const Functions found = find_functions(target.type, how);
  function_ = found.any;
  halves_function_ = found.halves;
  block_function_ = target.type != ColorType::k8 || !writes_all_ || how == Blend::kAny ? nullptr
                    : how == Blend::kLinear                                            ? blend_block
                                                                                       : replace_block;
}

void ColorWrite::decode_blend(Tile& tile, const std::array<float, 4>& constant) {
  const draw::BlendConfig& config = config_key_;
  for (int c = 0; c < 4; ++c) {
    constant_[c] = constant[static_cast<size_t>(c)];
    if (clamps_) constant_[c] = std::fmin(std::fmax(constant_[c], low_[c]), high_[c]);
  }
  const auto report = [&tile](BlendMode mode, BlendFactor source, BlendFactor destination) {
    if (!draw::exists(mode) || !draw::exists(source) || !draw::exists(destination))
      tile.report(absl::StrFormat("blend mode %d with factors %d, %d", static_cast<int>(mode),
                                  static_cast<int>(source), static_cast<int>(destination)));
  };
  report(config.color_mode, config.color_src, config.color_dst);
  report(config.alpha_mode, config.alpha_src, config.alpha_dst);
}

/// @return  false when some channel's equation has no such form
bool ColorWrite::decode_linear() {
  const auto decode = [this](BlendFactor which, int c, float& k0, float& k1) {
    k0 = k1 = 0;
    switch (which) {
      case BlendFactor::kZero:
        return true;
      case BlendFactor::kOne:
        k0 = 1;
        return true;
      case BlendFactor::kSrcAlpha:
        k1 = 1;
        return true;
      case BlendFactor::kOneMinusSrcAlpha:
        k0 = 1;
        k1 = -1;
        return true;
      case BlendFactor::kConstColor:
        k0 = constant_[c];
        return true;
      case BlendFactor::kOneMinusConstColor:
        k0 = 1.0f - constant_[c];
        return true;
      case BlendFactor::kConstAlpha:
        k0 = constant_[3];
        return true;
      case BlendFactor::kOneMinusConstAlpha:
        k0 = 1.0f - constant_[3];
        return true;
      default:
        return false;
    }
  };
  for (int c = 0; c < 4; ++c) {
    Linear& l = linear_[c];
    const draw::BlendConfig& config = config_key_;
    const BlendMode mode = c < 3 ? config.color_mode : config.alpha_mode;
    if (mode > BlendMode::kReverseSubtract ||
        !decode(c < 3 ? config.color_src : config.alpha_src, c, l.s0, l.s1) ||
        !decode(c < 3 ? config.color_dst : config.alpha_dst, c, l.d0, l.d1))
      return false;
    if (mode == BlendMode::kSubtract) {
      l.d0 = -l.d0;
      l.d1 = -l.d1;
    } else if (mode == BlendMode::kReverseSubtract) {
      l.s0 = -l.s0;
      l.s1 = -l.s1;
    }
  }
  return true;
}

void ColorWrite::clamp(LanesF* color) const {
  if (!clamps_) return;
  for (int c = 0; c < 4; ++c) {
    color[c] = min(max(color[c], splat(low_[c])), splat(high_[c]));
  }
}

/// source := the blended colour.
void ColorWrite::blend(LanesF* source, const LanesF* destination) const {
  Lanes from[4], to[4];
  for (int c = 0; c < 4; ++c) {
    from[c] = as_uint(source[c]);
    to[c] = as_uint(destination[c]);
  }
  const auto constant = [this](int c) { return as_uint(splat(constant_[c])); };
  for (int c = 0; c < 4; ++c)
    source[c] = as_float(qpu::blended_channel<Lanes>(config_key_, c, from, to, constant));
}

const char* ColorWrite::describe(qpu::BlockTarget& target, std::array<float, 4>& constants) const {
  using Type = qpu::BlockTarget::Type;
  if (target_.type != ColorType::k8 && target_.type != ColorType::k16F)
    return "a render target that is not of bytes or halves";
  if (blend_key_ && !draw::exists(config_key_)) return "blending that there is not";
  target.type = target_.type == ColorType::k8 ? Type::k8 : Type::k16F;
  target.words = static_cast<uint8_t>(words_);
  target.is_limited = target.type == Type::k16F && clamps_;
  if (target.is_limited) {
    target.most_color = high_[0];
    target.most_alpha = high_[3];
  }
  target.kept = mask_key_;
  target.blends = blend_key_;
  target.blend = blend_key_ ? config_key_ : draw::BlendConfig{};
  std::copy_n(constant_, constants.size(), constants.begin());
  return nullptr;
}

/// Words of a program to words of the target, without blending.
template <ColorType kType>
void ColorWrite::convert(const qpu::TlbSpec& spec, const Lanes* in, Lanes* out) const {
  constexpr ColorTypeInfo kInfo = info(kType);
  if (kType == ColorType::k8 && spec.kind == Kind::kColorF16 && spec.words == 2) {
    out[0] = rgba8_of_halves(in);
    return;
  }
  Lanes channels[4];
  const bool same_floats = spec.kind == Kind::kColorF16 ? kType == ColorType::k16F : kType == ColorType::k32F;
  if (kInfo.is_integer || (same_floats && !clamps_)) {
    source_bits(spec, in, one_of(kType), channels);
    if (kInfo.is_integer && target_.clamp == Clamp::kInt)
      for (Lanes& channel : channels) channel = clamp_integer(kInfo, channel);
  } else {
    LanesF color[4];
    source_color(spec, in, color);
    if (kType != ColorType::k8) clamp(color);  // to_unorm8() does
    for (int c = 0; c < 4; ++c)
      channels[c] = kType == ColorType::k8     ? to_unorm8(color[c])
                    : kType == ColorType::k16F ? float_to_half(color[c])
                                               : as_uint(color[c]);
  }
  pack_channels(kType, channels, out);
}

/// The source, which is clamped, blended with stored words.
template <ColorType kType, ColorWrite::Blend kBlend>
void ColorWrite::blend_words(const LanesF* source, const Lanes* old, Lanes* out) const {
  Lanes channels[4];
  unpack_channels(kType, words_, old, channels);
  LanesF color[4], destination[4];
  for (int c = 0; c < 4; ++c)
    destination[c] = kType == ColorType::k8 ? from_unorm8(channels[c]) : half_to_float(channels[c]);
  if constexpr (kBlend == Blend::kLinear) {  // of type 8, without NaN
    for (int c = 0; c < 4; ++c) {
      const Linear& l = linear_[c];
      color[c] = source[c] * (l.s0 + l.s1 * source[3]) + destination[c] * (l.d0 + l.d1 * source[3]);
    }
  } else {
    std::copy(source, source + 4, color);
    blend(color, destination);
    clamp(color);
  }
  for (int c = 0; c < 4; ++c)
    channels[c] = kType == ColorType::k8 ? to_unorm8(color[c]) : float_to_half(color[c]);
  pack_channels(kType, channels, out);
}

template <ColorType kType, ColorWrite::Blend kBlend>
[[gnu::always_inline]] inline void ColorWrite::write_as(const ColorWrite& plan, Tile& tile,
                                                        const qpu::TlbSpec& spec, const Lanes* words,
                                                        const LiveLanes& live) {
  constexpr bool kBlends = kBlend != Blend::kNone;
  constexpr uint32_t kMost = info(kType).bits / 8;
  const uint32_t num_words = kMost == 1 ? 1 : std::min(plan.words_, kMost);
  const bool replaces = !kBlends && live.all && plan.writes_all_;
  Lanes result[kMost == 1 ? 1 : kMaxWords] = {};
  LanesF source[4];
  for (uint32_t s = 0; s < tile.samples(); ++s) {
    if (s == 0 || spec.per_sample) {
      const Lanes* const in = words + (spec.per_sample ? s * spec.words : 0);
      if constexpr (kBlends) {
        source_color(spec, in, source);
        plan.clamp(source);
      } else {
        plan.convert<kType>(spec, in, result);
      }
    }
    if (replaces) {
      for (uint32_t w = 0; w < num_words; ++w) store_quads(tile.color(plan.rt_, s, w), live.quads, result[w]);
      continue;
    }
    const LanesI lanes = sample_lanes(live.samples, s);
    Lanes old[kMaxWords];
    for (uint32_t w = 0; w < num_words; ++w) old[w] = load_quads(tile.color(plan.rt_, s, w), live.quads);
    if constexpr (kBlends) plan.blend_words<kType, kBlend>(source, old, result);
    for (uint32_t w = 0; w < num_words; ++w) {
      const Lanes bits = as_uint(lanes) & plan.write_bits_[w];
      store_bits(tile.color(plan.rt_, s, w), live.quads, bits, result[w], old[w]);
    }
  }
}

void ColorWrite::replace_block(const ColorWrite&, uint32_t* plane, const QuadOffsets& quads,
                               const Lanes* words) {
  store_quads(plane, quads, rgba8_of_halves(words));
}

void ColorWrite::replace_pixels(const std::array<uint32_t*, 4>& quads, LaneMask pixels, const Lanes* words) {
  const Lanes colors = rgba8_of_halves(words), written = as_uint(expand(pixels));
  QuadWords color[4], mask[4];
  std::memcpy(color, &colors, sizeof(color));
  std::memcpy(mask, &written, sizeof(mask));
  for (size_t q = 0; q < 4; ++q) {
    if (((pixels >> (4 * q)) & 15) == 0) continue;
    QuadWords old;
    std::memcpy(&old, quads[q], sizeof(old));
    const QuadWords both = (color[q] & mask[q]) | (old & ~mask[q]);
    std::memcpy(quads[q], &both, sizeof(both));
  }
}

/// blend_words() of Blend::kLinear, with what its channels have in common.
void ColorWrite::blend_block(const ColorWrite& plan, uint32_t* plane, const QuadOffsets& quads,
                             const Lanes* words) {
  const Lanes old = load_quads(plane, quads),
              halves[2] = {clamped_halves(words[0]), clamped_halves(words[1])};
  const LanesF alpha = half_to_float(halves[1] >> 16);
  const auto blended = [&](LanesF source, Lanes stored, int c) {
    const Linear& l = plan.linear_[c];
    return to_unorm8(source * (l.s0 + l.s1 * alpha) + from_unorm8(stored) * (l.d0 + l.d1 * alpha));
  };
  const Lanes red = blended(half_to_float(halves[0] & 0xffffu), old & 0xffu, 0),
              green = blended(half_to_float(halves[0] >> 16), (old >> 8) & 0xffu, 1),
              blue = blended(half_to_float(halves[1] & 0xffffu), (old >> 16) & 0xffu, 2),
              last = blended(alpha, old >> 24, 3);
  store_quads(plane, quads, red | green << 8 | blue << 16 | last << 24);
}

template <ColorType kType, ColorWrite::Blend kBlend>
void ColorWrite::write_halves_as(const ColorWrite& plan, Tile& tile, const Lanes* words,
                                 const LiveLanes& live) {
  static constexpr qpu::TlbSpec kHalves = {Kind::kColorF16, 0, false, false, 2};
  write_as<kType, kBlend>(plan, tile, kHalves, words, live);
}

ColorWrite::Functions ColorWrite::find_functions(ColorType type, Blend blend) {
  using enum ColorType;
  if (blend == Blend::kLinear) return functions<k8, Blend::kLinear>();
  if (blend == Blend::kAny) return type == k8 ? functions<k8, Blend::kAny>() : functions<k16F, Blend::kAny>();
  static constexpr Functions kOpaque[] = {
      functions<k8I, Blend::kNone>(),  functions<k8Ui, Blend::kNone>(),  functions<k8, Blend::kNone>(),
      functions<k16I, Blend::kNone>(), functions<k16Ui, Blend::kNone>(), functions<k16F, Blend::kNone>(),
      functions<k32I, Blend::kNone>(), functions<k32Ui, Blend::kNone>(), functions<k32F, Blend::kNone>()};
  return kOpaque[static_cast<int>(type)];
}

void read_color(const RenderTarget& target, const qpu::TlbSpec& spec, const Lanes* stored, Lanes* words) {
  Lanes channels[4];
  unpack_channels(target.type, color_words(target), stored, channels);
  const ColorType type = target.type;
  if (spec.kind == Kind::kColorF16) {
    if (type == ColorType::k8)
      for (Lanes& channel : channels) channel = float_to_half(from_unorm8(channel));
    else if (type == ColorType::k32F)
      for (Lanes& channel : channels) channel = float_to_half(as_float(channel));
    for (uint32_t w = 0; w < spec.words && w < 2; ++w)
      words[w] = (channels[2 * w] & 0xffffu) | (channels[2 * w + 1] << 16);
    return;
  }
  if (type == ColorType::k8)
    for (Lanes& channel : channels) channel = as_uint(from_unorm8(channel));
  else if (type == ColorType::k16F)
    for (Lanes& channel : channels) channel = as_uint(half_to_float(channel));
  std::copy_n(channels, spec.words < 4 ? spec.words : 4, words);
}

}  // namespace v3d::tlb
