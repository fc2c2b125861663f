/// A BinResult is what a bin job hands to the render job of its submission: draws, primitives and one list
/// per tile, in host memory. Nothing else ever reads tile lists, so their form is ours (cle-and-tiles.md
/// 2.5).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gpu/draw/state.h"

namespace v3d::draw {

/// A vertex to be shaded: element numbers as the attribute fetch needs them.
struct VertexRef {
  uint32_t index;     ///< after base vertex
  uint32_t instance;  ///< zero based
};

/// A polygon left over by clipping, as a fan of triangles, or a line (2 corners). Corners are points of the
/// original primitive; those that were its vertices keep the screen position that the program gave them.
inline constexpr int kMaxCorners = 12;
struct ClippedPolygon {
  struct Corner {
    int32_t x, y;     ///< screen, 1/64 px
    float weight[3];  ///< of the original vertices, in clip space (linear there); sum 1; [2] is 0 for lines
    float z, w;       ///< clip space
  };
  uint32_t num_corners;
  Corner corners[kMaxCorners];
};

struct Primitive {
  /// Positions in the draw's shaded vertices; [1], [2] unused for points, [2] for lines. Of triangles drawn
  /// as lines or points the rasterised vertices come first and the other ones of the triangle after them.
  uint32_t vertex[3];
  uint32_t provoking;  ///< position of the provoking vertex
  uint32_t primitive_id;
  int32_t clipped = -1;  ///< index into Draw::clipped, or -1
  bool back_facing = false;
};

struct Draw {
  DrawState state;
  DrawCall call;
  std::shared_ptr<const ShaderRecord> record;
  uint8_t vertices_per_primitive = 3;  ///< 1 points, 2 lines, 3 triangles: what is rasterised
  std::vector<VertexRef> vertices;     ///< to shade, in order; primitives refer to positions here (no GS)
  /// With a geometry shader: input primitives (gs_input_vertices positions each, ids in gs_primitive_ids);
  /// primitives then refer to emitted vertices in emission order, input primitive by input primitive,
  /// invocation by invocation, which the render GS reproduces.
  uint8_t gs_input_vertices = 0;
  std::vector<uint32_t> gs_input;
  std::vector<uint32_t> gs_primitive_ids;
  std::vector<Primitive> primitives;
  std::vector<ClippedPolygon> clipped;
};

struct ListEntry {
  uint32_t draw, primitive;
  bool operator==(const ListEntry&) const = default;
};

/// Draws with many vertices come in pieces: several Draws in a row with the same state and call.
struct BinResult {
  uint32_t width = 0, height = 0;  ///< pixels
  uint32_t tile_width = 64, tile_height = 64;
  uint32_t tiles_x = 0, tiles_y = 0, layers = 0;
  uint32_t semaphores = 0;  ///< increments of the semaphore between the two threads
  std::vector<Draw> draws;
  /// [layer * tiles_x * tiles_y + row * tiles_x + column], primitive order kept.
  std::vector<std::vector<ListEntry>> tiles;
};

}  // namespace v3d::draw
