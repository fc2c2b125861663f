/// The clipper tells where vertices are relative to the clip volume, and what is left of primitives that
/// cross it (cle-and-tiles.md 4.1).
#pragma once

#include <array>
#include <cstdint>

#include "gpu/base/lanes.h"
#include "gpu/draw/bin_result.h"
#include "gpu/draw/state.h"
#include "gpu/ptb/screen.h"

namespace v3d::ptb {

/// Bits of an outcode: the vertex lies outside that plane. The box is the guard box, which keeps screen
/// coordinates small; the window confines drawing to the viewport.
enum Outcode : uint16_t {
  kOutLeft = 1 << 0,
  kOutRight = 1 << 1,
  kOutTop = 1 << 2,
  kOutBottom = 1 << 3,
  kOutBehind = 1 << 4,  ///< W <= 0
  kOutNear = 1 << 5,
  kOutFar = 1 << 6,
  kNumPlanes = 7,
  kOutPlanes = (1 << kNumPlanes) - 1,
  kOutInvalid = 1 << 7,  ///< NaN or infinite
};

/// A shaded vertex as the clipper needs it.
struct ClipVertex {
  float clip[4];  ///< Xc, Yc, Zc, Wc
  int32_t x, y;   ///< screen
};

class Clipper {
 public:
  Clipper(const draw::DrawState& state, const ViewRules& rules);

  /// Outcodes of 16 vertices. @param clip  Xc, Yc, Zc, Wc
  Lanes classify(const LanesF clip[4]) const;

  /// Cuts a polygon at the planes of `codes` (the outcodes of its vertices, ORed).
  /// @param vertices  2 for a line, which stays one, or 3
  /// @return  false if nothing is left
  bool clip(const ClipVertex* vertices, int count, uint16_t codes, draw::ClippedPolygon* out) const;

 private:
  /// Inside is where a * X + b * Y + c * Z + d * W >= 0.
  struct Plane {
    float a = 0, b = 0, c = 0, d = 0;
  };
  struct Corner {
    double clip[4];
    double weight[3];
    int original;  // vertex number, or -1: made by clipping
  };
  struct Corners {
    int count = 0;
    std::array<Corner, 12> at;
  };

  static double distance(const Plane& plane, const Corner& corner, double min_w);
  static Corner cross(const Corner& inside, const Corner& outside, double d_inside, double d_outside);
  static void cut_polygon(const Plane& plane, double min_w, Corners* corners);
  static void cut_line(const Plane& plane, double min_w, Corners* corners);
  draw::ClippedPolygon::Corner project(const Corner& corner, const ClipVertex* vertices) const;

  ScreenTransform screen_;
  double half_width_, half_height_;  // in 1/64 px
  std::array<Plane, kNumPlanes> planes_;
};

}  // namespace v3d::ptb
