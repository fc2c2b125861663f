/// Coverage says which pixels and samples of one tile a convex polygon covers: exact edge functions on the
/// 1/64 px grid, evaluated for 16 cells at a time (cle-and-tiles.md 4.3).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "gpu/base/lanes.h"

namespace v3d::pse {

inline constexpr int kSubpixelBits = 6;
inline constexpr int kSubpixels = 1 << kSubpixelBits;

/// Vertices stay inside (-kMaxCoordinate, kMaxCoordinate), in 1/64 px (2^22 less room for the width of lines
/// and points): the products of the edge functions then fit 48 bits, and their steps inside a tile 30.
inline constexpr int32_t kMaxCoordinate = (1 << 22) - (1 << 15);

/// Sample positions of 4x frames relative to the pixel centre, 1/64 px, rows down (Mesa nir_to_vir.c,
/// ntq_get_sample_offset).
inline constexpr std::array<int, 4> kSampleX = {-8, 24, -24, 8};
inline constexpr std::array<int, 4> kSampleY = {-24, -8, 8, 24};

/// Half-open range of pixels.
struct Rect {
  int left = 0, top = 0, right = 0, bottom = 0;
  bool empty() const { return left >= right || top >= bottom; }
};

inline Rect intersect(const Rect& a, const Rect& b) {
  return {std::max(a.left, b.left), std::max(a.top, b.top), std::min(a.right, b.right),
          std::min(a.bottom, b.bottom)};
}

/// Whether it goes through no block of 4x4 pixels.
inline bool of_whole_blocks(const Rect& r) { return ((r.left | r.top | r.right | r.bottom) & 3) == 0; }

/// a * x + b * y + c >= 0 inside, x and y in 1/64 px.
struct Edge {
  int64_t a = 0, b = 0, c = 0;
};

/// The edge from (x0, y0) to (x1, y1), positive to its right on a screen whose rows grow downwards.
inline Edge make_edge(int32_t x0, int32_t y0, int32_t x1, int32_t y1) {
  const int64_t a = int64_t{y0} - y1, b = int64_t{x1} - x0;
  return {a, b, -(a * x0 + b * y0)};
}

/// Points exactly on an edge belong to the polygon only if it is a left or a top edge.
inline Edge with_fill_rule(Edge e) {
  const bool left_or_top = e.a > 0 || (e.a == 0 && e.b > 0);
  if (!left_or_top) e.c -= 1;
  return e;
}

/// Lanes of a 4x4 block of pixels in the order of a fragment batch: pixel column and row of each lane.
inline constexpr Lanes kBlockX = {0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3};
inline constexpr Lanes kBlockY = {0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3};

/// Lanes of a 4x4 block of pixels that lie in a set of columns (or rows), one bit each.
constexpr std::array<LaneMask, 16> lanes_of_sets(const std::array<int, kLanes>& place) {
  std::array<LaneMask, 16> table{};
  for (int set = 0; set < 16; ++set)
    for (int lane = 0; lane < kLanes; ++lane)
      if ((set >> place[lane]) & 1) table[set] |= static_cast<LaneMask>(1 << lane);
  return table;
}
inline constexpr auto kBlockColumns = lanes_of_sets({0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3});
inline constexpr auto kBlockRows = lanes_of_sets({0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3});

/// Bits [low, high) of a set of four cells.
inline uint32_t cell_range(int low, int high) {
  const uint32_t below_high = (1u << std::clamp(high, 0, 4)) - 1,
                 below_low = (1u << std::clamp(low, 0, 4)) - 1;
  return below_high & ~below_low;
}

/// Lanes of the 4x4 block of pixels at (x, y) inside the window.
inline LaneMask block_window(const Rect& window, int x, int y) {
  return kBlockColumns[cell_range(window.left - x, window.right - x)] &
         kBlockRows[cell_range(window.top - y, window.bottom - y)];
}

/// The edges of a polygon as seen from one tile, in whole pixels: the value at the sample of pixel (x, y) is
/// non-negative iff base[edge][sample] + x * a + y * b is. (Steps are multiples of 64, so the six fraction
/// bits of the base decide nothing; a base too large for any step inside the tile to change its sign is
/// clamped.)
template <int kSamples, int kEdges>
class TileCoverage {
 public:
  /// @param samples_x, samples_y  offsets from the pixel centre, 1/64 px
  TileCoverage(const Edge* edges, int tile_x, int tile_y, const int* samples_x, const int* samples_y) {
    constexpr int64_t kClamp = int64_t{1} << 30;
    for (int k = 0; k < kEdges; ++k) {
      a_[k] = static_cast<int32_t>(edges[k].a);
      b_[k] = static_cast<int32_t>(edges[k].b);
      low_[k] = static_cast<int32_t>(kClamp);
      high_[k] = static_cast<int32_t>(-kClamp);
      for (int s = 0; s < kSamples; ++s) {
        const int64_t x = int64_t{tile_x} * kSubpixels + kSubpixels / 2 + samples_x[s];
        const int64_t y = int64_t{tile_y} * kSubpixels + kSubpixels / 2 + samples_y[s];
        const int64_t value = (edges[k].a * x + edges[k].b * y + edges[k].c) >> kSubpixelBits;
        base_[k][s] = static_cast<int32_t>(std::clamp(value, -kClamp, kClamp));
        low_[k] = std::min(low_[k], base_[k][s]);
        high_[k] = std::max(high_[k], base_[k][s]);
      }
      set_steps(k);
    }
  }
  /// Of one sample, by what it is made of in pixels: the steps to the next column and row, and the values at
  /// the first pixel of the tile, within 2^30.
  TileCoverage(const std::array<int32_t, kEdges>& a, const std::array<int32_t, kEdges>& b,
               const std::array<int32_t, kEdges>& base) requires(kSamples == 1) {
    for (int k = 0; k < kEdges; ++k) {
      const auto n = static_cast<size_t>(k);
      a_[k] = a[n];
      b_[k] = b[n];
      low_[k] = high_[k] = base_[k][0] = base[n];
      set_steps(k);
    }
  }

