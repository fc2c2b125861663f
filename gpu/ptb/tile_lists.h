/// TileLists name, tile by tile, the primitives that may touch it (cle-and-tiles.md 2.4): some too many, in
/// the order of the draws.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpu/base/lanes.h"
#include "gpu/base/work_meter.h"
#include "gpu/draw/bin_result.h"
#include "gpu/draw/state.h"

namespace v3d::ptb {

struct ScreenPoint {
  int32_t x, y;  ///< 1/64 px
};

/// Puts the primitives of one draw on the lists of a bin result.
class TileLists {
 public:
  /// @param job  is looked at now and then: what is added when it has ended may be anything. May be null
  TileLists(const draw::DrawState& state, draw::BinResult* result, const JobContext* job = nullptr);

  /// Of the thread that works on them.
  WorkMeter& meter() { return meter_; }
  /// The clip window leaves nothing to draw.
  bool empty_window() const { return left_ >= right_ || top_ >= bottom_; }

  /// Each adds an entry to every tile of the layer that the primitive may touch and returns their number.
  /// @param corners  a fan of triangles, any winding, 3 to kMaxCorners
  uint32_t add_polygon(std::span<const ScreenPoint> corners, uint32_t layer, draw::ListEntry entry);
  /// @param width  pixels
  uint32_t add_line(ScreenPoint a, ScreenPoint b, float width, uint32_t layer, draw::ListEntry entry);
  /// @param size  pixels
  uint32_t add_point(ScreenPoint center, float size, uint32_t layer, draw::ListEntry entry);

  /// Bounding boxes of 16 polygons, 1/64 px, and the tiles of each, both inclusive.
  struct Boxes {
    LanesI left, top, right, bottom;
  };
  struct TileRanges {
    LanesI x0, y0, x1, y1;
  };
  /// @return  the polygons that may touch tiles; the ranges of others mean nothing
  LaneMask tiles_of(const Boxes& boxes, TileRanges* ranges) const;
  /// Adds an entry to all tiles of a range in layer 0.
  uint32_t add_tiles(int32_t x0, int32_t y0, int32_t x1, int32_t y1, draw::ListEntry entry) {
    return add_range({x0, y0, x1, y1}, 0, entry);
  }

 private:
  struct TileRange {
    int32_t x0, y0, x1, y1;  // inclusive
    bool empty() const { return x0 > x1 || y0 > y1; }
    bool thin() const { return x0 == x1 || y0 == y1; }
  };
  struct Box {
    int32_t left, top, right, bottom;  // 1/64 px, inclusive
  };
  /// A linear function over the screen, tile by tile: its largest value on a tile of the range.
  struct EdgeWalk {
    int64_t start, step_x, step_y;
  };

  TileRange tiles_of(const Box& box, int32_t first_sample, int32_t last_sample) const;
  EdgeWalk walk(ScreenPoint a, ScreenPoint b, int64_t bias, const TileRange& range) const;
  uint32_t add_range(const TileRange& range, uint32_t layer, draw::ListEntry entry);
  uint32_t add_where(const TileRange& range, std::span<const EdgeWalk> edges, size_t group_size,
                     uint32_t layer, draw::ListEntry entry);
  std::vector<draw::ListEntry>* row(uint32_t layer, int32_t y) {
    return &result_.tiles[(size_t{layer} * result_.tiles_y + static_cast<uint32_t>(y)) * result_.tiles_x];
  }

  draw::BinResult& result_;
  WorkMeter meter_;
  int32_t left_, top_, right_, bottom_;  // window within the frame, pixels
  int tile_shift_x_, tile_shift_y_;      // log2 of the tile size
  int32_t first_sample_, last_sample_;   // within a pixel, 1/64 px
};

}  // namespace v3d::ptb
