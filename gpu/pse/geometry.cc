#include "gpu/pse/geometry.h"

#include <cmath>
#include <cstdlib>
#include <utility>

#include "gpu/ptb/screen.h"

namespace v3d::pse {
namespace {

int64_t tile_center(int tile) { return int64_t{tile} * kSubpixels + kSubpixels / 2; }

/// Weights that are 0 at (x, y) and grow by a and b in each 1/64 px.
Weights anchored_at(int32_t x, int32_t y, int tile_x, int tile_y, double scale) {
  constexpr double kPixel = 1.0 / kSubpixels;
  return {static_cast<double>(x - tile_center(tile_x)) * kPixel,
          static_cast<double>(y - tile_center(tile_y)) * kPixel,
          scale,
          {}};
}
WeightPlane exact_plane(int64_t a, int64_t b) {
  return {0, static_cast<double>(a * kSubpixels), static_cast<double>(b * kSubpixels)};
}

void set_bounds(Geometry& g, const std::pair<int32_t, int32_t>* corners, int count) {
  g.min_x = g.max_x = corners[0].first;
  g.min_y = g.max_y = corners[0].second;
  for (int i = 1; i < count; ++i) {
    g.min_x = std::min(g.min_x, corners[i].first);
    g.max_x = std::max(g.max_x, corners[i].first);
    g.min_y = std::min(g.min_y, corners[i].second);
    g.max_y = std::max(g.max_y, corners[i].second);
  }
}

/// Edges and bounds of a parallelogram given in either direction. False when it has no area.
bool set_parallelogram(Geometry& g, std::array<std::pair<int32_t, int32_t>, 4> corners) {
  const Edge diagonal = make_edge(corners[0].first, corners[0].second, corners[1].first, corners[1].second);
  const int64_t area = diagonal.a * corners[2].first + diagonal.b * corners[2].second + diagonal.c;
  if (area == 0) return false;
  if (area < 0) std::swap(corners[1], corners[3]);
  g.num_edges = 4;
  for (size_t i = 0; i < 4; ++i) {
    const auto [x0, y0] = corners[i];
    const auto [x1, y1] = corners[(i + 1) & 3];
    g.edges[i] = with_fill_rule(make_edge(x0, y0, x1, y1));
  }
  set_bounds(g, corners.data(), 4);
  return true;
}

int64_t floor_div(int64_t a, int64_t b) { return a / b - ((a % b != 0) & ((a ^ b) < 0)); }

}  // namespace

Rect covered_bounds(const Geometry& g, bool multisample) {
  constexpr int kCenter = kSubpixels / 2;
  const int reach = multisample ? 24 : 0;  // of the samples, to both sides of the centre
  const int low = kCenter - reach, high = kCenter + reach;
  return {(g.min_x - high + kSubpixels - 1) >> kSubpixelBits,
          (g.min_y - high + kSubpixels - 1) >> kSubpixelBits, ((g.max_x - low) >> kSubpixelBits) + 1,
          ((g.max_y - low) >> kSubpixelBits) + 1};
}

bool triangle_geometry(const std::array<Corner, 3>& corners, int tile_x, int tile_y, Geometry& g) {
  const auto& [v0, v1, v2] = corners;
  if (!in_range(v0) || !in_range(v1) || !in_range(v2)) return false;
  const std::array<Edge, 3> opposite = {make_edge(v1.x, v1.y, v2.x, v2.y), make_edge(v2.x, v2.y, v0.x, v0.y),
                                        make_edge(v0.x, v0.y, v1.x, v1.y)};
  const int64_t area = opposite[0].a * v0.x + opposite[0].b * v0.y + opposite[0].c;
  if (area == 0) return false;
  g.weights = anchored_at(v0.x, v0.y, tile_x, tile_y, 1.0 / static_cast<double>(area));
  g.weights.plane = {exact_plane(opposite[1].a, opposite[1].b), exact_plane(opposite[2].a, opposite[2].b)};
  g.num_edges = 3;
  for (size_t i = 0; i < 3; ++i) {
    const Edge& e = opposite[i];
    g.edges[i] = with_fill_rule(area > 0 ? e : Edge{-e.a, -e.b, -e.c});
  }
  const std::pair<int32_t, int32_t> points[3] = {{v0.x, v0.y}, {v1.x, v1.y}, {v2.x, v2.y}};
  set_bounds(g, points, 3);
  return true;
}

bool line_geometry(const Corner& from, const Corner& to, float width, int tile_x, int tile_y, Geometry& g) {
  if (!in_range(from) || !in_range(to) || !(width > 0)) return false;
  const int64_t dx = int64_t{to.x} - from.x, dy = int64_t{to.y} - from.y;
  if (dx == 0 && dy == 0) return false;
  const auto square = static_cast<double>(dx * dx + dy * dy);
  const double length = std::sqrt(square);
  const double across = ptb::clamp_size(width, ptb::kMaxLineWidth) * kSubpixels;
  const auto nx = static_cast<int32_t>(std::nearbyint(static_cast<double>(-dy) / length * across / 2));
  const auto ny = static_cast<int32_t>(std::nearbyint(static_cast<double>(dx) / length * across / 2));
  if (!set_parallelogram(g, {{{from.x - nx, from.y - ny},
                              {to.x - nx, to.y - ny},
                              {to.x + nx, to.y + ny},
                              {from.x + nx, from.y + ny}}}))
    return false;
  const Edge sideways = make_edge(from.x, from.y, to.x, to.y);
  const double per_width = kSubpixels * length / across;
  g.weights = anchored_at(from.x, from.y, tile_x, tile_y, 1.0 / square);
  g.weights.plane = {exact_plane(dx, dy),
                     {square / -2, static_cast<double>(sideways.a) * per_width,
                      static_cast<double>(sideways.b) * per_width}};
  return true;
}

bool point_geometry(const Corner& center, float size, int tile_x, int tile_y, Geometry& g) {
  if (!in_range(center) || !(size > 0)) return false;
  const auto side =
      static_cast<int32_t>(std::nearbyint(ptb::clamp_size(size, ptb::kMaxPointSize) * kSubpixels));
  const int32_t left = center.x - side / 2, top = center.y - side / 2;
  if (!set_parallelogram(g,
                         {{{left, top}, {left + side, top}, {left + side, top + side}, {left, top + side}}}))
    return false;
  g.weights = anchored_at(left, top + side, tile_x, tile_y, 1.0 / side);
  g.weights.plane = {exact_plane(1, 0), exact_plane(0, -1)};
  return true;
}

void diamond_exit_line(const Corner& from, const Corner& to, float width, int tile_x, int tile_y,
                       const Rect& window, TileBitmap& bitmap) {
  if (!in_range(from) || !in_range(to) || !(width > 0)) return;
  // u is the major axis, v the minor one, relative to the tile.
  const int64_t x0 = from.x - int64_t{tile_x} * kSubpixels, y0 = from.y - int64_t{tile_y} * kSubpixels;
  const int64_t x1 = to.x - int64_t{tile_x} * kSubpixels, y1 = to.y - int64_t{tile_y} * kSubpixels;
  const bool x_major = std::llabs(x1 - x0) >= std::llabs(y1 - y0);
  const int64_t u0 = x_major ? x0 : y0, u1 = x_major ? x1 : y1;
  const int64_t pixels = std::max(1L, std::lrintf(ptb::clamp_size(width, ptb::kMaxLineWidth)));
  const int64_t shift = (pixels - 1) * (kSubpixels / 2);
  const int64_t v0 = (x_major ? y0 : x0) - shift, v1 = (x_major ? y1 : x1) - shift;
  const int64_t du = u1 - u0, dv = v1 - v0;
  if (du == 0) return;
  const int u_begin = x_major ? window.left : window.top, u_end = x_major ? window.right : window.bottom;
  const int v_begin = x_major ? window.top : window.left, v_end = x_major ? window.bottom : window.right;
  const int64_t first = std::max<int64_t>(u_begin, (std::min(u0, u1) >> kSubpixelBits) - 1);
  const int64_t last = std::min<int64_t>(u_end - 1, (std::max(u0, u1) >> kSubpixelBits) + 1);
  for (int64_t u = first; u <= last; ++u) {
    const int64_t center_u = u * kSubpixels + kSubpixels / 2;
    // The row whose diamond the infinite line crosses in this column. Ties are broken by moving the line by
    // (e, -e^2) in x and y.
    const int64_t numerator = v0 * du + dv * (center_u - u0), denominator = du * kSubpixels;
    int64_t v = floor_div(numerator, denominator);
    const bool moves_back = x_major && (dv == 0 || (dv > 0) == (du > 0));
    if (v * denominator == numerator && moves_back) v -= 1;
    const int64_t center_v = v * kSubpixels + kSubpixels / 2;
    // The line leaves the diamond on the side of its direction; that must happen between the two ends.
    const auto has_left = [&](int64_t end_u, int64_t end_v) {
      const int64_t ahead = du > 0 ? end_u - center_u : center_u - end_u;
      if (ahead <= 0) return false;
      const int64_t distance = ahead + std::llabs(end_v - center_v);
      if (distance != kSubpixels / 2) return distance > kSubpixels / 2;
      return x_major ? du > 0 : end_v >= center_v;
    };
    if (has_left(u0, v0) || !has_left(u1, v1)) continue;
    for (int64_t w = std::max<int64_t>(v, v_begin); w < std::min<int64_t>(v + pixels, v_end); ++w) {
      if (x_major)
        bitmap[static_cast<size_t>(w)] |= uint64_t{1} << u;
      else
        bitmap[static_cast<size_t>(u)] |= uint64_t{1} << w;
    }
  }
}

}  // namespace v3d::pse