  /// Calls emit(x, y, masks) for every 4x4 block (x, y relative to the tile) with covered samples inside the
  /// window; masks[s] are the lanes whose sample s is covered. Or whole(x, y) if that is all of them.
  /// @param cuts  whether the window may exclude covered samples of blocks that it overlaps
  template <typename Emit, typename Whole>
  void blocks(const Rect& window, bool cuts, Emit&& emit, Whole&& whole) const {
    const int left = window.left & ~3, top = window.top & ~3;
    const int columns = (window.right - left + 3) / 4, rows = (window.bottom - top + 3) / 4;
    if (columns * rows <= kDirectBlocks) {
      for (int y = top; y < window.bottom; y += 4)
        for (int x = left; x < window.right; x += 4)
          block(
              window, cuts, x, y, [&](int k) { return a_[k] * x + b_[k] * y + base_[k][0] + LanesI{}; },
              emit);
      return;
    }
    const auto macro = [&](int x, int y) { macro_block(window, cuts, x, y, emit, whole); };
    const int macro_left = left & ~15, macro_top = top & ~15;
    if (window.right - macro_left <= 32 && window.bottom - macro_top <= 16) {
      for (int x = macro_left; x < window.right; x += 16) macro(x, macro_top);
      return;
    }
    for_cells<16>(window, cuts, 0, 0, values<16>(0, 0), [&](int x, int y, bool all, uint32_t) {
      if (!all) return macro(x, y);
      for (int cell = 0; cell < 16; ++cell) whole(x + (cell & 3) * 4, y + (cell >> 2) * 4);
    });
  }

  /// The same, where it does not matter to anybody in which order blocks come.
  template <typename Emit, typename Whole>
  void blocks_in_any_order(const Rect& window, bool cuts, Emit&& emit, Whole&& whole) const {
    constexpr int kMacro = 16, kFew = 2 * kMacro;
    const int left = window.left & ~3, top = window.top & ~3, width = window.right - left,
              height = window.bottom - top;
    const bool is_direct = (width + 3) / 4 * ((height + 3) / 4) <= kDirectBlocks;
    if (is_direct || width > kFew || height > kFew) return blocks(window, cuts, emit, whole);
    for (int y = top; y < window.bottom; y += kMacro)
      for (int x = left; x < window.right; x += kMacro) macro_block(window, cuts, x, y, emit, whole);
  }

 private:
  /// 16 blocks, from (x0, y0) on.
  template <typename Emit, typename Whole>
  void macro_block(const Rect& window, bool cuts, int x0, int y0, Emit&& emit, Whole&& whole) const {
    const Cells cells = values<4>(x0, y0);
    int32_t values_of[kEdges][kLanes];  // hosts spread a word from memory to all lanes as they load it
    std::memcpy(values_of, &cells, sizeof(values_of));
    for_cells<4>(window, cuts, x0, y0, cells, [&](int x, int y, bool all, uint32_t cell) {
      if (all) return whole(x, y);
      block(
          window, cuts, x, y, [&](int k) { return splat_int(values_of[k][cell]); }, emit);
    });
  }

