/// These functions take lanes of two vectors by turns, and find what such vectors were made of.
#pragma once

#include "gpu/base/lanes.h"

namespace v3d {

/// a0 b0 a1 b1 ... a7 b7.
inline Lanes low_pairs(const Lanes& a, const Lanes& b) {
  return shuffle<0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23>(a, b);
}
/// a8 b8 a9 b9 ... a15 b15.
inline Lanes high_pairs(const Lanes& a, const Lanes& b) {
  return shuffle<8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31>(a, b);
}
/// The first word of each pair of `low`, then of `high`.
inline Lanes first_of_pairs(const Lanes& low, const Lanes& high) {
  return shuffle<0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30>(low, high);
}
inline Lanes second_of_pairs(const Lanes& low, const Lanes& high) {
  return shuffle<1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31>(low, high);
}

}  // namespace v3d
