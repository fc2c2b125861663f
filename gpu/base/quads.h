/// These functions exchange the pixels of quads (lanes.h says which lane is which).
#pragma once

#include <cstdint>

#include "gpu/base/lanes.h"

namespace v3d {

/// Of each lane the value of the other pixel of its row.
inline Lanes of_row(const Lanes& v) {
  return shuffle<1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14>(v);
}
/// Of the other pixel of its column.
inline Lanes of_column(const Lanes& v) {
  return shuffle<2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13>(v);
}

/// Bit 4q is set when any lane of quad q is.
inline uint32_t quads_with_any(uint32_t lanes) {
  lanes |= lanes >> 2;
  return (lanes | lanes >> 1) & 0x1111u;
}

}  // namespace v3d