  /// Those of edge k, whose a_ and b_ are known.
  void set_steps(int k) {
    min_step_[k] = std::min(a_[k], 0) + std::min(b_[k], 0);
    max_step_[k] = std::max(a_[k], 0) + std::max(b_[k], 0);
    steps_[k] = a_[k] * kColumn + b_[k] * kRow;
    // By kBlockX + 4 * kBlockY.
    pixel_[k] = as_int(shuffle<0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15>(as_uint(steps_[k])));
  }

  static constexpr int kDirectBlocks = 4;
  static constexpr LanesI kColumn = {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3};
  static constexpr LanesI kRow = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3};

  /// Of each edge, its value at the first sample of the first pixel of 4x4 cells, row by row.
  using Cells = std::array<LanesI, kEdges>;

  /// Cells of kSize pixels from (x0, y0) on.
  template <int kSize>
  Cells values(int x0, int y0) const {
    Cells cells;
    for (int k = 0; k < kEdges; ++k)
      cells[static_cast<size_t>(k)] = steps_[k] * kSize + (a_[k] * x0 + b_[k] * y0 + base_[k][0]);
    return cells;
  }

  /// Calls visit(x, y, all, cell) for those of the cells that overlap the window and are not outside of an
  /// edge as a whole. @param all  (of visit) every sample is covered and inside
  template <int kSize, typename Visit>
  void for_cells(const Rect& window, bool cuts, int x0, int y0, const Cells& at, Visit&& visit) const {
    LanesI any = {}, all = {};
    for (int k = 0; k < kEdges; ++k) {
      const LanesI& v = at[static_cast<size_t>(k)];
      any |= v + (high_[k] - base_[k][0] + max_step_[k] * (kSize - 1));
      all |= v + (low_[k] - base_[k][0] + min_step_[k] * (kSize - 1));
    }
    const auto cells_of = [&](int low_x, int high_x, int low_y, int high_y) {
      const uint32_t columns = cell_range(low_x >> kShift<kSize>, high_x >> kShift<kSize>);
      const uint32_t rows = cell_range(low_y >> kShift<kSize>, high_y >> kShift<kSize>);
      return columns * ((rows & 1) | (rows & 2) << 3 | (rows & 4) << 6 | (rows & 8) << 9);
    };
    const int left = window.left - x0, right = window.right - x0, top = window.top - y0,
              bottom = window.bottom - y0;
    constexpr int kRest = kSize - 1;
    uint32_t cells = cells_of(left, right + kRest, top, bottom + kRest) & ~uint32_t{negative(any)};
    uint32_t whole = ~uint32_t{negative(all)};
    if (cuts || kSize > 4) whole &= cells_of(left + kRest, right, top + kRest, bottom);
    for (; cells != 0; cells &= cells - 1) {
      const auto cell = static_cast<uint32_t>(__builtin_ctz(cells));
      visit(x0 + static_cast<int>(cell & 3) * kSize, y0 + static_cast<int>(cell >> 2) * kSize,
            ((whole >> cell) & 1) != 0, cell);
    }
  }
  template <int kSize>
  static constexpr int kShift = kSize == 16 ? 4 : 2;

  /// @param value  (k) that of edge k at the first sample of the first pixel, in all lanes
  template <typename Value, typename Emit>
  void block(const Rect& window, bool cuts, int x, int y, Value&& value, Emit&& emit) const {
    Cells pixels;
    for (int k = 0; k < kEdges; ++k) pixels[static_cast<size_t>(k)] = pixel_[k] + value(k);
    const LaneMask inside = cuts ? block_window(window, x, y) : kAllLanes;
    std::array<LaneMask, kSamples> masks;
    LaneMask any = 0;
    for (int s = 0; s < kSamples; ++s) {
      LanesI outside = {};
      for (int k = 0; k < kEdges; ++k)
        outside |= pixels[static_cast<size_t>(k)] + (base_[k][s] - base_[k][0]);
      masks[static_cast<size_t>(s)] = inside & static_cast<LaneMask>(~negative(outside));
      any |= masks[static_cast<size_t>(s)];
    }
    if (any) emit(x, y, masks);
  }

  int32_t a_[kEdges], b_[kEdges];
  int32_t base_[kEdges][kSamples];
  int32_t low_[kEdges], high_[kEdges];           // of base_
  int32_t min_step_[kEdges], max_step_[kEdges];  // from a pixel to the next column, row or both
  LanesI steps_[kEdges];                         // of 4x4 cells, row by row
  LanesI pixel_[kEdges];                         // the same of the pixels of a block
};

}  // namespace v3d::pse
