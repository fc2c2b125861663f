/// The set-up of primitives gives edges for the coverage, and the weights by which depth, 1/W and varyings
/// spread over the screen (cle-and-tiles.md 4, 5.4).
#pragma once

#include <array>
#include <cstdint>
#include <limits>

#include "gpu/pse/coverage.h"

namespace v3d::pse {

/// A vertex or a corner left by clipping, on the screen.
struct Corner {
  int32_t x, y;  ///< 1/64 px, absolute
  float z;       ///< window depth
  float r;       ///< 1/Wc
};

/// (value + x * step_x + y * step_y) * scale at x and y pixels from the anchor. The weights of triangles and
/// points are whole numbers below 2^53 before the scale, so they are exact.
struct WeightPlane {
  double value = 0, step_x = 0, step_y = 0;
};

/// Two weights, and what their planes have in common. The anchor belongs to the primitive, so that a pixel
/// gets the same bits whatever the tiles are (dEQP-VK
/// draw.renderpass.output_location.array.r32-sfloat-highp).
struct Weights {
  double anchor_x = 0, anchor_y = 0;  ///< a point, in pixels from the centre of the first pixel of the tile
  double scale = 0;
  std::array<WeightPlane, 2> plane;
};

/// value + (x * step_x + y * step_y) * scale at x and y pixels from the anchor. What is equal at all corners
/// has steps of 0 and the exact value.
struct LinearPlane {
  double value = 0, step_x = 0, step_y = 0;
};
/// The plane of a quantity with value q0 at corner 0; d1 and d2 are the differences of corners 1 and 2. NaNs
/// become the one that undefined operations give, so that sums of any order are the same bit by bit.
inline LinearPlane make_plane(const Weights& weights, double q0, double d1, double d2) {
  const auto& [a, b] = weights.plane;
  const auto one_nan = [](double v) { return v == v ? v : -std::numeric_limits<double>::quiet_NaN(); };
  return {one_nan(q0 + (a.value * d1 + b.value * d2) * weights.scale), one_nan(a.step_x * d1 + b.step_x * d2),
          one_nan(a.step_y * d1 + b.step_y * d2)};
}

/// A convex polygon with two weights. A quantity with the values q0, q1, q2 at the corners is
/// q0 + w0 * (q1 - q0) + w1 * (q2 - q0) at any point.
struct Geometry {
  int num_edges = 0;  ///< 3 or 4
  std::array<Edge, 4> edges;
  Weights weights;
  /// Bounding box of the polygon, 1/64 px.
  int32_t min_x = 0, min_y = 0, max_x = 0, max_y = 0;
};

/// Pixels that have a sample inside the bounding box.
Rect covered_bounds(const Geometry& geometry, bool multisample);

/// All coordinates are small enough for make_edge().
inline bool in_range(const Corner& c) {
  return c.x > -kMaxCoordinate && c.x < kMaxCoordinate && c.y > -kMaxCoordinate && c.y < kMaxCoordinate;
}

/// These give false for what covers nothing: zero area, zero length, zero or NaN width, corners out of range.
/// Anchors are relative to the tile at pixel (tile_x, tile_y).
/// w0 and w1 are the barycentric coordinates of corners 1 and 2.
bool triangle_geometry(const std::array<Corner, 3>& corners, int tile_x, int tile_y, Geometry& geometry);
/// A rectangle of `width` px around the segment, cut off at its ends. w0 runs along it, 0 at corner 0 and 1
/// at corner 1; w1 is the line coordinate (0 to 1 across the width) minus 1.
bool line_geometry(const Corner& from, const Corner& to, float width, int tile_x, int tile_y,
                   Geometry& geometry);
/// A square of `size` px. w0 runs from 0 at the left to 1 at the right, w1 from 1 at the smallest row to 0.
bool point_geometry(const Corner& center, float size, int tile_x, int tile_y, Geometry& geometry);

/// Rows of pixels of one tile, bit x = pixel x.
using TileBitmap = std::array<uint64_t, 64>;

/// Sets the pixels of the window (relative to the tile) that the segment draws by the diamond-exit rule of
/// OpenGL, widened along the minor axis to `width` (rounded, at least 1) pixels. Ends on the border of a
/// diamond count as to the right of where they are, not to the left as OpenGL has it: boards draw the pixels
/// 20 to 29 of a line from x = 20 to x = 30 (piglit vs-clip-distance-primitives).
void diamond_exit_line(const Corner& from, const Corner& to, float width, int tile_x, int tile_y,
                       const Rect& window, TileBitmap& bitmap);

}  // namespace v3d::pse
