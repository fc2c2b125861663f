/// These functions take the words of a shaded vertex to the screen (cle-and-tiles.md 3.3, 4.1). Binning and
/// set-up must agree to the bit, so both use this.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gpu/base/lanes.h"
#include "gpu/draw/state.h"

namespace v3d::ptb {

/// Screen coordinates are 1/64 px.
inline constexpr int kScreenFractionBits = 6;

/// Largest magnitude of Xs, Ys after rounding to 1/64 px; the guard box of the clipper lies just inside.
/// Words beyond it can only come from a program whose Xs, Ys do not belong to its Xc..Wc.
inline constexpr int32_t kMaxViewCoordinate = 1 << 21;

/// Largest point and line sizes, in pixels.
inline constexpr float kMaxPointSize = 512.0f;
inline constexpr float kMaxLineWidth = 512.0f;
/// NaN counts as 0.
inline float clamp_size(float size, float max) { return size > 0.0f ? std::min(size, max) : 0.0f; }

struct ScreenTransform {
  int32_t center_x, center_y;  ///< 1/64 px
  int shift;                   ///< fraction bits of Xs, Ys beyond kScreenFractionBits: 0 or 2

  /// @param fraction_bits  of the device profile: coord_fraction_bits()
  ScreenTransform(const draw::DrawState& state, int fraction_bits)
      : center_x((state.viewport_x + 2) >> 2),
        center_y((state.viewport_y + 2) >> 2),
        shift(fraction_bits - kScreenFractionBits) {}

  int32_t x(int32_t xs) const { return round(xs) + center_x; }
  int32_t y(int32_t ys) const { return round(ys) + center_y; }
  LanesI x(LanesI xs) const { return round(xs) + center_x; }
  LanesI y(LanesI ys) const { return round(ys) + center_y; }

 private:
  /// To the nearest 1/64 px, halves up.
  int32_t round(int32_t v) const {
    const int32_t bound = kMaxViewCoordinate << shift;
    v = std::clamp(v, -bound, bound);
    return shift == 0 ? v : (v + (1 << (shift - 1))) >> shift;
  }
  LanesI round(LanesI v) const {
    const int32_t bound = kMaxViewCoordinate << shift;
    v = v < -bound ? LanesI{} - bound : v;
    v = v > bound ? LanesI{} + bound : v;
    return shift == 0 ? v : (v + (1 << (shift - 1))) >> shift;
  }
};

}  // namespace v3d::ptb
