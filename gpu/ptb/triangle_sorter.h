/// A TriangleSorter tells what becomes of triangles that need no clipping, 16 at a time: they are culled, are
/// outside, or have tiles of the list.
#pragma once

#include <array>
#include <cstdint>

#include "gpu/base/lanes.h"
#include "gpu/base/raw_vector.h"
#include "gpu/draw/bin_result.h"
#include "gpu/ptb/tile_lists.h"

namespace v3d::ptb {

/// Vertices of a piece as the binner needs them.
struct ScreenVertices {
  RawVector<Lanes> x, y;   ///< 1/64 px, signed
  RawVector<Lanes> codes;  ///< of the clipper

  void resize(uint32_t groups);
  ScreenPoint point(uint32_t v) const;
  uint16_t code(uint32_t v) const;
};

class TriangleSorter {
 public:
  struct Sorted {
    /// Lanes that are drawn, and where; lanes of triangles for the plain code: those that cross a plane, and
    /// those that may miss tiles of their box.
    LaneMask drawn, plain;
    LaneMask back_facing;  ///< of those that are drawn
    LaneMask outside, reversed;
    std::array<uint16_t, kLanes> x0, y0, x1, y1;  ///< tiles, inclusive
  };

  TriangleSorter(const draw::DrawState& state, const TileLists& lists);

  /// @param triangles  16
  void sort(const draw::Primitive* triangles, const ScreenVertices& vertices, Sorted* out) const;

 private:
  const draw::CfgBits cfg_;
  const TileLists& lists_;
};

}  // namespace v3d::ptb
