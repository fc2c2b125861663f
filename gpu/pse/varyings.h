/// Set-up of varyings: what the interpolators hold per primitive (cle-and-tiles.md 5.4, qpu.md 5).
#pragma once

#include "gpu/pse/geometry.h"
#include "gpu/pse/prepared_draw.h"

namespace v3d::pse {

/// Coefficients per component: ldvary gives w[0] * p1 + w[1] * p2, and c.
struct VaryingCoefficients {
  alignas(64) float p1[kComponentRoom];
  alignas(64) float p2[kComponentRoom];
  alignas(64) uint32_t c[kComponentRoom];
};

/// Where the varyings of a primitive come from.
struct VaryingSource {
  int corners = 3;              ///< 1 point, 2 line or edge, 3 triangle
  const uint32_t* vertex[3]{};  ///< words of PreparedDraw; of the original triangle when clipped
  const uint32_t* provoking = nullptr;
  uint32_t primitive_id = 0;
  float r[3]{};  ///< 1/W of the corners
  /// Clipped polygons: weights of the original vertices for each corner; else null.
  const float* weights[3]{};
};

void set_up_varyings(const PreparedDraw& draw, const VaryingSource& source, VaryingCoefficients& to);

}  // namespace v3d::pse
