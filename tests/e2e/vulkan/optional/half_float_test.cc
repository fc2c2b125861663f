/// Half-float arithmetic in shaders, on packed pairs and on single halves.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>

#include "shaders.h"
#include "tests/e2e/vulkan/dispatch.h"
#include "tests/e2e/vulkan/optional/require.h"

namespace e2e {

using namespace harness;

namespace {

constexpr uint32_t kCount = 512;
constexpr double kSmallestNormal = 1.0 / (1 << 14), kLargest = 65504;

double value_of(uint16_t half) {
  const int exponent = (half >> 10) & 31, mantissa = half & 1023;
  const double sign = half >> 15 ? -1 : 1;
  if (exponent == 31) return mantissa ? NAN : sign * INFINITY;
  return sign * (exponent ? std::ldexp(1024 + mantissa, exponent - 25) : std::ldexp(mantissa, -24));
}

/// Vulkan asks for a correctly rounded result without saying in which direction, and lets denormals become
/// zero.
testing::AssertionResult rounds_to(uint16_t half, double exact) {
  const double got = value_of(half), magnitude = std::abs(exact);
  const auto fail = [&] { return testing::AssertionFailure() << got << " for " << exact; };
  if (std::isnan(exact)) return std::isnan(got) ? testing::AssertionSuccess() : fail();
  if (got == exact || (magnitude < kSmallestNormal && got == 0)) return testing::AssertionSuccess();
  if (magnitude > kLargest && std::abs(got) >= kLargest && std::signbit(got) == std::signbit(exact))
    return testing::AssertionSuccess();
  int exponent = 0;
  std::frexp(std::max(magnitude, kSmallestNormal), &exponent);
  return std::abs(got - exact) < std::ldexp(1, exponent - 11) ? testing::AssertionSuccess() : fail();
}

/// Halves of every magnitude with an exponent of `lowest`..`highest` (biased), both signs.
std::vector<uint16_t> halves(uint32_t seed, uint32_t count, uint32_t lowest, uint32_t highest) {
  std::mt19937 random(seed);
  std::vector<uint16_t> all(count);
  for (uint16_t& h : all) {
    const auto bits = static_cast<uint32_t>(random());
    const uint32_t exponent = lowest + (bits >> 16) % (highest - lowest + 1);
    h = static_cast<uint16_t>((bits & 0x83ff) | exponent << 10);
  }
  constexpr uint16_t kEdges[] = {0x0000, 0x3c00, 0xbc00, 0x7bff, 0xfbff, 0x0400};
  for (uint32_t i = 0; i < 36; ++i) all[i] = kEdges[seed == 1 ? i % 6 : i / 6];
  return all;
}

/// Arithmetic of two halves by name of the result, in the order of the shaders.
using Operation = double (*)(double x, double y, double x_other, double y_other);

constexpr Operation kShared[] = {[](double x, double y, double, double) { return x + y; },
                                 [](double x, double y, double, double) { return x - y; },
                                 [](double x, double y, double, double) { return x * y; },
                                 [](double x, double, double, double) { return -x; },
                                 [](double x, double, double, double) { return std::abs(x); },
                                 [](double x, double y, double, double) { return std::min(x, y); },
                                 [](double x, double y, double, double) { return std::max(x, y); }};

TEST(VulkanHalfFloat, ArithmeticOfPackedPairs) {
  Gpu gpu({feature::kFloat16, feature::kStorage16});
  REQUIRE_FEATURES(gpu);
  constexpr uint32_t kResults = 10;
  const std::vector<uint16_t> a = halves(1, 2 * kCount, 5, 27), b = halves(2, 2 * kCount, 5, 27);
  const std::vector<uint16_t> results =
      compute<uint16_t>(gpu, kHalfArithmeticComp, {storage_buffer_of(gpu, a), storage_buffer_of(gpu, b)},
                        size_t{2} * kResults * kCount, kCount / 64);
  for (uint32_t i = 0; i < 2 * kCount; ++i) {
    const double x = value_of(a[i]), y = value_of(b[i]);
    const double x_other = value_of(a[i ^ 1]), y_other = value_of(b[i ^ 1]), y_first = value_of(b[i & ~1u]);
    const auto result = [&](uint32_t k) { return results[(i / 2 * kResults + k) * 2 + i % 2]; };
    for (uint32_t k = 0; k < std::size(kShared); ++k)
      ASSERT_TRUE(rounds_to(result(k), kShared[k](x, y, x_other, y_other))) << k << " of " << x << ", " << y;
    ASSERT_TRUE(rounds_to(result(7), x_other + y)) << x_other << " + " << y;
    ASSERT_TRUE(rounds_to(result(8), x - y_first)) << x << " - " << y_first;
    ASSERT_TRUE(rounds_to(result(9), -std::abs(x) + y_other)) << x << ", " << y_other;
  }
}

TEST(VulkanHalfFloat, ArithmeticOfSingleHalves) {
  Gpu gpu({feature::kFloat16, feature::kStorage16});
  REQUIRE_FEATURES(gpu);
  constexpr uint32_t kResults = 10;
  const std::vector<uint16_t> a = halves(1, kCount, 5, 27), b = halves(2, kCount, 5, 27);
  const std::vector<uint16_t> results =
      compute<uint16_t>(gpu, kHalfScalarComp, {storage_buffer_of(gpu, a), storage_buffer_of(gpu, b)},
                        size_t{kResults} * kCount, kCount / 64);
  for (uint32_t i = 0; i < kCount; ++i) {
    const double x = value_of(a[i]), y = value_of(b[i]);
    const uint16_t* const result = &results[size_t{i} * kResults];
    for (uint32_t k = 0; k < std::size(kShared); ++k)
      ASSERT_TRUE(rounds_to(result[k], kShared[k](x, y, x, y))) << k << " of " << x << ", " << y;
    ASSERT_TRUE(rounds_to(result[7], std::floor(x))) << "floor of " << x;
    ASSERT_TRUE(rounds_to(result[8], x + 0.25)) << x << " + 0.25";
    ASSERT_TRUE(rounds_to(result[9], -std::abs(x) + y)) << x << ", " << y;
  }
}

uint32_t comparisons(double x, double y) {
  return (x < y ? 1u : 0u) | (x <= y ? 2u : 0u) | (x > y ? 4u : 0u) | (x >= y ? 8u : 0u) |
         (x == y ? 16u : 0u) | (x != y ? 32u : 0u);
}

TEST(VulkanHalfFloat, Comparisons) {
  Gpu gpu({feature::kFloat16, feature::kStorage16});
  REQUIRE_FEATURES(gpu);
  std::vector<uint16_t> a = halves(1, 2 * kCount, 1, 30), b = halves(2, 2 * kCount, 1, 30);
  for (uint32_t i = 100; i < 200; ++i) b[i] = a[i];
  a[201] = 0x7c00, b[201] = 0xfc00;  // the infinities
  a[202] = b[202] = 0x7c00;          // equal
  a[203] = 0x8000, b[203] = 0x0000;  // zeros are equal
  const std::vector<uint32_t> results = compute<uint32_t>(
      gpu, kHalfCompareComp, {storage_buffer_of(gpu, a), storage_buffer_of(gpu, b)}, kCount, kCount / 64);
  for (uint32_t i = 0; i < kCount; ++i) {
    const double x[] = {value_of(a[2 * i]), value_of(a[2 * i + 1])};
    const double y[] = {value_of(b[2 * i]), value_of(b[2 * i + 1])};
    const uint32_t any_less = x[0] < y[0] || x[1]<y[1], all_greater = x[0]> y[0] && x[1] > y[1];
    ASSERT_EQ(results[i], comparisons(x[0], y[0]) | comparisons(x[1], y[1]) << 8 |
                              comparisons(x[0], y[1]) << 16 | any_less << 24 | all_greater << 25)
        << x[0] << ", " << x[1] << " and " << y[0] << ", " << y[1];
  }
}

TEST(VulkanHalfFloat, Conversions) {
  Gpu gpu({feature::kFloat16, feature::kStorage16});
  REQUIRE_FEATURES(gpu);
  constexpr uint32_t kResults = 8;
  const std::vector<uint16_t> a = halves(1, 2 * kCount, 5, 28);
  std::vector<float> b(kCount);
  std::mt19937 random(3);
  for (float& f : b)
    f = std::ldexp(static_cast<float>(static_cast<int32_t>(random())), -27 + static_cast<int>(random() % 8));
  const std::vector<uint32_t> results =
      compute<uint32_t>(gpu, kHalfConvertComp, {storage_buffer_of(gpu, a), storage_buffer_of(gpu, b)},
                        size_t{kResults} * kCount, kCount / 64);
  for (uint32_t i = 0; i < kCount; ++i) {
    const double x = value_of(a[2 * i]), y = value_of(a[2 * i + 1]);
    const uint32_t* const result = &results[size_t{i} * kResults];
    const auto low = [&](uint32_t k) { return static_cast<uint16_t>(result[k]); };
    const auto high = [&](uint32_t k) { return static_cast<uint16_t>(result[k] >> 16); };
    ASSERT_EQ(std::bit_cast<float>(result[0]), static_cast<float>(x));
    ASSERT_EQ(std::bit_cast<float>(result[1]), static_cast<float>(y));
    ASSERT_TRUE(rounds_to(low(2), b[i]));
    ASSERT_EQ(high(2), a[2 * i]);
    ASSERT_EQ(static_cast<int32_t>(result[3]), static_cast<int32_t>(x)) << x;
    ASSERT_EQ(result[4], static_cast<uint32_t>(std::abs(y))) << y;
    ASSERT_TRUE(rounds_to(low(5), static_cast<double>(i) - 300));
    ASSERT_TRUE(rounds_to(high(5), i));
    ASSERT_EQ(result[6], static_cast<uint32_t>(a[2 * i] << 16 | a[2 * i + 1]));
    ASSERT_TRUE(rounds_to(low(7), x * 2));
    ASSERT_TRUE(rounds_to(high(7), y * 2));
  }
}

}  // namespace
}  // namespace e2e
