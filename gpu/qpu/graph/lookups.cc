#include "gpu/qpu/graph/lookups.h"

#include <array>
#include <bit>
#include <cstddef>
#include <utility>

#include "gpu/qpu/run/thread.h"
#include "gpu/tmu/image/layout.h"

namespace v3d::qpu::graph {
namespace {

using tmu::LookupKind;
using tmu::TextureWord;
using tmu::Wrap;

constexpr uint32_t bits_of(float v) { return std::bit_cast<uint32_t>(v); }

/// A level, of all lanes or of each.
struct Level {
  Value address, column_pitch;
  Value size[3];   ///< texels; of textures without depth two
  Value scale[2];  ///< 1/256 texels
  Value last[2];   ///< where the last texel has its centre, likewise
  Value layout;    ///< no node: as the kind says
  Value slice;     ///< bytes between slices, where there are some
};

/// Makes the nodes of one lookup: the steps of gpu/tmu/lookup/sampling.h for what is in range, as
/// gpu/qpu/jit/code/lookup_filter.cc has them.
class LookupNodes {
 public:
  using Channels = std::array<Value, 4>;
  using Coordinates = std::array<Value, 3>;
  struct Point {
    Coordinates at;
    Value bias, reference;  ///< where the kind has them
  };

  LookupNodes(Graph& graph, const LookupKind& kind, Value lanes)
      : graph_(graph), kind_(kind), lanes_(lanes) {}

  /// As floats.
  Channels channels(const Point& point) {
    using Levels = LookupKind::Levels;
    const Coordinates& at = point.at;
    if (kind_.compares)
      reference_ = kind_.clamps_reference ? limited_to_one(point.reference) : point.reference;
    if (kind_.levels == Levels::kBase) return filtered(at, base_level(), kind_.filter);
    const Value detail = limited(level_of_detail(point)), over = greatest(detail, bits(0));
    minified_ = above(detail, bits(0));
    const Value base = word(TextureWord::kBaseLevel), last = word(TextureWord::kLastLevel);
    if (kind_.levels == Levels::kNearest) return of_level(at, least(base + ((over + 128u) >> 8), last));
    const Value level = least(base + (over >> 8), last);
    const Channels first = of_level(at, level), second = of_level(at, least(level + 1u, last));
    return mixed(first, second, above(last, level) & over & 255u);
  }

 private:
  struct Pair {
    Value first, second;
    Value weight;  ///< of the second one, in the low byte; another byte above it
  };

  Value bits(uint32_t word) { return constant(graph_, word); }
  Value number(float v) { return bits(bits_of(v)); }
  Value word(TextureWord which) {
    return {&graph_, graph_.make({.op = Op::kTextureWord, .immediate = texture_word(kind_.texture, which)})};
  }
  int log2_utile_width() const { return std::countr_zero(tmu::utile_width(1u << kind_.log2_bytes)); }
  int log2_utile_height() const { return std::countr_zero(tmu::utile_height(1u << kind_.log2_bytes)); }

  // ---- Levels

  Level base_level() {
    return {.address = word(TextureWord::kAddress),
            .column_pitch = word(TextureWord::kColumnPitch),
            .size = {word(TextureWord::kWidth), word(TextureWord::kHeight), word(TextureWord::kDepth)},
            .scale = {word(TextureWord::kScaleX), word(TextureWord::kScaleY)},
            .last = {word(TextureWord::kLastX), word(TextureWord::kLastY)},
            .layout = {},
            .slice = word(TextureWord::kSliceSize)};
  }
  Value level_word(Value level, tmu::LevelWord which) {
    return make_with(Op::kLevelWord, level, kind_.texture * tmu::kLevelWords + static_cast<uint32_t>(which));
  }
  Level level(Value number_of) {
    const Value sizes = level_word(number_of, tmu::LevelWord::kSizes),
                layout = level_word(number_of, tmu::LevelWord::kLayout);
    Level level = {.address = level_word(number_of, tmu::LevelWord::kAddress),
                   .column_pitch = layout,
                   .size = {sizes & 0xffffu, sizes >> 16, {}},
                   .scale = {},
                   .last = {},
                   .layout = layout,
                   .slice = {}};
    if (kind_.dims == 3) {
      level.size[2] = level_word(number_of, tmu::LevelWord::kDepth);
      level.slice = level_word(number_of, tmu::LevelWord::kSliceSize);
    }
    for (size_t axis = 0; axis < 2; ++axis) {
      level.scale[axis] = nearest_float(level.size[axis] << 8);
      level.last[axis] = float_sum(level.scale[axis], number(-128));
    }
    return level;
  }
  /// Of each lane by its own filter.
  Channels of_level(const Coordinates& at, Value number_of) {
    const Level of = level(number_of);
    const Channels magnified = filtered(at, of, kind_.filter);
    if (kind_.minifying == kind_.filter) return magnified;
    Channels result = filtered(at, of, kind_.minifying);
    for (size_t c = 0; c < result.size(); ++c) result[c] = choose(minified_, result[c], magnified[c]);
    return result;
  }

