/// The functions of the SFU round correctly.
///
/// Their double results were compared with 113-bit ones for every float input: a double result is rounded
/// wrongly to float only if it lies within 16 of its last places of the middle of two floats, and all 499
/// such inputs were checked. Here a long double reference goes over a spread of all inputs.

#include "gpu/qpu/run/sfu.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace v3d::qpu::sfu {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

float ref_rsqrt(float x) { return static_cast<float>(1 / std::sqrt(static_cast<long double>(x))); }
float ref_exp2(float x) {
  const auto rounded = static_cast<float>(std::exp2(static_cast<long double>(x)));
  return rounded < std::numeric_limits<float>::min() ? 0 : rounded;
}
float ref_log2(float x) { return static_cast<float>(std::log2(static_cast<long double>(x))); }
float ref_sin(float x) {
  if (std::fabs(x) > 0.5f) return std::copysign(1.0f, x);
  return static_cast<float>(std::sin(3.14159265358979323846264338327950288L * static_cast<long double>(x)));
}

struct Function {
  const char* name;
  LanesF (*lanes)(LanesF);
  float (*reference)(float);
};
const Function kFunctions[] = {
    {"rsqrt", rsqrt, ref_rsqrt}, {"exp2", exp2, ref_exp2}, {"log2", log2, ref_log2}, {"sin", sin, ref_sin}};

bool same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

TEST(Sfu, CorrectlyRounded) {
  for (const Function& f : kFunctions) {
    // A step that is prime to 2^32 meets all exponents and both signs.
    uint32_t bits = 0;
    for (int n = 0; n < 16000; ++n) {
      Lanes in;
      for (int i = 0; i < kLanes; ++i) in[i] = bits += 16777259u;
      const LanesF out = f.lanes(as_float(in));
      for (int i = 0; i < kLanes; ++i) {
        const float x = std::bit_cast<float>(uint32_t{in[i]});
        ASSERT_TRUE(same(out[i], f.reference(x)))
            << f.name << "(" << std::hexfloat << x << ") = " << out[i] << ", not " << f.reference(x);
      }
    }
  }
}

// Where the results are near 1 or 0 and the relative error counts.
TEST(Sfu, CorrectlyRoundedNearOne) {
  for (const Function& f : kFunctions) {
    for (float centre : {1.0f, 0.5f, -0.5f, 0x1p-24f, 2.0f}) {
      for (int n = -4000; n < 4000; n += kLanes) {
        const Lanes in = splat(std::bit_cast<uint32_t>(centre) + static_cast<uint32_t>(n)) + kLaneIndex;
        const LanesF out = f.lanes(as_float(in));
        for (int i = 0; i < kLanes; ++i) {
          const float x = std::bit_cast<float>(uint32_t{in[i]});
          ASSERT_TRUE(same(out[i], f.reference(x)))
              << f.name << "(" << std::hexfloat << x << ") = " << out[i];
        }
      }
    }
  }
}

// Results so near the middle of two floats that a 64-bit mantissa cannot decide; from the 113-bit comparison.
TEST(Sfu, HardInputs) {
  EXPECT_EQ(exp2(splat(0x1.853a6ep-9f))[0], 0x1.00870ap+0f);
  EXPECT_EQ(exp2(splat(-0x1.e7526ep-6f))[0], 0x1.f58d62p-1f);
}

TEST(Sfu, Specials) {
  const auto at = [](LanesF (*f)(LanesF), float x) {
    return float{f(as_float(splat(std::bit_cast<uint32_t>(x))))[3]};
  };
  EXPECT_TRUE(same(at(recip, 0.0f), kInf));
  EXPECT_TRUE(same(at(recip, -0.0f), -kInf));
  EXPECT_TRUE(same(at(recip, kInf), 0.0f));
  EXPECT_TRUE(same(at(recip, -kInf), -0.0f));
  EXPECT_TRUE(same(at(recip, 0x1p-149f), kInf));
  EXPECT_TRUE(same(at(recip, 0x1p127f), 0x1p-127f));
  EXPECT_TRUE(same(at(recip, 3.0f), 1.0f / 3.0f));
  EXPECT_TRUE(same(at(rsqrt, 0.0f), kInf));
  EXPECT_TRUE(same(at(rsqrt, kInf), 0.0f));
  EXPECT_TRUE(std::isnan(at(rsqrt, -1.0f)));
  EXPECT_TRUE(same(at(rsqrt, 0x1p-148f), 0x1p74f));
  // sqrt is lowered to recip(rsqrt(x)): its specials fall out.
  EXPECT_TRUE(same(at(recip, at(rsqrt, 0.0f)), 0.0f));
  EXPECT_TRUE(same(at(recip, at(rsqrt, kInf)), kInf));
  EXPECT_TRUE(same(at(exp2, 128.0f), kInf));
  EXPECT_TRUE(same(at(exp2, kInf), kInf));
  EXPECT_TRUE(same(at(exp2, -126.0f), 0x1p-126f));
  EXPECT_TRUE(same(at(exp2, -126.5f), 0.0f));
  EXPECT_TRUE(same(at(exp2, -kInf), 0.0f));
  EXPECT_TRUE(same(at(exp2, -151.0f), 0.0f));
  EXPECT_TRUE(same(at(exp2, 3e38f), kInf));
  EXPECT_TRUE(same(at(exp2, -3e38f), 0.0f));
  EXPECT_TRUE(same(at(exp2, 10.0f), 1024.0f));
  EXPECT_TRUE(same(at(log2, 0.0f), -kInf));
  EXPECT_TRUE(same(at(log2, -0.0f), -kInf));
  EXPECT_TRUE(same(at(log2, kInf), kInf));
  EXPECT_TRUE(std::isnan(at(log2, -1.0f)));
  EXPECT_TRUE(std::isnan(at(log2, -kInf)));
  EXPECT_TRUE(same(at(log2, 1.0f), 0.0f));
  EXPECT_TRUE(same(at(log2, 0x1p-149f), -149.0f));
  EXPECT_TRUE(same(at(sin, 0.5f), 1.0f));
  EXPECT_TRUE(same(at(sin, 7.0f), 1.0f));
  EXPECT_TRUE(same(at(sin, -kInf), -1.0f));
  EXPECT_TRUE(same(at(sin, -0.0f), -0.0f));
  for (auto f : {recip, rsqrt, exp2, log2, sin}) EXPECT_TRUE(std::isnan(at(f, kNan)));
}

}  // namespace
}  // namespace v3d::qpu::sfu
