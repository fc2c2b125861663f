/// These functions read depth from its fixed-point formats, for texture lookups and loads of the tile buffer
/// alike.
#pragma once

#include "gpu/base/lanes.h"

namespace v3d {

/// v / (2^n - 1) rounded towards zero; @param largest  2^n - 1.
/// With z * 2^n rounded down on the way back (tlb::to_stored_depth) every value survives a trip through a
/// float; rounded to nearest, half of the 24-bit ones do not, and boards copy them by such trips (piglit
/// arb_copy_image-formats, GL_DEPTH_COMPONENT24).
inline LanesF depth_from_unorm(Lanes v, double largest) {
  typedef double Doubles __attribute__((vector_size(128)));
  typedef uint64_t Bits __attribute__((vector_size(128)));
  constexpr uint64_t kBelowFloat = (uint64_t{1} << 29) - 1;  // fraction bits that a float does not have
  const Doubles exact = __builtin_convertvector(v, Doubles) / largest;
  return __builtin_convertvector(reinterpret_cast<Doubles>(reinterpret_cast<Bits>(exact) & ~kBelowFloat),
                                 LanesF);
}

}  // namespace v3d
