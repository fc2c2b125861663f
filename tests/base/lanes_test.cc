#include "gpu/base/lanes.h"

#include <gtest/gtest.h>

#include <bit>

namespace v3d {
namespace {

TEST(Lanes, SplatKeepsEveryBit) {
  for (const uint32_t bits : {0u, 0x80000000u, 0x3f800000u, 0x7f800000u, 0xffc12345u, 0x7fc00001u, 1u}) {
    const Lanes lanes = as_uint(splat(std::bit_cast<float>(bits)));
    for (int i = 0; i < kLanes; ++i) EXPECT_EQ(lanes[i], bits) << i;
    EXPECT_EQ(splat(bits)[5], bits);
  }
}

TEST(Lanes, MasksAndLanesAgree) {
  for (const LaneMask mask : {LaneMask{0}, LaneMask{1}, LaneMask{0x8000}, LaneMask{0x1234}, kAllLanes}) {
    EXPECT_EQ(nonzero(reinterpret_cast<Lanes>(expand(mask))), mask);
    const Lanes v = select(mask, splat(5u), splat(0u));
    for (int i = 0; i < kLanes; ++i) EXPECT_EQ(v[i], (mask >> i) & 1 ? 5u : 0u) << i;
  }
}

TEST(Lanes, PermuteTakesTheLanesOfTheIndex) {
  const Lanes v = kLaneIndex + 100u;
  const Lanes reversed = permute(v, 15u - kLaneIndex);
  const Lanes two = permute(v, v + 100u, kLaneIndex * 2u);
  for (int i = 0; i < kLanes; ++i) {
    EXPECT_EQ(reversed[i], 115u - static_cast<uint32_t>(i));
    EXPECT_EQ(two[i], i < 8 ? 100u + 2 * static_cast<uint32_t>(i) : 200u + 2 * static_cast<uint32_t>(i - 8));
  }
}

}  // namespace
}  // namespace v3d
