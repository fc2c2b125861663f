#include "gpu/vpm/packed_positions.h"

#include <algorithm>

namespace v3d::vpm {
namespace {

/// Rows in front of the position, which the coordinate program alone writes: Xc, Yc, Zc, Wc.
constexpr uint32_t clip_rows(bool coordinate) { return coordinate ? 4 : 0; }
constexpr uint32_t kDepthRows = 2;  // Zs and 1/Wc, which follow the position
/// Rows that a vertex program may have besides varyings, and those of its varyings, fit into the window.
constexpr uint32_t kMostTail = kVpmWindowRows - 1 - kDepthRows;

/// Rows after 1/Wc.
uint32_t tail_rows(const draw::ShaderRecord& record, bool coordinate) {
  const uint32_t tail = record.point_size_in_vertices + (coordinate ? 0u : record.num_varyings);
  return std::min(tail, kMostTail);
}

}  // namespace

uint32_t rows_with_positions(const draw::ShaderRecord& record, bool coordinate) {
  // The coordinate program's Zs and 1/Wc are of no use: binning has Xc to Wc.
  return clip_rows(coordinate) + 2 + (coordinate ? 0 : kDepthRows) + tail_rows(record, coordinate);
}

void unpack_positions(const draw::ShaderRecord& record, bool coordinate, const Lanes* packed, Lanes* rows) {
  const uint32_t clip = clip_rows(coordinate), tail = tail_rows(record, coordinate);
  rows = std::copy_n(packed, clip, rows);
  const LanesI position = as_int(packed[clip]);
  *rows++ = as_uint(as_int(as_uint(position) << 16) >> 16);
  *rows++ = as_uint(position >> 16);
  const Lanes* const depth = packed + clip + 1;
  if (!coordinate) rows = std::copy_n(depth, kDepthRows, rows);
  std::copy_n(depth + kDepthRows, tail, rows);
}

}  // namespace v3d::vpm
