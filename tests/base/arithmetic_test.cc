#include "gpu/base/arithmetic.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <limits>

#include "gpu/base/lanes.h"

namespace v3d {
namespace {

constexpr uint32_t kFirst = 0x7fc00001, kSecond = 0xffc00002, kSignalling = 0x7f800003,
                   kNoOperands = 0xffc00000;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

float nan(uint32_t bits) { return std::bit_cast<float>(bits); }

/// What an operation makes of two floats, alone or in one lane of 16.
template <typename Operation>
void expect(Operation operation, float a, float b, uint32_t bits) {
  EXPECT_EQ(std::bit_cast<uint32_t>(operation(a, b)), bits);
  LanesF x = splat(2.0f), y = splat(0.5f);
  x[5] = a;
  y[5] = b;
  const LanesF result = operation(x, y);
  const LanesF others = operation(splat(2.0f), splat(0.5f));
  for (int i = 0; i < kLanes; ++i)
    EXPECT_EQ(uint32_t{as_uint(result)[i]}, i == 5 ? bits : uint32_t{as_uint(others)[i]}) << i;
}

template <typename Operation>
void expect_first_nan(Operation operation) {
  expect(operation, nan(kFirst), nan(kSecond), kFirst);
  expect(operation, nan(kSecond), nan(kFirst), kSecond);
  expect(operation, nan(kFirst), nan(kSignalling), kFirst);
  expect(operation, nan(kSignalling), nan(kFirst), kSignalling | 0x400000);
  expect(operation, 1.0f, nan(kSecond), kSecond);
  expect(operation, nan(kSignalling), 1.0f, kSignalling | 0x400000);
}

const auto kSum = [](auto a, auto b) { return sum(a, b); };
const auto kDifference = [](auto a, auto b) { return difference(a, b); };
const auto kProduct = [](auto a, auto b) { return product(a, b); };

TEST(Arithmetic, GivesTheFirstNan) {
  expect_first_nan(kSum);
  expect_first_nan(kDifference);
  expect_first_nan(kProduct);
}

TEST(Arithmetic, GivesOneNanWhereThereWasNone) {
  expect(kSum, kInfinity, -kInfinity, kNoOperands);
  expect(kDifference, kInfinity, kInfinity, kNoOperands);
  expect(kProduct, 0.0f, kInfinity, kNoOperands);
}

TEST(Arithmetic, RoundsWholeLanes) {
  const auto expect_rounded = [](LanesF rounded, float a, float b, float c) {
    EXPECT_EQ(rounded[0], a);
    EXPECT_EQ(rounded[7], b);
    EXPECT_EQ(rounded[15], c);
    EXPECT_EQ(uint32_t{as_uint(rounded)[1]}, kSignalling | 0x400000);
  };
  LanesF v = {};
  v[0] = 2.5f;
  v[7] = -1.25f;
  v[15] = 1e30f;
  v[1] = nan(kSignalling);
  expect_rounded(round_lanes<Rounding::kNearestEven>(v), 2, -1, 1e30f);
  expect_rounded(round_lanes<Rounding::kDown>(v), 2, -2, 1e30f);
  expect_rounded(round_lanes<Rounding::kUp>(v), 3, -1, 1e30f);
  expect_rounded(round_lanes<Rounding::kZero>(v), 2, -1, 1e30f);
}

}  // namespace
}  // namespace v3d
