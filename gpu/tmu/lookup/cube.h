/// Cube maps: directions to faces, and texels across edges (texture.md 4.4).
#pragma once

#include "gpu/base/vector.h"

namespace v3d::tmu {

/// A point of the cube: face 0..5 in the order +X -X +Y -Y +Z -Z, and its coordinates -1..1 times `major`.
struct FacePoint {
  LanesI face;
  LanesF s, t, major;
};

/// The face by the largest component; NaN ends somewhere valid.
inline LanesI major_face(LanesF x, LanesF y, LanesF z) {
  const LanesF ax = abs(x), ay = abs(y), az = abs(z);
  const LanesI is_x = (ax >= ay) & (ax >= az), is_y = ay >= az;
  const LanesI negative_x = (x < 0.0f) & 1, negative_y = (y < 0.0f) & 1, negative_z = (z < 0.0f) & 1;
  return is_x ? negative_x : (is_y ? 2 + negative_y : 4 + negative_z);
}

/// Projects a direction onto a given face.
inline FacePoint project(LanesI face, LanesF x, LanesF y, LanesF z) {
  const LanesI is_x = face < 2, is_y = (face < 4) & ~is_x, negative = (face & 1) != 0;
  FacePoint point;
  point.face = face;
  point.s = is_x ? (negative ? z : -z) : (is_y ? x : (negative ? -x : x));
  point.t = is_y ? (negative ? -z : z) : -y;
  point.major = abs(is_x ? x : (is_y ? y : z));
  return point;
}

/// A texel of a face, possibly one beyond an edge.
struct FaceTexel {
  LanesI face, i, j;
};

/// The texel of the neighbouring face where (i, j) crosses an edge. At corners, where no such texel exists,
/// the nearer one of the face beyond the S edge.
inline FaceTexel across_edges(const FaceTexel& at, LanesI size) {
  const LanesI beyond_s = (at.i < 0) | (at.i >= size), beyond_t = (at.j < 0) | (at.j >= size);
  const LanesI j_inside = clamp(at.j, LanesI{}, size - 1);
  const LanesI j = beyond_s ? j_inside : at.j;
  // A point of the plane of the face, beyond the edge: its largest component names the neighbour. There the
  // coordinate along the edge is the same, and the other one is at the edge.
  const LanesF n = to_float(size);
  const LanesF s = to_float(2 * at.i + 1) / n - 1.0f, t = to_float(2 * j + 1) / n - 1.0f;
  const LanesF one = LanesF{} + 1.0f, sign = (at.face & 1) != 0 ? -one : one;
  const LanesI is_x = at.face < 2, is_y = (at.face < 4) & ~is_x;
  const LanesF x = is_x ? sign : (is_y ? s : s * sign);
  const LanesF y = is_y ? sign : -t;
  const LanesF z = is_x ? -s * sign : (is_y ? t * sign : sign);
  const FacePoint point = project(major_face(x, y, z), x, y, z);
  const auto texel = [&](LanesF v) { return clamp(floor_to_int((v + 1.0f) * 0.5f * n), LanesI{}, size - 1); };
  const LanesI crossed = beyond_s | beyond_t;
  return {crossed ? point.face : at.face, crossed ? texel(point.s) : at.i, crossed ? texel(point.t) : at.j};
}

}  // namespace v3d::tmu
