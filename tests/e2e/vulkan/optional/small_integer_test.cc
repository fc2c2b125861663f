/// Arithmetic of 8- and 16-bit integers.
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>

#include "shaders.h"
#include "tests/e2e/vulkan/dispatch.h"
#include "tests/e2e/vulkan/optional/require.h"

namespace e2e {

using namespace harness;

namespace {

constexpr uint32_t kCount = 1024, kResults = 16;

/// The sixteen results of int8.comp and int16.comp.
template <typename T>
std::array<T, kResults> expected(T x, T y) {
  using U = std::make_unsigned_t<T>;
  const auto u = static_cast<U>(x), v = static_cast<U>(y);
  const U divisor = y == 0 ? U{7} : v;
  const int shift = y & (static_cast<int>(sizeof(T)) * 8 - 1);
  const auto cut = [](int64_t value) { return static_cast<T>(value); };
  return {cut(x + y),
          cut(x - y),
          cut(int64_t{x} * y),
          cut(-int64_t{x}),
          std::min(x, y),
          std::max(x, y),
          cut(std::min(u, v)),
          cut(std::max(u, v)),
          cut(x >> shift),
          cut(u >> shift),
          cut(int64_t{u} << shift),
          cut((x & y) ^ (x | ~y)),
          cut(u / divisor),
          cut(u % divisor),
          cut((x < y ? 1 : 0) | (u < v ? 2 : 0) | (x == y ? 4 : 0)),
          cut(x / 2)};
}

template <typename T>
void compare(Gpu& gpu, std::span<const uint32_t> code) {
  std::mt19937 random(7);
  std::vector<T> a(kCount), b(kCount);
  constexpr int64_t kEdges[] = {0, 1, -1, 2, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
  for (uint32_t i = 0; i < kCount; ++i) {
    a[i] = static_cast<T>(i < 36 ? kEdges[i % 6] : static_cast<int64_t>(random()));
    b[i] = static_cast<T>(i < 36 ? kEdges[i / 6] : static_cast<int64_t>(random()));
  }
  const std::vector<T> results = compute<T>(gpu, code, {storage_buffer_of(gpu, a), storage_buffer_of(gpu, b)},
                                            size_t{kResults} * kCount, kCount / 64);
  for (uint32_t i = 0; i < kCount; ++i)
    for (uint32_t k = 0; k < kResults; ++k)
      ASSERT_EQ(+results[kResults * i + k], +expected(a[i], b[i])[k])
          << "result " << k << " of " << +a[i] << ", " << +b[i];
}

TEST(VulkanSmallIntegers, EightBits) {
  Gpu gpu({feature::kInt8, feature::kStorage8});
  REQUIRE_FEATURES(gpu);
  compare<int8_t>(gpu, kInt8Comp);
}

TEST(VulkanSmallIntegers, SixteenBits) {
  Gpu gpu({feature::kInt16, feature::kStorage16});
  REQUIRE_FEATURES(gpu);
  compare<int16_t>(gpu, kInt16Comp);
}

}  // namespace
}  // namespace e2e