  /// log2() of gpu/base/vector.h, of a square.
  Value log2_of_square(Value squared) {
    constexpr uint32_t kRootOfHalf = 0x3f3504f3, kMantissa = 0x7fffff;
    squared = min_floats(max_floats(squared, number(0x1p-32f)), number(0x1p+60f));
    const Value v = squared - kRootOfHalf;
    const Value f = float_difference((v & kMantissa) + kRootOfHalf, number(1)), f2 = float_product(f, f);
    const auto line = [&](float a, float b) {
      return float_difference(number(a), float_product(f, number(b)));
    };
    const Value low = line(1.44280951f, 0.721367359f), middle = line(0.474986073f, 0.357639749f),
                high = line(0.361390689f, 0.298072372f);
    const Value fraction =
        float_product(f, float_sum(low, float_product(f2, float_sum(middle, float_product(f2, high)))));
    const Value exponent = nearest_float(shifted_right_signed(v, bits(23)));
    return float_product(float_sum(exponent, fraction), number(0.5f));
  }
  /// unclamped_lod() of gpu/tmu/lookup/sampling.h.
  Value level_of_detail(const Point& point) {
    Value level = kind_.tells_level ? number(0) : level_of_footprint(point.at);
    if (kind_.has_bias) level = float_sum(level, point.bias);
    return float_sum(level, word(TextureWord::kBias));
  }
  /// Of the longer side of the quad's footprint.
  Value level_of_footprint(const Coordinates& at) {
    const Value sizes[3] = {word(TextureWord::kBaseWidth), word(TextureWord::kBaseHeight),
                            word(TextureWord::kBaseDepth)};
    const auto square = [&](Value neighbour, Value origin, size_t axis) {
      const Value distance = float_product(float_difference(neighbour, origin), sizes[axis]);
      return float_product(distance, distance);
    };
    Value x, y;
    for (size_t axis = 0; axis < kind_.dims; ++axis) {
      const Value origin = of_quad_lanes<0, 0, 0, 0>(at[axis]);
      const Value of_x = square(of_quad_lanes<1, 1, 1, 1>(at[axis]), origin, axis),
                  of_y = square(of_quad_lanes<2, 2, 2, 2>(at[axis]), origin, axis);
      x = axis == 0 ? of_x : float_sum(x, of_x);
      y = axis == 0 ? of_y : float_sum(y, of_y);
    }
    return log2_of_square(max_floats(x, y));
  }
  /// In 1/256, by the sampler's limits.
  Value limited(Value detail) {
    detail = min_floats(max_floats(detail, number(-64)), number(64));
    const Value fixed = truncated(rounded<Rounding::kDown>(float_product(detail, number(256))));
    return least(greatest(fixed, word(TextureWord::kLeastDetail)), word(TextureWord::kMostDetail));
  }

  // ---- Coordinates

