/// These functions take the words of a shaded vertex to the screen (cle-and-tiles.md 3.3, 4.1). Binning and
/// set-up must agree to the bit, so both use this.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gpu/base/lanes.h"
#include "gpu/chip/profile.h"
#include "gpu/draw/state.h"

namespace v3d::ptb {

/// Screen coordinates are 1/64 px.
inline constexpr int kScreenFractionBits = 6;

/// Largest magnitude of Xs, Ys after rounding to 1/64 px; the guard box of the clipper lies just inside.
/// Words beyond it can only come from a program whose Xs, Ys do not belong to its Xc..Wc.
inline constexpr int32_t kMaxViewCoordinate = 1 << 21;

/// What chips differ in here.
struct ViewRules {
  int fraction_bits;                            ///< of Xs, Ys in shaded vertices and of CLIPPER_XY_SCALING
  int32_t max_coordinate = kMaxViewCoordinate;  ///< as kMaxViewCoordinate, and not above it
  /// Lines both of whose ends lie beyond one of the four sides of the viewport are not drawn, even where
  /// their width would reach into it (vc4-graphics.md 2.3).
  bool rejects_lines_beside_view = false;
};
inline ViewRules view_rules(const chip::Profile& profile) {
  return {.fraction_bits = profile.coord_fraction_bits(),
          .max_coordinate = profile.pipeline().max_view_coordinate,
          .rejects_lines_beside_view = profile.pipeline().rejects_lines_beside_view};
}

/// Largest point and line sizes, in pixels.
inline constexpr float kMaxPointSize = 512.0f;
inline constexpr float kMaxLineWidth = 512.0f;
/// NaN counts as 0.
inline float clamp_size(float size, float max) { return size > 0.0f ? std::min(size, max) : 0.0f; }

struct ScreenTransform {
  int32_t center_x, center_y;  ///< 1/64 px
  int shift;                   ///< fraction bits of Xs, Ys beyond kScreenFractionBits: -2, 0 or 2
  int32_t max_coordinate;      ///< 1/64 px

  ScreenTransform(const draw::DrawState& state, const ViewRules& rules)
      : center_x((state.viewport_x + 2) >> 2),
        center_y((state.viewport_y + 2) >> 2),
        shift(rules.fraction_bits - kScreenFractionBits),
        max_coordinate(rules.max_coordinate) {}

  int32_t x(int32_t xs) const { return round(xs) + center_x; }
  int32_t y(int32_t ys) const { return round(ys) + center_y; }
  LanesI x(LanesI xs) const { return round(xs) + center_x; }
  LanesI y(LanesI ys) const { return round(ys) + center_y; }

 private:
  /// Of a word, so that max_coordinate is not left.
  int32_t bound() const { return shift >= 0 ? max_coordinate << shift : max_coordinate >> -shift; }
  /// To the nearest 1/64 px, halves up.
  int32_t round(int32_t v) const {
    v = std::clamp(v, -bound(), bound());
    if (shift < 0) return v * (1 << -shift);
    return shift == 0 ? v : (v + (1 << (shift - 1))) >> shift;
  }
  LanesI round(LanesI v) const {
    v = v < -bound() ? LanesI{} - bound() : v;
    v = v > bound() ? LanesI{} + bound() : v;
    if (shift < 0) return v * (1 << -shift);
    return shift == 0 ? v : (v + (1 << (shift - 1))) >> shift;
  }
};

}  // namespace v3d::ptb
