#include "gpu/pse/varyings.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "gpu/base/arithmetic.h"
#include "gpu/base/doubles.h"

namespace v3d::pse {
namespace {

/// 0 where no words are meant: what lies there are often small integers, and hosts take long for denormals.
LanesF load(const uint32_t* words, LanesI meant) {
  LanesF v;
  std::memcpy(&v, words, sizeof(v));
  return as_float(as_uint(v) & as_uint(meant));
}
template <typename V, typename T>
void store(T* to, V v) {
  static_assert(sizeof(V) % sizeof(T) == 0);
  std::memcpy(to, &v, sizeof(v));
}

/// The weights of a corner that clipping made, for quantities that are linear on the screen: those in clip
/// space, each multiplied by Wc of its vertex, over Wc of the corner.
std::array<float, 3> screen_weights(const VaryingSource& source, int corner) {
  std::array<float, 3> weights{};
  for (size_t i = 0; i < 3; ++i) {
    const float in_clip_space = source.weights[corner][i];
    const float r = std::bit_cast<float>(source.vertex[i][3]);
    if (in_clip_space != 0) weights[i] = in_clip_space * source.r[corner] / r;
  }
  return weights;
}

/// From the vertices of the original to the corners that clipping made. Equal vertices give exactly their
/// value.
void interpolate(const VaryingSource& source, const LanesI& linear, LanesF& u0, LanesF& u1, LanesF& u2) {
  const LanesF original = u0, d1 = difference(u1, u0), d2 = difference(u2, u0);
  const bool any_linear = nonzero(as_uint(linear)) != 0;
  const auto at = [&](int corner) {
    const float* weights = source.weights[corner];
    const auto weighted = [&](float w1, float w2) {
      return sum(sum(original, product(splat(w1), d1)), product(splat(w2), d2));
    };
    const LanesF in_clip_space = weighted(weights[1], weights[2]);
    if (!any_linear) return in_clip_space;
    const std::array<float, 3> on_screen = screen_weights(source, corner);
    return select(linear, weighted(on_screen[1], on_screen[2]), in_clip_space);
  };
  u0 = at(0);
  if (source.corners > 1) u1 = at(1);
  if (source.corners > 2) u2 = at(2);
}

/// make_plane() of kHostDoubles components from `first` on, 0 at corner 0; d1 and d2 are what each gains up
/// to corners 1 and 2.
void set_components(const VaryingSource& source, VaryingCoefficients& to, uint32_t first, HostD d1,
                    HostD d2) {
  const auto& [a, b] = source.spread.plane;
  store(to.value + first, one_nan(0.0 + (a.value * d1 + b.value * d2) * source.spread.scale));
  store(to.step_x + first, one_nan(a.step_x * d1 + b.step_x * d2));
  store(to.step_y + first, one_nan(a.step_y * d1 + b.step_y * d2));
}
void set_component(const VaryingSource& source, VaryingCoefficients& to, uint32_t component, float p1,
                   float p2, uint32_t c) {
  const LinearPlane plane = make_plane(source.spread, 0, double{p1}, double{p2});
  to.value[component] = plane.value;
  to.step_x[component] = plane.step_x;
  to.step_y[component] = plane.step_y;
  to.c[component] = c;
}

void set_up_implicit(const PreparedDraw& draw, const VaryingSource& source, VaryingCoefficients& to) {
  uint32_t component = 0;
  if (draw.primitive_id) set_component(source, to, component++, 0, 0, source.primitive_id);
  for (uint32_t i = 0; i < draw.implicit_position; ++i) set_component(source, to, component + i, 0, 0, 0);
  // The program multiplies all of them by W. Points are corrected for that; the line coordinate is not, and
  // programs undo it (Mesa v3d_nir_lower_line_smooth.c).
  if (draw.implicit_position == 2 && source.corners == 1) {
    set_component(source, to, component, source.r[0], 0, 0);
    set_component(source, to, component + 1, 0, source.r[0], 0);
  } else if (draw.implicit_position == 1 && source.corners == 2) {
    set_component(source, to, component, 0, 1, std::bit_cast<uint32_t>(1.0f));
  }
}

}  // namespace

void set_up_varyings(const PreparedDraw& draw, const VaryingSource& source, VaryingCoefficients& to) {
  set_up_implicit(draw, source, to);
  const uint32_t first = draw.num_implicit();
  for (uint32_t i = 0; i < draw.num_varyings; i += kLanes) {
    const uint32_t word = draw.first_varying + i, count = std::min<uint32_t>(kLanes, draw.num_varyings - i);
    const LanesI meant = by_parts<LanesI>([&](auto lane) { return lane < count; }, kLaneIndex);
    LanesF u0 = load(source.vertex[0] + word, meant), u1 = load(source.vertex[1] + word, meant),
           u2 = load(source.vertex[2] + word, meant);
    const LanesI flat = expand(draw.flat[i / kLanes]), linear = expand(draw.noperspective[i / kLanes]);
    if (source.weights[0] != nullptr) interpolate(source, linear, u0, u1, u2);
    LanesF p1 = {}, p2 = {};
    if (source.corners > 1)
      p1 = select(flat, LanesF{},
                  product(difference(u1, u0), select(linear, splat(1.0f), splat(source.r[1]))));
    if (source.corners > 2)
      p2 = select(flat, LanesF{},
                  product(difference(u2, u0), select(linear, splat(1.0f), splat(source.r[2]))));
    const Doubles d1 = widen(p1), d2 = widen(p2);
    for (uint32_t part = 0, at = 0; at < count; ++part, at += kHostDoubles)
      set_components(source, to, first + i + at, d1.part[part], d2.part[part]);
    store(to.c + first + i, select(flat, as_uint(load(source.provoking + word, meant)), as_uint(u0)));
  }
}

}  // namespace v3d::pse
