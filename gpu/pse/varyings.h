/// The set-up of varyings gives what the interpolators hold for each primitive (cle-and-tiles.md 5.4, qpu.md
/// 5).
#pragma once

#include "gpu/pse/geometry.h"
#include "gpu/pse/prepared_draw.h"
#include "gpu/qpu/run/block_code.h"

namespace v3d::pse {

/// What ldvary gives of each component: a point of the plane, and c. As one plane and not as a sum of
/// weights, so that a varying whose gradient along an axis is 0 is equal all along that axis (dEQP-GLES3
/// functional.fbo.blit.rect.nearest_consistency_*).
struct VaryingCoefficients : qpu::BlockCoefficients {
  LinearPlane plane(uint32_t i) const { return {value[i], step_x[i], step_y[i]}; }
};

/// Where the varyings of a primitive come from.
struct VaryingSource {
  int corners = 3;              ///< 1 point, 2 line or edge, 3 triangle
  const uint32_t* vertex[3]{};  ///< words of PreparedDraw; of the original triangle when clipped
  const uint32_t* provoking = nullptr;
  uint32_t primitive_id = 0;
  Weights spread;  ///< how the differences of the corners spread over the tile
  float r[3]{};    ///< 1/W of the corners
  /// Clipped polygons: weights of the original vertices for each corner; else null.
  const float* weights[3]{};
};

void set_up_varyings(const PreparedDraw& draw, const VaryingSource& source, VaryingCoefficients& to);

}  // namespace v3d::pse
