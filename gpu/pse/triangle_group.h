/// A TriangleGroup is the set-up of 16 triangles at once, and of those of a few pixels the coverage: to the
/// bit what triangle_geometry(), TileCoverage and make_plane() give of each.
#pragma once

#include <array>
#include <cstdint>

#include "gpu/pse/geometry.h"
#include "gpu/pse/prepared_draw.h"

namespace v3d::pse {

class TriangleGroup {
 public:
  /// 2 x 2 blocks of 4x4 pixels, row by row.
  static constexpr int kBlocks = 4;

  /// @param triangles  16, solid; those of lanes beside `wanted` may be anything
  /// @param wanted     lanes of triangles that were not clipped, with vertices that exist
  /// @param window     relative to the tile, of which pixel (tile_x, tile_y) is the first
  void set_up(const PreparedDraw& draw, const draw::Primitive* const* triangles, LaneMask wanted, int tile_x,
              int tile_y, const Rect& window);

  /// Wanted lanes that were set up and covered.
  LaneMask small() const { return small_; }
  /// Small ones that have an area.
  LaneMask valid() const { return valid_; }
  /// Valid ones that cover a pixel of the window.
  LaneMask covered() const { return covered_; }

  /// Wanted lanes that were set up, and overlap the window with more than kBlocks; all of them have an area.
  /// Those that are neither are too large.
  LaneMask medium() const { return medium_; }
  /// Of a medium one.
  TileCoverage<1, 3> coverage(size_t lane) const;
  Rect area(size_t lane) const { return {first_x_[lane], first_y_[lane], end_x_[lane], end_y_[lane]}; }

  // Of lanes that cover something:
  int left(size_t lane) const { return left_[lane]; }  ///< of the blocks, relative to the tile
  int top(size_t lane) const { return top_[lane]; }
  /// Pixels of a block, in the order of kBlockX and kBlockY.
  LaneMask pixels(size_t block, size_t lane) const { return static_cast<LaneMask>(pixels_[block][lane]); }
  // And of medium ones:
  void get_weights(size_t lane, Weights& to) const;
  LinearPlane z(size_t lane) const { return z_.at(lane); }
  LinearPlane r(size_t lane) const { return r_.at(lane); }
  float corner_r(size_t corner, size_t lane) const { return corner_r_[corner][lane]; }

 private:
  struct Points {
    std::array<LanesI, 3> x, y;  ///< 1/64 px, relative to the tile
  };
  struct Planes {
    alignas(64) double value[kLanes];
    alignas(64) double step_x[kLanes];
    alignas(64) double step_y[kLanes];
    LinearPlane at(size_t lane) const { return {value[lane], step_x[lane], step_y[lane]}; }
  };

  void cover(const Points& p, const LanesI& area, const Rect& window);
  void cut_off(const Rect& window);
  void set_weights(const Points& p, const LanesI& area);
  void set_planes(const std::array<LanesF, 3>& at, double bias, Planes* to) const;

  LaneMask small_ = 0, valid_ = 0, covered_ = 0, medium_ = 0;
  alignas(64) int32_t first_x_[kLanes];
  alignas(64) int32_t first_y_[kLanes];
  alignas(64) int32_t end_x_[kLanes];
  alignas(64) int32_t end_y_[kLanes];
  alignas(64) int32_t edge_a_[3][kLanes];
  alignas(64) int32_t edge_b_[3][kLanes];
  alignas(64) int32_t edge_c_[3][kLanes];  ///< at the first pixel of the tile, in whole pixels
  alignas(64) int32_t left_[kLanes];
  alignas(64) int32_t top_[kLanes];
  alignas(64) uint32_t pixels_[kBlocks][kLanes];
  alignas(64) double anchor_x_[kLanes];
  alignas(64) double anchor_y_[kLanes];
  alignas(64) double scale_[kLanes];
  alignas(64) double weight_x_[2][kLanes];
  alignas(64) double weight_y_[2][kLanes];
  alignas(64) float corner_r_[3][kLanes];
  Planes z_, r_;
};

}  // namespace v3d::pse