  /// In 1/256 texels: from 0 to 256 n if repeated, or twice that if mirrored.
  Value scaled(Value at, const Level& of, size_t axis) {
    constexpr float kHighest = 32767 * 256.0f;
    const Wrap wrap = kind_.wrap[axis];
    if (wrap != Wrap::kClamp) {
      Value whole = at;
      if (wrap == Wrap::kMirror) {
        const Value pairs = rounded<Rounding::kDown>(float_product(at, number(0.5f)));
        whole = float_sum(pairs, pairs);
      } else {
        whole = rounded<Rounding::kDown>(at);
      }
      at = max_floats(float_difference(at, whole), bits(0));
    }
    at = float_product(at, of.scale[axis]);
    return wrap == Wrap::kMirror ? min_floats(at, number(kHighest)) : at;
  }
  Value clamped(Value at, const Level& of, size_t axis, float least) {
    return min_floats(max_floats(at, number(least)), of.last[axis]);
  }
  /// Of an index at most one outside. The least of numbers without sign is the one in range.
  Value wrapped(Value index, const Level& of, size_t axis, bool below) {
    const Wrap wrap = kind_.wrap[axis];
    if (wrap == Wrap::kClamp) return index;
    const Value period = wrap == Wrap::kMirror ? of.size[axis] + of.size[axis] : of.size[axis];
    index = least_unsigned(index, below ? index + period : index - period);
    if (wrap == Wrap::kRepeat) return index;
    return least_unsigned(index, period - index + ~0u);
  }
  Value texel_index(Value at, const Level& of, size_t axis) {
    at = scaled(at, of, axis);
    if (kind_.wrap[axis] == Wrap::kClamp) at = clamped(at, of, axis, 0);
    return wrapped(truncated(at) >> 8, of, axis, false);
  }
  /// The two texels around a coordinate: where it is the centre of one, twice that.
  Pair texel_pair(Value at, const Level& of, size_t axis) {
    constexpr uint32_t kHalfTexel = 128, kAlmostOne = 255;
    at = scaled(at, of, axis);
    if (kind_.wrap[axis] == Wrap::kClamp) at = clamped(at, of, axis, kHalfTexel);
    const Value place = truncated(at) + (0u - kHalfTexel);
    const auto whole = [&](Value v) { return shifted_right_signed(v, bits(8)); };
    return {wrapped(whole(place), of, axis, true), wrapped(whole(place + kAlmostOne), of, axis, false),
            place};
  }

  // ---- Addresses: column() and row() of gpu/tmu/lookup/addressing.h

  static constexpr uint32_t mask_of(int bits) { return (1u << bits) - 1; }
  Value column(Value x, const Level& of) {
    const auto w = static_cast<uint32_t>(log2_utile_width());
    const uint32_t inside = mask_of(log2_utile_width()) << kind_.log2_bytes | 1u << 6;
    // A sum of products of halves takes less time than a product of words.
    const Value columns = half_products(x >> (w + 3), of.column_pitch);
    const Value begin = (columns << 9) + of.address;
    if (of.layout.id == kNoNode) return deposited(x, inside | 3u << kind_.x_shift) + begin;
    const Value shift = of.layout >> tmu::kLayoutXShift & 15u;
    return deposited(x, inside) + make(Op::kShl, x >> (w + 1) & 3u, shift) + begin;
  }
  Value row(Value y, const Level& of) {
    const int w = log2_utile_width(), h = log2_utile_height();
    const uint32_t inside = mask_of(h) << (kind_.log2_bytes + w);
    if (of.layout.id == kNoNode)
      return deposited(y, inside | 1u << kind_.y0_shift | ~mask_of(kind_.y1_shift));
    const Value uy = y >> static_cast<uint32_t>(h);
    const Value even = make(Op::kShl, uy & 1u, of.layout >> tmu::kLayoutY0Shift & 15u),
                pairs = make(Op::kShl, uy >> 1, of.layout >> tmu::kLayoutY1Shift & 15u);
    return deposited(y, inside) + even + pairs;
  }
  Value address(Value column, Value row, Value x, const Level& of) {
    constexpr uint32_t kFlippedBit = 14;
    const bool is_known = of.layout.id == kNoNode;
    if (is_known && !kind_.is_xor) return column + row;
    const Value flipped = is_known ? bits(1u << kFlippedBit) : of.layout >> tmu::kLayoutXor << kFlippedBit;
    return column + (row ^ (x << static_cast<uint32_t>(11 - log2_utile_width()) & flipped));
  }
  Value texel(Value address) {
    if (kind_.log2_bytes == 2) return make(Op::kGather, address, lanes_);
    const Value shift = (address & 3u) << 3;
    return make(Op::kShr, make(Op::kGather, address & ~3u, lanes_), shift);
  }

  // ---- Filters

  Channels filtered(const Coordinates& at, const Level& of, LookupKind::Filter filter) {
    if (kind_.in_float)
      return filter == LookupKind::Filter::kNearest ? nearest_value(at, of) : linear_value(at, of);
    const bool is_nearest = filter == LookupKind::Filter::kNearest;
    if (kind_.is_general)
      return is_nearest ? nearest(nearest_index(at[0], of, 0).index, nearest_index(at[1], of, 1).index, of)
                        : linear(pair_of(at[0], of, 0), pair_of(at[1], of, 1), of);
    return is_nearest ? nearest(texel_index(at[0], of, 0), texel_index(at[1], of, 1), of)
                      : linear(texel_pair(at[0], of, 0), texel_pair(at[1], of, 1), of);
  }

