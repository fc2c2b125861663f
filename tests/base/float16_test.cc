#include "gpu/base/float16.h"

#include <gtest/gtest.h>

#include <cmath>

namespace v3d {
namespace {

TEST(Float16, WideningIsExactForAllHalves) {
  for (uint32_t h = 0; h < 0x10000; ++h) {
    const uint32_t exponent = (h >> 10) & 31, mantissa = h & 0x3ff;
    const float f = half_to_float(static_cast<uint16_t>(h));
    if (exponent == 31 && mantissa) {
      EXPECT_TRUE(std::isnan(f)) << h;
      continue;
    }
    const double magnitude = exponent == 31  ? INFINITY
                             : exponent == 0 ? std::ldexp(mantissa, -24)
                                             : std::ldexp(1024.0 + mantissa, static_cast<int>(exponent) - 25);
    EXPECT_EQ(f, h & 0x8000 ? -magnitude : magnitude) << h;
    EXPECT_EQ(std::signbit(f), (h & 0x8000) != 0) << h;
  }
}

TEST(Float16, NarrowingRoundsToTheNearestEven) {
  for (uint32_t h = 0; h < 0x7bff; ++h) {
    const float low = half_to_float(static_cast<uint16_t>(h)),
                high = half_to_float(static_cast<uint16_t>(h + 1));
    const float middle = low + (high - low) / 2;
    EXPECT_EQ(float_to_half(low), h);
    EXPECT_EQ(float_to_half(middle), h & 1 ? h + 1 : h);
    EXPECT_EQ(float_to_half(std::nextafter(middle, 0.0f)), h);
    EXPECT_EQ(float_to_half(std::nextafter(middle, INFINITY)), h + 1);
    EXPECT_EQ(float_to_half(-low), h | 0x8000);
  }
  EXPECT_EQ(float_to_half(65519.996f), 0x7bff);
  EXPECT_EQ(float_to_half(65520.0f), 0x7c00);
}

TEST(Float16, LanesAgreeWithScalars) {
  uint32_t seed = 1;
  for (int round = 0; round < 20000; ++round) {
    Lanes words;
    for (int i = 0; i < kLanes; ++i) words[i] = seed = seed * 1664525 + 1013904223;
    const Lanes halves = float_to_half(as_float(words));
    const Lanes wide = as_uint(half_to_float(words & 0xffffu));
    for (int i = 0; i < kLanes; ++i) {
      EXPECT_EQ(halves[i], float_to_half(as_float(words)[i])) << std::hex << words[i];
      EXPECT_EQ(wide[i], std::bit_cast<uint32_t>(half_to_float(static_cast<uint16_t>(words[i]))))
          << std::hex << words[i];
    }
  }
}

}  // namespace
}  // namespace v3d
