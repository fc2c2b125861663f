/// For cube maps these functions turn directions into faces, and find texels across edges (texture.md 4.4).
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
  const LanesI is_x = at_most(ay, ax) & at_most(az, ax), is_y = at_most(az, ay);
  const auto negative = [](const LanesF& v) { return less(v, LanesF{}) & 1; };
  return select(is_x, negative(x), select(is_y, 2 + negative(y), 4 + negative(z)));
}

/// Projects a direction onto a given face.
inline FacePoint project(LanesI face, LanesF x, LanesF y, LanesF z) {
  const LanesI is_x = less(face, splat_int(2)), is_y = less(face, splat_int(4)) & ~is_x,
               negative = -(face & 1);
  FacePoint point;
  point.face = face;
  point.s = select(is_x, select(negative, z, -z), select(is_y | ~negative, x, -x));
  point.t = select(is_y, select(negative, -z, z), -y);
  point.major = abs(select(is_x, x, select(is_y, y, z)));
  return point;
}

/// A texel of a face, possibly one beyond an edge.
struct FaceTexel {
  LanesI face, i, j;
};

/// Where a coordinate of a face is beyond an edge.
inline LanesI beyond_edge(const LanesI& at, const LanesI& size) {
  return less(at, LanesI{}) | at_most(size, at);
}

/// The texel of the neighbouring face where (i, j) crosses an edge. At corners, where no such texel exists,
/// the nearer one of the face beyond the S edge.
inline FaceTexel across_edges(const FaceTexel& at, LanesI size) {
  const LanesI beyond_s = beyond_edge(at.i, size), beyond_t = beyond_edge(at.j, size);
  const LanesI j_inside = clamp(at.j, LanesI{}, size - 1);
  const LanesI j = select(beyond_s, j_inside, at.j);
  // A point of the plane of the face, beyond the edge: its largest component names the neighbour. There the
  // coordinate along the edge is the same, and the other one is at the edge.
  const LanesF n = to_float(size);
  const LanesF s = to_float(2 * at.i + 1) / n - 1.0f, t = to_float(2 * j + 1) / n - 1.0f;
  const LanesF one = LanesF{} + 1.0f, sign = select(-(at.face & 1), -one, one);
  const LanesI is_x = less(at.face, splat_int(2)), is_y = less(at.face, splat_int(4)) & ~is_x;
  const LanesF x = select(is_x, sign, select(is_y, s, s * sign));
  const LanesF y = select(is_y, sign, -t);
  const LanesF z = select(is_x, -s * sign, select(is_y, t * sign, sign));
  const FacePoint point = project(major_face(x, y, z), x, y, z);
  const auto texel = [&](LanesF v) { return clamp(floor_to_int((v + 1.0f) * 0.5f * n), LanesI{}, size - 1); };
  const LanesI crossed = beyond_s | beyond_t;
  return {select(crossed, point.face, at.face), select(crossed, texel(point.s), at.i),
          select(crossed, texel(point.t), at.j)};
}

}  // namespace v3d::tmu
