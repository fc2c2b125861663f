/// @file The texels of a lookup, and what is made of them.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "gpu/qpu/graph/lookup_nodes.h"

namespace v3d::qpu::graph {
namespace {

/// Of each half the low byte, at the place of the upper one.
Value shifted_halves(Value v) { return halves_product(v, constant(*v.graph, 0x01000100)); }

Value either(Value a, Value b) {
  if (a.id == kNoNode) return b;
  return b.id == kNoNode ? a : a | b;
}

}  // namespace

LookupNodes::Channels LookupNodes::filtered(const Coordinates& at, const Level& of,
                                            LookupKind::Filter filter) {
  const bool is_nearest = filter == LookupKind::Filter::kNearest;
  if (kind_.dims == 3) return is_nearest ? nearest_of_slices(at, of) : linear_of_slices(at, of);
  const Channels result = is_nearest ? nearest(at, of, {}) : linear(at, of, {});
  return kind_.is_cube && !is_nearest ? across_edges(at, of, result) : result;
}
LookupNodes::Channels LookupNodes::nearest_of_slices(const Coordinates& at, const Level& of) {
  const Place z = nearest_index(at[2], of, 2);
  return nearest(at, slice_of(of, z.index), z.outside);
}
LookupNodes::Channels LookupNodes::linear_of_slices(const Coordinates& at, const Level& of) {
  const Tap z = tap_of(at[2], of, 2);
  return mixed(linear(at, slice_of(of, z.index[0]), z.outside[0]),
               linear(at, slice_of(of, z.index[1]), z.outside[1]), z.weight);
}
/// @param outside  where the border's colour applies for other reasons than the coordinates in the slice
LookupNodes::Channels LookupNodes::nearest(const Coordinates& at, const Level& of, Value outside) {
  if (kind_.in_float) return nearest_value(at, of, outside);
  const Value x = nearest_index(at[0], of, 0).index, y = nearest_index(at[1], of, 1).index;
  return nearest_bytes(address(column(x, of), row(y, of), x, of));
}
LookupNodes::Channels LookupNodes::linear(const Coordinates& at, const Level& of, Value outside) {
  if (kind_.in_float) return linear_value(at, of, outside);
  return linear_bytes(pair_of(at[0], of, 0), pair_of(at[1], of, 1), of);
}

/// Of bytes or halves.
size_t LookupNodes::num_channels() const { return size_t{1} << (kind_.log2_bytes - is_of_halves()); }
bool LookupNodes::is_of_halves() const {
  return kind_.texels == LookupKind::Texels::kPacked && kind_.packing.number == tmu::Number::kHalf;
}

/// Or halves alone, of what is not blended before.
bool LookupNodes::wants_floats() const {
  return kind_.wide || kind_.levels == LookupKind::Levels::kLinear || kind_.most_probes > 1;
}
LookupNodes::Channels LookupNodes::nearest_bytes(Value address) {
  const Value v = texel(address);
  Channels result = none();
  for (size_t c = 0; c < num_channels(); ++c) {
    // Of a product the half is the same for all bytes.
    const auto n = static_cast<uint32_t>(c);
    result[c] = wants_floats() ? channel_of_byte(v, n)
                               : float_product(nearest_float(byte_of(v, n)), number(1.0f / 255));
  }
  return result;
}
/// Divided by 255, rounded once: the products are exact.
Value LookupNodes::channel_of_byte(Value texel, uint32_t n) {
  const Value byte = nearest_float(byte_of(texel, n));
  return float_sum(float_product(byte, number(65793 * 0x1p-24f)),
                   float_product(byte, number(65793 * 0x1p-48f)));
}

LookupNodes::Channels LookupNodes::linear_bytes(const Pair& x, const Pair& y, const Level& of) {
  const Value columns[2] = {column(x.first, of), column(x.second, of)},
              rows[2] = {row(y.first, of), row(y.second, of)};
  const Value xs[2] = {x.first, x.second};
  Value texels[4];
  for (size_t k = 0; k < 4; ++k)
    texels[k] = texel(address(columns[k & 1], rows[k >> 1], xs[k & 1], of)) ^ 0x80808080u;
  // A weight of 0 is one of 1, as both texels are the same then, so that bytes hold both factors.
  const Value weight = greatest(x.weight & 0xffu, bits(1));
  const Value of_columns = weight * 0x00ff00ffu + 0x01000100u;
  const Value below = y.weight & 0xffu;
  const Value of_rows = below << 16 | (256u - below);
  // Even channels and odd ones of both rows, less 32768.
  Value blended[2][2];
  for (size_t k = 0; k < 2; ++k) {
    const Value left = texels[2 * k], right = texels[2 * k + 1];
    blended[0][k] = byte_products(of_columns, (left & 0x00ff00ffu) | shifted_halves(right));
    blended[1][k] = byte_products(of_columns, halves_upper_byte(left) | (right & 0xff00ff00u));
  }
  Channels result = none();
  for (size_t c = 0; c < num_channels(); ++c) {
    const Value top = blended[c & 1][0], bottom = blended[c & 1][1];
    const Value both = c < 2 ? (top & 0xffffu) | bottom << 16 : top >> 16 | (bottom & 0xffff0000u);
    const Value sum = half_products(both, of_rows) + (1u << 23);
    result[c] = float_product(nearest_float(sum), number(1.0f / (255 * 256) * 0x1p-8f));
  }
  return result;
}

// ---- Filters of values: AnyTexel of gpu/tmu/lookup/sample.cc

LookupNodes::Channels LookupNodes::nearest_value(const Coordinates& at, const Level& of, Value outside) {
  const Place x = nearest_index(at[0], of, 0), y = nearest_index(at[1], of, 1);
  return value_at(address(column(x.index, of), row(y.index, of), x.index, of),
                  either(outside, either(x.outside, y.outside)));
}
LookupNodes::Channels LookupNodes::linear_value(const Coordinates& at, const Level& of, Value outside) {
  const Tap x = tap_of(at[0], of, 0), y = tap_of(at[1], of, 1);
  return has_window(of) && outside.id == kNoNode ? linear_in_window(x, y, of)
                                                 : linear_of_texels(x, y, of, outside);
}
LookupNodes::Channels LookupNodes::linear_of_texels(const Tap& x, const Tap& y, const Level& of,
                                                    Value outside) {
  const Value columns[2] = {column(x.index[0], of), column(x.index[1], of)},
              rows[2] = {row(y.index[0], of), row(y.index[1], of)};
  const auto address_of = [&](size_t i, size_t j) { return address(columns[i], rows[j], x.index[i], of); };
  if (is_of_halves() && !kind_.has_border && !kind_.compares)
    return linear_of_halves(address_of, x.weight, y.weight);
  const auto value = [&](size_t i, size_t j) {
    return value_at(address_of(i, j), either(outside, either(x.outside[i], y.outside[j])));
  };
  // A row is mixed before the other one is fetched: fewer values wait for others.
  Channels of_rows[2];
  for (size_t j = 0; j < 2; ++j) {
    const Channels left = value(0, j), right = value(1, j);
    of_rows[j] = mixed(left, right, x.weight);
  }
  return mixed(of_rows[0], of_rows[1], y.weight);
}

/// Word by word, of which each is two channels: registers hold those, and not whole texels. In place of what
/// has a weight of 0, and may be infinite or no number, stands -0, whose sum with anything is that.
/// @param address_of  (i, j) of the texel i of the row j
template <typename AddressOf>
LookupNodes::Channels LookupNodes::linear_of_halves(const AddressOf& address_of, Value weight_x,
                                                    Value weight_y) {
  const Value is_left_alone = equal_words(weight_x, bits(0)), is_top_alone = equal_words(weight_y, bits(0));
  const auto left_out = [&](Value lanes, Value word) { return choose(lanes, bits(0x80008000), word); };
  Channels result = none(), above = none();
  for (size_t j = 0; j < 2; ++j) {
    const Words left = words_of_halves(address_of(0, j)), right = words_of_halves(address_of(1, j));
    for (size_t c = 0; c < num_channels(); c += 2) {
      const Value first = left[c / 2], second = right[c / 2];
      const auto a = halves_of(j == 0 ? first : left_out(is_top_alone, first)),
                 b = halves_of(left_out(j == 0 ? is_left_alone : is_left_alone | is_top_alone, second));
      for (size_t n = c; n < std::min(c + 2, num_channels()); ++n) {
        const Value in_row = weighted_sum(a[n - c], b[n - c], weight_x);
        if (j == 0)
          above[n] = in_row;
        else
          result[n] = weighted_sum(above[n], in_row, weight_y);
      }
    }
  }
  return result;
}
bool LookupNodes::are_finite() const {
  using tmu::Number;
  if (kind_.has_border) return false;
  const Number number = kind_.packing.number;
  return kind_.compares || kind_.texels != LookupKind::Texels::kPacked || number == Number::kUnorm ||
         number == Number::kSnorm || number == Number::kDepth || number == Number::kSharedExponent;
}

Value LookupNodes::weighted_sum(Value a, Value b, Value weight) {
  const Value of_b = float_product(nearest_float(weight), number(1.0f / 256));
  return float_sum(float_product(a, float_difference(number(1), of_b)), float_product(b, of_b));
}
/// What is infinite, or no number, takes no part where its weight is 0.
Value LookupNodes::mixed(Value a, Value b, Value weight) {
  const Value sum = weighted_sum(a, b, weight);
  return are_finite() ? sum : choose(equal_words(weight, bits(0)), a, sum);
}
LookupNodes::Channels LookupNodes::mixed(const Channels& a, const Channels& b, Value weight) {
  Channels result;
  for (size_t c = 0; c < result.size(); ++c) result[c] = mixed(a[c], b[c], weight);
  return result;
}

LookupNodes::Channels LookupNodes::value_at(Value address, Value outside) {
  Channels channels = decoded(address);
  if (outside.id != kNoNode)
    for (uint32_t c = 0; c < 4; ++c)
      channels[c] =
          choose(outside, word(static_cast<TextureWord>(static_cast<uint32_t>(TextureWord::kBorder) + c)),
                 channels[c]);
  if (kind_.compares)
    channels = {compared(kind_.compare, reference_, channels[0], true) & number(1), bits(0), bits(0),
                number(1)};
  return channels;
}

/// Outside of the image a texel is 0, and so is a channel that it does not have.
LookupNodes::Channels LookupNodes::fetched(const Point& point) {
  const Texel texel = fetched_texel(point);
  lanes_ = lanes_ & texel.exists;
  Channels channels = kind_.in_float ? decoded(texel.address) : nearest_bytes(texel.address);
  for (Value& channel : channels)
    if (graph_.is_constant(channel.id)) channel = choose(texel.exists, channel, bits(0));
  return channels;
}

LookupNodes::Channels LookupNodes::decoded(Value address) {
  using Texels = LookupKind::Texels;
  if (kind_.texels == Texels::kPacked) return unpacked(address);
  const Value v = texel(address);
  Channels result = none();
  if (kind_.texels == Texels::kUnorm8) {
    for (uint32_t c = 0; c < num_channels(); ++c) result[c] = channel_of_byte(v, c);
    return result;
  }
  for (uint32_t c = 0; c < 3; ++c) result[c] = srgb_value(v, c);
  result[3] = channel_of_byte(v, 3);
  return result;
}
LookupNodes::Words LookupNodes::words_of_halves(Value address) {
  if (kind_.log2_bytes < 3) return {texel(address), bits(0)};
  const Value first = gathered(address, 0);
  return {first, gathered(address, 4)};
}
std::array<Value, 2> LookupNodes::halves_of(Value word) {
  const Value low = float_of_half(word & 0xffffu);
  return {low, float_of_half(word >> 16)};
}

// ---- What texels are packed in: gpu/tmu/texel/format.cc

LookupNodes::Channels LookupNodes::unpacked(Value address) {
  std::array<Value, 4> words = {texel(address)};
  for (uint32_t n = 1; n < 1u << kind_.log2_bytes >> 2; ++n) words[n] = gathered(address, n * 4);
  Channels result = none();
  for (size_t c = 0; c < result.size(); ++c)
    if (kind_.packing.channels[c].bits != 0) result[c] = number_of(kind_.packing.channels[c], words);
  return result;
}

Value LookupNodes::field(tmu::Channel channel, Value word) {
  const uint32_t first = channel.first % 32u;
  const Value shifted = first == 0 ? word : word >> first;
  return first + channel.bits == 32 ? shifted : shifted & ((1u << channel.bits) - 1);
}

Value LookupNodes::number_of(tmu::Channel channel, const std::array<Value, 4>& words) {
  using tmu::Number;
  const Value word = words[channel.first / 32u];
  const uint32_t bits_of = channel.bits;
  if (bits_of == 32) return word;
  const auto of_field = [&] { return field(channel, word); };
  const auto of_signed_field = [&] {
    return shifted_right_signed(word << (32u - channel.first % 32u - bits_of), bits(32 - bits_of));
  };
  const auto largest = [&](uint32_t n) { return number(static_cast<float>((1u << n) - 1)); };
  switch (kind_.packing.number) {
    case Number::kUnorm:
      if (bits_of == 1) return nearest_float(of_field());
      if (bits_of == 8) return channel_of_byte(word, channel.first % 32u / 8);
      return float_quotient(nearest_float(of_field()), largest(bits_of));
    case Number::kSnorm:
      return max_floats(float_quotient(nearest_float(of_signed_field()), largest(bits_of - 1)), number(-1));
    case Number::kHalf:
      return float_of_half(of_field());
    case Number::kSmallFloat:
      return float_of_half(of_field() << (15 - bits_of));
    case Number::kSharedExponent:
      return float_product(nearest_float(of_field()), ((words[0] >> 27) + (127 - 15 - 9)) << 23);
    case Number::kDepth:
      return bits_of == 16 ? depth_of_16_bits(of_field()) : depth_of_24_bits(of_field());
    case Number::kInt:
      return of_signed_field();
    case Number::kUint:
    case Number::kFloat:
      break;
  }
  return of_field();
}

/// v / 65535, toward zero: the 24 upper bits of v / 65536 + v / 65536^2.
Value LookupNodes::depth_of_16_bits(Value v) {
  const Value n = v * 0x10001u;
  const Value beyond = greatest(8u - leading_zeros(n), bits(0));
  const Value kept = n & make(Op::kShl, bits(~0u), beyond);
  const Value high = float_product(nearest_float(kept >> 16), number(0x1p-16f)),
              low = float_product(nearest_float(kept & 0xffffu), number(0x1p-32f));
  return choose(equal_words(v, bits(0xffff)), number(1), float_sum(high, low));
}
/// Of v / (2^24 - 1) no more bits than a float has: those of v, but for the last one.
Value LookupNodes::depth_of_24_bits(Value v) {
  return choose(equal_words(v, bits(0xffffff)), number(1), float_product(nearest_float(v), number(0x1p-24f)));
}

}  // namespace v3d::qpu::graph
