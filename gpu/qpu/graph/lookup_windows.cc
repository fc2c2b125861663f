/// @file The texels of a linear filter by a window: where those of all lanes lie in 4x4, each is fetched and
/// decoded once, and lanes pick theirs.

#include "gpu/qpu/graph/lookup_nodes.h"

namespace v3d::qpu::graph {

namespace {

/// Of a column the number of the lane with that pixel of a block, of a row half of it: quad by quad.
Value in_quads(Value place) { return place + (place & 2u); }

}  // namespace

/// Where decoding takes longer than picking, in an image that all lanes share. Regions do not nest.
bool LookupNodes::has_window(const Level& of) const {
  const bool is_one_image = kind_.dims == 2 && !kind_.is_cube && !kind_.has_layers && of.layout.id == kNoNode;
  return ways_.picks_lanes && kind_.texels == LookupKind::Texels::kSrgb8 && !kind_.has_border &&
         !kind_.compares && is_one_image && kind_.most_probes == 1;
}

LookupNodes::Channels LookupNodes::linear_in_window(const Tap& x, const Tap& y, const Level& of) {
  constexpr uint32_t kLastInWindow = 3;
  const auto first_of = [&](const Tap& tap) {
    const Value least = least_unsigned(tap.index[0], tap.index[1]);
    return least_of_lanes(choose(lanes_, least, bits(~0u)));
  };
  const Value left = first_of(x), top = first_of(y);
  const Value columns[2] = {x.index[0] - left, x.index[1] - left},
              rows[2] = {y.index[0] - top, y.index[1] - top};
  const Value outside =
      above_unsigned(columns[0] | columns[1] | rows[0] | rows[1], bits(kLastInWindow)) & lanes_;

  uint32_t numbers[4];
  for (uint32_t& number_of : numbers) number_of = num_kept_++;
  const auto keep_all = [&](const Channels& channels) {
    for (size_t c = 0; c < 4; ++c) keep(numbers[c], channels[c]);
  };

  when(least_of_lanes(~outside));
  // Those of the window that are in the image.
  const auto place_in_block = [&](uint32_t axis) {
    return Value{&graph_, graph_.make({.op = Op::kPixel, .immediate = axis})} & kLastInWindow;
  };
  const Value column_of = left + place_in_block(0), row_of = top + place_in_block(1);
  const Value lanes = lanes_;
  lanes_ = above_unsigned(of.size[0], column_of) & above_unsigned(of.size[1], row_of);
  const Channels window = decoded(address(column(column_of, of), row(row_of, of), column_of, of));
  lanes_ = lanes;

  Channels texels[4];
  for (size_t k = 0; k < 4; ++k) {
    const Value number_of = in_quads(columns[k & 1]) | in_quads(rows[k >> 1]) << 1;
    for (size_t c = 0; c < 4; ++c)
      texels[k][c] = graph_.is_constant(window[c].id) ? window[c] : picked_lanes(window[c], number_of);
  }
  const Channels inside =
      mixed(mixed(texels[0], texels[1], x.weight), mixed(texels[2], texels[3], x.weight), y.weight);

  keep_all(inside);
  resume();

  when(outside);
  keep_all(linear_of_texels(x, y, of, {}));
  resume();
  Channels result;
  for (size_t c = 0; c < 4; ++c) result[c] = kept(numbers[c]);
  return result;
}

}  // namespace v3d::qpu::graph
