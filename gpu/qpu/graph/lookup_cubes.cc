/// @file Lookups of cube maps: gpu/tmu/lookup/cube.h on nodes.

#include "gpu/qpu/graph/lookup_nodes.h"

namespace v3d::qpu::graph {
namespace {

constexpr uint32_t kSign = 0x80000000;

Value negated_where(Value mask, Value v) { return v ^ (mask & kSign); }

/// What lies beyond an edge, a bit for each edge of each face (S below 0, S from the size on, T likewise):
/// the bits of the face there; whether S runs along the edge there, or T; whether that runs the other way;
/// and whether the other one is the last.
constexpr uint32_t kFaceBeyond[3] = {0xa9959a, 0xcc00cc, 0x00cc33}, kAlongS = 0xccff00, kTurned = 0xc09684,
                   kAtEnd = 0x95f01d;

Value bit_of(uint32_t bits, Value edge) { return bits >> edge & 1u; }
Value mask_of(uint32_t bits, Value edge) { return -bit_of(bits, edge); }

}  // namespace

/// The coordinates in the face by the largest component; keeps the face.
LookupNodes::Coordinates LookupNodes::project(const Coordinates& direction) {
  const auto& [x, y, z] = direction;
  const auto magnitude = [](Value v) { return v & ~kSign; };
  const Value of_x = magnitude(x), of_y = magnitude(y), of_z = magnitude(z);
  const Value is_x = at_most_floats(of_y, of_x) & at_most_floats(of_z, of_x),
              is_y = ~is_x & at_most_floats(of_z, of_y);
  const Value major = choose(is_x, x, choose(is_y, y, z)), is_negative = below_floats(major, bits(0));
  face_ = choose(is_x, bits(0), choose(is_y, bits(2), bits(4))) + (is_negative & 1u);
  const Value s = negated_where(choose(is_x, ~is_negative, ~is_y & is_negative), choose(is_x, z, x)),
              t = negated_where(is_negative | ~is_y, choose(is_y, z, y));
  const auto in_face = [&](Value v) {
    const Value projected = float_quotient(v, magnitude(major));
    return float_product(float_sum(projected, number(1)), number(0.5f));
  };
  return {in_face(s), in_face(t), {}};
}

/// Derivatives::add_cube(): the square of the longer way that the quad goes.
Value LookupNodes::footprint_of_cube(const Coordinates& direction) {
  const Value scale = float_product(number(0.5f), word(TextureWord::kBaseWidth));
  const auto way = [&](const auto& neighbour_of) {
    Value sum;
    for (size_t axis = 0; axis < direction.size(); ++axis) {
      const Value origin = of_quad_lanes<0, 0, 0, 0>(direction[axis]);
      const Value distance = float_difference(neighbour_of(direction[axis]), origin) & ~kSign;
      sum = axis == 0 ? distance : float_sum(sum, distance);
    }
    return float_product(float_product(float_product(sum, sum), scale), scale);
  };
  return max_floats(way(of_quad_lanes<1, 1, 1, 1>), way(of_quad_lanes<2, 2, 2, 2>));
}

/// Where the four texels are not all in the face, what they give otherwise: few blocks have such lanes.
/// @param inside  for the others
LookupNodes::Channels LookupNodes::across_edges(const Coordinates& at, const Level& of,
                                                const Channels& inside) {
  const auto is_inside = [&](size_t axis) {
    const Value place = float_product(at[axis], of.scale[axis]);
    return at_most_floats(number(128), place) & below_floats(place, of.last[axis]);
  };
  const Value crosses = ~(is_inside(0) & is_inside(1)) & lanes_;
  return only_where(crosses, inside, [&] {
    Channels edge = edge_value(at, of);
    for (size_t c = 0; c < edge.size(); ++c) edge[c] = choose(crosses, edge[c], inside[c]);
    return edge;
  });
}

/// sample_cube_edge() of gpu/tmu/lookup/sample.cc.
LookupNodes::Channels LookupNodes::edge_value(const Coordinates& at, const Level& of) {
  EdgeTap taps[2];
  for (size_t axis = 0; axis < 2; ++axis) {
    const Value u = sub_texel(at[axis], of, axis) - 128u, first = shifted_right_signed(u, bits(8));
    taps[axis].weight = u & 255u;
    for (uint32_t k = 0; k < 2; ++k) {
      EdgeTexel& texel = taps[axis].texel[k];
      texel.index = least(greatest(first + k, bits(~0u)), of.size[axis]);
      texel.is_below = above(bits(0), texel.index);
      texel.is_beyond = texel.is_below | ~above(of.size[axis], texel.index);
    }
  }
  Channels texels[4];
  for (size_t k = 0; k < 4; ++k)
    texels[k] = value_at(edge_address(taps[0].texel[k & 1], taps[1].texel[k >> 1], of), {});
  for (size_t k = 0; k < 4; ++k) {
    const Value is_corner = taps[0].texel[k & 1].is_beyond & taps[1].texel[k >> 1].is_beyond;
    for (size_t c = 0; c < 4; ++c) {
      const auto neighbour = [&](size_t n) { return texels[(k + n) & 3][c]; };
      const Value sum = float_sum(float_sum(neighbour(1), neighbour(2)), neighbour(3));
      texels[k][c] = choose(is_corner, float_product(sum, number(1.0f / 3)), texels[k][c]);
    }
  }
  return mixed(mixed(texels[0], texels[1], taps[0].weight), mixed(texels[2], texels[3], taps[0].weight),
               taps[1].weight);
}

/// across_edges() of cube.h.
Value LookupNodes::edge_address(const EdgeTexel& i, const EdgeTexel& j, const Level& of) {
  const Value last = of.size[0] - 1u;
  const Value edge = (face_ << 2) + choose(i.is_beyond, i.is_below + 1u, j.is_below + 3u);
  Value along = choose(i.is_beyond, least(greatest(j.index, bits(0)), last), i.index);
  along = choose(mask_of(kTurned, edge), last - along, along);
  const Value other = mask_of(kAtEnd, edge) & last, is_along_s = mask_of(kAlongS, edge);
  const Value face =
      bit_of(kFaceBeyond[0], edge) | bit_of(kFaceBeyond[1], edge) << 1 | bit_of(kFaceBeyond[2], edge) << 2;
  const Value crosses = i.is_beyond | j.is_beyond;
  const Value s = choose(crosses, choose(is_along_s, along, other), i.index),
              t = choose(crosses, choose(is_along_s, other, along), j.index);
  const Value to_face = ((face - face_) & crosses) * word(TextureWord::kLayerSize);
  return address(column(s, of), row(t, of), s, of) + to_face;
}

}  // namespace v3d::qpu::graph
