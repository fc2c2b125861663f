/// These are the enumerations of draws: one row for each value of a packet's field, with its text in dumps
/// (cle-and-tiles.md 1.6).
#pragma once

#include <cstdint>

#include "gpu/base/compare.h"

namespace v3d::draw {

/// Primitives of the draw packets. X(name, value, text, vertices, inputs)
///   vertices  1 point, 2 line, 3 triangle
///   inputs    what a geometry shader gets: with the adjacent vertices
/// Values 16 to 22 are 0 to 6 "with transform feedback".
#define V3D_DRAW_MODES(X)                                 \
  X(kPoints, 0, "points", 1, 1)                           \
  X(kLines, 1, "lines", 2, 2)                             \
  X(kLineLoop, 2, "line loop", 2, 2)                      \
  X(kLineStrip, 3, "line strip", 2, 2)                    \
  X(kTriangles, 4, "triangles", 3, 3)                     \
  X(kTriangleStrip, 5, "triangle strip", 3, 3)            \
  X(kTriangleFan, 6, "triangle fan", 3, 3)                \
  X(kLinesAdjacency, 8, "lines adjacency", 2, 4)          \
  X(kLineStripAdjacency, 9, "line strip adjacency", 2, 4) \
  X(kTrianglesAdjacency, 10, "triangles adjacency", 3, 6) \
  X(kTriangleStripAdjacency, 11, "triangle strip adjacency", 3, 6)

/// X(name, value, text), as all below.
#define V3D_STENCIL_OPS(X)     \
  X(kZero, 0, "zero")          \
  X(kKeep, 1, "keep")          \
  X(kReplace, 2, "replace")    \
  X(kIncr, 3, "incr")          \
  X(kDecr, 4, "decr")          \
  X(kInvert, 5, "invert")      \
  X(kIncrWrap, 6, "incr wrap") \
  X(kDecrWrap, 7, "decr wrap")

#define V3D_BLEND_MODES(X)            \
  X(kAdd, 0, "add")                   \
  X(kSubtract, 1, "src - dst")        \
  X(kReverseSubtract, 2, "dst - src") \
  X(kMin, 3, "min")                   \
  X(kMax, 4, "max")                   \
  X(kMultiply, 5, "mul")              \
  X(kScreen, 6, "screen")             \
  X(kDarken, 7, "darken")             \
  X(kLighten, 8, "lighten")

#define V3D_BLEND_FACTORS(X)                    \
  X(kZero, 0, "zero")                           \
  X(kOne, 1, "one")                             \
  X(kSrcColor, 2, "src color")                  \
  X(kOneMinusSrcColor, 3, "1 - src color")      \
  X(kDstColor, 4, "dst color")                  \
  X(kOneMinusDstColor, 5, "1 - dst color")      \
  X(kSrcAlpha, 6, "src alpha")                  \
  X(kOneMinusSrcAlpha, 7, "1 - src alpha")      \
  X(kDstAlpha, 8, "dst alpha")                  \
  X(kOneMinusDstAlpha, 9, "1 - dst alpha")      \
  X(kConstColor, 10, "const color")             \
  X(kOneMinusConstColor, 11, "1 - const color") \
  X(kConstAlpha, 12, "const alpha")             \
  X(kOneMinusConstAlpha, 13, "1 - const alpha") \
  X(kSrcAlphaSaturate, 14, "src alpha saturate")

#define V3D_ROW(name, value, ...) name = (value),
enum class Mode : uint8_t { V3D_DRAW_MODES(V3D_ROW) };
enum class StencilOp : uint8_t { V3D_STENCIL_OPS(V3D_ROW) };
enum class BlendMode : uint8_t { V3D_BLEND_MODES(V3D_ROW) };
enum class BlendFactor : uint8_t { V3D_BLEND_FACTORS(V3D_ROW) };
#undef V3D_ROW

/// Fields are wider than their enumerations.
constexpr bool exists(BlendMode mode) { return mode <= BlendMode::kLighten; }
constexpr bool exists(BlendFactor factor) { return factor <= BlendFactor::kSrcAlphaSaturate; }

/// Equations and factors of one render target.
struct BlendConfig {
  BlendMode color_mode = BlendMode::kAdd;
  BlendFactor color_src = BlendFactor::kOne, color_dst = BlendFactor::kZero;
  BlendMode alpha_mode = BlendMode::kAdd;
  BlendFactor alpha_src = BlendFactor::kOne, alpha_dst = BlendFactor::kZero;
  bool operator==(const BlendConfig&) const = default;
};
constexpr bool exists(const BlendConfig& c) {
  return exists(c.color_mode) && exists(c.color_src) && exists(c.color_dst) && exists(c.alpha_mode) &&
         exists(c.alpha_src) && exists(c.alpha_dst);
}

/// Sizes of the primitives of a mode; 0 when the hardware has no such mode.
struct Topology {
  uint8_t vertices = 0, inputs = 0;
};
constexpr Topology topology(Mode mode) {
  struct Row {
    Mode mode;
    Topology topology;
  };
#define V3D_ROW(name, value, text, vertices, inputs) {Mode::name, {vertices, inputs}},
  constexpr Row kRows[] = {V3D_DRAW_MODES(V3D_ROW)};
#undef V3D_ROW
  for (const Row& row : kRows)
    if (row.mode == mode) return row.topology;
  return {};
}

}  // namespace v3d::draw
