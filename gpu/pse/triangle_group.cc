#include "gpu/pse/triangle_group.h"

#include <bit>
#include <cstring>

#include "gpu/base/doubles.h"
#include "gpu/base/rows.h"
#include "gpu/base/vector.h"

namespace v3d::pse {
namespace {

/// Sides of a triangle that is set up, in 1/64 px: edge functions around it, and in the tile, then fit 32
/// bits.
constexpr int32_t kMaxSide = 1 << 13;
constexpr int kBlock = 4;  // pixels

template <typename T, typename V>
void store(T* to, V v) {
  std::memcpy(to, &v, sizeof(v));
}

LanesI min3(const std::array<LanesI, 3>& v) { return min(min(v[0], v[1]), v[2]); }
LanesI max3(const std::array<LanesI, 3>& v) { return max(max(v[0], v[1]), v[2]); }
LanesI inside(const LanesI& v) {
  return by_parts<LanesI>([](auto part) { return (part > -kMaxCoordinate) & (part < kMaxCoordinate); }, v);
}

/// Edge functions a * x + b * y + c of each triangle, not negative inside: x and y in pixels from the first
/// block. Where a triangle is too large they wrap around.
struct Edges {
  std::array<Lanes, 3> a, b, c;
};

/// Pixels that are inside of the block at x and y, a bit each.
Lanes pixels_inside(const Edges& edges, uint32_t x, uint32_t y) {
  std::array<Lanes, 3> row = edges.c;
  for (size_t k = 0; k < 3; ++k) row[k] += edges.a[k] * x + edges.b[k] * y;
  Lanes pixels = {};
  for (uint32_t j = 0; j < kBlock; ++j) {
    std::array<Lanes, 3> at = row;
    for (uint32_t i = 0; i < kBlock; ++i) {
      const uint32_t bit = (j >> 1) << 3 | (i >> 1) << 2 | (j & 1) << 1 | (i & 1);  // as kBlockX and kBlockY
      pixels |= (~(at[0] | at[1] | at[2]) >> 31) << bit;
      for (size_t k = 0; k < 3; ++k) at[k] += edges.a[k];
    }
    for (size_t k = 0; k < 3; ++k) row[k] += edges.b[k];
  }
  return pixels;
}

}  // namespace

void TriangleGroup::set_up(const PreparedDraw& draw, const draw::Primitive* const* triangles, LaneMask wanted,
                           int tile_x, int tile_y, const Rect& window) {
  small_ = valid_ = covered_ = medium_ = 0;
  if (wanted == 0) return;
  Points p;
  std::array<LanesF, 3> z, r;
  LanesI small = expand(wanted);
  for (size_t k = 0; k < 3; ++k) {
    Lanes rows[4];
    load_rows<4>(
        [&](size_t lane) {
          return draw.vertex(((wanted >> lane) & 1) != 0 ? triangles[lane]->vertex[k] : 0);
        },
        rows);
    const LanesI in_range = inside(as_int(rows[0])) & inside(as_int(rows[1]));
    small &= in_range;
    p.x[k] = (as_int(rows[0]) & in_range) - tile_x * kSubpixels;
    p.y[k] = (as_int(rows[1]) & in_range) - tile_y * kSubpixels;
    z[k] = as_float(rows[2]);
    r[k] = as_float(rows[3]);
    store(corner_r_[k], r[k]);
  }
  small &= less(max(max3(p.x) - min3(p.x), max3(p.y) - min3(p.y)), splat_int(kMaxSide));
  const LanesI area = as_int(as_uint(p.x[1] - p.x[0]) * as_uint(p.y[2] - p.y[0]) -
                             as_uint(p.x[2] - p.x[0]) * as_uint(p.y[1] - p.y[0]));
  small_ = negative(small);
  cover(p, area, window);
  if ((covered_ | medium_) == 0) return;
  set_weights(p, area);
  // As open_setup() adds the depth offset: 0 for depths, which makes -0 positive, and none for 1/W.
  set_planes(z, 0.0, &z_);
  set_planes(r, -0.0, &r_);
}

/// Finds out which lanes of small_ are as small as that, and what they cover. Others become medium_.
void TriangleGroup::cover(const Points& p, const LanesI& area, const Rect& window) {
  constexpr int kCenter = kSubpixels / 2, kReach = 2 * kBlock;
  // As covered_bounds().
  const LanesI first_x = max((min3(p.x) + (kCenter - 1)) >> kSubpixelBits, splat_int(window.left)),
               first_y = max((min3(p.y) + (kCenter - 1)) >> kSubpixelBits, splat_int(window.top)),
               end_x = min(((max3(p.x) - kCenter) >> kSubpixelBits) + 1, splat_int(window.right)),
               end_y = min(((max3(p.y) - kCenter) >> kSubpixelBits) + 1, splat_int(window.bottom));
  const LanesI left = first_x & ~(kBlock - 1), top = first_y & ~(kBlock - 1);
  const LanesI drawn_size = min(end_x - first_x, end_y - first_y), empty = less(drawn_size, splat_int(1));
  const LaneMask all = small_, with_area = nonzero(as_uint(area));
  small_ &= negative(empty | less(max(end_x - left, end_y - top), splat_int(kReach + 1)));
  valid_ = static_cast<LaneMask>(small_ & with_area);
  medium_ = static_cast<LaneMask>(all & ~small_ & with_area);
  const auto drawn = static_cast<LaneMask>(valid_ & ~negative(empty));
  if ((drawn | medium_) == 0) return;

  Edges edges;
  const Lanes turned = as_uint(area >> 31);  // all ones where edges are to be turned round
  for (size_t k = 0; k < 3; ++k) {
    const size_t next = k == 2 ? 0 : k + 1;
    const LanesI a = as_int((as_uint(p.y[k] - p.y[next]) ^ turned) - turned),
                 b = as_int((as_uint(p.x[next] - p.x[k]) ^ turned) - turned);
    const LanesI right_or_bottom = by_parts<LanesI>(
        [](auto x, auto y) { return ~((x > 0) | ((x == 0) & (y > 0))); }, a, b);  // with_fill_rule()
    edges.c[k] = as_uint(a) * as_uint(left * kSubpixels + kCenter - p.x[k]) +
                 as_uint(b) * as_uint(top * kSubpixels + kCenter - p.y[k]) + as_uint(right_or_bottom);
    edges.a[k] = as_uint(a) << kSubpixelBits;
    edges.b[k] = as_uint(b) << kSubpixelBits;
    if (medium_ == 0) continue;
    store(edge_a_[k], a);
    store(edge_b_[k], b);
    store(edge_c_[k], (as_int(edges.c[k]) >> kSubpixelBits) - a * left - b * top);
  }
  if (medium_ != 0) {
    store(first_x_, first_x);
    store(first_y_, first_y);
    store(end_x_, end_x);
    store(end_y_, end_y);
    if (drawn == 0) return;
  }
  store(left_, left);
  store(top_, top);
  const LaneMask beside = drawn & negative(left + kBlock - end_x),
                 below = drawn & negative(top + kBlock - end_y);
  const LaneMask in_block[kBlocks] = {drawn, beside, below, static_cast<LaneMask>(beside & below)};
  for (uint32_t block = 0; block < kBlocks; ++block) {
    Lanes pixels = {};
    if (in_block[block] != 0)
      pixels = pixels_inside(edges, (block & 1) * kBlock, (block >> 1) * kBlock) &
               as_uint(expand(in_block[block]));
    store(pixels_[block], pixels);
    covered_ |= nonzero(pixels);
  }
  if (!of_whole_blocks(window)) cut_off(window);
}

/// Takes away the pixels outside of a window that goes through blocks.
void TriangleGroup::cut_off(const Rect& window) {
  LaneMask covered = 0;
  for (uint32_t left = covered_; left != 0; left &= left - 1) {
    const auto lane = static_cast<size_t>(std::countr_zero(left));
    for (size_t block = 0; block < kBlocks; ++block) {
      uint32_t& pixels = pixels_[block][lane];
      pixels &=
          block_window(window, left_[lane] + (block & 1 ? kBlock : 0), top_[lane] + (block & 2 ? kBlock : 0));
      if (pixels != 0) covered |= static_cast<LaneMask>(1u << lane);
    }
  }
  covered_ = covered;
}

/// The anchor, scale and planes of triangle_geometry().
void TriangleGroup::set_weights(const Points& p, const LanesI& area) {
  const Doubles pixel = v3d::splat(1.0 / kSubpixels);
  store_doubles(anchor_x_, widen(p.x[0] - kSubpixels / 2) * pixel);
  store_doubles(anchor_y_, widen(p.y[0] - kSubpixels / 2) * pixel);
  store_doubles(scale_, v3d::splat(1.0) / widen(area));
  const auto steps = [&](size_t plane, size_t from, size_t to) {
    store_doubles(weight_x_[plane], widen((p.y[from] - p.y[to]) * kSubpixels));
    store_doubles(weight_y_[plane], widen((p.x[to] - p.x[from]) * kSubpixels));
  };
  steps(0, 2, 0);
  steps(1, 0, 1);
}

/// make_plane() of what is `at` the corners. @param bias  of corner 0
void TriangleGroup::set_planes(const std::array<LanesF, 3>& at, double bias, Planes* to) const {
  const Doubles q0 = widen(at[0]), d1 = widen(at[1]) - q0, d2 = widen(at[2]) - q0, zero = v3d::splat(0.0);
  const auto weight = [](const double* of) { return load_doubles(of); };
  store_doubles(to->value, one_nan((q0 + v3d::splat(bias)) + (zero * d1 + zero * d2) * weight(scale_)));
  store_doubles(to->step_x, one_nan(weight(weight_x_[0]) * d1 + weight(weight_x_[1]) * d2));
  store_doubles(to->step_y, one_nan(weight(weight_y_[0]) * d1 + weight(weight_y_[1]) * d2));
}

TileCoverage<1, 3> TriangleGroup::coverage(size_t lane) const {
  return TileCoverage<1, 3>({edge_a_[0][lane], edge_a_[1][lane], edge_a_[2][lane]},
                            {edge_b_[0][lane], edge_b_[1][lane], edge_b_[2][lane]},
                            {edge_c_[0][lane], edge_c_[1][lane], edge_c_[2][lane]});
}

/// Number by number, not by way of a copy: who copies as a whole what was just stored number by number waits.
void TriangleGroup::get_weights(size_t lane, Weights& to) const {
  to.anchor_x = anchor_x_[lane];
  to.anchor_y = anchor_y_[lane];
  to.scale = scale_[lane];
  for (size_t k = 0; k < 2; ++k) {
    to.plane[k].value = 0;
    to.plane[k].step_x = weight_x_[k][lane];
    to.plane[k].step_y = weight_y_[k][lane];
  }
}

}  // namespace v3d::pse
