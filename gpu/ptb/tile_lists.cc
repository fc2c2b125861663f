#include "gpu/ptb/tile_lists.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "gpu/base/vector.h"
#include "gpu/ptb/screen.h"

namespace v3d::ptb {

namespace {
constexpr int32_t kPixel = 1 << kScreenFractionBits;

/// For a WorkMeter: of a row of tiles, and of a list that gets an entry. Three tiles that are looked at take
/// as long as one of its units.
constexpr size_t kFirstRoom = 8;
constexpr uint32_t kRowCost = 1, kEntryCost = 4, kTilesOfCost = 3;
}  // namespace

TileLists::TileLists(const draw::DrawState& s, draw::BinResult* result, const JobContext* job)
    : result_(*result),
      meter_(job),
      left_(s.clip_left),
      top_(s.clip_bottom),
      right_(std::min<int32_t>(s.clip_left + s.clip_width, static_cast<int32_t>(result->width))),
      bottom_(std::min<int32_t>(s.clip_bottom + s.clip_height, static_cast<int32_t>(result->height))),
      tile_shift_x_(std::countr_zero(result->tile_width)),
      tile_shift_y_(std::countr_zero(result->tile_height)),
      // Samples lie at the centre, or between 1/8 and 7/8 of the pixel (cle-and-tiles.md 4.3).
      first_sample_(s.cfg.oversample == 0 ? kPixel / 2 : kPixel / 8),
      last_sample_(s.cfg.oversample == 0 ? kPixel / 2 : kPixel * 7 / 8) {}

/// Tiles with a pixel inside the window of which a sample, at first_sample..last_sample, lies in the box.
TileLists::TileRange TileLists::tiles_of(const Box& box, int32_t first_sample, int32_t last_sample) const {
  const auto first_pixel = [=](int32_t v) { return (v - last_sample + kPixel - 1) >> kScreenFractionBits; };
  const auto last_pixel = [=](int32_t v) { return (v - first_sample) >> kScreenFractionBits; };
  const int32_t x0 = std::max(first_pixel(box.left), left_), x1 = std::min(last_pixel(box.right), right_ - 1);
  const int32_t y0 = std::max(first_pixel(box.top), top_), y1 = std::min(last_pixel(box.bottom), bottom_ - 1);
  if (x0 > x1 || y0 > y1) return {0, 0, -1, -1};
  return {x0 >> tile_shift_x_, y0 >> tile_shift_y_, x1 >> tile_shift_x_, y1 >> tile_shift_y_};
}

LaneMask TileLists::tiles_of(const Boxes& boxes, TileRanges* ranges) const {
  const auto first_pixel = [this](LanesI v) {
    return (v - last_sample_ + kPixel - 1) >> kScreenFractionBits;
  };
  const auto last_pixel = [this](LanesI v) { return (v - first_sample_) >> kScreenFractionBits; };
  const LanesI x0 = max(first_pixel(boxes.left), splat_int(left_)),
               x1 = min(last_pixel(boxes.right), splat_int(right_ - 1)),
               y0 = max(first_pixel(boxes.top), splat_int(top_)),
               y1 = min(last_pixel(boxes.bottom), splat_int(bottom_ - 1));
  *ranges = {x0 >> tile_shift_x_, y0 >> tile_shift_y_, x1 >> tile_shift_x_, y1 >> tile_shift_y_};
  return negative(at_most(x0, x1) & at_most(y0, y1));
}

/// The function (b - a) x (p - a) + bias, taken at that corner of each tile where it is largest.
TileLists::EdgeWalk TileLists::walk(ScreenPoint a, ScreenPoint b, int64_t bias,
                                    const TileRange& range) const {
  const int64_t dx = int64_t{b.x} - a.x, dy = int64_t{b.y} - a.y;
  const int64_t tile_w = int64_t{kPixel} << tile_shift_x_, tile_h = int64_t{kPixel} << tile_shift_y_;
  const int64_t x = range.x0 * tile_w + (dy < 0 ? tile_w : 0) - a.x;
  const int64_t y = range.y0 * tile_h + (dx > 0 ? tile_h : 0) - a.y;
  return {dx * y - dy * x + bias, -dy * tile_w, dx * tile_h};
}

uint32_t TileLists::add_range(const TileRange& range, uint32_t layer, draw::ListEntry entry) {
  const auto columns = static_cast<uint32_t>(range.x1 - range.x0 + 1);
  for (int32_t y = range.y0; y <= range.y1 && meter_.charge(kRowCost + columns * kEntryCost); ++y) {
    std::vector<draw::ListEntry>* lists = row(layer, y);
    for (int32_t x = range.x0; x <= range.x1; ++x) {
      if (lists[x].capacity() == 0) lists[x].reserve(kFirstRoom);
      lists[x].push_back(entry);
    }
  }
  return static_cast<uint32_t>((range.x1 - range.x0 + 1) * (range.y1 - range.y0 + 1));
}

/// Adds the tiles of the range where some group of `group_size` edges has no negative function.
uint32_t TileLists::add_where(const TileRange& range, std::span<const EdgeWalk> edges, size_t group_size,
                              uint32_t layer, draw::ListEntry entry) {
  uint32_t added = 0;
  const uint32_t row_cost = kRowCost + static_cast<uint32_t>(range.x1 - range.x0 + 1) *
                                           static_cast<uint32_t>(edges.size()) / kTilesOfCost;
  for (int32_t y = range.y0; y <= range.y1 && meter_.charge(row_cost); ++y) {
    const uint32_t before = added;
    std::vector<draw::ListEntry>* lists = row(layer, y);
    for (int32_t x = range.x0; x <= range.x1; ++x) {
      bool touched = false;
      for (size_t group = 0; group < edges.size() && !touched; group += group_size) {
        int64_t signs = 0;
        for (const EdgeWalk& e : edges.subspan(group, group_size))
          signs |= e.start + e.step_x * (x - range.x0) + e.step_y * (y - range.y0);
        touched = signs >= 0;
      }
      if (!touched) continue;
      lists[x].push_back(entry);
      ++added;
    }
    meter_.charge((added - before) * kEntryCost);
  }
  return added;
}

/// The fan of triangles as it will be rasterised: rounding can make a clipped polygon concave, so that it is
/// not the intersection of the half planes of its sides.
uint32_t TileLists::add_polygon(std::span<const ScreenPoint> corners, uint32_t layer, draw::ListEntry entry) {
  const ScreenPoint first = corners[0];
  Box box{first.x, first.y, first.x, first.y};
  for (const ScreenPoint& p : corners) {
    box = {std::min(box.left, p.x), std::min(box.top, p.y), std::max(box.right, p.x),
           std::max(box.bottom, p.y)};
  }
  const TileRange range = tiles_of(box, first_sample_, last_sample_);
  if (range.empty()) return 0;
  if (range.thin()) return add_range(range, layer, entry);
  EdgeWalk edges[3 * (draw::kMaxCorners - 2)];
  size_t count = 0;
  for (size_t i = 1; i + 1 < corners.size(); ++i) {
    ScreenPoint a = corners[i], b = corners[i + 1];
    const int64_t area = (int64_t{a.x} - first.x) * (int64_t{b.y} - first.y) -
                         (int64_t{b.x} - first.x) * (int64_t{a.y} - first.y);
    if (area == 0) continue;
    if (area < 0) std::swap(a, b);
    edges[count++] = walk(first, a, 0, range);
    edges[count++] = walk(a, b, 0, range);
    edges[count++] = walk(b, first, 0, range);
  }
  return add_where(range, {edges, count}, 3, layer, entry);
}

uint32_t TileLists::add_line(ScreenPoint a, ScreenPoint b, float width, uint32_t layer,
                             draw::ListEntry entry) {
  // Half the width, and one pixel for the diamond rule and the replicated fragments of wide lines.
  const auto reach = static_cast<int32_t>(std::ceil(width * (0.5f * kPixel))) + kPixel;
  const Box box{std::min(a.x, b.x) - reach, std::min(a.y, b.y) - reach, std::max(a.x, b.x) + reach,
                std::max(a.y, b.y) + reach};
  const TileRange range = tiles_of(box, 0, kPixel - 1);
  if (range.empty()) return 0;
  if (range.thin()) return add_range(range, layer, entry);
  const int64_t bias = int64_t{reach} * (std::abs(int64_t{b.x} - a.x) + std::abs(int64_t{b.y} - a.y));
  const EdgeWalk sides[2] = {walk(a, b, bias, range), walk(b, a, bias, range)};
  return add_where(range, sides, 2, layer, entry);
}

uint32_t TileLists::add_point(ScreenPoint center, float size, uint32_t layer, draw::ListEntry entry) {
  const auto reach = static_cast<int32_t>(std::ceil(size * (0.5f * kPixel))) + 1;
  const Box box{center.x - reach, center.y - reach, center.x + reach, center.y + reach};
  const TileRange range = tiles_of(box, 0, kPixel - 1);
  return range.empty() ? 0 : add_range(range, layer, entry);
}

}  // namespace v3d::ptb
