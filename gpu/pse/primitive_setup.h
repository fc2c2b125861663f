/// A PrimitiveSetup is what batches and blocks of fragments need of one primitive.
#pragma once

#include "gpu/draw/bin_result.h"
#include "gpu/pse/geometry.h"
#include "gpu/pse/varyings.h"

namespace v3d::pse {

/// Relative to the tile.
struct PrimitiveSetup {
  const draw::Primitive* primitive = nullptr;
  LinearPlane z;  ///< depth offset included
  LinearPlane r;  ///< 1/W
  bool back_facing = false;
  VaryingSource source;
  bool varyings_ready = false;  ///< coefficients are set up for the first quad that survives the tests
  VaryingCoefficients coefficients;
};

}  // namespace v3d::pse