  /// Of bytes or halves.
  size_t num_channels() const {
    return size_t{1} << (kind_.log2_bytes - (kind_.texels == LookupKind::Texels::kHalf));
  }
  /// Channels that a format does not have.
  Channels none() { return {bits(0), bits(0), bits(0), number(1)}; }

  bool wants_floats() const { return kind_.wide || kind_.levels == LookupKind::Levels::kLinear; }
  Channels nearest(Value x, Value y, const Level& of) {
    const Value v = texel(address(column(x, of), row(y, of), x, of));
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
  Value channel_of_byte(Value texel, uint32_t n) {
    const Value byte = nearest_float(byte_of(texel, n));
    return float_sum(float_product(byte, number(65793 * 0x1p-24f)),
                     float_product(byte, number(65793 * 0x1p-48f)));
  }

  Channels linear(const Pair& x, const Pair& y, const Level& of) {
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

  /// Texels of one axis.
  struct Tap {
    Value index[2], outside[2];  ///< outside: where the border's colour applies; no node where none does
    Value weight;                ///< of the second one, 0 to 255
  };

  /// sub_texel() of sampling.h.
  Value sub_texel(Value at, const Level& of, size_t axis) {
    const Wrap wrap = kind_.wrap[axis];
    if (wrap == Wrap::kRepeat || wrap == Wrap::kMirror) {
      const bool is_mirror = wrap == Wrap::kMirror;
      const Value periods = rounded<Rounding::kDown>(is_mirror ? float_product(at, number(0.5f)) : at);
      const Value whole = is_mirror ? float_product(number(2), periods) : periods;
      at = max_floats(float_difference(at, whole), bits(0));
    }
    at = float_product(at, nearest_float(of.size[axis]));
    at = min_floats(max_floats(at, number(-32768)), number(32767));
    return truncated(rounded<Rounding::kDown>(float_product(at, number(256))));
  }
  /// wrap_index() of sampling.h.
  Value wrapped_index(Value index, const Level& of, size_t axis, Value& outside) {
    const Value size = of.size[axis], last = size - 1u, zero = bits(0);
    switch (kind_.wrap[axis]) {
      case Wrap::kRepeat:
        return kind_.offset[axis] != 0 ? modulo(index, size) : into_range(index, size);
      case Wrap::kMirror: {
        const Value period = size + size;
        const Value m = kind_.offset[axis] != 0 ? modulo(index, period) : into_range(index, period);
        return least(m, period - 1u - m);
      }
      case Wrap::kBorder:
        outside = above(zero, index) | above(index, last);
        break;
      case Wrap::kMirrorOnce:
        return least(greatest(index, 0u - 1u - index), last);
      case Wrap::kClamp:
        break;
    }
    return least(greatest(index, zero), last);
  }
  static Value into_range(Value i, Value n) {
    const Value zero = constant(*i.graph, 0);
    return i + (n & above(zero, i)) - (n & ~above(n, i));
  }
  static Value modulo(Value i, Value n) {
    const Value periods = rounded<Rounding::kDown>(float_quotient(nearest_float(i), nearest_float(n)));
    return i - truncated(periods) * n;
  }
  Value moved(Value index, size_t axis) {
    const int offset = kind_.offset[axis];
    return offset == 0 ? index : index + static_cast<uint32_t>(offset);
  }

  Tap tap_of(Value at, const Level& of, size_t axis) {
    const Value u = sub_texel(at, of, axis) - 128u;
    const Value first = moved(shifted_right_signed(u, bits(8)), axis);
    Tap tap;
    tap.weight = u & 255u;
    tap.index[0] = wrapped_index(first, of, axis, tap.outside[0]);
    tap.index[1] = wrapped_index(first + 1u, of, axis, tap.outside[1]);
    return tap;
  }

  /// As texel_pair(), of any wrap mode.
  Pair pair_of(Value at, const Level& of, size_t axis) {
    const Tap tap = tap_of(at, of, axis);
    const Value second = choose(equal_words(tap.weight, bits(0)), tap.index[0], tap.index[1]);
    return {tap.index[0], second, tap.weight};
  }

  struct Place {
    Value index, outside;
  };
  Place nearest_index(Value at, const Level& of, size_t axis) {
    const Value index = moved(shifted_right_signed(sub_texel(at, of, axis), bits(8)), axis);
    Place place;
    place.index = wrapped_index(index, of, axis, place.outside);
    return place;
  }
  Channels nearest_value(const Coordinates& at, const Level& of) {
    const Place x = nearest_index(at[0], of, 0), y = nearest_index(at[1], of, 1);
    Value base = bits(0), outside = either(x.outside, y.outside);
    if (kind_.dims == 3) {
      const Place z = nearest_index(at[2], of, 2);
      base = z.index * of.slice;
      outside = either(outside, z.outside);
    }
    return value_at(address(column(x.index, of), row(y.index, of), x.index, of) + base, outside);
  }
  Channels linear_value(const Coordinates& at, const Level& of) {
    const Tap x = tap_of(at[0], of, 0), y = tap_of(at[1], of, 1);
    const Value columns[2] = {column(x.index[0], of), column(x.index[1], of)},
                rows[2] = {row(y.index[0], of), row(y.index[1], of)};
    const auto slice = [&](Value base, Value outside) {
      Channels values[4];
      for (size_t k = 0; k < 4; ++k)
        values[k] = value_at(address(columns[k & 1], rows[k >> 1], x.index[k & 1], of) + base,
                             either(outside, either(x.outside[k & 1], y.outside[k >> 1])));
      return mixed(mixed(values[0], values[1], x.weight), mixed(values[2], values[3], x.weight), y.weight);
    };
    if (kind_.dims == 2) return slice(bits(0), {});
    const Tap z = tap_of(at[2], of, 2);
    return mixed(slice(z.index[0] * of.slice, z.outside[0]), slice(z.index[1] * of.slice, z.outside[1]),
                 z.weight);
  }

  static Value either(Value a, Value b) {
    if (a.id == kNoNode) return b;
    return b.id == kNoNode ? a : a | b;
  }

  /// What is infinite, or no number, takes no part where its weight is 0.
  Channels mixed(const Channels& a, const Channels& b, Value weight) {
    const Value of_b = float_product(nearest_float(weight), number(1.0f / 256)),
                of_a = float_difference(number(1), of_b), none = equal_words(weight, bits(0));
    const bool are_finite = kind_.compares || kind_.texels <= LookupKind::Texels::kSrgb8;
    Channels result;
    for (size_t c = 0; c < result.size(); ++c) {
      result[c] = float_sum(float_product(a[c], of_a), float_product(b[c], of_b));
      if (!are_finite || kind_.has_border) result[c] = choose(none, a[c], result[c]);
    }
    return result;
  }

  Channels value_at(Value address, Value outside) {
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

  Channels decoded(Value address) {
    using Texels = LookupKind::Texels;
    Channels result = none();
    const bool is_long = kind_.log2_bytes == 3;
    const Value v = is_long ? make(Op::kGather, address, lanes_) : texel(address);
    switch (kind_.texels) {
      case Texels::kUnorm8:
        for (uint32_t c = 0; c < num_channels(); ++c) result[c] = channel_of_byte(v, c);
        break;
      case Texels::kSrgb8:
        for (uint32_t c = 0; c < 3; ++c) result[c] = srgb_value(v, c);
        result[3] = channel_of_byte(v, 3);
        break;
      case Texels::kHalf: {
        const Value second = is_long ? make(Op::kGather, address + 4u, lanes_) : v;
        for (size_t c = 0; c < num_channels(); ++c) {
          const Value of = c < 2 ? v : second;
          result[c] = float_of_half(c % 2 == 0 ? of & 0xffffu : of >> 16);
        }
        break;
      }
      case Texels::kDepth16:
        result[0] = depth_of_16_bits(v & 0xffffu);
        break;
      case Texels::kDepth24: {
        // Of v / (2^24 - 1) no more bits than a float has: those of v, but for the last one.
        const Value n = v >> 8;
        result[0] = choose(equal_words(n, bits(0xffffff)), number(1),
                           float_product(nearest_float(n), number(0x1p-24f)));
        break;
      }
      case Texels::kFloat:
        result[0] = v;
        break;
    }
    return result;
  }
  /// v / 65535, toward zero: the 24 upper bits of v / 65536 + v / 65536^2.
  Value depth_of_16_bits(Value v) {
    const Value n = v * 0x10001u;
    const Value beyond = greatest(8u - leading_zeros(n), bits(0));
    const Value kept = n & make(Op::kShl, bits(~0u), beyond);
    const Value high = float_product(nearest_float(kept >> 16), number(0x1p-16f)),
                low = float_product(nearest_float(kept & 0xffffu), number(0x1p-32f));
    return choose(equal_words(v, bits(0xffff)), number(1), float_sum(high, low));
  }

  Value limited_to_one(Value v) { return min_floats(max_floats(v, bits(0)), number(1)); }
  /// Of each half the low byte, at the place of the upper one.
  Value shifted_halves(Value v) { return halves_product(v, bits(0x01000100)); }

  Graph& graph_;
  const LookupKind& kind_;
  const Value lanes_;
  Value minified_, reference_;
};

/// Lanes of quads of which a lane lives.
Value whole_quads(Value live) {
  const Value pairs = live | of_quad_lanes<1, 0, 3, 2>(live);
  return pairs | of_quad_lanes<2, 3, 0, 1>(pairs);
}

}  // namespace

void Lookups::configure(uint32_t uniform) {
  if (num_config_ < next_.uniforms.size()) next_.uniforms[num_config_++] = static_cast<uint16_t>(uniform);
}

bool Lookups::write(Effect port, Value v, Value exec, const char** why) {
  const auto set = [&](tmu::Parameter parameter) {
    next_.written |= parameter;
    return true;
  };
  switch (port) {
    case Effect::kTmuT:
      parameters_.t = v;
      return set(tmu::kT);
    case Effect::kTmuR:
      parameters_.r = v;
      return set(tmu::kR);
    case Effect::kTmuI:
      return set(tmu::kI);
    case Effect::kTmuB:
      parameters_.bias = v;
      return set(tmu::kB);
    case Effect::kTmuDref:
      parameters_.reference = v;
      return set(tmu::kDref);
    case Effect::kTmuOff:
      return set(tmu::kOff);
    case Effect::kTexture:
      *why = launch(tmu::Launcher::kS, v, exec);
      return true;
    case Effect::kTextureCube:
      *why = launch(tmu::Launcher::kSCm, v, exec);
      return true;
    case Effect::kTextureFetch:
      *why = launch(tmu::Launcher::kSF, v, exec);
      return true;
    case Effect::kTextureLod:
      *why = launch(tmu::Launcher::kSLod, v, exec);
      return true;
    default:
      return false;
  }
}

const char* Lookups::launch(tmu::Launcher launcher, Value s, Value exec) {
  if (num_config_ == 0) return "a lookup without configuration";
  if (found_.size() == BlockLookups::kMostLookups) return "many lookups";
  const size_t number = found_.size();
  next_.launcher = launcher;
  found_.push_back(std::exchange(next_, BlockLookup{}));
  num_config_ = 0;
  if (kinds_ == nullptr) return nullptr;
  if (number >= kinds_->size()) return "a lookup that was not there before";
  const LookupKind& kind = (*kinds_)[number];
  if (kind.none != nullptr) return kind.none;
  if (results_.size() + kind.num_words > kTmuFifo) return "many results of lookups";
  look_up(kind, s, exec);
  return nullptr;
}

void Lookups::look_up(const LookupKind& kind, Value s, Value exec) {
  const Value lanes = this->lanes(kind.per_pixel) & exec;
  LookupNodes nodes(graph_, kind, lanes);
  const std::array<Value, 4> channels =
      nodes.channels({{s, parameters_.t, parameters_.r}, parameters_.bias, parameters_.reference});
  const Value known[2] = {constant(graph_, 0), constant(graph_, bits_of(1))};
  const auto channel = [&](uint8_t n) { return n < 4 ? channels[n] : known[n - 4]; };
  // Quads without a lane that lives, now or later, do not matter.
  const bool are_whole = !kind.per_pixel && !others_may_live_ && graph_.is_constant(exec.id, ~0u);
  for (size_t n = 0; n < kind.num_words; ++n) {
    Value word = channel(kind.channel[n][0]);
    if (!kind.wide) word = half_of(word) | half_of(channel(kind.channel[n][1])) << 16;
    results_.push_back(are_whole ? word : choose(lanes, word, constant(graph_, 0)));
  }
}

Value Lookups::lanes(bool per_pixel) const { return per_pixel ? live_ : whole_quads(live_); }

bool Lookups::add_result(Value v) {
  if (results_.size() == kTmuFifo) return false;
  results_.push_back(v);
  return true;
}

Value Lookups::take() {
  if (kinds_ == nullptr) return constant(graph_, 0);
  if (results_.empty()) return {};
  const Value v = results_.front();
  results_.pop_front();
  return v;
}

}  // namespace v3d::qpu::graph
