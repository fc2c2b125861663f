/// Dot products of four packed 8-bit integers (VK_KHR_shader_integer_dot_product).
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <random>

#include "shaders.h"
#include "tests/e2e/vulkan/dispatch.h"
#include "tests/e2e/vulkan/optional/require.h"

namespace e2e {

using namespace harness;

namespace {

constexpr uint32_t kCount = 256;

int64_t byte_of(uint32_t word, int i, bool is_signed) {
  const auto byte = static_cast<uint8_t>(word >> (8 * i));
  return is_signed ? static_cast<int8_t>(byte) : byte;
}

template <bool signed_a, bool signed_b>
int64_t dot(uint32_t a, uint32_t b) {
  int64_t sum = 0;
  for (int i = 0; i < 4; ++i) sum += byte_of(a, i, signed_a) * byte_of(b, i, signed_b);
  return sum;
}

uint32_t low(int64_t v) { return static_cast<uint32_t>(v); }

template <typename T>
int64_t saturated(int64_t v) {
  return std::clamp<int64_t>(v, std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
}

/// Three words an invocation from a[i], b[i] and c[i], compared with what `expect` says of the whole arrays.
template <typename Expect>
void compare(std::span<const uint32_t> code, const Expect& expect) {
  Gpu gpu({feature::kDotProduct});
  REQUIRE_FEATURES(gpu);
  std::mt19937 random(1);
  std::vector<uint32_t> a(kCount), b(kCount), c(kCount);
  constexpr uint32_t kEdges[] = {0, 0xffffffff, 0x80808080, 0x7f7f7f7f, 0x80ff7f01, 0x000000ff};
  for (uint32_t i = 0; i < kCount; ++i) {
    a[i] = i < 36 ? kEdges[i % 6] : static_cast<uint32_t>(random());
    b[i] = i < 36 ? kEdges[i / 6] : static_cast<uint32_t>(random());
    c[i] = static_cast<uint32_t>(random());
    if (i % 3 == 1) c[i] = 0x7fffffffu - (c[i] & 0xffff);
    if (i % 3 == 2) c[i] = 0xffffffffu - (c[i] & 0x1ffff);
  }
  const std::vector<uint32_t> dots = compute<uint32_t>(
      gpu, code, {storage_buffer_of(gpu, a), storage_buffer_of(gpu, b), storage_buffer_of(gpu, c)},
      size_t{3} * kCount, kCount / 64);
  for (uint32_t i = 0; i < kCount; ++i) {
    const std::array<uint32_t, 3> expected = expect(a, b, c, i);
    for (uint32_t k = 0; k < 3; ++k)
      ASSERT_EQ(dots[3 * i + k], expected[k]) << i << "." << k << std::hex << " a " << a[i] << " b " << b[i];
  }
}

using Words = std::vector<uint32_t>;

template <bool signed_a, bool signed_b, uint32_t constant>
std::array<uint32_t, 3> sums(const Words& a, const Words& b, const Words& c, uint32_t i) {
  const auto d = dot<signed_a, signed_b>;
  return {low(d(a[i], b[i])), low(d(a[i], b[i])) + c[i], low(d(a[i], b[i ^ 1]) * 3 + d(a[i ^ 2], constant))};
}

TEST(VulkanDotProduct, Unsigned) { compare(kDotUnsignedComp, sums<false, false, 0x00ff0105>); }
TEST(VulkanDotProduct, Signed) { compare(kDotSignedComp, sums<true, true, 0x007f8105>); }
TEST(VulkanDotProduct, Mixed) { compare(kDotMixedComp, sums<true, false, 0x00ff8105>); }

TEST(VulkanDotProduct, SaturatingUnsigned) {
  compare(kDotSaturatingUnsignedComp, [](const Words& a, const Words& b, const Words& c, uint32_t i) {
    const auto add = [](uint32_t x, uint32_t y, uint32_t z) {
      return low(saturated<uint32_t>(dot<false, false>(x, y) + z));
    };
    return std::array{add(a[i], b[i], c[i]), add(a[i], b[i], 0xffff8000),
                      add(a[i], a[i], add(b[i], b[i], c[i]))};
  });
}

template <bool signed_b>
std::array<uint32_t, 3> saturating_signed(const Words& a, const Words& b, const Words& c, uint32_t i) {
  const auto add = [](uint32_t x, uint32_t y, int32_t z) {
    return low(saturated<int32_t>(dot<true, signed_b>(x, y) + z));
  };
  return {add(a[i], b[i], static_cast<int32_t>(c[i])), add(a[i], b[i], 0x7fffe000),
          add(a[i], b[i ^ 1], -0x7fffe000)};
}

TEST(VulkanDotProduct, SaturatingSigned) { compare(kDotSaturatingSignedComp, saturating_signed<true>); }

TEST(VulkanDotProduct, SaturatingMixed) { compare(kDotSaturatingMixedComp, saturating_signed<false>); }

TEST(VulkanDotProduct, AllSignednessesInOneShader) {
  compare(kDotTogetherComp, [](const Words& a, const Words& b, const Words& c, uint32_t i) {
    std::array<uint32_t, 3> sums = {};
    for (uint32_t k = 0; k <= (c[i] & 3); ++k) {
      sums[0] += low(dot<false, false>(a[i] + k, b[i]));
      sums[1] += low(dot<true, true>(a[i] + k, b[i]));
      sums[2] += low(dot<true, false>(a[i] + k, b[i]));
    }
    return sums;
  });
}

}  // namespace
}  // namespace e2e
