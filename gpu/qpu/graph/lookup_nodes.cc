#include "gpu/qpu/graph/lookup_nodes.h"

namespace v3d::qpu::graph {
namespace {

constexpr uint32_t mask_of(int bits) { return (1u << bits) - 1; }

Value into_range(Value i, Value n) {
  const Value zero = constant(*i.graph, 0);
  return i + (n & above(zero, i)) - (n & ~above(n, i));
}
Value modulo(Value i, Value n) {
  const Value periods = rounded<Rounding::kDown>(float_quotient(nearest_float(i), nearest_float(n)));
  return i - truncated(periods) * n;
}

}  // namespace

Value LookupNodes::word(TextureWord which) {
  return {&graph_, graph_.make({.op = Op::kTextureWord, .immediate = texture_word(kind_.texture, which)})};
}

/// finish() of gpu/tmu/lookup/plan.h.
LookupNodes::Channels LookupNodes::words(const Point& point) {
  const Channels channels = this->channels(point);
  const Value known[2] = {bits(0), one()};
  const auto channel = [&](uint8_t n) { return n < 4 ? channels[n] : known[n - 4]; };
  Channels words = {};
  for (size_t n = 0; n < kind_.num_words; ++n) {
    const Value low = channel(kind_.channel[n][0]), high = channel(kind_.channel[n][1]);
    words[n] = kind_.wide       ? low
               : kind_.integers ? (low & 0xffffu) | high << 16
                                : half_of(low) | half_of(high) << 16;
  }
  return words;
}

LookupNodes::Channels LookupNodes::channels(const Point& point) {
  if (kind_.is_fetch) return fetched(point);
  const Coordinates at = kind_.is_cube ? project(point.at) : point.at;
  if (kind_.has_layers || kind_.is_cube) set_layer(point.layer);
  if (kind_.compares) reference_ = kind_.clamps_reference ? limited_to_one(point.reference) : point.reference;
  if (kind_.most_probes > 1) return anisotropic(point);
  const bool has_footprint = kind_.levels != LookupKind::Levels::kBase && !kind_.tells_level;
  return of_levels(at, choose_levels(point, has_footprint ? footprint(point.at) : Value{}));
}

// ---- Levels

/// array_layer() of gpu/tmu/lookup/sample.cc, and the face.
void LookupNodes::set_layer(Value layer) {
  Value number_of = face_;
  if (kind_.has_layers) {
    const Value nearest = rounded<Rounding::kDown>(float_sum(layer, number(0.5f)));
    number_of = truncated(min_floats(max_floats(nearest, bits(0)), word(TextureWord::kLastLayer)));
    if (kind_.is_cube) number_of = number_of * 6u + face_;
  }
  layer_ = number_of * word(TextureWord::kLayerSize);
}
LookupNodes::Level LookupNodes::base_level() {
  return {.address = in_layer(word(TextureWord::kAddress)),
          .column_pitch = word(TextureWord::kColumnPitch),
          .size = {word(TextureWord::kWidth), word(TextureWord::kHeight), word(TextureWord::kDepth)},
          .scale = {word(TextureWord::kScaleX), word(TextureWord::kScaleY)},
          .last = {word(TextureWord::kLastX), word(TextureWord::kLastY)},
          .layout = {},
          .slice = word(TextureWord::kSliceSize)};
}
LookupNodes::Level LookupNodes::base_of_levels() {
  Level level = base_level();
  level.layout = word(TextureWord::kLayout);
  return level;
}
Value LookupNodes::level_word(Value level, tmu::LevelWord which) {
  return make_with(Op::kLevelWord, level, kind_.texture * tmu::kLevelWords + static_cast<uint32_t>(which));
}
LookupNodes::Level LookupNodes::level(Value number_of) {
  const Value sizes = level_word(number_of, tmu::LevelWord::kSizes),
              layout = level_word(number_of, tmu::LevelWord::kLayout);
  Level level = {.address = in_layer(level_word(number_of, tmu::LevelWord::kAddress)),
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
LookupNodes::Level LookupNodes::slice_of(const Level& of, Value number_of) {
  Level slice = of;
  slice.address = of.address + number_of * of.slice;
  return slice;
}
/// Of each lane by its own filter.
LookupNodes::Channels LookupNodes::of_level(const Coordinates& at, Value number_of) {
  const Level of = level(number_of);
  const Channels magnified = filtered(at, of, kind_.filter);
  if (kind_.minifying == kind_.filter) return magnified;
  Channels result = filtered(at, of, kind_.minifying);
  for (size_t c = 0; c < result.size(); ++c) result[c] = choose(minified_, result[c], magnified[c]);
  return result;
}

/// log2() of gpu/base/vector.h, of a square.
Value LookupNodes::log2_of_square(Value squared) {
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
/// The square of the longer side of that of the quad.
Value LookupNodes::footprint(const Coordinates& at) {
  if (kind_.is_cube) return footprint_of_cube(at);
  const Sides sides = sides_of_footprint(at);
  return max_floats(sides.x, sides.y);
}
LookupNodes::Sides LookupNodes::sides_of_footprint(const Coordinates& at) {
  const Value sizes[3] = {word(TextureWord::kBaseWidth), word(TextureWord::kBaseHeight),
                          word(TextureWord::kBaseDepth)};
  const auto square = [&](Value neighbour, Value origin, size_t axis) {
    const Value distance = float_product(float_difference(neighbour, origin), sizes[axis]);
    return float_product(distance, distance);
  };
  Sides sides;
  for (size_t axis = 0; axis < kind_.dims; ++axis) {
    const Value origin = of_quad_lanes<0, 0, 0, 0>(at[axis]);
    const Value x = square(of_quad_lanes<1, 1, 1, 1>(at[axis]), origin, axis),
                y = square(of_quad_lanes<2, 2, 2, 2>(at[axis]), origin, axis);
    sides.x = axis == 0 ? x : float_sum(sides.x, x);
    sides.y = axis == 0 ? y : float_sum(sides.y, y);
  }
  return sides;
}
/// unclamped_lod() and choose_levels() of gpu/tmu/lookup/sampling.h.
/// @param footprint  the square of a side; no node where the program tells the level
LookupNodes::Choice LookupNodes::choose_levels(const Point& point, Value footprint) {
  using Levels = LookupKind::Levels;
  if (kind_.levels == Levels::kBase) return {};
  Value detail = kind_.tells_level ? number(0) : log2_of_square(footprint);
  if (kind_.has_bias) detail = float_sum(detail, point.bias);
  detail = limited(float_sum(detail, word(TextureWord::kBias)));
  const Value over = greatest(detail, bits(0));
  minified_ = above(detail, bits(0));
  const Value base = word(TextureWord::kBaseLevel), last = word(TextureWord::kLastLevel);
  if (kind_.levels == Levels::kNearest) return {least(base + ((over + 128u) >> 8), last), {}, {}};
  const Value level = least(base + (over >> 8), last);
  return {level, least(level + 1u, last), above(last, level) & over & 255u};
}
LookupNodes::Channels LookupNodes::of_levels(const Coordinates& at, const Choice& choice) {
  if (kind_.levels == LookupKind::Levels::kBase) return filtered(at, base_level(), kind_.filter);
  // Regions do not nest.
  if (ways_.leaves_out_levels && !kind_.is_cube && kind_.most_probes == 1)
    return of_wanted_levels(at, choice);
  const Channels first = of_level(at, choice.level);
  return choice.next.id == kNoNode ? first : mixed(first, of_level(at, choice.next), choice.weight);
}
/// Lanes that magnify have the base level alone, which is found in fewer operations.
LookupNodes::Channels LookupNodes::of_wanted_levels(const Coordinates& at, const Choice& choice) {
  const Channels magnified =
      first_where(lanes_ & ~minified_, [&] { return filtered(at, base_of_levels(), kind_.filter); });
  const Channels first = only_where(lanes_ & minified_, magnified, [&] {
    Channels result = filtered(at, level(choice.level), kind_.minifying);
    for (size_t c = 0; c < result.size(); ++c) result[c] = choose(minified_, result[c], magnified[c]);
    return result;
  });
  if (choice.next.id == kNoNode) return first;
  return only_where(lanes_ & above(choice.weight, bits(0)), first, [&] {
    return mixed(first, filtered(at, level(choice.next), kind_.minifying), choice.weight);
  });
}
/// In 1/256, by the sampler's limits.
Value LookupNodes::limited(Value detail) {
  detail = min_floats(max_floats(detail, number(-64)), number(64));
  const Value fixed = truncated(rounded<Rounding::kDown>(float_product(detail, number(256))));
  return least(greatest(fixed, word(TextureWord::kLeastDetail)), word(TextureWord::kMostDetail));
}

// ---- Coordinates

/// In 1/256 texels: from 0 to 256 n if repeated, or twice that if mirrored.
Value LookupNodes::scaled(Value at, const Level& of, size_t axis) {
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
Value LookupNodes::clamped(Value at, const Level& of, size_t axis, float least) {
  return min_floats(max_floats(at, number(least)), of.last[axis]);
}
/// Of an index at most one outside. The least of numbers without sign is the one in range.
Value LookupNodes::wrapped(Value index, const Level& of, size_t axis, bool below) {
  const Wrap wrap = kind_.wrap[axis];
  if (wrap == Wrap::kClamp) return index;
  const Value period = wrap == Wrap::kMirror ? of.size[axis] + of.size[axis] : of.size[axis];
  index = least_unsigned(index, below ? index + period : index - period);
  if (wrap == Wrap::kRepeat) return index;
  return least_unsigned(index, period - index + ~0u);
}
Value LookupNodes::texel_index(Value at, const Level& of, size_t axis) {
  at = scaled(at, of, axis);
  if (kind_.wrap[axis] == Wrap::kClamp) at = clamped(at, of, axis, 0);
  return wrapped(truncated(at) >> 8, of, axis, false);
}
/// The two texels around a coordinate: where it is the centre of one, twice that.
LookupNodes::Pair LookupNodes::texel_pair(Value at, const Level& of, size_t axis) {
  constexpr uint32_t kHalfTexel = 128, kAlmostOne = 255;
  at = scaled(at, of, axis);
  if (kind_.wrap[axis] == Wrap::kClamp) at = clamped(at, of, axis, kHalfTexel);
  const Value place = truncated(at) + (0u - kHalfTexel);
  const auto whole = [&](Value v) { return shifted_right_signed(v, bits(8)); };
  return {wrapped(whole(place), of, axis, true), wrapped(whole(place + kAlmostOne), of, axis, false), place};
}

// ---- Coordinates of values that are blended: gpu/tmu/lookup/sampling.h

/// sub_texel() of sampling.h.
Value LookupNodes::sub_texel(Value at, const Level& of, size_t axis) {
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
Value LookupNodes::wrapped_index(Value index, const Level& of, size_t axis, Value& outside) {
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
Value LookupNodes::moved(Value index, size_t axis) {
  const int8_t offset = kind_.offset[axis];
  return offset == 0 ? index : index + static_cast<uint32_t>(offset);
}

LookupNodes::Tap LookupNodes::tap_of(Value at, const Level& of, size_t axis) {
  // Beyond a clamped edge a texel is blended with itself, which in float makes a difference.
  if (is_usual(axis) && !(kind_.in_float && kind_.wrap[axis] == Wrap::kClamp)) {
    // A texel of weight 0 takes no part, whichever it is.
    const Pair pair = texel_pair(at, of, axis);
    return {{pair.first, pair.second}, {}, pair.weight & 255u};
  }
  const Value u = sub_texel(at, of, axis) - 128u;
  const Value first = moved(shifted_right_signed(u, bits(8)), axis);
  Tap tap;
  tap.weight = u & 255u;
  tap.index[0] = wrapped_index(first, of, axis, tap.outside[0]);
  tap.index[1] = wrapped_index(first + 1u, of, axis, tap.outside[1]);
  return tap;
}

/// As texel_pair(), of any wrap mode.
LookupNodes::Pair LookupNodes::pair_of(Value at, const Level& of, size_t axis) {
  if (is_usual(axis)) return texel_pair(at, of, axis);
  const Tap tap = tap_of(at, of, axis);
  const Value second = choose(equal_words(tap.weight, bits(0)), tap.index[0], tap.index[1]);
  return {tap.index[0], second, tap.weight};
}

LookupNodes::Place LookupNodes::nearest_index(Value at, const Level& of, size_t axis) {
  if (is_usual(axis)) return {texel_index(at, of, axis), {}};
  const Value index = moved(shifted_right_signed(sub_texel(at, of, axis), bits(8)), axis);
  Place place;
  place.index = wrapped_index(index, of, axis, place.outside);
  return place;
}

// ---- Addresses: column() and row() of gpu/tmu/lookup/addressing.h

Value LookupNodes::column(Value x, const Level& of) {
  const auto w = static_cast<uint32_t>(log2_utile_width());
  const uint32_t inside = mask_of(log2_utile_width()) << kind_.log2_bytes | 1u << 6;
  // A sum of products of halves takes less time than a product of words.
  const Value columns = half_products(x >> (w + 3), of.column_pitch);
  const Value begin = columns << 9;
  if (of.layout.id == kNoNode) return deposited(x, inside | 3u << kind_.x_shift) + begin + of.address;
  const Value shift = of.layout >> tmu::kLayoutXShift & 15u;
  return deposited(x, inside) + make(Op::kShl, x >> (w + 1) & 3u, shift) + begin + of.address;
}
Value LookupNodes::row(Value y, const Level& of) {
  const int w = log2_utile_width(), h = log2_utile_height();
  const uint32_t inside = mask_of(h) << (kind_.log2_bytes + w);
  if (of.layout.id == kNoNode) return deposited(y, inside | 1u << kind_.y0_shift | ~mask_of(kind_.y1_shift));
  const Value uy = y >> static_cast<uint32_t>(h);
  const Value even = make(Op::kShl, uy & 1u, of.layout >> tmu::kLayoutY0Shift & 15u),
              pairs = make(Op::kShl, uy >> 1, of.layout >> tmu::kLayoutY1Shift & 15u);
  return deposited(y, inside) + even + pairs;
}
Value LookupNodes::address(Value column, Value row, Value x, const Level& of) {
  constexpr uint32_t kFlippedBit = 14;
  const bool is_known = of.layout.id == kNoNode;
  if (is_known && !kind_.is_xor) return column + row;
  const Value flipped = is_known ? bits(1u << kFlippedBit) : of.layout >> tmu::kLayoutXor << kFlippedBit;
  return column + (row ^ (x << static_cast<uint32_t>(11 - log2_utile_width()) & flipped));
}
Value LookupNodes::texel(Value address) {
  if (kind_.log2_bytes >= 2) return gathered(address, 0);
  const Value shift = (address & 3u) << 3;
  return make(Op::kShr, gathered(address & ~3u, 0), shift);
}
Value LookupNodes::gathered(Value address, uint32_t offset) {
  return {
      &graph_,
      graph_.make({.op = Op::kGather, .operands = {address.id, lanes_.id, kNoNode}, .immediate = offset})};
}

// ---- Texels by integers: find_target() of gpu/tmu/lookup/fetch.cc

LookupNodes::Level LookupNodes::fetched_level(const Point& point, Value& exists) {
  if (!kind_.has_bias || graph_.is_constant(point.bias.id, 0)) return base_level();
  const Value base = word(TextureWord::kBaseLevel);
  exists = exists & ~above_unsigned(point.bias, word(TextureWord::kLastLevel) - base);
  return level(base + point.bias);
}

LookupNodes::Texel LookupNodes::fetched_texel(const Point& point) {
  Value exists = bits(~0u);
  const auto is_below = [&](Value v, Value size) { exists = exists & above_unsigned(size, v); };
  if (kind_.has_layers) {
    is_below(point.layer, word(TextureWord::kLastLayer));
    layer_ = point.layer * word(TextureWord::kLayerSize);
  }
  Level of = fetched_level(point, exists);
  const auto& [x, y, z] = point.at;
  is_below(x, of.size[0]);
  if (kind_.dims == 1) return {of.address + (x << kind_.log2_bytes), exists};
  is_below(y, of.size[1]);
  if (kind_.dims == 3) {
    is_below(z, of.size[2]);
    of = slice_of(of, z);
  }
  return {address(column(x, of), row(y, of), x, of), exists};
}

}  // namespace v3d::qpu::graph
