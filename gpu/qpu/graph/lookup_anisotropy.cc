/// @file Lookups with anisotropy: run_anisotropic() of gpu/tmu/lookup/sample.cc on nodes.

#include "gpu/qpu/graph/lookup_nodes.h"

namespace v3d::qpu::graph {

LookupNodes::Channels LookupNodes::anisotropic(const Point& point) {
  const Sides sides = sides_of_footprint(point.at);
  const Value x_is_longer = at_most_floats(sides.y, sides.x);
  const Value longer = choose(x_is_longer, sides.x, sides.y), shorter = choose(x_is_longer, sides.y, sides.x),
              at_least_texel = max_floats(shorter, number(1));
  Value number_of = bits(1);
  for (int n = 1; n < kind_.most_probes; ++n)
    number_of =
        number_of - below_floats(float_product(at_least_texel, number(static_cast<float>(n * n))), longer);
  const Value count = nearest_float(number_of);
  const Value reduced = float_quotient(longer, float_product(count, count));
  // The other side is taken for none.
  const Choice choice = choose_levels(point, max_floats(reduced, bits(0)));
  Value step[2];
  for (size_t axis = 0; axis < 2; ++axis) {
    const Value v = point.at[axis];
    step[axis] =
        float_difference(choose(x_is_longer, of_quad_lanes<1, 1, 1, 1>(v), of_quad_lanes<2, 2, 2, 2>(v)),
                         of_quad_lanes<0, 0, 0, 0>(v));
  }
  return probes(point.at, choice, step, count, number_of);
}

/// The mean of lookups, of which each lane takes part in its number.
LookupNodes::Channels LookupNodes::probes(const Coordinates& at, const Choice& choice, const Value (&step)[2],
                                          Value count, Value number_of) {
  const uint32_t done = num_kept_++, first_total = num_kept_;
  num_kept_ += 4;
  const Value wanted = lanes_;
  keep(done, bits(0));
  for (uint32_t c = 0; c < 4; ++c) keep(first_total + c, bits(0));
  when(wanted);
  const Value k = kept(done);
  lanes_ = wanted & above(number_of, k);
  const Value along =
      float_difference(float_quotient(float_sum(nearest_float(k), number(0.5f)), count), number(0.5f));
  Coordinates of_probe;
  for (size_t axis = 0; axis < 2; ++axis)
    of_probe[axis] = float_sum(at[axis], float_product(step[axis], along));
  const Channels probe = of_levels(of_probe, choice);
  for (uint32_t c = 0; c < 4; ++c) {
    const Value total = kept(first_total + c);
    keep(first_total + c, choose(lanes_, float_sum(total, probe[c]), total));
  }
  const Value next = k + 1u;
  keep(done, next);
  graph_.make({.op = Op::kAgain, .operands = {(wanted & above(number_of, next)).id, kNoNode, kNoNode}});
  resume();
  lanes_ = wanted;
  Channels mean;
  for (uint32_t c = 0; c < 4; ++c) mean[c] = float_quotient(kept(first_total + c), count);
  return mean;
}

}  // namespace v3d::qpu::graph
