/// These say what a render target makes of colours, as expressions of lanes, written once for whoever
/// evaluates them: the tile buffer with the host's vectors (host_lanes.h), or the compiler's graph
/// (gpu/qpu/graph/value.h). Channels are floats, four of a pixel: red, green, blue, alpha.
///
/// Facts: cle-and-tiles.md 5.5, 5.6.
#pragma once

#include <bit>
#include <cstdint>

#include "gpu/draw/modes.h"
#include "gpu/qpu/run/alu_lanes.h"
#include "gpu/qpu/run/host_lanes.h"

namespace v3d::qpu {

/// A word of every lane, beside one of the kind.
template <typename W>
inline W word_of_float(const W& v, float number) {
  return of_same_kind(v, std::bit_cast<uint32_t>(number));
}

/// Limited to 0 and most; NaN as 0.
template <typename W>
inline W limited_channel(const W& v, float most) {
  return min_floats(max_floats(v, of_same_kind(v, 0)), word_of_float(v, most));
}

/// 0..255 of a channel: limited to 0 and 1, rounded to nearest, NaN as 0.
template <typename W>
inline W byte_of_channel(const W& v) {
  // The sum rounds once (ties to even) and leaves the integer in the low byte.
  return float_sum(float_product(limited_channel(v, 1), word_of_float(v, 255)), word_of_float(v, 0x1.8p23f)) &
         0xffu;
}
/// The channel that 0..255 stands for.
template <typename W>
inline W channel_of_byte(const W& v) {
  return float_product(nearest_float(v), word_of_float(v, 1.0f / 255.0f));
}

/// @param constant  (channel) gives the draw's constant
template <typename W, typename Constant>
inline W blend_factor(draw::BlendFactor which, int channel, const W* source, const W* destination,
                      const Constant& constant) {
  using enum draw::BlendFactor;
  const W one = word_of_float(source[0], 1);
  switch (which) {
    case kOne:
      return one;
    case kSrcColor:
      return source[channel];
    case kOneMinusSrcColor:
      return float_difference(one, source[channel]);
    case kDstColor:
      return destination[channel];
    case kOneMinusDstColor:
      return float_difference(one, destination[channel]);
    case kSrcAlpha:
      return source[3];
    case kOneMinusSrcAlpha:
      return float_difference(one, source[3]);
    case kDstAlpha:
      return destination[3];
    case kOneMinusDstAlpha:
      return float_difference(one, destination[3]);
    case kConstColor:
      return constant(channel);
    case kOneMinusConstColor:
      return float_difference(one, constant(channel));
    case kConstAlpha:
      return constant(3);
    case kOneMinusConstAlpha:
      return float_difference(one, constant(3));
    case kSrcAlphaSaturate:
      return channel == 3 ? one : min_floats(source[3], float_difference(one, destination[3]));
    default:
      return of_same_kind(source[0], 0);
  }
}

/// A zero factor removes its term, whatever it multiplies. The sum or difference behind makes NaNs quiet.
template <typename W, typename Constant>
inline W blend_term(draw::BlendFactor which, int channel, const W& color, const W* source,
                    const W* destination, const Constant& constant) {
  if (which == draw::BlendFactor::kZero) return of_same_kind(color, 0);
  if (which == draw::BlendFactor::kOne) return color;
  return float_product(color, blend_factor(which, channel, source, destination, constant));
}

/// One channel of the blended colour, not limited.
template <typename W, typename Constant>
inline W blended_channel(const draw::BlendConfig& config, int channel, const W* source, const W* destination,
                         const Constant& constant) {
  using enum draw::BlendMode;
  const bool color = channel < 3;
  const W &s = source[channel], &d = destination[channel];
  const auto term = [&](draw::BlendFactor which, const W& of) {
    return blend_term(which, channel, of, source, destination, constant);
  };
  const auto terms = [&](auto fn) {
    return fn(term(color ? config.color_src : config.alpha_src, s),
              term(color ? config.color_dst : config.alpha_dst, d));
  };
  switch (color ? config.color_mode : config.alpha_mode) {
    case kAdd:
      return terms([](const W& a, const W& b) { return float_sum(a, b); });
    case kSubtract:
      return terms([](const W& a, const W& b) { return float_difference(a, b); });
    case kReverseSubtract:
      return terms([](const W& a, const W& b) { return float_difference(b, a); });
    case kMin:
    case kDarken:
      return min_floats(s, d);
    case kMax:
    case kLighten:
      return max_floats(s, d);
    case kMultiply:
      return float_product(s, d);
    case kScreen:
      return float_difference(float_sum(s, d), float_product(s, d));
    default:
      return s;
  }
}

}  // namespace v3d::qpu
